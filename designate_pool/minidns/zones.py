"""From storage to packed zones: read once for a serial, packed once, kept."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator, Mapping

from designate_pool.minidns import packing, transfer
from designate_pool.minidns.gathering import Gathering
from designate_pool.minidns.kept import Kept
from designate_pool.model import ZoneHead
from designate_pool.storage import zones
from designate_pool.storage.sessions import Storage


class Zones:
    """The zones that MiniDNS serves.

    :param keep: octets of packed zones that are kept
    """

    def __init__(self, storage: Storage, keep: int) -> None:
        self._storage = storage
        self._heads = Gathering(lambda names: storage.read(zones.heads, names))
        self._kept = Kept(keep)
        self._lock = threading.Lock()
        self._busy: dict[str, tuple[threading.Lock, int]] = {}

    def heads(self, names: Collection[str]) -> Mapping[str, ZoneHead]:
        """The heads of those of *names* that are served, and maybe of others, read in one statement for all who ask."""
        return self._heads.get(names)

    def packed(self, head: ZoneHead) -> packing.PackedZone | None:
        """The zone of *head*, at its serial or a newer one; None when it is no longer served.

        :raises ValueError: when the stored zone cannot be put into messages
        :raises RecordTooLarge: when one of its records cannot
        """
        kept = self._kept.get(head.domain_id, head.serial)
        if kept is not None:
            return kept
        with self._alone(head.domain_id):  # the others that ask for it now find it kept
            return self._kept.get(head.domain_id, head.serial) or self._pack(head.domain_id)

    def _pack(self, domain_id: str) -> packing.PackedZone | None:
        snapshot = self._storage.read(zones.snapshot, domain_id)
        if snapshot is None:
            return None
        head = snapshot.head
        zone = packing.PackedZone(domain_id, head.name, head.pool_name, head.serial,
                                  packing.pack(head.name, transfer.rrsets(snapshot)))
        self._kept.put(zone)
        return zone

    @contextlib.contextmanager
    def _alone(self, domain_id: str) -> Iterator[None]:
        with self._lock:
            lock, waiting = self._busy.get(domain_id, (threading.Lock(), 0))
            self._busy[domain_id] = lock, waiting + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, waiting = self._busy.pop(domain_id)
                if waiting > 1:
                    self._busy[domain_id] = lock, waiting - 1
