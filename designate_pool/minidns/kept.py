"""Packed zones that are kept, so that the next server costs a copy."""

from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Callable, Iterator

from designate_pool.minidns.packing import PackedZone


class Kept:
    """The latest packed zone of each key, those used last, within a number of octets; threads may share it."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._zones: collections.OrderedDict[str, PackedZone] = collections.OrderedDict()
        self._used = 0
        self._lock = threading.Lock()
        self._busy: dict[str, tuple[threading.Lock, int]] = {}

    def get_or_pack(self, key: str, serial: int, pack: Callable[[], PackedZone | None]) -> PackedZone | None:
        """The zone of *key* at *serial*; what *pack* gives where it is not kept, made once for all who ask meanwhile.

        :raises Exception: what *pack* raises
        """
        kept = self.get(key, serial)
        if kept is not None:
            return kept
        with self._alone(key):  # the others that ask for it now find it kept
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

    def put(self, key: str, zone: PackedZone) -> None:
        """Keep *zone*, and let older ones go that no longer fit; one larger than the whole budget is not kept."""
        if zone.size > self._budget:
            return
        with self._lock:
            former = self._zones.pop(key, None)
            if former is not None:
                self._used -= former.size
            self._zones[key] = zone
            self._used += zone.size
            while self._used > self._budget:
                _, oldest = self._zones.popitem(last=False)
                self._used -= oldest.size

    @contextlib.contextmanager
    def _alone(self, key: str) -> Iterator[None]:
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
