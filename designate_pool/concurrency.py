"""What MiniDNS asks of the runtime that it is handed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Task(Protocol):
    """A loop that was started."""

    def join(self, timeout: float | None = None) -> None: ...


class Native(Protocol):
    """A thread of the operating system, which touches no lock of ours, logs nothing and counts nothing: it posts.

    :ivar socket: these modules as the system has them
    """

    socket: Any
    select: Any
    time: Any
    threading: Any

    def spawn(self, work: Callable[..., Any], *args: Any) -> Task: ...

    def post(self, *items: Any) -> None: ...

    def stop(self) -> None: ...


class Batches(Protocol):
    """A way to whoever handles what is put into it, together what waits."""

    def put(self, *items: Any) -> None: ...

    def stop(self, seconds: float = ...) -> None: ...


class Runtime(Protocol):
    """How loops and pieces of work come to run beside each other."""

    def spawn(self, work: Callable[..., Any], *args: Any, name: str) -> Task: ...

    def batches(self, handle: Callable[[list[Any]], None], most: int, name: str) -> Batches: ...

    def native(self, name: str, handle: Callable[[list[Any]], None]) -> Native: ...
