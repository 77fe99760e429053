"""A difference between zones as the ordered records of an incremental transfer (RFC 1995 section 4).

The invariant: who has the zone at the older serial and takes away and adds what is given, in its order, has the present
zone.  Who has any other does not, so a difference is for one serial alone.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from designate_pool.minidns.zones import packing
from designate_pool.model import Change, ZoneHead, ZoneStep
from designate_pool.protocol import wire
from designate_pool.protocol.axfr_records import soa_rdata

#: Records of the longest difference that is worth its memory; a whole zone needs less for as many.
MOST = 100_000
#: Octets that a record takes at least: a pointer for its owner, type, class, TTL and length.
LEAST_RECORD = 12


@dataclasses.dataclass(frozen=True, slots=True)
class PackedDifference(packing.PackedZone):
    """The answer sections of an incremental transfer.

    :ivar have: the serial that it leads on from
    """

    have: int

    @property
    def records(self) -> int:
        return sum(count for count, _ in self.bodies)


def pack(head: ZoneHead, have: int, steps: Sequence[ZoneStep]) -> PackedDifference:
    """The transfer that leads from *have* to *head* by *steps*, or by fewer.

    :raises ValueError: when one of the records cannot be put into messages
    :raises RecordTooLarge: when one is larger than a message
    """
    return PackedDifference(head.domain_id, head.name, head.pool_name, head.serial, tuple(packing.bodies(
        head.name, pages(head, have, condensed(steps)), head.ttl)), have)


def condensed(steps: Sequence[ZoneStep]) -> Sequence[ZoneStep]:
    """One step in the place of *steps*, if some of the records in them came and went (RFC 1995 section 5)."""
    counts: collections.Counter[Change] = collections.Counter()
    for step in steps:
        counts.subtract(step.gone)
        counts.update(step.added)
    if sum(map(abs, counts.values())) == sum(len(step.gone) + len(step.added) for step in steps):
        return steps
    return [ZoneStep(steps[-1].serial, [change for change, count in counts.items() if count < 0],
                     [change for change, count in counts.items() if count > 0])]


def pages(head: ZoneHead, have: int, steps: Iterable[ZoneStep]) -> Iterator[Sequence[packing.Record]]:
    """The records of the answer: between two of the present SOA, for each step the older one and what goes, and the
    newer one and what comes.

    An older SOA differs from the present one in the serial alone: the journal leads over no other change of it.

    :raises ValueError: when a SOA cannot be made
    """
    present = _soa(head)
    yield present
    before = _soa(dataclasses.replace(head, serial=have))
    for step in steps:
        after = _soa(dataclasses.replace(head, serial=step.serial))
        yield from (before, step.gone, after, step.added)
        before = after
    yield present


def _soa(head: ZoneHead) -> Sequence[packing.Record]:
    return [(head.name, wire.SOA, head.ttl, soa_rdata(head))]
