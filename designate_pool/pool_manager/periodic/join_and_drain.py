"""Creates every domain on joining servers, and deletes the zones and rows of draining ones, a page at a time.

The progress is in the database: the id of the last domain that was started on a joining server, and the remaining rows
of a draining one.  One pool manager at a time works on a server, by a claim; another continues when it has expired.

A joining server has a bounded number of unfinished operations, so that recent changes do not wait behind all domains.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from designate_pool.backends.base import Backend
from designate_pool.model import CallResult, Domain, PoolServer, Reason, ServerState
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.pool_manager.server_registry import ServerRegistry
from designate_pool.pool_manager.verify import server_zones
from designate_pool.storage.operations import pool_servers as server_store
from designate_pool.storage.serving import catalog
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains as domain_store, plans as plan_store

LOG = logging.getLogger(__name__)

#: Unfinished operations of a joining server, at most.
WINDOW = 1000
#: Seconds to wait: when no server joins or drains; for unfinished operations; after a failure.
IDLE, BUSY, REFUSED = 1.0, 0.05, 2.0
#: After this many failures in a row the zones are left on a draining server.
PATIENCE = 3


class JoinAndDrain:
    """Takes the steps of joining and draining for *manager*'s pool.

    :param page_size: domains read at a time
    :param window: unfinished operations of a joining server, at most
    """

    def __init__(self, manager: Manager, registry: ServerRegistry, page_size: int = 500,
                 window: int = WINDOW) -> None:
        self._manager = manager
        self._page_size = page_size
        self._window = window
        self._registry = registry
        self._failures: collections.Counter[str] = collections.Counter()
        self._undeleted: collections.Counter[str] = collections.Counter()

    def run(self) -> float:
        """Take one step for each server that needs it; seconds until the next."""
        pauses = [IDLE]
        self._redrain_late_rows()
        for server in self._manager.members.servers:
            if server.id in self._registry.undrivable:
                continue  # unclaimed, so that a pool manager that has the driver can do it
            if server.state is ServerState.DRAINING:
                pauses.append(self._step(server, self._drain_page))
            elif server.id in self._manager.workers and (server.is_filling or server.state is ServerState.JOINING):
                pauses.append(self._step(server, self._join_page))
        return min(pauses)

    def _redrain_late_rows(self) -> None:
        """Drain removed servers again that have rows: a pool manager began these before it saw the removal."""
        manager = self._manager
        removed = {row.id: row for row in manager.members.servers if row.state is ServerState.REMOVED}
        late = manager.storage.read(server_store.with_rows, list(removed)) if removed else []
        for server_id in late:
            draining = server_store.in_state(removed[server_id], ServerState.DRAINING, manager.storage.now())
            manager.storage.run(server_store.save, draining, manager.storage.now())
        if late:
            self._registry.changed()

    def _step(self, server: PoolServer, take: Callable[[PoolServer], float]) -> float:
        storage, settings = self._manager.storage, self._manager.settings
        now, fresh = storage.now(), storage.read(server_store.SERVERS.get, server.id)
        until = now + timedelta(seconds=settings.claim_seconds)
        if fresh is None or fresh.state is not server.state:
            return IDLE
        claimed = storage.run(server_store.claim, fresh, settings.name, now, until)
        return IDLE if claimed is None else take(claimed)

    def _join_page(self, server: PoolServer) -> float:
        manager = self._manager
        former = self._registry.former.get(server.id)
        if former is not None:
            return self._delete_with_former_driver(server, former)
        waiting = manager.storage.read(server_store.waiting, server.id, self._window)
        if server.filled_to is None:
            if waiting or server.state is not ServerState.JOINING:
                return 4 * BUSY
            self._finish_join(server)
            return IDLE
        if waiting >= self._window:
            return BUSY
        page = self._page(server)
        with manager.reconciler.step((domain.id for domain in page), [server.id]) as step:
            for state in step.states.values():
                if (domain := state.on(server.id)) is not None:
                    state.change(*row_transitions.provision(domain, state.rows, server.id, step.now,
                                                            gone=server.state is ServerState.JOINING))
        if step.conflicts:
            return BUSY  # the same page once more
        more = len(page) == self._page_size
        if not (more and len(step.states) == len(page) or self._registry.refresh()):
            return IDLE  # the pool has another name by now, and its domains were not found by this one
        self._save(server, filled_to=page[-1].id if more else None, filled=server.filled + len(page))
        if not more:
            self._registry.changed()
        return 0.0

    def _delete_with_former_driver(self, server: PoolServer, former: Backend) -> float:
        """Delete a page of zones with the driver that the server had before; joining begins when all are deleted.

        All members of its catalog become new ones then: it would not take a zone from a catalog that it has already.
        """
        page = self._page(server)
        failed, waiting = self._delete(former, page)
        if waiting or failed and self._try_again(server):
            return REFUSED
        if failed:
            LOG.warning('%s: the driver that it had before could not delete %d zones: %s', server.label,
                        len(failed), failed[0].error)
        if len(page) == self._page_size:
            self._save(server, filled_to=page[-1].id)
        elif not self._registry.refresh():
            return IDLE
        elif self._manager.storage.run(_start_join, server, self._manager.storage.now()):
            self._registry.forget_former(server.id)
        return 0.0

    def _finish_join(self, server: PoolServer) -> None:
        note = f'it has joined with {server.filled} zones'
        now = self._manager.storage.now()
        active = server_store.in_state(server, ServerState.ACTIVE, now, note=note, joined_at=now)
        if self._manager.storage.run(server_store.save, active, now):
            self._registry.changed()

    def _drain_page(self, server: PoolServer) -> float:
        manager = self._manager
        ids = manager.storage.read(server_store.domains_on, server.id, self._page_size)
        if not ids:
            self._finish_drain(server)
            return IDLE
        if manager.storage.read(server_store.any_claimed, server.id, ids, manager.storage.now()):
            return 4 * BUSY
        pause = 0.0
        if server.delete_zones:
            worker = manager.all_workers.get(server.id)
            backend = self._registry.former.get(server.id) if worker is None else worker.backend
            if backend is None:
                return self._stop_deleting(server, 'no pool manager has its settings any more')
            domains = manager.storage.read(domain_store.get_many, ids)
            failed, waiting = self._delete(backend, list(domains.values()))
            if failed and self._try_again(server):
                return REFUSED
            if any(result.unreachable for result in failed):
                return self._stop_deleting(server, failed[0].error or '')
            self._undeleted[server.id] += len(failed)
            # Deletions whose plans wait, or whose names are claimed, are tried again: their rows stay.
            ids = [domain_id for domain_id in ids if domain_id not in waiting]
            pause = REFUSED if waiting else 0.0
        manager.storage.run(server_store.purge, server.id, ids)
        manager.reconciler.weigh_again(ids)
        return pause

    def _stop_deleting(self, server: PoolServer, why: str) -> float:
        """Leave the zones on the server; only its rows are purged."""
        self._save(server, delete_zones=False, note=f'its zones were left on it: {why}')
        return BUSY

    def _finish_drain(self, server: PoolServer) -> None:
        undeleted = self._undeleted.pop(server.id, 0)
        note = server.note if not undeleted else f'{undeleted} zones could not be deleted and were left on it'
        now = self._manager.storage.now()
        removed = server_store.in_state(server, ServerState.REMOVED, now, note=note or 'it was drained',
                                        delete_zones=server.delete_zones and not undeleted)
        # Nobody would apply them once they were approved.
        self._manager.storage.run(plan_store.drop_of_server, server.id, f'{server.label} has left the pool', now)
        if self._manager.storage.run(server_store.save, removed, now):
            self._registry.forget_former(server.id)
            self._registry.changed()

    def _delete(self, backend: Backend, domains: Sequence[Domain]) -> tuple[list[CallResult], set[str]]:
        """Delete them; the failures, and the ids of domains whose plans wait or whose names others have claimed."""
        failed: list[CallResult] = []
        waiting: set[str] = set()
        for domain, done in server_zones.remove(self._manager, backend, domains):
            if done is None or done.result.reason is Reason.PARKED:
                waiting.add(domain.id)
            elif not done.result.ok:
                failed.append(done.result)
        return failed, waiting

    def _page(self, server: PoolServer) -> list[Domain]:
        after_id = server.filled_to or ''
        return self._manager.storage.read(domain_store.page, self._manager.pool.name, after_id, self._page_size)

    def _save(self, server: PoolServer, **values: Any) -> bool:
        storage = self._manager.storage
        return storage.run(server_store.save, dataclasses.replace(server, **values), storage.now())

    def _try_again(self, server: PoolServer) -> bool:
        """Count a failure of the server; whether to try again.  The count starts again if not."""
        self._failures[server.id] += 1
        if self._failures[server.id] < PATIENCE:
            return True
        del self._failures[server.id]
        return False


def _start_join(tx: Tx, server: PoolServer, now: datetime) -> bool:
    """Start joining, with new ids for all members of the server's catalog; whether no other manager was first."""
    serial = catalog.bump(tx, server.pool_id, now)
    return server_store.save(tx, dataclasses.replace(
        server, filled_to='', filled=0, catalog_epoch=server.catalog_epoch + 1, catalog_from=serial), now)
