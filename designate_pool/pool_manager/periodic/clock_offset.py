"""The offset of this host's clock from the database's, which is the reference for all pool managers.

When a row is due and when a claim ends is written by the clock of the writer.  If a pool manager whose clock is ahead
dies, its claims last that much longer, until one whose clock is right takes them back
(:meth:`designate_pool.pool_manager.manager.Manager.correct_times`); those of one whose clock is behind are taken over
that much sooner.  Up to :data:`MOST` seconds do no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from designate_pool import metrics
from designate_pool.model import utcnow
from designate_pool.outage_log import OutageLog
from designate_pool.storage.reporting import gauges
from designate_pool.storage.sql.database import Storage

LOG = logging.getLogger(__name__)

#: Largest harmless offset, seconds.
MOST = 2.0


class ClockOffset:
    """Compares the clocks; logs when they begin to differ and when they agree again."""

    def __init__(self, storage: Storage, now: Callable[[], datetime] = utcnow) -> None:
        self._storage = storage
        self._now = now
        self._outage = OutageLog(
            LOG, "this host's clock is %.1f s %s the database's; more than %g s delays taking over the work of a dead "
            'pool manager: keep all clocks in step with NTP', "this host's clock is in step with the database's again")

    def check(self) -> bool:
        """Compare them; whether they agree."""
        ahead = offset(self._storage, self._now)
        metrics.CLOCK_AHEAD.set(ahead)
        if abs(ahead) > MOST:
            self._outage.failed(abs(ahead), 'ahead of' if ahead > 0 else 'behind', MOST)
            return False
        self._outage.ended()
        return True


def offset(storage: Storage, now: Callable[[], datetime] = utcnow) -> float:
    """Seconds, at least, that this host's clock is ahead of the database's; 0 if the database has no clock."""
    before = now()
    there = storage.read(gauges.clock)
    after = now()
    if there is None or before <= there <= after:
        return 0.0
    # The database read its clock at some time between the two: the smallest possible offset.
    return (before - there).total_seconds() if there < before else (after - there).total_seconds()
