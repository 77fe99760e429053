"""The catalog zone of a pool (RFC 9432): the zones that its servers are to have.

A server that reads it adds the zones that it names, and removes those that it no longer names.  A member's label stays
the same for the life of a domain; a new label for the same name tells the server to reset that zone.  So a domain that
was deleted and created again is never mistaken for the old one, and a new epoch of a server resets all its zones.

Members are packed in blocks, in the order of their ids.  After a change only the blocks with domains that were created
or deleted are read and packed again, and a difference looks only at these; every few minutes all are read.

A catalog has no journal.  For IXFR (RFC 1995) there are the differences between the catalogs that this process has
packed, one after the other; a server with any other serial, for example from another MiniDNS, gets the whole catalog.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import functools
import itertools
import time
from collections.abc import Collection, Iterable, Iterator, Sequence

from designate_pool.minidns.acl import AllowedPeer
from designate_pool.minidns.zones import ixfr, packed_zone
from designate_pool.minidns.zones.loader import ZoneCache
from designate_pool.minidns.zones.packed_zone import Body
from designate_pool.model import CATALOG_ID, LAST_STAGE, ZoneHead
from designate_pool.protocol import wire
from designate_pool.serial import newer
from designate_pool.storage.serving import catalog
from designate_pool.storage.serving.catalog import CatalogReading
from designate_pool.storage.sql.database import Storage

#: Most records that all steps of a catalog may have together.
MAX_RECORDS = 5000


@dataclasses.dataclass(frozen=True, slots=True)
class CatalogStep:
    """From *from_serial* to the next serial; *removed* and *added* are records in wire form."""

    from_serial: int
    removed: frozenset[bytes]
    added: frozenset[bytes]


def append_step(steps: Sequence[CatalogStep], from_serial: int, old_blocks: Iterable[Body], serial: int,
                new_blocks: Iterable[Body]) -> tuple[CatalogStep, ...]:
    """*steps*, which end at *from_serial*, with the step to *serial*; the oldest are dropped beyond MAX_RECORDS.

    :param old_blocks: the members at *from_serial*; unchanged members are in the same blocks as in *new_blocks*
    """
    if not newer(serial, from_serial):
        return ()
    old, new = {octets for _, octets in old_blocks}, {octets for _, octets in new_blocks}
    removed, added = frozenset(_split_records(old - new)), frozenset(_split_records(new - old))
    steps_kept: collections.deque[CatalogStep] = collections.deque()
    size = 0
    for step in (CatalogStep(from_serial, removed - added, added - removed), *reversed(steps)):
        size += len(step.removed) + len(step.added)
        if size > MAX_RECORDS:
            break
        steps_kept.appendleft(step)
    return tuple(steps_kept)


def pack_difference(head: ZoneHead, from_serial: int, steps: Sequence[CatalogStep]) -> ixfr.PackedDifference | None:
    """The incremental transfer from *from_serial* to *head*, all *steps* in one; None when no step begins there."""
    first = next((number for number, step in enumerate(steps) if step.from_serial == from_serial), None)
    if first is None:
        return None
    counts: collections.Counter[bytes] = collections.Counter()
    for step in steps[first:]:
        counts.subtract(step.removed)
        counts.update(step.added)
    removed, added = ([record for record, count in counts.items() if count == sign] for sign in (-1, 1))
    new_soa, old_soa = packed_zone.soa(head), packed_zone.soa(dataclasses.replace(head, serial=from_serial))
    bodies = packed_zone.join_records([[new_soa, old_soa, *removed, new_soa, *added, new_soa]])
    return ixfr.PackedDifference(head.domain_id, head.name, head.serial, tuple(bodies), from_serial)


def _split_records(blocks: Iterable[bytes]) -> Iterator[bytes]:
    for octets in blocks:
        offset = 0
        while offset < len(octets):
            end = wire.read_record(octets, offset).end
            yield octets[offset:end]
            offset = end


#: Members of a block, and the least number of blocks for a partial read.
BLOCK_MEMBERS, MIN_BLOCKS = 512, 4
#: With more changes than this the whole catalog is read.
MAX_CHANGES = 5000
#: Seconds after which the whole catalog is read: a deleted domain may have been purged since, so that it is not seen.
FULL_READ_INTERVAL = 300

# An expired catalog removes no zones, but changes would no longer be seen: so the longest expiry that there is, and a
# refresh once a minute in case NOTIFYs are lost.
_REFRESH, _RETRY, _EXPIRE = 60, 10, 0x7fffffff
_INVALID_NS = wire.wire_of('invalid.')
_VERSION = b'\x012'

#: (id of the first member, the members' records)
Block = tuple[str, Body]


@dataclasses.dataclass(frozen=True, slots=True)
class PackedCatalog(packed_zone.PackedZone):
    """A catalog in wire form, with the steps that led to it.

    :ivar epoch: the epoch in the members' labels
    :ivar changes: the catalog's count of changes; None when they are not counted yet
    :ivar full_read_at: when the whole catalog was read, in monotonic seconds
    :ivar steps: the steps that led to this serial, the latest last
    """

    blocks: Sequence[Block]
    epoch: int
    changes: int | None
    full_read_at: float
    steps: Sequence[CatalogStep]


class CatalogLoader:
    """The catalog zone that the pool's servers get."""

    def __init__(self, storage: Storage, cache: ZoneCache) -> None:
        self._storage = storage
        self._cache = cache

    def head(self, zone: str, pool_name: str) -> ZoneHead | None:
        """The head of the catalog *zone*; None when the database has no such pool."""
        result = self._storage.read(catalog.head, pool_name)
        return None if result is None else ZoneHead(CATALOG_ID, zone, pool_name, 'hostmaster@invalid', 0, result.serial,
                                                    _REFRESH, _RETRY, _EXPIRE, 0, ('invalid.',))

    def load_catalog(self, head: ZoneHead, peers: Collection[AllowedPeer]) -> PackedCatalog | None:
        """The catalog of *head* as *peers* are to see it, at its serial or a newer one.

        :raises ValueError: when a domain's name cannot be put into messages
        """
        return self._load(head, peers)[2]

    def load_difference(self, head: ZoneHead, peers: Collection[AllowedPeer],
                        client_serial: int) -> ixfr.PackedDifference | None:
        """The difference from *client_serial* to the catalog of *head*, or a newer one.

        None when the steps are not known here, or when the whole catalog is no larger.

        :raises ValueError: when a domain's name cannot be put into messages
        """
        catalog_head, cache_key, packed_catalog = self._load(head, peers)
        if packed_catalog is None or catalog_head is None or not catalog_head.was_seen(client_serial):
            return None
        current_head = dataclasses.replace(head, serial=packed_catalog.serial)
        result = self._cache.get_or_pack(f'{cache_key} {client_serial}', packed_catalog.serial,
                                         lambda: pack_difference(current_head, client_serial, packed_catalog.steps))
        assert result is None or isinstance(result, ixfr.PackedDifference)
        return result if result is not None and result.size < packed_catalog.size else None

    def _load(self, head: ZoneHead,
              peers: Collection[AllowedPeer]) -> tuple[catalog.CatalogHead | None, str, PackedCatalog | None]:
        """(the catalog's head for *peers*, its key in the cache, the catalog)"""
        ids, stage = [peer.id for peer in peers], max((peer.stage for peer in peers), default=LAST_STAGE)
        while True:
            catalog_head = self._storage.read(catalog.head, head.pool_name, ids)
            if catalog_head is None:
                return None, '', None
            cache_key = f'{CATALOG_ID} {head.name} {catalog_head.epoch} {stage}'

            def pack() -> packed_zone.PackedZone | None:
                previous = self._cache.latest(cache_key)
                result = self._storage.read(catalog.snapshot, head.pool_name, ids, functools.partial(
                    read_catalog, head, previous if isinstance(previous, PackedCatalog) else None, stage=stage))
                return result if result is None or result.epoch == catalog_head.epoch else None

            result = self._cache.get_or_pack(cache_key, catalog_head.serial, pack)
            if result is not None:
                assert isinstance(result, PackedCatalog)
                return catalog_head, cache_key, result
            # The pool is gone, or the epoch has risen since the head was read: read again.


def read_catalog(head: ZoneHead, previous: PackedCatalog | None, reading: CatalogReading,
                 stage: int = LAST_STAGE) -> PackedCatalog:
    """The catalog of *head* as it is now for servers of a stage, read in parts where *previous* is known.

    :raises ValueError: when a member's name is no name
    """
    head = dataclasses.replace(head, serial=reading.head.serial)
    if previous is not None and (previous.changes is None or previous.epoch != reading.head.epoch):
        previous = None
    blocks = None if previous is None else _changed_blocks(head, previous, reading, stage)
    full_read_at = time.monotonic() if previous is None or blocks is None else previous.full_read_at
    if blocks is None:
        blocks = list(_blocks(head, reading, stage))
    steps = () if previous is None else append_step(
        previous.steps, previous.serial, (body for _, body in previous.blocks), head.serial,
        (body for _, body in blocks))
    return PackedCatalog(CATALOG_ID, head.name, head.serial, tuple(_bodies(head, blocks)), blocks,
                         reading.head.epoch, reading.head.changes, full_read_at, steps)


def _changed_blocks(head: ZoneHead, previous: PackedCatalog, reading: CatalogReading,
                    stage: int) -> list[Block] | None:
    """The blocks of *previous*, the changed ones read again; None when the whole catalog is to be read."""
    changes = reading.head.changes
    if (len(previous.blocks) < MIN_BLOCKS or previous.changes is None or changes is None or changes < previous.changes
            or not newer(head.serial, previous.serial)
            or time.monotonic() - previous.full_read_at > FULL_READ_INTERVAL):
        return None
    changed = reading.changed(previous.changes, MAX_CHANGES)
    if len(changed) >= MAX_CHANGES:
        return None
    first_ids = [first for first, _ in previous.blocks]
    changed_numbers = {max(0, bisect.bisect_right(first_ids, domain_id) - 1) for domain_id in changed}
    if len(changed_numbers) > len(first_ids) // 2:
        return None
    result: list[Block] = []
    for number, block in enumerate(previous.blocks):
        if number in changed_numbers:
            first = first_ids[number] if number else ''
            end = first_ids[number + 1] if number + 1 < len(first_ids) else catalog.END
            result += _blocks(head, reading, stage, first, end)
        else:
            result.append(block)
    return result


def _blocks(head: ZoneHead, reading: CatalogReading, stage: int, first: str = '',
            end: str = catalog.END) -> Iterator[Block]:
    suffix = (f'-e{reading.head.epoch}' if reading.head.epoch else '') + f'.zones.{head.name}'
    members = iter(reading.members(first, end, stage))
    while page := list(itertools.islice(members, BLOCK_MEMBERS)):
        offset = 0
        for body in packed_zone.bodies(head.name, [[
                (f'{domain_id}-{generation}{suffix}', wire.PTR, 0, wire.encode(name))
                for domain_id, generation, name in page]], 0):
            yield page[offset][0], body
            offset += body[0]


def _bodies(head: ZoneHead, blocks: Sequence[Block]) -> list[Body]:
    """The answer sections of a transfer (RFC 9432 section 4); a SOA shares a message with its neighbour if it fits."""
    soa = packed_zone.soa(head)
    ((count, octets),) = packed_zone.bodies(head.name, [[(head.name, wire.NS, 0, _INVALID_NS),
                                                         (f'version.{head.name}', wire.TXT, 0, _VERSION)]], 0)
    result = [(1 + count, soa + octets), *(body for _, body in blocks), (1, soa)]
    for at in (0, len(result) - 2):
        if 0 <= at < len(result) - 1 and len(result[at][1]) + len(result[at + 1][1]) <= packed_zone.ROOM:
            result[at:at + 2] = [(result[at][0] + result[at + 1][0], result[at][1] + result[at + 1][1])]
    return result
