"""Zones whose masters say that they have changed, while Central cannot be reached and afterwards."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import dns.message
import dns.rdatatype
import dns.rrset
import pytest

from designate_pool.errors import DomainNotFound, ServiceUnavailable
from designate_pool.minidns.refresher import SecondaryRefresher
from designate_pool.model import Context, Endpoint, RefreshTask, ZoneTransferIn
from designate_pool.runtime import Threads
from designate_pool.settings import MiniDnsSettings
from designate_pool.storage.serving.watched import Watched
from testing.processes import wait_until
from tests.fixtures.answering import Answers, Scripted, soa_answer


class ReachedAtLast:
    """Central, which cannot be reached the first times that it is asked.

    :ivar refreshed: the domains that it was asked to refresh
    :ivar held: those of them that it takes until *release* for
    """

    def __init__(self, failures: int) -> None:
        self.refreshed: list[str] = []
        self.claims = 0
        self.held: list[str] = []
        self.release = threading.Event()
        self._failures = failures

    def refresh_domain(self, context: Context, domain_id: str) -> None:
        if self._failures:
            self._failures -= 1
            raise ServiceUnavailable(service='central', why='no broker')
        if domain_id == 'locked':
            raise ServiceUnavailable(service='the database', why='a lock')
        if domain_id == 'held':
            self.held.append(domain_id)
            self.release.wait(60)
        if domain_id == 'gone':
            raise DomainNotFound(domain=domain_id)
        self.refreshed.append(domain_id)

    def claim_refreshes(self, *arguments: Any) -> list[Any]:
        self.claims += 1
        return []  # so that no master is asked


class OneZone(ReachedAtLast):
    """Central, with a zone that is due once."""

    def __init__(self, *masters: str, serial: int | None = None) -> None:
        super().__init__(0)
        self.due = [RefreshTask('1' * 32, 'example.com.', masters, '2' * 32, serial)]
        self.errors: list[str] = []
        self.stored: list[ZoneTransferIn] = []

    def claim_refreshes(self, *arguments: Any) -> list[Any]:
        return [self.due.pop()] if self.due else []

    def fail_refresh(self, context: Context, domain_id: str, claim: str, error: str) -> None:
        self.errors.append(error)

    def store_transfer(self, context: Context, domain_id: str, claim: str, master: str,
                       contents: ZoneTransferIn) -> None:
        self.stored.append(contents)


@pytest.fixture
def central() -> ReachedAtLast:
    return ReachedAtLast(2)


@pytest.fixture
def refresher(central: ReachedAtLast) -> Iterator[SecondaryRefresher]:
    refresher = SecondaryRefresher(central, 'default', lambda domain_id: None,  # type: ignore[arg-type]
                                   lambda endpoint: None, MiniDnsSettings(transfers_in=2), retry_interval=0.01)
    yield refresher
    refresher.stop()


def test_a_request_outlives_central(refresher: SecondaryRefresher, central: ReachedAtLast) -> None:
    refresher.request('a')
    refresher.start(Threads())
    wait_until(lambda: central.claims, 'what is due is claimed')
    assert central.refreshed == ['a']
    refresher.request('b')
    wait_until(lambda: central.refreshed == ['a', 'b'], 'the second is requested too')


def test_errors_do_not_tell_which_ports_are_open() -> None:
    with contextlib.ExitStack() as sockets:
        closed, silent, other = (sockets.enter_context(socket.create_server(('127.0.0.1', 0))) for _ in range(3))
        masters = [f'127.0.0.1:{server.getsockname()[1]}' for server in (closed, silent, other)]
        closed.close()

        def answer(server: socket.socket, octets: bytes) -> None:
            connection, _ = server.accept()
            connection.sendall(octets)
            connection.close()

        for server, octets in ((silent, b''), (other, b'SSH-2.0-example\r\n' * 9000)):
            threading.Thread(target=answer, args=(server, octets), daemon=True).start()
        central = OneZone(*masters)
        refresher = SecondaryRefresher(central, 'default', lambda domain_id: None,  # type: ignore[arg-type]
                                       lambda endpoint: None)
        refresher.follow(Watched(None, 0, True))
        assert refresher.refresh_next()
    assert central.errors == ['; '.join(f'{master}: no DNS server answers there; the log of MiniDNS says more'
                                        for master in masters)]


def test_a_master_that_ends_the_connection_at_an_ixfr_is_asked_for_the_whole_zone() -> None:
    def script(query: dns.message.Message, over_tcp: bool) -> Answers:
        kind = query.question[0].rdtype
        if kind == dns.rdatatype.IXFR:
            return
        answer = soa_answer(query, 7)
        if kind == dns.rdatatype.AXFR:
            answer.answer.append(dns.rrset.from_text('example.com.', 60, 'IN', 'NS', 'ns1.example.net.'))
            answer.answer.append(answer.answer[0].copy())
        yield answer

    with contextlib.closing(Scripted(script)) as master:
        central = OneZone(f'127.0.0.1:{master.port}', serial=6)
        refresher = SecondaryRefresher(central, 'default', lambda domain_id: None,  # type: ignore[arg-type]
                                       lambda endpoint: None)
        refresher.follow(Watched(None, 0, True))
        assert refresher.refresh_next()
    assert [dns.rdatatype.to_text(query.question[0].rdtype) for query in master.queries] == ['SOA', 'IXFR', 'AXFR']
    assert not central.errors
    assert [(contents.serial, contents.from_serial) for contents in central.stored] == [(7, None)]


@pytest.mark.parametrize('first', ['gone', 'locked'])
def test_a_domain_that_cannot_be_refreshed_keeps_no_other_waiting(
        refresher: SecondaryRefresher, central: ReachedAtLast, first: str) -> None:
    for domain_id in (first, 'a'):
        refresher.request(domain_id)
    refresher.start(Threads())
    wait_until(lambda: central.refreshed == ['a'], 'the other one is refreshed')


def test_what_is_due_is_claimed_while_a_domain_is_locked(
        refresher: SecondaryRefresher, central: ReachedAtLast) -> None:
    refresher.request('locked')
    refresher.start(Threads())
    refresher.follow(Watched(None, 0, True))
    wait_until(lambda: central.claims, 'what is due is claimed')


def test_a_domain_that_takes_long_takes_one_loop_however_often_its_master_notifies(
        refresher: SecondaryRefresher, central: ReachedAtLast) -> None:
    refresher.start(Threads())
    refresher.request('held')
    wait_until(lambda: central.held, 'Central is told')
    refresher.request('held')
    refresher.request('a')
    wait_until(lambda: central.refreshed, 'the other one is refreshed')
    assert (central.refreshed, central.held) == (['a'], ['held'])
    central.release.set()
    wait_until(lambda: central.refreshed == ['a', 'held', 'held'], 'it is told again')


class Due:
    """Central, with zones that are due: (project, address of the master), the longest due first.

    :ivar begun: the projects whose zones are being refreshed, or were
    """

    def __init__(self, *due: tuple[str, str]) -> None:
        self._due = [RefreshTask(str(number), f'{number}.example.', (f'{master}:53',), str(number), None, project)
                     for number, (project, master) in enumerate(due)]
        self.begun: list[str] = []
        self.failed: list[str] = []
        self.release = threading.Event()

    def claim_refreshes(self, context: Context, pool: str, seconds: float, most: int, but_projects: list[str],
                        but_masters: list[str]) -> list[RefreshTask]:
        for task in self._due:
            if task.project_id not in but_projects and task.masters[0].removesuffix(':53') not in but_masters:
                self._due.remove(task)
                self.begun.append(task.project_id)
                return [task]
        return []

    def fail_refresh(self, context: Context, domain_id: str, claim: str, why: str) -> None:
        self.failed.append(domain_id)

    def drip(self, endpoint: Endpoint) -> str:
        self.release.wait(60)
        return 'not today'


@pytest.mark.parametrize(('due', 'places', 'begun'), [
    ([('a', '192.0.2.1')] * 5 + [('b', '192.0.2.2')] * 2 + [('c', '192.0.2.3')], 4, 'abca'),
    ([('a', '192.0.2.1'), ('b', '192.0.2.1'), ('c', '192.0.2.1'), ('d', '192.0.2.2')], 4, 'abd'),
    ([('a', '192.0.2.1'), ('a', '192.0.2.2'), ('a', '192.0.2.3')], 4, 'aa'),
    ([('a', '192.0.2.1'), ('b', '192.0.2.2')], 1, 'a')], ids=['projects', 'masters', 'one project', 'one place'])
def test_one_project_and_one_master_take_half_of_the_places(due: list[tuple[str, str]], places: int,
                                                            begun: str) -> None:
    central = Due(*due)
    refresher = SecondaryRefresher(central, 'default', lambda domain_id: None,  # type: ignore[arg-type]
                                   central.drip, MiniDnsSettings(transfers_in=places))
    refresher.start(Threads())
    try:
        refresher.follow(Watched(None, 0, True))
        wait_until(lambda: len(central.begun) >= len(begun), 'the places are taken')
        assert ''.join(central.begun) == begun
    finally:
        central.release.set()
        wait_until(lambda: len(central.failed) == len(due), 'all are refreshed in the end')
        refresher.stop()


def test_projects_take_turns() -> None:
    central = Due(*[('a', '192.0.2.1')] * 4, ('b', '192.0.2.1'), ('b', '192.0.2.1'), ('c', '192.0.2.1'))
    refresher = SecondaryRefresher(central, 'default', lambda domain_id: None,  # type: ignore[arg-type]
                                   lambda endpoint: 'not today', MiniDnsSettings(transfers_in=1))
    refresher.follow(Watched(None, 0, True))
    while refresher.refresh_next():
        pass
    assert ''.join(central.begun) == 'abcabaa'
