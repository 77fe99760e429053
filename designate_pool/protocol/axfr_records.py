"""A zone as the records of a transfer (RFC 5936 section 2.2): SOA, everything else, the same SOA again."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Iterator, Sequence

import dns.rdatatype

from designate_pool.model import ZoneBlock, ZoneHead, ZoneRecord
from designate_pool.protocol import wire

#: (owner, type, TTL in seconds, rdatas in uncompressed wire form)
RRset = tuple[str, int, int, Sequence[bytes]]

_NUMBERS = struct.Struct('!IIIII')


def pages(head: ZoneHead,
          contents: Iterable[Sequence[ZoneRecord] | ZoneBlock]) -> Iterator[Sequence[ZoneRecord] | ZoneBlock]:
    """*contents*, the records of a zone but its SOA in portions, with the SOA before and behind them.

    :raises ValueError: when the SOA cannot be made
    """
    soa: ZoneRecord = (head.name, 'SOA', None, soa_rdata(head))
    yield soa,
    yield from contents
    yield soa,


def soa_rdata(head: ZoneHead) -> bytes:
    """The SOA's rdata (RFC 1035 section 3.3.13).

    :raises ValueError: when the pool has no name server, or a name is not one
    """
    if not head.name_servers:
        raise ValueError(f'pool {head.pool_name} has no name servers to make the SOA of {head.name} from')
    return (wire.wire_of(head.name_servers[0]) + _mailbox(head.email)
            + _NUMBERS.pack(head.serial, head.refresh, head.retry, head.expire, head.minimum))


@functools.lru_cache(4096)
def _mailbox(email: str) -> bytes:
    """A mail address as a name: what stands before the @ is one label, its dots included (RFC 1035 section 8)."""
    local, _, domain = email.rpartition('@')
    label = local.encode()
    if not 0 < len(label) < 64:
        raise ValueError(f'{email!r} is no mail address')
    return bytes((len(label),)) + label + wire.wire_of(domain)


@functools.lru_cache(256)
def type_number(kind: str) -> int:
    """
    :raises ValueError: when it is no type
    """
    return int(dns.rdatatype.from_text(kind))
