"""From storage to packed zones: read once for a serial, packed once, kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from designate_pool.minidns import packing, transfer
from designate_pool.minidns.gathering import Gathering
from designate_pool.minidns.kept import Kept
from designate_pool.model import ZoneHead
from designate_pool.storage import zones
from designate_pool.storage.sessions import Storage


class Zones:
    """The domains' zones."""

    def __init__(self, storage: Storage, kept: Kept) -> None:
        self._storage = storage
        self._heads = Gathering(lambda names: storage.read(zones.heads, names))
        self._kept = kept

    def heads(self, names: Collection[str]) -> Mapping[str, ZoneHead]:
        """The heads of those of *names* that are served, and maybe of others, read in one statement for all who ask."""
        return self._heads.get(names)

    def packed(self, head: ZoneHead) -> packing.PackedZone | None:
        """The zone of *head*, at its serial or a newer one; None when it is no longer served.

        :raises ValueError: when the stored zone cannot be put into messages
        :raises RecordTooLarge: when one of its records cannot
        """
        return self._kept.get_or_pack(head.domain_id, head.serial, lambda: self._pack(head.domain_id))

    def _pack(self, domain_id: str) -> packing.PackedZone | None:
        snapshot = self._storage.read(zones.snapshot, domain_id)
        if snapshot is None:
            return None
        head = snapshot.head
        return packing.PackedZone(domain_id, head.name, head.pool_name, head.serial,
                                  packing.pack(head.name, transfer.rrsets(snapshot)))
