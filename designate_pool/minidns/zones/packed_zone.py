"""Packs records into messages (RFC 5936 section 2.2).

Every message of a transfer repeats the question, so the zone's name always stands at offset 12, and every owner is its
own labels and a pointer there.  An answer section packed this way does not depend on the query's id, TSIG key or case
of the name; so it is packed once for each serial and cached.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence

from designate_pool.errors import RecordTooLarge
from designate_pool.model import ZoneHead
from designate_pool.protocol import soa_rdata, tsig, wire
from designate_pool.protocol.names_and_rdata import type_number

OPT_SIZE = 11
#: Most octets of an answer section: a TCP message less header, longest question, OPT and TSIG.
ROOM = 65535 - 12 - 259 - OPT_SIZE - tsig.ROOM

_LABEL_LENGTHS = [bytes((length,)) for length in range(64)]

#: With fewer records than this the bulk check of all owners does not pay.
_MIN_BULK_RECORDS = 16
#: The answer section of a message: number of records, octets.
Body = tuple[int, bytes]
#: (owner, type by name or number, TTL in seconds or None for the zone's, rdata in uncompressed wire form)
Record = tuple[str, str | int, int | None, bytes]


@dataclasses.dataclass(frozen=True, slots=True, weakref_slot=True)
class PackedZone:
    """The answer sections of a whole transfer."""

    domain_id: str
    name: str
    serial: int
    bodies: tuple[Body, ...]

    @property
    def size(self) -> int:
        """Octets of all answer sections."""
        return sum(len(octets) for _, octets in self.bodies)

    @property
    def records(self) -> int:
        """The number of records, with the SOA at both ends."""
        return sum(count for count, _ in self.bodies)


def pack_zone(head: ZoneHead, pages: Iterable[Sequence[Record]]) -> PackedZone:
    """A whole zone (RFC 5936 section 2.2): SOA, everything else, the same SOA again.

    :param pages: all records but the SOA
    :raises RecordTooLarge: when one record alone is larger than a message
    :raises ValueError: when a record is not valid, or the zone has no valid SOA
    """
    soa_page = [soa(head)]
    octets = (_encode_records(head.name, page, head.ttl, ROOM) for page in pages)
    return PackedZone(head.domain_id, head.name, head.serial,
                      tuple(join_records(itertools.chain([soa_page], octets, [soa_page]))))


def soa(head: ZoneHead) -> bytes:
    """The record SOA of a zone in wire form.

    :raises ValueError: when it cannot be made
    """
    rdata = soa_rdata.encode(head)
    return _fixed_fields(wire.SOA, head.ttl, len(rdata)) + rdata


def bodies(zone: str, pages: Iterable[Sequence[Record]], default_ttl: int, room: int = ROOM) -> Iterator[Body]:
    """The answer sections that hold the records of *pages* in their order, each of *room* octets at most.

    :param zone: the name in the question
    :param default_ttl: the TTL of records that have none
    :raises RecordTooLarge: when one record alone is larger than *room*
    :raises ValueError: when an owner is no name, or a type is unknown
    """
    return join_records((_encode_records(zone, page, default_ttl, room) for page in pages), room)


def join_records(pages: Iterable[Sequence[bytes]], room: int = ROOM) -> Iterator[Body]:
    """The answer sections that hold *pages* of records in wire form in their order, each of *room* octets at most.

    They are made as the pages come.  Pages should have many records, because the work for a page includes that for the
    unfinished section.
    """
    pending: list[bytes] = []
    for page in pages:
        pending += page
        ends = list(itertools.accumulate(map(len, pending)))
        start = before = 0
        while ends and ends[-1] - before > room:
            stop = bisect.bisect_right(ends, before + room, start)
            yield stop - start, b''.join(pending[start:stop])
            start, before = stop, ends[stop - 1]
        del pending[:start]
    if pending:
        yield len(pending), b''.join(pending)


@functools.lru_cache(4096)
def _fixed_fields(kind: str | int, ttl: int, length: int) -> bytes:
    """What stands between owner label and rdata, from the pointer to the length; records have few different ones."""
    return wire.TO_QUESTION + wire.RECORD.pack(
        type_number(kind) if isinstance(kind, str) else kind, wire.IN, ttl, length)


def _encode_records(zone: str, page: Sequence[Record], default_ttl: int, room: int) -> Sequence[bytes]:
    """The records in wire form, none larger than *room*.

    The usual owner, one label below the zone, is encoded here, and many of them without a check of each, because it
    makes a large share of a cold transfer's time (``python -m benchmarks.transfer``).
    """
    lengths, join = _LABEL_LENGTHS, b''.join
    if len(page) >= _MIN_BULK_RECORDS and (labels := _single_labels(zone, page)):
        result = [join((lengths[len(label)], label,
                        _fixed_fields(kind, default_ttl if ttl is None else ttl, len(rdata)), rdata))
                  for label, (_, kind, ttl, rdata) in zip(labels, page, strict=True)]
    else:
        end, suffix, after_pointer = -1 - len(zone), '.' + zone, len(wire.TO_QUESTION)
        result = []
        for owner, kind, ttl, rdata in page:
            label = owner[:end]
            fixed = _fixed_fields(kind, default_ttl if ttl is None else ttl, len(rdata))
            if '.' not in label and '\\' not in label and 0 < len(label) < 64 and owner.endswith(suffix):
                start = lengths[len(label)] + label.encode('ascii')
            else:
                start, fixed = compress(owner, zone), fixed[after_pointer:]
            result.append(start + fixed + rdata)
    for octets, (owner, kind, _, _) in zip(result, page) if max(map(len, result), default=0) > room else ():
        if len(octets) > room:
            raise RecordTooLarge(owner=owner, rtype=kind, size=len(octets), room=room)
    return result


def _single_labels(zone: str, page: Sequence[Record]) -> list[bytes] | None:
    """The label of each owner if every owner is one label below the zone; done for all at once, which is faster."""
    suffix = '.' + zone
    owners = [owner for owner, _, _, _ in page]
    text = '\n'.join(owners) + '\n'
    lengths = set(map(len, owners))
    if (min(lengths) > len(suffix) and max(lengths) < len(suffix) + 64
            and text.count(suffix + '\n') == text.count('\n') == len(owners)
            and text.count('.') == len(owners) * suffix.count('.') and '\\' not in text):
        return text.replace(suffix + '\n', '\n').encode('ascii').split(b'\n')[:-1]
    return None


def compress(owner: str, zone: str) -> bytes:
    """*owner* in wire form, for a message whose question holds *zone*.

    :raises ValueError: when it is no name
    """
    if owner == zone:
        return wire.TO_QUESTION
    octets = wire.encode(owner)
    if owner.endswith(zone if zone == '.' else '.' + zone) and '\\' not in owner:
        return octets[:-len(wire.wire_of(zone))] + wire.TO_QUESTION
    return octets


def assemble(message_id: int, flags: int, question: bytes, count: int = 0, answer: bytes = b'',
             opt: bytes = b'') -> bytes:
    """A message of a header, one question, an answer section and, unless it is empty, an OPT record."""
    return wire.HEADER.pack(message_id, flags, 1, count, 0, 1 if opt else 0) + question + answer + opt
