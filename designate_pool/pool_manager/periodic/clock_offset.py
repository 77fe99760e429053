"""How far this host's clock is from the database's, by which those of all pool managers are compared.

What is due, and how long a claim lasts, is written by the clock of whoever writes it.  A pool manager whose clock is
ahead keeps others from what it has claimed for as much longer, should it die; one that is behind has its claims taken
over as much sooner.  Up to :data:`MOST` seconds that does no harm.
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

#: Seconds that two clocks may differ.
MOST = 2.0


class ClockOffset:
    """Looks at the clocks, and tells when they come to differ and when they do no more."""

    def __init__(self, storage: Storage, now: Callable[[], datetime] = utcnow) -> None:
        self._storage = storage
        self._now = now
        self._outage = OutageLog(
            LOG, "this host's clock is %.1f s %s the database's; more than %g s delays taking over the work of a dead "
            'pool manager: keep all clocks in step with NTP', "this host's clock is in step with the database's again")

    def check(self) -> None:
        ahead = offset(self._storage, self._now)
        metrics.CLOCK_AHEAD.set(ahead)
        if abs(ahead) > MOST:
            self._outage.failed(abs(ahead), 'ahead of' if ahead > 0 else 'behind', MOST)
        else:
            self._outage.ended()


def offset(storage: Storage, now: Callable[[], datetime] = utcnow) -> float:
    """Seconds that this host's clock is ahead of the database's, as far as that can be told; 0 where it has none."""
    before = now()
    there = storage.ask(gauges.clock)
    after = now()
    if there is None or before <= there <= after:
        return 0.0
    # The answer was made somewhere between the two: of what is possible the least is told.
    return (before - there).total_seconds() if there < before else (after - there).total_seconds()
