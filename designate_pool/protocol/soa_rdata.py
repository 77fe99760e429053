"""A SOA's rdata (RFC 1035 section 3.3.13), on the wire and as text."""

from __future__ import annotations

import functools
import re
import struct
from typing import NamedTuple

import dns.exception
import dns.name

from designate_pool.errors import InvalidField
from designate_pool.model import Domain, ZoneHead
from designate_pool.protocol import wire
from designate_pool.protocol.names_and_rdata import rname, why_not_ascii
from designate_pool.protocol.rrset import RRset
from designate_pool.serial import SPACE

_NUMBERS = struct.Struct('!IIIII')
_LOCAL_PART = re.compile(r'[^\s@"(),:;<>\\\[\]\x00-\x20\x7f-\U0010ffff]{1,63}')
_MAIL_HOST = re.compile(r'(?:(?!-)[a-z0-9_-]+(?<!-)(?:\.|$))+(?<!\.)', re.IGNORECASE | re.ASCII)


class SoaValues(NamedTuple):
    """The values of a SOA record."""

    names: str
    email: str
    refresh: int
    retry: int
    expire: int
    minimum: int


def encode(head: ZoneHead) -> bytes:
    """The rdata of the zone's SOA, its names not compressed.

    :raises ValueError: when the pool has no name server, or a name is not one
    """
    if head.soa_names:
        return encode_as(head.soa_names, head)
    if not head.name_servers:
        raise ValueError(f'pool {head.pool_name} has no name servers to make the SOA of {head.name} from')
    return wire.wire_of(head.name_servers[0]) + _rname_wire(head.email) + _numbers(head)


def encode_as(names: str, zone: Domain | ZoneHead) -> bytes:
    """As :func:`encode`, with the primary and the mailbox in *names*."""
    return b''.join(b'\0' if name == '.' else wire.wire_of(name) for name in names.split()) + _numbers(zone)


def _numbers(zone: Domain | ZoneHead) -> bytes:
    return _NUMBERS.pack(zone.serial, zone.refresh, zone.retry, zone.expire, zone.minimum)


@functools.lru_cache(4096)
def _rname_wire(email: str) -> bytes:
    return rname(email).to_wire() or b''


def text(zone: Domain | ZoneHead, primary: str) -> str:
    """The rdata of the zone's SOA as text; *primary* is the pool's first name server."""
    names = zone.soa_names or f'{primary} {rname(zone.email).to_text()}'
    return f'{names} {zone.serial} {zone.refresh} {zone.retry} {zone.expire} {zone.minimum}'


def parse_soa(rdata: str, name: str) -> SoaValues:
    """The values of the SOA record of the zone *name*; the text *rdata* has absolute names."""
    primary, mailbox, _, *numbers = rdata.split()
    refresh, retry, expire, minimum = map(int, numbers)
    return SoaValues(f'{primary} {mailbox}', _email(mailbox, name), refresh, retry, expire, minimum)


def _email(mailbox: str, name: str) -> str:
    """The mailbox of a SOA as an address (RFC 1035 section 8); that of the host master for one that is none."""
    labels = dns.name.from_text(mailbox).labels
    host = dns.name.Name(labels[1:]).to_text(omit_final_dot=True) if len(labels) > 2 else ''
    address = f'{labels[0].decode("ascii", "replace")}@{host}'
    return address if host and len(address) <= 255 and address.isprintable() else f'hostmaster@{name.rstrip(".")}'


def check_email(field: str, value: str) -> str:
    """*value* if it is an address that the SOA can hold (RFC 1035 section 8)."""
    local, at, host = value.rpartition('@')
    if not at or not _LOCAL_PART.fullmatch(local):
        raise InvalidField(field=field, why=f'not an e-mail address: {value}')
    if not host.isascii():
        raise InvalidField(field=field, why=why_not_ascii(host))
    try:
        if not _MAIL_HOST.fullmatch(host):
            raise ValueError
        rname(value)
    except (dns.exception.DNSException, ValueError):
        raise InvalidField(field=field, why=f'not an e-mail address that an SOA record can hold: {value}') from None
    return value


@functools.lru_cache(maxsize=1000)  # many zones have the same
def check_mailbox(field: str, labels: tuple[bytes, ...]) -> str:
    """The e-mail address of an SOA's mailbox: names are equal without regard to case, and addresses are not."""
    if len(labels) < 3:
        raise InvalidField(field=field, why=f'{dns.name.Name(labels)} in the SOA is not an e-mail address')
    local = labels[0].decode('ascii', 'replace')
    return check_email(field, f'{local}@{dns.name.Name(labels[1:]).to_text(omit_final_dot=True)}')


def check_expire(field: str, expire: int, refresh: int) -> None:
    """Refuse the times of an SOA with which servers do not keep the zone until they ask for a new version."""
    if expire < max(refresh, 1):
        raise InvalidField(field=field, why=f'expire is {expire} in the SOA, and refresh {refresh}: a server would '
                                            'give up the zone before it asks for a new version (RFC 1912 section 2.2)')


def serial_at(message: bytes, record: wire.WireRecord) -> int:
    """The serial in a SOA record of a message.

    :raises wire.Malformed: when the rdata is not two names and five numbers
    """
    numbers = wire.skip_name(message, wire.skip_name(message, record.start))
    if numbers + _NUMBERS.size != record.end:
        raise wire.Malformed
    return int.from_bytes(message[numbers:numbers + 4], 'big')


def serial_in(text: str) -> int:
    """The serial in rdata as text."""
    return int(text.split()[2])


def serial_of(soa: RRset) -> int:
    """The serial of an SOA RRset."""
    return serial_in(soa.rdatas[0])


def with_serial(soa: RRset, serial: int) -> RRset:
    """*soa* with another serial, which is counted modulo 2**32."""
    words = soa.rdatas[0].split()
    words[2] = str(serial % SPACE)
    return soa._replace(rdatas=(' '.join(words),))
