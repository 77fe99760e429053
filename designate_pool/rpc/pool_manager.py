"""The contract of the service ``pool_manager.<pool name>``, version 1.0, and its client.

What happens to domains is cast; what an operator asks for about servers is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from designate_pool.model import Comparison, Context, Domain, Outcome, PollResult, Reloaded
from designate_pool.rpc.client import RpcClient

VERSION = '1.0'
#: Seconds for what looks at all zones of a server.
LONG = 600.0


def topic(pool_name: str) -> str:
    return f'pool_manager.{pool_name}'


class PoolManagerClient:
    """Casts to the pool managers of a pool; one of them takes each."""

    def __init__(self, caller: RpcClient) -> None:
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

    def audited(self, context: Context, pool_name: str, started_at: datetime, counts: Sequence[tuple[str, int, int]],
                findings: Sequence[PollResult]) -> None:
        """What came of one ``audit_serials``.

        :param started_at: as it was given there
        :param counts: (server id, how many domains it answered for, how many it did not) of each that was asked
        :param findings: what was answered with another serial than the wanted or a newer one, or not at all
        """
        self._cast(context, pool_name, 'audited', started_at=started_at, counts=list(counts), findings=list(findings))

    def reload_servers(self, context: Context, pool_name: str) -> Reloaded:
        """Have one pool manager read its configuration anew; the others, and MiniDNS, follow.

        :raises BadConfiguration: with every mistake in it; nothing has changed then
        """
        return self._caller.call(topic(pool_name), context, 'reload_servers', patience=LONG)

    def compare_server(self, context: Context, pool_name: str, server_id: str, fix: bool = False,
                       delete_extra: int | None = None, contents: bool = False) -> Comparison:
        """Compare what a server really has with what it should have.  Zones that *context* does not see are not named.

        :param fix: create missing zones and transfer outdated ones again; it is under way when this returns
        :param contents: compare the contents of its zones as well, for as long as :data:`LONG` lasts
        :param delete_extra: delete the zones that are no domain of any pool, if there are just so many
        :raises ServerNotFound: when this pool has no such server
        :raises WrongServerState: when there are more or fewer extra zones, or the server cannot list its zones
        """
        return self._caller.call(topic(pool_name), context, 'compare_server', patience=LONG, server_id=server_id,
                                 fix=fix, delete_extra=delete_extra, contents=contents)
