"""The check of the invariants, in the database and on every server of a pool (``designate-pool-manage check``).

Nothing is changed.  The domains are read page by page, and the servers are asked for their lists of zones; of pools
other than the configuration's only the rows are read.  While operations are in progress an invariant may look broken
for a moment: what looks wrong is checked again until it is right or the patience is over, and only then it is a breach.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from designate_pool import consensus
from designate_pool.backends.base import Backend
from designate_pool.consensus import Members
from designate_pool.model import (Action, Domain, Outcome, PageRequest, Pool, PoolServer, ServerState, ServerStatus,
                                  Status)
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.serial import newer
from designate_pool.storage.operations import heartbeats, pool_servers as server_store
from designate_pool.storage.reporting import invariants as store
from designate_pool.storage.reporting.invariants import DomainRows
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains as domain_store, pools as pool_store

PAGE = 500
#: Seconds after which a due row should have been claimed.
LATE = 60.0
#: The search ends at so many breaches.
MOST = 1000
#: Services that each pool needs.
NEEDED = ('minidns', 'pool_manager')


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Breach:
    """A broken invariant of a zone or a server; *pool* is '' for none."""

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
    """The rows of a pool with the threshold of its pool managers, and its servers at the last check."""

    def __init__(self, storage: Storage, pool: Pool) -> None:
        self._storage = storage
        self.pool = pool
        self.members = Members.of(())
        self._domains = 0

    def check(self) -> dict[str, list[Breach]]:
        """Suspected breaches of all domains, by their ids."""
        pool_id = self.read_members()
        breaches_of: dict[str, list[Breach]] = {}
        after = ''
        while (ids := self._storage.read(store.ids, pool_id, after, PAGE)) and len(breaches_of) < MOST:
            self._domains += len(ids)
            breaches_of.update(self.suspects(ids))
            after = ids[-1]
        return breaches_of

    def state(self) -> State:
        """The state of the pool; its domains and servers are those of the last :meth:`check`."""
        now = self._storage.now()
        holding = [member for member in self.members.servers if member.id in self.members.tracked]
        failing: dict[str, str] = {}
        for server in holding:
            report = self._storage.read(server_store.report, server, 0, now, whole=True)
            if report.failing:
                first = ': '.join(report.failures[0]) if report.failures else ''
                failing[server.label] = f'{report.failing} in ERROR{first and f", the first {first}"}'
        live = {heartbeat.service_name for heartbeat in self._storage.read(
            heartbeats.find, PageRequest({'status': heartbeats.UP}), now - timedelta(seconds=heartbeats.SILENCE))
            if heartbeat.pool_name in (self.pool.name, '')}
        silent = [name for name in NEEDED if name not in live] if holding else []
        removed = sum(member.state is ServerState.REMOVED for member in self.members.servers)
        return State(self._domains, len(self.members.servers) - removed, failing, silent)

    def read_members(self) -> str:
        """Read the servers again; the pool's id."""
        roll = self._storage.read(server_store.of_pool, self.pool.name)
        self.members = Members.of(roll.servers, self.pool.count_joining_servers)
        return roll.pool_id

    def suspects(self, domain_ids: Sequence[str]) -> dict[str, list[Breach]]:
        """Suspected breaches of these domains."""
        late, now = timedelta(seconds=LATE), self._storage.now()
        breaches_of = {kept.domain.id: [Breach(kept.domain.name, what, self.pool.name) for what in breaches(
            kept, self.members, self.pool.threshold_percentage, late, now)]
            for kept in (self._storage.read(store.domain_rows, domain_ids) if domain_ids else ())}
        return {key: breaches for key, breaches in breaches_of.items() if breaches}


#: Seconds between two checks of what looks wrong.
PAUSE = 1.0
#: The threshold of a pool that has published none: one server is needed at least.
UNKNOWN_THRESHOLD = 1


@dataclasses.dataclass(frozen=True, slots=True)
class InvariantReport:
    """
    :ivar pool: the name of the pool whose servers were checked
    :ivar states: of each pool, by its name
    :ivar unseen: servers that could not be checked, and why
    :ivar extra: zones on a server that no pool ever had, by the server's label
    :ivar more: whether there may be more breaches than were searched for
    """

    domains: int
    servers: int
    breaches: Sequence[Breach]
    unseen: Mapping[str, str]
    extra: Mapping[str, Sequence[str]]
    more: bool = False
    pool: str = ''
    states: Mapping[str, State] = dataclasses.field(default_factory=dict)

    @property
    def code(self) -> int:
        """0 when all holds, 1 when something does not, 2 when something could not be checked."""
        return 1 if self.breaches else 2 if self.unseen else 0

    def text(self) -> str:
        """Lines to print: breaches, servers that were not checked, states of pools, and a summary."""
        lines = [f'{breach.about}{self._of(breach.pool)}: {breach.what}.' for breach in self.breaches]
        if self.more:
            lines.append(f'There may be more: no more than {MOST} are looked for.')
        lines += [f'{label} was not checked: {why}' for label, why in self.unseen.items()]
        lines += [f'{label} has {len(names)} zones of its own: {", ".join(names[:5])}{" ..." if names[5:] else ""}'
                  for label, names in self.extra.items()]
        for name, state in self.states.items():
            lines += [f'{label}{self._of(name)} has operations that fail: {what}'
                      for label, what in state.failing.items() if name != self.pool]
            lines += [f'No {service} of the pool {name} has sent a heartbeat recently.' for service in state.silent]
        lines += [f'Of the pool {name} only the rows were checked ({state.domains} zones; its {state.servers} servers '
                  f'were not asked): this configuration is of the pool {self.pool}.'
                  for name, state in self.states.items() if name != self.pool]
        lines.append(f'{self.domains} zones, {self.servers} servers: {len(self.breaches) or "no"} '
                     f'breach{"es" if len(self.breaches) != 1 else ""}.')
        return '\n'.join(lines)

    def json(self) -> str:
        """The report for programs, as JSON."""
        return json.dumps({'ok': not self.code, 'domains': self.domains, 'servers': self.servers,
                           'breaches': [dataclasses.asdict(breach) for breach in self.breaches], 'more': self.more,
                           'unseen': dict(self.unseen), 'pool': self.pool,
                           'extra': {key: list(names) for key, names in self.extra.items()},
                           'pools': {name: {**dataclasses.asdict(state), 'asked': name == self.pool}
                                     for name, state in self.states.items()}}, indent=2)

    def _of(self, pool: str) -> str:
        return f' of the pool {pool}' if pool not in ('', self.pool) else ''


class InvariantCheck:
    """A check of a pool with its servers, by their drivers, and of the rows of all pools; *patience* is in seconds."""

    def __init__(self, storage: Storage, pool: Pool, backends: Mapping[str, Backend], patience: float) -> None:
        self._storage = storage
        self._pool = pool
        self._backends = backends
        self._patience = patience
        self._unseen: dict[str, str] = {}
        self._extra: dict[str, Sequence[str]] = {}
        self._rows = [Rows(storage, pool)]

    def run(self) -> InvariantReport:
        """Check everything, and repeat the checks that fail until they pass or the patience ends."""
        self._rows += [Rows(self._storage, pool_ if pool_.published_at is not None else
                            dataclasses.replace(pool_, threshold_percentage=UNKNOWN_THRESHOLD))
                       for pool_ in self._storage.read(pool_store.find, PageRequest())
                       if pool_.name != self._pool.name]
        suspects = [rows.check() for rows in self._rows]
        wrong_at = self._on_servers()
        end = time.monotonic() + self._patience
        while (any(suspects) or any(wrong_at.values())) and time.monotonic() < end:
            time.sleep(PAUSE)
            for rows in self._rows:
                rows.read_members()
            suspects = [rows.suspects(list(domain_ids)) for rows, domain_ids in zip(self._rows, suspects)]
            sound_at = {key: breaches for key, breaches in wrong_at.items() if not breaches}
            if len(sound_at) < len(wrong_at):
                wrong_at = sound_at | self._on_servers(wrong_at.keys() - sound_at.keys())
        all_breaches = [breach for part in (*suspects, wrong_at) for breaches in part.values() for breach in breaches]
        ids = self._storage.read(server_store.all_ids)
        all_breaches += (Breach(f'server {server}', f'no pool has it, and it has rows, one of the zone {domain}')
                         for server, domain in self._storage.read(store.servers_without_pool, ids, MOST))
        states = {rows.pool.name: rows.state() for rows in self._rows}
        return InvariantReport(sum(state.domains for state in states.values()), len(wrong_at),
                               sorted(all_breaches)[:MOST], self._unseen, self._extra, len(all_breaches) >= MOST,
                               self._pool.name, states)

    def _on_servers(self, only: Iterable[str] | None = None) -> dict[str, list[Breach]]:
        checked = [server for server in self._rows[0].members.servers if server.id in self._backends
                   and server.state in (ServerState.ACTIVE, ServerState.JOINING)
                   and (only is None or server.id in only)]
        return {member.id: breaches for member in checked if (breaches := self._at(member)) is not None}

    def _at(self, server: PoolServer) -> list[Breach] | None:
        backend = self._backends[server.id]
        names = [domain.name for page in self._pages() for domain in page]
        with contextlib.closing(backend):
            listing = backend.list_zones(names)
        if not listing.result.ok:
            self._unseen[server.label] = listing.result.error or ''
            return None
        self._unseen.pop(server.label, None)
        breaches = [] if server.is_filling or server.state is not ServerState.ACTIVE else [
            Breach(server.label, f'{name} {what}', self._pool.name) for page in self._pages()
            for name, what in self._differences(server.id, backend, page, listing.serials)]
        if listing.complete and not backend.capabilities.fed_by_records:
            strangers = sorted(set(listing.serials) - set(names) - {self._pool.catalog_zone})
            explained = {*self._storage.read(domain_store.explaining_zones, strangers),
                         *self._storage.read(server_store.names_on, server.id, strangers)}
            ours = self._storage.read(store.ever_used, strangers) - explained
            breaches += [Breach(server.label, f'{name} is there, and was deleted', self._pool.name)
                         for name in sorted(ours)]
            if extra := [name for name in strangers if name not in ours and name not in explained]:
                self._extra[server.label] = extra
        return breaches[:MOST]

    def _pages(self) -> Iterator[list[Domain]]:
        after = ''
        while page := self._storage.read(domain_store.page, self._pool.name, after, PAGE):
            yield page
            after = page[-1].id

    def _differences(self, server_id: str, backend: Backend, page: Sequence[Domain],
                     serials: Mapping[str, int | None]) -> Iterator[tuple[str, str]]:
        """Zones that the server lacks or has at a wrong serial, though their rows are at rest."""
        wrong = [domain.id for domain in page if domain.name not in serials
                 or backend.capabilities.keeps_serial and serials[domain.name] != domain.serial]
        for kept in self._storage.read(store.domain_rows, wrong) if wrong else ():
            row = next((row for row in kept.rows if row.server_id == server_id and row.action is Action.UPDATE), None)
            if row is None or not row_transitions.is_at_rest(row) or kept.domain.is_going:
                continue
            name, serial = kept.domain.name, kept.domain.serial
            if name not in serials:
                yield name, 'is not there, and its row says that it is'
            elif serials[name] != serial:
                yield name, f'is there at serial {serials[name]}, and its row says that it is at {serial}'


def breaches(domain_rows: DomainRows, members: Members, threshold_percentage: int, late: timedelta,
             now: datetime) -> Iterator[str]:
    """The broken invariants, sentences without full stop; *late*: how long a row may be due, or its claim be over."""
    domain, rows = domain_rows.domain, domain_rows.rows
    labels = {server.id: server.label for server in members.servers}
    for row in rows:
        where = f'{row.action} on {labels.get(row.server_id, row.server_id)}'
        yield from (f'{where}: {what}' for what in _of_row(domain_rows, row, labels, late, now))
    if domain.release_state is not None:
        return  # nothing else is so on all servers
    if domain.reported_serial is not None and newer(domain.reported_serial, domain.serial):
        yield f'it was reported at serial {domain.reported_serial}, which is ahead of its own, {domain.serial}'
    if domain.is_going:
        yield from _of_deletion(domain_rows, members, threshold_percentage)
        return
    if domain.generation < domain_rows.newest:
        yield f'it lives at generation {domain.generation}, and its name was at {domain_rows.newest} already'
    yield from _of_shares(domain_rows)
    if domain.awaits_transfer:
        return  # nothing is done on servers before it is transferred from a master
    verdict = consensus.weigh(domain, rows, members.counting, threshold_percentage, members.uncounted)
    waits = any(row.next_attempt_at is not None for row in rows)
    if domain.status is Status.ACTIVE:
        if domain.action is not Action.NONE or not consensus.is_reached(domain, domain.least_serial):
            yield f'it is ACTIVE with {domain.action} to be done and serial {domain.reported_serial} reported'
        if domain_rows.undone:
            yield f'it is ACTIVE, and {domain_rows.undone} of its records are not'
        if members.counting and len(verdict.agreed) < verdict.needed and not waits:
            yield (f'it is ACTIVE at serial {domain.serial}, which {len(verdict.agreed)} of {verdict.total} servers '
                   'serve, and nothing is due')
    elif not waits and members.counting and domain.waits_for is None:
        yield f'it is {domain.status}, and nothing is due on any server'
    if domain.status is not Status.PENDING:
        provisioned = {row.server_id for row in rows if row.action is Action.UPDATE}
        lacking = [server.label for server in members.servers
                   if server.id in members.tracked and not server.is_filling and server.id not in provisioned]
        if lacking:
            yield f'nothing was ever begun on {", ".join(lacking)}'


def _of_row(domain_rows: DomainRows, row: ServerStatus, labels: dict[str, str], late: timedelta,
            now: datetime) -> Iterator[str]:
    domain = domain_rows.domain
    if row.server_id not in labels and row.server_id not in domain_rows.former_servers:
        yield 'the pool has no such server'
    if (row.claimed_by is None) is not (row.claimed_until is None):
        yield 'it is claimed by nobody, or for no time'
    if row.next_attempt_at is not None:
        due_since = max(filter(None, (row.next_attempt_at, row.claimed_until, row.deadline_at)))
        if due_since + late < now:
            yield f'it is due since {due_since:%Y-%m-%d %H:%M:%S}, and nobody has taken it'
    elif row.status is not Outcome.SUCCESS and not _waits_for_another(domain_rows, row):
        yield f'it is {row.status or Status.PENDING} and waits for nothing'
    if row.action is Action.DELETE:
        if not domain.is_going:
            yield 'it exists, and the zone is not being deleted'
        return
    if newer(row.expected_serial, domain.serial):
        yield f'it expects serial {row.expected_serial}, which is ahead of the zone, {domain.serial}'
    if row.serial_number is not None and newer(row.serial_number, domain.serial) and not row.diverged:
        yield f'serial {row.serial_number} was seen, which is ahead of the zone, {domain.serial}, and it counts'
    if (row_transitions.is_at_rest(row) and row.action is Action.UPDATE and not domain.is_going
            and row.serial_number is None):
        yield 'it is done, and no serial was ever seen'


def _of_shares(domain_rows: DomainRows) -> Iterator[str]:
    domain, targets = domain_rows.domain, domain_rows.targets
    if domain.shared is not bool(targets):
        yield f'it is {"" if domain.shared else "not "}marked as shared, and has {len(targets) or "no"} shares'
    if domain.project_id in targets:
        yield f'it is shared with its own project {domain.project_id}'
    for guest in sorted(domain_rows.guests - targets - {domain.project_id}):
        yield f'it has recordsets of the project {guest}, which it is not shared with'


def _waits_for_another(domain_rows: DomainRows, row: ServerStatus) -> bool:
    """Whether the row waits for the CREATE row of the same server, or its domain is being deleted."""
    if row.action is Action.DELETE:
        return False
    if domain_rows.domain.is_going:
        return True
    return row.action is Action.UPDATE and any(
        other.action is Action.CREATE and other.server_id == row.server_id and other.next_attempt_at is not None
        for other in domain_rows.rows)


def _of_deletion(domain_rows: DomainRows, members: Members, threshold_percentage: int) -> Iterator[str]:
    domain, rows = domain_rows.domain, domain_rows.rows
    gone = {row.server_id for row in rows if row.action is Action.DELETE}
    if domain.status is Status.DELETED:
        if domain.action is not Action.NONE:
            yield f'it is DELETED with {domain.action} to be done'
        if not rows:
            return
    elif domain.status is Status.ACTIVE:
        yield 'it is ACTIVE, and to be deleted'
    for server in sorted({row.server_id for row in rows} - gone):
        yield f'its deletion was never begun on {server}, which has rows of it'
    verdict = consensus.weigh(domain, rows, members.counting, threshold_percentage, members.uncounted)
    if not verdict.behind and members.counting:
        yield ('every server has confirmed its deletion, and its rows are still there'
               if domain.status is Status.DELETED else 'every server has confirmed its deletion, and it is not DELETED')
