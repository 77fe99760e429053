"""Work beside the requests: what was deleted long ago is purged, and interrupted work is resumed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta

from designate_pool.central import domain_changes, events, transactions, zone_moves
from designate_pool.central.cast_queue import CastQueue
from designate_pool.central.rules import pools
from designate_pool.model import Context, Domain, new_id
from designate_pool.settings import CentralSettings
from designate_pool.storage.operations import heartbeats
from designate_pool.storage.reporting import purge
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import journal, nameserver_updates, plans, zone_tasks
from designate_pool.storage.zones.nameserver_updates import NameserverUpdate

LOG = logging.getLogger(__name__)
#: Seconds between two runs.
INTERVAL = 300.0
#: Domains examined, or rows removed, in one transaction.
BATCH = 500
#: Transactions in one run.
MAX_BATCHES = 40
#: How long expired plans are kept at least: those applied in the last hour count towards the limit of deletes.
PLANS_KEPT = timedelta(hours=2)
#: How long a service without heartbeats is listed at least.
SERVICES_KEPT = timedelta(days=1)
#: How long the upload of a zone file into the database may take; its task exists before the upload begins.
ARRIVING = timedelta(hours=1)


class Backlog:
    """Work that takes many transactions, and that each Central resumes where another has not finished it."""

    def __init__(self, storage: Storage, casts: CastQueue, event_sender: events.EventSender) -> None:
        self._storage = storage
        self._casts = casts
        self._events = event_sender
        self._now = storage.now

    def resume(self) -> None:
        """Resume everything."""
        try:
            self.resume_renewals()
        finally:
            self.delete_from_former_pools()

    def resume_renewals(self) -> None:
        """Complete updates of name servers that another Central began and did not finish."""
        now = self._now()
        while (renewal := self._storage.run(nameserver_updates.claim, now, now + pools.CLAIM)) is not None:
            self.update_name_servers(Context(request_id=renewal.request_id, all_projects=True), renewal)

    def update_name_servers(self, context: Context, renewal: NameserverUpdate) -> None:
        """Rewrite SOA and NS of the pool's domains, one page per transaction."""
        after_id: str | None = renewal.after_id
        while after_id is not None:
            now = self._now()
            changed, after_id = transactions.run(self._storage, domain_changes.update_name_servers, renewal,
                                                 after_id, pools.PAGE, now, now + pools.CLAIM)
            for domain in changed:
                self._events.zone(events.UPDATE, domain)
            self._casts.put(context, changed)

    def delete_from_former_pools(self) -> None:
        """Delete domains from pools that they were moved from and that have kept them long enough."""
        was_one = True
        while was_one:
            was_one, leftover = transactions.run(self._storage, zone_moves.delete_next_from_former_pool, self._now(),
                                                 new_id())
            self.delete_leftover(leftover)

    def delete_leftover(self, leftover: Domain | None) -> None:
        """Have the servers of a pool delete their copy of a domain that was moved."""
        if leftover is not None:
            LOG.info('%s was moved to another pool and is deleted from the servers of %s', leftover.name,
                     leftover.pool_name)
            self._casts.put(Context(request_id=leftover.request_id, all_projects=True), [leftover])


class Purger:
    """Purges, each *interval* seconds, what was deleted long ago; has *resume* complete what other Centrals began."""

    def __init__(self, storage: Storage, settings: CentralSettings,
                 resume: Callable[[], None] = lambda: None, interval: float = INTERVAL) -> None:
        self._storage = storage
        self._settings = settings
        self._resume = resume
        self._interval = interval
        self._next_id = ''
        self._stopping = threading.Event()

    def loop(self) -> None:
        """Run every few minutes, until :meth:`stop`."""
        while not self._stopping.wait(self._interval):
            for work in (self.purge, self._resume):
                try:
                    work()
                except Exception:  # the loop, and what else there is to do, outlives whatever ails the database
                    LOG.exception('housekeeping failed; tried again in %g s', self._interval)

    def purge(self) -> int:
        """Remove some batches, from where the last run ended; how many rows were removed."""
        now = self._storage.now()
        before = now - timedelta(seconds=self._settings.deleted_retention)
        removed = self._storage.run(plans.expire, min(before, now - PLANS_KEPT), BATCH)
        removed += self._storage.run(heartbeats.forget, min(before, now - SERVICES_KEPT))
        removed += self._storage.run(zone_tasks.expire, now - timedelta(seconds=self._settings.task_retention),
                                     now - ARRIVING, BATCH)
        for _ in range(MAX_BATCHES):
            stale = self._storage.run(journal.expire, now - timedelta(seconds=self._settings.journal_age), BATCH)
            removed += stale
            if stale < BATCH or self._stopping.is_set():
                break
        for _ in range(MAX_BATCHES):
            batch = self._storage.run(purge.purge, before, BATCH, self._next_id)
            removed += batch.removed
            self._next_id = batch.next_id
            if not batch.next_id or self._stopping.is_set():
                break
        return removed

    def stop(self) -> None:
        """End the loop."""
        self._stopping.set()
