"""A transfer, message by message, without a server."""

from __future__ import annotations

import dns.message
import dns.rcode
import dns.rrset
import pytest

from designate_pool.errors import BackendError
from designate_pool.protocol.axfr_inbound import AxfrInbound

SOA = 'example.com. 300 IN SOA ns1.example.net. h.example.com. 7 3600 600 86400 300'
QUERY = dns.message.make_query('Example.com.', 'AXFR', flags=0)


def answer(*records: str, query: dns.message.Message = QUERY, with_question: bool = True) -> bytes:
    made = dns.message.make_response(query)
    made.answer = [dns.rrset.from_text(*each.split(None, 4)) for each in records]  # type: ignore[arg-type]
    if not with_question:
        made.question = []
    return made.to_wire()


def test_records_are_handed_on_but_the_last_soa() -> None:
    taken: list[tuple[bytes, int, int]] = []
    incoming = AxfrInbound(QUERY, lambda owner, rtype, ttl, *where: taken.append((owner, rtype, ttl)))
    assert incoming.feed(answer(SOA, 'A.example.com. 60 IN A 192.0.2.1')) is None
    assert (incoming.serial, incoming.ended) == (7, False)
    assert incoming.feed(answer(SOA, with_question=False)) is None
    assert incoming.ended
    assert taken == [(b'\7example\3com\0', 6, 300), (b'\1a\7example\3com\0', 1, 60)]


@pytest.mark.parametrize('message', [
    answer(SOA, with_question=False), QUERY.to_wire(), b'', QUERY.to_wire()[:2] + b'\x80',
    answer(SOA, query=dns.message.make_query('example.com.', 'SOA', id=QUERY.id)),
    answer(SOA, query=dns.message.make_query('example.net.', 'AXFR', id=QUERY.id)),
    answer(SOA, query=dns.message.make_query('example.com.', 'AXFR', id=QUERY.id ^ 1))],
    ids=['no question', 'a query', 'nothing', 'cut short', 'another type', 'another name', 'another id'])
def test_an_answer_to_something_else(message: bytes) -> None:
    """The first message repeats the question (RFC 5936 section 2.2.1)."""
    with pytest.raises(BackendError, match='something that was not asked'):
        AxfrInbound(QUERY, lambda *record: None).feed(message)


@pytest.mark.parametrize('length', range(13, len(answer(SOA)) - 11))
def test_a_message_that_was_cut_short(length: int) -> None:
    with pytest.raises(BackendError, match='not a DNS message|not asked'):
        AxfrInbound(QUERY, lambda *record: None).feed(answer(SOA)[:length])


def test_a_refusal() -> None:
    made = dns.message.make_response(QUERY)
    made.set_rcode(dns.rcode.NOTAUTH)
    assert AxfrInbound(QUERY, lambda *record: None).feed(made.to_wire()) == dns.rcode.NOTAUTH
