"""Asking servers for many serials in one go, against servers that do as the test says."""

from __future__ import annotations

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
from designate_pool.minidns.client.query import RetrySchedule
from designate_pool.minidns.client.soa_audit import AuditPage, PeerResult, SoaAudit
from designate_pool.minidns.client.soa_poller import PollOrder, SoaPoller, ToPool
from designate_pool.model import Answer, Context, PollRequest, utcnow
from designate_pool.runtime import Threads
from testing.processes import free_port, wait_until
from tests.fixtures.answering import Answers, Scripted, soa_answer

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
def test_a_page_asks_no_more_of_a_server_that_takes_too_long(running: RunningAudit) -> None:
    names = tuple(f'z{number}.example.com.' for number in range(200))
    is_late = threading.Event()

    def answers(query: dns.message.Message, over_tcp: bool) -> Answers:
        is_late.wait(30)
        return [soa_answer(query, 7)]

    server, slow = running.server(answers)
    page = running.put(slow, names=names)
    wait_until(lambda: server.queries, 'it is asked')
    running.audit._page_timeout = 0.0
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
