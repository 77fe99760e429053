"""The contract of the service ``minidns.<pool name>``, version 1.0, and its client.  All methods are cast."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import datetime

from designate_pool.model import Context, Domain, PollRequest
from designate_pool.rpc.client import RpcClient, pool_topic

#: The topic of what all MiniDNS of all pools are told.
SHARED_TOPIC = 'minidns'
#: The topic of the first MiniDNS of a pool, the one that most servers transfer from; or, *spread*, of all in turn.
topic = functools.partial(pool_topic, SHARED_TOPIC)


class MiniDnsClient:
    """Casts to the MiniDNS of a pool, with times in seconds; one of them handles each, if it says nothing else."""

    def __init__(self, caller: RpcClient) -> None:
        self._caller = caller

    def notify_zone_changed(self, context: Context, domain: Domain, destination: str, timeout: float,
                            retry_interval: float, max_retries: int) -> None:
        """Send a NOTIFY to one server, with retries until it answers.  The outcome is not reported."""
        self._caller.cast(topic(domain.pool_name), context, 'notify_zone_changed', domain=domain,
                          destination=destination, timeout=timeout, retry_interval=retry_interval,
                          max_retries=max_retries)

    def poll_for_serial_number(self, context: Context, domain: Domain, destination: str, timeout: float,
                               retry_interval: float, max_retries: int) -> None:
        """Poll one server until it serves the domain's serial.  The result is sent with ``update_status``."""
        self._caller.cast(topic(domain.pool_name), context, 'poll_for_serial_number', domain=domain,
                          destination=destination, timeout=timeout, retry_interval=retry_interval,
                          max_retries=max_retries)

    def notify_and_poll(self, context: Context, pool_name: str, requests: Sequence[PollRequest], timeout: float,
                        retry_interval: float, max_retries: int, spread: bool = False) -> None:
        """Both of the above for many domains and servers.  The results are sent in batches with ``update_statuses``.

        :param spread: ask the MiniDNS of the pool in turn: the first one may not reach a server that others reach
        """
        self._caller.cast(topic(pool_name, spread), context, 'notify_and_poll',
                          pool_name=pool_name, requests=list(requests), timeout=timeout,
                          retry_interval=retry_interval, max_retries=max_retries)

    def audit_serials(self, context: Context, pool_name: str, started_at: datetime, server_ids: Sequence[str],
                      domains: Sequence[tuple[str, str, int]]) -> None:
        """Ask each server once for the serial of each domain.  All results are sent in one message, ``audited``.

        :param started_at: of the audit's round; copied to the results
        :param domains: about a thousand of (id, name, the serial that the servers should serve)
        """
        self._caller.cast(topic(pool_name), context, 'audit_serials', pool_name=pool_name, started_at=started_at,
                          server_ids=list(server_ids), domains=list(domains))

    def look_for_changes(self, context: Context) -> None:
        """Have every MiniDNS of every pool look into the database now: TSIG keys, secondary zones or a pool have
        changed.  It is a hint; they look every few seconds anyway."""
        self._caller.cast(SHARED_TOPIC, context, 'look_for_changes', to_all=True)
