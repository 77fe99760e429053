"""Implementations of concurrency: green threads and native threads.

Only this file imports eventlet, and only programs (``cmd``) import this file; services are handed one of

* :class:`Green`, eventlet's green threads, after :func:`patch`;
* :class:`Threads`, native threads.

Services take locks, events and queues from the standard library: after :func:`patch` those are green as well.  What
must not wait for green threads gets a thread of the operating system, see
:class:`~designate_pool.concurrency.NativeThread`.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import functools
import os
import select
import socket
import threading
import time
import types
from collections.abc import Callable
from typing import Any

from designate_pool.concurrency import Handle, LoopTask, NativeThread, Runtime, Work, Workers, WorkQueue, attempt

#: Items that a native thread posts at a time, at most, so that other threads get a turn in between.
_MOST_POSTED = 1000


class _ThreadWorkers:
    def __init__(self, size: int, name: str) -> None:
        # Not a subclass: the module is imported by its first use, which is too early above.  It makes a lock that
        # :func:`patch` does not replace, and a thread that waits for it would stop all of eventlet's.
        self._executor = concurrent.futures.ThreadPoolExecutor(size, thread_name_prefix=name)
        self.submit = self._executor.submit

    def stop(self) -> None:
        self._executor.shutdown(wait=True)


class _ThreadNative:
    socket: Any = socket
    select: Any = select
    time: Any = time
    threading: Any = threading

    def __init__(self, name: str, handle: Handle) -> None:
        self._name = name
        self._batches = WorkQueue(handle, _MOST_POSTED, lambda loop: Threads.spawn(loop, name=f'{name}-posted'), name)
        self.post = self._batches.put
        self.stop = self._batches.stop

    def spawn(self, work: Work, *args: Any) -> LoopTask:
        return Threads.spawn(work, *args, name=self._name)


class Threads(Runtime):
    """Native threads."""

    name = 'threading'

    @staticmethod
    def spawn(work: Work, *args: Any, name: str) -> LoopTask:
        thread = threading.Thread(target=work, args=args, name=name, daemon=True)
        thread.start()
        return thread

    def work_queue(self, handle: Handle, max_batch: int, name: str, **options: Any) -> WorkQueue:
        return WorkQueue(handle, max_batch, lambda loop: self.spawn(loop, name=name), name, **options)

    def workers(self, size: int, name: str) -> Workers:
        return _ThreadWorkers(size, name)

    def native(self, name: str, handle: Handle) -> NativeThread:
        return _ThreadNative(name, handle)

    def compute(self, work: Work, *args: Any) -> Any:
        return work(*args)


class _GreenTask:
    def __init__(self, work: Work, args: tuple[Any, ...]) -> None:
        import eventlet

        self._thread = eventlet.spawn(work, *args)

    def join(self, timeout: float | None = None) -> None:
        import eventlet

        with eventlet.Timeout(timeout, False):
            self._thread.wait()


class _GreenWorkers:
    def __init__(self, size: int) -> None:
        import eventlet

        self._pool = eventlet.GreenPool(size)

    def submit(self, work: Work, *args: Any) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._pool.spawn(_complete, future, work, args)
        return future

    def stop(self) -> None:
        self._pool.waitall()


def _complete(future: concurrent.futures.Future[Any], work: Work, args: tuple[Any, ...]) -> None:
    try:
        future.set_result(work(*args))
    except BaseException as error:  # eventlet's Timeout is no Exception; whoever waits for the future decides
        future.set_exception(error)


class _GreenNative:
    """The thread posts into a deque, and wakes the green thread that reads it through a socket."""

    def __init__(self, name: str, handle: Handle) -> None:
        import eventlet.event
        from eventlet import patcher

        self.socket, self.select, self.time, self.threading = map(
            patcher.original, ('socket', 'select', 'time', 'threading'))
        self._name, self._handle = name, handle
        self._posted: collections.deque[Any] = collections.deque()
        self._inner, self._outer = self.socket.socketpair()
        self._inner.setblocking(False)
        self._outer.setblocking(False)
        self._awake = self._ended = self._stopping = False
        self._end = eventlet.event.Event()
        self._reader = _GreenTask(self._read, ())

    def spawn(self, work: Work, *args: Any) -> LoopTask:
        self.threading.Thread(target=self._run, args=(work, args), name=self._name, daemon=True).start()
        end: Any = types.SimpleNamespace(join=self._end.wait)
        return end

    def post(self, *items: Any) -> None:
        self._posted.extend(items)
        if not self._awake:
            self._awake = True
            self._wake()

    def stop(self) -> None:
        self._stopping = True
        self._wake()
        self._reader.join(5)

    def _run(self, work: Work, args: tuple[Any, ...]) -> None:
        try:
            work(*args)
        finally:
            self._ended = True
            self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # a full socket wakes as well, a closed one has nobody to wake
            self._outer.send(b'.')

    def _read(self) -> None:
        from eventlet import hubs

        with contextlib.closing(self._inner), contextlib.closing(self._outer):
            while self._posted or not self._stopping:
                if not self._posted:
                    hubs.trampoline(self._inner, read=True)
                    with contextlib.suppress(BlockingIOError):
                        self._inner.recv(4096)
                self._awake = False  # before looking: what is posted from here on sends another byte
                items = [self._posted.popleft() for _ in range(min(_MOST_POSTED, len(self._posted)))]
                if items:
                    attempt(self._handle, items, self._name)
                    time.sleep(0)
                if self._ended and not self._posted and not self._end.ready():
                    self._end.send()


class Green(Runtime):
    """Green threads; the process must have been patched before anything else was imported."""

    name = 'eventlet'

    def spawn(self, work: Work, *args: Any, name: str) -> LoopTask:
        return _GreenTask(work, args)

    def work_queue(self, handle: Handle, max_batch: int, name: str, **options: Any) -> WorkQueue:
        return WorkQueue(handle, max_batch, lambda loop: self.spawn(loop, name=name), name, **options)

    def workers(self, size: int, name: str) -> Workers:
        return _GreenWorkers(size)

    def native(self, name: str, handle: Handle) -> NativeThread:
        return _GreenNative(name, handle)

    def compute(self, work: Work, *args: Any) -> Any:
        from eventlet import tpool

        return tpool.execute(work, *args)


def patch() -> None:
    """Patch the standard library.  Call it before importing anything that keeps references to it.

    Host names are looked up in native threads: the C library's resolver blocks, and eventlet's own is disabled, see
    :mod:`designate_pool`.  The functions of :mod:`os` stay as they are: eventlet's take one writer of a pipe at a
    time, and waitress has many; nothing here waits for a pipe that it reads or writes by them.
    """
    import eventlet
    from eventlet.green import socket as green_socket

    # Its create_connection uses it as well.
    green_socket.getaddrinfo = functools.partial(_getaddrinfo, socket.getaddrinfo)
    eventlet.monkey_patch(os=False)
    with contextlib.suppress(ImportError):
        from psycopg2 import extensions

        extensions.set_wait_callback(functools.partial(_wait_for_postgresql, extensions.get_wait_callback()))


def _getaddrinfo(blocking: Callable[..., Any], host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0,
                 flags: int = 0) -> Any:
    """As *blocking*, :func:`socket.getaddrinfo`, which is called in a native thread unless *host* is an address."""
    from eventlet import tpool

    with contextlib.suppress(socket.gaierror):
        return blocking(host, port, family, type, proto, flags | socket.AI_NUMERICHOST)
    return tpool.execute(blocking, host, port, family, type, proto, flags)


def _wait_for_postgresql(wait: Callable[[Any], None], connection: Any) -> None:
    """As *wait*, eventlet's own, and with the ``connect_timeout``, which libpq has only where it may block.

    A host that is silent for so long is disconnected, after which libpq turns to the next one or fails.
    """
    from eventlet import hubs
    from psycopg2 import extensions

    seconds = 0.0
    if connection.status not in (extensions.STATUS_READY, extensions.STATUS_BEGIN, extensions.STATUS_PREPARED):
        seconds = float(extensions.parse_dsn(connection.dsn).get('connect_timeout', 0))
    if seconds <= 0:  # which means without end
        wait(connection)
        return
    end = time.monotonic() + seconds
    while (state := connection.poll()) != extensions.POLL_OK:
        number = connection.fileno()
        try:
            hubs.trampoline(number, read=state == extensions.POLL_READ, write=state == extensions.POLL_WRITE,
                            timeout=max(0.0, end - time.monotonic()), timeout_exc=TimeoutError)
        except TimeoutError:
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as silent:
                silent.shutdown(socket.SHUT_RDWR)
            end = time.monotonic() + seconds


BY_NAME: dict[str, Callable[[], Runtime]] = {'eventlet': Green, 'threading': Threads}
