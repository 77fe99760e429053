"""When to claim due rows next: rows that were written here need not wait for the next regular interval.

Rows that others have written are left to them, and to the look of the loop *unsettled* if they end.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Mapping
from datetime import datetime, timedelta

#: Later times are left to the regular interval.
HORIZON = timedelta(seconds=60)
#: Times are rounded up to multiples of one slot, so that there are few of them however many rows are written.
SLOTS_PER_SECOND = 100


class DueTimer:
    """One time in the near future for each row, at most; about 232 octets for each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[int, set[Hashable]] = {}
        self._slot_of: dict[Hashable, int] = {}
        self._sooner = threading.Event()

    def set(self, times: Mapping[Hashable, datetime | None], now: datetime) -> None:
        """Replace the times of these rows; one that is not after *now* and before the horizon is no time."""
        with self._lock:
            before = min(self._slots, default=math.inf)
            for key, time in times.items():
                self._discard(key)
                if time is not None and now < time < now + HORIZON:
                    slot = self._slot_of[key] = math.ceil(time.timestamp() * SLOTS_PER_SECOND)
                    self._slots.setdefault(slot, set()).add(key)
            is_sooner = min(self._slots, default=math.inf) < before
        if is_sooner:
            self.wake()

    def until_next(self, looked_at: datetime, now: datetime, most: float) -> float:
        """Seconds until the next time, *most* at most, none if it is over.

        :param looked_at: when due rows were looked for; times until then are dropped, those since then are not
        """
        with self._lock:
            for slot in [slot for slot in self._slots if slot <= looked_at.timestamp() * SLOTS_PER_SECOND]:
                for key in self._slots.pop(slot):
                    del self._slot_of[key]
            return max(0.0, min(most, min(self._slots, default=math.inf) / SLOTS_PER_SECOND - now.timestamp()))

    def wait(self, seconds: float) -> None:
        """Wait; at most until a time is added that is sooner than all others, or :meth:`wake` is called."""
        self._sooner.wait(seconds)
        self._sooner.clear()

    def wake(self) -> None:
        """End the present wait, or the next one at once."""
        self._sooner.set()

    def _discard(self, key: Hashable) -> None:
        slot = self._slot_of.pop(key, None)
        if slot is not None:
            keys = self._slots[slot]
            keys.discard(key)
            if not keys:
                del self._slots[slot]
