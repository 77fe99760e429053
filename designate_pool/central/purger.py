"""The loop that purges what was deleted long ago, and resumes what was interrupted."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from designate_pool.storage.operations import heartbeats
from designate_pool.storage.reporting import purge
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import journal, plans, zone_tasks

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


@dataclasses.dataclass(frozen=True, slots=True)
class Retention:
    """For how many seconds things are kept.

    :ivar domains: deleted ones and their records
    :ivar tasks: finished imports and exports
    :ivar journal: changes, for incremental transfers
    """

    domains: float = 86400
    tasks: float = 86400
    journal: float = 86400


class Purger:
    """Purges what was deleted long ago, and has interrupted work resumed.

    :param clock: seconds since 1970
    :param resume: completes what other Centrals began and did not finish
    :param interval: seconds between two runs
    """

    def __init__(self, storage: Storage, retention: Retention, clock: Callable[[], float],
                 resume: Callable[[], None] = lambda: None, interval: float = INTERVAL) -> None:
        self._storage = storage
        self._retention = retention
        self._clock = clock
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
        now = datetime.fromtimestamp(self._clock(), timezone.utc)
        before = now - timedelta(seconds=self._retention.domains)
        removed = self._storage.run(plans.expire, min(before, now - PLANS_KEPT), BATCH)
        removed += self._storage.run(heartbeats.forget, min(before, now - SERVICES_KEPT))
        removed += self._storage.run(zone_tasks.expire, now - timedelta(seconds=self._retention.tasks),
                                     now - ARRIVING, BATCH)
        for _ in range(MAX_BATCHES):
            stale = self._storage.run(journal.expire, now - timedelta(seconds=self._retention.journal), BATCH)
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
