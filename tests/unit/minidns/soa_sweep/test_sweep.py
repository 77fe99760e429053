"""Asking servers for many serials in one go, against servers that do as the test says."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest

from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.minidns.client import udp_gso
from designate_pool.minidns.client.udp_gso import UdpGso
from designate_pool.minidns.soa_sweep import sweep
from designate_pool.minidns.soa_sweep.page import PeerResult, SweepPage
from designate_pool.minidns.soa_sweep.sweep import SoaSweep
from designate_pool.model import Answer, TsigKey
from designate_pool.protocol import tsig
from designate_pool.runtime import Threads
from testing.processes import free_port, wait_until
from tests.fixtures.answering import Answers, Scripted, soa_answer

Script = Callable[[dns.message.Message, bool], Answers]
KEY = TsigKey('pool-key.', 'hmac-sha256', 'b25seSBmb3IgdGVzdHM=')
NAMES = ('a.example.com.', 'b.example.com.', 'c.example.com.')


class RunningSweep:
    """A sweep that runs, and the servers it asks."""

    def __init__(self, **options: Any) -> None:
        self.posted: list[Any] = []
        self._changed = threading.Condition()
        self._servers: list[Scripted] = []
        self._native = Threads().native('sweep', self._handle)
        self._sweep = SoaSweep(self._native, check_interval=0.02, **options)
        self._task = self._native.spawn(self._sweep.run)

    def server(self, script: Script, host: str = '127.0.0.1', keyed: bool = False) -> tuple[Scripted, AllowedPeer]:
        server = Scripted(script, host, tsig.key_from(KEY) if keyed else None)
        self._servers.append(server)
        return server, peer(server.port, host, keyed)

    def ask(self, *peers: AllowedPeer, serial: int = 7, names: tuple[str, ...] = NAMES) -> list[PeerResult]:
        """What comes of a page, by server."""
        page = self.put(*peers, serial=serial, names=names)
        self.wait(page)
        assert all(isinstance(each, SweepPage) for each in self.posted), self.posted
        return page.results

    def put(self, *peers: AllowedPeer, serial: int = 7, names: tuple[str, ...] = NAMES) -> SweepPage:
        page = SweepPage(peers, [(f'd{number}', name, serial) for number, name in enumerate(names)])
        self._sweep.put(page)
        return page

    def wait(self, page: SweepPage) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: page in self.posted, 30), 'the page is not done'

    def close(self) -> None:
        self._sweep.stop()
        self._task.join(10)
        self._native.stop()
        for server in self._servers:
            server.close()

    def _handle(self, items: list[Any]) -> None:
        with self._changed:
            self.posted.extend(items)
            self._changed.notify_all()


#: Seconds of three tries.
TRIES = (0.3, 0.3, 0.3)


@pytest.fixture(params=[{'try_timeouts': TRIES}], ids=[''])
def running(request: pytest.FixtureRequest) -> Iterator[RunningSweep]:
    made = RunningSweep(**request.param)
    yield made
    made.close()


def waits(*try_timeouts: float, **options: float) -> pytest.MarkDecorator:
    return pytest.mark.parametrize('running', [{'try_timeouts': try_timeouts, **options}], indirect=True, ids=[''])


patient = waits(10.0, 10.0, 10.0)


def peer(port: int, host: str = '127.0.0.1', keyed: bool = False) -> AllowedPeer:
    return AllowedPeer(f's{port}', f'test:{port}', (host,), port, tsig.key_from(KEY) if keyed else None)


def serving(serial: int, flags: int = dns.flags.AA, rcode: int = 0) -> Script:
    return lambda query, over_tcp: [soa_answer(query, serial, flags=flags, rcode=rcode)]


def counts(result: PeerResult) -> tuple[int, int, list[Answer]]:
    return result.answered, result.unanswered, [reply.answer for _, reply in result.findings]


@pytest.mark.parametrize('host', ['127.0.0.1', '::1'])
def test_a_server_that_is_right_is_only_counted(running: RunningSweep, host: str) -> None:
    server, right = running.server(serving(7), host)
    for _ in range(2):
        assert [counts(each) for each in running.ask(right)] == [(3, 0, [])]
    assert len(server.queries) == 6


@pytest.mark.parametrize('serial', [8, 2 ** 32 - 1])
def test_a_newer_serial_is_a_finding_as_an_older_one_is(running: RunningSweep, serial: int) -> None:
    _, another = running.server(serving(serial))
    wrong, = running.ask(another)
    assert counts(wrong) == (3, 0, [Answer.SERIAL] * 3)
    assert sorted((number, reply.serial) for number, reply in wrong.findings) == [(n, serial) for n in range(3)]


@pytest.mark.parametrize(('script', 'answer'), [
    (serving(7, rcode=dns.rcode.REFUSED), Answer.NO_ZONE), (serving(7, rcode=dns.rcode.SERVFAIL), Answer.BAD),
    (serving(7, flags=dns.flags.RA), Answer.NOT_AUTH),
    (lambda query, over_tcp: [soa_answer(query, 7).to_wire()[:-1]], Answer.BAD),
    (lambda query, over_tcp: [soa_answer(query, 7, owner='.')], Answer.NO_ZONE)])
def test_what_is_not_the_zone_s_serial_is_a_finding(running: RunningSweep, script: Script, answer: Answer) -> None:
    _, wrong = running.server(script)
    assert counts(running.ask(wrong)[0]) == (3, 0, [answer] * 3)


def test_other_forms_of_the_same_answer_are_as_good(running: RunningSweep) -> None:
    def answers(query: dns.message.Message, over_tcp: bool) -> Answers:
        answer = soa_answer(query, 7)
        shouted = answer.to_wire().replace(b'example', b'EXAMPLE')
        return [answer.to_wire(max_size=512) if 'a.' in str(query.question[0].name)[:2] else shouted]

    _, right = running.server(answers)
    assert counts(running.ask(right)[0]) == (3, 0, [])


def test_a_finding_is_of_its_zone_whatever_the_lengths_of_the_names(running: RunningSweep) -> None:
    names = ('a-rather-long-name.example.com.', 'b.example.com.', 'another-rather-long.example.com.', 'b.example.org.',
             'no..name.', 'ccc.example.com.')

    def answers(query: dns.message.Message, over_tcp: bool) -> Answers:
        return [soa_answer(query, names.index(str(query.question[0].name)))]

    _, server = running.server(answers)
    result = running.ask(server, serial=5, names=names)[0]
    assert result.answered == 5
    assert sorted((number, reply.serial) for number, reply in result.findings) == [(n, n) for n in range(4)]


def test_an_answer_with_much_besides_is_as_good(running: RunningSweep) -> None:
    def answers(query: dns.message.Message, over_tcp: bool) -> Answers:
        answer = soa_answer(query, 7)
        answer.authority.append(dns.rrset.from_text(
            query.question[0].name, 60, 'IN', 'NS', *(f'{"n" * 40}{number}.example.net.' for number in range(50))))
        return [answer.to_wire()]

    _, right = running.server(answers)
    assert counts(running.ask(right)[0]) == (3, 0, [])


def test_replies_that_answer_something_else_are_passed_over(running: RunningSweep) -> None:
    def answers(query: dns.message.Message, over_tcp: bool) -> Answers:
        good = soa_answer(query, 7).to_wire()
        other = soa_answer(dns.message.make_query('other.example.com.', 'SOA', id=query.id), 1)
        return [b'', b'\0', bytes(2) + good[2:], query.to_wire(), other, good, good]

    _, right = running.server(answers)
    assert counts(running.ask(right)[0]) == (3, 0, [])


def test_a_lost_answer_is_asked_for_again(running: RunningSweep) -> None:
    seen: list[int] = []

    def answers(query: dns.message.Message, over_tcp: bool) -> Answers:
        seen.append(query.id)
        return [soa_answer(query, 7)] if seen.count(query.id) > 1 else []

    _, lossy = running.server(answers)
    assert counts(running.ask(lossy)[0]) == (3, 0, [])
    assert len(seen) == 6


def test_who_is_told_to_come_by_tcp_asks_again_and_takes_it_for_no_serial(running: RunningSweep) -> None:
    _, limited = running.server(lambda query, over_tcp: [soa_answer(query, 1, flags=dns.flags.AA | dns.flags.TC)])
    assert counts(running.ask(limited)[0]) == (0, 3, [Answer.TIMEOUT] * 3)


def test_a_silent_server_does_not_keep_the_others_waiting_for_more_than_its_tries(running: RunningSweep) -> None:
    names = tuple(f'z{number}.example.com.' for number in range(400))
    server, silent = running.server(lambda query, over_tcp: [])
    _, right = running.server(serving(7))
    dead, alive = running.ask(silent, right, names=names)
    assert counts(alive) == (400, 0, [])
    assert dead.answered == 0 and 0 < dead.unanswered < 400  # the others were not asked
    asked = len(server.queries)
    assert counts(running.ask(silent, right, names=names)[0]) == (0, 1, [Answer.TIMEOUT])
    assert len(server.queries) == asked + len(TRIES)


def test_a_server_that_is_back_is_asked_for_everything(running: RunningSweep) -> None:
    names = tuple(f'z{number}.example.com.' for number in range(300))
    is_back: list[bool] = []
    _, server = running.server(lambda query, over_tcp: [soa_answer(query, 7)] if is_back else [])
    assert running.ask(server, names=names)[0].answered == 0
    is_back.append(True)
    assert counts(running.ask(server, names=names)[0]) == (300, 0, [])


@waits(20.0, max_late=0.0)
def test_pages_go_on_without_a_server_that_is_far_behind(running: RunningSweep) -> None:
    names = tuple(f'z{number}.example.com.' for number in range(200))
    _, silent = running.server(lambda query, over_tcp: [])
    _, right = running.server(serving(7))
    pages = []
    for _ in range(sweep.MAX_PAGES_BEHIND + 1):
        pages.append(running.put(silent, right, names=names))
        wait_until(lambda: pages[-1].results[1].answered == 200, 'the other server is done')
    running.wait(pages[-1])
    assert counts(pages[-1].results[0]) == (0, 0, []) and pages[0] not in running.posted


@waits(60.0)
def test_a_port_that_refuses_is_given_up_at_once(running: RunningSweep) -> None:
    result = running.ask(peer(free_port()))[0]
    assert result.answered == 0 and result.unanswered > 0
    assert {(reply.answer, reply.error) for _, reply in result.findings} == {(Answer.TIMEOUT, 'connection refused')}


@patient
@pytest.mark.parametrize('keyed', [False, True])
def test_what_finds_no_room_in_the_socket_goes_out_later(running: RunningSweep, monkeypatch: pytest.MonkeyPatch,
                                                         keyed: bool) -> None:
    """The system takes one message, then none, then half of what it is given, and again."""
    takes = itertools.cycle([lambda some: some[:1], lambda some: [], lambda some: some[:len(some) // 2 + 1]])
    send = UdpGso.send

    def sometimes(self: UdpGso, messages: Sequence[bytes]) -> int:
        some = next(takes)(messages)
        return send(self, some) if some else 0

    monkeypatch.setattr(UdpGso, 'send', sometimes)
    names = tuple(f'z{number}.example.com.' for number in range(150))
    server, right = running.server(serving(7), keyed=keyed)
    assert counts(running.ask(right, names=names)[0]) == (150, 0, [])
    assert len({query.question[0].name for query in server.queries}) == 150


@patient
def test_a_system_that_takes_datagrams_one_by_one_loses_none(running: RunningSweep,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udp_gso, '_supports_segmentation', lambda sock: False)
    names = tuple(f'z{number}.example.com.' for number in range(300))
    (_, one), (_, other) = running.server(serving(7)), running.server(serving(6), '::1')
    right, behind = running.ask(one, other, names=names)
    assert counts(right) == (300, 0, []) and counts(behind) == (300, 0, [Answer.SERIAL] * 300)


@patient
def test_one_server_that_refuses_leaves_the_other_whole(running: RunningSweep) -> None:
    names = tuple(f'z{number}.example.com.' for number in range(300))
    _, right = running.server(serving(7))
    for _ in range(2):
        dead, alive = running.ask(peer(free_port()), right, names=names)
        assert dead.answered == 0 and dead.unanswered > 0 and counts(alive) == (300, 0, [])


def test_a_server_with_a_key_must_sign(running: RunningSweep) -> None:
    def signed(query: dns.message.Message, over_tcp: bool) -> Answers:
        return [soa_answer(query, 7)]

    def unsigned(query: dns.message.Message, over_tcp: bool) -> Answers:
        plain = dns.message.make_query(query.question[0].name, 'SOA', id=query.id)
        return [soa_answer(plain, 7)]

    _, right = running.server(signed, keyed=True)
    _, wrong = running.server(unsigned, keyed=True)
    good, bad = running.ask(right, wrong)
    assert counts(good) == (3, 0, [])
    assert counts(bad) == (3, 0, [Answer.BAD] * 3) and 'not signed' in bad.findings[0][1].error


def test_pages_with_nothing_to_ask_or_nobody_are_done(running: RunningSweep) -> None:
    _, right = running.server(serving(7))
    nowhere = AllowedPeer('s1', 'nowhere', (), 53, trouble='it has no address')
    assert running.ask() == []
    assert counts(running.ask(right, names=())[0]) == (0, 0, [])
    assert counts(running.ask(right, names=('no..name.', NAMES[0]))[0]) == (1, 0, [])
    assert counts(running.ask(nowhere)[0]) == (0, 0, [])


def test_a_page_that_cannot_be_asked_is_told_of_and_the_next_goes_on(running: RunningSweep) -> None:
    _, right = running.server(serving(7))
    running.put(right, serial=-1)
    page = running.put(right)
    running.wait(page)
    assert counts(page.results[0]) == (3, 0, [])
    assert ['OverflowError' in each for each in running.posted if isinstance(each, str)] == [True]
