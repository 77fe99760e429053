"""What services ask of the runtime that they are handed; :mod:`designate_pool.runtime` has what answers it."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any, Protocol

Work = Callable[..., Any]
Handle = Callable[[list[Any]], None]


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

    def post(self, *items: Any) -> None:
        """From that thread: have *items* handled in the runtime's own world, in order, in batches."""

    def stop(self) -> None:
        """Handle what was posted, and end; when the thread has ended."""


class WorkQueue(Protocol):
    """Hands whatever waits to whoever handles it, in order: one item at once, or many together when more wait."""

    def put(self, *items: Any) -> None: ...

    def stop(self, seconds: float = ...) -> None:
        """Handle what waits, for *seconds* at most, and end."""

    def __len__(self) -> int: ...


class Runtime(Protocol):
    """How a service gets things done at the same time."""

    name: str

    def batches(self, handle: Handle, most: int, name: str) -> WorkQueue:
        """A queue whose *handle* gets lists of 1 to *most* items; what it raises is logged, and the next go on."""

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
