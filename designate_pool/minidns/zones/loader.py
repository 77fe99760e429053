"""From storage to packed zones and differences between them: read once for a serial, packed once, kept if they fit.

What is small and wanted at the same time is read together, so that a server that asks for all of its zones, and servers
that are told of many changes, take neither all connections to the database nor some statements for each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from designate_pool.errors import RecordTooLarge
from designate_pool.minidns.zones import ixfr, packing
from designate_pool.minidns.zones.batch_loader import BatchLoader
from designate_pool.minidns.zones.streaming import ZoneSource
from designate_pool.minidns.zones.zone_cache import LruSet, ZoneCache
from designate_pool.model import ZoneBlock, ZoneDifference, ZoneHead, ZoneRecord
from designate_pool.protocol import axfr_records
from designate_pool.storage.serving import zone_snapshot
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import journal
from designate_pool.storage.zones.domains import chunks

#: Zones or differences that are read together, and records that they may have; a zone of more than a tenth of that is
#: read by itself.
TOGETHER, MOST = 100, 2500
LARGE = MOST // 10

_Read = tuple[ZoneHead, list[ZoneRecord]]
#: A domain's id, and the serial of a difference's begin.
_Since = tuple[str, int]
K = TypeVar('K', str, _Since)
V = TypeVar('V')


class ZoneLoader:
    """The zones of a pool's domains."""

    def __init__(self, storage: Storage, pool_name: str, kept: ZoneCache, supply: ZoneSource) -> None:
        self._storage = storage
        self._supply = supply
        self._heads = BatchLoader(lambda names: storage.ask(zone_snapshot.heads, names, pool_name))
        self._small: BatchLoader[str, _Read | None] = BatchLoader(self._read_together)
        self._differences: BatchLoader[_Since, ZoneDifference | None] = BatchLoader(self._differences_together)
        self._counts: BatchLoader[str, int | None] = BatchLoader(self._counts_together)
        self._large = LruSet()
        self._kept = kept

    def heads(self, names: Collection[str]) -> Mapping[str, ZoneHead]:
        """The heads of those of *names* that are served, and maybe of others, read in one statement for all who ask."""
        return self._heads.get(names)

    def packed(self, head: ZoneHead) -> packing.PackedZone | packing.StreamedZone | None:
        """The zone of *head*, at its serial or a newer one; None when it is no longer served.

        :raises ValueError: when the stored zone cannot be put into messages
        :raises RecordTooLarge: when one of its records cannot
        :raises ServiceUnavailable: when too many large zones are sent already
        """
        return self._supply.get(head.domain_id, head.serial, lambda: self._open(head.domain_id))

    def difference(self, head: ZoneHead, have: int, most: int | None = None) -> ixfr.PackedDifference | None:
        """What leads from the serial *have* to the zone of *head*, or a newer one.

        None when the journal does not tell, or when the whole zone is no larger.  What this costs follows the
        difference, whatever the zone's size.

        :param most: records that there may be, and the zone's size does not matter
        """
        found = self._kept.get_or_pack(f'{head.domain_id} {have}', head.serial,
                                       lambda: self._pack_difference(head, have, most))
        assert found is None or isinstance(found, ixfr.PackedDifference)
        return found

    def _pack_difference(self, head: ZoneHead, have: int, most: int | None) -> ixfr.PackedDifference | None:
        since = head.domain_id, have
        together = self._differences.get([since])
        if since not in together:
            return None
        read = together[since]
        if read is None:
            read = self._storage.read(journal.difference, *since, ixfr.MOST if most is None else most)
        if read is None or not read.steps or read.steps[-1].serial != read.head.serial:
            return None
        try:
            found = ixfr.pack(read.head, have, read.steps)
        except (ValueError, RecordTooLarge):  # the record may be in the zone no longer
            return None
        return found if most is not None or self._is_smaller(found) else None

    def _is_smaller(self, difference: ixfr.PackedDifference) -> bool:
        """Whether it is smaller than the whole zone: in octets if that is kept, else in records."""
        whole = self._kept.get(difference.domain_id, difference.serial)
        if whole is not None:
            return difference.size < whole.size
        enough = difference.records - 1  # beside its own records, a whole zone has the SOA twice
        if enough > LARGE:
            return self._storage.ask(zone_snapshot.count, difference.domain_id, enough) == enough
        return self._count(difference.domain_id) >= enough

    def _count(self, domain_id: str) -> int:
        """How many records a zone has, or :data:`LARGE` if it has more."""
        if domain_id in self._large:
            return LARGE
        count = self._counts.get([domain_id])[domain_id]
        if count is None:
            count = self._storage.ask(zone_snapshot.count, domain_id, LARGE)
        if count >= LARGE:
            self._large.add(domain_id)
        return count

    def _open(self, domain_id: str) -> packing.StreamedZone | None:
        if domain_id not in self._large:
            found = self._small.get([domain_id])
            if domain_id not in found:
                return None
            zone = found[domain_id]
            if zone is not None:
                head, records = zone
                return _streamed(head, [records], lambda: None)
        blocks = self._storage.stream(zone_snapshot.blocks, domain_id)
        first = next(blocks, None)
        if first is None:
            return None
        head, block = first
        if block.count + len(block.records) > LARGE:
            self._large.add(domain_id)
        return _streamed(head, itertools.chain([block], (block for _, block in blocks)), blocks.close)

    # For the gatherings: what there is, and None for what is to be read by itself.

    def _read_together(self, domain_ids: Collection[str]) -> dict[str, _Read | None]:
        return _in_parts(domain_ids, lambda some: self._storage.read(zone_snapshot.few, some, MOST))

    def _differences_together(self, wanted: Collection[_Since]) -> dict[_Since, ZoneDifference | None]:
        return _in_parts(wanted, lambda some: self._storage.read(journal.few, some, MOST))

    def _counts_together(self, domain_ids: Collection[str]) -> dict[str, int | None]:
        def counts(some: Sequence[str]) -> dict[str, int] | None:
            found = self._storage.ask(zone_snapshot.counts, some, MOST)
            return None if found is None else {domain_id: found.get(domain_id, 0) for domain_id in some}

        return _in_parts(domain_ids, counts)


def _in_parts(keys: Collection[K], read: Callable[[Sequence[K]], Mapping[K, V] | None]) -> dict[K, V | None]:
    found: dict[K, V | None] = {}
    for some in chunks(sorted(keys), TOGETHER):
        part = read(some)
        found.update(dict.fromkeys(some) if part is None else part)
    return found


def _streamed(head: ZoneHead, contents: Iterable[Sequence[ZoneRecord] | ZoneBlock],
              close: Callable[[], object]) -> packing.StreamedZone:
    return packing.StreamedZone(head.domain_id, head.name, head.pool_name, head.serial, packing.bodies(
        head.name, axfr_records.pages(head, contents), head.ttl), close)
