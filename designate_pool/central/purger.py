"""The loop that removes what has been deleted long enough, and has what was interrupted go on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from designate_pool.storage.operations import heartbeats, rrset_ownership
from designate_pool.storage.reporting import purge
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import journal, nesting, plans, zone_tasks

LOG = logging.getLogger(__name__)
#: Seconds between two turns.
INTERVAL = 300.0
#: Domains looked at, and rows removed, in one transaction.
BITE = 500
#: Transactions in one turn.
BITES = 40
#: Domains looked at in one transaction that only reads.
GLANCE = 5000
#: How long expired plans are kept at least: those applied in the last hour are still counted.
PLANS_KEPT = timedelta(hours=2)
#: How long a service that is silent is shown at least.
SERVICES_KEPT = timedelta(days=1)
#: How long a zone file may take to arrive; it is in the API already when its task begins.
ARRIVING = timedelta(hours=1)


class Purger:
    """
    :param retention: seconds that what is deleted is kept
    :param clock: seconds since 1970
    :param task_retention: seconds that imports and exports are kept after they ended
    :param journal_age: seconds that changes are kept for incremental transfers
    :param resume: carries out what others have begun and not ended
    """

    def __init__(self, storage: Storage, retention: float, clock: Callable[[], float],
                 task_retention: float = 86400, journal_age: float = 86400,
                 resume: Callable[[], None] = lambda: None) -> None:
        self._storage = storage
        self._retention = retention
        self._clock = clock
        self._task_retention = task_retention
        self._journal_age = journal_age
        self._resume = resume
        self._next_id = self._next_dead = ''
        self._stopping = threading.Event()

    def loop(self) -> None:
        """A turn every few minutes, until :meth:`stop`."""
        self._fill_names()
        self.settle_estates()
        while not self._stopping.wait(INTERVAL):
            try:
                self.turn()
                self._fill_names()
                self.settle_estates()
                self._resume()
            except Exception:  # the loop outlives whatever ails the database
                LOG.exception('housekeeping failed; tried again in %g s', INTERVAL)

    def turn(self) -> int:
        """Take a few bites, going on where the last turn ended; how many rows were removed."""
        now = datetime.fromtimestamp(self._clock(), timezone.utc)
        before = now - timedelta(seconds=self._retention)
        removed = self._storage.run(plans.expire, min(before, now - PLANS_KEPT), BITE)
        removed += self._storage.run(heartbeats.forget, min(before, now - SERVICES_KEPT))
        removed += self._storage.run(zone_tasks.expire, now - timedelta(seconds=self._task_retention),
                                     now - ARRIVING, BITE)
        for _ in range(BITES):
            stale = self._storage.run(journal.expire, now - timedelta(seconds=self._journal_age), BITE)
            removed += stale
            if stale < BITE or self._stopping.is_set():
                break
        for _ in range(BITES):
            bite = self._storage.run(purge.purge, before, BITE, self._next_id)
            removed += bite.removed
            self._next_id = bite.next_id
            if not bite.next_id or self._stopping.is_set():
                break
        return removed

    def stop(self) -> None:
        self._stopping.set()

    def _fill_names(self) -> None:
        """Complete what older programs have written, and what they had when the database was upgraded."""
        try:
            while not self._stopping.is_set() and self._storage.run(nesting.fill, BITE) == BITE:
                pass
        except Exception:  # names are looked up without it, only more slowly
            LOG.exception('housekeeping could not complete the table of zone names; tried again in %g s', INTERVAL)

    def settle_estates(self) -> None:
        """Have what dead domains own on servers that are fed by records belong to who has their names now."""
        try:
            for _ in range(BITES):
                found, self._next_dead = self._storage.read(rrset_ownership.look, self._next_dead, GLANCE)
                for domain_id in found:
                    for estate in self._storage.read(rrset_ownership.dead, domain_id):
                        while not self._stopping.is_set() and self._storage.run(rrset_ownership.settle, estate, BITE):
                            pass
                if not self._next_dead or self._stopping.is_set():
                    break
        except Exception:  # what is left stays as it is
            LOG.exception('housekeeping could not clear what deleted zones own on servers; tried again in %g s',
                          INTERVAL)
