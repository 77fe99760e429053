"""The audit for orphans: zones on servers that no domain explains.

Such a zone was created by a call that ended after its domain was deleted, or by somebody else.  The pool created it if
the newest domain of the name was the pool's and is deleted, and the server serves no newer serial than the domain's
last: then it is deleted, unless the domain was abandoned.  All others are logged and left.

A page of the round is one server.  Servers fed by records are skipped, since others have zones there, and so are those
that read a catalog, since they have no other zones.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta

from designate_pool.model import Audit, AuditKind, Counts, some
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.periodic import audit_schedule
from designate_pool.pool_manager.verify import server_zones
from designate_pool.serial import newer
from designate_pool.storage.operations import sweeps
from designate_pool.storage.zones import domains as domain_store

LOG = logging.getLogger(__name__)

KIND = AuditKind.EXTRA
#: Seconds to wait when nothing is due, and for which a server is claimed: enough for two listings.
IDLE, CLAIM_SECONDS = 5.0, 300.0
#: Deleted names that a server which cannot list its zones is asked for one by one, at most.
MOST_ASKED = 5000
#: Zones that are named in a message.
SHOWN = 10


class OrphanAudit:
    """The orphan audit of *manager*'s pool, as far as this pool manager takes part."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._logged: dict[str, frozenset[str]] = {}

    def run(self) -> float:
        """Audit one server; seconds until the next."""
        interval = self._manager.settings.extra_zones_interval
        if not interval:
            return IDLE
        claimed, wait = audit_schedule.claim_page(self._manager, KIND, CLAIM_SECONDS)
        return wait if claimed is None else self._audit_server(claimed, interval)

    def _audit_server(self, audit: Audit, interval: float) -> float:
        workers = self._workers(audit.after_id)
        orphans = [] if not workers else self._find_orphans(workers[0])
        now = self._manager.storage.now()
        after = workers[0].server.id if len(workers) > 1 else ''
        next_at = now if after else max(now, audit.started_at + timedelta(seconds=interval))
        self._manager.storage.run(sweeps.advance, audit, after, Counts(findings=len(orphans)), 0, next_at, now)
        return 0.0 if after else IDLE

    def _workers(self, after_id: str) -> list[ServerWorker]:
        return [worker for worker in audit_schedule.active_workers(self._manager)
                if worker.server.id > after_id and not worker.control.is_open
                and not worker.backend.capabilities.fed_by_records and not worker.backend.capabilities.reads_catalog]

    def _find_orphans(self, worker: ServerWorker) -> list[str]:
        """The orphans on one server; those that the pool created are being deleted then."""
        deleted = server_zones.deleted_names(self._manager)
        listing = worker.backend.list_zones(list(itertools.islice(deleted, MOST_ASKED)))
        if not listing.result.ok:
            return []
        if names := server_zones.unexplained(self._manager, worker.server.id, listing.serials):
            # A second listing lacks those that were deleted since the first.
            listing = worker.backend.list_zones(names)
            names = server_zones.unexplained(self._manager, worker.server.id, set(names) & listing.serials.keys())
        ours = self._delete(worker, names, listing.serials) if names else set()
        self._log_orphans(worker, [name for name in names if name not in ours])
        return names

    def _delete(self, worker: ServerWorker, names: Sequence[str], serials: Mapping[str, int | None]) -> set[str]:
        """Schedule the deletion of those of *names* that the pool created; which these are."""
        manager = self._manager
        gone = manager.storage.read(domain_store.deleted_by_name, manager.pool.name, names)
        # A server with a newer serial has not got the zone from the deleted domain.
        ours = {name: domain for name, domain in gone.items() if not domain.abandoned
                and ((serial := serials[name]) is None or not newer(serial, domain.serial))}
        if not ours:
            return set()
        LOG.warning('%s: deleting %d zones that were deleted from the database before: %s', worker.server.label,
                    len(ours), some(sorted(ours), SHOWN))
        # With the live domains: one may have got the name meanwhile, and the zone with it.
        with manager.reconciler.step(domain.id for domain in ours.values()) as step:
            for state in step.states.values():
                state.change(*state.schedule([worker.server.id], step.now))
        return set(ours)

    def _log_orphans(self, worker: ServerWorker, names: Sequence[str]) -> None:
        """Log the orphans on a server that are new since the last round."""
        logged, now = self._logged.get(worker.server.id, frozenset()), frozenset(names)
        self._logged[worker.server.id] = now
        if now - logged:
            LOG.warning("%s: %d zones are there that are not in the database and that the pool did not create: %s; "
                        "'designate-pool server resync %s' shows them", worker.server.label, len(names),
                        some(sorted(now - logged), SHOWN), worker.server.id)
