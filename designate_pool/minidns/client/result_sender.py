"""Sends results of polls to the pool managers."""

from __future__ import annotations

import itertools
import logging

from designate_pool.minidns.client.soa_poller import AddressedResult, ToCaller, ToPool
from designate_pool.model import Context
from designate_pool.outage_log import OutageLog
from designate_pool.rpc.pool_manager import PoolManagerClient

LOG = logging.getLogger(__name__)


class ResultSender:
    """Casts results to the pool managers, all that it is given at once in one message to each pool."""

    def __init__(self, pool_managers: PoolManagerClient) -> None:
        self._pool_managers = pool_managers
        self._outage = OutageLog(LOG, 'poll results could not be sent to the pool manager; it polls again: %s',
                                 'poll results can be sent to the pool manager again')

    def send(self, *results: AddressedResult) -> None:
        pools = [(recipient, result) for recipient, result in results if isinstance(recipient, ToPool)]
        pools.sort(key=lambda each: each[0].pool_name)
        for pool_name, group in itertools.groupby(pools, key=lambda each: each[0].pool_name):
            pool_results = list(group)
            self._cast('update_statuses', pool_results[0][0].context, pool_name, [result for _, result in pool_results])
        for recipient, result in results:
            if isinstance(recipient, ToCaller):
                self._cast('update_status', recipient.context, recipient.domain, recipient.destination, result.status,
                           result.serial_number)

    def repeat_polls(self, pool_name: str) -> None:
        """Have the pool managers repeat the polls of MiniDNS processes that were killed."""
        self._cast('repeat_polls', Context(), pool_name)

    def _cast(self, method: str, *arguments: object) -> None:
        """Cast a message; one that cannot be sent is dropped, because the pool manager polls again."""
        try:
            getattr(self._pool_managers, method)(*arguments)
        except Exception as error:  # whatever the transport raises; the next message is tried anyway
            self._outage.failed(error)
        else:
            self._outage.ended()
