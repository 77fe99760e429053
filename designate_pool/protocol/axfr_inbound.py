"""Inbound zone transfers (AXFR, RFC 5936, and IXFR, RFC 1995): the whole zone or difference, or an error.

:class:`AxfrInbound` is the state of a transfer and does no I/O.  It parses names only and passes records on as octets;
:func:`take` adds these to a digest, :mod:`designate_pool.planner.sources.axfr` and
:mod:`designate_pool.minidns.refresher` convert them to text.  All receive them by :func:`receive`, which
does I/O.
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
import dns.rrset
import dns.tsig

from designate_pool.deadline import Deadline, Turns
from designate_pool.errors import BackendError, BackendRefused
from designate_pool.model import Reason
from designate_pool.protocol import wire, zonemd
from designate_pool.protocol.tcp_client import TcpPeer, parsed, signature_errors
from designate_pool.serial import newer

#: Takes a record: owner (wire form, lower case), type, TTL, the message with the start and end of the rdata in it, and
#: the names of that message parsed so far, by offset.
Add = Callable[[bytes, int, int, bytes, int, int, dict[int, bytes]], None]

_REFUSALS = frozenset({dns.rcode.REFUSED, dns.rcode.NOTAUTH, dns.rcode.NOTIMP})


class TransferRefused(BackendRefused):
    """it does not let the zone be transferred ({rcode})"""


#: Octets a second that a server has to send on average while we wait for it.
LEAST_RATE = 4096
#: Messages without records in one transfer.
MOST_EMPTY = 100


class Pace:
    """Limits what is received from one server to *rate* octets a second; 0 for no limit.

    :param check: called for each message; what it raises ends the transfer
    """

    def __init__(self, rate: float, check: Callable[[], object] = lambda: None) -> None:
        self._rate = rate
        self._check = check
        self._free_at = 0.0

    def spend(self, octets: int) -> None:
        """Wait until more may be received after *octets*."""
        self._check()
        now = time.monotonic()
        if self._rate:
            self._free_at = max(now, self._free_at) + octets / self._rate
        if self._free_at > now:
            time.sleep(self._free_at - now)


@dataclasses.dataclass(slots=True)
class Taken:
    """A zone as a server serves it; *whole* is False when it had more records than wanted, and not all came."""

    serial: int
    contents: zonemd.DigestedZone
    whole: bool = True


def take(peer: TcpPeer, name: str, seconds: float, pace: Pace, most: int, most_octets: int) -> Taken:
    """Transfer the zone *name* from *peer*.

    :param seconds: see :class:`Patience`
    :param most: the transfer is broken off after about this many records
    :param most_octets: likewise, of records without compression
    :raises TransferRefused: when the server refuses the transfer, or does not have the zone
    :raises BackendError: when the zone was not received completely
    """
    query = axfr_query(name)
    contents = zonemd.DigestedZone(query.question[0].name.to_wire() or b'')

    def add(owner: bytes, rtype: int, ttl: int, message: bytes, start: int, end: int, names: dict[int, bytes]) -> None:
        contents.add(owner, rtype, ttl, zonemd.canonical(rtype, message, start, end, names))

    def received(octets: int) -> bool:
        pace.spend(octets)
        return contents.added > most or contents.octets > most_octets

    incoming = AxfrInbound(query, add)
    refusal = receive(peer, incoming, Patience(seconds), received)
    if refusal is None:
        return Taken(incoming.serial, contents, incoming.ended)
    word = dns.rcode.to_text(refusal)
    if refusal in _REFUSALS:
        raise TransferRefused(rcode=word)
    raise BackendError(why=f'the server cannot transfer {name} ({word}); its log says why')


def axfr_query(name: str) -> dns.message.Message:
    """An AXFR query."""
    return dns.message.make_query(name, dns.rdatatype.AXFR, flags=0)


def ixfr_query(name: str, serial: int) -> dns.message.Message:
    """An IXFR query of one who has *serial*."""
    query = dns.message.make_query(name, dns.rdatatype.IXFR, flags=0)
    soa = dns.rrset.from_text(name, 0, dns.rdataclass.IN, dns.rdatatype.SOA, f'. . {serial} 0 0 0 0')
    query.authority.append(soa)
    return query


def receive(peer: TcpPeer, incoming: AxfrInbound, deadline: Deadline,
            received: Callable[[int], object] = lambda octets: None) -> dns.rcode.Rcode | None:
    """Feed *incoming* with the transfer from *peer*, up to its end; the RCODE if the server refuses it.

    :param received: called with the size of each message in octets; if it returns True, the rest is not received
    :raises BackendError: when the zone was not received completely
    """
    with peer.connect(deadline) as connection:
        connection.send(incoming.query)
        while not incoming.ended:
            message = connection.receive()
            refusal = incoming.feed(message)
            if refusal is not None or received(len(message)):
                return refusal
    return None


class Patience(Deadline):
    """The time for which a server is waited for: some seconds, and more as its octets come, at :data:`LEAST_RATE`.

    So it may be silent for *seconds* at most, and a transfer of so many octets ends in a time that depends on them.

    :param whole: the end of the transfer, whatever comes
    """

    def __init__(self, seconds: float, whole: Deadline | None = None) -> None:
        super().__init__(seconds)
        self._whole = whole
        self._remaining = seconds
        self._asked_at = 0.0
        self._is_begun = False

    def __str__(self) -> str:
        if self._whole is not None and self._whole.is_over:
            return f'the transfer did not end within {self._whole.seconds:g} s'
        return f'less than {LEAST_RATE} octets a second for {self.seconds:g} s' if self._is_begun else super().__str__()

    def left(self) -> float:
        self._asked_at = time.monotonic()
        if self._remaining <= 0:
            raise TimeoutError
        return self._remaining if self._whole is None else min(self._remaining, self._whole.left())

    def progress(self, octets: int) -> None:
        waited = time.monotonic() - self._asked_at
        self._remaining = min(self.seconds, self._remaining - waited + octets / LEAST_RATE)
        self._is_begun = True


class AxfrInbound:
    """The state of one transfer.

    :param add: called once for each record, without the SOA that ends the transfer
    :ivar ended: whether the zone is complete
    """

    def __init__(self, query: dns.message.Message, add: Add) -> None:
        self.query = query
        self._add = add
        self._apex = query.question[0].name.canonicalize().to_wire() or b''
        self._asked = wire.QUESTION.pack(query.question[0].rdtype, wire.IN)
        self._context: Any = None
        self._soa: bytes | None = None
        self._empty = 0
        self._turns = Turns()
        self.ended = False

    @property
    def serial(self) -> int:
        """The serial of the SOA, which must have been received."""
        assert self._soa is not None
        return _serial_in(self._soa)

    def feed(self, message: bytes) -> dns.rcode.Rcode | None:
        """Add the records of the next message; the RCODE if the first message is a refusal.

        :raises BackendError: when *message* is not the next one of this transfer, or is malformed
        """
        if len(message) < 12 or message[:2] != self.query.id.to_bytes(2, 'big') or message[2] & 0xf8 != 0x80:
            raise BackendError(why='the server answered something that was not asked')
        if rcode := message[3] & 15:
            if self._soa is not None:
                raise BackendError(why=f'the transfer broke off ({dns.rcode.to_text(dns.rcode.Rcode(rcode))})')
            answer = parsed(message, self.query)
            if not self.query.is_response(answer):
                raise BackendError(why='the server answered something that was not asked')
            return answer.rcode()
        try:
            self._take(message)
        except (wire.Malformed, IndexError, struct.error, dns.exception.DNSException):
            raise BackendError(why='the answer is not a DNS message') from None
        return None

    def _take(self, message: bytes) -> None:
        """Add the records of one message, and check its signature."""
        _, _, questions, answers, authorities, additional = wire.HEADER.unpack_from(message)
        names: dict[int, bytes] = {}
        at, first = 12, self._soa is None
        # The messages after the first need not repeat the question, but have no other (RFC 5936 section 2.2.1).
        asked = questions == 1 or not (questions or first)
        for _ in range(questions):
            name, at = wire.name_at(message, at, names)
            asked = asked and name == self._apex and message[at:at + 4] == self._asked
            at += 4
        if not asked:
            raise BackendError(why='the server answered something that was not asked')
        self._empty += not answers
        if self._empty > MOST_EMPTY:
            raise BackendError(why=f'the transfer has more than {MOST_EMPTY} messages without records')
        for _ in self._turns.between(range(answers)):
            owner, at = wire.name_at(message, at, names)
            rtype, rclass, ttl, length = wire.RECORD.unpack_from(message, at)
            start, at = at + 10, at + 10 + length
            if at > len(message):
                raise wire.Malformed
            if self.ended:
                raise BackendError(why='the transfer goes on after its end')
            if rclass != wire.IN:
                raise BackendError(why=f'the transfer has a record of class {dns.rdataclass.to_text(rclass)}')
            self._record(owner, rtype, ttl, message, start, at, names)
        signature = None
        for _ in range(authorities + additional):
            begin = at
            _, at = wire.name_at(message, at, names)
            rtype, _, _, length = wire.RECORD.unpack_from(message, at)
            start, at = at + 10, at + 10 + length
            signature = (begin, start, length) if rtype == wire.TSIG and at == len(message) else None
        if self.query.keyring is not None:
            self._verify(message, signature, first)

    def _record(self, owner: bytes, rtype: int, ttl: int, message: bytes, start: int, end: int,
                names: dict[int, bytes]) -> None:
        """Add the next record, unless it is the SOA that ends the transfer."""
        if rtype == wire.SOA and owner == self._apex:
            soa = zonemd.canonical(rtype, message, start, end, names)
            if self._soa is not None:
                if soa != self._soa:
                    raise BackendError(why='the transfer ends with another SOA than it began with')
                self.ended = True
                return
            self._soa = soa
        elif self._soa is None:
            raise BackendError(why="the transfer does not begin with the zone's SOA")
        self._add(owner, rtype, ttl, message, start, end, names)

    def _verify(self, message: bytes, signature: tuple[int, int, int] | None, first: bool) -> None:
        """Check a message's TSIG (RFC 8945 section 5.3.1); the first and the last must have one."""
        if signature is None:
            if first or self.ended:
                raise BackendError(why='the transfer is not signed', reason=Reason.NOT_SIGNED)
            self._context.update(message)
            return
        begin, start, length = signature
        with signature_errors(message, self.query.keyring):
            owner, _ = dns.name.from_wire(message, begin)
            rdata = dns.rdata.from_wire(dns.rdataclass.ANY, dns.rdatatype.TSIG, message, start, length)
            self._context = dns.tsig.validate(  # type: ignore[no-untyped-call]
                message, self.query.keyring, owner, rdata, int(time.time()), self.query.mac, begin, self._context,
                True)


class IxfrInbound(AxfrInbound):
    """The state of one incremental transfer; the server may also send the whole zone (RFC 1995 section 4).

    :param have: the serial in the query
    :param add: called for each record of the whole zone, or that the steps of the difference add; and for the new SOA
    :param remove: called for each record that the steps remove
    :ivar is_difference: whether it is a difference; None while that is not known, and where the zone has not changed
    """

    def __init__(self, query: dns.message.Message, have: int, add: Add, remove: Add) -> None:
        super().__init__(query, add)
        self._have = have
        self._remove = remove
        self._adds = True
        self._reached = have
        self.is_difference: bool | None = None

    def _record(self, owner: bytes, rtype: int, ttl: int, message: bytes, start: int, end: int,
                names: dict[int, bytes]) -> None:
        is_soa = rtype == wire.SOA and owner == self._apex
        if self._soa is None:
            super()._record(owner, rtype, ttl, message, start, end, names)
            self.ended = self.serial == self._have
            return
        soa = zonemd.canonical(rtype, message, start, end, names) if is_soa else b''
        if self.is_difference is None:
            self.is_difference = is_soa and soa != self._soa and _serial_in(soa) == self._have
        if not self.is_difference:
            super()._record(owner, rtype, ttl, message, start, end, names)
        elif is_soa:
            self._step(soa)
        else:
            (self._add if self._adds else self._remove)(owner, rtype, ttl, message, start, end, names)

    def _step(self, soa: bytes) -> None:
        """Begin the next part of the difference: what a step removes, or what it adds; or end."""
        serial = _serial_in(soa)
        if not self._adds:
            if not newer(serial, self._reached):
                raise BackendError(why=f'a step of the difference leads from serial {self._reached} to {serial}')
            self._reached = serial
        elif self._reached == self.serial and soa == self._soa:
            self.ended = True
        elif serial != self._reached:
            raise BackendError(why=f'a step of the difference begins at serial {serial} and not at {self._reached}')
        self._adds = not self._adds


def _serial_in(soa: bytes) -> int:
    return int.from_bytes(soa[-20:-16], 'big')
