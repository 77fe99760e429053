"""Incremental transfers (RFC 1995) of the catalog zone.

A catalog has no journal.  The steps are the differences between the catalogs that this process has packed, one after
the other; a server with any other serial, for example from another MiniDNS, gets the whole catalog.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from designate_pool import serial as serials
from designate_pool.minidns.zones import ixfr
from designate_pool.minidns.zones.packing import Body
from designate_pool.model import ZoneBlock, ZoneHead
from designate_pool.protocol import soa_rdata, wire

#: Most records that all steps of a catalog may have together.
MAX_RECORDS = 5000


@dataclasses.dataclass(frozen=True, slots=True)
class CatalogStep:
    """From *from_serial* to the next serial; *removed* and *added* are records in wire form."""

    from_serial: int
    removed: frozenset[bytes]
    added: frozenset[bytes]

    def __len__(self) -> int:
        return len(self.removed) + len(self.added)


def append_step(steps: Sequence[CatalogStep], from_serial: int, old_blocks: Iterable[Body], serial: int,
                new_blocks: Iterable[Body]) -> tuple[CatalogStep, ...]:
    """*steps*, which end at *from_serial*, with the step to *serial*; the oldest are dropped beyond MAX_RECORDS.

    :param old_blocks: the members at *from_serial*; unchanged members are in the same blocks as in *new_blocks*
    """
    if not serials.newer(serial, from_serial):
        return ()
    old, new = {octets for _, octets in old_blocks}, {octets for _, octets in new_blocks}
    removed, added = frozenset(_split_records(old - new)), frozenset(_split_records(new - old))
    steps_kept: collections.deque[CatalogStep] = collections.deque()
    size = 0
    for step in (CatalogStep(from_serial, removed - added, added - removed), *reversed(steps)):
        size += len(step)
        if size > MAX_RECORDS:
            break
        steps_kept.appendleft(step)
    return tuple(steps_kept)


def pack(head: ZoneHead, from_serial: int, steps: Sequence[CatalogStep]) -> ixfr.PackedDifference | None:
    """The incremental transfer from *from_serial* to *head*, all *steps* in one; None when no step begins there."""
    first = next((number for number, step in enumerate(steps) if step.from_serial == from_serial), None)
    if first is None:
        return None
    counts: collections.Counter[bytes] = collections.Counter()
    for step in steps[first:]:
        counts.subtract(step.removed)
        counts.update(step.added)
    removed, added = ([record for record, count in counts.items() if count == sign] for sign in (-1, 1))
    new_soa = head.name, 'SOA', head.ttl, soa_rdata.encode(head)
    old_soa = head.name, 'SOA', head.ttl, soa_rdata.encode(dataclasses.replace(head, serial=from_serial))
    return ixfr.pack_pages(head, from_serial, [
        [new_soa, old_soa], *(ZoneBlock(len(records), b''.join(records), [new_soa]) for records in (removed, added))])


def _split_records(blocks: Iterable[bytes]) -> Iterator[bytes]:
    for octets in blocks:
        offset = 0
        while offset < len(octets):
            end = wire.read_record(octets, offset).end
            yield octets[offset:end]
            offset = end
