"""RPC without a broker, for all services in one process.

oslo.messaging's ``fake://`` transport looks for the answer to a call every 50 ms.  Here a call is a function call in
the caller's own thread, and a cast a place in a queue that a few workers empty.  Values are frozen, so they are handed
over as they are; nothing is packed.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from designate_pool.concurrency import Workers
from designate_pool.errors import PoolError, ServiceUnavailable
from designate_pool.model import Context
from designate_pool.rpc import metrics

LOG = logging.getLogger(__name__)


class Direct:
    """A :class:`designate_pool.rpc.client.RpcClient` and the endpoints it reaches."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._endpoints: dict[str, Any] = {}
        self._lock = threading.Lock()

    def serve(self, topic: str, endpoint: Any) -> None:
        """From now on *endpoint* answers for *topic*."""
        with self._lock:
            self._endpoints[topic] = endpoint

    def stop_serving(self) -> None:
        """Nothing to do: all who call are in this process, and are stopped one by one."""

    def stop(self) -> None:
        """Finish what was cast; later casts are refused."""
        with self._lock:
            self._endpoints.clear()
        self._workers.stop()

    def call(self, topic: str, context: Context, method: str, *, patience: float | None = None,
             **arguments: Any) -> Any:
        with metrics.call(topic, method):
            return self._find(topic, method)(context, **arguments)

    def cast(self, topic: str, context: Context, method: str, **arguments: Any) -> None:
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
        except Exception:  # a cast has no one to tell: the log is the last place
            LOG.exception('%s failed', handler.__name__)
