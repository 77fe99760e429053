"""The serial of a zone on a server, over TCP."""

from __future__ import annotations

import dns.message
import dns.rcode
import dns.rdatatype

from designate_pool.errors import BackendError
from designate_pool.model import Answer
from designate_pool.protocol import soa_query, wire
from designate_pool.protocol.tcp_client import TcpPeer


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
