"""Telling the pool managers: one loop that sends whatever is waiting, one result at once or many in one message."""

from __future__ import annotations

import itertools
import logging

from designate_pool.concurrency import Runtime, WorkQueue
from designate_pool.minidns.client.soa_poller import Found, ToAsker, ToPool
from designate_pool.rpc.pool_manager import PoolManagerClient

LOG = logging.getLogger(__name__)

_MOST = 1000


class ResultSender:
    """The way of results to the pool managers."""

    def __init__(self, pool_managers: PoolManagerClient) -> None:
        self._pool_managers = pool_managers
        self._batches: WorkQueue | None = None
        self._outage = False

    def put(self, *found: Found) -> None:
        """Tell, once :meth:`start` has been called."""
        assert self._batches is not None
        self._batches.put(*found)

    def start(self, runtime: Runtime) -> None:
        self._batches = runtime.batches(self._send, _MOST, 'minidns-reports')

    def stop(self) -> None:
        """Send what is waiting, and end."""
        if self._batches is not None:
            self._batches.stop(10)

    def _send(self, batch: list[Found]) -> None:
        pools = [(to, result) for to, result in batch if isinstance(to, ToPool)]
        pools.sort(key=lambda each: each[0].pool_name)
        for pool_name, waiting in itertools.groupby(pools, key=lambda each: each[0].pool_name):
            several = list(waiting)
            self._try('update_statuses', several[0][0].context, pool_name, [result for _, result in several])
        for to, result in batch:
            if isinstance(to, ToAsker):
                self._try('update_status', to.context, to.domain, to.destination, result.status, result.serial_number)

    def _try(self, method: str, *arguments: object) -> None:
        """Send; what cannot be sent is dropped, because the pool manager asks again."""
        try:
            getattr(self._pool_managers, method)(*arguments)
        except Exception as error:  # whatever the transport raises, the next result has its own chance
            if not self._outage:
                LOG.error('the pool manager cannot be told of poll results: %s', error)
            self._outage = True
        else:
            if self._outage:
                LOG.info('the pool manager can be told of poll results again')
            self._outage = False
