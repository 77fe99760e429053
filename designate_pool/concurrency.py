"""Protocols for the services' concurrency, which :mod:`designate_pool.runtime` implements, and their queue of work."""

from __future__ import annotations

import collections
import concurrent.futures
import logging
import threading
from collections.abc import Callable, Collection, Generator, Iterable
from typing import Any, Protocol, TypeVar

from designate_pool.errors import PoolError

T = TypeVar('T')
Work = Callable[..., Any]
Handle = Callable[[list[Any]], None]
#: Whether a queued item is urgent.
Priority = Callable[[Any], bool]
LOG = logging.getLogger(__name__)

#: A failed batch is not lost: what it was about was written to the database before it was queued.
_NEXT = 'the work is in the database, and is resumed when it is due'

#: While both urgent and other items wait, one batch of so many is of the others.
_SHARE = 4


class LoopTask(Protocol):
    """A loop or thread that was started."""

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended, at most *timeout* seconds."""


class Workers(Protocol):
    """A fixed number of workers for short jobs."""

    def submit(self, work: Work, /, *args: Any) -> concurrent.futures.Future[Any]:
        """Run *work* in a worker; the future gets its result or exception."""

    def stop(self) -> None:
        """Finish the submitted jobs and stop the workers."""


def one_ahead(workers: Workers, source: Iterable[T]) -> Generator[T, None, None]:
    """Items of *source*, each made by a worker while the last is used; once closed, no worker uses *source*."""
    items, end = iter(source), object()
    following = workers.submit(next, items, end)
    try:
        while (item := following.result()) is not end:
            following = workers.submit(next, items, end)
            yield item
    finally:
        concurrent.futures.wait([following])


class Wakeable:
    """What a loop waits for, and can be woken by."""

    def __init__(self) -> None:
        self._woken = threading.Event()

    def wait(self, seconds: float) -> None:
        """Wait; at most until :meth:`wake` is called."""
        self._woken.wait(seconds)
        self._woken.clear()

    def wake(self) -> None:
        """End the present wait, or the next one at once."""
        self._woken.set()


class NativeThread(Protocol):
    """A thread of the operating system, even if the program runs on green threads.

    Code in this thread must not use locks that eventlet has patched.  It therefore uses the unpatched modules below,
    does not log or change metrics, and passes its results on with :meth:`post`.

    :ivar socket: this module and those below, unpatched
    """

    socket: Any
    select: Any
    time: Any
    threading: Any

    def spawn(self, work: Work, *args: Any) -> LoopTask:
        """Start the thread; call it once.  ``LoopTask.join`` blocks no other thread, green or native."""

    def post(self, *items: Any) -> object:
        """Called in the native thread: have the runtime's own threads handle *items*, in order and in batches."""

    def stop(self) -> object:
        """Handle the items that were posted, then stop; call it after the thread has ended."""


class WorkQueue:
    """A queue with one handler, which gets the items in order and in batches; see :meth:`Runtime.work_queue`.

    A single item is handled at once, or after the pause; items that arrive meanwhile are handled together as a batch.

    Other queues exist for these reasons: those of :class:`designate_pool.minidns.client.event_loop.ClientLoop` belong
    to an event loop that takes no locks; the callers of :class:`designate_pool.call_combiner.CallCombiner` wait for
    results.

    :param spawn: starts the loop
    """

    def __init__(self, handle: Handle, max_batch: int, spawn: Callable[[Work], LoopTask], name: str,
                 priority: Priority | None = None, bound: int | None = None, pause: float = 0.0) -> None:
        self._handle = handle
        self._name = name
        self._max_batch = max_batch
        self._priority = priority
        self._bound = bound
        self._pause = pause
        self._urgent: collections.deque[Any] = collections.deque()
        self._others: collections.deque[Any] = collections.deque()
        self._passed_over = 0
        self._changed = threading.Condition()
        self._stopping = False
        self._task = spawn(self._loop)

    def put(self, *items: Any) -> int:
        """Queue *items*; how many were queued: fewer than given if the queue is full or stopped."""
        with self._changed:
            if self._stopping:
                return 0
            if self._bound is not None:
                items = items[:max(0, self._bound - len(self))]
            for item in items:
                (self._urgent if self._priority is not None and self._priority(item) else self._others).append(item)
            self._changed.notify()
        return len(items)

    def withdraw(self, items: Collection[Any]) -> None:
        """Take those of *items* that are waiting out of the queue."""
        with self._changed:
            for queue in self._urgent, self._others:
                kept = [item for item in queue if item not in items]
                queue.clear()
                queue.extend(kept)

    def waiting(self, urgent: bool) -> int:
        """How many items of one priority are waiting."""
        return len(self._urgent if urgent else self._others)

    def __len__(self) -> int:
        return len(self._urgent) + len(self._others)

    def stop(self, seconds: float = 5.0) -> int:
        """Handle the waiting items for at most *seconds*, then stop; how many were dropped."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._task.join(seconds)
        with self._changed:
            dropped = len(self)
            self._urgent.clear()
            self._others.clear()
        return dropped

    def _take(self) -> list[Any]:
        if self._urgent and not (self._others and self._passed_over == _SHARE - 1):
            queue, self._passed_over = self._urgent, self._passed_over + bool(self._others)
        else:
            queue, self._passed_over = self._others, 0
        return [queue.popleft() for _ in range(min(self._max_batch, len(queue)))]

    def _loop(self) -> None:
        while True:
            with self._changed:
                while not len(self):
                    if self._stopping:
                        return
                    self._changed.wait()
                if self._pause:
                    self._changed.wait_for(lambda: self._stopping, self._pause)
                items = self._take()
            if items:
                attempt(self._handle, items, self._name)


def attempt(handle: Handle, items: list[Any], name: str) -> None:
    """Have a batch handled; an exception is logged."""
    try:
        handle(items)
    except (SystemExit, KeyboardInterrupt, GeneratorExit):
        raise
    except PoolError as error:  # the database or the broker is away
        LOG.log(logging.DEBUG if error.is_logged else logging.WARNING, '%s: a batch of %d is retried later: %s; %s',
                name, len(items), str(error).rstrip('.'), _NEXT)
    except BaseException:  # eventlet's Timeout is no Exception; the next batch has its own chance
        LOG.exception('%s: a batch of %d failed; %s', name, len(items), _NEXT)


class Runtime(Protocol):
    """How a service does several things at the same time."""

    name: str

    def work_queue(self, handle: Handle, max_batch: int, name: str, *, priority: Priority | None = None,
                   bound: int | None = None, pause: float = 0.0) -> WorkQueue:
        """A queue whose items are handled in batches.

        :param handle: gets lists of 1 to *max_batch* items; an exception is logged, and the next batch is handled
        :param priority: whether an item is urgent.  Urgent items overtake the others, and batches contain items of one
            priority.  While items of both priorities wait, one batch in four contains the others
        :param bound: how many items may wait; further ones are dropped
        :param pause: seconds from the first item of a batch until the batch is handled
        """

    def spawn(self, work: Work, *args: Any, name: str) -> LoopTask:
        """Start *work*, a long-running loop, in its own thread."""

    def workers(self, size: int, name: str) -> Workers:
        """*size* workers that share one queue."""

    def native(self, name: str, handle: Handle) -> NativeThread:
        """See :class:`NativeThread`.

        :param handle: gets lists of 1 to 1,000 posted items; an exception is logged, and the next batch is handled
        """

    def compute(self, work: Work, *args: Any) -> Any:
        """Run *work*, a long computation, without blocking other threads, and return its result.

        It may run in a thread of the operating system, so it must not use locks, log, or do I/O.
        """
