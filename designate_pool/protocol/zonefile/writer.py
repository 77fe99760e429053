"""A zone as the lines of a zone file (RFC 1035 section 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def lines(zone: str, ttl: int, soa: str, rows: Iterable[tuple[str, str, int | None, str]]) -> Iterator[str]:
    """The lines, each with its end.

    :param zone: its name
    :param ttl: seconds, of the SOA and of every record without its own
    :param soa: the SOA's data
    :param rows: name, type, TTL (None for the zone's) and data of every record but the SOA
    """
    yield f'$ORIGIN {zone}\n$TTL {ttl}\n{zone} {ttl} IN SOA {soa}\n'
    for name, rtype, own, data in rows:
        yield f'{name} {ttl if own is None else own} IN {rtype} {data}\n'
