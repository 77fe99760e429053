"""When to claim due rows next: rows that were written here need not wait for the next regular interval."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterable
from datetime import datetime, timedelta

#: Later times are left to the regular interval.
HORIZON = timedelta(seconds=60)


class DueTimer:
    """Times in the near future, the soonest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: list[datetime] = []

    def set(self, times: Iterable[datetime | None], now: datetime) -> None:
        """Add those of *times* that are after *now* and before the horizon."""
        with self._lock:
            for time in times:
                if time is not None and now < time < now + HORIZON:
                    heapq.heappush(self._times, time)

    def until_next(self, now: datetime, most: float) -> float:
        """Seconds until the next time, *most* at most; past times are dropped."""
        with self._lock:
            while self._times and self._times[0] <= now:
                heapq.heappop(self._times)
            return min(most, (self._times[0] - now).total_seconds()) if self._times else most
