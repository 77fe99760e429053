"""What goes on at the end of a MiniDNS is gone on with by another."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from designate_pool.errors import ServiceUnavailable
from designate_pool.minidns.service import MiniDns
from designate_pool.model import Context, Domain, Outcome, PollRequest, Server, new_id
from tests.fixtures.answering import Scripted, soa_answer
from tests.fixtures.processes import wait_until
from tests.functional.minidns.conftest import World


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


def test_polls_under_way_are_gone_on_with_by_another(world: World) -> None:
    serials = [6]
    with contextlib.closing(Scripted(lambda query, over_tcp: [soa_answer(query, serials[0])])) as name_server:
        server = Server(new_id(), 'fake', '127.0.0.1', name_server.port)
        broker = Broker()
        first, broker.other = world.start(server, others=broker), world.start(server)
        domains = [Domain(new_id(), name, new_id(), 'default', 'a@example.com', 60, 7)
                   for name in ('a.example.', 'b.example.', 'c.example.')]
        requests = [PollRequest(each.id, each.name, 7, server.id) for each in domains[:2]]
        first.notify_and_poll(Context(), 'default', requests, 5, 60, 9)
        first.poll_for_serial_number(Context(), domains[2], f'127.0.0.1:{name_server.port}', 5, 60, 9)
        wait_until(lambda: len(name_server.polls()) == 3, 'each was asked for once')
        serials[0] = 7
        first.stop()
        wait_until(lambda: len(world.pool_manager.results) == 2 and world.pool_manager.told, 'all are confirmed')
        assert {(each.domain_id, each.status) for each in world.pool_manager.results} == {
            (each.id, Outcome.SUCCESS) for each in domains[:2]}
        assert [each[1].id for each in world.pool_manager.told] == [domains[2].id]
        (_, many), = [each for each in broker.cast if each[0] == 'notify_and_poll']
        assert many[3:] == (5, 60, 9 - 1), 'with the tries that are left'


def test_what_was_just_asked_for_is_handed_on_as_it_was(world: World) -> None:
    server = Server(new_id(), 'fake', '127.0.0.1', 1)
    broker = Broker()
    broker.other = world.start(server)
    first = world.start(server, others=broker)
    request = PollRequest(new_id(), 'a.example.', 7, server.id, delay=60.0, seen=5)
    first.notify_and_poll(Context(), 'default', [request], 5, 60, 9)
    first.stop()
    assert broker.cast == [('notify_and_poll', (Context(), 'default', [request], 5, 60, 9))]


def test_without_a_broker_it_ends_all_the_same(world: World, caplog: pytest.LogCaptureFixture) -> None:
    server = Server(new_id(), 'fake', '127.0.0.1', 1)
    first = world.start(server, others=Broker())
    request = PollRequest(new_id(), 'a.example.', 7, server.id, delay=60.0)
    first.notify_and_poll(Context(), 'default', [request], 5, 60, 9)
    first.stop()
    assert 'they are due again later' in caplog.text
