"""Taking a zone from a server: all of it, or an error that says why."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import dns.tsig
import pytest

from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable
from designate_pool.planner.sources import axfr
from designate_pool.planner.sources.axfr import ZoneNotThere, transfer
from designate_pool.planner.targets.rfc2136 import Rfc2136Provider
from designate_pool.protocol.soa_exchange import soa_question
from designate_pool.protocol.tcp_client import TcpPeer, key_of
from tests.fixtures.answering import Scripted

NAME = 'example.com.'
SOA = 'example.com. 300 IN SOA ns1.example.net. hostmaster.example.com. 7 3600 600 86400 300'
KEY = key_of('key.example.', 'c2VjcmV0')
Serve = Callable[..., TcpPeer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A server that answers a transfer with these messages, each a list of records or an RCODE; else with *soa*."""
    made: list[Scripted] = []

    def start(*parts: list[str] | dns.rcode.Rcode, soa: list[str] | dns.rcode.Rcode = dns.rcode.REFUSED,
              key: dns.tsig.Key | None = None, signed: Iterable[int] | None = None,
              changed: tuple[bytes, bytes] = (b'', b'')) -> TcpPeer:
        def script(query: dns.message.Message, over_tcp: bool) -> list[bytes]:
            is_transfer = query.question[0].rdtype == dns.rdatatype.AXFR
            answers = [_answer(query, each) for each in (parts if is_transfer else [soa])]
            return [wire.replace(*changed) for wire in _signed(query, answers, key, signed)]

        made.append(Scripted(script, keyring=KEY))
        return TcpPeer('127.0.0.1', made[0].port, key)

    yield start
    for each in made:
        each.close()


def _answer(query: dns.message.Message, part: list[str] | dns.rcode.Rcode) -> dns.message.Message:
    answer = dns.message.make_response(query, our_payload=0)
    answer.tsig = None
    if isinstance(part, dns.rcode.Rcode):
        answer.set_rcode(part)
        return answer
    answer.flags |= dns.flags.AA
    answer.answer = [dns.rrset.from_text(*each.split(None, 4)) for each in part]
    return answer


def _signed(query: dns.message.Message, answers: list[dns.message.Message], key: dns.tsig.Key | None,
            signed: Iterable[int] | None) -> list[bytes]:
    """Signed as one stream (RFC 8945 section 5.3.1), those with the numbers *signed* with a signature of their own."""
    context = None
    wires = []
    chosen = set(range(len(answers)) if signed is None else signed)
    for number, answer in enumerate(answers):
        if key is not None and number in chosen:
            answer.use_tsig(key)
            answer.request_mac = query.mac
            wires.append(answer.to_wire(multi=True, tsig_ctx=context))
            context = answer.tsig_ctx
        else:
            wires.append(answer.to_wire())
            if context is not None:
                context.update(wires[-1])
    return wires


def test_a_zone_in_several_messages(serve: Serve) -> None:
    peer = serve([SOA, 'example.com. 300 IN NS NS1.example.net.'], ['WWW.example.com. 60 IN A 192.0.2.2'],
                 ['www.example.com. 50 IN A 192.0.2.1', 'www.example.com. 60 IN A 192.0.2.2'], [SOA])
    assert transfer(peer, NAME, 5) == {
        'example.com.\tSOA': '300\tns1.example.net. hostmaster.example.com. 7 3600 600 86400 300',
        'example.com.\tNS': '300\tns1.example.net.', 'www.example.com.\tA': '50\t192.0.2.1\t192.0.2.2'}


def test_what_a_signer_made_is_left_out(serve: Serve) -> None:
    peer = serve([SOA, 'www.example.com. 60 IN CNAME a.', 'www.example.com. 60 IN NSEC example.com. CNAME', SOA])
    assert set(transfer(peer, NAME, 5)) == {'example.com.\tSOA', 'www.example.com.\tCNAME'}
    assert 'www.example.com.\tNSEC' in transfer(peer, NAME, 5, leave_out=())


@pytest.mark.parametrize('signed', [None, (0, 3), (0, 2, 3)])
def test_a_signed_transfer(serve: Serve, signed: Iterable[int] | None) -> None:
    peer = serve([SOA], ['a.example.com. 60 IN A 192.0.2.1'], ['b.example.com. 60 IN A 192.0.2.1'], [SOA],
                 key=KEY, signed=signed)
    assert len(transfer(peer, NAME, 5)) == 3


@pytest.mark.parametrize(('parts', 'signed', 'why'), [
    (([SOA], [SOA]), (), 'the transfer is not signed'),
    (([SOA], [SOA]), (0,), 'the transfer is not signed'),
    (([SOA, SOA],), (), 'the transfer is not signed'),
])
def test_a_signature_is_missing(serve: Serve, parts: tuple[list[str], ...], signed: Iterable[int], why: str) -> None:
    with pytest.raises(BackendError, match=why):
        transfer(serve(*parts, key=KEY, signed=signed), NAME, 5)


@pytest.mark.parametrize('signed', [None, (0, 2)])
def test_a_record_that_was_changed_on_its_way(serve: Serve, signed: Iterable[int] | None) -> None:
    peer = serve([SOA], ['www.example.com. 60 IN A 192.0.2.1'], [SOA], key=KEY, signed=signed,
                 changed=(b'\xc0\x00\x02\x01', b'\xc0\x00\x02\x09'))
    with pytest.raises(BackendRefused, match='the signature of the answer is wrong'):
        transfer(peer, NAME, 5)


OTHER = SOA.replace(' 7 ', ' 8 ')
HUNG_UP = 'connection failed: the server closed the connection before it had answered'


@pytest.mark.parametrize(('parts', 'why'), [
    (([SOA], ['www.example.com. 60 IN A 192.0.2.1']), HUNG_UP),
    ((), HUNG_UP),
    (([SOA], dns.rcode.SERVFAIL), r'the transfer broke off \(SERVFAIL\)'),
    (([SOA, OTHER],), 'ends with another SOA than it began with'),
    ((['www.example.com. 60 IN A 192.0.2.1', SOA],), "does not begin with the zone's SOA"),
    (([SOA.replace('example.com. 300', 'example.org. 300')],), "does not begin with the zone's SOA"),
    (([SOA, SOA, 'www.example.com. 60 IN A 192.0.2.1'],), 'goes on after its end'),
    (([SOA, 'www.example.com. 60 CH TXT "x"'],), 'a record of class CH'),
    ((dns.rcode.SERVFAIL,), r'cannot transfer example.com. \(SERVFAIL\)'),
])
def test_a_broken_transfer_is_no_smaller_zone(serve: Serve, parts: tuple[list[str], ...], why: str) -> None:
    with pytest.raises(BackendError, match=why):
        transfer(serve(*parts), NAME, 5)


@pytest.mark.parametrize('refusal', [dns.rcode.REFUSED, dns.rcode.NOTAUTH])
def test_a_refusal_means_no_zone_only_when_there_is_no_soa(serve: Serve, refusal: dns.rcode.Rcode) -> None:
    with pytest.raises(BackendRefused, match='does not let example.com. be transferred'):
        transfer(serve(refusal, soa=[SOA]), NAME, 5)


@pytest.mark.parametrize('soa', [dns.rcode.REFUSED, dns.rcode.NXDOMAIN, dns.rcode.NOTAUTH, [],
                                 ['com. 300 IN SOA a. b. 1 2 3 4 5']])
def test_a_zone_that_is_not_there(serve: Serve, soa: list[str] | dns.rcode.Rcode) -> None:
    peer = serve(dns.rcode.NOTAUTH, soa=soa)
    with pytest.raises(ZoneNotThere, match='the server has no zone example.com.'):
        transfer(peer, NAME, 5)


def test_the_time_is_over_at_the_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(axfr, 'receive', lambda *args: dns.rcode.REFUSED)
    with pytest.raises(BackendUnreachable, match='no answer within 0 s'):
        transfer(TcpPeer('127.0.0.1', 1), NAME, 0)


def test_a_server_that_does_not_say_whether_it_has_the_zone(serve: Serve) -> None:
    with pytest.raises(BackendError, match=r'does not say whether it has example.com. \(the answer is SERVFAIL\)'):
        transfer(serve(dns.rcode.NOTAUTH, soa=dns.rcode.SERVFAIL), NAME, 5)


def test_the_time_is_for_all_of_it() -> None:
    """A server that always says something more does not hold us up."""
    gone = threading.Event()

    class Endless(Scripted):
        def _answers(self, octets: bytes, over_tcp: bool) -> Iterator[bytes]:  # type: ignore[override]
            query = dns.message.from_wire(octets)
            yield _answer(query, [SOA]).to_wire()
            while not gone.wait(0.02):
                yield _answer(query, ['www.example.com. 60 IN A 192.0.2.1']).to_wire()

    server = Endless(lambda query, over_tcp: [])
    with pytest.raises(BackendUnreachable, match='no answer within 0.3 s'):
        transfer(TcpPeer('127.0.0.1', server.port), NAME, 0.3)
    gone.set()
    server.close()


class TestQuestions:
    def test_an_answer_to_something_else(self) -> None:
        server = Scripted(lambda query, over_tcp: [dns.message.make_response(dns.message.make_query('other.', 'SOA'))])
        with pytest.raises(BackendError, match='something that was not asked'):
            TcpPeer('127.0.0.1', server.port).ask(soa_question(NAME), 5)
        with pytest.raises(BackendError, match='something that was not asked'):
            list(TcpPeer('127.0.0.1', server.port).ask_each([soa_question(NAME)], 5))
        server.close()

    def test_a_yes_that_is_not_signed_is_none(self, serve: Serve) -> None:
        peer = serve(soa=[SOA], key=KEY, signed=())
        with pytest.raises(BackendError, match='the answer is not signed'):
            peer.ask(soa_question(NAME), 5)

    def test_a_no_may_be(self, serve: Serve) -> None:
        answer = serve(soa=dns.rcode.REFUSED, key=KEY, signed=()).ask(soa_question(NAME), 5)
        assert answer.rcode() == dns.rcode.REFUSED

    def test_a_server_that_answers_one_question_a_connection(self) -> None:
        """Those it has not answered are asked again on the next."""
        server = Scripted(lambda query, over_tcp: [_answer(query, dns.rcode.NXDOMAIN)])
        target = Rfc2136Provider('target', '127.0.0.1', server.port)
        assert target.zones([f'z{number}.example.' for number in range(100)]) == ({}, False)
        assert len(server.queries) == 100
        server.close()

    def test_a_zone_that_cannot_be_served_now_is_there(self) -> None:
        server = Scripted(lambda query, over_tcp: [_answer(query, dns.rcode.SERVFAIL)])
        assert Rfc2136Provider('target', '127.0.0.1', server.port).zones([NAME]) == ({NAME: None}, False)
        server.close()
