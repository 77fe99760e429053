"""The contract of the service ``minidns.<pool name>``, version 1.0, and its client.  All of it is cast."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from designate_pool.model import Context, Domain, PollRequest
from designate_pool.rpc.client import RpcClient

VERSION = '1.0'
#: Of all pools together: the topic that pool managers of older releases cast to.
SHARED_TOPIC = 'minidns'


def topic(pool_name: str) -> str:
    return f'{SHARED_TOPIC}.{pool_name}'


class MiniDnsClient:
    """Casts to the MiniDNS of a pool; one of them takes each.

    Times are seconds and come from the pool manager's configuration.
    """

    def __init__(self, caller: RpcClient) -> None:
        self._caller = caller

    def _cast(self, context: Context, pool: str, method: str, **arguments: Any) -> None:
        self._caller.cast(topic(pool), context, method, **arguments)

    def notify_zone_changed(self, context: Context, domain: Domain, destination: str, timeout: float,
                            retry_interval: float, max_retries: int) -> None:
        """Send one server a NOTIFY, again while it does not answer; the outcome is not told."""
        self._cast(context, domain.pool_name, 'notify_zone_changed', domain=domain, destination=destination,
                   timeout=timeout, retry_interval=retry_interval, max_retries=max_retries)

    def poll_for_serial_number(self, context: Context, domain: Domain, destination: str, timeout: float,
                               retry_interval: float, max_retries: int) -> None:
        """Ask one server for the SOA until it serves the domain's serial; told by ``update_status``."""
        self._cast(context, domain.pool_name, 'poll_for_serial_number', domain=domain, destination=destination,
                   timeout=timeout, retry_interval=retry_interval, max_retries=max_retries)

    def notify_and_poll(self, context: Context, pool_name: str, requests: Sequence[PollRequest], timeout: float,
                        retry_interval: float, max_retries: int) -> None:
        """Both of the above for many domains and servers; told by ``update_statuses``, in batches."""
        self._cast(context, pool_name, 'notify_and_poll', pool_name=pool_name, requests=list(requests),
                   timeout=timeout, retry_interval=retry_interval, max_retries=max_retries)

    def audit_serials(self, context: Context, pool_name: str, started_at: datetime, server_ids: Sequence[str],
                      domains: Sequence[tuple[str, str, int]]) -> None:
        """Ask each of the servers for each of the domains, once; told by ``audited``, in one message.

        :param started_at: of the round, which comes back
        :param domains: (id, name, the serial that is to be served), about a thousand
        """
        self._cast(context, pool_name, 'audit_serials', pool_name=pool_name, started_at=started_at,
                   server_ids=list(server_ids), domains=list(domains))
