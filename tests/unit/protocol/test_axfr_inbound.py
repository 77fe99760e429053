"""A transfer, message by message, without a server."""

from __future__ import annotations

import dns.message
import dns.rcode
import dns.rrset
import pytest

from designate_pool.errors import BackendError
from designate_pool.protocol.axfr_inbound import AxfrInbound, IxfrInbound, ixfr_query

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


IXFR = ixfr_query('example.com.', 5)


def soa(serial: int) -> str:
    return f'example.com. 300 IN SOA ns1.example.net. h.example.com. {serial} 3600 600 86400 300'


def a(number: int) -> str:
    return f'a{number}.example.com. 60 IN A 192.0.2.{number}'


class Received:
    """A transfer in reply to IXFR: what is added and removed, as the first letters of owners."""

    def __init__(self, *messages: tuple[str, ...]) -> None:
        self.added: list[str] = []
        self.gone: list[str] = []
        self.incoming = IxfrInbound(IXFR, 5, lambda owner, *rest: self.added.append(owner[1:3].decode()),
                                    lambda owner, *rest: self.gone.append(owner[1:3].decode()))
        for each in messages:
            assert not self.incoming.ended
            self.incoming.feed(answer(*each, query=IXFR))


class TestIxfr:
    """RFC 1995 section 4."""

    def test_a_difference_of_two_steps(self) -> None:
        found = Received((soa(7), soa(5), a(1), soa(6), a(2)), (soa(6), soa(7), a(3), soa(7)))
        assert (found.incoming.ended, found.incoming.is_difference, found.incoming.serial) == (True, True, 7)
        assert (found.gone, found.added) == (['a1'], ['ex', 'a2', 'a3'])

    def test_a_whole_zone_in_its_place(self) -> None:
        found = Received((soa(7),), (a(1), a(2), soa(7)))
        assert (found.incoming.ended, found.incoming.is_difference) == (True, False)
        assert (found.gone, found.added) == ([], ['ex', 'a1', 'a2'])

    def test_a_zone_that_has_not_changed(self) -> None:
        found = Received((soa(5),))
        assert (found.incoming.ended, found.incoming.is_difference) == (True, None)

    @pytest.mark.parametrize('records', [
        (soa(7), soa(5), soa(4)), (soa(7), soa(5), soa(6), soa(5)), (soa(7), soa(5), soa(6), a(1), soa(7)),
        (soa(7), soa(6), a(1)), (soa(7), a(1), soa(6)), (a(1),), (soa(5), a(1)), (soa(7), soa(5), soa(7), soa(7), a(1)),
    ], ids=['backwards', 'not the next step', 'ends too early', 'another begin', 'ends with another', 'no SOA',
            'goes on though unchanged', 'goes on after its end'])
    def test_what_does_not_follow(self, records: tuple[str, ...]) -> None:
        with pytest.raises(BackendError):
            Received(records)
