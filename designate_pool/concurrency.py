"""What services ask of the runtime that they are handed; :mod:`designate_pool.runtime` has what answers it."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Hashable
from typing import Any, Protocol

Work = Callable[..., Any]
Handle = Callable[[list[Any]], None]
#: What a queued item is about, and whether it is urgent.
Key = Callable[[Any], Hashable]
Priority = Callable[[Any], bool]


class LoopTask(Protocol):
    """Something that was started."""

    def join(self, timeout: float | None = None) -> None:
        """Wait until it ended, *timeout* seconds at most."""


class Workers(Protocol):
    """A bounded number of workers for short pieces of work."""

    def submit(self, work: Work, *args: Any) -> concurrent.futures.Future[Any]:
        """Have a worker do *work*; its result or exception is in the future."""

    def stop(self) -> None:
        """Finish what was submitted and end the workers."""


class NativeThread(Protocol):
    """A thread of the operating system beside whatever concurrency the program has.

    Locks of the standard library may be green, and a green lock must not be touched from that thread: it takes its
    modules from here, does not log or count, and :meth:`post` s what it has to say.

    :ivar socket: these modules as the system has them, unpatched
    """

    socket: Any
    select: Any
    time: Any
    threading: Any

    def spawn(self, work: Work, *args: Any) -> LoopTask:
        """Start the thread, once.  ``LoopTask.join`` blocks no other thread, green or not."""

    def post(self, *items: Any) -> object:
        """From that thread: have *items* handled in the runtime's own world, in order, in batches."""

    def stop(self) -> object:
        """Handle what was posted, and end; when the thread has ended."""


class WorkQueue(Protocol):
    """Hands items to one handler, in order, in batches: one item at once if it waits alone, many together if more do.

    What does not use it has a reason: :mod:`designate_pool.minidns.client.mailbox` and the queries of a peer belong to
    an event loop that takes no locks (``benchmarks/poll``); the callers of
    :class:`designate_pool.minidns.zones.batch_loader.BatchLoader` wait for the results;
    :mod:`designate_pool.api.http.fair_queue` is the queue of waitress, one turn for each client.
    """

    def put(self, *items: Any) -> int:
        """Queue *items*; how many of them, which is fewer than given when the queue is full or stopped."""

    def stop(self, seconds: float = ...) -> int:
        """Handle what waits, for *seconds* at most, and end; how many items were dropped."""

    def waiting(self, urgent: bool) -> int:
        """How many items of one priority wait."""

    def __len__(self) -> int: ...


class Runtime(Protocol):
    """How a service gets things done at the same time."""

    name: str

    def work_queue(self, handle: Handle, max_batch: int, name: str, *, key: Key | None = None,
                   priority: Priority | None = None, bound: int | None = None) -> WorkQueue:
        """
        :param handle: gets lists of 1 to *max_batch* items; what it raises is logged, and the next go on
        :param name: for the log
        :param key: items of one key keep their order, whatever their priority
        :param priority: which items are urgent: they overtake the others; a batch has items of one kind.  While both
            wait, one batch in four is of the others
        :param bound: how many may wait; more are dropped
        """

    def spawn(self, work: Work, *args: Any, name: str) -> LoopTask:
        """Start a long-lived loop of its own."""

    def workers(self, size: int, name: str) -> Workers:
        """*size* workers that share one queue."""

    def native(self, name: str, handle: Handle) -> NativeThread:
        """See :class:`NativeThread`.

        :param handle: gets 1 to 1,000 of the things posted; what it raises is logged, and the next go on
        """

    def compute(self, work: Work, *args: Any) -> Any:
        """What *work* returns: long work of the processor alone, beside which all others have their turns.

        It may run in a thread of the operating system, so it takes no locks, does not log, and does no I/O.
        """

    def sleep(self, seconds: float) -> None: ...
