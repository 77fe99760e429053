"""When to claim due rows next: rows that were written here need not wait for the next regular interval.

Rows that others have written are left to them, and to the look of the loop *unsettled* if they end.
"""

from __future__ import annotations

import heapq
import math
import threading
from collections.abc import Hashable, Mapping
from datetime import datetime, timedelta

from designate_pool.concurrency import Wakeable

#: Later times are left to the regular interval.
HORIZON = timedelta(seconds=60)
#: How many more slots than have rows are kept in their heap.
_SPARE = 1000
#: Times are rounded up to multiples of one slot, so that rows written together are claimed together.
SLOTS_PER_SECOND = 100


class DueTimer(Wakeable):
    """One time in the near future for each row, at most; one that is sooner than all others wakes the loop."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._slots: dict[int, set[Hashable]] = {}
        self._slot_of: dict[Hashable, int] = {}
        self._order: list[int] = []  # a heap of all slots, and of some that are empty by now

    def set(self, times: Mapping[Hashable, datetime | None], now: datetime, only_sooner: bool = False) -> None:
        """Replace the times of these rows; one that is not after *now* and before the horizon is no time.

        :param only_sooner: leave a row's time where the new one is later or none
        """
        with self._lock:
            before = self._first()
            for key, time in times.items():
                slot = None
                if time is not None and now < time < now + HORIZON:
                    slot = math.ceil(time.timestamp() * SLOTS_PER_SECOND)
                if not only_sooner or slot is not None and slot < self._slot_of.get(key, math.inf):
                    self._move(key, slot)
            is_sooner = self._first() < before
        if is_sooner:
            self.wake()

    def until_next(self, looked_at: datetime, now: datetime, most: float) -> float:
        """Seconds until the next time, *most* at most, none if it is over.

        :param looked_at: when due rows were looked for; times until then are dropped, those since then are not
        """
        with self._lock:
            while self._first() <= looked_at.timestamp() * SLOTS_PER_SECOND:
                for key in self._slots.pop(self._order[0]):
                    del self._slot_of[key]
            return max(0.0, min(most, self._first() / SLOTS_PER_SECOND - now.timestamp()))

    def _first(self) -> float:
        while self._order and self._order[0] not in self._slots:
            heapq.heappop(self._order)
        return self._order[0] if self._order else math.inf

    def _move(self, key: Hashable, slot: int | None) -> None:
        old = self._slot_of.pop(key, None)
        if old is not None:
            keys = self._slots[old]
            keys.discard(key)
            if not keys:
                del self._slots[old]
        if slot is not None:
            self._slot_of[key] = slot
            if slot not in self._slots:
                self._slots[slot] = set()
                heapq.heappush(self._order, slot)
                if len(self._order) > 2 * len(self._slots) + _SPARE:
                    self._order = sorted(self._slots)
            self._slots[slot].add(key)
