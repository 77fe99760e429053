"""Taking a zone from a server by AXFR (RFC 5936), its records in wire form: all of it, or an error.

:mod:`designate_pool.planner.transfer_in` does the same for what wants text; here, nothing but names is looked into, so
that comparing costs little more than receiving.
"""

from __future__ import annotations

import dataclasses
import struct
import time
from typing import Any

import dns.exception
import dns.message
import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.tsig

from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused
from designate_pool.protocol import zonemd
from designate_pool.protocol.tcp_client import TcpConnection, TcpPeer, parsed

_SOA, _TSIG, _IN = 6, 250, 1
_HEADER = struct.Struct('!HHHHHH')
_RECORD = struct.Struct('!HHIH')
_REFUSALS = frozenset({dns.rcode.REFUSED, dns.rcode.NOTAUTH, dns.rcode.NOTIMP})


class TransferRefused(BackendRefused):
    """it does not let {zone} be transferred ({rcode})"""


class Pace:
    """Has what is received from one server take its time.

    :param rate: octets a second; 0 is without limit
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free_at = 0.0

    def spend(self, octets: int) -> None:
        """So many octets were received: wait until more may be."""
        now = time.monotonic()
        if self._rate:
            self._free_at = max(now, self._free_at) + octets / self._rate
        # Green threads wait for each other, so they are let in at least.
        time.sleep(max(0.0, self._free_at - now))


@dataclasses.dataclass(slots=True)
class Taken:
    """What a server gave.

    :ivar whole: False when it was more than was wanted, and the rest was left
    """

    serial: int
    contents: zonemd.DigestedZone
    whole: bool = True


def take(peer: TcpPeer, name: str, seconds: float, pace: Pace, most: int) -> Taken:
    """The zone *name*.

    :param seconds: that the server may be silent
    :param most: no more than about so many records are read
    :raises TransferRefused: when the server does not give the zone away, or does not have it
    :raises BackendError: when it could not be had whole
    """
    query = dns.message.make_query(name, dns.rdatatype.AXFR, flags=0)
    incoming = _Incoming(query, most)
    patience = _Patience(seconds)
    with peer.connect(patience) as connection:
        connection.send(query)
        refusal = incoming.read(connection, patience, pace)
    if refusal is None:
        return incoming.taken()
    word = dns.rcode.to_text(refusal)
    if refusal in _REFUSALS:
        raise TransferRefused(zone=name, rcode=word)
    raise BackendError(why=f'the server cannot transfer {name} ({word}); its log says why')


class _Patience(Deadline):
    """The time until the next message."""

    def renew(self) -> None:
        self._end = time.monotonic() + self.seconds


class _Incoming:
    """A transfer as far as it has come."""

    def __init__(self, query: dns.message.Message, most: int) -> None:
        self._query = query
        self._key: Any = None
        self._most = most
        self._context: Any = None
        self._signed = False
        self._soa: bytes | None = None
        self._ended = False
        self._contents = zonemd.DigestedZone(query.question[0].name.to_wire() or b'')

    def taken(self) -> Taken:
        assert self._soa is not None
        return Taken(int.from_bytes(self._soa[-20:-16], 'big'), self._contents, self._ended)

    def read(self, connection: TcpConnection, patience: _Patience, pace: Pace) -> dns.rcode.Rcode | None:
        """Read messages to the last, or to the most that is wanted; the RCODE, when the server says no in the first.

        :raises BackendError: for a transfer that ends early, or is not a zone's
        """
        self._key = self._query.keyring
        while not self._ended and self._contents.added <= self._most:
            patience.renew()
            message = connection.receive()
            if len(message) < 12 or message[:2] != self._query.id.to_bytes(2, 'big') or not message[2] & 0x80:
                raise BackendError(why='the server answered something that was not asked')
            if rcode := message[3] & 15:
                if self._soa is None:
                    return parsed(message, self._query).rcode()
                raise BackendError(why=f'the transfer broke off ({dns.rcode.to_text(dns.rcode.Rcode(rcode))})')
            try:
                self._take(message)
            except (zonemd.MalformedRdata, IndexError, struct.error):
                raise BackendError(why='the answer is not a DNS message') from None
            pace.spend(len(message))
        if self._key is not None and not self._signed and self._ended:
            raise BackendError(why='the transfer is not signed')
        return None

    def _take(self, message: bytes) -> None:
        """Put the records of one message into the contents, and check its signature."""
        _, _, questions, answers, authorities, additional = _HEADER.unpack_from(message)
        known: dict[int, bytes] = {}
        at, first = 12, self._soa is None
        for _ in range(questions):
            _, at = zonemd.name_at(message, at, known)
            at += 4
        for _ in range(answers):
            owner, at = zonemd.name_at(message, at, known)
            rtype, rclass, ttl, length = _RECORD.unpack_from(message, at)
            start, at = at + 10, at + 10 + length
            if at > len(message):
                raise zonemd.MalformedRdata
            self._add(owner, rtype, rclass, ttl, zonemd.canonical(rtype, message, start, at, known))
        signature = None
        for _ in range(authorities + additional):
            begin = at
            _, at = zonemd.name_at(message, at, known)
            rtype, _, _, length = _RECORD.unpack_from(message, at)
            start, at = at + 10, at + 10 + length
            signature = (begin, start, length) if rtype == _TSIG and at == len(message) else None
        if self._key is not None:
            self._verify(message, signature, first)

    def _add(self, owner: bytes, rtype: int, rclass: int, ttl: int, rdata: bytes) -> None:
        if self._ended:
            raise BackendError(why='the transfer goes on after its end')
        if rclass != _IN:
            raise BackendError(why=f'the transfer has a record of class {rclass}')
        is_apex = rtype == _SOA and owner == self._contents.apex
        if self._soa is None:
            if not is_apex:
                raise BackendError(why="the transfer does not begin with the zone's SOA")
            self._soa = rdata
        elif is_apex:
            if rdata != self._soa:
                raise BackendError(why='the transfer ends with another SOA than it began with')
            self._ended = True
            return
        self._contents.add(owner, rtype, ttl, rdata)

    def _verify(self, message: bytes, signature: tuple[int, int, int] | None, first: bool) -> None:
        """Check a message's TSIG (RFC 8945 section 5.3.1); the first and the last must have one."""
        self._signed = signature is not None
        if signature is None:
            if first:
                raise BackendError(why='the transfer is not signed')
            self._context.update(message)
            return
        begin, start, length = signature
        try:
            owner, _ = dns.name.from_wire(message, begin)
            rdata = dns.rdata.from_wire(dns.rdataclass.ANY, dns.rdatatype.TSIG, message, start, length)
            self._context = dns.tsig.validate(  # type: ignore[no-untyped-call]
                message, self._key, owner, rdata, int(time.time()), self._query.mac, begin, self._context, True)
        except dns.tsig.BadTime:
            raise BackendError(why='the clocks differ: the answer is signed at a time too far from ours') from None
        except dns.exception.DNSException:
            raise BackendRefused(why='the signature of the transfer is wrong: it was made with another key or secret '
                                     'than ours, or the transfer was changed on its way') from None
