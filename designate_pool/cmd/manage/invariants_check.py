"""``designate-pool-manage check``: whether the invariants hold, in the database and on every server of a pool.

Nothing is changed.  The domains are read page by page, and the servers are asked for their lists of zones; of pools
other than the configuration's only the rows are read.  What looks wrong is checked again until it is right or the
patience is over: only then it is a breach.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

from designate_pool.backends.base import Backend
from designate_pool.consensus import Members
from designate_pool.model import Action, Domain, PageRequest, Pool, PoolServer, ServerState
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.pool_manager.verify import invariants
from designate_pool.storage.operations import heartbeats
from designate_pool.storage.operations import pool_servers as server_store
from designate_pool.storage.reporting import invariants as store
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains as domain_store
from designate_pool.storage.zones import pools as pool_store

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
        breaches_of = {kept.domain.id: [Breach(kept.domain.name, what, self.pool.name) for what in invariants.breaches(
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
        return json.dumps({'ok': not self.code, 'domains': self.domains, 'servers': self.servers,
                           'breaches': [dataclasses.asdict(breach) for breach in self.breaches], 'more': self.more,
                           'unseen': dict(self.unseen), 'pool': self.pool,
                           'extra': {key: list(names) for key, names in self.extra.items()},
                           'pools': {name: {**dataclasses.asdict(state), 'asked': name == self.pool}
                                     for name, state in self.states.items()}}, indent=2)

    def _of(self, pool: str) -> str:
        return f' of the pool {pool}' if pool not in ('', self.pool) else ''


class InvariantCheck:
    """A check of a pool with its servers, and of the rows of all other pools.

    :param backends: the drivers of its servers, by the servers' ids
    :param patience: seconds for operations under way to end
    """

    def __init__(self, storage: Storage, pool: Pool, backends: Mapping[str, Backend], patience: float,
                 sleep: Callable[[float], None] = time.sleep) -> None:
        self._storage = storage
        self._pool = pool
        self._backends = backends
        self._patience = patience
        self._sleep = sleep
        self._unseen: dict[str, str] = {}
        self._extra: dict[str, Sequence[str]] = {}
        self._rows = [Rows(storage, pool)]

    def run(self) -> InvariantReport:
        self._rows += [Rows(self._storage, pool_ if pool_.published_at is not None else
                            dataclasses.replace(pool_, threshold_percentage=UNKNOWN_THRESHOLD))
                       for pool_ in self._storage.read(pool_store.find, PageRequest())
                       if pool_.name != self._pool.name]
        suspects = [rows.check() for rows in self._rows]
        wrong_at = self._on_servers()
        end = time.monotonic() + self._patience
        while (any(suspects) or any(wrong_at.values())) and time.monotonic() < end:
            self._sleep(PAUSE)
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
