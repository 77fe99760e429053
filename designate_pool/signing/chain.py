"""Which names and types of a zone are signed, and the chain of NSEC or NSEC3 records that proves that no others exist.

The invariants: a name is in the chain exactly if the zone is authoritative for it (with NSEC3, also for one below);
each record of the chain names the next one, and the last the first.  Below a delegation or a DNAME the zone is not
authoritative; at a delegation it is for DS alone (RFC 4035 section 2, RFC 5155 section 7.1, RFC 6672 section 5.3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from designate_pool.model import SignedRecord, ZoneRecord, names
from designate_pool.protocol.names_and_rdata import type_number
from designate_pool.signing import canonical

RRSIG, NSEC, NSEC3, NSEC3PARAM = 'RRSIG', 'NSEC', 'NSEC3', 'NSEC3PARAM'
#: The TTL and the data of each RRset of a name, by type; data in canonical form and order.
RRsets = Mapping[str, tuple[int, list[bytes]]]


class ChainLink(NamedTuple):
    """A name in the chain.

    :ivar owner: of its NSEC or NSEC3 record
    :ivar field: how the record before it has it as the next name
    """

    key: bytes
    owner: str
    field: bytes


def group(records: Iterable[ZoneRecord]) -> dict[str, dict[str, tuple[int, list[bytes]]]]:
    """The RRsets of *records* by owner; where TTLs differ, the lowest is that of the RRset (RFC 2181 section 5.2)."""
    raw: dict[str, dict[str, tuple[int, list[bytes]]]] = {}
    for name, rtype, ttl, wire in records:
        seconds = ttl or 0
        rrsets = raw.setdefault(name, {})
        if rtype in rrsets:
            lowest, wires = rrsets[rtype]
            rrsets[rtype] = min(lowest, seconds), [*wires, wire]
        else:
            rrsets[rtype] = seconds, [wire]
    for rrsets in raw.values():
        for rtype, (ttl, wires) in rrsets.items():
            rrsets[rtype] = ttl, canonical.canonical_rdata(type_number(rtype), wires)
    return raw


def signed_types(name: str, apex: str, types: Collection[str]) -> set[str]:
    """Those of *types* that are signed at *name*, for which the zone is authoritative: at a delegation DS alone."""
    return {'DS'}.intersection(types) if 'NS' in types and name != apex else set(types)


def bitmap(name: str, apex: str, types: Collection[str], denial: str) -> bytes:
    """What the chain says of *types* at *name*, which may be none (an empty non-terminal, with NSEC3)."""
    signed = signed_types(name, apex, types)
    listed = signed | {'NS'}.intersection(types)
    if denial == NSEC:
        listed |= {NSEC, RRSIG}
    elif signed:
        listed.add(RRSIG)
    return canonical.type_bitmap(frozenset(map(type_number, listed)))


def is_cut(name: str, apex: str, types: Collection[str]) -> bool:
    """Whether the zone is not authoritative for what is below *name*."""
    return 'DNAME' in types or 'NS' in types and name != apex


def within(name: str, apex: str) -> list[str]:
    """The names above *name*, the nearest first, up to *apex*; none for *apex* itself."""
    above = names.above(name) if name != apex else []
    return above[:above.index(apex) + 1] if apex in above else []


def is_occluded(name: str, apex: str, rrsets: Mapping[str, RRsets]) -> bool:
    """Whether a name above *name* is a delegation or has a DNAME.

    :param rrsets: of all names above *name* in the zone, at least
    """
    return any(is_cut(above, apex, rrsets.get(above, ())) for above in within(name, apex))


def link_of(name: str, apex: str, denial: str) -> ChainLink:
    """The place of *name* in the chain."""
    if denial == NSEC:
        wire = canonical.name_wire(name)
        return ChainLink(canonical.chain_key(wire), name, wire)
    key = canonical.nsec3_key(name)
    return ChainLink(key, canonical.nsec3_owner(key, apex), key)


def chain_rdata(denial: str, following: bytes, types: bytes) -> bytes:
    """The data of the record of a name, of which *following* is the next one and *types* the bitmap."""
    return following + types if denial == NSEC else canonical.NSEC3_PREFIX + following + types


def split(record: SignedRecord) -> tuple[bytes, bytes]:
    """The next name as it is written in an NSEC or NSEC3 record, and its bitmap."""
    wire, at, end = record.wire, len(canonical.NSEC3_PREFIX), len(canonical.NSEC3_PREFIX) + 20
    if record.type == NSEC:
        at = end = 0
        while wire[end]:
            end += 1 + wire[end]
        end += 1
    return wire[at:end], wire[end:]


def key_of_field(denial: str, field: bytes) -> bytes:
    """The key of the next name as it is written in an NSEC or NSEC3 record."""
    return canonical.chain_key(field) if denial == NSEC else field
