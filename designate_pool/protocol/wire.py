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

_LOWER = bytes(octet + 32 if 65 <= octet <= 90 else octet for octet in range(256))
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


def skip_name(message: bytes, at: int) -> int:
    """The offset after the name at *at*, which may end in a pointer.

    :raises Malformed: when it does not end within the message, or has a label of an unknown kind
    """
    try:
        while True:
            length = message[at]
            if length == 0:
                return at + 1
            if length >= 0xc0:
                if at + 2 > len(message):
                    raise Malformed
                return at + 2
            if length > 63:
                raise Malformed
            at += 1 + length
    except IndexError:
        raise Malformed from None


def plain_name_end(message: bytes, at: int) -> int:
    """The offset after the name at *at*, which must not be compressed and not be longer than 255 octets.

    :raises Malformed: when it is either, or does not end within the message
    """
    start = at
    try:
        while length := message[at]:
            if length > 63:
                raise Malformed
            at += 1 + length
    except IndexError:
        raise Malformed from None
    if at + 1 - start > 255:
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


def same_name(message: bytes, at: int, name: bytes) -> bool:
    """Whether the name at *at*, compressed or not, is *name* (plain wire form, lower case).

    :raises Malformed: when a pointer does not lead backwards or a name does not end
    """
    labels = bytearray()
    limit = at + 1
    try:
        while length := message[at]:
            if length >= 0xc0:
                target = (length & 0x3f) << 8 | message[at + 1]
                if target >= limit - 1:
                    raise Malformed
                at, limit = target, target + 1
                continue
            if length > 63 or len(labels) > 255 or at + 1 + length >= len(message):
                raise Malformed
            labels += message[at:at + 1 + length]
            at += 1 + length
    except IndexError:
        raise Malformed from None
    return bytes(labels).translate(_LOWER) + b'\0' == name


def lower(name: bytes) -> bytes:
    """A name in wire form, in lower case; the length octets (63 at most) stay as they are."""
    return name.translate(_LOWER)


def text_of(name: bytes) -> str:
    """A plain name in wire form as the lower case text that the database has, with the final dot."""
    labels, at = [], 0
    while length := name[at]:
        labels.append(name[at + 1:at + 1 + length].translate(_LOWER))
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
        return _by_dnspython(name)
    wire = labels_of(name.removesuffix('.')).translate(_LOWER) + b'\0'
    if len(wire) > 255:
        raise ValueError(f'{name!r} is longer than a domain name can be')
    return wire


def labels_of(text: str) -> bytes:
    """The labels of a text with no final dot and no escape, in wire form without the root.

    :raises ValueError: when a label is empty or longer than 63 octets
    """
    if not text:
        return b''
    wire = b''
    for label in text.encode('ascii').split(b'.'):
        try:
            wire += _LENGTHS[len(label)] + label
        except KeyError:
            raise ValueError(f'{text!r} is no domain name') from None
    return wire


def _by_dnspython(name: str) -> bytes:
    try:
        return (dns.name.from_text(name).to_wire() or b'').translate(_LOWER)
    except dns.exception.DNSException as error:
        raise ValueError(f'{name!r} is no domain name: {error}') from error
