"""RPC without a broker, for services in one process.

A call is a function call in the caller's thread; a cast is run by one of a few workers.  Values are frozen, so they are
passed on without being serialized.  oslo.messaging's ``fake://`` transport would take up to 50 ms for each call.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from typing import Any

from designate_pool.concurrency import Workers
from designate_pool.errors import InvalidField, PoolError, ServiceUnavailable
from designate_pool.model import Context, new_id
from designate_pool.rpc.client import RpcServer, measured, methods

LOG = logging.getLogger(__name__)


class Direct(RpcServer):
    """Calls and casts within one process."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        #: By topic.
        self._served: dict[str, tuple[frozenset[str], Any]] = {}
        self._lock = threading.Lock()

    def serve(self, topic: str, contract: type, endpoint: Any, rank: int | None = None) -> None:
        with self._lock:
            self._served[topic] = methods(contract, endpoint), endpoint

    def ping(self, topic: str) -> None:
        """There is nothing between caller and service."""

    def stop_serving(self) -> None:
        """Nothing to do: all callers are in this process, and are stopped one by one."""

    def stop(self) -> None:
        """Finish the casts that were accepted; refuse later ones."""
        with self._lock:
            self._served.clear()
        self._workers.stop()

    def call(self, topic: str, context: Context, method: str, *, patience: float | None = None,
             **arguments: Any) -> Any:
        with measured(topic, method, is_call=True):
            return self._find(topic, method)(dataclasses.replace(context, operation_id=new_id()), **arguments)

    def cast(self, topic: str, context: Context, method: str, *, to_all: bool = False, **arguments: Any) -> None:
        with measured(topic, method, is_call=False):
            self._workers.submit(self._run, self._find(topic, method), context, arguments)

    def _find(self, topic: str, method: str) -> Any:
        names, endpoint = self._served.get(topic, (frozenset(), None))
        if endpoint is None:
            raise ServiceUnavailable(service=topic, why='it is not running in this process')
        if method not in names:
            raise InvalidField(field='method', why=f'there is no method {method}')
        return getattr(endpoint, method)

    @staticmethod
    def _run(handler: Any, context: Context, arguments: dict[str, Any]) -> None:
        try:
            handler(context, **arguments)
        except PoolError as error:
            LOG.log(logging.DEBUG if error.is_logged else logging.WARNING, '%s: %s', handler.__name__, error)
        except Exception:  # nobody waits for the result of a cast, so it is logged here
            LOG.exception('%s failed', handler.__name__)
