"""The contract of the service ``pool_manager.<pool name>``, version 1.0, and its client.

Messages about domains are cast; what operators do with servers is called.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import datetime

from designate_pool.model import Comparison, Context, Domain, Outcome, PollResult, Reloaded
from designate_pool.rpc.client import RpcClient, pool_topic

#: Seconds to wait for calls that go through all zones of a server.
LONG = 600.0
#: The topic of the pool manager that has run longest; or, *spread*, of what it has passed on, which all take in turn.
topic = functools.partial(pool_topic, 'pool_manager')


class PoolManagerClient:
    """Casts and calls to the pool managers of a pool; one of them handles each message."""

    def __init__(self, caller: RpcClient) -> None:
        self._caller = caller

    def create_domain(self, context: Context, domain: Domain) -> None:
        """Have the domain's pool create it on its servers."""
        self._caller.cast(topic(domain.pool_name), context, 'create_domain', domain=domain)

    def update_domain(self, context: Context, domain: Domain) -> None:
        """Have the domain's pool bring its servers to the domain's serial."""
        self._caller.cast(topic(domain.pool_name), context, 'update_domain', domain=domain)

    def delete_domain(self, context: Context, domain: Domain) -> None:
        """Have the domain's pool delete it on its servers."""
        self._caller.cast(topic(domain.pool_name), context, 'delete_domain', domain=domain)

    def change_domains(self, context: Context, pool_name: str, domains: Sequence[Domain],
                       spread: bool = False) -> None:
        """Many of the three casts above in one message, as ``action`` says; *spread*: a pool manager passes them on."""
        self._caller.cast(topic(pool_name, spread), context, 'change_domains',
                          domains=list(domains), **({'spread': True} if spread else {}))

    def update_status(self, context: Context, domain: Domain, name_server: str, status: Outcome,
                      serial_number: int | None) -> None:
        """Report the result of one poll of *name_server*: the server's id or ``address:port``."""
        self._caller.cast(topic(domain.pool_name), context, 'update_status', domain=domain, name_server=name_server,
                          status=status, serial_number=serial_number)

    def update_statuses(self, context: Context, pool_name: str, results: Sequence[PollResult],
                        spread: bool = False, to_all: bool = False) -> None:
        """Report the states of many domains and servers in one message, *to_all* pool managers or to one."""
        self._caller.cast(topic(pool_name, spread), context, 'update_statuses',
                          results=list(results), **({'spread': True} if spread else {}),
                          **({'to_all': True} if to_all else {}))

    def repeat_polls(self, context: Context, pool_name: str) -> None:
        """Poll again for all that is being polled for: a MiniDNS has started, perhaps after one that was killed."""
        self._caller.cast(topic(pool_name), context, 'repeat_polls')

    def audited(self, context: Context, pool_name: str, started_at: datetime, counts: Sequence[tuple[str, int, int]],
                findings: Sequence[PollResult]) -> None:
        """Report the results of one ``audit_serials``.

        :param counts: for each server that was asked (server id, domains that it answered for, domains that it did not)
        :param findings: the results with an older serial than was wanted, another answer, or no answer
        """
        self._caller.cast(topic(pool_name), context, 'audited', started_at=started_at, counts=list(counts),
                          findings=list(findings))

    def look_for_changes(self, context: Context, pool_name: str) -> None:
        """Have every pool manager of the pool look into the database now: the pool or its servers have changed.  It is
        a hint; they look every few seconds anyway."""
        self._caller.cast(topic(pool_name), context, 'look_for_changes', to_all=True)

    def reload_servers(self, context: Context, pool_name: str) -> Reloaded:
        """Make one pool manager read its configuration again; the others and MiniDNS then do the same.

        :raises BadConfiguration: lists every mistake in it; nothing has been changed then
        """
        return self._caller.call(topic(pool_name), context, 'reload_servers', patience=LONG)

    def compare_server(self, context: Context, pool_name: str, server_id: str, fix: bool = False,
                       delete_extra: int | None = None, contents: bool = False,
                       primary: bool = False) -> Comparison:
        """Compare the zones of a server with those that it should have; do not name zones that *context* does not see.

        :param fix: create missing zones and transfer outdated ones again; this has been started when the call returns
        :param contents: compare the contents of the zones as well, for at most :data:`LONG` seconds
        :param delete_extra: delete the zones that are domains of no pool, if there are exactly this many
        :param primary: list the primary zones as well that no domain explains
        :raises NotFound: when this pool has no such server
        :raises WrongServerState: when there are more or fewer extra zones, or the server cannot list its zones
        """
        return self._caller.call(topic(pool_name), context, 'compare_server', patience=LONG, server_id=server_id,
                                 fix=fix, delete_extra=delete_extra, contents=contents,
                                 **({'primary': True} if primary else {}))
