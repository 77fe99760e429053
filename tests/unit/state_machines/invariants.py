"""What always holds in a cluster, and what holds when everything has been well for a while.

It is told from what users were answered, what servers have served, and the rows that are committed; of how the product
decides nothing is used.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from designate_pool.serial import at_least, newer
from tests.unit.state_machines.cluster import NAMES, RETENTION, SERVERS, Cluster, UserOperation
from tests.unit.state_machines.servers import SimulatedServer

#: Seconds within which all is well again after the last fault.
BOUND = 240.0
_DOMAINS = ('SELECT id, name, generation, serial, reported_serial, action, status, deleted, request_id, moved_id '
            'FROM domains ORDER BY name, generation')
_ROWS = ('SELECT server_id, domain_id, action, status, serial_number, incarnation, diverged, version, next_attempt_at, '
         'expected_serial FROM pool_manager_status')
#: What a deleted domain may not have once it was purged, and nothing may hold at the end.
_LEFTOVERS = {
    'rows of deleted domains': "SELECT s.* FROM pool_manager_status s JOIN domains d ON d.id = s.domain_id "
                               "WHERE d.status = 'DELETED'",
    'versions of one number': 'SELECT domain_id, number FROM zone_versions GROUP BY domain_id, number '
                              'HAVING count(*) > 1',
    'claims of rows': 'SELECT server_id, action, claimed_by FROM pool_manager_status WHERE claimed_until > :now',
    'claims of names': 'SELECT name, server_id FROM name_claims WHERE claimed_until > :now',
    'rows of removed servers': "SELECT s.* FROM pool_manager_status s JOIN pool_servers p ON p.id = s.server_id "
                               "WHERE p.state = 'removed'",
    'servers on their way': "SELECT id, state, filled_to FROM pool_servers WHERE state IN ('joining', 'draining') "
                            "OR filled_to IS NOT NULL",
    'unfinished rows': "SELECT server_id, action, status, next_attempt_at FROM pool_manager_status "
                       "WHERE next_attempt_at IS NOT NULL OR status IS NULL OR status != 'SUCCESS'",
}
_PURGED = {
    'records of deleted domains': "SELECT r.id FROM records r JOIN domains d ON d.id = r.domain_id "
                                  "WHERE d.status = 'DELETED'",
}


@dataclasses.dataclass(frozen=True, slots=True)
class DomainRow:
    """
    :ivar restored_id: of what is left of a deletion: the domain that was restored since
    """

    id: str
    name: str
    generation: int
    serial: int
    reported_serial: int | None
    action: str
    status: str
    deleted: str
    request_id: str
    restored_id: str | None


class Breach(AssertionError):
    """Something does not hold."""


class Invariants:
    """Looks at *cluster* after each commit."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._domains: dict[str, DomainRow] = {}
        self._rows: dict[tuple[str, str, str], tuple[Any, ...]] = {}
        self._deleted_at: dict[str, int] = {}
        self._changed: dict[tuple[str, str], int] = {}
        self._incarnations: dict[tuple[str, str, int], int] = {}
        self._left: set[str] = set()
        self._fewest = len(SERVERS)
        cluster.check = self.check

    @property
    def _needed(self) -> int:
        """How many servers have to agree at least: a pool manager may not know yet that the pool has more by now."""
        return math.ceil(self._fewest * self.cluster.pool.threshold_percentage / 100)

    def check(self) -> None:
        """
        :raises Breach: when something does not hold that always does
        """
        for server in self.cluster.servers.values():
            if server.faults:
                raise Breach(server.faults[0])
        states = self.cluster.states()
        self._fewest = min(self._fewest, sum(state == 'active' for state in states.values()))
        self._left.update(key for key, state in states.items() if state in ('draining', 'removed'))
        before = dict(self._domains)
        self._domains |= {row[0]: DomainRow(*row) for row in self.cluster.database.rows(_DOMAINS)}
        for found in self._domains.values():
            if found != (former := before.get(found.id)):
                self._check_domain(former, found)
        rows = {row[:3]: row for row in self.cluster.database.rows(_ROWS)}
        for key, row in rows.items():
            if self._rows.get(key) != row:
                self._check_row(row)
        gone = {key[1] for key in self._rows.keys() - rows.keys()} - {key[1] for key in rows}
        self._rows = rows
        for domain_id in gone:
            self._check_gone(self._domains[domain_id])

    def _check_domain(self, former: DomainRow | None, found: DomainRow) -> None:
        newest = max((each for each in self._domains.values() if each.name == found.name),
                     key=lambda each: each.generation)
        if former is None and found.restored_id is not None:
            if found.generation >= self._domains[found.restored_id].generation:
                raise Breach(f'{found} is not older than what was restored')
        elif former is None:
            before = [each for each in self._domains.values() if each.name == found.name and each.id != found.id]
            if any(each.generation >= found.generation or not newer(found.serial, each.serial) for each in before):
                raise Breach(f'{found} does not follow {before}')
        elif (found.serial != former.serial and not newer(found.serial, former.serial)
              or found.generation < former.generation):
            raise Breach(f'{former} went back to {found}')
        elif former.reported_serial is not None and found.generation == former.generation and (
                found.reported_serial is None or not at_least(found.reported_serial, former.reported_serial)):
            raise Breach(f'{former} was reported at an older serial: {found}')
        if found.restored_id is None and self._changed.setdefault(
                (found.request_id, found.id), found.serial) != found.serial:
            raise Breach(f'{found} was changed twice by one request')
        if found.action == 'DELETE' and (former is None or former.action != 'DELETE'):
            self._deleted_at[found.id] = self.cluster.scheduler.ticks
        if found.reported_serial is not None and found.deleted == '0' and (
                former is None or found.reported_serial != former.reported_serial or found.status == 'ACTIVE'):
            self._check_served(found, found.reported_serial)
        if found.status == 'ACTIVE' and found.reported_serial != found.serial:
            raise Breach(f'{found} is ACTIVE at a serial that was not reported')
        if found.status == 'DELETED' and found is newest:
            deleted = [key for key in self.cluster.states() if self._has_deleted(self.cluster.servers[key], found)]
            if len(deleted) < self._needed:
                raise Breach(f'{found} is DELETED while only {len(deleted)} servers have deleted it')

    def _check_served(self, domain: DomainRow, serial: int) -> None:
        serving = [server for server in self.cluster.servers.values()
                   if any(at_least(each.serial, serial) for each in server.served(domain.name, domain.id))]
        if len(serving) < self._needed:
            raise Breach(f'{domain} is reported at {serial}, which only {len(serving)} servers have served')

    def _check_row(self, row: tuple[Any, ...]) -> None:
        """A serial that counts was served by its server since the zone was last found lost there."""
        server_id, domain_id, action, status, serial, incarnation, diverged, *_ = row
        since = self._incarnations.setdefault((server_id, domain_id, incarnation), self.cluster.scheduler.ticks)
        domain = self._domains[domain_id]
        if action != 'UPDATE' or status != 'SUCCESS' or diverged or serial is None or domain.action == 'DELETE':
            return
        server = self.cluster.servers[server_id]
        if not any(each.until >= since and at_least(each.serial, serial)
                   for each in server.served(domain.name, domain_id)):
            raise Breach(f'{server_id[0]} counts with {serial} for {domain}, not served since tick {since}')

    def _check_gone(self, domain: DomainRow) -> None:
        """The rows of a domain are gone: its deletion is complete, or was left to another row as it was restored."""
        if domain.deleted == '0' and domain.action == 'CREATE' and any(
                each.restored_id == domain.id for each in self._domains.values()):
            return
        if domain.status != 'DELETED' and domain.action != 'DELETE':
            raise Breach(f'{domain} has no rows any more')
        for key in self.cluster.states().keys() - self._left:
            # What is left on a server that has left the pool is found by the audit for orphans when it returns.
            server = self.cluster.servers[key]
            if not self._has_deleted(server, domain):
                raise Breach(f'{domain} has no rows any more and was never seen gone on {server.server.id[0]}')

    def _has_deleted(self, server: SimulatedServer, domain: DomainRow) -> bool:
        """Whether a server was without the zone since its deletion began, or a later domain has its name."""
        return (any(each.name == domain.name and each.generation > domain.generation
                    for each in self._domains.values())
                or server.last_absent(domain.name) >= self._deleted_at[domain.id])

    # At the end

    def check_end(self) -> None:
        """
        :raises Breach: when everything has been well for :data:`BOUND` and not all is as users were told
        """
        cluster = self.cluster
        if not cluster.has_audits:
            # What servers have is right without audits, of which one may be needed to remove the last rows.
            self._settle('without an audit', self._unserved)
            cluster.has_audits = True
        self._settle('with audits', self._unsettled)
        self._check_answers()
        cluster.live(35)  # claims of processes that are gone run out
        cluster.pass_time(RETENTION + 60)
        cluster.drain()
        for number in range(2):
            cluster.centrals[number].purge()
        if wrong := self._unsettled() or self._remaining(_PURGED):
            raise Breach(f'after purging: {"; ".join(wrong)}')

    def _settle(self, how: str, unsettled: Callable[[], list[str]]) -> None:
        cluster, step = self.cluster, 2.0
        end = cluster.clock.seconds + BOUND
        cluster.live(step)
        while wrong := unsettled():
            if cluster.clock.seconds >= end:
                raise Breach(f'{BOUND:g} s after the last fault, {how}: {"; ".join(wrong)}')
            step = min(2 * step, 30.0)
            cluster.live(step)

    def _remaining(self, queries: dict[str, str]) -> list[str]:
        now = cluster_time(self.cluster)
        return [f'{what} are left: {found}' for what, query in queries.items()
                if (found := self.cluster.database.rows(query.replace(':now', f"'{now}'")))]

    def _unsettled(self) -> list[str]:
        """What is not as it is to be, in words."""
        return self._unserved() + self._remaining(_LEFTOVERS)

    def _unserved(self) -> list[str]:
        """What domains and servers have not, or have and should not have."""
        cluster = self.cluster
        live = {each.name: each for each in self._domains.values() if each.deleted == '0'}
        wrong = [f'{each} is not served' for each in live.values() if each.status != 'ACTIVE']
        wrong += [f'{each} is not deleted' for each in self._domains.values()
                  if each.deleted != '0' and each.status != 'DELETED']
        members = {key for key, state in cluster.states().items() if state in ('active', 'joining', 'maintenance')}
        # Who reads the catalog keeps the zones until that is changed there by hand; the note says what was left.
        emptied = {key for key, in cluster.database.rows(
            "SELECT id FROM pool_servers WHERE state = 'removed' AND delete_zones AND driver != 'catalog' "
            "AND coalesce(note, '') NOT LIKE '%left on it%'")}
        for key, server in cluster.servers.items():
            for name in NAMES if key in members | emptied else ():
                zone, domain = server.zones.get(name), live.get(name) if key in members else None
                if domain is None and zone is not None and server.server.driver == 'records' and key in self._left:
                    continue  # others may have zones there, so that nobody looks for such
                if domain is None and zone is not None:
                    wrong.append(f'{key[0]} has the deleted zone {name}')
                elif domain is not None and (zone is None or zone.serial != domain.serial
                                             or zone.domain_id != domain.id):
                    wrong.append(f'{key[0]} has {zone} of {domain}')
                elif zone is not None and domain is not None and zone.contents != (expected := self._contents(domain)):
                    wrong.append(f'{key[0]} has {sorted(zone.contents)} of {domain}, not {sorted(expected)}')
        return wrong

    def _contents(self, domain: DomainRow) -> frozenset[tuple[str, str, str]]:
        rows = self.cluster.database.rows(
            "SELECT s.name, s.type, r.data FROM records r JOIN recordsets s ON s.id = r.recordset_id "
            f"WHERE s.domain_id = '{domain.id}' AND s.deleted = '0' AND s.type != 'SOA' "
            "AND r.task != 'DELETE' AND r.status != 'DELETED'")
        return frozenset(rows)

    def _check_answers(self) -> None:
        """Nothing that users were told is untrue now."""
        operations = self.cluster.operations
        by_value = {each.value: each for each in operations}
        written = {rdata for domain in self._domains.values() if domain.deleted == '0'
                   for rdata in self._values(domain)}
        for operation in operations:
            told = operation.told
            domain = None if told is None else self._domains.get(told.domain_id)
            if not operation.is_over:
                raise Breach(f'{operation} is still waiting')
            if operation.is_refused and operation.value in written:
                raise Breach(f'{operation} was refused, and done')
            if (operation.is_refused and operation.kind == 'remove'
                    and (f'req-{operation.number}', operation.domain_id) in self._changed):
                raise Breach(f'{operation} was refused, and done')
            if told is None:
                continue
            if domain is None:
                raise Breach(f'{operation} was acknowledged and is not there')
            if (domain.id, domain.name) != (operation.domain_id, operation.name):
                raise Breach(f'{operation} was answered with another domain: {domain}')
            shown = by_value.get(told.value or '', operation)
            if shown.domain_id not in (None, domain.id):
                raise Breach(f'{operation} was answered with what was written into another domain: {shown}')
            if domain.deleted != '0':
                if not any(each.kind == 'delete' and each.domain_id == domain.id and not each.is_refused
                           for each in operations):
                    raise Breach(f'{domain} was deleted, which nobody has asked for')
                continue
            if operation.kind in ('delete', 'restore') and any(
                    each.kind == 'restore' and each.domain_id == domain.id and not each.is_refused
                    and each.number >= operation.number for each in operations):
                continue
            if operation.kind == 'delete':
                raise Breach(f'{operation} was acknowledged, and {domain} is there')
            if not at_least(domain.serial, told.serial):
                raise Breach(f'{operation} was acknowledged at {told.serial}, which {domain} has not')
            values = self._values(domain)
            if values:
                last = [by_value[each] for each in values]
            else:
                last = [each for each in operations if each.kind == 'remove' and each.domain_id == domain.id
                        and not each.is_refused]
            if len(values) > 1 or not any(_may_follow(each, operation) for each in last):
                raise Breach(f'{operation} was acknowledged, and is lost: {values}')
            if any(each.domain_id not in (None, domain.id) for each in last):
                raise Breach(f'{domain} has what was written into another domain: {last}')

    def _values(self, domain: DomainRow) -> list[str]:
        return [rdata for _, rtype, rdata in self._contents(domain) if rtype == 'TXT']


def _may_follow(last: UserOperation, operation: UserOperation) -> bool:
    """Whether what is there may be of *last*, though *operation* was acknowledged."""
    assert operation.told is not None
    if last is operation or last.told is None or newer(last.told.serial, operation.told.serial):
        return True
    # One that is carried out again is answered with what is there by then.
    is_later = operation.kind == 'create' or operation.told.value not in (None, operation.value)
    return is_later and last.told.serial == operation.told.serial


def cluster_time(cluster: Cluster) -> str:
    return cluster.clock.utcnow().strftime('%Y-%m-%d %H:%M:%S.%f')
