"""Which reply: from the octets of a query to those of an answer, with nothing looked at but what is handed in.

:meth:`Responder.read` says who asks for what, or answers at once what needs no zone; :func:`answer` does the rest when
the zone's head is known.  Octets that are no query are met with silence, a query that makes no sense with FORMERR.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from dns.name import Name
from dns.tsig import Key

from designate_pool import serial
from designate_pool.minidns.access.acl import Acl, AllowedPeer, Refusal, TsigGrant
from designate_pool.minidns.zones import packing
from designate_pool.model import ZoneHead
from designate_pool.protocol import tsig, wire
from designate_pool.protocol.axfr_records import soa_rdata

#: What a querier without EDNS takes over UDP, and the most that is sent over it to one with EDNS: what passes
#: any network in one piece.
PLAIN_UDP, MOST_UDP = 512, 1232
_DO = 0x8000


@dataclasses.dataclass(frozen=True, slots=True)
class Query:
    """A query that has been understood, from a server of the pool or a visitor.

    :ivar question: as it came, spelling included
    :ivar name: the zone, lower case, with the final dot
    :ivar room: octets that the answer may have
    :ivar opt: the OPT record of the answer; empty when the query had none
    :ivar have: in an IXFR query, the serial that the server has
    :ivar peers: the servers that this may be; several when they share an address
    :ivar address: whom it came from
    :ivar visitor: who that is, if it is no server
    """

    id: int
    recursion_desired: int
    question: bytes
    name: str
    rtype: int
    over_tcp: bool
    room: int
    opt: bytes
    have: int | None
    peers: tuple[AllowedPeer, ...]
    address: str
    key: Key | None = None
    mac: bytes = b''
    visitor: TsigGrant | None = None

    def reply(self, rcode: int, now: int, flags: int = 0, count: int = 0, body: bytes = b'') -> bytes:
        """The one message that answers this query, signed as the query was."""
        flags |= wire.QR | self.recursion_desired | rcode
        message = packing.assemble(self.id, flags, self.question, count, body, self.opt)
        return message if self.key is None else tsig.Signer(self.key, self.mac).sign(message, now)


@dataclasses.dataclass(frozen=True, slots=True)
class Transfer:
    """The answer is a zone or the difference from an older one, which has to be packed."""

    query: Query
    head: ZoneHead

    def messages(self, zone: packing.PackedZone | packing.StreamedZone) -> Messages:
        return Messages(self.query, zone)

    def datagram(self, difference: packing.PackedZone, now: int) -> bytes | None:
        """*difference* as the one message that there is room for over UDP; None when it does not fit."""
        query = self.query
        if len(difference.bodies) > 1 or len(difference.bodies[0][1]) > query.room:
            return None
        message = query.reply(wire.NOERROR, now, wire.AA, *difference.bodies[0])
        return message if len(message) <= query.room else None

    def come_by_tcp(self, now: int) -> bytes:
        """The present SOA, and that there is more (RFC 1995 section 2).

        :raises ValueError: when the zone's SOA cannot be made
        """
        return _soa(self.query, self.head, now, wire.AA | wire.TC)


class Messages:
    """The messages of one transfer, each made and signed when it is its turn to be sent.

    :ivar octets: that the answer sections so far have
    """

    def __init__(self, query: Query, zone: packing.PackedZone | packing.StreamedZone) -> None:
        self._query = query
        self.octets = 0
        self._bodies: Iterator[packing.Body] = iter(zone.bodies)
        self._signer = None if query.key is None else tsig.Signer(query.key, query.mac, several=True)

    def next(self, now: int) -> bytes | None:
        """The next message, signed at *now* (seconds since 1970); None after the last."""
        count, body = next(self._bodies, (0, b''))
        if not count:
            return None
        self.octets += len(body)
        query = self._query
        message = packing.assemble(query.id, wire.QR | wire.AA | query.recursion_desired, query.question, count, body,
                                   query.opt)
        return message if self._signer is None else self._signer.sign(message, now)


class Responder:
    """Knows who may ask.

    :param visitors: by the name of the key; a server's key of the same name goes before
    """

    def __init__(self, guests: Acl, visitors: Mapping[Name, TsigGrant] = {}) -> None:
        self._guests = guests
        self._visitors = visitors

    def read(self, message: bytes, address: str, over_tcp: bool, now: int) -> Query | Refusal | bytes | None:
        """The query in *message*, or how it is refused, or the answer that needs no zone, or None for silence.

        :param address: whom it came from
        :param now: seconds since 1970
        """
        if len(message) < 12 or message[2] & 0x80:
            return None
        try:
            return self._read(message, address, over_tcp, now)
        except wire.Malformed:
            return _bare(message, wire.FORMERR)

    def _read(self, message: bytes, address: str, over_tcp: bool, now: int) -> Query | Refusal | bytes:
        message_id, flags, questions, answers, authorities, additional = wire.HEADER.unpack_from(message)
        if (flags & wire.OPCODE) >> 11 != wire.QUERY:
            return _bare(message, wire.NOTIMP)
        if questions != 1 or answers or authorities > 1:
            raise wire.Malformed
        name_end = wire.plain_name_end(message, 12)
        if name_end + 4 > len(message):
            raise wire.Malformed
        rtype, rclass = wire.QUESTION.unpack_from(message, name_end)
        at = name_end + 4
        question = message[12:at]

        have = None
        for _ in range(authorities):
            record = wire.read_record(message, at)
            if rtype == wire.IXFR and record.rtype == wire.SOA \
                    and wire.same_name(message, at, wire.lower(message[12:name_end])):
                have = wire.soa_serial(message, record)
            at = record.end
        if rtype == wire.IXFR and have is None:
            raise wire.Malformed
        options, seal, at = _additional(message, at, additional)
        if at != len(message):
            raise wire.Malformed

        opt, room = _edns(options)
        query = Query(message_id, flags & wire.RD, question, wire.text_of(message[12:name_end]), rtype, over_tcp,
                      65535 if over_tcp else room, opt, have, (), address)
        known = self._identify(query, message, seal, now)
        if isinstance(known, Refusal):
            return known
        if options is not None and options.ttl >> 16 & 0xff:  # an EDNS version that is not 0 (RFC 6891 section 6.1.3)
            return dataclasses.replace(known, opt=_opt(extended=1)).reply(wire.BADVERS & 15, now)
        if rclass != wire.IN or rtype not in (wire.SOA, wire.AXFR, wire.IXFR):
            return known.reply(wire.REFUSED, now)
        if rtype == wire.AXFR and not over_tcp:  # RFC 5936 section 4.2
            return known.reply(wire.FORMERR, now)
        return known

    def _identify(self, query: Query, message: bytes, seal: tsig.TsigRecord | None, now: int) -> Query | Refusal:
        """*query* with those who may have sent it, or how it is refused."""
        guests, address = self._guests, query.address
        if seal is None:
            peers = guests.by_address.get(address, ())
            if peers:
                return dataclasses.replace(query, peers=peers)
            there = guests.signing.get(address, ())
            why = (f'{self._who(address)} does not sign with the key {_key_name(there[0])}' if there
                   else f'{address} is no server of the pool')
            return Refusal(query.reply(wire.REFUSED, now), address, '', 'unsigned', why)
        key, peers = guests.by_key.get(seal.owner, (None, ()))
        visitor = self._visitors.get(seal.owner) if key is None else None
        if visitor is not None:
            key = visitor.key
        error = tsig.BADKEY if key is None else tsig.check_query(message, seal, key, now)
        if not error:
            # Servers may share a key; the address then says which of them it is, unless it is a translated one.
            there = tuple(peer for peer in peers if address in peer.addresses)
            return dataclasses.replace(query, peers=there or peers, key=key, mac=seal.mac, visitor=visitor)
        refusal = query.reply(wire.NOTAUTH, now)
        if key is not None and error == tsig.BADTIME:
            refusal = tsig.bad_time(refusal, seal, key, now)
        elif key is not None and error == tsig.BADTRUNC:
            refusal = tsig.bad_truncation(refusal, seal, key, now)
        else:
            refusal = tsig.refuse(refusal, seal, error)
        return Refusal(refusal, address, seal.owner.to_text(), tsig.ERRORS[error],
                       f'{self._who(address)} {tsig.complaint(seal, key, error, now)}')

    def _who(self, address: str) -> str:
        """*address*, and the server that it is, if it is only one."""
        there = [*self._guests.signing.get(address, ()), *self._guests.by_address.get(address, ())]
        return f'{address} ({there[0].label})' if len(there) == 1 else address


def answer(query: Query, head: ZoneHead | None, now: int) -> bytes | Transfer:
    """The answer to *query*, or the transfer that it asks for.

    :param head: of the zone it asks for; None when MiniDNS does not serve it
    :raises ValueError: when the zone's SOA cannot be made
    """
    if head is None:
        return query.reply(wire.REFUSED if query.rtype == wire.SOA else wire.NOTAUTH, now)
    current = query.have is not None and serial.at_least(query.have, head.serial)
    if query.rtype != wire.SOA and not current:
        return Transfer(query, head)
    return _soa(query, head, now, wire.AA)  # to IXFR it says "stay as you are" (RFC 1995 section 2)


def failure(query: Query, now: int) -> bytes:
    """The answer when the zone could not be read."""
    return query.reply(wire.SERVFAIL, now)


def _soa(query: Query, head: ZoneHead, now: int, flags: int) -> bytes:
    _, soa = packing.pack(head.name, [(head.name, wire.SOA, head.ttl, (soa_rdata(head),))])[0]
    message = query.reply(wire.NOERROR, now, flags, 1, soa)
    if len(message) > query.room:
        return query.reply(wire.NOERROR, now, flags | wire.TC)
    return message


def _key_name(peer: AllowedPeer) -> str:
    return '' if peer.key is None else peer.key.name.to_text()


def _bare(message: bytes, rcode: int) -> bytes:
    """A header that returns the query's id, operation and RD."""
    flags = int.from_bytes(message[2:4], 'big') & (wire.OPCODE | wire.RD)
    return message[:2] + (wire.QR | flags | rcode).to_bytes(2, 'big') + bytes(8)


def _additional(message: bytes, at: int, count: int) -> tuple[wire.WireRecord | None, tsig.TsigRecord | None, int]:
    """The OPT and TSIG records of the additional section, and where it ends.

    :raises wire.Malformed: when there are two OPT, or a TSIG that is not the last
    """
    options = seal = None
    for left in range(count, 0, -1):
        record = wire.read_record(message, at)
        if record.rtype == wire.OPT:
            if options is not None or message[at] != 0:
                raise wire.Malformed
            options = record
        elif record.rtype == wire.TSIG:
            if left != 1:
                raise wire.Malformed
            seal = tsig.read(message, record)
        at = record.end
    return options, seal, at


def _edns(options: wire.WireRecord | None) -> tuple[bytes, int]:
    """The OPT record of the answer, and the octets that the querier takes over UDP."""
    if options is None:
        return b'', PLAIN_UDP
    return _opt(options.ttl & _DO), min(max(options.rclass, PLAIN_UDP), MOST_UDP)


def _opt(flags: int = 0, extended: int = 0) -> bytes:
    return b'\0' + wire.RECORD.pack(wire.OPT, MOST_UDP, extended << 24 | flags, 0)
