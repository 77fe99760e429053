"""Loads zones and differences from the database, packs them and caches them: once for each serial.

Small zones and differences that are requested at the same time are read in one statement.  So a server that transfers
all of its zones, or many servers that fetch many changes, neither take all database connections nor cost several
statements for each zone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from designate_pool import serial as serials
from designate_pool.call_combiner import CallCombiner
from designate_pool.errors import RecordTooLarge
from designate_pool.minidns.zones import ixfr, packed_zone
from designate_pool.minidns.zones.zone_cache import BoundedDict, BoundedSet, ZoneCache
from designate_pool.minidns.zones.zone_source import ZoneSource
from designate_pool.model import ZoneHead, ZoneRecord, ZoneStep
from designate_pool.protocol import axfr_records
from designate_pool.storage.serving import zone_snapshot
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import journal
from designate_pool.storage.zones.domains import chunks

#: Most zones or differences in a batch, and most records in it.  A zone of that fraction (1/n) of them, or more, is
#: read by itself once it is known.
BATCH_ZONES, BATCH_RECORDS, LARGE_FRACTION = 100, 2500, 10
LARGE_ZONE = BATCH_RECORDS // LARGE_FRACTION

#: The serial of a small zone, and its records.
_ZoneRecords = tuple[int, list[ZoneRecord]]
K = TypeVar('K', str, journal.Span)
V = TypeVar('V')


class ZoneLoader:
    """The zones of a pool's domains.

    :param ahead: has the next page of a large zone read while the one before is packed
    """

    def __init__(self, storage: Storage, pool_name: str, cache: ZoneCache, zone_source: ZoneSource,
                 ahead: zone_snapshot.Ahead = iter) -> None:
        self._storage = storage
        self._ahead = ahead
        self._zone_source = zone_source
        self._heads = CallCombiner(lambda names: storage.read(zone_snapshot.heads, names, pool_name))
        self._small_zones: CallCombiner[str, _ZoneRecords | None] = CallCombiner(self._read_zones)
        self._steps: CallCombiner[journal.Span, list[ZoneStep] | None] = CallCombiner(self._read_steps)
        self._counts: CallCombiner[str, int | None] = CallCombiner(self._read_counts)
        # By domain id: a serial, and how many records the zone had then at least; exact for a zone that is not large.
        self._sizes: BoundedDict[tuple[int, int]] = BoundedDict()
        # Differences that are not sent, since the whole zone is no larger or the journal does not reach back so far.
        self._declined = BoundedSet()
        self._cache = cache

    def read_heads(self, names: Collection[str]) -> Mapping[str, ZoneHead]:
        """The heads of those of *names* that are served, and perhaps of others; one statement for all callers."""
        return self._heads.call(names)

    def load_zone(self, head: ZoneHead) -> packed_zone.PackedZone | packed_zone.StreamedZone | None:
        """The zone of *head*, at its serial or a newer one; None when it is no longer served.

        :raises ValueError: when the stored zone cannot be put into messages
        :raises RecordTooLarge: when one of its records cannot
        :raises ServiceUnavailable: when too many large zones are sent already
        """
        return self._zone_source.get(head.domain_id, head.serial, lambda: self._open(head))

    def load_difference(self, head: ZoneHead, client_serial: int,
                        max_records: int | None = None) -> ixfr.PackedDifference | None:
        """The difference from *client_serial* to the zone of *head*, or to a newer one.

        None when the journal does not reach back that far, or when the whole zone is no larger.  The cost depends on
        the size of the difference, not on that of the zone.

        :param max_records: the most records that it may have; if given, it is not compared with the zone's size
        """
        key = _difference_key(head, client_serial)
        declined = f'{key} {head.serial}'

        def pack() -> packed_zone.PackedZone | None:
            newest = self._cache.latest(key)
            if newest is not None and serials.newer(newest.serial, head.serial):
                return newest
            if max_records is not None:
                return self._pack_difference(head, client_serial, max_records)
            if declined in self._declined:
                return None
            difference = self._pack_difference(head, client_serial, None)
            if difference is None:
                self._declined.add(declined)
            return difference

        result = self._cache.get_or_pack(key, head.serial, pack)
        assert result is None or isinstance(result, ixfr.PackedDifference)
        return result

    def _pack_difference(self, head: ZoneHead, client_serial: int,
                         max_records: int | None) -> ixfr.PackedDifference | None:
        span = journal.Span(head.domain_id, client_serial, head.serial)
        steps: Sequence[ZoneStep] | None = self._steps.call([span]).get(span)
        if steps is None:
            read = self._storage.read(journal.difference, head.domain_id, client_serial,
                                      ixfr.MAX_RECORDS if max_records is None else max_records)
            if read is None:
                return None
            head, steps = read.head, read.steps
        if not steps or steps[-1].serial != head.serial:
            return None
        try:
            result = ixfr.pack(head, client_serial, steps)
        except (ValueError, RecordTooLarge):  # the whole zone may no longer have that record
            return None
        return result if max_records is not None or self._is_smaller(result, steps) else None

    def _is_smaller(self, difference: ixfr.PackedDifference, steps: Sequence[ZoneStep]) -> bool:
        """Whether it is smaller than the whole zone: in octets if that is cached, otherwise in records."""
        whole = self._cache.latest(difference.domain_id)
        if whole is not None and whole.serial == difference.serial:
            return difference.size < whole.size
        least_records = difference.records - 1  # beside its own records, a whole zone has the SOA twice
        growth = sum(len(step.added) - len(step.gone) for step in steps)
        former = self._exact_size(difference.domain_id, difference.client_serial, whole)
        if former is not None:
            count = former + growth
            self._sizes.put(difference.domain_id, (difference.serial, count))
            return count >= least_records
        if growth < 0:
            self._sizes.discard(difference.domain_id)  # it may have become small: it is counted again
        if least_records > LARGE_ZONE:
            count = self._storage.read(zone_snapshot.count, difference.domain_id, least_records)
            self._sizes.put(difference.domain_id, (difference.serial, count))
            return count == least_records
        return self._count(difference.domain_id, difference.serial) >= least_records

    def _exact_size(self, domain_id: str, serial: int, whole: packed_zone.PackedZone | None) -> int | None:
        """How many records a zone had at *serial*; None where it is not known, or only that they were many.

        :param whole: the zone that is cached
        """
        if whole is not None and whole.serial == serial:
            return whole.records - 2
        counted_at, count = self._sizes.get(domain_id) or (None, 0)
        return count if counted_at == serial and count < LARGE_ZONE else None

    def _count(self, domain_id: str, serial: int) -> int:
        """How many records a zone has, or :data:`LARGE_ZONE` if it has more.

        :param serial: that it has, too
        """
        if self._is_large(domain_id):
            return LARGE_ZONE
        count = self._counts.call([domain_id])[domain_id]
        if count is None:
            count = self._storage.read(zone_snapshot.count, domain_id, LARGE_ZONE)
        self._sizes.put(domain_id, (serial, count))
        return count

    def _is_large(self, domain_id: str) -> bool:
        """Whether a zone is known to have :data:`LARGE_ZONE` records or more."""
        _, count = self._sizes.get(domain_id) or (0, 0)
        return count >= LARGE_ZONE

    def _open(self, head: ZoneHead) -> packed_zone.StreamedZone | None:
        domain_id = head.domain_id
        if not self._is_large(domain_id):
            zone = self._small_zones.call([domain_id]).get(domain_id)
            if zone is not None:
                serial, records = zone
                self._sizes.put(domain_id, (serial, len(records)))
                if serial == head.serial:
                    return _make_streamed_zone(head, [records], lambda: None)
        # It is large, has no records, or has been changed or deleted since its head was read.
        pages = self._storage.stream(zone_snapshot.pages, domain_id, self._ahead)
        first = next(pages, None)
        if first is None:
            return None
        head, page = first
        self._sizes.put(domain_id, (head.serial, len(page)))
        return _make_streamed_zone(head, itertools.chain([page], (page for _, page in pages)), pages.close)

    # The reads of the batch loaders.  A value of None means: read this key by itself.

    def _read_zones(self, domain_ids: Collection[str]) -> dict[str, _ZoneRecords | None]:
        return _read_in_chunks(domain_ids, lambda chunk: self._storage.read(zone_snapshot.small_zones, chunk,
                                                                            BATCH_RECORDS))

    def _read_steps(self, spans: Collection[journal.Span]) -> dict[journal.Span, list[ZoneStep] | None]:
        return _read_in_chunks(spans, lambda chunk: self._storage.read(journal.steps, chunk, BATCH_RECORDS))

    def _read_counts(self, domain_ids: Collection[str]) -> dict[str, int | None]:
        def counts(chunk: Sequence[str]) -> dict[str, int] | None:
            result = self._storage.read(zone_snapshot.counts, chunk, BATCH_RECORDS)
            return None if result is None else {domain_id: result.get(domain_id, 0) for domain_id in chunk}

        return _read_in_chunks(domain_ids, counts)


def _read_in_chunks(keys: Collection[K], read: Callable[[Sequence[K]], Mapping[K, V] | None]) -> dict[K, V | None]:
    result: dict[K, V | None] = {}
    for chunk in chunks(sorted(keys), BATCH_ZONES):
        result.update(_read_chunk(chunk, read))
    return result


def _read_chunk(chunk: Sequence[K], read: Callable[[Sequence[K]], Mapping[K, V] | None]) -> Mapping[K, V | None]:
    """What *read* returns for *chunk*, which is halved while it is too much for one batch.

    So few that one of them must be large are not halved: each is read by itself, and the large one is known then.
    """
    part = read(chunk)
    if part is not None:
        return part
    if len(chunk) <= LARGE_FRACTION:
        return dict.fromkeys(chunk)
    middle = len(chunk) // 2
    return {**_read_chunk(chunk[:middle], read), **_read_chunk(chunk[middle:], read)}


def _make_streamed_zone(head: ZoneHead, contents: Iterable[Sequence[ZoneRecord]],
                        close: Callable[[], object]) -> packed_zone.StreamedZone:
    return packed_zone.StreamedZone(head.domain_id, head.name, head.serial, packed_zone.bodies(
        head.name, axfr_records.pages(head, contents), head.ttl), close)


def _difference_key(head: ZoneHead, client_serial: int | None) -> str:
    """The key of a difference in the cache, where whole zones have the id of their domain."""
    return f'{head.domain_id} {client_serial}'
