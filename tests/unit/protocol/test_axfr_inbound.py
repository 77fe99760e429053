"""A transfer, message by message, without a server."""

from __future__ import annotations

import itertools
import socket
import struct
import threading
import time
import types
from collections.abc import Callable

import dns.message
import dns.rcode
import dns.rrset
import pytest

from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError
from designate_pool.protocol import axfr_inbound
from designate_pool.protocol.axfr_inbound import AxfrInbound, IxfrInbound, Pace, Patience, ixfr_query, take
from designate_pool.protocol.tcp_client import TcpPeer

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


@pytest.mark.parametrize('question', [('example.net.', 'AXFR'), ('example.com.', 'IXFR')], ids=['name', 'type'])
def test_a_later_message_that_answers_something_else(question: tuple[str, str]) -> None:
    incoming = AxfrInbound(QUERY, lambda *record: None)
    incoming.feed(answer(SOA))
    incoming.feed(answer('a.example.com. 60 IN A 192.0.2.1'))
    with pytest.raises(BackendError, match='something that was not asked'):
        incoming.feed(answer('b.example.com. 60 IN A 192.0.2.1', query=dns.message.make_query(*question, id=QUERY.id)))


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


Serve = Callable[[socket.socket, dns.message.Message], None]


def framed(message: bytes) -> bytes:
    return struct.pack('!H', len(message)) + message


def without_records(connection: socket.socket, query: dns.message.Message) -> None:
    empty = framed(struct.pack('!HHHHHH', query.id, 0x8400, 0, 0, 0, 0)) * 10
    for octets in itertools.chain((framed(answer(SOA, query=query)),), itertools.repeat(empty)):
        connection.sendall(octets)


def same_record(connection: socket.socket, query: dns.message.Message) -> None:
    connection.sendall(framed(answer(SOA, query=query)))
    while True:
        connection.sendall(framed(answer('a.example.com. 60 IN A 192.0.2.1', query=query)))


def large_records(connection: socket.socket, query: dns.message.Message) -> None:
    text = ' '.join(f'"{"x" * 250}"' for _ in range(200))
    connection.sendall(framed(answer(SOA, query=query)))
    while True:
        connection.sendall(framed(answer(f'a.example.com. 60 IN TXT {text}', query=query)))


def octet_by_octet(connection: socket.socket, query: dns.message.Message) -> None:
    connection.sendall(framed(answer(SOA, query=query)) + b'\xff\xff')
    while True:
        time.sleep(0.02)
        connection.sendall(b'\0')


@pytest.fixture
def peer(request: pytest.FixtureRequest) -> TcpPeer:
    """A server that answers one transfer as the function in the parameter does."""
    listener = socket.create_server(('127.0.0.1', 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, listener:
            query = dns.message.from_wire(connection.recv(65535)[2:])
            try:
                request.param(connection, query)
            except OSError:
                pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    request.addfinalizer(lambda: thread.join(10))
    return TcpPeer(*listener.getsockname(), None)


@pytest.mark.parametrize(('peer', 'why'), [
    (without_records, 'more than 100 messages without records'), (octet_by_octet, 'less than 4096 octets a second'),
    (lambda connection, query: connection.recv(1), 'no answer within')],
    ids=['no records', 'octet by octet', 'silent'], indirect=['peer'])
def test_a_transfer_without_end_is_an_error(peer: TcpPeer, why: str) -> None:
    with pytest.raises(BackendError, match=why):
        take(peer, 'example.com.', 0.5, Pace(0), 1000, 1 << 20)


@pytest.mark.parametrize('peer', [same_record, large_records], indirect=True)
def test_a_transfer_of_more_than_the_zone_is_broken_off(peer: TcpPeer) -> None:
    assert not take(peer, 'example.com.', 5, Pace(0), 1000, 1 << 20).whole


def test_whoever_asks_can_end_a_transfer() -> None:
    def check() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        Pace(0, check).spend(1)


@pytest.mark.parametrize(('rate', 'whole', 'seconds'), [
    (0, None, 10), (100, None, 11), (3000, None, 34), (5000, None, 1000), (5000, 50, 50)],
    ids=['silent', 'drips', 'slow', 'fast enough', 'at its end'])
def test_the_time_for_a_transfer(monkeypatch: pytest.MonkeyPatch, rate: int, whole: int | None, seconds: int) -> None:
    """The server sends *rate* octets each second, for 1,000 seconds."""
    now = [0.0]
    monkeypatch.setattr(axfr_inbound, 'time', types.SimpleNamespace(monotonic=lambda: now[0]))
    end = Deadline(0)
    monkeypatch.setattr(end, 'left', lambda: max(0.0, (whole or 0) - now[0]))
    patience = Patience(10, None if whole is None else end)
    while now[0] < 1000 and patience.left() > 1:
        now[0] += 1
        patience.progress(rate)
    assert now[0] == pytest.approx(seconds, abs=1)
