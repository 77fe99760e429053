"""Signed zones as a server has them: transferred whole, and verified with all their signatures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import dns.exception
import dns.name
import dns.rdatatype

from designate_pool.deadline import Deadline, Turns
from designate_pool.errors import BackendError
from designate_pool.model import Server, ZoneRecord
from designate_pool.protocol import tsig, zonemd
from designate_pool.protocol.axfr_inbound import AxfrInbound, Patience, axfr_query, receive
from designate_pool.protocol.tcp_client import TcpPeer
from designate_pool.signing import verifier

#: A zone with more records is not verified.
MOST_RECORDS = 50_000


def verify_each(server: Server, names: Mapping[str, str], now: int, seconds: float) -> dict[str, list[str] | None]:
    """What is wrong with each of these zones, by id, on *server* (see :func:`defects`), in so many seconds for all."""
    deadline = Deadline(seconds)
    return {domain_id: None if deadline.is_over else defects(server, name, now, deadline)
            for domain_id, name in names.items()}


def defects(server: Server, name: str, now: int, deadline: Deadline) -> list[str] | None:
    """What is wrong with a zone on *server*, one sentence each; *now* is in seconds since the epoch.

    None if it is not transferred in time, is not signed there, or has too many records.
    """
    records: list[ZoneRecord] = []

    def add(owner: bytes, rtype: int, ttl: int, message: bytes, start: int, end: int, names: dict[int, bytes]) -> None:
        records.append((dns.name.from_wire(owner, 0)[0].to_text(), dns.rdatatype.to_text(dns.rdatatype.RdataType.make(
            rtype)), ttl, zonemd.canonical(rtype, message, start, end, names)))

    def between(items: Iterable[Any]) -> Iterator[Any]:
        for item in Turns().between(items):
            deadline.left()
            yield item

    try:
        key = None if server.tsig_key is None else tsig.key_from(server.tsig_key)
        incoming = AxfrInbound(axfr_query(name), add)
        refusal = receive(TcpPeer(server.host, server.port, key), incoming, Patience(server.call_timeout, deadline),
                          lambda octets: len(records) > MOST_RECORDS)
        if refusal is not None or not incoming.ended or not any(rtype == 'DNSKEY' for _, rtype, _, _ in records):
            return None
        return verifier.verify_zone(records, now, 0, between)
    except (BackendError, OSError):
        return None
    except (dns.exception.DNSException, IndexError, ValueError):
        return ['It has malformed records.']
