"""Reading and writing the parts of DNS messages (RFC 1035 section 4): names, headers, resource records.

dnspython knows all of this and more; what is here is the little that must be fast, and it never trusts its input.
"""

from __future__ import annotations

import functools
import struct
from typing import NamedTuple

import dns.exception
import dns.name

HEADER = struct.Struct('!HHHHHH')
QUESTION = struct.Struct('!HH')
RECORD = struct.Struct('!HHIH')

QR, AA, TC, RD = 0x8000, 0x0400, 0x0200, 0x0100
OPCODE = 0x7800
QUERY, NOTIFY = 0, 4
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED, NOTAUTH, BADVERS = 0, 1, 2, 3, 4, 5, 9, 16
NS, SOA, PTR, TXT, OPT, TSIG, IXFR, AXFR = 2, 6, 12, 16, 41, 250, 251, 252
IN, ANY = 1, 255

#: A pointer to the name in the question, which always stands at offset 12.
TO_QUESTION = b'\xc0\x0c'

#: The longest offset that a pointer can have.
_POINTABLE = 0x4000
#: Octets with letters in lower case.
LOWER = bytes(octet + 32 if 65 <= octet <= 90 else octet for octet in range(256))
_PLAIN = frozenset(b'abcdefghijklmnopqrstuvwxyz0123456789-_*/')
_LENGTHS = {length: bytes((length,)) for length in range(1, 64)}


class Malformed(ValueError):
    """The octets are not a DNS message."""


class WireRecord(NamedTuple):
    """Where a resource record stands in a message: its rdata is ``message[start:end]``."""

    at: int
    rtype: int
    rclass: int
    ttl: int
    start: int
    end: int


def skip_name(message: bytes, at: int, is_plain: bool = False) -> int:
    """The offset after the name at *at*, which may end in a pointer unless it has to be plain.

    :raises Malformed: when it is longer than 255 octets or the message, or has a label of an unknown kind
    """
    start = at
    try:
        while length := message[at]:
            if length >= 0xc0 and not is_plain:
                at += 1
                break
            if length > 63:
                raise Malformed
            at += 1 + length
    except IndexError:
        raise Malformed from None
    if at >= len(message) or at + 1 - start > 255:
        raise Malformed
    return at + 1


def read_record(message: bytes, at: int) -> WireRecord:
    """The resource record at *at*.

    :raises Malformed: when it does not end within the message
    """
    head = skip_name(message, at)
    start = head + 10
    if start > len(message):
        raise Malformed
    rtype, rclass, ttl, length = RECORD.unpack_from(message, head)
    if start + length > len(message):
        raise Malformed
    return WireRecord(at, rtype, rclass, ttl, start, start + length)


def name_at(message: bytes, at: int, names: dict[int, bytes]) -> tuple[bytes, int]:
    """The name at *at*, which may be compressed, as a whole name in lower case; and the offset after it.

    :param names: a cache of the message's names by offset
    :raises Malformed: when it has no end, is too long, or a pointer does not point backwards
    """
    first, after, limit, whole = at, -1, at, b''
    try:
        while True:
            begin = at
            while 0 < (length := message[at]) < 64:
                at += 1 + length
            whole += message[begin:at].translate(LOWER)
            if length == 0:
                whole, after = whole + b'\0', after if after >= 0 else at + 1
                break
            target = (length & 0x3f) << 8 | message[at + 1]
            if length < 0xc0 or target >= limit:
                raise Malformed
            after, at, limit = after if after >= 0 else at + 2, target, target
            if (tail := names.get(target)) is not None:
                whole += tail
                break
    except IndexError:
        raise Malformed from None
    if len(whole) > 255 or after > len(message):
        raise Malformed
    if first < _POINTABLE:
        names[first] = whole
    return whole, after


def header_only(query: bytes, rcode: int) -> bytes:
    """A reply of a header only, with the query's id, opcode and RD."""
    flags = int.from_bytes(query[2:4], 'big') & (OPCODE | RD)
    return query[:2] + (QR | flags | rcode).to_bytes(2, 'big') + bytes(8)


def text_of(name: bytes) -> str:
    """A plain name in wire form as the lower case text that the database has, with the final dot."""
    labels, at = [], 0
    while length := name[at]:
        labels.append(name[at + 1:at + 1 + length].lower())
        at += 1 + length
    if all(_PLAIN.issuperset(label) for label in labels):
        return b'.'.join(labels).decode('ascii') + '.'
    return dns.name.Name([*labels, b'']).to_text()


@functools.lru_cache(4096)
def wire_of(name: str) -> bytes:
    """As :func:`encode`, with a cache for names that come again.

    :raises ValueError: when it is no name
    """
    return encode(name)


def encode(name: str) -> bytes:
    """A name's text, absolute and with escapes as usual, in lower case wire form.

    :raises ValueError: when it is no name
    """
    if '\\' in name:
        try:
            return (dns.name.from_text(name).to_wire() or b'').lower()
        except dns.exception.DNSException as error:
            raise ValueError(f'{name!r} is no domain name: {error}') from error
    text, wire = name.removesuffix('.').encode('ascii').lower(), b''
    for label in text.split(b'.') if text else ():
        try:
            wire += _LENGTHS[len(label)] + label
        except KeyError:
            raise ValueError(f'{name!r} is no domain name') from None
    if len(wire) > 254:
        raise ValueError(f'{name!r} is longer than a domain name can be')
    return wire + b'\0'
