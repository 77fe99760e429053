"""A client that takes a transfer and only counts, so that it is never what limits the server."""

from __future__ import annotations

import dataclasses
import socket
import time

import dns.message
import dns.rrset
import dns.tsig

from benchmarks.transfer_data import NAME
from designate_pool.model import Endpoint, TsigKey

_CHUNK = 1 << 20
_SECONDS = 120.0


@dataclasses.dataclass(frozen=True, slots=True)
class Taken:
    """
    :ivar seconds: from sending the query to the last octet, the connection not counted
    """

    seconds: float
    records: int
    messages: int
    octets: int


def query(have: int | None = None, key: TsigKey | None = None) -> bytes:
    """An AXFR, or an IXFR of who has the serial *have*, as it is sent."""
    message = dns.message.make_query(NAME, 'AXFR' if have is None else 'IXFR', flags=0)
    if have is not None:
        message.authority.append(dns.rrset.from_text(NAME, 0, 'IN', 'SOA', f'. . {have} 0 0 0 0'))
    if key is not None:
        message.use_tsig(dns.tsig.Key(key.name, key.secret, key.algorithm))
    wire = message.to_wire()
    return len(wire).to_bytes(2, 'big') + wire


def take(server: Endpoint, octets: bytes, records: int) -> Taken:
    """Send a query, and take messages until they have as many *records* as there have to be.

    :raises AssertionError: when the server refuses, or sends fewer or more
    """
    with socket.create_connection((server.host, server.port), timeout=_SECONDS) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        started = time.monotonic()
        sock.sendall(octets)
        buffer = bytearray()
        found = messages = taken = 0
        while found < records:
            more = sock.recv(_CHUNK)
            assert more, f'{server} closed the connection after {found} of {records} records'
            taken += len(more)
            buffer += more
            at = 0
            while len(buffer) >= at + 14 and len(buffer) >= (end := at + 2 + (buffer[at] << 8 | buffer[at + 1])):
                assert not buffer[at + 5] & 15, f'{server} refuses with rcode {buffer[at + 5] & 15}'
                found += buffer[at + 8] << 8 | buffer[at + 9]
                messages += 1
                at = end
            del buffer[:at]
        seconds = time.monotonic() - started
    assert found == records, f'{server} sent {found} records, not {records}'
    return Taken(seconds, found, messages, taken)
