"""When a query sends, sends again, and gives up; audits of serials, and how results are sent."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterator
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import pytest

from designate_pool.minidns.acl import AllowedPeer
from designate_pool.minidns.client import soa_audit
from designate_pool.minidns.client.event_loop import MAX_IN_FLIGHT, ClientLoop
from designate_pool.minidns.client.query import NextStep, RetryingQuery, RetrySchedule, Step
from designate_pool.minidns.client.soa_audit import AuditPage, PeerResult, SoaAudit
from designate_pool.minidns.client.soa_poller import (POST_TRANSFER, AddressedResult, PollOrder, ResultSender,
                                                      SoaPoller, ToCaller, ToPool)
from designate_pool.minidns.servers import HostAddresses, make_server_table
from designate_pool.model import (Answer, Context, Domain, Endpoint, Outcome, PollRequest, PollResult, Pool, Reason,
                                  utcnow)
from designate_pool.protocol.soa_query import SoaReply
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.runtime import Threads
from testing.processes import free_port, wait_until
from tests.fixtures.answering import Answers, Scripted, soa_answer
from tests.unit.minidns.values import UNKEYED

STALE, RIGHT = SoaReply(Answer.SERIAL, 6), SoaReply(Answer.SERIAL, 7)


class Wanting7(RetryingQuery):
    """Wants the serial 7."""

    def __init__(self, schedule: RetrySchedule) -> None:
        super().__init__(UNKEYED, 'example.com.', 7, schedule, self._end)
        self.result: SoaReply | None = None

    def _end(self, query: RetryingQuery, reply: SoaReply) -> None:
        self.result = reply


def play(schedule: RetrySchedule, answer: Callable[[int], SoaReply | None],
         delay: float = 0.01) -> tuple[list[float], Wanting7, float]:
    """Run a query against a server that replies ``answer(number of the datagram)``: times sent, query, its end."""
    query = Wanting7(schedule)
    sent: list[float] = []
    events: list[tuple[float, int, SoaReply | None]] = []
    now, wake = 0.0, None
    step: Step = query.on_timer(now)
    for _ in range(1000):
        if step is NextStep.END:
            return sent, query, now
        if step is NextStep.SEND:
            reply = answer(len(sent))
            if reply is not None:
                heapq.heappush(events, (now + delay, len(sent), reply))
            sent.append(now)
            step = query.on_sent(now)
        assert isinstance(step, float)
        wake = step
        if events and events[0][0] <= wake:
            now, _, heard = heapq.heappop(events)
            if query.in_try and heard is not None:
                step = query.on_reply(heard, now)
            continue
        now, step = wake, query.on_timer(wake)
    raise AssertionError('it never ends')


def test_lost_datagrams_are_sent_again_after_1_2_4_8_seconds() -> None:
    sent, query, end = play(RetrySchedule(30, 2, 0), lambda number: None)
    assert sent == [0, 1, 3, 7, 15]
    assert end == 30 and query.result is not None and query.result.answer is Answer.TIMEOUT


def test_a_loss_costs_a_second() -> None:
    sent, query, end = play(RetrySchedule(30, 2, 0), lambda number: RIGHT if number == 1 else None)
    assert sent == [0, 1] and query.result == RIGHT and end == pytest.approx(1.01)


@pytest.mark.parametrize('retries', [0, 1, 3])
def test_a_stale_serial_is_asked_for_again_max_retries_times(retries: int) -> None:
    sent, query, _ = play(RetrySchedule(30, 2, retries), lambda number: STALE)
    assert sent == pytest.approx([number * 2.01 for number in range(1 + retries)])
    assert query.result == STALE


def test_the_pauses_may_grow() -> None:
    sent, _, _ = play(RetrySchedule(30, 2, 3, growth=2), lambda number: STALE, delay=0)
    assert sent == [0, 2, 6, 14]
    sent, _, _ = play(RetrySchedule(30, 2, 4, growth=2, longest_interval=5), lambda number: STALE, delay=0)
    assert sent == [0, 2, 6, 11, 16]


def test_a_server_that_loads_once_a_second_is_seen_soon_after_each_transfer() -> None:
    """As NSD does: the second of two zones is served more than a second after it was fetched."""
    sent, _, _ = play(POST_TRANSFER, lambda number: STALE, delay=0)
    assert sent[-1] >= 2 and max(later - earlier for earlier, later in zip(sent, sent[1:])) <= 0.25


def test_every_try_has_its_own_timeout() -> None:
    sent, _, end = play(RetrySchedule(3, 2, 1), lambda number: None)
    assert sent == [0, 1, 5, 6] and end == 8


def test_a_try_of_the_default_time_is_five_datagrams_at_most() -> None:
    sent, _, end = play(RetrySchedule(30, 2, 1), lambda number: None)
    assert sent == [0, 1, 3, 7, 15, 32, 33, 35, 39, 47] and end == 62


def test_an_undeliverable_datagram_ends_the_try() -> None:
    query = Wanting7(RetrySchedule(30, 2, 1))
    query.on_timer(0)
    query.on_sent(0)
    assert query.on_failure('connection refused', 0.1) == 2.1
    assert query.on_timer(2.1) is NextStep.SEND
    query.on_sent(2.1)
    assert query.on_failure('connection refused', 2.2) is NextStep.END
    assert query.result == SoaReply(Answer.TIMEOUT, error='connection refused', reason=Reason.UNREACHABLE)


@pytest.mark.parametrize(('destination', 'endpoint'), [
    ('192.0.2.1', Endpoint('192.0.2.1', 53)),
    ('192.0.2.1:5300', Endpoint('192.0.2.1', 5300)),
    ('[192.0.2.1]:5300', Endpoint('192.0.2.1', 5300)),
    ('2001:db8::1', Endpoint('2001:db8::1', 53)),
    ('[2001:db8::1]', Endpoint('2001:db8::1', 53)),
    ('[2001:DB8:0::1]:5300', Endpoint('2001:db8::1', 5300)),
])
def test_a_destination_is_an_address_and_a_port_which_is_53_when_nothing_is_said(destination: str,
                                                                                 endpoint: Endpoint) -> None:
    peer = make_server_table(Pool('default'), HostAddresses()).find_peer(destination)
    assert (peer.addresses, peer.port) == ((endpoint.host,), endpoint.port)


POOL = ToPool('default', Context())
ADDRESSES = tuple(AllowedPeer(f's1#{number}', 'bind9:192.0.2.1:53', (f'192.0.2.{number + 2}',), 53)
                  for number in range(2))


class Caller:
    """Keeps what is cast.

    :ivar sent: method, topic, how many results
    """

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, int]] = []
        self.results: list[PollResult] = []

    def cast(self, topic: str, context: Context, method: str, **arguments: Any) -> None:
        self.sent.append((method, topic, len(arguments.get('results', ['one']))))
        self.results += arguments.get('results', [])

    def call(self, topic: str, context: Context, method: str, **arguments: Any) -> None:
        raise AssertionError('nothing is called')


@pytest.fixture
def caller() -> Caller:
    return Caller()


@pytest.fixture
def sender(caller: Caller) -> ResultSender:
    return ResultSender(PoolManagerClient(caller), lambda: {'s1': ADDRESSES}, max_incomplete=2)


def served(number: int, serial: int, seen: int | None = None, incarnation: int | None = None) -> PollResult:
    return PollResult('d1', f's1#{number}', Outcome.SUCCESS, Answer.SERIAL, serial if seen is None else seen,
                      expected_serial=serial, incarnation=incarnation)


def failed(number: int, serial: int, seen: int | None = None) -> PollResult:
    return PollResult('d1', f's1#{number}', Outcome.ERROR, Answer.TIMEOUT, seen, 'no answer', serial)


def tell(sender: ResultSender, caller: Caller, *results: PollResult) -> list[tuple[Outcome, int | None]]:
    """What is reported when *results* come, one after the other."""
    caller.results.clear()
    for result in results:
        sender.send((POOL, result))
    assert all(result.server_id == 's1' for result in caller.results)
    return [(result.status, result.serial_number) for result in caller.results]


def test_the_last_address_decides(sender: ResultSender, caller: Caller) -> None:
    assert tell(sender, caller, served(0, 7)) == []
    assert tell(sender, caller, served(1, 7, seen=8)) == [(Outcome.SUCCESS, 7)]
    assert tell(sender, caller, served(1, 9)) == []
    assert tell(sender, caller, served(0, 9)) == [(Outcome.SUCCESS, 9)]


def test_a_failure_names_its_address_and_may_be_mended_alone(sender: ResultSender, caller: Caller) -> None:
    assert tell(sender, caller, served(0, 7), failed(1, 7)) == [(Outcome.ERROR, None)]
    assert caller.results[0].error == '192.0.2.3:53: no answer'
    assert tell(sender, caller, served(1, 7)) == [(Outcome.SUCCESS, 7)]


@pytest.mark.parametrize(('results', 'reported'), [
    ((served(0, 7), served(1, 8)), []),
    ((served(0, 7), served(1, 8), served(0, 8)), [(Outcome.SUCCESS, 8)]),
    ((served(0, 7, incarnation=1), served(1, 7, incarnation=2)), []),
    ((served(0, 7, incarnation=1), served(1, 7, incarnation=2), served(0, 7, incarnation=2)), [(Outcome.SUCCESS, 7)]),
    ((failed(0, 7, seen=5), failed(1, 7, seen=6)), [(Outcome.ERROR, 5)]),
    ((failed(0, 8), failed(1, 8, seen=6)), [(Outcome.ERROR, None)]),
    ((served(0, 2**32 - 1, seen=1), served(1, 2**32 - 1)), [(Outcome.SUCCESS, 2**32 - 1)]),
], ids=['an older serial does not count', 'both are new', 'from before the zone was lost', 'both from after that',
        'the worst failure stands for all', 'no serial is worst', 'a serial that wraps is newer'])
def test_results_of_addresses_are_put_together(sender: ResultSender, caller: Caller, results: tuple[PollResult, ...],
                                               reported: list[tuple[Outcome, int | None]]) -> None:
    assert tell(sender, caller, *results) == reported


def test_results_that_stay_alone_do_not_grow_without_limit(sender: ResultSender, caller: Caller) -> None:
    for number in range(5):
        sender.send((POOL, PollResult(f'd{number}', 's1#0', Outcome.SUCCESS, Answer.SERIAL, 7, expected_serial=7)))
    assert len(sender._parts) == 2
    sender.send((POOL, PollResult('d4', 's1#1', Outcome.SUCCESS, Answer.SERIAL, 7, expected_serial=7)))
    assert [result.domain_id for result in caller.results] == ['d4'] and len(sender._parts) == 1


def of_one_address(number: int, pool_name: str = 'default') -> AddressedResult:
    return ToPool(pool_name, Context()), PollResult(f'd{number}', 's', Outcome.SUCCESS, Answer.SERIAL, 7)


def test_there_is_one_message_for_each_pool_and_each_caller(sender: ResultSender, caller: Caller) -> None:
    domain = Domain('d', 'example.com.', 'p', 'default', 'hostmaster@example.com', 300, 7)
    sender.send(of_one_address(1), of_one_address(2, 'other'),
                (ToCaller(Context(), domain, '192.0.2.1'), of_one_address(3)[1]), of_one_address(4))
    assert sorted(caller.sent) == [
        ('update_status', 'pool_manager.default', 1), ('update_statuses', 'pool_manager.default', 2),
        ('update_statuses', 'pool_manager.other', 1)]
    assert [result.domain_id for result in caller.results] == ['d1', 'd4', 'd2']


Script = Callable[[dns.message.Message, bool], Answers]
NAMES = ('a.example.com.', 'b.example.com.', 'c.example.com.')


class RunningAudit:
    """An audit that runs, and the servers it asks; a pool manager for it.

    :ivar reports: the counts and findings of each page
    """

    def __init__(self, timeout: float) -> None:
        self.reports: list[tuple[Any, Any]] = []
        self._changed = threading.Condition()
        self._servers: list[Scripted] = []
        self.loop = ClientLoop()
        self.audit = SoaAudit(self.loop, self, timeout)  # type: ignore[arg-type]
        self.loop.start(Threads())

    def server(self, script: Script, host: str = '127.0.0.1') -> tuple[Scripted, AllowedPeer]:
        server = Scripted(script, host)
        self._servers.append(server)
        return server, peer(server.port, host)

    def ask(self, *peers: AllowedPeer, serial: int = 7, names: tuple[str, ...] = NAMES) -> list[PeerResult]:
        """The results of a page, by server."""
        with self._changed:
            count = len(self.reports)
            page = self.put(*peers, serial=serial, names=names)
            assert self._changed.wait_for(lambda: len(self.reports) > count, 30), 'the page is not done'
        return page.results

    def put(self, *peers: AllowedPeer, serial: int = 7, names: tuple[str, ...] = NAMES) -> AuditPage:
        page = AuditPage(Context(), 'default', utcnow(), peers,
                         [(f'd{number}', name, serial) for number, name in enumerate(names)])
        self.loop.submit(self.audit.start_page, page)
        return page

    def audited(self, context: Context, pool_name: str, started_at: Any, counts: Any, findings: Any) -> None:
        with self._changed:
            self.reports.append((counts, findings))
            self._changed.notify_all()

    def close(self) -> None:
        self.loop.stop()
        for server in self._servers:
            server.close()


@pytest.fixture(params=[10.0], ids=[''])
def running(request: pytest.FixtureRequest) -> Iterator[RunningAudit]:
    made = RunningAudit(request.param)
    yield made
    made.close()


def waits(timeout: float) -> pytest.MarkDecorator:
    return pytest.mark.parametrize('running', [timeout], indirect=True, ids=[''])


def peer(port: int, host: str = '127.0.0.1') -> AllowedPeer:
    return AllowedPeer(f's{port}', f'test:{port}', (host,), port)


def serving(serial: int) -> Script:
    return lambda query, over_tcp: [soa_answer(query, serial)]


def counts(result: PeerResult) -> tuple[int, int, list[Answer]]:
    return result.answered, result.unanswered, [reply.answer for _, reply in result.findings]


@pytest.mark.parametrize('host', ['127.0.0.1', '::1'])
def test_a_server_that_is_right_is_only_counted(running: RunningAudit, host: str) -> None:
    server, right = running.server(serving(7), host)
    for _ in range(2):
        assert [counts(each) for each in running.ask(right)] == [(3, 0, [])]
    assert len(server.queries) == 6


def test_a_finding_is_of_its_zone_whatever_the_lengths_of_the_names(running: RunningAudit) -> None:
    names = ('a-rather-long-name.example.com.', 'b.example.com.', 'another-rather-long.example.com.', 'b.example.org.',
             'no..name.', 'ccc.example.com.')

    def answers(query: dns.message.Message, over_tcp: bool) -> Answers:
        number = names.index(str(query.question[0].name).lower())
        return [soa_answer(query, number, rcode=dns.rcode.REFUSED if number == 2 else 0)]

    _, server = running.server(answers)
    result = running.ask(server, serial=5, names=names)[0]
    assert result.answered == 5
    assert sorted((number, reply.serial) for number, reply in result.findings) == [(0, 0), (1, 1), (2, None), (3, 3)]


@waits(2.0)
def test_a_silent_server_does_not_keep_the_others_waiting_for_more_than_one_timeout(running: RunningAudit) -> None:
    names = tuple(f'z{number}.example.com.' for number in range(400))
    server, silent = running.server(lambda query, over_tcp: [])
    _, right = running.server(serving(7))
    dead, alive = running.ask(silent, right, names=names)
    assert counts(alive) == (400, 0, [])
    assert counts(dead) == (0, soa_audit.MAX_OPEN, [Answer.TIMEOUT] * soa_audit.MAX_OPEN), 'no others were asked'


def test_a_page_that_is_alone_asks_more_at_a_time_than_each_of_many(running: RunningAudit) -> None:
    names = tuple(f'z{number}.example.com.' for number in range(200))
    _, silent = running.server(lambda query, over_tcp: [])
    results = [running.put(silent, names=names).results[0] for _ in range(16)]
    wait_until(lambda: results[-1].open, 'all have begun')
    assert [result.open for result in results] == [32, 16, 10, 8, 6, 5] + 10 * [4]
    assert sum(result.open for result in results) < MAX_IN_FLIGHT, 'there is room for a poll'


@waits(60.0)
def test_a_page_asks_no_more_of_a_server_that_takes_too_long(running: RunningAudit,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    names = tuple(f'z{number}.example.com.' for number in range(200))
    is_late = threading.Event()

    def answers(query: dns.message.Message, over_tcp: bool) -> Answers:
        is_late.wait(30)
        return [soa_answer(query, 7)]

    server, slow = running.server(answers)
    page = running.put(slow, names=names)
    wait_until(lambda: server.queries, 'it is asked')
    monkeypatch.setattr(soa_audit, 'PAGE_TIMEOUT', 0.0)
    is_late.set()
    wait_until(lambda: running.reports, 'the page has ended')
    assert counts(page.results[0]) == (soa_audit.MAX_OPEN, 0, [])


def test_a_poll_does_not_wait_for_a_page(running: RunningAudit) -> None:
    """The poll goes out behind the queries that are open, not behind the page."""
    server, _ = running.server(serving(7))
    address = peer(server.port)
    running.put(address, names=tuple(f'z{number}.example.com.' for number in range(1000)))
    poller = SoaPoller(running.loop, lambda *results: None)
    running.loop.submit(poller.start_polls, [PollOrder(address, ToPool('default', Context()), PollRequest(
        'd', 'poll.example.com.', 7, address.id, notify=False))], RetrySchedule(10, 1, 0))
    wait_until(lambda: running.reports, 'the page has ended')
    asked = [str(query.question[0].name).lower() for query in server.queries]
    assert asked.index('poll.example.com.') <= 10 * soa_audit.MAX_OPEN


def test_one_server_that_refuses_leaves_the_other_whole(running: RunningAudit) -> None:
    names = tuple(f'z{number}.example.com.' for number in range(300))
    _, right = running.server(serving(7))
    for _ in range(2):
        dead, alive = running.ask(peer(free_port()), right, names=names)
        assert dead.answered == 0 and dead.unanswered > 0 and counts(alive) == (300, 0, [])


def test_pages_with_nothing_to_ask_or_nobody_are_done(running: RunningAudit) -> None:
    _, right = running.server(serving(7))
    nowhere = AllowedPeer('s1', 'nowhere', (), 53, trouble='it has no address')
    assert running.ask() == []
    assert counts(running.ask(right, names=())[0]) == (0, 0, [])
    assert counts(running.ask(right, names=('no..name.', NAMES[0]))[0]) == (1, 0, [])
    assert counts(running.ask(nowhere)[0]) == (0, 0, [])


def test_the_report_names_each_server_with_its_counts_and_findings(running: RunningAudit) -> None:
    (_, right), (_, behind) = running.server(serving(7)), running.server(serving(6))
    running.ask(right, behind, names=NAMES[:1])
    [(by_server, [finding])] = running.reports
    assert sorted(by_server) == sorted([(right.id, 1, 0), (behind.id, 1, 0)])
    assert (finding.server_id, finding.domain_id, finding.error) == (
        behind.id, 'd0', 'the server serves serial 6, not 7')
