"""Names and types in the forms that DNSSEC digests, orders and signs."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterable

import dns.name

from designate_pool.protocol import zonemd

#: What precedes the next hash in an NSEC3 record: SHA-1, no flags, no iterations, no salt (RFC 9276), 20 octets.
NSEC3_PREFIX = bytes((1, 0, 0, 0, 0, 20))
#: The NSEC3PARAM record of such a chain (RFC 5155 section 4.2).
NSEC3PARAM = bytes((1, 0, 0, 0, 0))


def name_wire(name: str) -> bytes:
    """The wire form of an absolute *name*, in lower case.

    :raises DNSException: for what is no name
    """
    if '\\' in name or name == '.' or len(name) > 250:
        return dns.name.from_text(name).canonicalize().to_wire() or b''
    labels = name.lower().encode('ascii').split(b'.')
    return b''.join([bytes((len(label),)) + label for label in labels])


def chain_key(wire: bytes) -> bytes:
    """Sorts names in wire form and lower case, octet by octet, in canonical order (RFC 4034 section 6.1); at most 507
    octets.

    The keys of the names below another are those between its key followed by an octet of 0, and by one of 1.
    """
    return zonemd.sort_key(wire) or b''


def nsec3_key(name: str) -> bytes:
    """The hash of *name* in a chain of NSEC3 records without iterations and salt (RFC 5155 section 5); 20 octets."""
    return hashlib.sha1(name_wire(name), usedforsecurity=False).digest()


def nsec3_owner(key: bytes, zone: str) -> str:
    """The name of the NSEC3 record in *zone* for the hash *key*."""
    return f'{base64.b32hexencode(key).decode().lower()}.{zone}'


@functools.lru_cache(1024)
def type_bitmap(types: frozenset[int]) -> bytes:
    """The set of *types* as NSEC and NSEC3 records have it (RFC 4034 section 4.1.2)."""
    windows: dict[int, bytearray] = {}
    for number in sorted(types):
        bits = windows.setdefault(number >> 8, bytearray())
        bits.extend(bytes((number & 0xff) // 8 + 1 - len(bits)))
        bits[-1] |= 0x80 >> number % 8
    return b''.join(bytes((window, len(bits))) + bits for window, bits in windows.items())


def canonical_rdata(number: int, wires: Iterable[bytes]) -> list[bytes]:
    """The data of an RRset in canonical form and order, each once (RFC 4034 sections 6.2 and 6.3)."""
    return sorted({zonemd.canonical(number, wire, 0, len(wire), {}) for wire in wires})


def label_count(wire: bytes) -> int:
    """The labels of a name in wire form as an RRSIG counts them, without the root and a ``*`` in front."""
    count = at = 0
    while wire[at]:
        count, at = count + 1, at + 1 + wire[at]
    return count - wire.startswith(b'\1*')
