"""The interface for calls and casts, which the services' clients use."""

from __future__ import annotations

from typing import Any, Protocol

from designate_pool.model import Context


class RpcClient(Protocol):
    """Calls methods of the service that serves a topic."""

    def call(self, topic: str, context: Context, method: str, *, patience: float | None = None,
             **arguments: Any) -> Any:
        """Call a method and wait for its result.

        :param patience: seconds to wait; None for the default
        :raises ServiceUnavailable: when there is no answer in time
        :raises PoolError: the error that the method raised, as the same class
        """

    def cast(self, topic: str, context: Context, method: str, *, to_all: bool = False,
             **arguments: Any) -> None:
        """Call a method without waiting for it; its result and errors are dropped.

        :param to_all: call it in every process that serves the topic, not in one of them
        :raises ServiceUnavailable: when the message could not be sent
        """
