"""The reply to one message over DNS."""

from __future__ import annotations

import dataclasses
import ipaddress
import logging
from collections.abc import Callable, Iterator

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import dns.tsig

from designate_pool.nameserver.faults import Faults
from designate_pool.nameserver.zones import HeldZone, Reply, ZoneContents, ZoneTable, text_of

LOG = logging.getLogger(__name__)
UDP_SIZE = 1232
#: Approximate octets of a message of a transfer.
MESSAGE_OCTETS = 16000


@dataclasses.dataclass
class Response:
    """The messages of a reply, in order; none for no reply.

    :ivar delay: seconds to wait before the first
    """

    messages: Iterator[bytes]
    delay: float = 0.0


SILENCE = Response(iter(()))


class Responder:
    """Answers queries for the zones, and accepts NOTIFYs.

    :param refresh: called with the zone and the serial of a NOTIFY
    """

    def __init__(self, zones: ZoneTable, faults: Faults, refresh: Callable[[HeldZone, int | None], None]) -> None:
        self._zones = zones
        self._faults = faults
        self._refresh = refresh

    def respond(self, wire: bytes, client: str, over_tcp: bool) -> Response:
        """The response to one message.

        :param client: the sender's address
        """
        if len(wire) < 12 or wire[2] & 0x80:
            return SILENCE
        try:
            query = dns.message.from_wire(wire, keyring=self._zones.keyring)
        except (dns.tsig.BadSignature, dns.tsig.BadTime, dns.tsig.PeerError, dns.message.UnknownTSIGKey):
            return Response(iter([_header_only(wire, dns.rcode.NOTAUTH)]))
        except Exception:  # dnspython raises many kinds for a malformed message
            return Response(iter([_header_only(wire, dns.rcode.FORMERR)]))
        if len(query.question) != 1:
            return Response(iter([_header_only(wire, dns.rcode.FORMERR)]))
        name = query.question[0].name
        zone = self._zones.get(name) if query.opcode() == dns.opcode.NOTIFY else self._zones.enclosing(name)
        zone_name = text_of(name) if zone is None else zone.text
        if self._faults.take('drop', zone_name) is not None:
            return SILENCE
        delay = self._faults.take('delay', zone_name)
        reply = self._reply(query, zone, zone_name, client, over_tcp)
        messages = iter([_message(query, reply, over_tcp)]) if isinstance(reply, Reply) else reply
        return Response(messages, delay.seconds if delay is not None else 0.0)

    def _reply(self, query: dns.message.Message, zone: HeldZone | None, zone_name: str, client: str,
               over_tcp: bool) -> Reply | Iterator[bytes]:
        """The reply, or the messages of a transfer."""
        if query.opcode() == dns.opcode.NOTIFY:
            return self._handle_notify(query, zone, client)
        if query.opcode() != dns.opcode.QUERY:
            return Reply(dns.rcode.NOTIMP, False)
        for kind, rcode in (('servfail', dns.rcode.SERVFAIL), ('refused', dns.rcode.REFUSED)):
            if self._faults.take(kind, zone_name) is not None:
                return Reply(rcode, False)
        question = query.question[0]
        if zone is None or question.rdclass != dns.rdataclass.IN:
            return Reply(dns.rcode.REFUSED, False)
        contents = zone.served
        if contents is None:
            return Reply(dns.rcode.SERVFAIL, False)
        if self._faults.take('altered', zone_name) is not None:
            contents = contents.altered
        if question.rdtype in (dns.rdatatype.AXFR, dns.rdatatype.IXFR):
            return _transfer(query, zone, contents, client, over_tcp)
        return contents.reply(question.name, question.rdtype)

    def _handle_notify(self, query: dns.message.Message, zone: HeldZone | None, client: str) -> Reply:
        """RFC 1996; accepted from the zone's primaries and from holders of its key."""
        if zone is None:
            return Reply(dns.rcode.NOTAUTH, False)
        if not query.had_tsig and not _is_primary(client, zone):
            return Reply(dns.rcode.REFUSED, False)
        serials = [int(rrset[0].serial) for rrset in query.answer if rrset.rdtype == dns.rdatatype.SOA]
        self._refresh(zone, serials[0] if serials else None)
        return Reply()


def _message(query: dns.message.Message, reply: Reply, over_tcp: bool) -> bytes:
    response = dns.message.make_response(query, our_payload=UDP_SIZE)
    response.set_rcode(reply.rcode)
    if reply.authoritative:
        response.flags |= dns.flags.AA
    response.answer, response.authority = reply.answer, reply.authority
    size = 65535 if over_tcp else max(512, min(query.payload, UDP_SIZE) if query.edns >= 0 else 512)
    return response.to_wire(max_size=size, prefer_truncation=True)


def _transfer(query: dns.message.Message, zone: HeldZone, contents: ZoneContents, client: str,
              over_tcp: bool) -> Reply | Iterator[bytes]:
    """The whole zone, for IXFR too (RFC 1995 section 4); IXFR over UDP gets the SOA: retry over TCP."""
    question = query.question[0]
    is_allowed = query.had_tsig or ipaddress.ip_address(client).is_loopback or _is_primary(client, zone)
    if not is_allowed or question.name != zone.name:
        return Reply(dns.rcode.REFUSED, False)
    if over_tcp:
        return _transfer_messages(query, contents)
    return Reply(dns.rcode.FORMERR, False) if question.rdtype == dns.rdatatype.AXFR else Reply(answer=[contents.soa])


def _transfer_messages(query: dns.message.Message, contents: ZoneContents) -> Iterator[bytes]:
    """The messages of an AXFR, each signed when the query was (RFC 8945 section 5.3.1)."""
    context = None
    for number, rrsets in enumerate(_batches(contents)):
        response = dns.message.make_response(query, our_payload=UDP_SIZE)
        response.flags |= dns.flags.AA
        if number:
            response.question = []
        response.answer = rrsets
        yield response.to_wire(max_size=65535, multi=True, tsig_ctx=context)
        context = response.tsig_ctx


def _batches(contents: ZoneContents) -> Iterator[list[dns.rrset.RRset]]:
    """The records in the order of a transfer, the SOA first and last, in batches of about MESSAGE_OCTETS."""
    batch: list[dns.rrset.RRset] = [contents.soa]
    octets = 0
    for rrset in contents.rrsets:
        for rdata in rrset:
            size = len(rdata.to_wire() or b'') + 20
            if octets + size > MESSAGE_OCTETS and octets:
                yield batch
                batch, octets = [], 0
            if not batch or not batch[-1].match(rrset.name, rrset.rdclass, rrset.rdtype, rrset.covers):
                batch.append(dns.rrset.RRset(rrset.name, rrset.rdclass, rrset.rdtype, rrset.covers))
            batch[-1].add(rdata, rrset.ttl)
            octets += size
    batch.append(contents.soa)
    yield batch


def _header_only(wire: bytes, rcode: dns.rcode.Rcode) -> bytes:
    """A reply of a header only, to a malformed query."""
    return wire[:2] + bytes([0x80 | wire[2] & 0x79, rcode]) + bytes(8)


def _is_primary(client: str, zone: HeldZone) -> bool:
    return ipaddress.ip_address(client) in [ipaddress.ip_address(primary.host) for primary in zone.primaries]
