"""How a catalog zone came from one serial to the next, so that servers can take what changed alone (RFC 1995).

A catalog has no journal.  What tells the steps is what was packed here, one catalog after the other: a server that has
a serial which was not, from another MiniDNS maybe, takes the whole catalog.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from designate_pool import serial as serials
from designate_pool.minidns.zones import ixfr, packing
from designate_pool.minidns.zones.packing import Body
from designate_pool.model import ZoneBlock, ZoneHead
from designate_pool.protocol import wire
from designate_pool.protocol.axfr_records import soa_rdata

#: Records that the steps of a catalog have together at most.
MOST = 5000


@dataclasses.dataclass(frozen=True, slots=True)
class CatalogStep:
    """From the serial *have* to the next; *gone* and *added* are records as they stand in an answer."""

    have: int
    gone: frozenset[bytes]
    added: frozenset[bytes]

    def __len__(self) -> int:
        return len(self.gone) + len(self.added)


def following(steps: Sequence[CatalogStep], have: int, before: Iterable[Body], serial: int, after: Iterable[Body]
              ) -> tuple[CatalogStep, ...]:
    """*steps* to the serial *have*, and the one from there to *serial*: as many of the latest as are remembered.

    :param before: the members, in the same blocks as *after* as far as they are the same
    """
    if not serials.newer(serial, have):
        return ()
    old, new = {octets for _, octets in before}, {octets for _, octets in after}
    gone, added = frozenset(_records(old - new)), frozenset(_records(new - old))
    found: collections.deque[CatalogStep] = collections.deque()
    size = 0
    for step in (CatalogStep(have, gone - added, added - gone), *reversed(steps)):
        size += len(step)
        if size > MOST:
            break
        found.appendleft(step)
    return tuple(found)


def pack(head: ZoneHead, have: int, steps: Sequence[CatalogStep]) -> ixfr.PackedDifference | None:
    """The transfer that leads from *have* to *head*, all *steps* in one; None when they do not tell."""
    first = next((number for number, step in enumerate(steps) if step.have == have), None)
    if first is None:
        return None
    counts: collections.Counter[bytes] = collections.Counter()
    for step in steps[first:]:
        counts.subtract(step.gone)
        counts.update(step.added)
    gone, added = ([record for record, count in counts.items() if count == sign] for sign in (-1, 1))
    present = head.name, 'SOA', head.ttl, soa_rdata(head)
    former = head.name, 'SOA', head.ttl, soa_rdata(dataclasses.replace(head, serial=have))
    pages = [present, former], ZoneBlock(len(gone), b''.join(gone), [present]), ZoneBlock(
        len(added), b''.join(added), [present])
    return ixfr.PackedDifference(head.domain_id, head.name, head.pool_name, head.serial, tuple(
        packing.bodies(head.name, pages, head.ttl)), have)


def _records(blocks: Iterable[bytes]) -> Iterator[bytes]:
    for octets in blocks:
        at = 0
        while at < len(octets):
            end = wire.read_record(octets, at).end
            yield octets[at:end]
            at = end
