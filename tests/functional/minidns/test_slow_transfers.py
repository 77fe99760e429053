"""A server that is asked for its serial while MiniDNS is still sending it the zone."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import dns.message
import pytest

from designate_pool.minidns.service import MiniDns
from designate_pool.model import Context, Outcome, PollRequest, PollResult, Server, new_id
from testing.processes import wait_until
from testing.zones import insert_big_zone
from tests.fixtures.answering import Scripted, soa_answer
from tests.functional.minidns.conftest import LocalMiniDns
from tests.functional.minidns.test_connections import framed

pytestmark = pytest.mark.slow

COUNT = 5000
#: Tries of a round without a transfer; they follow each other at once.
TRIES = 3


class SlowServer:
    """A server that serves *serial*, and reads the zone that it is sent when the test says so.

    :param host: where it answers; it transfers from there, too
    """

    def __init__(self, minidns: LocalMiniDns, domain_id: str, ends: contextlib.ExitStack,
                 host: str = '127.0.0.1') -> None:
        self.serial = 6
        self.answers = Scripted(lambda query, over_tcp: [soa_answer(query, self.serial)], host)
        ends.callback(self.answers.close)
        self.server = Server(id=new_id(), driver='fake', host=host, port=self.answers.port)
        self.domain_id = domain_id
        self._minidns = minidns
        self._ends = ends

    def poll(self, service: MiniDns, name: str = 'example.org.') -> None:
        request = PollRequest(self.domain_id, name, 7, self.server.id)
        service.notify_and_poll(Context(), 'default', [request], 10, 0.05, TRIES - 1)

    def begin_transfer(self, service: MiniDns) -> socket.socket:
        """Ask for the zone, and read the first octets of it."""
        sock = self._ends.enter_context(socket.socket())
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(10)
        sock.bind((self.answers.host, 0))
        sock.connect((service.endpoints[0].host, service.endpoints[0].port))
        sock.sendall(framed(dns.message.make_query('example.org', 'AXFR')))
        assert sock.recv(100)
        return sock

    def is_polled_beyond_its_round(self) -> None:
        polls = len(self.answers.polls())
        wait_until(lambda: len(self.answers.polls()) > polls + 2 * TRIES, 'it is polled, and polled again')

    @property
    def results(self) -> list[PollResult]:
        return [each for each in self._minidns.pool_manager.results if each.server_id == self.server.id]

    def result(self) -> PollResult:
        return wait_until(lambda: self.results, 'it is reported')[0]


@pytest.fixture
def slow(minidns: LocalMiniDns) -> Iterator[SlowServer]:
    domain_id = minidns.storage.run(insert_big_zone, COUNT)
    with contextlib.ExitStack() as ends:
        yield SlowServer(minidns, domain_id, ends)


def start(minidns: LocalMiniDns, *servers: SlowServer, **options: Any) -> MiniDns:
    service = minidns.start(*(each.server for each in servers), **options)
    for listener in service._listener._tcp:  # connections have its buffer: a small one is full at once
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    return service


def read_rest(sock: socket.socket) -> None:
    """Read what has been sent, until there is nothing more for a moment."""
    sock.settimeout(1)
    with contextlib.suppress(TimeoutError):
        while sock.recv(1 << 20):
            pass


def test_a_server_that_is_being_sent_the_zone_is_not_in_error(minidns: LocalMiniDns, slow: SlowServer) -> None:
    service = start(minidns, slow)
    sock = slow.begin_transfer(service)
    slow.poll(service)
    slow.is_polled_beyond_its_round()
    assert not slow.results
    slow.serial = 7
    read_rest(sock)
    assert slow.result().status is Outcome.SUCCESS


def test_a_server_that_does_not_serve_what_it_was_sent_is_in_error_after_a_round(minidns: LocalMiniDns,
                                                                                 slow: SlowServer) -> None:
    service = start(minidns, slow)
    slow.poll(service)
    sock = slow.begin_transfer(service)
    slow.is_polled_beyond_its_round()
    assert not slow.results
    read_rest(sock)
    result = slow.result()
    assert (result.status, result.serial_number) == (Outcome.ERROR, 6)


def test_a_transfer_to_one_server_prolongs_no_poll_of_another(minidns: LocalMiniDns, slow: SlowServer) -> None:
    with contextlib.ExitStack() as ends:
        other = SlowServer(minidns, slow.domain_id, ends, '127.0.0.2')
        service = start(minidns, slow, other)
        slow.begin_transfer(service)
        slow.poll(service)
        other.poll(service)
        assert other.result().status is Outcome.ERROR
        slow.is_polled_beyond_its_round()
        assert not slow.results


def test_a_transfer_of_another_zone_prolongs_nothing(minidns: LocalMiniDns, slow: SlowServer) -> None:
    service = start(minidns, slow)
    slow.begin_transfer(service)
    slow.poll(service, 'example.com.')
    assert slow.result().status is Outcome.ERROR
