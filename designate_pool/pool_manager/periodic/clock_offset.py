"""The offset of this host's clock from the database's, which is the reference for all pool managers.

When a row is due and when a claim ends is written by the clock of the writer.  If a pool manager whose clock is ahead
dies, its claims last that much longer, until one whose clock is right takes them back
(:meth:`designate_pool.pool_manager.manager.Manager.correct_times`); those of one whose clock is behind are taken over
that much sooner.  Up to two seconds do no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from designate_pool import metrics
from designate_pool.model import utcnow
from designate_pool.outage_log import OutageLog
from designate_pool.storage.reporting.clock_offset import MOST, offset
from designate_pool.storage.sql.database import Storage

LOG = logging.getLogger(__name__)


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
