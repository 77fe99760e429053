"""Packed zones that are kept, so that the next server costs a copy."""

from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Callable, Iterator

from designate_pool.minidns.zones.packing import PackedZone

#: Octets that a zone takes up beside those of its records; of small zones it is the most.
EACH = 600


class ZoneCache:
    """The latest packed zone of each key, those used last, within a number of octets; threads may share it.

    What is gathered to be kept counts as well, so that the octets are never more than the budget.

    :param each: octets that are counted for a zone beside its records
    """

    def __init__(self, budget: int, each: int = EACH) -> None:
        self.budget = budget
        self._each = each
        self._zones: collections.OrderedDict[str, PackedZone] = collections.OrderedDict()
        self._held = self._reserved = 0
        self._lock = threading.Lock()
        self._busy: dict[str, tuple[threading.Lock, int]] = {}

    def get_or_pack(self, key: str, serial: int, pack: Callable[[], PackedZone | None]) -> PackedZone | None:
        """The zone of *key* at *serial*; what *pack* gives where it is not kept, made once for all who ask meanwhile.

        :raises Exception: what *pack* raises
        """
        kept = self.get(key, serial)
        if kept is not None:
            return kept
        with self.alone(key):  # the others that ask for it now find it kept
            kept = self.get(key, serial)
            if kept is None:
                kept = pack()
                if kept is not None:
                    self.put(key, kept)
            return kept

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
        """Keep *zone*, and let older ones go that no longer fit; one for which there is no room displaces nothing."""
        size = zone.size + self._each
        with self._lock:
            if self._reserved + size > self.budget:
                return
            self._forget(key)
            self._zones[key] = zone
            self._held += size
            self._make_room()

    def reserve(self, octets: int) -> bool:
        """Set so many octets more aside for what is being gathered, if there is room for them beside the others'."""
        with self._lock:
            if self._reserved + octets > self.budget:
                return False
            self._reserved += octets
            self._make_room()
            return True

    def release(self, octets: int) -> None:
        """Give back what was set aside."""
        with self._lock:
            self._reserved -= octets

    @contextlib.contextmanager
    def alone(self, key: str) -> Iterator[None]:
        """Only one at a time for each key."""
        with self._lock:
            lock, waiting = self._busy.get(key, (threading.Lock(), 0))
            self._busy[key] = lock, waiting + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, waiting = self._busy.pop(key)
                if waiting > 1:
                    self._busy[key] = lock, waiting - 1

    def _make_room(self) -> None:
        while self._held + self._reserved > self.budget:
            self._forget(next(iter(self._zones)))

    def _forget(self, key: str) -> None:
        zone = self._zones.pop(key, None)
        if zone is not None:
            self._held -= zone.size + self._each


class LruSet:
    """Keys of which something is known, the latest of them; threads may share it."""

    #: Of more, the one that was marked first is forgotten.
    MOST = 10000

    def __init__(self) -> None:
        self._keys: collections.OrderedDict[str, None] = collections.OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def add(self, key: str) -> None:
        with self._lock:
            if key not in self._keys:
                self._keys[key] = None
                if len(self._keys) > self.MOST:
                    self._keys.popitem(last=False)

    def discard(self, key: str) -> None:
        with self._lock:
            self._keys.pop(key, None)
