"""A difference between zones as the ordered records of an incremental transfer (RFC 1995 section 4).

The invariant: a client that has the zone at the older serial, and deletes and adds the given records in their order,
has the current zone.  A difference is valid for that one older serial only.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from designate_pool.minidns.zones import packed_zone
from designate_pool.model import Change, ZoneHead, ZoneStep
from designate_pool.protocol import soa_rdata, wire

#: Most records of a difference; beyond that a whole zone needs less memory.
MAX_RECORDS = 100_000


@dataclasses.dataclass(frozen=True, slots=True)
class PackedDifference(packed_zone.PackedZone):
    """The answer sections of an incremental transfer that starts from *client_serial*."""

    client_serial: int


def pack(head: ZoneHead, client_serial: int, steps: Sequence[ZoneStep]) -> PackedDifference:
    """The incremental transfer from *client_serial* to *head*, with *steps* condensed where that is shorter.

    :raises ValueError: when one of the records cannot be put into messages
    :raises RecordTooLarge: when one is larger than a message
    """
    bodies = packed_zone.bodies(head.name, answer_pages(head, client_serial, condense(steps)), head.ttl)
    return PackedDifference(head.domain_id, head.name, head.serial, tuple(bodies), client_serial)


def condense(steps: Sequence[ZoneStep]) -> Sequence[ZoneStep]:
    """One step in place of *steps*, if records that were added and deleted again cancel out (RFC 1995 section 5)."""
    counts: collections.Counter[Change] = collections.Counter()
    for step in steps:
        counts.subtract(step.gone)
        counts.update(step.added)
    if sum(map(abs, counts.values())) == sum(len(step.gone) + len(step.added) for step in steps):
        return steps
    return [ZoneStep(steps[-1].serial, [change for change, count in counts.items() if count < 0],
                     [change for change, count in counts.items() if count > 0])]


def answer_pages(head: ZoneHead, client_serial: int,
                 steps: Iterable[ZoneStep]) -> Iterator[Sequence[packed_zone.Record]]:
    """The records of the answer, between two copies of the current SOA.  Each step gives its older SOA, the deleted
    records, its newer SOA and the added records.

    An older SOA differs from the current one only in the serial: the journal does not span other changes of the SOA.

    :raises ValueError: when a SOA cannot be made
    """
    current_soa = _soa(head)
    yield current_soa
    old_soa = _soa(dataclasses.replace(head, serial=client_serial))
    for step in steps:
        new_soa = _soa(dataclasses.replace(head, serial=step.serial))
        yield from (old_soa, step.gone, new_soa, step.added)
        old_soa = new_soa
    yield current_soa


def _soa(head: ZoneHead) -> Sequence[packed_zone.Record]:
    return [(head.name, wire.SOA, head.ttl, soa_rdata.encode(head))]
