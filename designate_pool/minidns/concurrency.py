"""What MiniDNS asks of the runtime that it is handed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Task(Protocol):
    """A loop that was started."""

    def join(self, timeout: float | None = None) -> None: ...


class Workers(Protocol):
    """A few workers for short pieces of work."""

    def submit(self, work: Callable[..., Any], *args: Any) -> Any: ...

    def stop(self) -> None: ...


class Runtime(Protocol):
    """How loops and pieces of work come to run beside each other."""

    def spawn(self, work: Callable[..., Any], *args: Any, name: str) -> Task: ...

    def workers(self, size: int, name: str) -> Workers: ...
