"""RRsets to messages (RFC 5936 section 2.2).

Every message of a transfer repeats the question, so the zone's name always stands at offset 12 and every owner is its
own labels and a pointer there.  An answer section packed this way fits any querier, whatever its message id, spelling
of the name or key; so it is packed once for a serial and kept.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterable

from designate_pool.errors import RecordTooLarge
from designate_pool.minidns import signing, wire
from designate_pool.minidns.transfer import RRset

OPT_SIZE = 11
#: Octets of an answer section: a TCP message less header, longest question, OPT and TSIG.
ROOM = 65535 - 12 - 259 - OPT_SIZE - signing.ROOM

_FIXED = struct.Struct('!HHI')
_LENGTHS = [length.to_bytes(2, 'big') for length in range(1024)]


@dataclasses.dataclass(frozen=True, slots=True)
class PackedZone:
    """The answer sections of a whole transfer.

    :ivar bodies: (number of records, octets) of each message
    """

    domain_id: str
    name: str
    pool_name: str
    serial: int
    bodies: tuple[tuple[int, bytes], ...]

    @property
    def size(self) -> int:
        return sum(len(octets) for _, octets in self.bodies)


def pack(zone: str, rrsets: Iterable[RRset], room: int = ROOM) -> tuple[tuple[int, bytes], ...]:
    """The answer sections that hold *rrsets*, each of *room* octets at most.

    :param zone: the name that the question will hold
    :raises RecordTooLarge: when one record alone is larger than *room*
    :raises ValueError: when an owner is no name
    """
    bodies: list[tuple[int, bytes]] = []
    parts: list[bytes] = []
    fixed: dict[tuple[int, int], bytes] = {}
    used = count = 0
    for owner, rtype, ttl, rdatas in rrsets:
        middle = fixed.get((rtype, ttl))
        if middle is None:
            middle = fixed[rtype, ttl] = _FIXED.pack(rtype, wire.IN, ttl)
        start = compress(owner, zone) + middle
        for rdata in rdatas:
            length = len(rdata)
            size = len(start) + 2 + length
            if used + size > room:
                if size > room:
                    raise RecordTooLarge(owner=owner, rtype=rtype, size=size, room=room)
                bodies.append((count, b''.join(parts)))
                parts, used, count = [], 0, 0
            parts += (start, _LENGTHS[length] if length < 1024 else length.to_bytes(2, 'big'), rdata)
            used += size
            count += 1
    if count:
        bodies.append((count, b''.join(parts)))
    return tuple(bodies)


def compress(owner: str, zone: str) -> bytes:
    """*owner* in wire form, for a message whose question holds *zone*.

    :raises ValueError: when it is no name
    """
    if owner == zone:
        return wire.TO_QUESTION
    suffix = zone if zone == '.' else '.' + zone
    if owner.endswith(suffix) and '\\' not in owner:
        return wire.labels_of(owner[:-len(suffix)]) + wire.TO_QUESTION
    return wire.wire_of(owner)


def assemble(message_id: int, flags: int, question: bytes, count: int = 0, answer: bytes = b'',
             opt: bytes = b'') -> bytes:
    """A message of a header, one question, an answer section and, unless it is empty, an OPT record."""
    return wire.HEADER.pack(message_id, flags, 1, count, 0, 1 if opt else 0) + question + answer + opt
