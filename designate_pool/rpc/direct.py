"""RPC without a broker, for services in one process.

A call is a function call in the caller's thread; a cast is run by one of a few workers.  Values are frozen, so they are
passed on without being serialized.  oslo.messaging's ``fake://`` transport would take up to 50 ms for each call.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from typing import Any, Protocol

from designate_pool.concurrency import Workers
from designate_pool.errors import PoolError, ServiceUnavailable
from designate_pool.model import Context, new_id
from designate_pool.rpc import metrics
from designate_pool.rpc.client import RpcClient

LOG = logging.getLogger(__name__)


class RpcServer(RpcClient, Protocol):
    """Calls other services, and serves topics to them."""

    def serve(self, topic: str, endpoint: Any, rank: int | None = None) -> None:
        """Let *endpoint* handle the calls and casts to *topic*.

        :param rank: 0 or 1.  Of the processes that give a rank, the one with the lowest that has served the topic
            longest gets all messages, as long as it takes them; the next one gets them when it ends, and those that it
            was given and had not taken.  Without a rank they take turns
        """

    def stop_serving(self) -> None:
        """Accept no new messages and finish those that were accepted."""

    def stop(self) -> None:
        """Stop serving, and close the connections."""


class Direct:
    """A :class:`designate_pool.rpc.client.RpcClient`, and the endpoints that it calls."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._endpoints: dict[str, Any] = {}
        self._lock = threading.Lock()

    def serve(self, topic: str, endpoint: Any, rank: int | None = None) -> None:
        with self._lock:
            self._endpoints[topic] = endpoint

    def stop_serving(self) -> None:
        """Nothing to do: all callers are in this process, and are stopped one by one."""

    def stop(self) -> None:
        """Finish the casts that were accepted; refuse later ones."""
        with self._lock:
            self._endpoints.clear()
        self._workers.stop()

    def call(self, topic: str, context: Context, method: str, *, patience: float | None = None,
             **arguments: Any) -> Any:
        with metrics.call(topic, method):
            return self._find(topic, method)(dataclasses.replace(context, operation_id=new_id()), **arguments)

    def cast(self, topic: str, context: Context, method: str, *, to_all: bool = False, **arguments: Any) -> None:
        with metrics.cast(topic, method):
            self._workers.submit(self._run, self._find(topic, method), context, arguments)

    def _find(self, topic: str, method: str) -> Any:
        endpoint = self._endpoints.get(topic)
        if endpoint is None:
            raise ServiceUnavailable(service=topic, why='it is not running in this process')
        return getattr(endpoint, method)

    @staticmethod
    def _run(handler: Any, context: Context, arguments: dict[str, Any]) -> None:
        try:
            handler(context, **arguments)
        except PoolError as error:
            LOG.warning('%s: %s', handler.__name__, error)
        except Exception:  # nobody waits for the result of a cast, so it is logged here
            LOG.exception('%s failed', handler.__name__)
