"""What goes on at the end of a MiniDNS is gone on with by another."""

from __future__ import annotations

import contextlib
from typing import Any

import dns.message
import pytest

from designate_pool.errors import ServiceUnavailable
from designate_pool.minidns.service import MiniDns
from designate_pool.model import Context, Domain, Outcome, PollRequest, Server, new_id, utcnow
from testing.processes import wait_until
from tests.fixtures.answering import Scripted, soa_answer
from tests.functional.minidns.conftest import LocalMiniDns


class Broker:
    """Gives what is cast to :attr:`other`, once there is one."""

    def __init__(self) -> None:
        self.other: MiniDns | None = None
        self.cast: list[tuple[str, tuple[Any, ...]]] = []

    def notify_and_poll(self, *arguments: Any) -> None:
        self.cast.append(('notify_and_poll', arguments))
        if self.other is None:
            raise ServiceUnavailable(service='minidns.default', why='no broker')
        self.other.notify_and_poll(*arguments)

    def poll_for_serial_number(self, *arguments: Any) -> None:
        self.cast.append(('poll_for_serial_number', arguments))
        assert self.other is not None
        self.other.poll_for_serial_number(*arguments)

    def notify_zone_changed(self, *arguments: Any) -> None:
        self.cast.append(('notify_zone_changed', arguments))
        assert self.other is not None
        self.other.notify_zone_changed(*arguments)


def test_polls_under_way_are_gone_on_with_by_another(minidns: LocalMiniDns) -> None:
    serials = [6]
    with contextlib.closing(Scripted(lambda query, over_tcp: [soa_answer(query, serials[0])])) as name_server:
        server = Server(new_id(), 'fake', '127.0.0.1', name_server.port)
        broker = Broker()
        first, broker.other = minidns.start(server, others=broker), minidns.start(server)
        domains = [Domain(new_id(), name, new_id(), 'default', 'a@example.com', 60, 7)
                   for name in ('a.example.', 'b.example.', 'c.example.')]
        requests = [PollRequest(each.id, each.name, 7, server.id) for each in domains[:2]]
        first.notify_and_poll(Context(), 'default', requests, 5, 60, 9)
        first.poll_for_serial_number(Context(), domains[2], f'127.0.0.1:{name_server.port}', 5, 60, 9)
        wait_until(lambda: len(name_server.polls()) == 3, 'each was asked for once')
        serials[0] = 7
        first.stop()
        wait_until(lambda: len(minidns.pool_manager.results) == 2 and minidns.pool_manager.told, 'all are confirmed')
        assert {(each.domain_id, each.status) for each in minidns.pool_manager.results} == {
            (each.id, Outcome.SUCCESS) for each in domains[:2]}
        assert [each[1].id for each in minidns.pool_manager.told] == [domains[2].id]
        (_, many), = [each for each in broker.cast if each[0] == 'notify_and_poll']
        assert many[3:] == (5, 60, 9 - 1), 'with the tries that are left'


def test_what_was_just_asked_for_is_handed_on_as_it_was(minidns: LocalMiniDns) -> None:
    server = Server(new_id(), 'fake', '127.0.0.1', 1)
    broker = Broker()
    broker.other = minidns.start(server)
    first = minidns.start(server, others=broker)
    request = PollRequest(new_id(), 'a.example.', 7, server.id, delay=60.0, seen=5)
    first.notify_and_poll(Context(), 'default', [request], 5, 60, 9)
    first.stop()
    assert broker.cast == [('notify_and_poll', (Context(), 'default', [request], 5, 60, 9))]


def test_without_a_broker_it_ends_all_the_same(minidns: LocalMiniDns, caplog: pytest.LogCaptureFixture) -> None:
    server = Server(new_id(), 'fake', '127.0.0.1', 1)
    first = minidns.start(server, others=Broker())
    request = PollRequest(new_id(), 'a.example.', 7, server.id, delay=60.0)
    first.notify_and_poll(Context(), 'default', [request], 5, 60, 9)
    first.stop()
    assert 'they are sent again later' in caplog.text


PAGE = [(new_id(), f'{each}.example.', 7) for each in 'abc']


def test_notifys_under_way_that_nobody_polls_for_are_sent_by_another(minidns: LocalMiniDns) -> None:
    answers: list[bool] = []

    def notified(query: dns.message.Message, over_tcp: bool) -> list[dns.message.Message]:
        return [soa_answer(query, 7)] if answers else []

    with contextlib.closing(Scripted(notified)) as name_server:
        place = f'127.0.0.1:{name_server.port}'
        server = Server(new_id(), 'fake', '127.0.0.1', name_server.port)
        broker = Broker()
        first, broker.other = minidns.start(server, others=broker), minidns.start(server)
        also = PollRequest(new_id(), 'a.example.', 7, place, poll=False)
        domain = Domain(new_id(), 'b.example.', new_id(), 'default', 'a@example.com', 60, 7)
        first.notify_and_poll(Context(), 'default', [also], 5, 60, 9)
        first.notify_zone_changed(Context(), domain, place, 5, 60, 9)
        wait_until(lambda: len(notified_of(name_server)) == 2, 'each is notified')
        before = len(name_server.queries)
        first.stop()
        answers.append(True)
        wait_until(lambda: len(name_server.queries) >= before + 2, 'each is notified again')
        assert {str(each.question[0].name) for each in name_server.queries[before:]} == {'a.example.', 'b.example.'}
        assert [(method, arguments[-3:]) for method, arguments in broker.cast] == [
            ('notify_zone_changed', (5, 60, 9)), ('notify_and_poll', (5, 60, 9))]


def test_pages_of_an_audit_are_told_as_far_as_they_are(minidns: LocalMiniDns) -> None:
    """Or the pool manager would wait for their answers before it begins another round."""
    def answer(query: dns.message.Message, over_tcp: bool) -> list[dns.message.Message]:
        return [soa_answer(query, 6)] if str(query.question[0].name).lower() == 'a.example.' else []

    with contextlib.closing(Scripted(answer)) as name_server:
        server = Server(new_id(), 'fake', '127.0.0.1', name_server.port)
        first = minidns.start(server, others=Broker())
        first.audit_serials(Context(), 'default', utcnow(), [server.id], PAGE)
        wait_until(lambda: len(name_server.queries) >= 3, 'it is asked')
        first.stop()
        [(_, _, _, counts, findings)] = minidns.pool_manager.pages
        assert counts == [(server.id, 1, 0)]
        assert [(each.domain_id, each.serial_number) for each in findings] == [(PAGE[0][0], 6)]


def notified_of(name_server: Scripted) -> set[str]:
    return {str(each.question[0].name) for each in name_server.queries}
