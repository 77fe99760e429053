"""The topic shared by all pools: for what all MiniDNS are told, and for pool managers of older releases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from designate_pool.minidns.service import MiniDns
from designate_pool.model import Context, Domain, PollRequest
from designate_pool.rpc.minidns import MiniDnsClient


class SharedTopicForwarder:
    """The endpoint of the shared topic: handles its own pool's messages, and casts others to the topic of their pool.

    The methods are those of :class:`~designate_pool.minidns.service.MiniDns`.
    """

    def __init__(self, pool_name: str, ours: MiniDns, others: MiniDnsClient) -> None:
        self._pool_name = pool_name
        self._ours = ours
        self._others = others

    def notify_zone_changed(self, context: Context, domain: Domain, destination: str, timeout: float,
                            retry_interval: float, max_retries: int) -> None:
        self._of(domain.pool_name).notify_zone_changed(context, domain, destination, timeout, retry_interval,
                                                       max_retries)

    def poll_for_serial_number(self, context: Context, domain: Domain, destination: str, timeout: float,
                               retry_interval: float, max_retries: int) -> None:
        self._of(domain.pool_name).poll_for_serial_number(context, domain, destination, timeout, retry_interval,
                                                          max_retries)

    def notify_and_poll(self, context: Context, pool_name: str, requests: Sequence[PollRequest], timeout: float,
                        retry_interval: float, max_retries: int) -> None:
        self._of(pool_name).notify_and_poll(context, pool_name, requests, timeout, retry_interval, max_retries)

    def audit_serials(self, context: Context, pool_name: str, started_at: datetime, server_ids: Sequence[str],
                      domains: Sequence[tuple[str, str, int]]) -> None:
        self._of(pool_name).audit_serials(context, pool_name, started_at, server_ids, domains)

    def look_for_changes(self, context: Context) -> None:
        self._ours.look_for_changes(context)

    def _of(self, pool_name: str) -> MiniDns | MiniDnsClient:
        return self._ours if pool_name == self._pool_name else self._others
