"""What MiniDNS leaves when it stops is gone on with."""

from __future__ import annotations

import contextlib

import dns.message

from designate_pool.model import Context, PollRequest, Server, new_id, utcnow
from testing.processes import wait_until
from tests.fixtures.answering import Scripted, soa_answer
from tests.functional.minidns.conftest import LocalMiniDns

PAGE = [(new_id(), f'{each}.example.', 7) for each in 'abc']


def test_pool_managers_repeat_the_polls_that_have_not_ended(minidns: LocalMiniDns) -> None:
    server = Server(new_id(), 'fake', '127.0.0.1', 1)
    service = minidns.start(server)
    service.announce()
    wait_until(lambda: minidns.pool_manager.repeated == ['default'], 'they repeat what another has left')
    request = PollRequest(new_id(), 'a.example.', 7, server.id, delay=60.0, seen=5)
    service.notify_and_poll(Context(), 'default', [request], 5, 60, 9)
    service.stop()
    assert minidns.pool_manager.repeated == ['default', 'default']


def test_without_a_broker_it_ends_all_the_same(minidns: LocalMiniDns) -> None:
    server = Server(new_id(), 'fake', '127.0.0.1', 1)
    service = minidns.start(server)
    service.announce()
    wait_until(lambda: minidns.pool_manager.repeated, 'it has started')
    service.notify_and_poll(Context(), 'default', [PollRequest(new_id(), 'a.example.', 7, server.id, delay=60.0)],
                            5, 60, 9)
    minidns.pool_manager.down = True
    service.stop()
    assert minidns.pool_manager.tried == 2


def test_pages_of_an_audit_are_told_as_far_as_they_are(minidns: LocalMiniDns) -> None:
    """Or the pool manager would wait for their answers before it begins another round."""
    def answer(query: dns.message.Message, over_tcp: bool) -> list[dns.message.Message]:
        return [soa_answer(query, 6)] if str(query.question[0].name).lower() == 'a.example.' else []

    with contextlib.closing(Scripted(answer)) as name_server:
        server = Server(new_id(), 'fake', '127.0.0.1', name_server.port)
        first = minidns.start(server)
        first.audit_serials(Context(), 'default', utcnow(), [server.id], PAGE)
        wait_until(lambda: len(name_server.queries) >= 3, 'it is asked')
        first.stop()
        [(_, _, _, counts, findings)] = minidns.pool_manager.pages
        assert counts == [(server.id, 1, 0)]
        assert [(each.domain_id, each.serial_number) for each in findings] == [(PAGE[0][0], 6)]
