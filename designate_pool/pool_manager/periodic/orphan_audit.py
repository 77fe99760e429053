"""The rolling look for zones on servers that no domain explains.

A server has one that was created there after its domain was gone, by a call that nobody heard the end of, or by other
hands.  What the pool made itself is deleted: the newest domain of the name was the pool's and is deleted, and the
server serves nothing of it, or no serial newer than the domain's last.  The rest is told of, and left.

A page of the round is one server.  Those are passed over that are fed by records, where others have zones too, and
those that read a catalog, which holds no more than it should.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from designate_pool.model import Audit, AuditKind, Counts, Domain, ServerState, utcnow
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.periodic import audit_schedule
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.pool_manager.reconcile.domain_state import Loaded
from designate_pool.serial import newer
from designate_pool.storage.operations import pool_servers as server_store
from designate_pool.storage.operations import sweeps
from designate_pool.storage.zones import domains as domain_store

LOG = logging.getLogger(__name__)

KIND = AuditKind.EXTRA
#: Seconds between two looks when nothing is to be done, and that a server is left to who looks at it: for two listings.
IDLE, CLAIM_SECONDS = 5.0, 300.0
PAGE = 500
#: Deleted names that a server is asked for one by one if it cannot list its zones.
MOST_ASKED = 5000
#: Zones that are named in a message.
SHOWN = 10

Serials = Mapping[str, int | None]


class OrphanAudit:
    """Looks for extra zones on the servers of *manager*'s pool."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._logged: dict[str, frozenset[str]] = {}

    def run(self) -> float:
        """Look at one server; seconds until the next look."""
        manager, interval = self._manager, self._manager.settings.extra_zones_interval
        if not interval:
            return IDLE
        now = utcnow()
        audit, wait = audit_schedule.due_page(manager.storage, manager.pool.name, KIND, manager.settings.name, now)
        if audit is None:
            return wait
        claimed = manager.storage.run(sweeps.claim, audit, manager.settings.name, now,
                                      now + timedelta(seconds=CLAIM_SECONDS))
        return audit_schedule.BUSY if claimed is None else self._audit_server(claimed, interval)

    def _audit_server(self, audit: Audit, interval: float) -> float:
        workers = self._workers(audit.after_id)
        found = [] if not workers else self._find_orphans(workers[0])
        now = utcnow()
        after = workers[0].server.id if len(workers) > 1 else ''
        next_at = now if after else max(now, audit.started_at + timedelta(seconds=interval))
        self._manager.storage.run(sweeps.advance, audit, after, Counts(findings=len(found)), 0, next_at, now)
        return 0.0 if after else IDLE

    def _workers(self, after_id: str) -> list[ServerWorker]:
        """The servers that are still to be looked at."""
        active = {each.id for each in self._manager.members.servers
                  if each.state is ServerState.ACTIVE and not each.is_filling}
        return [worker for server_id, worker in sorted(self._manager.workers.items())
                if server_id > after_id and server_id in active and not worker.control.is_open
                and not worker.backend.capabilities.fed_by_records and not worker.backend.capabilities.reads_catalog]

    def _find_orphans(self, worker: ServerWorker) -> list[str]:
        """The extra zones of one server; those that the pool made are on their way out then."""
        listing = worker.backend.list_zones(list(itertools.islice(self._deleted_names(), MOST_ASKED)))
        names = self._unexplained(worker, listing.serials) if listing.result.ok else []
        if names:
            # What was deleted since the list was made is not in a second one.
            again = worker.backend.list_zones(names)
            names = self._unexplained(worker, {name: again.serials[name] for name in names if name in again.serials})
            ours = self._delete(worker, names, again.serials)
            self._log_orphans(worker, [name for name in names if name not in ours])
        elif listing.result.ok:
            self._log_orphans(worker, [])
        return names

    def _unexplained(self, worker: ServerWorker, serials: Serials) -> list[str]:
        read, found = self._manager.storage.read, list[str]()
        names = iter(sorted(set(serials) - {self._manager.pool.catalog_zone}))
        while batch := list(itertools.islice(names, PAGE)):
            known = {*read(domain_store.live_by_name, batch), *read(server_store.names_on, worker.server.id, batch)}
            found += (name for name in batch if name not in known)
        return found

    def _delete(self, worker: ServerWorker, names: Sequence[str], serials: Serials) -> set[str]:
        """Have those of *names* deleted there that the pool made; which that are."""
        manager = self._manager
        gone = manager.storage.read(domain_store.deleted_by_name, manager.pool.name, names)
        ours = {name: domain for name, domain in gone.items() if _is_of(domain, serials[name])}
        if not ours:
            return set()

        def decide(loaded: Loaded, now: datetime) -> None:
            for state in loaded.states.values():
                state.change(*row_transitions.begin(state.domain, state.rows, [worker.server.id], now))

        LOG.warning('%s: deleting %d zones that were deleted from the database before: %s', worker.server.label,
                    len(ours), _named(sorted(ours)))
        manager.reconciler.run(lambda now: manager.reconciler.read((each.id for each in ours.values()), now), decide)
        return set(ours)

    def _log_orphans(self, worker: ServerWorker, names: Sequence[str]) -> None:
        """Say of a server what else is there, when that has changed."""
        logged, now = self._logged.get(worker.server.id, frozenset()), frozenset(names)
        self._logged[worker.server.id] = now
        if now - logged:
            LOG.warning("%s: %d zones are there that are not in the database and that the pool did not create: %s; "
                        "'designate-pool server resync %s' shows them", worker.server.label, len(names),
                        _named(sorted(now - logged)), worker.server.id)

    def _deleted_names(self) -> Iterator[str]:
        manager, after = self._manager, ''
        while page := manager.storage.read(domain_store.page_of_deleted, manager.pool.name, after, PAGE):
            yield from (domain.name for domain in page)
            after = page[-1].id


def _is_of(domain: Domain, serial: int | None) -> bool:
    """Whether a server that serves *serial*, or nothing, has got the zone from the deleted *domain*."""
    return serial is None or not newer(serial, domain.serial)


def _named(names: Sequence[str]) -> str:
    more = f' and {len(names) - SHOWN} more' if len(names) > SHOWN else ''
    return ', '.join(names[:SHOWN]) + more
