"""A server that is polled while MiniDNS is still sending it the zone."""

from __future__ import annotations

import contextlib
import socket

import dns.message
import pytest

from designate_pool.model import Context, Outcome, PollRequest, PollResult, Server, new_id
from testing.processes import wait_until
from testing.zones import insert_big_zone
from tests.fixtures.answering import Scripted, soa_answer
from tests.functional.minidns.conftest import LocalMiniDns
from tests.functional.minidns.test_connections import framed, limit_buffers

pytestmark = pytest.mark.slow


def test_tries_do_not_count_while_the_server_is_sent_the_zone_as_those_of_others_and_of_other_zones_do(
        minidns: LocalMiniDns) -> None:
    domain_id = minidns.storage.run(insert_big_zone, 5000)
    with contextlib.ExitStack() as ends:
        fetching, other = (ends.enter_context(contextlib.closing(
            Scripted(lambda query, over_tcp: [soa_answer(query, 6)], host))) for host in ('127.0.0.1', '127.0.0.2'))
        servers = [Server(id=new_id(), driver='fake', host=each.host, port=each.port) for each in (fetching, other)]
        service = minidns.start(*servers)
        limit_buffers(service, 4096)
        sock = ends.enter_context(socket.socket())
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(10)
        sock.bind((fetching.host, 0))
        sock.connect((service.endpoints[0].host, service.endpoints[0].port))
        sock.sendall(framed(dns.message.make_query('example.org', 'AXFR')))
        assert sock.recv(100)

        requests = [PollRequest(domain_id, 'example.org.', 7, each.id) for each in servers]
        requests.append(PollRequest('d1', 'example.com.', 7, servers[0].id))
        service.notify_and_poll(Context(), 'default', requests, 10, 0.05, 2)

        def results(server: Server, domain_id: str) -> list[PollResult]:
            return [each for each in minidns.pool_manager.results
                    if (each.server_id, each.domain_id) == (server.id, domain_id)]

        wait_until(lambda: results(servers[1], domain_id) and results(servers[0], 'd1'), 'the others have failed')
        polled = len(fetching.polls())
        wait_until(lambda: len(fetching.polls()) > polled + 6, 'it is polled, and polled again')
        assert not results(servers[0], domain_id)
        sock.settimeout(1)
        with contextlib.suppress(TimeoutError):
            while sock.recv(1 << 20):
                pass
        result, = wait_until(lambda: results(servers[0], domain_id), 'the round is over')
        assert (result.status, result.serial_number) == (Outcome.ERROR, 6)
