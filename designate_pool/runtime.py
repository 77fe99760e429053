"""The concurrency room: green threads, native threads, or none.

Only this file imports eventlet, and only programs (``cmd``) import this file; services are handed one of

* :class:`Green`, eventlet's green threads, after :func:`patch`;
* :class:`Threads`, native threads;
* :class:`Inline`, no concurrency at all: work is done when it is handed in, for tests.

Services take locks, events and queues from the standard library: after :func:`patch` those are green as well.
"""

from __future__ import annotations

import collections
import concurrent.futures
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

LOG = logging.getLogger(__name__)

Work = Callable[..., Any]


class Task(Protocol):
    """Something that was started."""

    def join(self, timeout: float | None = None) -> None:
        """Wait until it ended, *timeout* seconds at most."""


class Workers(Protocol):
    """A bounded number of workers for short pieces of work."""

    def submit(self, work: Work, *args: Any) -> concurrent.futures.Future[Any]:
        """Have a worker do *work*; its result or exception is in the future."""

    def stop(self) -> None:
        """Finish what was submitted and end the workers."""


class Batches:
    """Hands whatever is waiting to *handle*, in order: one item at once when one waits, many together when more do.

    :param handle: gets a list of 1 to *most* items; what it raises is its own to deal with, the loop goes on
    :param spawn: starts the loop; without it every :meth:`put` is handled before it returns
    """

    def __init__(self, handle: Callable[[list[Any]], None], most: int, spawn: Callable[[Work], Task] | None) -> None:
        self._handle = handle
        self._most = most
        self._waiting: collections.deque[Any] = collections.deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._task = spawn(self._loop) if spawn else None

    def put(self, *items: Any) -> None:
        with self._changed:
            self._waiting.extend(items)
            self._changed.notify()
        if self._task is None:
            while self._waiting:
                self._handle(self._take())

    def __len__(self) -> int:
        return len(self._waiting)

    def stop(self, seconds: float = 5.0) -> None:
        """Handle what is waiting, for *seconds* at most, and end."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._task is not None:
            self._task.join(seconds)

    def _take(self) -> list[Any]:
        return [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]

    def _loop(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    if self._stopping:
                        return
                    self._changed.wait()
                items = self._take()
            try:
                self._handle(items)
            except (SystemExit, KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException:  # eventlet's Timeout is no Exception; the next batch has its own chance
                LOG.exception('a batch of %d was lost', len(items))


class Runtime(Protocol):
    """How a service gets things done at the same time."""

    name: str

    def batches(self, handle: Callable[[list[Any]], None], most: int, name: str) -> Batches:
        """See :class:`Batches`."""

    def spawn(self, work: Work, *args: Any, name: str) -> Task:
        """Start a long-lived loop of its own."""

    def workers(self, size: int, name: str) -> Workers:
        """*size* workers that share one queue."""

    def sleep(self, seconds: float) -> None: ...


class _ThreadWorkers:
    def __init__(self, size: int, name: str) -> None:
        self._executor = concurrent.futures.ThreadPoolExecutor(size, thread_name_prefix=name)

    def submit(self, work: Work, *args: Any) -> concurrent.futures.Future[Any]:
        return self._executor.submit(work, *args)

    def stop(self) -> None:
        self._executor.shutdown(wait=True)


class Threads:
    """Native threads."""

    name = 'threading'

    def spawn(self, work: Work, *args: Any, name: str) -> Task:
        thread = threading.Thread(target=work, args=args, name=name, daemon=True)
        thread.start()
        return thread

    def batches(self, handle: Callable[[list[Any]], None], most: int, name: str) -> Batches:
        return Batches(handle, most, lambda loop: self.spawn(loop, name=name))

    def workers(self, size: int, name: str) -> Workers:
        return _ThreadWorkers(size, name)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


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
        self._pool.spawn(_settle, future, work, args)
        return future

    def stop(self) -> None:
        self._pool.waitall()


def _settle(future: concurrent.futures.Future[Any], work: Work, args: tuple[Any, ...]) -> None:
    try:
        future.set_result(work(*args))
    except BaseException as error:  # eventlet's Timeout is no Exception; whoever waits for the future decides
        future.set_exception(error)


class Green:
    """Green threads; the process must have been patched before anything else was imported."""

    name = 'eventlet'

    def spawn(self, work: Work, *args: Any, name: str) -> Task:
        return _GreenTask(work, args)

    def batches(self, handle: Callable[[list[Any]], None], most: int, name: str) -> Batches:
        return Batches(handle, most, lambda loop: self.spawn(loop, name=name))

    def workers(self, size: int, name: str) -> Workers:
        return _GreenWorkers(size)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class _Done:
    def join(self, timeout: float | None = None) -> None:
        return


class _InlineWorkers:
    def submit(self, work: Work, *args: Any) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        _settle(future, work, args)
        return future

    def stop(self) -> None:
        return


class Inline:
    """The synchronous twin: everything is done by the time the call returns."""

    name = 'inline'

    def spawn(self, work: Work, *args: Any, name: str) -> Task:
        work(*args)
        return _Done()

    def batches(self, handle: Callable[[list[Any]], None], most: int, name: str) -> Batches:
        return Batches(handle, most, None)

    def workers(self, size: int, name: str) -> Workers:
        return _InlineWorkers()

    def sleep(self, seconds: float) -> None:
        return


def patch() -> None:
    """Make the standard library green.  Call it before importing anything that keeps a reference to it."""
    import eventlet

    eventlet.monkey_patch()


BY_NAME: dict[str, Callable[[], Runtime]] = {'eventlet': Green, 'threading': Threads}
