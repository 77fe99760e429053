"""``designate-pool-manage check``: whether what always holds holds, in the database and on every server.

Nothing is changed.  The domains are read a page at a time, and the servers are asked for their lists of zones.  What
looks wrong is looked at again until it looks right, or until the patience is over: only then it is a breach.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

from designate_pool.backends.base import Backend
from designate_pool.model import Action, Domain, Pool, PoolServer, ServerState, utcnow
from designate_pool.pool_manager import due, soundness
from designate_pool.pool_manager.members import Members
from designate_pool.storage import domains as domain_store
from designate_pool.storage import servers as server_store
from designate_pool.storage import soundness as store
from designate_pool.storage.sessions import Storage

PAGE = 500
#: Seconds between two looks at what looks wrong, and after which what is due should have been taken.
PAUSE, LATE = 1.0, 60.0
#: Breaches of which more are not looked for.
MOST = 1000


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Breach:
    """Something that does not hold.

    :ivar about: a zone or a server
    """

    about: str
    what: str


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """
    :ivar unseen: servers that could not be looked at, and why
    :ivar extra: zones that a server has and that never were of any pool, by the server's label
    :ivar nested: zones that lie below a zone of another project, which some may make, and others had before
    :ivar more: whether there may be more breaches than were looked for
    """

    domains: int
    servers: int
    breaches: Sequence[Breach]
    unseen: Mapping[str, str]
    extra: Mapping[str, Sequence[str]]
    nested: Sequence[str] = ()
    more: bool = False

    @property
    def code(self) -> int:
        """0 when all holds, 1 when something does not, 2 when something could not be looked at."""
        return 1 if self.breaches else 2 if self.unseen else 0

    def text(self) -> str:
        lines = [f'{each.about}: {each.what}.' for each in self.breaches]
        if self.more:
            lines.append(f'There may be more: no more than {MOST} are looked for.')
        lines += [f'{label} was not looked at: {why}' for label, why in self.unseen.items()]
        lines += [f'{label} has {len(names)} zones of its own: {", ".join(names[:5])}{" ..." if names[5:] else ""}'
                  for label, names in self.extra.items()]
        lines += self.nested
        lines.append(f'{self.domains} domains, {self.servers} servers: '
                     f'{len(self.breaches) or "no"} breach{"es" if len(self.breaches) != 1 else ""}.')
        return '\n'.join(lines)

    def json(self) -> str:
        return json.dumps({'ok': not self.code, 'domains': self.domains, 'servers': self.servers,
                           'breaches': [dataclasses.asdict(each) for each in self.breaches], 'more': self.more,
                           'unseen': dict(self.unseen), 'nested': list(self.nested),
                           'extra': {key: list(names) for key, names in self.extra.items()}}, indent=2)


class Check:
    """A look at one pool.

    :param backends: the drivers of its servers, by the servers' ids
    :param patience: seconds for what is under way to come right
    """

    def __init__(self, storage: Storage, pool: Pool, backends: Mapping[str, Backend], patience: float,
                 sleep: Callable[[float], None] = time.sleep) -> None:
        self._storage = storage
        self._pool = pool
        self._backends = backends
        self._patience = patience
        self._sleep = sleep
        self._members = Members.of(())
        self._domains = 0
        self._unseen: dict[str, str] = {}
        self._extra: dict[str, Sequence[str]] = {}

    def run(self) -> Report:
        roll = self._storage.read(server_store.of_pool, self._pool.name)
        self._members = Members.of(roll.servers)
        suspects = self._in_database(roll.pool_id)
        wrong_at = self._on_servers()
        end = time.monotonic() + self._patience
        while (suspects or any(wrong_at.values())) and time.monotonic() < end:
            self._sleep(PAUSE)
            self._members = Members.of(self._storage.read(server_store.of_pool, self._pool.name).servers)
            suspects = self._suspects(list(suspects))
            if any(wrong_at.values()):
                wrong_at = self._on_servers([key for key, found in wrong_at.items() if found])
        found = [each for breaches in (*suspects.values(), *wrong_at.values()) for each in breaches]
        found += self._strangers()
        return Report(self._domains, len(wrong_at), sorted(found)[:MOST], self._unseen, self._extra, self._nested(),
                      len(found) >= MOST)

    def _in_database(self, pool_id: str) -> dict[str, list[Breach]]:
        """What looks wrong of all domains, by their ids."""
        found: dict[str, list[Breach]] = {}
        after = ''
        while (ids := self._storage.read(store.ids, pool_id, after, PAGE)) and len(found) < MOST:
            self._domains += len(ids)
            found.update(self._suspects(ids))
            after = ids[-1]
        return found

    def _suspects(self, domain_ids: Sequence[str]) -> dict[str, list[Breach]]:
        late, now = timedelta(seconds=LATE), utcnow()
        found = {kept.domain.id: [Breach(kept.domain.name, what) for what in soundness.breaches(
            kept, self._members, self._pool.threshold_percentage, late, now)]
            for kept in (self._storage.read(store.kept, domain_ids) if domain_ids else ())}
        return {key: breaches for key, breaches in found.items() if breaches}

    def _nested(self) -> list[str]:
        found: list[str] = []
        after: str | None = ''
        while after is not None and len(found) < MOST:
            page, after = self._storage.read(domain_store.foreign_nestings, after, PAGE)
            found += [f'{each.name} of the project {each.project_id or "-"} lies below {each.above} of the project '
                      f'{each.above_project_id or "-"}.' for each in page]
        return found[:MOST]

    def _strangers(self) -> list[Breach]:
        """Rows of servers that no pool has."""
        known = self._storage.read(server_store.all_ids)
        return [Breach(f'server {server}', f'no pool has it, and it has rows, one of the domain {domain}')
                for server, domain in self._storage.read(store.strange_rows, known, MOST)]

    def _on_servers(self, only: Iterable[str] | None = None) -> dict[str, list[Breach]]:
        """What looks wrong of the servers, by their ids.

        :param only: ids of those that are looked at; None for all
        """
        looked = [each for each in self._members.servers if each.id in self._backends
                  and each.state in (ServerState.ACTIVE, ServerState.JOINING) and (only is None or each.id in only)]
        found = {}
        for each in looked:
            breaches = self._at(each)
            if breaches is not None:
                found[each.id] = breaches
        return found

    def _at(self, server: PoolServer) -> list[Breach] | None:
        backend = self._backends[server.id]
        names = [domain.name for page in self._pages() for domain in page]
        with contextlib.closing(backend):
            listing = backend.list_zones(names)
        if not listing.result.ok:
            self._unseen[server.label] = listing.result.error or ''
            return None
        self._unseen.pop(server.label, None)
        found = [] if server.is_filling or server.state is not ServerState.ACTIVE else [
            Breach(server.label, f'{name} {what}') for page in self._pages()
            for name, what in self._differences(server.id, backend, page, listing.serials)]
        if listing.complete and not backend.fed_by_records:
            strangers = sorted(set(listing.serials) - set(names) - {self._pool.catalog_zone})
            explained = {*self._storage.read(domain_store.live_by_name, strangers),
                         *self._storage.read(server_store.names_on, server.id, strangers)}
            ours = self._storage.read(store.once_named, strangers) - explained
            found += [Breach(server.label, f'{name} is there, and was deleted') for name in sorted(ours)]
            if extra := [name for name in strangers if name not in ours and name not in explained]:
                self._extra[server.label] = extra
        return found[:MOST]

    def _pages(self) -> Iterator[list[Domain]]:
        """The domains that are to be served."""
        after = ''
        while page := self._storage.read(domain_store.page, self._pool.name, after, PAGE):
            yield page
            after = page[-1].id

    def _differences(self, server_id: str, backend: Backend, page: Sequence[Domain],
                     serials: Mapping[str, int | None]) -> Iterator[tuple[str, str]]:
        """Zones of which the rows say that the server is right, and it is not."""
        wrong = [domain.id for domain in page if domain.name not in serials
                 or backend.keeps_serial and serials[domain.name] != domain.serial]
        for kept in self._storage.read(store.kept, wrong) if wrong else ():
            row = next((row for row in kept.rows if row.server_id == server_id and row.action is Action.UPDATE), None)
            if row is None or not due.is_at_rest(row) or kept.domain.is_going:
                continue
            name, serial = kept.domain.name, kept.domain.serial
            if name not in serials:
                yield name, 'is not there, and its row says that it is'
            elif serials[name] != serial:
                yield name, f'is there at serial {serials[name]}, and its row says that it is at {serial}'
