"""Protocols for the services' concurrency, which :mod:`designate_pool.runtime` implements, and what needs no more."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Generator, Iterable
from typing import Any, Protocol, TypeVar

T = TypeVar('T')
Work = Callable[..., Any]
Handle = Callable[[list[Any]], None]
#: Whether a queued item is urgent.
Priority = Callable[[Any], bool]


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


class WorkQueue(Protocol):
    """A queue with one handler, which gets the items in order and in batches.

    A single item is handled at once; items that arrive meanwhile are handled together as the next batch.

    Other queues exist for these reasons: those of :class:`designate_pool.minidns.client.event_loop.ClientLoop` belong
    to an event loop that takes no locks; the callers of
    :class:`designate_pool.call_combiner.CallCombiner` wait for results.
    """

    def put(self, *items: Any) -> int:
        """Queue *items*; how many were queued: fewer than given if the queue is full or stopped."""

    def stop(self, seconds: float = ...) -> int:
        """Handle the waiting items for at most *seconds*, then stop; how many were dropped."""

    def waiting(self, urgent: bool) -> int:
        """How many items of one priority are waiting."""

    def __len__(self) -> int: ...


class Runtime(Protocol):
    """How a service does several things at the same time."""

    name: str

    def work_queue(self, handle: Handle, max_batch: int, name: str, *, priority: Priority | None = None,
                   bound: int | None = None) -> WorkQueue:
        """A queue whose items are handled in batches.

        :param handle: gets lists of 1 to *max_batch* items; an exception is logged, and the next batch is handled
        :param priority: whether an item is urgent.  Urgent items overtake the others, and batches contain items of one
            priority.  While items of both priorities wait, one batch in four contains the others
        :param bound: how many items may wait; further ones are dropped
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
