"""Loads zones and differences from the database, packs them and caches them: once for each serial.

Small zones and differences that are requested at the same time are read in one statement.  So a server that transfers
all of its zones, or many servers that fetch many changes, neither take all database connections nor cost several
statements for each zone.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from designate_pool import serial as serials
from designate_pool.call_combiner import CallCombiner
from designate_pool.errors import RecordTooLarge
from designate_pool.minidns.zones import ixfr, packed_zone
from designate_pool.minidns.zones.packed_zone import PackedZone
from designate_pool.model import LAST_STAGE, ZoneHead, ZoneRecord, ZoneStep
from designate_pool.storage.serving import zone_snapshot
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.entities import chunks
from designate_pool.storage.zones import versions

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
        """The zone of *key*, if it is cached at this serial."""
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


#: Most zones or differences in a batch, and most records in it.
BATCH_ZONES, BATCH_RECORDS = 100, 2500
#: A difference of more records is compared with the size of the whole zone, which has to be counted unless it is
#: cached.  One of fewer is a single message, as is a zone that is smaller.
SMALL_DIFFERENCE = 100

#: The serial of a small zone, and its records.
_ZoneRecords = tuple[int, list[ZoneRecord]]
K = TypeVar('K', str, versions.Span)
V = TypeVar('V')


class ZoneLoader:
    """The zones of a pool's domains; *ahead* has a large zone's next page read while the one before is packed."""

    def __init__(self, storage: Storage, pool_name: str, cache: ZoneCache, ahead: zone_snapshot.Ahead = iter) -> None:
        self._storage = storage
        self._cache = cache
        self._ahead = ahead
        heads: CallCombiner[str, ZoneHead] = CallCombiner(
            functools.partial(storage.read, zone_snapshot.heads, pool_name=pool_name))
        #: The heads of those of the names that are served, and perhaps of others; one statement for all callers.
        self.read_heads = heads.call
        self._small_zones: dict[bool, CallCombiner[str, _ZoneRecords | None]] = {signed: CallCombiner(functools.partial(
            _read_in_chunks, storage, functools.partial(zone_snapshot.small_zones, signed=signed)))
            for signed in (False, True)}
        self._steps: CallCombiner[versions.Span, list[ZoneStep] | None] = CallCombiner(
            functools.partial(_read_in_chunks, storage, versions.steps))

    def load_zone(self, head: ZoneHead, stage: int = LAST_STAGE) -> packed_zone.PackedZone | None:
        """The zone of *head*, at its serial or a newer one; None when it is no longer served.

        :param stage: of the server that asks
        :raises ValueError: when the stored zone cannot be put into messages
        :raises RecordTooLarge: when one of its records cannot
        """
        key = f'{head.domain_id} of {head.stages}' if head.is_held and head.stages else head.domain_id
        return self._cache.get_or_pack(key, head.serial, functools.partial(self._pack_zone, head, stage))

    def load_difference(self, head: ZoneHead, client_serial: int) -> ixfr.PackedDifference | None:
        """The difference from *client_serial* to the zone of *head*, or to a newer one.

        None when the journal does not reach back that far, or when it has more than :data:`SMALL_DIFFERENCE` records
        or the whole zone is cached, and the whole zone is no larger.  The cost depends on the size of the difference,
        not on that of the zone.
        """
        if head.is_held:
            return None
        key = f'{head.domain_id} {client_serial}'  # a whole zone has the id of its domain
        declined_key = f'{key} declined'  # so that the next server costs no second look into the journal

        def pack() -> packed_zone.PackedZone | None:
            newest = self._cache.latest(key)
            if newest is not None and serials.newer(newest.serial, head.serial):
                return newest
            if self._cache.get(declined_key, head.serial) is not None:
                return None
            difference = self._pack_difference(head, client_serial)
            if difference is None:
                self._cache.put(declined_key, packed_zone.PackedZone(head.domain_id, head.name, head.serial, ()))
            return difference

        result = self._cache.get_or_pack(key, head.serial, pack)
        assert result is None or isinstance(result, ixfr.PackedDifference)
        return result

    def _pack_zone(self, head: ZoneHead, stage: int) -> packed_zone.PackedZone | None:
        former = self._cache.latest(head.domain_id)
        is_large = former is not None and former.records > BATCH_RECORDS
        small_zone = None if head.is_held or is_large else self._small_zones[head.is_signed].call(
            [head.domain_id]).get(head.domain_id)
        if small_zone is not None and small_zone[0] == head.serial:
            return packed_zone.pack_zone(head, [small_zone[1]])
        # It is large, has no records, or has been changed or deleted since its head was read.
        with contextlib.closing(self._storage.stream(versions.permitted_pages, head.domain_id, self._ahead, stage)
                                ) as pages:
            first = next(pages, None)
            if first is None:
                return None
            return packed_zone.pack_zone(first[0], itertools.chain([first[1]], (page for _, page in pages)))

    def _pack_difference(self, head: ZoneHead, client_serial: int) -> ixfr.PackedDifference | None:
        steps = self._read_steps(head, client_serial)
        if steps is None:  # the zone has changed since its head was read
            newer = self.read_heads([head.name]).get(head.name)
            if newer is None or newer.domain_id != head.domain_id or newer.is_held:
                return None
            head, steps = newer, self._read_steps(newer, client_serial)
        if not steps:
            return None
        try:
            result = ixfr.pack(head, client_serial, steps)
        except (ValueError, RecordTooLarge):  # the whole zone may no longer have that record
            return None
        return result if self._is_smaller(result, head.is_signed) else None

    def _read_steps(self, head: ZoneHead, client_serial: int) -> Sequence[ZoneStep] | None:
        """None when the zone is not at the serial of *head*; empty when there are none, or too many."""
        span = versions.Span(head.domain_id, client_serial, head.serial)
        together = self._steps.call([span])
        if span in together and together[span] is None:  # it is too large to be read with others
            return (self._storage.read(versions.steps, [span], ixfr.MAX_RECORDS) or {span: []}).get(span)
        return together.get(span)

    def _is_smaller(self, difference: ixfr.PackedDifference, signed: bool) -> bool:
        """Whether it is smaller than the whole zone: in octets if that is cached, otherwise in records."""
        whole = self._cache.get(difference.domain_id, difference.serial)
        if whole is not None:
            return difference.size < whole.size
        least = difference.records - 1  # beside its own records, a whole zone has the SOA twice
        return least <= SMALL_DIFFERENCE \
            or self._storage.read(zone_snapshot.counts, [difference.domain_id], least - 1, signed) is None


def _read_in_chunks(storage: Storage, read: Callable[[Tx, Collection[K], int], Mapping[K, V] | None],
                    keys: Collection[K]) -> dict[K, V | None]:
    """What *read* returns for *keys*, halved while they are too many; None for a key that alone is too large."""
    result: dict[K, V | None] = {}
    parts = list(chunks(sorted(keys), BATCH_ZONES))
    while parts:
        part = parts.pop(0)
        values = storage.read(read, part, BATCH_RECORDS)
        if values is not None:
            result.update(values)
        elif len(part) == 1:
            result[part[0]] = None
        else:
            middle = len(part) // 2
            parts[:0] = part[:middle], part[middle:]
    return result
