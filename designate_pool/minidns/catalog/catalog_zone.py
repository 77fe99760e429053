"""The catalog zone of a pool (RFC 9432): which zones its servers are to have.

A server that reads it adds the zones that it names, and removes those that it names no longer.  A member's label stays
the same for the life of a domain; another label for the same name tells the server to make that zone anew.  So a domain
that was deleted and made again is never mistaken for the one before, and an epoch of a server resets all its zones.

Members are packed in blocks, in the order of their ids.  After a change only those blocks are read and packed again in
which domains came or went since.  All of it is read anew every now and then, as blocks that shrank become one then.
The blocks begin where they began before, so that those in which nothing changed are the same, and the difference is to
be found in the others.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
import time
from collections.abc import Collection, Iterator, Sequence

from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.minidns.catalog import catalog_ixfr
from designate_pool.minidns.zones import ixfr, packing
from designate_pool.minidns.zones.packing import Body
from designate_pool.minidns.zones.zone_cache import ZoneCache
from designate_pool.model import ZoneHead
from designate_pool.protocol import wire
from designate_pool.protocol.axfr_records import soa_rdata
from designate_pool.serial import newer
from designate_pool.storage.serving import catalog
from designate_pool.storage.serving.catalog import CatalogReading
from designate_pool.storage.sql.database import Storage

#: In the place of a domain's id.
CATALOG = 'catalog'
#: Members that are packed together, and blocks that a catalog has at least for it to be read in parts.
BLOCK, FEW = 512, 4
#: Seconds after which the whole catalog is read anew.
WHOLE = 300.0
#: More changes than this are not looked at one by one.
MOST = 5000

# A catalog that expires takes nothing away, but changes would no longer be seen: so as long as can be, and looked after
# once a minute, should every NOTIFY be lost.
_REFRESH, _RETRY, _EXPIRE = 60, 10, 0x7fffffff
_NOWHERE = wire.wire_of('invalid.')
_VERSION_2 = b'\x012'

#: The first id of those that are in it, and their records.
Block = tuple[str, Body]


@dataclasses.dataclass(frozen=True, slots=True)
class PackedCatalog(packing.PackedZone):
    """
    :ivar epoch: that the members' labels tell
    :ivar changes: how often it had changed; None when that is not counted yet
    :ivar whole_at: when all of it was read, monotonic seconds
    :ivar steps: that led to it, the latest last
    """

    blocks: Sequence[Block]
    epoch: int
    changes: int | None
    whole_at: float
    steps: Sequence[catalog_ixfr.CatalogStep]


class CatalogLoader:
    """The catalog zone that the pool's servers get."""

    def __init__(self, storage: Storage, kept: ZoneCache) -> None:
        self._storage = storage
        self._kept = kept

    def head(self, zone: str, pool_name: str) -> ZoneHead | None:
        """The head of the catalog *zone*; None when the database has no such pool."""
        found = self._storage.read(catalog.head, pool_name)
        return None if found is None else _head(zone, pool_name, found.serial)

    def packed(self, head: ZoneHead, peers: Collection[AllowedPeer]) -> PackedCatalog | None:
        """The catalog of *head* as *peers* are to see it, at its serial or a newer one.

        :raises ValueError: when a domain's name cannot be put into messages
        """
        return self._packed(head, peers)[2]

    def difference(self, head: ZoneHead, peers: Collection[AllowedPeer], have: int) -> ixfr.PackedDifference | None:
        """What leads from the serial *have* to the catalog of *head*, or a newer one.

        None when it is not known here, or when the whole catalog is no larger.

        :raises ValueError: when a domain's name cannot be put into messages
        """
        seen, key, whole = self._packed(head, peers)
        if whole is None or seen is None or not seen.was_seen(have):
            return None
        present = dataclasses.replace(head, serial=whole.serial)
        found = self._kept.get_or_pack(f'{key} {have}', whole.serial,
                                       lambda: catalog_ixfr.pack(present, have, whole.steps))
        assert found is None or isinstance(found, ixfr.PackedDifference)
        return found if found is not None and found.size < whole.size else None

    def _packed(self, head: ZoneHead, peers: Collection[AllowedPeer]
                ) -> tuple[catalog.CatalogHead | None, str, PackedCatalog | None]:
        """How *peers* see the catalog, what it is kept by, and the catalog."""
        ids = [peer.id for peer in peers]
        while True:
            seen = self._storage.read(catalog.head, head.pool_name, ids)
            if seen is None:
                return None, '', None
            key = f'{CATALOG} {head.name} {seen.epoch}'

            def pack() -> packing.PackedZone | None:
                former = self._kept.latest(key)
                found = self._storage.read(catalog.snapshot, head.pool_name, ids, functools.partial(
                    read, head, former if isinstance(former, PackedCatalog) else None))
                return found if found is None or found.epoch == seen.epoch else None

            found = self._kept.get_or_pack(key, seen.serial, pack)
            if found is not None:
                assert isinstance(found, PackedCatalog)
                return seen, key, found
            # The pool is gone, or the epoch has risen since the head was read: look again.


def read(head: ZoneHead, former: PackedCatalog | None, reading: CatalogReading) -> PackedCatalog:
    """The catalog of *head* as it is now, read in parts where *former* is known.

    :raises ValueError: when a member's name is no name
    """
    head = dataclasses.replace(head, serial=reading.head.serial)
    if former is not None and (former.changes is None or former.epoch != reading.head.epoch):
        former = None
    blocks = None if former is None else _changed_blocks(head, former, reading)
    whole_at = time.monotonic() if former is None or blocks is None else former.whole_at
    if blocks is None:
        blocks = list(_blocks(head, reading, cuts=() if former is None else _cuts(former.blocks)))
    steps = () if former is None else catalog_ixfr.following(
        former.steps, former.serial, (body for _, body in former.blocks), head.serial, (body for _, body in blocks))
    return PackedCatalog(CATALOG, head.name, head.pool_name, head.serial, tuple(_bodies(head, blocks)), blocks,
                         reading.head.epoch, reading.head.changes, whole_at, steps)


def _changed_blocks(head: ZoneHead, former: PackedCatalog, reading: CatalogReading) -> list[Block] | None:
    """The blocks of *former*, those read anew in which something changed; None when all of it is to be read."""
    changes = reading.head.changes
    if (len(former.blocks) < FEW or former.changes is None or changes is None or changes < former.changes
            or not newer(head.serial, former.serial) or time.monotonic() - former.whole_at > WHOLE):
        return None
    changed = reading.changed(former.changes, MOST)
    if len(changed) >= MOST:
        return None
    firsts = [first for first, _ in former.blocks]
    touched = {max(0, bisect.bisect_right(firsts, domain_id) - 1) for domain_id in changed}
    if len(touched) > len(firsts) // 2:
        return None
    found: list[Block] = []
    for number, block in enumerate(former.blocks):
        if number in touched:
            first = firsts[number] if number else ''
            found += _blocks(head, reading, first, firsts[number + 1] if number + 1 < len(firsts) else catalog.END)
        else:
            found.append(block)
    return found


def _cuts(blocks: Sequence[Block]) -> list[str]:
    """The ids at which blocks are to begin: where *blocks* do, but small neighbours become one."""
    found: list[str] = []
    size = BLOCK
    for first, (count, _) in blocks:
        if size + count > BLOCK:
            found.append(first)
            size = 0
        size += count
    return found


def _blocks(head: ZoneHead, reading: CatalogReading, first: str = '', end: str = catalog.END,
            cuts: Sequence[str] = ()) -> Iterator[Block]:
    """The members of a range of ids, in blocks.

    :param cuts: ids at which blocks begin, in their order
    """
    below = (f'-e{reading.head.epoch}' if reading.head.epoch else '') + f'.zones.{head.name}'
    for _, members in itertools.groupby(reading.members(first, end), lambda member: bisect.bisect(cuts, member[0])):
        while page := list(itertools.islice(members, BLOCK)):
            at = 0
            for body in packing.bodies(head.name, [[(f'{domain_id}-{generation}{below}', wire.PTR, 0, wire.encode(name))
                                                    for domain_id, generation, name in page]], 0):
                yield page[at][0], body
                at += body[0]


def _bodies(head: ZoneHead, blocks: Sequence[Block]) -> list[Body]:
    """The answer sections of a transfer (RFC 9432 section 4), the SOA's in one with what is next to it."""
    soa = head.name, wire.SOA, head.ttl, (soa_rdata(head),)
    (begin,) = packing.pack(head.name, [soa, (head.name, wire.NS, 0, (_NOWHERE,)),
                                        (f'version.{head.name}', wire.TXT, 0, (_VERSION_2,))])
    (end,) = packing.pack(head.name, [soa])
    found = [begin, *(body for _, body in blocks), end]
    for at in (0, len(found) - 2):
        if 0 <= at < len(found) - 1 and len(found[at][1]) + len(found[at + 1][1]) <= packing.ROOM:
            found[at:at + 2] = [(found[at][0] + found[at + 1][0], found[at][1] + found[at + 1][1])]
    return found


def _head(zone: str, pool_name: str, serial: int) -> ZoneHead:
    return ZoneHead(CATALOG, zone, pool_name, 'hostmaster@invalid', 0, serial, _REFRESH, _RETRY, _EXPIRE, 0,
                    ('invalid.',))
