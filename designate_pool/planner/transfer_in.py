"""Taking a zone from a server by AXFR (RFC 5936): all of it, or an error.

A server that refuses a transfer need not have the zone; it is then asked for the zone's SOA.  Only a server that does
not answer for the zone at all is one without it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from typing import Any

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rdtypes.ANY.SOA
import dns.rrset

from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable, SourceError
from designate_pool.model import Answer, Reason
from designate_pool.protocol import soa_query, wire
from designate_pool.protocol.rrset import GENERATED, LOWER
from designate_pool.protocol.tcp_client import TcpConnection, TcpPeer, parsed

#: What a server says to a transfer that it does not give, or of a zone that it does not have.
_REFUSALS = frozenset({dns.rcode.REFUSED, dns.rcode.NOTAUTH, dns.rcode.NXDOMAIN})


class ZoneNotThere(BackendRefused):
    """the server has no zone {zone}"""


class ReadFailed(SourceError, BackendError):
    """{source} cannot be read: {why}."""


class ReadRefused(ReadFailed, BackendRefused):
    """{source} cannot be read: {why}."""


class ReadUnreachable(ReadFailed, BackendUnreachable):
    """{source} cannot be read: {why}."""


def unread(source: str, error: BackendError) -> ReadFailed:
    """*error* as a source has it that cannot be read, still of its kind."""
    kind = next((each for cause, each in ((BackendUnreachable, ReadUnreachable), (BackendRefused, ReadRefused))
                 if isinstance(error, cause)), ReadFailed)
    return kind(source=source, why=str(error), reason=error.reason)


def transfer(peer: TcpPeer, name: str, seconds: float, leave_out: Collection[str] = GENERATED) -> dict[str, str]:
    """The zone *name* as packed pairs (see :mod:`designate_pool.protocol.rrset`), its SOA among them.

    :param seconds: for all of it
    :param leave_out: types that are not wanted
    :raises ZoneNotThere: when the server has no such zone
    :raises BackendRefused: when it does not give it away
    :raises BackendError: when it could not be had whole
    """
    deadline = Deadline(seconds)
    query = dns.message.make_query(name, dns.rdatatype.AXFR, flags=0)
    incoming = _Incoming(query, name, frozenset(leave_out))
    with peer.connect(deadline) as connection:
        connection.send(query)
        refusal = incoming.take(connection)
    if refusal is None:
        return incoming.pairs()
    if refusal in _REFUSALS and serial(peer, name, deadline.left()) is None:
        raise ZoneNotThere(zone=name)
    word = dns.rcode.to_text(refusal)
    if refusal in _REFUSALS:
        raise BackendRefused(why=f'the server does not let {name} be transferred ({word}): its configuration has to '
                                 'allow that to the key, or from this address', reason=Reason.REFUSED)
    raise BackendError(why=f'the server cannot transfer {name} ({word}); its log says why', reason=Reason(word))


def serial(peer: TcpPeer, name: str, seconds: float) -> int | None:
    """The serial of the zone *name* there; None when the server has no such zone.

    :raises BackendError: when it does not say
    """
    return serial_in(peer.ask(soa_question(name), seconds), name)


def soa_question(name: str) -> dns.message.Message:
    return dns.message.make_query(name, dns.rdatatype.SOA, flags=0)


def serial_in(answer: dns.message.Message, name: str) -> int | None:
    """The serial in *answer*, whose signature is checked, to :func:`soa_question`; None for no such zone.

    :raises BackendError: when it says neither
    """
    said = soa_query.read_soa(answer.wire or b'', soa_query.soa_query(wire.encode(name)))
    if said is None or said.answer is Answer.BAD:
        why = dns.rcode.to_text(answer.rcode()) if said is None else said.error
        raise BackendError(why=f'the server does not say whether it has {name} ({why})',
                           reason=None if said is None else said.reason)
    return said.serial


class _Incoming:
    """A transfer as far as it has come."""

    def __init__(self, query: dns.message.Message, name: str, leave_out: frozenset[str]) -> None:
        self._query = query
        self._origin = dns.name.from_text(name)
        self._leave_out = leave_out
        self._soa: Any = None
        self._done = False
        self._found: dict[str, tuple[int, list[str]]] = {}
        self._names: dict[dns.name.Name, str] = {}
        self._types: dict[int, str] = {}

    def take(self, connection: TcpConnection) -> dns.rcode.Rcode | None:
        """Read messages to the last; the RCODE, when the server says no in the first.

        :raises BackendError: for a transfer that ends early, or is not a zone's
        """
        context: Any = None
        first = True
        while not self._done:
            answer = parsed(connection.receive(), self._query, xfr=True, multi=True, tsig_ctx=context,
                            one_rr_per_rrset=True)
            # The messages after the first need not repeat the question (RFC 5936 section 2.2.1).
            if not (self._query.is_response(answer) if first else answer.id == self._query.id):
                raise BackendError(why='the server answered something that was not asked')
            if answer.rcode() != dns.rcode.NOERROR:
                if first:
                    return answer.rcode()
                raise BackendError(why=f'the transfer broke off ({dns.rcode.to_text(answer.rcode())})')
            context = answer.tsig_ctx
            self._add(answer.answer)
            # Green threads wait for each other, and reading a large zone takes seconds.
            time.sleep(0)
            if (first or self._done) and self._query.keyring is not None and not answer.had_tsig:
                raise BackendError(why='the transfer is not signed', reason=Reason.NOT_SIGNED)
            first = False
        return None

    def pairs(self) -> dict[str, str]:
        """What came, packed and in normal form."""
        return {key: '\t'.join((str(ttl), *sorted(set(data)))) for key, (ttl, data) in self._found.items()}

    def _add(self, records: Iterable[dns.rrset.RRset]) -> None:
        for each in records:
            if self._done:
                raise BackendError(why='the transfer goes on after its end')
            if each.rdclass != dns.rdataclass.IN:
                raise BackendError(why=f'the transfer has a record of class {dns.rdataclass.to_text(each.rdclass)}')
            if each.rdtype == dns.rdatatype.SOA and each.name == self._origin and self._soa is not None:
                if each[0] != self._soa:
                    raise BackendError(why='the transfer ends with another SOA than it began with')
                self._done = True
            elif self._soa is None and (each.rdtype != dns.rdatatype.SOA or each.name != self._origin):
                raise BackendError(why="the transfer does not begin with the zone's SOA")
            else:
                if self._soa is None:
                    self._soa = each[0]
                self._keep(each)

    def _keep(self, record: dns.rrset.RRset) -> None:
        rtype = self._types.get(record.rdtype)
        if rtype is None:
            rtype = self._types[record.rdtype] = dns.rdatatype.to_text(record.rdtype)
        if rtype in self._leave_out:
            return
        name = self._names.get(record.name)
        if name is None:
            name = self._names[record.name] = record.name.to_text().lower()
        text = record[0].to_text()
        ttl, data = self._found.setdefault(f'{name}\t{rtype}', (record.ttl, []))
        data.append(text.lower() if rtype in LOWER else text)
        if record.ttl < ttl:  # RFC 2181 section 5.2
            self._found[f'{name}\t{rtype}'] = record.ttl, data
