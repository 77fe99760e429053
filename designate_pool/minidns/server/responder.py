"""From the octets of a query to the octets of a reply, as pure functions.

:func:`read` parses and authenticates a query, or replies at once where no zone is needed; :func:`answer`
replies once the zone's head is known.  Octets that are no query get no reply, a malformed query gets FORMERR.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping

from dns.name import Name
from dns.tsig import Key

from designate_pool import serial
from designate_pool.minidns.acl import Acl, AllowedPeer, Refusal, TsigGrant
from designate_pool.minidns.zones import packed_zone
from designate_pool.model import LAST_STAGE, ZoneHead
from designate_pool.protocol import soa_rdata, tsig, wire

#: The UDP size of a client without EDNS, and the largest that is sent to one with EDNS: it passes any network without
#: fragmentation.
UDP_SIZE_WITHOUT_EDNS, MAX_UDP_SIZE = 512, 1232
_DO = 0x8000


@dataclasses.dataclass(frozen=True, slots=True)
class Query:
    """A query that was parsed and authenticated, from a server of the pool or the holder of a grant.

    :ivar question: the octets as they came, with the case of the letters
    :ivar name: the zone, lower case, with the final dot
    :ivar room: octets that the reply may have
    :ivar opt: the OPT record of the reply; empty when the query had none
    :ivar client_serial: in an IXFR query, the serial that the client has
    :ivar peers: the servers that this may be; several when they share an address
    :ivar grant: the grant of the query's key; None for a server
    :ivar opcode: as in the flags of a message: that of a query, or of a NOTIFY
    """

    id: int
    recursion_desired: int
    question: bytes
    name: str
    rtype: int
    over_tcp: bool
    room: int
    opt: bytes
    client_serial: int | None
    peers: tuple[AllowedPeer, ...]
    address: str
    key: Key | None = None
    mac: bytes = b''
    grant: TsigGrant | None = None
    opcode: int = 0

    @property
    def metrics_label(self) -> str:
        """The labels of the servers that share the address, as they cannot be told apart."""
        return ' or '.join(peer.metrics_label for peer in self.peers) or 'visitor'

    @property
    def stage(self) -> int:
        """Of the servers that this may be, that of the last."""
        return max((peer.stage for peer in self.peers), default=LAST_STAGE)

    def reply(self, rcode: int, now: int, flags: int = 0, count: int = 0, body: bytes = b'') -> bytes:
        """A reply of one message, signed if the query was."""
        flags |= wire.QR | self.opcode | self.recursion_desired | rcode
        message = packed_zone.assemble(self.id, flags, self.question, count, body, self.opt)
        return message if self.key is None else tsig.Signer(self.key, self.mac).sign(message, now)


@dataclasses.dataclass(frozen=True, slots=True)
class Transfer:
    """The reply is a zone, or the difference from an older one, which the caller has to load."""

    query: Query
    head: ZoneHead


def messages(query: Query, zone: packed_zone.PackedZone, clock: Callable[[], float]) -> Iterator[bytes]:
    """The messages of a transfer, each made and signed just before it is sent; *clock*: seconds since 1970."""
    signer = None if query.key is None else tsig.Signer(query.key, query.mac, several=True)
    flags = wire.QR | wire.AA | query.recursion_desired
    for count, body in zone.bodies:
        message = packed_zone.assemble(query.id, flags, query.question, count, body, query.opt)
        yield message if signer is None else signer.sign(message, int(clock()))


def read(acl: Acl, grants: Mapping[Name, TsigGrant], message: bytes, address: str, over_tcp: bool,
         now: int) -> Query | Refusal | bytes | None:
    """The query in *message*, or its refusal, or a reply that needs no zone, or None for no reply.

    :param grants: by the name of the key; a server's key of the same name takes precedence
    :param now: seconds since 1970
    """
    if len(message) < 12 or message[2] & 0x80:
        return None
    try:
        message_id, flags, questions, answers, authorities, additional = wire.HEADER.unpack_from(message)
        opcode = flags & wire.OPCODE
        if opcode >> 11 not in (wire.QUERY, wire.NOTIFY):
            return wire.header_only(message, wire.NOTIMP)
        # A NOTIFY may have the new SOA as its answer, which is a hint that anybody could give (RFC 1996 section 3.7).
        if questions != 1 or (answers > 1 if opcode else answers) or authorities > 1:
            raise wire.Malformed
        name_end = wire.skip_name(message, 12, is_plain=True)
        if name_end + 4 > len(message):
            raise wire.Malformed
        rtype, rclass = wire.QUESTION.unpack_from(message, name_end)
        offset = name_end + 4
        question = message[12:offset]

        client_serial = None
        for _ in range(answers):
            offset = wire.read_record(message, offset).end
        for _ in range(authorities):
            record = wire.read_record(message, offset)
            if rtype == wire.IXFR and record.rtype == wire.SOA \
                    and wire.name_at(message, offset, {})[0] == message[12:name_end].lower():
                client_serial = soa_rdata.serial_at(message, record)
            offset = record.end
        if rtype == wire.IXFR and client_serial is None:
            raise wire.Malformed
        options, tsig_record, offset = _additional(message, offset, additional)
        if offset != len(message):
            raise wire.Malformed

        opt, room = b'', UDP_SIZE_WITHOUT_EDNS
        if options is not None:
            opt = b'\0' + wire.RECORD.pack(wire.OPT, MAX_UDP_SIZE, options.ttl & _DO, 0)
            room = min(max(options.rclass, UDP_SIZE_WITHOUT_EDNS), MAX_UDP_SIZE)
        query = Query(message_id, flags & wire.RD, question, wire.text_of(message[12:name_end]), rtype, over_tcp,
                      65535 if over_tcp else room, opt, client_serial, (), address, opcode=opcode)
        if opcode and tsig_record is None:
            return query if (rtype, rclass) == (wire.SOA, wire.IN) else query.reply(wire.FORMERR, now)
        identified = _identify(acl, grants, query, message, tsig_record, now)
        if isinstance(identified, Refusal):
            return identified
        if options is not None and options.ttl >> 16 & 0xff:  # an EDNS version that is not 0 (RFC 6891 section 6.1.3)
            opt = b'\0' + wire.RECORD.pack(wire.OPT, MAX_UDP_SIZE, 1 << 24, 0)
            return dataclasses.replace(identified, opt=opt).reply(wire.BADVERS & 15, now)
        if rclass != wire.IN or rtype not in (wire.SOA, wire.AXFR, wire.IXFR):
            return identified.reply(wire.REFUSED, now)
        if rtype == wire.AXFR and not over_tcp:  # RFC 5936 section 4.2
            return identified.reply(wire.FORMERR, now)
        return identified
    except wire.Malformed:
        return wire.header_only(message, wire.FORMERR)


def _identify(acl: Acl, grants: Mapping[Name, TsigGrant], query: Query, message: bytes,
              tsig_record: tsig.TsigRecord | None, now: int) -> Query | Refusal:
    """*query* with the servers or the grant that it comes from, or its refusal."""
    address = query.address
    if tsig_record is None:
        at_address = acl.peers_by_address.get(address, ())
        peers = tuple(peer for peer in at_address if peer.key is None)
        if peers:
            return dataclasses.replace(query, peers=peers)
        why = f'{address} is no server of the pool'
        for peer in at_address[:1]:
            why = f'{_describe_source(acl, address)} does not sign with the key {peer.key.name if peer.key else ""}'
        return Refusal(query.reply(wire.REFUSED, now), address, '', 'unsigned', why)
    key, peers = acl.peers_by_key.get(tsig_record.owner, (None, ()))
    grant = grants.get(tsig_record.owner) if key is None else None
    if grant is not None:
        key = grant.key
    error = tsig.BADKEY if key is None else tsig.check_query(message, tsig_record, key, now)
    if not error:
        # Servers may share a key; the address then tells them apart, unless NAT has changed it.
        candidates = tuple(peer for peer in peers if address in peer.addresses)
        return dataclasses.replace(query, peers=candidates or peers, key=key, mac=tsig_record.mac, grant=grant)
    refusal = query.reply(wire.NOTAUTH, now)
    if key is not None and error == tsig.BADTIME:
        refusal = tsig.bad_time(refusal, tsig_record, key, now)
    elif key is not None and error == tsig.BADTRUNC:
        # Signed, since the truncated MAC is correct but too short (RFC 8945 section 5.3.2).
        refusal = tsig.Signer(key, tsig_record.mac).sign(refusal, now, tsig.BADTRUNC)
    else:
        refusal = tsig.refuse(refusal, tsig_record, error)
    return Refusal(refusal, address, tsig_record.owner.to_text(), tsig.ERRORS[error],
                   f'{_describe_source(acl, address)} {tsig.describe_fault(tsig_record, key, error, now)}')


def _describe_source(acl: Acl, address: str) -> str:
    candidates = acl.peers_by_address.get(address, ())
    return f'{address} ({candidates[0].label})' if len(candidates) == 1 else address


def answer(query: Query, head: ZoneHead | None, now: int) -> bytes | Transfer:
    """The reply to *query*, or the transfer that it asks for.

    :param head: of the zone in the query; None when MiniDNS does not serve it
    :raises ValueError: when the zone's SOA cannot be made
    """
    if head is None:
        return query.reply(wire.REFUSED if query.rtype == wire.SOA else wire.NOTAUTH, now)
    flags = wire.AA  # the SOA in reply to IXFR means "up to date", or with TC "retry over TCP" (RFC 1995 section 2)
    if query.rtype != wire.SOA and (
            query.client_serial is None or not serial.at_least(query.client_serial, head.serial)):
        if query.over_tcp:
            return Transfer(query, head)
        flags |= wire.TC
    message = query.reply(wire.NOERROR, now, flags, 1, packed_zone.soa(head))
    if len(message) > query.room:
        return query.reply(wire.NOERROR, now, flags | wire.TC)
    return message


def _additional(message: bytes, offset: int, count: int) -> tuple[wire.WireRecord | None, tsig.TsigRecord | None, int]:
    """The OPT and TSIG records of the additional section, and where it ends.

    :raises wire.Malformed: when there are two OPT, or a TSIG that is not the last
    """
    options = tsig_record = None
    for remaining in range(count, 0, -1):
        record = wire.read_record(message, offset)
        if record.rtype == wire.OPT:
            if options is not None or message[offset] != 0:
                raise wire.Malformed
            options = record
        elif record.rtype == wire.TSIG:
            if remaining != 1:
                raise wire.Malformed
            tsig_record = tsig.read(message, record)
        offset = record.end
    return options, tsig_record, offset
