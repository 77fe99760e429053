"""The poller against servers that do as the test says."""

from __future__ import annotations

import contextlib
import errno
import itertools
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dns.flags
import dns.message
import dns.name
import dns.rcode
import pytest

from designate_pool.minidns.acl import AllowedPeer
from designate_pool.minidns.client import event_loop
from designate_pool.minidns.client.event_loop import MAX_IN_FLIGHT, MOST_HELD, ClientLoop
from designate_pool.minidns.client.query import RetryingQuery, RetrySchedule
from designate_pool.minidns.client.soa_poller import (POST_TRANSFER, AddressedResult, PollOrder, Recipient, SoaPoller,
                                                      ToCaller, ToPool)
from designate_pool.minidns.client.sockets import udp_socket
from designate_pool.model import Answer, Context, Domain, Outcome, PollRequest, PollResult, Reason
from designate_pool.protocol import soa_exchange, tsig
from designate_pool.protocol.soa_query import SoaReply
from designate_pool.runtime import Threads
from testing.processes import free_port, patience, wait_until
from tests.fixtures.answering import Answers, Scripted, soa_answer
from tests.unit.minidns.values import KEY, OTHER_KEY, dns_key

POOL = ToPool('default', Context())
#: For servers that answer, however busy the machine is.
ANSWERED = RetrySchedule(timeout=10, retry_interval=0.02, max_retries=1)
#: For servers that do not: both tries end by their time.
SILENT = RetrySchedule(timeout=0.1, retry_interval=0.02, max_retries=1)
Script = Callable[[dns.message.Message, bool], Answers]


class Polling:
    """A poller, what it reports, and the servers it asks.

    :ivar fetching: ids of servers that are being sent any zone
    :ivar silences: what it reports after the first try of a round
    """

    def __init__(self, post_transfer: RetrySchedule = POST_TRANSFER, max_fetch_seconds: float = 60.0,
                 most_held: float = MOST_HELD) -> None:
        self.fetching: set[str] = set()
        self.results: list[tuple[Recipient, PollResult]] = []
        self.silences: list[tuple[Recipient, PollResult]] = []
        self._servers: list[Scripted] = []
        self._loop = ClientLoop(most_held=most_held)
        self.poller = SoaPoller(self._loop, self._on_results, post_transfer,
                                lambda server_id, name: server_id in self.fetching, max_fetch_seconds)
        self._loop.start(Threads())

    def _on_results(self, *reported: tuple[Recipient, PollResult]) -> None:
        for recipient, result in reported:
            (self.silences if result.is_first_silence else self.results).append((recipient, result))

    def server(self, script: Script, host: str = '127.0.0.1', keyed: bool = False) -> tuple[Scripted, AllowedPeer]:
        key = dns_key(KEY) if keyed else None
        server = Scripted(script, host, key)
        self._servers.append(server)
        return server, self.peer(server.port, host, keyed)

    def peer(self, port: int, host: str = '127.0.0.1', keyed: bool = False) -> AllowedPeer:
        return AllowedPeer(f's{port}', f'test:{port}', (host,), port, tsig.key_from(KEY) if keyed else None)

    def ask(self, peer: AllowedPeer, serial: int = 7, schedule: RetrySchedule = ANSWERED, name: str = 'example.com.',
            notify: bool = False, to: Recipient = POOL, domain_id: str = 'd1', delay: float = 0.0,
            seen: int | None = None, incarnation: int | None = None) -> None:
        request = PollRequest(domain_id, name, serial, peer.id, notify, delay, seen, incarnation=incarnation)
        self.start([PollOrder(peer, to, request)], schedule)

    def start(self, orders: list[PollOrder], schedule: RetrySchedule) -> None:
        self._loop.submit(self.poller.start_polls, orders, schedule)

    def transferred(self, *peers: AllowedPeer, serial: int = 7, name: str = 'example.com.', domain_id: str = 'd1',
                    pool_name: str = 'default', base: int | None = None) -> None:
        """One of *peers* has fetched the zone."""
        self._loop.submit(self.poller.start_post_transfer_polls, peers, domain_id, name, serial, pool_name, base)

    def transferred_in_turn(self, peer: AllowedPeer, transfers: Sequence[tuple[int, int | None]]) -> None:
        """*peer* has fetched the zone several times, each a serial and a base, before it is asked for any."""
        def transferred() -> None:
            for serial, base in transfers:
                self.poller.start_post_transfer_polls([peer], 'd1', 'example.com.', serial, 'default', base)

        self._loop.submit(transferred)

    def start_many(self, peer: AllowedPeer, count: int) -> None:
        """Poll so many zones at serial 7, without NOTIFY."""
        self.start([
            PollOrder(peer, POOL, PollRequest(f'd{number}', f'd{number}.example.com.', 7, peer.id, notify=False))
            for number in range(count)], RetrySchedule(30, 1, 0))

    def result(self, peer: AllowedPeer) -> PollResult:
        """The result for *peer*, when there is one."""
        ours = wait_until(lambda: [result for _, result in self.results if result.server_id == peer.id], 'a result', 10)
        return ours[0]

    def settled(self) -> None:
        """Wait until the loop has done all that was handed in so far, and what it found is told."""
        done = threading.Event()
        self._loop.submit(self._loop.post, lambda _: done.set(), None)
        assert done.wait(10)

    def close(self) -> None:
        self._loop.stop()
        for server in self._servers:
            server.close()


@pytest.fixture
def polling(request: pytest.FixtureRequest) -> Iterator[Polling]:
    polling = Polling(getattr(request, 'param', POST_TRANSFER))
    yield polling
    polling.close()


#: The polls after a transfer are soon over.
few_looks = pytest.mark.parametrize('polling', [RetrySchedule(1.0, 0.01, 4)], indirect=True, ids=['few looks'])


def serving(serial: int) -> Script:
    return lambda query, over_tcp: [soa_answer(query, serial)]


@pytest.mark.parametrize(('host', 'ordered'), [('127.0.0.1', 7), ('::1', 2 ** 32 - 2)], ids=['IPv4', 'IPv6'])
def test_a_server_that_is_right_confirms_with_its_serial(polling: Polling, host: str, ordered: int) -> None:
    server, peer = polling.server(serving(9), host)
    polling.ask(peer, ordered)
    assert polling.result(peer) == PollResult('d1', peer.id, Outcome.SUCCESS, Answer.SERIAL, 9, None, ordered,
                                              peer.label, base=9)
    assert len(server.queries) == 1


def test_a_stale_server_is_asked_again_and_then_given_up_with_its_serial(polling: Polling) -> None:
    server, peer = polling.server(serving(6))
    polling.ask(peer)
    result = polling.result(peer)
    assert (result.status, result.answer, result.serial_number) == (Outcome.ERROR, Answer.SERIAL, 6)
    assert (result.error, result.reason) == ('the server serves serial 6, not yet 7', Reason.STALE)
    assert len(server.queries) == 2


@pytest.mark.parametrize('replies_to', ['a poll', 'a poll after its transfer'])
def test_that_a_server_answers_nobody_is_told_after_one_try_and_once_until_it_has_replied(
        polling: Polling, replies_to: str) -> None:
    is_silent = True
    server, peer = polling.server(lambda query, over_tcp: [] if is_silent else serving(7)(query, over_tcp))
    for number in range(3):
        polling.ask(peer, name=f'd{number}.example.com.', domain_id=f'd{number}', schedule=SILENT)
    wait_until(lambda: len(polling.results) == 3, 'all have used up their tries')
    assert [(recipient, result.server_id, result.status, result.error) for recipient, result in polling.silences] == [
        (POOL, peer.id, Outcome.ERROR, 'no answer within 0.1 s')]
    polling.ask(peer, schedule=SILENT)
    wait_until(lambda: len(polling.results) == 4, 'one more')
    is_silent = False
    if replies_to == 'a poll':
        polling.ask(peer)
    else:
        polling.transferred(peer)
    wait_until(lambda: polling.results[-1][1].status is Outcome.SUCCESS, 'it has replied')
    assert len(polling.silences) == 1
    is_silent = True
    polling.ask(peer, serial=8, schedule=SILENT)
    wait_until(lambda: len(polling.silences) == 2, 'it is silent again')


def test_an_answer_from_another_address_is_not_heard(polling: Polling) -> None:
    silent, peer = polling.server(lambda query, over_tcp: [])
    polling.ask(peer, schedule=RetrySchedule(0.4, 0, 0))
    query = wait_until(lambda: silent.queries, 'a query')[0]
    port = polling._loop._channels[silent.host, silent.port].sock.getsockname()[1]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(soa_answer(query, 7).to_wire(), ('127.0.0.1', port))
    result = polling.result(peer)
    assert (result.status, result.answer, result.serial_number) == (Outcome.ERROR, Answer.TIMEOUT, None)


@pytest.mark.parametrize('host', ['127.0.0.1', '::1'])
def test_a_port_that_refuses_ends_the_try_at_once(polling: Polling, host: str) -> None:
    peer = polling.peer(free_port(host), host)
    started = time.monotonic()
    polling.ask(peer, schedule=RetrySchedule(30, 0.01, 2))
    result = polling.result(peer)
    assert (result.answer, result.error) == (Answer.TIMEOUT, 'connection refused')
    assert result.reason is Reason.UNREACHABLE
    assert time.monotonic() - started < patience(5)


def test_more_truncated_answers_than_connections_are_fetched_one_after_the_other(polling: Polling) -> None:
    server, peer = polling.server(lambda query, over_tcp: [
        soa_answer(query, 7, flags=dns.flags.AA | (0 if over_tcp else dns.flags.TC))])
    polling.start_many(peer, 50)
    wait_until(lambda: len(polling.results) == 50, 'all are told')
    assert {result.status for _, result in polling.results} == {Outcome.SUCCESS} and len(server.queries) == 100
    wait_until(lambda: not polling._loop._channels[peer.addresses[0], peer.port].tcp_count, 'no query is over TCP')


def test_a_server_that_asks_for_tcp_and_is_silent_there(polling: Polling) -> None:
    over = threading.Event()

    def script(query: dns.message.Message, over_tcp: bool) -> Answers:
        if over_tcp:
            over.wait(30)
        return [soa_answer(query, 7, flags=dns.flags.TC)]

    _, peer = polling.server(script)
    polling.ask(peer, schedule=SILENT)
    result = polling.result(peer)
    over.set()
    assert (result.answer, result.error) == (Answer.TIMEOUT, 'no answer within 0.1 s')
    polling.settled()
    wait_until(lambda: not polling._loop._channels[peer.addresses[0], peer.port].tcp_count, 'no query is over TCP')


def test_what_fails_over_tcp_in_an_unforeseen_way_takes_no_place_for_ever(polling: Polling,
                                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> SoaReply:
        raise RuntimeError('as the test says')

    monkeypatch.setattr(soa_exchange, 'reply_over_tcp', fail)
    _, peer = polling.server(always(flags=dns.flags.TC))
    polling.ask(peer, schedule=RetrySchedule(30, 0, 0))
    result = polling.result(peer)
    assert (result.answer, result.error) == (Answer.BAD, 'over TCP: it failed')
    assert not polling._loop._channels[peer.addresses[0], peer.port].tcp_count


def test_what_no_thread_can_be_started_for_takes_no_place_for_ever(polling: Polling,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    _, peer = polling.server(lambda query, over_tcp: (serving(7) if over_tcp else always(flags=dns.flags.TC))(
        query, over_tcp))
    starting = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name == 'minidns-over-tcp' and next(failing, False):
            raise RuntimeError("can't start new thread")
        starting(thread)

    failing = iter([True] * 20)
    monkeypatch.setattr(threading.Thread, 'start', start)
    polling.ask(peer, schedule=RetrySchedule(30, 0, 20))
    assert polling.result(peer).serial_number == 7


def test_what_is_ordered_at_the_end_is_started_and_its_result_is_told(polling: Polling) -> None:
    lost = AllowedPeer('s1', 'lost', (), 53, trouble='ns1.example.net has no address')

    def end() -> None:  # in the loop, which does not come to what is ordered now
        polling._loop._stopping = True
        polling.ask(lost, schedule=RetrySchedule(1, 1, 0))

    polling._loop.submit(end)
    polling.close()
    assert [result.error for _, result in polling.results] == ['ns1.example.net has no address']


# TSIG

def signed_otherwise(query: dns.message.Message, over_tcp: bool) -> Answers:
    answer = soa_answer(query, 7)
    answer.use_tsig(dns_key(OTHER_KEY))
    return [answer]


def unsigned(query: dns.message.Message, over_tcp: bool) -> Answers:
    answer = soa_answer(query, 7)
    answer.tsig = None
    return [answer]


def always(**facts: Any) -> Script:
    return lambda query, over_tcp: [soa_answer(query, 7, **facts)]


@pytest.mark.parametrize(('script', 'answer', 'reason', 'error'), [
    (always(rcode=dns.rcode.REFUSED), Answer.NO_ZONE, Reason.NO_ZONE, 'no such zone'),
    (always(flags=dns.flags.TC), Answer.BAD, Reason.OTHER, 'over TCP: no answer to the question'),
    (lambda query, over_tcp: [] if over_tcp else always(flags=dns.flags.TC)(query, False), Answer.TIMEOUT,
     Reason.UNREACHABLE, 'over TCP: connection failed: the server closed the connection'),
], ids=['REFUSED', 'truncated over TCP too', 'closes TCP'])
def test_answers_that_are_no_serial(polling: Polling, script: Script, answer: Answer, reason: Reason,
                                    error: str) -> None:
    _, peer = polling.server(script)
    polling.ask(peer)
    result = polling.result(peer)
    assert (result.status, result.answer, result.serial_number, result.reason) == (Outcome.ERROR, answer, None, reason)
    assert error in str(result.error)


# What a stranger could have said, who knows our port and guesses the id

def guessed(query: dns.message.Message, rcode: int = 0) -> dns.message.Message:
    """An answer of somebody who has not seen *query*."""
    (question,) = query.question
    unseen = dns.message.make_query(question.name.canonicalize(), question.rdtype, id=query.id)
    return soa_answer(unseen, 99, rcode=rcode)


LONG_NAME = 'a-name-with-many-letters.example.com.'


def bare(query: dns.message.Message, over_tcp: bool) -> Answers:
    """An error without the question, which nobody has to have seen."""
    return [query.id.to_bytes(2, 'big') + bytes((0x80, dns.rcode.SERVFAIL)) + bytes(8)]


def unsigned_refusal(query: dns.message.Message, over_tcp: bool) -> Answers:
    answer = soa_answer(query, 7, rcode=dns.rcode.REFUSED)
    answer.tsig = None
    return [answer]


@pytest.mark.parametrize(('reply', 'over_tcp', 'keyed', 'serial'), [
    (lambda query, over_tcp: [guessed(query)], serving(7), False, 7),
    (lambda query, over_tcp: [guessed(query, dns.rcode.REFUSED)], serving(7), False, 7),
    (lambda query, over_tcp: [guessed(query).to_wire()[:-9]], serving(7), False, 7),
    (bare, serving(7), False, 7), (bare, serving(7), True, 7),
    (signed_otherwise, serving(7), True, 7), (unsigned, serving(7), True, 7),
    (unsigned_refusal, serving(7), True, 7), (unsigned_refusal, unsigned_refusal, True, None),
    (lambda query, over_tcp: [guessed(query)], lambda query, over_tcp: [guessed(query)], False, 99),
], ids=['an answer', 'REFUSED', 'malformed', 'SERVFAIL', 'unsigned SERVFAIL', 'another signature', 'no signature',
        'unsigned REFUSED', 'unsigned REFUSED over TCP too', 'a server that does not keep the spelling'])
def test_what_could_have_been_guessed_is_asked_again_over_tcp(polling: Polling, reply: Script, over_tcp: Script,
                                                              keyed: bool, serial: int | None) -> None:
    server, peer = polling.server(lambda query, is_tcp: (over_tcp if is_tcp else reply)(query, is_tcp), keyed=keyed)
    polling.ask(peer, name=LONG_NAME, schedule=RetrySchedule(5, 1, 0))
    result = polling.result(peer)
    assert result.serial_number == serial and (serial or result.answer is Answer.NO_ZONE), result.error
    assert [query.question[0].name.to_text().lower() for query in server.queries] == [LONG_NAME] * 2


def test_a_refusal_of_a_server_that_takes_no_connections_proves_nothing(polling: Polling) -> None:
    server, peer = polling.server(unsigned_refusal, keyed=True)
    server._tcp.shutdown(socket.SHUT_RDWR)
    polling.ask(peer, schedule=RetrySchedule(5, 1, 0))
    result = polling.result(peer)
    assert result.answer is Answer.BAD and 'REFUSED), but without proof; over TCP: ' in (result.error or '')


# One in flight for a server and zone

def test_an_equal_request_joins(polling: Polling) -> None:
    server, peer = polling.server(lambda query, over_tcp: [soa_answer(query, 6)])
    caller = ToCaller(Context(), Domain('d1', 'example.com.', 'p', 'default', 'a@example.com', 300, 7), '192.0.2.1')
    schedule = RetrySchedule(5, 0.2, 1)
    polling.ask(peer, schedule=schedule)
    polling.ask(peer, schedule=schedule)
    polling.ask(peer, schedule=schedule, to=caller)
    wait_until(lambda: len(polling.results) >= 2, 'both are told')
    assert [to for to, _ in polling.results] == [POOL, caller]
    assert len(server.queries) == 2


def test_a_newer_serial_takes_the_place_of_an_older(polling: Polling) -> None:
    silent, slow = polling.server(lambda query, over_tcp: [soa_answer(query, 8)] if len(silent.queries) > 1 else [])
    polling.ask(slow, 7, RetrySchedule(30, 30, 0))
    wait_until(lambda: silent.queries, 'the first query')
    polling.ask(slow, 8, RetrySchedule(30, 30, 0))
    assert polling.result(slow).serial_number == 8
    polling.settled()
    assert len(polling.results) == 1


def test_an_older_serial_joins_the_newer(polling: Polling) -> None:
    server, peer = polling.server(serving(7))
    schedule = RetrySchedule(5, 0.2, 1)
    polling.ask(peer, 9, schedule)
    polling.ask(peer, 7, schedule)
    assert polling.result(peer).error == 'the server serves serial 7, not yet 9'
    polling.settled()
    assert len(polling.results) == 1 and len(server.queries) == 2


def test_a_poll_from_before_the_server_lost_the_zone_is_begun_anew(polling: Polling) -> None:
    caller = ToCaller(Context(), Domain('d1', 'example.com.', 'p', 'default', 'a@example.com', 300, 7), '192.0.2.1')
    silent, slow = polling.server(lambda query, over_tcp: [soa_answer(query, 7)] if len(silent.queries) > 1 else [])
    polling.ask(slow, 7, RetrySchedule(30, 30, 0), incarnation=1)
    polling.ask(slow, 7, RetrySchedule(30, 30, 0), to=caller)
    wait_until(lambda: silent.queries, 'the first query')
    polling.ask(slow, 7, RetrySchedule(30, 30, 0), incarnation=2)
    wait_until(lambda: len(polling.results) >= 2, 'both are told')
    assert {(to, result.incarnation) for to, result in polling.results} == {(POOL, 2), (caller, 2)}


@pytest.mark.parametrize('late', [1, None])
def test_a_late_request_from_before_the_server_lost_the_zone_joins(polling: Polling, late: int | None) -> None:
    server, peer = polling.server(serving(6))
    schedule = RetrySchedule(5, 0.2, 1)
    polling.ask(peer, 7, schedule, incarnation=2)
    polling.ask(peer, 7, schedule, incarnation=late)
    result = polling.result(peer)
    assert (result.status, result.incarnation) == (Outcome.ERROR, 2)
    polling.settled()
    assert len(polling.results) == 1 and len(server.queries) == 2


@pytest.mark.parametrize('ordered', [('former', 'new'), ('new', 'former')], ids=['in order', 'the former late'])
def test_a_domain_created_again_at_a_lower_serial_is_polled_for_itself(polling: Polling,
                                                                       ordered: tuple[str, ...]) -> None:
    """A secondary zone has the serial of its master, where a primary zone of the name was."""
    serials = {'former': 1_760_000_000, 'new': 12}
    server, peer = polling.server(lambda query, over_tcp: [soa_answer(query, 12)] if len(server.queries) > 2 else [])
    for domain_id in ordered:
        polling.ask(peer, serials[domain_id], RetrySchedule(30, 30, 0, first_resend=0.05), domain_id=domain_id)
    wait_until(lambda: len(polling.results) == 2, 'a result for each', 10)
    assert {result.domain_id: (result.status, result.serial_number, result.expected_serial)
            for _, result in polling.results} == {'former': (Outcome.ERROR, 12, 1_760_000_000),
                                                  'new': (Outcome.SUCCESS, 12, 12)}


# NOTIFY

def test_notify_comes_first_and_the_poll_at_once(polling: Polling) -> None:
    server, peer = polling.server(serving(7))
    polling.ask(peer, notify=True)
    assert polling.result(peer).status is Outcome.SUCCESS
    wait_until(lambda: len(server.queries) == 2, 'both have come')
    (notify,) = server.notifies()
    assert notify.question[0].to_text() == 'example.com. IN SOA' and notify.flags & dns.flags.AA


def test_notify_is_sent_until_it_is_acknowledged(polling: Polling) -> None:
    server, peer = polling.server(lambda query, over_tcp: [soa_answer(query, 7)] if len(server.notifies()) > 2 else [])
    request = PollOrder(peer, POOL, PollRequest('d1', 'example.com.', 7, peer.id, poll=False))
    polling.start([request], RetrySchedule(0.1, 0.02, 5))
    polling.settled()
    wait_until(lambda: not polling.poller._notifies, 'it is acknowledged')
    assert len(server.queries) == 3 and not polling.results


def test_a_server_that_stays_behind_is_notified_again_for_the_next_try(polling: Polling) -> None:
    """A server whose transfer has failed would otherwise wait for its own retry time."""
    server, peer = polling.server(lambda query, over_tcp: [soa_answer(query, 7 if len(server.notifies()) > 1 else 6)])
    polling.ask(peer, schedule=RetrySchedule(5, 0.02, 2), notify=True)
    assert polling.result(peer).status is Outcome.SUCCESS
    assert len(server.notifies()) == 2


def test_a_server_that_has_fetched_from_another_minidns_is_not_notified_again(polling: Polling) -> None:
    looked: list[int] = []

    def behind_at_first(query: dns.message.Message, over_tcp: bool) -> list[bytes]:
        looked.extend([1] if query.opcode() == dns.opcode.QUERY else [])
        return [soa_answer(query, 7 if len(looked) > 1 else 6)]

    server, peer = polling.server(behind_at_first)
    polling.ask(peer, schedule=RetrySchedule(5, 0.02, 3), notify=True)
    assert polling.result(peer).status is Outcome.SUCCESS
    assert len(looked) == 2 and len(server.notifies()) == 1


# A server that fetches by itself

def test_a_server_that_fetches_by_itself_is_left_to_it_and_confirmed_by_its_transfer(polling: Polling) -> None:
    server, peer = polling.server(serving(7))
    polling.ask(peer, notify=True, delay=30)
    polling.settled()
    assert not server.queries and not server.notifies()
    polling.transferred(peer)
    assert polling.result(peer).status is Outcome.SUCCESS
    assert server.queries and not server.notifies(), 'it may be looked at more than once'


def test_a_server_that_should_have_fetched_and_did_not_is_notified_and_polled(polling: Polling) -> None:
    server, peer = polling.server(lambda query, over_tcp: [soa_answer(query, 7 if server.notifies() else 6)])
    polling.ask(peer, schedule=RetrySchedule(5, 0.02, 1), notify=True, delay=0.1)
    assert polling.result(peer).status is Outcome.SUCCESS
    assert len(server.notifies()) == 1


# A server that was notified

#: It is queried a minute after the NOTIFY.
LATER = RetrySchedule(timeout=10, retry_interval=240, max_retries=0)


def test_a_server_that_was_behind_and_is_notified_is_queried_once_it_has_fetched_the_zone(polling: Polling) -> None:
    server, peer = polling.server(serving(7))
    polling.ask(peer, schedule=LATER, notify=True, seen=6)
    wait_until(server.notifies, 'the NOTIFY')
    polling.settled()
    assert not server.polls()
    polling.transferred(peer)
    assert polling.result(peer).expected_serial == 7
    polling.settled()
    assert len(polling.results) == 1 and len(server.notifies()) == 1 and not polling.poller._polls


def test_a_server_that_was_notified_and_fetches_nothing_here_is_queried_soon(polling: Polling) -> None:
    server, peer = polling.server(serving(7))
    polling.ask(peer, schedule=RetrySchedule(10, 0.2, 0), notify=True, seen=6)
    assert polling.result(peer).status is Outcome.SUCCESS
    assert len(server.notifies()) == 1


@pytest.mark.parametrize('seen', [7, None])
def test_a_server_that_may_have_the_serial_is_queried_with_the_notify(polling: Polling, seen: int | None) -> None:
    _, peer = polling.server(serving(7))
    polling.ask(peer, schedule=LATER, notify=True, seen=seen)
    assert polling.result(peer).status is Outcome.SUCCESS


def test_a_server_that_refuses_the_notify_is_queried_at_once(polling: Polling) -> None:
    _, peer = polling.server(lambda query, over_tcp: [soa_answer(query, 7, rcode=dns.rcode.NOTAUTH)])
    polling.ask(peer, schedule=LATER, notify=True, seen=6)
    assert polling.result(peer).answer is Answer.NO_ZONE


# After a transfer

def test_a_transfer_confirms_without_waiting_for_the_timed_poll(polling: Polling) -> None:
    loading = [True]
    server, peer = polling.server(lambda query, over_tcp: [soa_answer(query, 6 if loading[0] else 7)])
    polling.ask(peer, schedule=RetrySchedule(30, 30, 3))
    wait_until(lambda: server.queries, 'the first poll')
    polling.transferred(peer)
    wait_until(lambda: len(server.queries) >= 4, 'it is looked at again and again')
    loading[0] = False
    assert polling.result(peer) == PollResult('d1', peer.id, Outcome.SUCCESS, Answer.SERIAL, 7, None, 7,
                                              peer.label)
    polling.settled()
    assert len(polling.results) == 1 and not polling.poller._polls and not polling.poller._post_polls


@few_looks
def test_servers_that_share_an_address_are_all_looked_at(polling: Polling) -> None:
    _, one = polling.server(serving(7))
    behind, two = polling.server(serving(6))
    polling.transferred(one, two)
    assert polling.result(one).status is Outcome.SUCCESS
    wait_until(lambda: not polling.poller._post_polls, 'the looks are over')
    assert len(polling.results) == 1 and len(behind.queries) > 3


def test_of_servers_that_share_an_address_each_is_told_once(polling: Polling) -> None:
    peers = [polling.server(serving(7))[1] for _ in range(3)]
    for _ in peers:  # each of them fetches the zone
        polling.transferred(*peers)
        polling.settled()
        wait_until(lambda: not polling.poller._post_polls, 'the looks are over')
    polling.settled()
    assert sorted(result.server_id for _, result in polling.results) == sorted(peer.id for peer in peers)
    polling.ask(peers[0], notify=True, delay=30)
    polling.transferred(*peers)
    wait_until(lambda: len(polling.results) > len(peers), 'who is waited for is asked all the same')
    assert [result.server_id for _, result in polling.results[len(peers):]] == [peers[0].id]
    polling.transferred(*peers, serial=8)
    polling.settled()
    assert len(polling.poller._post_polls) == len(peers), 'another serial is another matter'


@pytest.mark.parametrize('polling', [RetrySchedule(0.2, 0.01, 4)], indirect=True, ids=['few short looks'])
def test_a_server_that_is_silent_after_a_transfer_is_left_to_its_poll(polling: Polling) -> None:
    server, peer = polling.server(lambda query, over_tcp: [])
    polling.transferred(peer)
    wait_until(lambda: server.queries, 'the first look')
    wait_until(lambda: not polling.poller._post_polls, 'the looks are over')
    assert len({query.id for query in server.queries}) == 1


@few_looks
def test_looks_do_not_use_up_the_tries(polling: Polling) -> None:
    server, peer = polling.server(serving(6))
    polling.ask(peer, schedule=RetrySchedule(10, 30, 1))
    polling.transferred(peer)
    polling.settled()
    wait_until(lambda: not polling.poller._post_polls, 'the looks are over')
    (poll,) = polling.poller._polls.values()
    assert not polling.results and poll.tries == 1
    polling._loop.submit(polling._loop.run_timer_now, poll)
    assert polling.result(peer).status is Outcome.ERROR


@pytest.mark.parametrize('peer', [
    AllowedPeer('s1', 'lost', (), 53, trouble='ns1.example.net has no address'),
    AllowedPeer('s2', 'everybody', ('255.255.255.255',), 53),  # which the system lets nobody send to
], ids=['no address', 'nothing can be sent'])
def test_a_server_that_cannot_be_asked_is_not_looked_at_for_ever(polling: Polling, peer: AllowedPeer) -> None:
    polling.transferred(peer)
    polling.settled()
    wait_until(lambda: not polling.poller._post_polls, 'the looks are over')
    assert not polling.results


# Changes while the server fetches

PATIENT = RetrySchedule(30, 30, 3)


def test_each_change_is_announced_and_one_result_is_reported(polling: Polling) -> None:
    serves = [6]
    server, peer = polling.server(lambda query, over_tcp: [soa_answer(query, serves[0])])
    for count, serial in enumerate((7, 8), 1):
        polling.ask(peer, serial, PATIENT, notify=True)
        wait_until(lambda: len(server.notifies()) >= count, 'a NOTIFY for each change')
    serves[0] = 8
    polling.transferred(peer, serial=8)
    assert polling.result(peer).serial_number == 8
    polling.settled()
    assert len(polling.results) == 1


def test_a_server_that_has_fetched_an_older_serial_by_itself_is_notified(polling: Polling) -> None:
    server, peer = polling.server(lambda query, over_tcp: [soa_answer(query, 8 if server.notifies() else 7)])
    polling.ask(peer, 8, PATIENT, notify=True, delay=30)
    polling.transferred(peer, serial=7)
    wait_until(server.notifies, 'the NOTIFY')
    polling.transferred(peer, serial=8)
    assert polling.result(peer).serial_number == 8


def test_a_new_zone_of_that_name_does_not_wait_for_a_notify_that_is_not_acknowledged(polling: Polling) -> None:
    server, peer = polling.server(lambda query, over_tcp: [])
    once = RetrySchedule(600, 600, 0, first_resend=300)
    for count, (domain_id, serial) in enumerate((('former', 1_760_000_000), ('new', 12), ('new', 12)), 1):
        polling.ask(peer, serial, once, notify=True, domain_id=domain_id)
        wait_until(lambda: len(server.notifies()) == min(count, 2), 'a NOTIFY for each domain', 10)
    polling.settled()
    assert len(server.notifies()) == 2, 'the same again is not announced again'


def test_who_waits_for_an_older_serial_is_told_with_the_newer(polling: Polling) -> None:
    _, peer = polling.server(serving(8))
    domain = Domain('d1', 'example.com.', 'p', 'default', 'a@example.com', 300, 7)
    callers = [ToCaller(Context(), domain, f'192.0.2.{number}') for number in range(2)]
    for serial, caller in zip((7, 8), callers):
        polling.ask(peer, serial, PATIENT, notify=True, delay=30, to=caller)
    polling.transferred(peer, serial=8)
    wait_until(lambda: len(polling.results) == 2, 'all are told')
    assert [(to, result.serial_number) for to, result in polling.results] == [(caller, 8) for caller in callers]


# Many

def test_a_result_waits_a_moment_for_that_of_another_server() -> None:
    may_reply = threading.Event()

    def late(query: dns.message.Message, over_tcp: bool) -> Answers:
        may_reply.wait(30)
        return [soa_answer(query, 7)]

    with contextlib.closing(Polling(most_held=60)) as polling:
        peers = [polling.server(script)[1] for script in (late, serving(7))]
        polling.start([PollOrder(peer, POOL, PollRequest('d1', 'example.com.', 7, peer.id, notify=False))
                       for peer in peers], ANSWERED)
        wait_until(lambda: polling._loop._posts, 'the first result')
        assert not polling.results
        may_reply.set()
        assert len(wait_until(lambda: list(polling.results), 'a report')) == 2


def test_a_result_waits_a_moment_for_that_of_a_server_which_loads_the_zone() -> None:
    loading = threading.Event()
    with contextlib.closing(Polling(RetrySchedule(30.0, 0.8, 9), most_held=60)) as polling:
        _, ready = polling.server(serving(7))
        _, slow = polling.server(lambda query, over_tcp: [soa_answer(query, 7 if loading.is_set() else 6)])
        told: list[tuple[AddressedResult, ...]] = []
        polling.poller._report = lambda *found: told.append(found)
        for peer in slow, ready:
            polling.transferred(peer)
        wait_until(lambda: polling._loop._posts or told, 'the first result')
        loading.set()
        wait_until(lambda: told, 'a report')
        assert {result.server_id for _, result in told[0]} == {ready.id, slow.id}


def test_a_result_does_not_wait_for_an_answer_that_is_no_longer_wanted() -> None:
    with contextlib.closing(Polling(most_held=60)) as polling:
        silent, gone = polling.server(lambda query, over_tcp: [])
        _, peer = polling.server(serving(7))
        polling.ask(gone)
        wait_until(lambda: silent.queries, 'a query')
        polling._loop.submit(polling.poller.replace_peers, {gone.id: None})
        polling.ask(peer)
        assert polling.result(peer).status is Outcome.SUCCESS


def test_an_answer_that_is_no_longer_wanted_makes_room_for_another_query(polling: Polling) -> None:
    may_reply = threading.Event()

    def late(query: dns.message.Message, over_tcp: bool) -> Answers:
        may_reply.wait(30)
        return [soa_answer(query, 7)] if query.question[0].name == dns.name.from_text('example.com.') else []

    _, peer = polling.server(late)
    polling.ask(peer, name='example.org.', domain_id='d2', schedule=RetrySchedule(60, 60, 0, first_resend=60))
    polling.ask(peer)
    polling.settled()
    in_flight = polling._loop._channels['127.0.0.1', peer.port].in_flight
    wait_until(lambda: len(in_flight) == 2, 'two queries')
    polling.ask(peer, serial=8, schedule=PATIENT, delay=30)
    polling.settled()
    may_reply.set()
    wait_until(lambda: len(in_flight) == 1, 'one query')


def ask_of_many(polling: Polling, *peers: AllowedPeer) -> None:
    """Zones with names of several lengths, on every one of *peers*, which are right."""
    names = [f'{"n" * (number % 7)}{number}.example.com.' for number in range(300)]
    polling.start([PollOrder(peer, POOL, PollRequest(name, name, 7, peer.id, number % 2 == 0))
                   for number, name in enumerate(names) for peer in peers], RetrySchedule(30, 30, 0))
    wait_until(lambda: len(polling.results) == len(names) * len(peers), 'all are told')
    assert {(result.server_id, result.domain_id, result.status) for _, result in polling.results} == {
        (peer.id, name, Outcome.SUCCESS) for peer in peers for name in names}


def test_names_of_many_lengths_on_two_servers(polling: Polling) -> None:
    (one, right), (other, signed) = polling.server(serving(7)), polling.server(serving(8), '::1', keyed=True)
    ask_of_many(polling, right, signed)
    for server in one, other:
        assert len({query.question[0].name for query in server.polls()}) == 300
        wait_until(lambda: len({query.question[0].name for query in server.notifies()}) == 150, 'all NOTIFYs')


class FullSocket:
    """A socket that has room for every second datagram only."""

    def __init__(self, sock: Any, error: OSError, is_full: Iterator[bool]) -> None:
        self._sock = sock
        self._error = error
        self._is_full = is_full

    def send(self, message: bytes) -> int:
        if next(self._is_full):
            raise self._error
        return int(self._sock.send(message))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


def fill_sockets(monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    is_full = itertools.cycle([True, False])
    monkeypatch.setattr(event_loop, 'udp_socket', lambda *arguments, **options: FullSocket(
        udp_socket(*arguments, **options), error, is_full))


def test_what_cannot_be_sent_just_now_is_sent_later(polling: Polling, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_sockets(monkeypatch, BlockingIOError())
    _, peer = polling.server(serving(7))
    ask_of_many(polling, peer)


def test_what_a_firewall_keeps_from_being_sent_is_tried_again(polling: Polling,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    fill_sockets(monkeypatch, PermissionError(errno.EPERM, 'as the test says'))
    server, peer = polling.server(serving(7))
    polling.ask(peer, schedule=RetrySchedule(30, 0.01, 1))
    assert polling.result(peer).status is Outcome.SUCCESS
    assert len(server.queries) == 1


def test_a_socket_is_open_while_a_reply_is_awaited_only(polling: Polling) -> None:
    silent, peer = polling.server(lambda query, over_tcp: [])
    polling.ask(peer, schedule=RetrySchedule(0.4, 0, 0))
    wait_until(lambda: silent.queries, 'a query')
    assert len(polling._loop._open_channels) == 1
    assert polling.result(peer).answer is Answer.TIMEOUT
    assert not polling._loop._open_channels


def test_a_socket_is_closed_also_when_only_queries_that_have_ended_wait(polling: Polling) -> None:
    _, peer = polling.server(lambda query, over_tcp: [])
    closed = threading.Event()

    def start_and_cancel() -> None:
        first, second = (RetryingQuery(peer, 'example.com.', 7, RetrySchedule(30, 30, 0), lambda *ended: None)
                         for _ in range(2))
        polling._loop.start_query(first)
        polling._loop.submit(cancel_both, first, second)

    def cancel_both(first: RetryingQuery, second: RetryingQuery) -> None:
        assert polling._loop._open_channels
        polling._loop.start_query(second)
        for query in second, first:
            polling._loop.cancel(query)
        polling._loop.submit(look)

    def look() -> None:
        if not polling._loop._open_channels:
            closed.set()

    polling._loop.submit(start_and_cancel)
    assert closed.wait(10)


@pytest.mark.slow  # as others there, it takes root: it sends ICMP messages
@pytest.mark.parametrize('host', ['127.0.0.1', '::1'])
def test_a_host_that_cannot_be_reached_is_not_waited_for(polling: Polling, host: str) -> None:
    # A host or a router that is down is told of in this way, by the one before it or by our own.
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as silent:
        silent.bind((host, 0))
        silent.settimeout(10)
        polling.ask(polling.peer(silent.getsockname()[1], host), schedule=RetrySchedule(600, 600, 0))
        query, client = silent.recvfrom(512)
        octets, ports = socket.inet_pton(family, host), struct.pack('!HH', client[1], silent.getsockname()[1])
        datagram = ports + struct.pack('!HH', 8 + len(query), 0) + query
        if family == socket.AF_INET:
            header = struct.pack('!BBHIBBH', 0x45, 0, 20 + len(datagram), 0, 64, socket.IPPROTO_UDP, 0) + 2 * octets
            message = struct.pack('!BBHI', 3, 1, 0, 0) + header + datagram
            message = message[:2] + internet_checksum(message) + message[4:]
        else:
            header = struct.pack('!IHBB', 6 << 28, len(datagram), socket.IPPROTO_UDP, 64) + 2 * octets
            message = struct.pack('!BBHI', 1, 3, 0, 0) + header + datagram  # the checksum is the system's to make
        protocol = socket.IPPROTO_ICMP if family == socket.AF_INET else socket.IPPROTO_ICMPV6
        with socket.socket(family, socket.SOCK_RAW, protocol) as raw:
            raw.sendto(message, (host, 0))
        result = polling.result(polling.peer(silent.getsockname()[1], host))
    assert (result.answer, result.reason, result.error) == (Answer.TIMEOUT, Reason.UNREACHABLE, 'no route to host')
    assert not polling._loop._open_channels


def internet_checksum(octets: bytes) -> bytes:
    total = sum(int.from_bytes(octets[at:at + 2].ljust(2, b'\0'), 'big') for at in range(0, len(octets), 2))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return (~total & 0xffff).to_bytes(2, 'big')


def test_a_silent_server_delays_no_other(polling: Polling) -> None:
    _, dead = polling.server(lambda query, over_tcp: [])
    _, good = polling.server(serving(7))
    polling.start_many(dead, 500)
    polling.ask(good)
    assert polling.result(good).status is Outcome.SUCCESS
    assert len(polling.results) == 1
    assert 0 < len(polling._loop._channels['127.0.0.1', dead.port].in_flight) <= MAX_IN_FLIGHT


@pytest.mark.parametrize('behind', [True, False])
def test_changes_that_come_faster_than_a_round_of_tries_do_not_hide_that_a_server_fails(
        polling: Polling, behind: bool) -> None:
    _, peer = polling.server(serving(6) if behind else lambda query, over_tcp: [])
    serials = itertools.count(7)

    def change() -> bool:
        polling.ask(peer, next(serials), RetrySchedule(timeout=0.2, retry_interval=0.2, max_retries=1))
        return bool(polling.results)

    wait_until(change, 'a result', 10, pause=0.03)
    _, result = polling.results[0]
    assert (result.status, result.answer) == (Outcome.ERROR, Answer.SERIAL if behind else Answer.TIMEOUT)
    assert (result.serial_number, (result.expected_serial or 0) > 7) == (6 if behind else None, True)


def test_a_server_that_gets_further_with_every_change_does_not_fail(polling: Polling) -> None:
    serves = [5]
    server, peer = polling.server(lambda query, over_tcp: [soa_answer(query, serves[0])])
    schedule = RetrySchedule(timeout=0.3, retry_interval=1.2, max_retries=1)
    two_rounds = time.monotonic() + 3.9
    while time.monotonic() < two_rounds:
        asked = len(server.queries)
        serves[0] += 1
        polling.ask(peer, serves[0] + 1, schedule)
        wait_until(lambda: len(server.queries) > asked, 'it is asked for the change')
    assert [result for _, result in polling.results if result.status is Outcome.ERROR] == []


# A server that is being sent the zone

@pytest.mark.parametrize('max_retries', [0, 2])
def test_tries_during_a_transfer_do_not_use_up_the_round(polling: Polling, max_retries: int) -> None:
    server, peer = polling.server(serving(6))
    polling.fetching.add(peer.id)
    polling.ask(peer, schedule=RetrySchedule(10, 0.02, max_retries))
    wait_until(lambda: len(server.queries) > 2 * (1 + max_retries), 'more tries than a round has')
    assert not polling.results
    polling.fetching.clear()
    assert polling.result(peer).status is Outcome.ERROR


def test_a_second_transfer_prolongs_nothing(polling: Polling) -> None:
    """A server that rejects the zone may fetch it after each NOTIFY."""
    server, peer = polling.server(serving(6))
    polling.fetching.add(peer.id)
    polling.ask(peer, schedule=RetrySchedule(10, 0.02, 20))
    wait_until(lambda: len(server.queries) > 2, 'a try during the transfer')
    (poll,) = polling.poller._polls.values()
    polling.fetching.clear()
    wait_until(lambda: poll.tries > 2, 'tries after the transfer')
    polling.fetching.add(peer.id)
    assert polling.result(peer).status is Outcome.ERROR


@pytest.mark.parametrize('first', [6, None], ids=['an older serial', 'no zone'])
def test_a_transfer_prolongs_again_once_the_server_serves_what_it_fetched_before(polling: Polling,
                                                                                 first: int | None) -> None:
    """It fetches one serial slowly, serves it, and then fetches the next, which was ordered meanwhile."""
    serves, schedule = [first], RetrySchedule(10, 0.02, 20)
    server, peer = polling.server(lambda query, over_tcp: [
        soa_answer(query, serves[0] or 0, rcode=0 if serves[0] else dns.rcode.REFUSED)])
    polling.fetching.add(peer.id)
    polling.ask(peer, 7, schedule)
    wait_until(lambda: len(server.queries) > 2, 'a try during the transfer')
    polling.ask(peer, 8, schedule)
    polling.settled()
    (poll,) = polling.poller._polls.values()
    polling.fetching.clear()
    serves[0] = 7
    wait_until(lambda: poll.seen == 7 and poll.tries > 2, 'tries after the transfer')
    polling.fetching.add(peer.id)
    polled = len(server.queries)
    wait_until(lambda: len(server.queries) > polled + 21 or polling.results, 'more tries than a round has')
    assert not polling.results
    serves[0] = 8
    assert polling.result(peer).serial_number == 8


def test_a_probe_is_answered_while_the_server_fetches_the_zone(polling: Polling) -> None:
    """By itself, and beside a poll that waits for the transfer."""
    server, peer = polling.server(serving(6))
    polling.fetching.add(peer.id)
    probe = PollOrder(peer, POOL, PollRequest('d1', 'example.com.', 7, peer.id, probe=True))
    for number in (1, 2):
        polling.start([probe], RetrySchedule(10, 0.02, 0))
        wait_until(lambda: len(polling.results) == number, 'a result', 10)
        polling.ask(peer, schedule=RetrySchedule(10, 0.02, 2))
        seen = len(server.queries)
        wait_until(lambda: len(server.queries) > seen + 6, 'it is polled, and polled again')
    assert [(result.answer, result.serial_number) for _, result in polling.results] == [(Answer.SERIAL, 6)] * 2


def test_a_probe_is_not_answered_with_what_a_server_said_before_it_fell_silent(polling: Polling) -> None:
    replies = [6]
    server, peer = polling.server(lambda query, over_tcp: [soa_answer(query, replies.pop())] if replies else [])
    polling.ask(peer, schedule=RetrySchedule(0.05, 0.02, 1000))
    wait_until(lambda: len({query.id for query in server.queries}) > 3, 'two tries without a reply')
    probe = PollOrder(peer, POOL, PollRequest('d1', 'example.com.', 7, peer.id, probe=True))
    polling.start([probe], RetrySchedule(0.05, 0.02, 0))
    polling.settled()
    assert not polling.results


def test_a_poll_that_comes_during_a_probe_has_its_own_tries(polling: Polling) -> None:
    """The server has come back, and what is due on it is polled while a probe still waits."""
    replies: list[int] = []
    server, peer = polling.server(lambda query, over_tcp: [soa_answer(query, replies.pop(0))] if replies else [])
    probe = PollOrder(peer, POOL, PollRequest('d1', 'example.com.', 7, peer.id, notify=False, probe=True))
    polling.start([probe], RetrySchedule(10, 0.02, 0))
    wait_until(lambda: server.queries, 'it is probed')
    replies += [6, 7]
    polling.ask(peer)
    assert polling.result(peer).status is Outcome.SUCCESS
    assert len(polling.results) == 1


def test_a_server_that_fetches_and_has_no_address_delays_no_other(polling: Polling) -> None:
    """There is no pause between its tries, and nothing that a try waits for."""
    lost = AllowedPeer('s1', 'lost', (), 53, trouble='ns1.example.net has no address')
    _, good = polling.server(serving(7))
    polling.fetching.add(lost.id)
    polling.ask(lost, schedule=RetrySchedule(10, 0, 1))
    polling.ask(good)
    assert polling.result(good).status is Outcome.SUCCESS
    polling.fetching.clear()
    assert polling.result(lost).error == 'ns1.example.net has no address'


def test_nothing_prolongs_a_poll_for_ever() -> None:
    with contextlib.closing(Polling(max_fetch_seconds=0.5)) as polling:
        _, peer = polling.server(serving(6))
        polling.fetching.add(peer.id)
        polling.ask(peer, schedule=RetrySchedule(10, 0.02, 0))
        assert polling.result(peer).status is Outcome.ERROR


def test_changes_that_come_during_a_transfer_do_not_make_it_a_failure(polling: Polling) -> None:
    server, peer = polling.server(serving(6))
    polling.fetching.add(peer.id)
    schedule, serials = RetrySchedule(timeout=0.1, retry_interval=0.1, max_retries=1), itertools.count(7)
    longer_than_a_round = time.monotonic() + 1.0

    def change() -> bool:
        polling.ask(peer, next(serials), schedule)
        return bool(polling.results)

    wait_until(lambda: change() or time.monotonic() > longer_than_a_round, 'more than a round is over', pause=0.03)
    assert not polling.results
    polling.fetching.clear()
    wait_until(change, 'a result', 10, pause=0.03)
    assert polling.results[0][1].status is Outcome.ERROR


@pytest.mark.parametrize(('transfers', 'base'), [
    pytest.param([], 7, id='none'),
    pytest.param([(7, None)], None, id='the whole zone'),
    pytest.param([(7, 5)], 5, id='a difference'),
    pytest.param([(6, 5), (7, 6)], 5, id='differences that follow each other'),
    pytest.param([(5, None), (7, 6)], 6, id='a difference from what was not transferred'),
    pytest.param([(6, None)], 7, id='an older serial')])
def test_a_result_says_from_which_serial_the_server_came_by_transfers(
        polling: Polling, transfers: list[tuple[int, int | None]], base: int | None) -> None:
    _, peer = polling.server(lambda query, over_tcp: [soa_answer(query, 7)])
    polling.transferred_in_turn(peer, transfers)
    polling.ask(peer)
    assert polling.result(peer).base == base
