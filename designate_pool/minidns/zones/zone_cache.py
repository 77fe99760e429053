"""A cache of packed zones, so that the transfer to the next server costs only sending."""

from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from designate_pool.minidns.zones.packed_zone import PackedZone

#: Octets of memory for a zone beside its records; for small zones that is the larger part.
ZONE_OVERHEAD = 600
V = TypeVar('V')


class ZoneCache:
    """An LRU cache of the latest packed zone of each key, limited in octets; safe for threads.

    Octets reserved for zones that are being read count as well, so that memory stays within the budget.

    :param zone_overhead: octets counted for each zone beside its records
    """

    def __init__(self, budget: int, zone_overhead: int = ZONE_OVERHEAD) -> None:
        self.budget = budget
        self._zone_overhead = zone_overhead
        self._zones: collections.OrderedDict[str, PackedZone] = collections.OrderedDict()
        self._cached_bytes = self._reserved_bytes = 0
        self._lock = threading.Lock()
        self._key_locks: dict[str, tuple[threading.Lock, int]] = {}

    def get_or_pack(self, key: str, serial: int, pack: Callable[[], PackedZone | None]) -> PackedZone | None:
        """The cached zone of *key* at *serial*; otherwise what *pack* returns, called once for concurrent callers.

        :raises Exception: what *pack* raises
        """
        zone = self.get(key, serial)
        if zone is not None:
            return zone
        with self.lock_key(key):  # callers that wait here find it cached
            zone = self.get(key, serial)
            if zone is None:
                zone = pack()
                if zone is not None:
                    self.put(key, zone)
            return zone

    def get(self, key: str, serial: int) -> PackedZone | None:
        with self._lock:
            zone = self._zones.get(key)
            if zone is None or zone.serial != serial:
                return None
            self._zones.move_to_end(key)
            return zone

    def latest(self, key: str) -> PackedZone | None:
        """The zone of *key*, whatever its serial."""
        with self._lock:
            return self._zones.get(key)

    def put(self, key: str, zone: PackedZone) -> None:
        """Cache *zone* and evict others as needed; nothing is done when it can never fit beside what is reserved."""
        size = zone.size + self._zone_overhead
        with self._lock:
            if self._reserved_bytes + size > self.budget:
                return
            self._remove(key)
            self._zones[key] = zone
            self._cached_bytes += size
            self._evict()

    def reserve(self, octets: int) -> bool:
        """Reserve octets for a zone that is being read; False when they do not fit beside other reservations."""
        with self._lock:
            if self._reserved_bytes + octets > self.budget:
                return False
            self._reserved_bytes += octets
            self._evict()
            return True

    def release(self, octets: int) -> None:
        """Give back reserved octets."""
        with self._lock:
            self._reserved_bytes -= octets

    @contextlib.contextmanager
    def lock_key(self, key: str) -> Iterator[None]:
        """A lock for *key*."""
        with self._lock:
            lock, waiting = self._key_locks.get(key, (threading.Lock(), 0))
            self._key_locks[key] = lock, waiting + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, waiting = self._key_locks.pop(key)
                if waiting > 1:
                    self._key_locks[key] = lock, waiting - 1

    def _evict(self) -> None:
        while self._cached_bytes + self._reserved_bytes > self.budget:
            self._remove(next(iter(self._zones)))

    def _remove(self, key: str) -> None:
        zone = self._zones.pop(key, None)
        if zone is not None:
            self._cached_bytes -= zone.size + self._zone_overhead


class BoundedDict(Generic[V]):
    """Values by key; those put longest ago are dropped beyond :data:`MAX_KEYS`.  Safe for threads."""

    MAX_KEYS = 10000

    def __init__(self) -> None:
        self._values: dict[str, V] = {}
        self._lock = threading.Lock()

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def get(self, key: str) -> V | None:
        return self._values.get(key)

    def put(self, key: str, value: V) -> None:
        """Keep *value*; the oldest is dropped when there are too many."""
        with self._lock:
            self._values.pop(key, None)
            self._values[key] = value
            if len(self._values) > self.MAX_KEYS:
                del self._values[next(iter(self._values))]

    def discard(self, key: str) -> None:
        """Forget *key*."""
        with self._lock:
            self._values.pop(key, None)


class BoundedSet(BoundedDict[None]):
    """The keys alone."""

    def add(self, key: str) -> None:
        """Keep *key*."""
        self.put(key, None)
