"""Taking a zone from a server by AXFR (RFC 5936): all of it, or an error.

:class:`AxfrInbound` is the state of a transfer and does no I/O.  It looks into nothing but names and hands records on
as octets, so that :func:`take`, which compares zones, costs little more than receiving;
:mod:`designate_pool.planner.transfer_in` makes text of them.
"""

from __future__ import annotations

import dataclasses
import struct
import time
from collections.abc import Callable
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
from designate_pool.model import Reason
from designate_pool.protocol import zonemd
from designate_pool.protocol.tcp_client import TcpPeer, parsed, signature_errors

#: Takes a record: owner (wire form, lower case), type, TTL, and where its rdata is: the message, where it begins and
#: ends, and the names of the message that are known.
Add = Callable[[bytes, int, int, bytes, int, int, dict[int, bytes]], None]

_SOA, _TSIG, _IN = 6, 250, 1
_ASKED = struct.pack('!HH', dns.rdatatype.AXFR, _IN)
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
    contents = zonemd.DigestedZone(query.question[0].name.to_wire() or b'')

    def add(owner: bytes, rtype: int, ttl: int, message: bytes, start: int, end: int, known: dict[int, bytes]) -> None:
        contents.add(owner, rtype, ttl, zonemd.canonical(rtype, message, start, end, known))

    incoming = AxfrInbound(query, add)
    patience = _Patience(seconds)
    refusal = None
    with peer.connect(patience) as connection:
        connection.send(query)
        while not incoming.ended and contents.added <= most and refusal is None:
            patience.renew()
            message = connection.receive()
            refusal = incoming.feed(message)
            pace.spend(len(message))
    if refusal is None:
        return Taken(incoming.serial, contents, incoming.ended)
    word = dns.rcode.to_text(refusal)
    if refusal in _REFUSALS:
        raise TransferRefused(zone=name, rcode=word)
    raise BackendError(why=f'the server cannot transfer {name} ({word}); its log says why')


class _Patience(Deadline):
    """The time until the next message."""

    def renew(self) -> None:
        self._end = time.monotonic() + self.seconds


class AxfrInbound:
    """A transfer as far as it has come.

    :param query: as it was sent
    :param add: takes each record once; the SOA that ends the transfer is none
    :ivar ended: whether the zone is whole
    """

    def __init__(self, query: dns.message.Message, add: Add) -> None:
        self._query = query
        self._add = add
        self._apex = query.question[0].name.canonicalize().to_wire() or b''
        self._context: Any = None
        self._soa: bytes | None = None
        self.ended = False

    @property
    def serial(self) -> int:
        """That of the SOA, which has to have come."""
        assert self._soa is not None
        return int.from_bytes(self._soa[-20:-16], 'big')

    def feed(self, message: bytes) -> dns.rcode.Rcode | None:
        """Take the records of the next message; the RCODE, when the server says no in the first.

        :raises BackendError: for what is not the next message of this transfer, or of no zone's
        """
        if len(message) < 12 or message[:2] != self._query.id.to_bytes(2, 'big') or message[2] & 0xf8 != 0x80:
            raise BackendError(why='the server answered something that was not asked')
        if rcode := message[3] & 15:
            if self._soa is not None:
                raise BackendError(why=f'the transfer broke off ({dns.rcode.to_text(dns.rcode.Rcode(rcode))})')
            answer = parsed(message, self._query)
            if not self._query.is_response(answer):
                raise BackendError(why='the server answered something that was not asked')
            return answer.rcode()
        try:
            self._take(message)
        except (zonemd.MalformedRdata, IndexError, struct.error, dns.exception.DNSException):
            raise BackendError(why='the answer is not a DNS message') from None
        return None

    def _take(self, message: bytes) -> None:
        """Hand on the records of one message, and check its signature."""
        _, _, questions, answers, authorities, additional = _HEADER.unpack_from(message)
        known: dict[int, bytes] = {}
        at, first = 12, self._soa is None
        # The messages after the first need not repeat the question (RFC 5936 section 2.2.1).
        asked = not first
        for _ in range(questions):
            name, at = zonemd.name_at(message, at, known)
            asked = asked or name == self._apex and message[at:at + 4] == _ASKED
            at += 4
        if not asked:
            raise BackendError(why='the server answered something that was not asked')
        for _ in range(answers):
            owner, at = zonemd.name_at(message, at, known)
            rtype, rclass, ttl, length = _RECORD.unpack_from(message, at)
            start, at = at + 10, at + 10 + length
            if at > len(message):
                raise zonemd.MalformedRdata
            if self.ended:
                raise BackendError(why='the transfer goes on after its end')
            if rclass != _IN:
                raise BackendError(why=f'the transfer has a record of class {dns.rdataclass.to_text(rclass)}')
            if rtype == _SOA and owner == self._apex:
                soa = zonemd.canonical(rtype, message, start, at, known)
                if self._soa is not None:
                    if soa != self._soa:
                        raise BackendError(why='the transfer ends with another SOA than it began with')
                    self.ended = True
                    continue
                self._soa = soa
            elif self._soa is None:
                raise BackendError(why="the transfer does not begin with the zone's SOA")
            self._add(owner, rtype, ttl, message, start, at, known)
        signature = None
        for _ in range(authorities + additional):
            begin = at
            _, at = zonemd.name_at(message, at, known)
            rtype, _, _, length = _RECORD.unpack_from(message, at)
            start, at = at + 10, at + 10 + length
            signature = (begin, start, length) if rtype == _TSIG and at == len(message) else None
        if self._query.keyring is not None:
            self._verify(message, signature, first)

    def _verify(self, message: bytes, signature: tuple[int, int, int] | None, first: bool) -> None:
        """Check a message's TSIG (RFC 8945 section 5.3.1); the first and the last must have one."""
        if signature is None:
            if first or self.ended:
                raise BackendError(why='the transfer is not signed', reason=Reason.NOT_SIGNED)
            self._context.update(message)
            return
        begin, start, length = signature
        with signature_errors(message, self._query.keyring):
            owner, _ = dns.name.from_wire(message, begin)
            rdata = dns.rdata.from_wire(dns.rdataclass.ANY, dns.rdatatype.TSIG, message, start, length)
            self._context = dns.tsig.validate(  # type: ignore[no-untyped-call]
                message, self._query.keyring, owner, rdata, int(time.time()), self._query.mac, begin, self._context,
                True)
