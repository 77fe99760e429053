"""Packed zones that are kept, so that the next server costs a copy."""

from __future__ import annotations

import collections
import threading

from designate_pool.minidns.packing import PackedZone


class Kept:
    """Packed zones by (domain id, serial), the latest used, within a number of octets; threads may share it."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._zones: collections.OrderedDict[tuple[str, int], PackedZone] = collections.OrderedDict()
        self._used = 0
        self._lock = threading.Lock()

    def get(self, domain_id: str, serial: int) -> PackedZone | None:
        with self._lock:
            zone = self._zones.get((domain_id, serial))
            if zone is not None:
                self._zones.move_to_end((domain_id, serial))
            return zone

    def put(self, zone: PackedZone) -> None:
        """Keep *zone*, and let older ones go that no longer fit; one larger than the whole budget is not kept."""
        if zone.size > self._budget:
            return
        with self._lock:
            former = self._zones.pop((zone.domain_id, zone.serial), None)
            if former is not None:
                self._used -= former.size
            self._zones[zone.domain_id, zone.serial] = zone
            self._used += zone.size
            while self._used > self._budget:
                _, oldest = self._zones.popitem(last=False)
                self._used -= oldest.size
