"""The digest of a zone's contents (RFC 8976, scheme SIMPLE, SHA-384), and the differences of two zones.

The invariant: two zones have the same digest exactly when they have the same records.  The order of records, the case
of names (RFC 4034 section 6), compression, and repeated records make no difference.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from designate_pool.protocol import wire

#: The scheme SIMPLE and the algorithm SHA-384 in a ZONEMD record (RFC 8976 sections 2.2.2 and 2.2.3).
SIMPLE, SHA384 = 1, 1
ZONEMD = 63
#: Types that a server adds to a zone that it signs: RRSIG, NSEC, DNSKEY, NSEC3, NSEC3PARAM; and CDS, CDNSKEY and
#: BIND's own notes (TYPE65534), which zones have that it does not sign.
SIGNING = frozenset({46, 47, 48, 50, 51})
BESIDE_SIGNING = frozenset({59, 60, 65534})

_RRSIG = 46
#: How many owners a piece has.
_OWNERS = 500
_TAIL = struct.Struct('!HIH')

#: Types with names in the rdata that may be compressed, or whose case is not significant (RFC 4034 section 6.2,
#: RFC 6840 section 5.1): how many octets and character strings precede the names, and how many names there are.
_NAMES: dict[int, tuple[int, int, int]] = {
    2: (0, 0, 1), 3: (0, 0, 1), 4: (0, 0, 1), 5: (0, 0, 1), 6: (0, 0, 2), 7: (0, 0, 1), 8: (0, 0, 1), 9: (0, 0, 1),
    12: (0, 0, 1), 14: (0, 0, 2), 15: (2, 0, 1), 17: (0, 0, 2), 18: (2, 0, 1), 21: (2, 0, 1), 24: (18, 0, 1),
    26: (2, 0, 2), 30: (0, 0, 1), 33: (6, 0, 1), 35: (4, 3, 1), 36: (2, 0, 1), 39: (0, 0, 1), 46: (18, 0, 1),
}
#: Likewise, types whose names the canonical form keeps as they are: TALINK, SVCB, HTTPS, DSYNC, LP.
_KEPT_NAMES: dict[int, tuple[int, int, int]] = {
    58: (0, 0, 2), 64: (2, 0, 1), 65: (2, 0, 1), 66: (5, 0, 1), 107: (2, 0, 1)}
_IPSECKEY, _HIP, _AMTRELAY = 45, 55, 260
#: Types whose names the canonical form keeps as they are.
KEPT_NAMES = frozenset({*_KEPT_NAMES, _IPSECKEY, _HIP, _AMTRELAY})


class DigestedZone:
    """A zone's records, each once and in canonical form.

    :param apex: the zone's name in wire form
    :ivar types: of its records
    :ivar added: how many records were added, including repeated ones and those that are not part of the digest
    :ivar octets: of these in wire form
    """

    def __init__(self, apex: bytes) -> None:
        self.apex = apex.translate(wire.LOWER)
        self.types: set[int] = set()
        self.added = self.octets = 0
        self._owners: dict[bytes, list[tuple[bytes, int]]] = {}

    def add(self, owner: bytes, rtype: int, ttl: int, rdata: bytes) -> None:
        """Add a record.

        :param owner: in wire form, lower case
        :param ttl: seconds
        :param rdata: as returned by :func:`canonical`
        """
        record = (rtype.to_bytes(2, 'big') + rdata, ttl)
        records = self._owners.get(owner)
        if records is None:
            self._owners[owner] = [record]
        else:
            records.append(record)
        self.types.add(rtype)
        self.added += 1
        self.octets += len(owner) + 10 + len(rdata)

    def comparable(self, omitted: Collection[int] = (),
                   between: Callable[[Iterable[Any]], Iterable[Any]] = iter) -> DigestedZone:
        """The zone without *omitted* types, and with all names in its data in lower case: servers may change these.

        :param between: gives others a turn between owners
        """
        if self.types.isdisjoint(KEPT_NAMES.union(omitted)):
            return self
        zone = DigestedZone(self.apex)
        for owner, records in between(self._owners.items()):
            for keyed, ttl in records:
                if (rtype := int.from_bytes(keyed[:2], 'big')) not in omitted:
                    zone.add(owner, rtype, ttl, fold_names(rtype, keyed[2:]))
        return zone

    def digest(self) -> bytes:
        """48 octets."""
        return digest_of(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        """The octets that are digested, those of some hundred owners at a time (RFC 8976 section 3.3.1)."""
        piece: list[bytes] = []
        for number, owner in enumerate(self._in_order(), 1):
            records = self._owners[owner]
            for keyed, ttl in records if len(records) == 1 and owner != self.apex else self._distinct(owner):
                piece += (owner, keyed[:2], _TAIL.pack(1, ttl, len(keyed) - 2), keyed[2:])
            if not number % _OWNERS:
                yield b''.join(piece)
                piece = []
        yield b''.join(piece)

    def __len__(self) -> int:
        """How many records are digested."""
        return sum(len(self._distinct(owner)) for owner in self._in_order())

    def differences(self, other: DigestedZone) -> Iterator[tuple[bytes, int]]:
        """Owner (wire form) and type of each RRset that differs, or that only one of the two zones has."""
        for owner in sorted(self._owners.keys() | other._owners.keys(), key=lambda owner: sort_key(owner) or b''):
            ours, theirs = set(self._distinct(owner)), set(other._distinct(owner))
            for rtype in sorted({keyed[:2] for keyed, _ in ours ^ theirs}):
                yield owner, int.from_bytes(rtype, 'big')

    def _in_order(self) -> list[bytes]:
        """The owners inside the zone, in canonical order (RFC 4034 section 6.1)."""
        within = [(key, owner) for owner in self._owners if (key := self._key(owner)) is not None]
        within.sort()
        return [owner for _, owner in within]

    def _key(self, owner: bytes) -> bytes | None:
        """The sort key of *owner*; None when it is not in the zone."""
        end = len(owner) - len(self.apex)
        return sort_key(owner, end) if end >= 0 and owner.endswith(self.apex) else None

    def _distinct(self, owner: bytes) -> list[tuple[bytes, int]]:
        """The records of *owner*, each once, sorted by type and rdata; of equal records the one with the lowest TTL."""
        records = self._owners.get(owner, ())
        if owner == self.apex:
            records = [record for record in records if not _is_digest(record[0])]
        if len(records) < 2:
            return list(records)
        distinct: list[tuple[bytes, int]] = []
        for record in sorted(records):
            if not distinct or distinct[-1][0] != record[0]:
                distinct.append(record)
        return distinct


def digest_of(pieces: Iterable[bytes]) -> bytes:
    """The digest of :meth:`DigestedZone.pieces`; 48 octets."""
    digest = hashlib.sha384()
    for piece in pieces:
        digest.update(piece)
    return digest.digest()


def digest_in(rdata: bytes, serial: int) -> bytes | None:
    """The digest in a ZONEMD record's *rdata*; None for another kind of digest, or another serial than *serial*."""
    if len(rdata) != 6 + 48 or rdata[4:6] != bytes((SIMPLE, SHA384)):
        return None
    return rdata[6:] if rdata[:4] == serial.to_bytes(4, 'big') else None


def canonical(rtype: int, message: bytes, start: int, end: int, names: dict[int, bytes]) -> bytes:
    """The rdata ``message[start:end]`` in canonical form (RFC 4034 section 6.2): names whole and in lower case.

    :param names: see :func:`designate_pool.protocol.wire.name_at`
    :raises wire.Malformed: when it is not rdata of that type
    """
    layout = _NAMES.get(rtype)
    if layout is None:
        return message[start:end]
    octets, strings, name_count = layout
    at = start + octets
    try:
        for _ in range(strings):
            at += 1 + message[at]
        parts = [message[start:at]]
        for _ in range(name_count):
            name, at = wire.name_at(message, at, names)
            parts.append(name)
    except IndexError:
        raise wire.Malformed from None
    if at > end:
        raise wire.Malformed
    parts.append(message[at:end])
    return b''.join(parts)


def fold_names(rtype: int, rdata: bytes) -> bytes:
    """*rdata* without compression, with those names in lower case that :func:`canonical` keeps as they are.

    They are compared without regard to case all the same (RFC 4343 section 3).
    """
    if rtype not in KEPT_NAMES:
        return rdata
    try:
        if rtype == _HIP:  # names up to its end
            at, count = 4 + rdata[0] + int.from_bytes(rdata[2:4], 'big'), len(rdata)
        elif rtype in (_IPSECKEY, _AMTRELAY):  # of a gateway of type 3
            at, count = 3 if rtype == _IPSECKEY else 2, rdata[1] & 0x7f == 3
        else:
            at, _, count = _KEPT_NAMES[rtype]
        start = at
        while count and at < len(rdata):
            at, count = at + 1 + rdata[at], count - (not rdata[at])
    except IndexError:  # no rdata of this type
        return rdata
    return rdata[:start] + rdata[start:at].translate(wire.LOWER) + rdata[at:]


def _is_digest(keyed: bytes) -> bool:
    """Whether it is a ZONEMD record or the signature of one, which at the apex are not part of the digest."""
    rtype = int.from_bytes(keyed[:2], 'big')
    return rtype == ZONEMD or rtype == _RRSIG and keyed[2:4] == ZONEMD.to_bytes(2, 'big')


def sort_key(owner: bytes, end: int | None = None) -> bytes | None:
    """The labels before *end* (None: the root) from the right, to sort by label; None if a label does not end there."""
    end = len(owner) - 1 if end is None else end
    labels, at = [], 0
    while at < end:
        labels.append(owner[at + 1:at + 1 + owner[at]])
        at += 1 + owner[at]
    if at != end:
        return None
    labels.reverse()
    joined = b'\0'.join(labels)
    # In labels the octet that ends a label here, and the one that escapes it, are written as two.
    if joined.count(b'\0') == max(0, len(labels) - 1) and b'\1' not in joined:
        return joined
    return b'\0'.join(label.replace(b'\1', b'\1\2').replace(b'\0', b'\1\1') for label in labels)
