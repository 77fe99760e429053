"""A cache of packed zones, so that the transfer to the next server costs only sending."""

from __future__ import annotations

import collections
import threading
import weakref
from collections.abc import Callable

from designate_pool.minidns.zones.packed_zone import PackedZone

#: Octets of memory for a zone beside its records; for small zones that is the larger part.
ZONE_OVERHEAD = 600


class ZoneCache:
    """An LRU cache of the latest packed zone of each key, limited in octets; safe for threads.

    A zone larger than the budget is found as long as somebody holds it, so that all who wait for it send one copy.
    """

    def __init__(self, budget: int, zone_overhead: int = ZONE_OVERHEAD) -> None:
        self._budget = budget
        self._zone_overhead = zone_overhead
        self._zones: collections.OrderedDict[str, PackedZone] = collections.OrderedDict()
        self._large_zones: weakref.WeakValueDictionary[str, PackedZone] = weakref.WeakValueDictionary()
        self._cached_bytes = 0
        self._lock = threading.Lock()
        self._key_locks: weakref.WeakValueDictionary[str, threading.Lock] = weakref.WeakValueDictionary()

    def get_or_pack(self, key: str, serial: int, pack: Callable[[], PackedZone | None]) -> PackedZone | None:
        """The cached zone of *key* at *serial*; otherwise what *pack* returns, called once for concurrent callers."""
        zone = self.get(key, serial)
        if zone is not None:
            return zone
        with self._lock:
            key_lock = self._key_locks.setdefault(key, threading.Lock())
        with key_lock:  # callers that wait here find it cached
            zone = self.get(key, serial)
            if zone is None:
                zone = pack()
                if zone is not None:
                    self.put(key, zone)
            return zone

    def get(self, key: str, serial: int) -> PackedZone | None:
        with self._lock:
            zone = self._zones.get(key)
            if zone is not None and zone.serial == serial:
                self._zones.move_to_end(key)
                return zone
            zone = self._large_zones.get(key)
            return zone if zone is not None and zone.serial == serial else None

    def latest(self, key: str) -> PackedZone | None:
        """The zone of *key*, whatever its serial."""
        with self._lock:
            return self._zones.get(key)

    def put(self, key: str, zone: PackedZone) -> None:
        """Cache *zone* and evict others as needed; one larger than the budget is kept while somebody holds it."""
        size = zone.size + self._zone_overhead
        with self._lock:
            if size > self._budget:
                self._large_zones[key] = zone
                return
            self._remove(key)
            self._zones[key] = zone
            self._cached_bytes += size
            while self._cached_bytes > self._budget:
                self._remove(next(iter(self._zones)))

    def _remove(self, key: str) -> None:
        zone = self._zones.pop(key, None)
        if zone is not None:
            self._cached_bytes -= zone.size + self._zone_overhead
