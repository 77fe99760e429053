"""When to claim due rows next: rows that were written here need not wait for the next regular interval.

Rows that others have written are left to them, and to the regular interval if they end.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from datetime import datetime, timedelta

#: Later times are left to the regular interval.
HORIZON = timedelta(seconds=60)
#: Times are rounded up to multiples of one slot, so that there are few of them however many rows are written.
SLOTS_PER_SECOND = 100
_MOST_SLOTS = 2 * SLOTS_PER_SECOND * int(HORIZON.total_seconds())


class DueTimer:
    """Times in the near future."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: set[int] = set()
        self._sooner = threading.Event()

    def set(self, times: Iterable[datetime | None], now: datetime) -> None:
        """Add those of *times* that are after *now* and before the horizon."""
        slots = {math.ceil(time.timestamp() * SLOTS_PER_SECOND) for time in times
                 if time is not None and now < time < now + HORIZON}
        with self._lock:
            is_sooner = min(slots, default=math.inf) < min(self._slots, default=math.inf)
            self._slots |= slots
            if len(self._slots) > _MOST_SLOTS:
                self._drop_past(now)
        if is_sooner:
            self.wake()

    def until_next(self, looked_at: datetime, now: datetime, most: float) -> float:
        """Seconds until the next time, *most* at most, none if it is over.

        :param looked_at: when due rows were looked for; times until then are dropped, those since then are not
        """
        with self._lock:
            self._drop_past(looked_at)
            return max(0.0, min(most, min(self._slots, default=math.inf) / SLOTS_PER_SECOND - now.timestamp()))

    def wait(self, seconds: float) -> None:
        """Wait; at most until a time is added that is sooner than all others, or :meth:`wake` is called."""
        self._sooner.wait(seconds)
        self._sooner.clear()

    def wake(self) -> None:
        """End the present wait, or the next one at once."""
        self._sooner.set()

    def _drop_past(self, now: datetime) -> None:
        self._slots = {slot for slot in self._slots if slot > now.timestamp() * SLOTS_PER_SECOND}
