"""The contract of the service ``pool_manager.<pool name>``, version 1.0, and its client.  All of it is cast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designate_pool.model import Context, Domain, Outcome, PollResult
from designate_pool.rpc.caller import Caller

VERSION = '1.0'


def topic(pool_name: str) -> str:
    return f'pool_manager.{pool_name}'


class PoolManagerClient:
    """Casts to the pool managers of a pool; one of them takes each."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def _cast(self, context: Context, pool_name: str, method: str, **arguments: Any) -> None:
        self._caller.cast(topic(pool_name), context, method, **arguments)

    def create_domain(self, context: Context, domain: Domain) -> None:
        self._cast(context, domain.pool_name, 'create_domain', domain=domain)

    def update_domain(self, context: Context, domain: Domain) -> None:
        self._cast(context, domain.pool_name, 'update_domain', domain=domain)

    def delete_domain(self, context: Context, domain: Domain) -> None:
        self._cast(context, domain.pool_name, 'delete_domain', domain=domain)

    def change_domains(self, context: Context, pool_name: str, domains: Sequence[Domain]) -> None:
        """Many of the three above in one message; each domain's ``action`` says which."""
        self._cast(context, pool_name, 'change_domains', domains=list(domains))

    def update_status(self, context: Context, domain: Domain, name_server: str, status: Outcome,
                      serial_number: int | None) -> None:
        """What one poll found; *name_server* is the server's id or ``address:port``."""
        self._cast(context, domain.pool_name, 'update_status', domain=domain, name_server=name_server,
                   status=status, serial_number=serial_number)

    def update_statuses(self, context: Context, pool_name: str, results: Sequence[PollResult]) -> None:
        """:meth:`update_status` for many domains and servers in one message."""
        self._cast(context, pool_name, 'update_statuses', results=list(results))
