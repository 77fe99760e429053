"""The catalog zone of a pool (RFC 9432): which zones its servers are to have.

A server that reads it adds the zones that it names, and removes those that it names no longer.  A member's label stays
the same for the life of a domain; another label for the same name tells the server to make that zone anew.  So a domain
that was deleted and made again is never mistaken for the one before, and an epoch of a server resets all its zones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from designate_pool.minidns import packing, wire
from designate_pool.minidns.access import Peer
from designate_pool.minidns.kept import Kept
from designate_pool.minidns.transfer import RRset, soa_rdata
from designate_pool.model import ZoneHead
from designate_pool.storage import catalog
from designate_pool.storage.catalog import CatalogHead, Member
from designate_pool.storage.sessions import Storage

#: In the place of a domain's id.
CATALOG = 'catalog'

# A catalog that expires takes nothing away, but changes would no longer be seen: so as long as can be, and looked after
# once a minute, should every NOTIFY be lost.
_REFRESH, _RETRY, _EXPIRE = 60, 10, 0x7fffffff
_NOWHERE = wire.wire_of('invalid.')
_VERSION_2 = b'\x012'


class Catalogs:
    """The catalog zone that the pool's servers get."""

    def __init__(self, storage: Storage, kept: Kept) -> None:
        self._storage = storage
        self._kept = kept

    def head(self, zone: str, pool_name: str) -> ZoneHead | None:
        """The head of the catalog *zone*; None when the database has no such pool."""
        found = self._storage.read(catalog.head, pool_name)
        return None if found is None else _head(zone, pool_name, found.serial)

    def packed(self, head: ZoneHead, peers: Collection[Peer]) -> packing.PackedZone | None:
        """The catalog of *head* as *peers* are to see it, at its serial or a newer one.

        :raises ValueError: when a domain's name cannot be put into messages
        """
        ids = [peer.id for peer in peers]
        found = self._storage.read(catalog.head, head.pool_name, ids)
        if found is None:
            return None
        key = f'{CATALOG} {head.name} {found.epoch}'

        def pack(now: CatalogHead, members: Iterator[Member]) -> packing.PackedZone:
            name = head.name
            return packing.PackedZone(CATALOG, name, head.pool_name, now.serial, packing.pack(
                name, rrsets(_head(name, head.pool_name, now.serial), now.epoch, members)))

        return self._kept.get_or_pack(
            key, found.serial, lambda: self._storage.read(catalog.snapshot, head.pool_name, ids, pack))


def rrsets(head: ZoneHead, epoch: int, members: Iterable[Member]) -> Iterator[RRset]:
    """A catalog in transfer order (RFC 9432 section 4).

    :raises ValueError: when a member's name is no name
    """
    zone = head.name
    soa: RRset = (zone, wire.SOA, head.ttl, (soa_rdata(head),))
    yield soa
    yield zone, wire.NS, 0, (_NOWHERE,)
    yield f'version.{zone}', wire.TXT, 0, (_VERSION_2,)
    end = (f'-e{epoch}' if epoch else '') + f'.zones.{zone}'
    for domain_id, generation, name in members:
        yield f'{domain_id}-{generation}{end}', wire.PTR, 0, (wire.encode(name),)
    yield soa


def _head(zone: str, pool_name: str, serial: int) -> ZoneHead:
    return ZoneHead(CATALOG, zone, pool_name, 'hostmaster@invalid', 0, serial, _REFRESH, _RETRY, _EXPIRE, 0,
                    ('invalid.',))
