"""A zone as the records of a transfer (RFC 5936 section 2.2): SOA, everything else, the same SOA again."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

import dns.rdatatype

from designate_pool.model import ZoneHead, ZoneRecord
from designate_pool.protocol import soa_rdata


def pages(head: ZoneHead, contents: Iterable[Sequence[ZoneRecord]]) -> Iterator[Sequence[ZoneRecord]]:
    """*contents*, pages of all records of a zone except its SOA, with the SOA before and after them.

    :raises ValueError: when the zone has no valid SOA
    """
    soa: ZoneRecord = (head.name, 'SOA', None, soa_rdata.encode(head))
    yield soa,
    yield from contents
    yield soa,


@functools.lru_cache(256)
def type_number(kind: str) -> int:
    """The number of a record type.

    :raises ValueError: for an unknown type
    """
    return int(dns.rdatatype.from_text(kind))
