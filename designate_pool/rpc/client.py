"""The interface for calls and casts that the clients of the services use."""

from __future__ import annotations

from typing import Any, Protocol

from designate_pool.model import Context


class RpcClient(Protocol):
    """Sends a method and its arguments to whoever serves a topic."""

    def call(self, topic: str, context: Context, method: str, *, patience: float | None = None,
             **arguments: Any) -> Any:
        """Send and wait for the result.

        :param patience: seconds to wait, where a method may take longer than others

        :raises ServiceUnavailable: when nobody answers in time
        :raises PoolError: what the method raised, as the same class
        """

    def cast(self, topic: str, context: Context, method: str, **arguments: Any) -> None:
        """Send and go on.

        :raises ServiceUnavailable: when it could not even be sent
        """
