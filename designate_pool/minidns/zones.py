"""From storage to packed zones and differences between them: read once for a serial, packed once, kept if they fit.

Small zones that are wanted at the same time are read together, so that a server that asks for all of its zones takes
neither all connections to the database nor four statements for each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from designate_pool.errors import RecordTooLarge
from designate_pool.minidns import ixfr, packing, transfer
from designate_pool.minidns.gathering import Gathering
from designate_pool.minidns.kept import Kept, Marks
from designate_pool.minidns.supply import Supply
from designate_pool.model import ZoneBlock, ZoneHead, ZoneRecord
from designate_pool.storage import journal, zones
from designate_pool.storage.sessions import Storage

#: Zones that are read together, and records that they may have; a zone of more than a share of that is read by itself.
TOGETHER, MOST = 100, 2500
_SHARE = 10

_Read = tuple[ZoneHead, list[ZoneRecord]]


class Zones:
    """The domains' zones."""

    def __init__(self, storage: Storage, kept: Kept, supply: Supply) -> None:
        self._storage = storage
        self._supply = supply
        self._heads = Gathering(lambda names: storage.ask(zones.heads, names))
        self._small: Gathering[str, _Read | None] = Gathering(self._read_together)
        self._large = Marks()
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
        read = self._storage.read(journal.difference, head.domain_id, have, ixfr.MOST if most is None else most)
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
        return self._storage.ask(zones.count, difference.domain_id, enough) == enough

    def _open(self, domain_id: str) -> packing.StreamedZone | None:
        if domain_id not in self._large:
            found = self._small.get([domain_id])
            if domain_id not in found:
                return None
            zone = found[domain_id]
            if zone is not None:
                head, records = zone
                return _streamed(head, [records], lambda: None)
        blocks = self._storage.stream(zones.blocks, domain_id)
        first = next(blocks, None)
        if first is None:
            return None
        head, block = first
        if block.count + len(block.records) > MOST // _SHARE:
            self._large.add(domain_id)
        return _streamed(head, itertools.chain([block], (block for _, block in blocks)), blocks.close)

    def _read_together(self, domain_ids: Collection[str]) -> Mapping[str, _Read | None]:
        """Those that are served; None for those that are to be read by themselves."""
        found: dict[str, _Read | None] = {}
        ids = sorted(domain_ids)
        for start in range(0, len(ids), TOGETHER):
            some = ids[start:start + TOGETHER]
            read = self._storage.read(zones.few, some, MOST)
            found.update(dict.fromkeys(some) if read is None else read)
        return found


def _streamed(head: ZoneHead, contents: Iterable[Sequence[ZoneRecord] | ZoneBlock],
              close: Callable[[], object]) -> packing.StreamedZone:
    return packing.StreamedZone(head.domain_id, head.name, head.pool_name, head.serial, packing.bodies(
        head.name, transfer.pages(head, contents), head.ttl), close)
