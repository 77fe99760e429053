"""What the server says to one message over DNS."""

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

from designate_pool.nameserver.contents import Reply, ZoneContents
from designate_pool.nameserver.faults import Faults
from designate_pool.nameserver.zones import HeldZone, ZoneTable, text_of

LOG = logging.getLogger(__name__)
PAYLOAD = 1232
#: Octets of a message of a transfer, about.
TRANSFER_OCTETS = 16000


@dataclasses.dataclass
class Response:
    """Messages to send, in order; none means silence.

    :ivar delay: seconds to wait before the first
    """

    messages: Iterator[bytes]
    delay: float = 0.0


SILENCE = Response(iter(()))


class Responder:
    """Answers queries from the zones held, and takes NOTIFY.

    :param refresh: called with the zone that a NOTIFY is about, and the serial in it
    """

    def __init__(self, zones: ZoneTable, faults: Faults, refresh: Callable[[HeldZone, int | None], None]) -> None:
        self._zones = zones
        self._faults = faults
        self._refresh = refresh

    def respond(self, wire: bytes, client: str, tcp: bool) -> Response:
        """:param client: the sender's address"""
        if len(wire) < 12 or wire[2] & 0x80:
            return SILENCE
        try:
            query = dns.message.from_wire(wire, keyring=self._zones.keyring)
        except (dns.tsig.BadSignature, dns.tsig.BadTime, dns.tsig.PeerError, dns.message.UnknownTSIGKey):
            return Response(iter([_bare(wire, dns.rcode.NOTAUTH)]))
        except Exception:  # dnspython raises many kinds; whatever it is, the message is malformed
            return Response(iter([_bare(wire, dns.rcode.FORMERR)]))
        if len(query.question) != 1:
            return Response(iter([_bare(wire, dns.rcode.FORMERR)]))
        name = query.question[0].name
        zone = self._zones.get(name) if query.opcode() == dns.opcode.NOTIFY else self._zones.above(name)
        label = text_of(name) if zone is None else zone.text
        if self._faults.take('drop', label) is not None:
            return SILENCE
        slow = self._faults.take('delay', label)
        return Response(self._messages(query, zone, label, client, tcp), slow.seconds if slow is not None else 0.0)

    def _messages(self, query: dns.message.Message, zone: HeldZone | None, label: str, client: str,
                  tcp: bool) -> Iterator[bytes]:
        if query.opcode() == dns.opcode.NOTIFY:
            return self._single(query, self._notified(query, zone, client), tcp)
        if query.opcode() != dns.opcode.QUERY:
            return self._single(query, Reply(dns.rcode.NOTIMP, False), tcp)
        for kind, rcode in (('servfail', dns.rcode.SERVFAIL), ('refused', dns.rcode.REFUSED)):
            if self._faults.take(kind, label) is not None:
                return self._single(query, Reply(rcode, False), tcp)
        question = query.question[0]
        if zone is None or question.rdclass != dns.rdataclass.IN:
            return self._single(query, Reply(dns.rcode.REFUSED, False), tcp)
        contents = zone.served
        if contents is None:
            return self._single(query, Reply(dns.rcode.SERVFAIL, False), tcp)
        if self._faults.take('altered', label) is not None:
            contents = contents.altered
        if question.rdtype in (dns.rdatatype.AXFR, dns.rdatatype.IXFR):
            return self._transfer(query, zone, contents, client, tcp)
        return self._single(query, contents.reply(question.name, question.rdtype), tcp)

    def _notified(self, query: dns.message.Message, zone: HeldZone | None, client: str) -> Reply:
        """RFC 1996; taken from the zone's primaries and from whoever has its key."""
        if zone is None:
            return Reply(dns.rcode.NOTAUTH, False)
        if not query.had_tsig and not _is_among(client, [primary.host for primary in zone.primaries]):
            return Reply(dns.rcode.REFUSED, False)
        hints = [int(rrset[0].serial) for rrset in query.answer if rrset.rdtype == dns.rdatatype.SOA]
        self._refresh(zone, hints[0] if hints else None)
        return Reply()

    def _transfer(self, query: dns.message.Message, zone: HeldZone, contents: ZoneContents, client: str,
                  tcp: bool) -> Iterator[bytes]:
        """The whole zone, for IXFR too (RFC 1995 section 4); over UDP the SOA alone sends an asker of IXFR to TCP."""
        question = query.question[0]
        allowed = query.had_tsig or _is_loopback(client) or _is_among(client, [each.host for each in zone.primaries])
        if not allowed or question.name != zone.name:
            return self._single(query, Reply(dns.rcode.REFUSED, False), tcp)
        if not tcp:
            if question.rdtype == dns.rdatatype.AXFR:
                return self._single(query, Reply(dns.rcode.FORMERR, False), tcp)
            return self._single(query, Reply(answer=[contents.soa]), tcp)
        return _packed_transfer(query, contents)

    @staticmethod
    def _single(query: dns.message.Message, reply: Reply, tcp: bool) -> Iterator[bytes]:
        response = dns.message.make_response(query, our_payload=PAYLOAD)
        response.set_rcode(reply.rcode)
        if reply.authoritative:
            response.flags |= dns.flags.AA
        response.answer, response.authority, response.additional = reply.answer, reply.authority, reply.additional
        size = 65535 if tcp else max(512, min(query.payload, PAYLOAD) if query.edns >= 0 else 512)
        yield response.to_wire(max_size=size, prefer_truncation=True)


def _packed_transfer(query: dns.message.Message, contents: ZoneContents) -> Iterator[bytes]:
    """AXFR in messages of a moderate size, each signed when the query was (RFC 8945 section 5.3.1)."""
    context = None
    for number, rrsets in enumerate(_batches(contents)):
        response = dns.message.make_response(query, our_payload=PAYLOAD)
        response.flags |= dns.flags.AA
        if number:
            response.question = []
        response.answer = rrsets
        yield response.to_wire(max_size=65535, multi=True, tsig_ctx=context)
        context = response.tsig_ctx


def _batches(contents: ZoneContents) -> Iterator[list[dns.rrset.RRset]]:
    """The records in the order of a transfer, the SOA first and last, in lists of about TRANSFER_OCTETS."""
    batch: list[dns.rrset.RRset] = [contents.soa]
    octets = 0
    for rrset in contents.rrsets:
        for rdata in rrset:
            size = len(rdata.to_wire() or b'') + 20
            if octets + size > TRANSFER_OCTETS and octets:
                yield batch
                batch, octets = [], 0
            if not batch or not batch[-1].match(rrset.name, rrset.rdclass, rrset.rdtype, rrset.covers):
                batch.append(dns.rrset.RRset(rrset.name, rrset.rdclass, rrset.rdtype, rrset.covers))
            batch[-1].add(rdata, rrset.ttl)
            octets += size
    batch.append(contents.soa)
    yield batch


def _bare(wire: bytes, rcode: dns.rcode.Rcode) -> bytes:
    """A header alone that answers what could not be read."""
    return wire[:2] + bytes([0x80 | wire[2] & 0x79, rcode]) + bytes(8)


def _is_loopback(client: str) -> bool:
    return ipaddress.ip_address(client).is_loopback


def _is_among(client: str, hosts: list[str]) -> bool:
    return client in hosts or ipaddress.ip_address(client) in map(ipaddress.ip_address, hosts)
