"""Checks of a pool by its database alone: breaches in rows, failing operations, silent services."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import timedelta

from designate_pool.model import Pool, ServerState, utcnow
from designate_pool.pool_manager.reconcile.membership import Members
from designate_pool.pool_manager.verify import invariants
from designate_pool.storage.operations import heartbeats
from designate_pool.storage.operations import pool_servers as server_store
from designate_pool.storage.reporting import invariants as store
from designate_pool.storage.sql.database import Storage

PAGE = 500
#: Seconds after which a due row should have been claimed.
LATE = 60.0
#: The search ends at so many breaches.
MOST = 1000
#: Services that each pool needs.
NEEDED = ('minidns', 'pool_manager')


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Breach:
    """A broken invariant.

    :ivar about: a zone or a server
    :ivar pool: '' for none
    """

    about: str
    what: str
    pool: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """The state of a pool by its rows; none of it is a breach.

    :ivar failing: operations in ERROR on its servers, by their labels
    :ivar silent: services without a recent heartbeat
    """

    domains: int
    servers: int
    failing: Mapping[str, str]
    silent: Sequence[str]


class Rows:
    """The rows of a pool.

    :param pool: with the threshold of its pool managers
    :ivar members: its servers at the last check
    """

    def __init__(self, storage: Storage, pool: Pool) -> None:
        self._storage = storage
        self.pool = pool
        self.members = Members.of(())
        self._domains = 0

    def check(self) -> dict[str, list[Breach]]:
        """Suspected breaches of all domains, by their ids."""
        pool_id = self._read_members()
        found: dict[str, list[Breach]] = {}
        after = ''
        while (ids := self._storage.read(store.ids, pool_id, after, PAGE)) and len(found) < MOST:
            self._domains += len(ids)
            found.update(self._suspects(ids))
            after = ids[-1]
        return found

    def check_again(self, domain_ids: Sequence[str]) -> dict[str, list[Breach]]:
        """Suspected breaches of these domains."""
        self._read_members()
        return self._suspects(domain_ids)

    def state(self) -> State:
        now = utcnow()
        holding = [each for each in self.members.servers if each.id in self.members.tracked]
        failing: dict[str, str] = {}
        for server in holding:
            report = self._storage.read(server_store.report, server, 0, now, whole=True)
            if report.failing:
                first = ': '.join(report.failures[0]) if report.failures else ''
                failing[server.label] = f'{report.failing} in ERROR{first and f", the first {first}"}'
        live = {each.service_name for each in self._storage.read(
            heartbeats.find, {'status': heartbeats.UP}, now - timedelta(seconds=heartbeats.SILENCE), None, None, None,
            None)
            if each.pool_name in (self.pool.name, '')}
        silent = [each for each in NEEDED if each not in live] if holding else []
        removed = sum(each.state is ServerState.REMOVED for each in self.members.servers)
        return State(self._domains, len(self.members.servers) - removed, failing, silent)

    def _read_members(self) -> str:
        roll = self._storage.read(server_store.of_pool, self.pool.name)
        self.members = Members.of(roll.servers, self.pool.count_joining_servers)
        return roll.pool_id

    def _suspects(self, domain_ids: Sequence[str]) -> dict[str, list[Breach]]:
        late, now = timedelta(seconds=LATE), utcnow()
        found = {kept.domain.id: [Breach(kept.domain.name, what, self.pool.name) for what in invariants.breaches(
            kept, self.members, self.pool.threshold_percentage, late, now)]
            for kept in (self._storage.read(store.domain_rows, domain_ids) if domain_ids else ())}
        return {key: breaches for key, breaches in found.items() if breaches}
