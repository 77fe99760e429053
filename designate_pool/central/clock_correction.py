"""Corrects times that a Central with a clock far ahead has written: when claims of imports end, and those of refreshes
of secondary domains, and when these are due.  Pool managers do so with theirs.

A claim that is still held stays so: of an import it is renewed long before its new end.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from designate_pool.central.import_worker import LONGEST_CLAIM
from designate_pool.storage.reporting.clock_offset import MOST, TIMES_AHEAD, offset
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import secondary_zones, zone_tasks

LOG = logging.getLogger(__name__)
#: Seconds between two runs.
INTERVAL = 60.0
BATCH = 2000


class ClockCorrection:
    """
    :param clock: seconds since 1970
    :param batch: how many secondary domains are looked at in one run
    """

    def __init__(self, storage: Storage, clock: Callable[[], float], batch: int = BATCH) -> None:
        self._storage = storage
        self._clock = clock
        self._batch = batch
        self._next_id = ''
        self._stopping = threading.Event()

    def loop(self) -> None:
        """Run once a minute, until :meth:`stop`."""
        while not self._stopping.wait(INTERVAL):
            try:
                self.correct()
            except Exception:  # the loop outlives whatever ails the database
                LOG.exception('times of clocks ahead could not be looked for; tried again in %g s', INTERVAL)

    def correct(self) -> None:
        """Correct times that cannot be right, if the clock here agrees with the database's."""
        if abs(offset(self._storage, self._now)) > MOST:
            return
        now = self._now()
        until = now + timedelta(seconds=LONGEST_CLAIM)
        imports = self._storage.run_autocommitted(zone_tasks.shorten_claims, until, until + TIMES_AHEAD)
        refreshes, self._next_id = self._storage.run_autocommitted(
            secondary_zones.correct_times, now, now + TIMES_AHEAD, self._next_id, self._batch)
        if imports or refreshes:
            LOG.warning('the times of %d imports and of %d secondary zones are corrected, which a Central with a clock '
                        'far ahead has written; keep all clocks in step with NTP', imports, refreshes)

    def stop(self) -> None:
        """End the loop."""
        self._stopping.set()

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), timezone.utc)
