"""A zone's SOA on the wire, as text, as Central shows it, and asked for."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import dns.message
import dns.rdata
import dns.rrset
import pytest

from designate_pool.deadline import Deadline
from designate_pool.model import Domain, RecordSet, ZoneHead
from designate_pool.protocol import soa_exchange, soa_rdata
from designate_pool.storage.queries import whole_recordset

TIMERS = {'ttl': 300, 'serial': 7, 'refresh': 3600, 'retry': 600, 'expire': 86400, 'minimum': 900}


@pytest.mark.parametrize('email', ['hostmaster@example.com', 'first.last@Example.com', 'a$b@ex$ample.com',
                                   'a@exa;mple.com', 'a@exa mple.com', r'a@b\046c.com'])
def test_all_forms_say_the_same(email: str) -> None:
    head = ZoneHead('d1', 'example.com.', 'default', email, name_servers=('ns1.example.com.',), **TIMERS)
    domain = Domain('d1', 'example.com.', 'p1', 'default', email, **TIMERS)

    text = soa_rdata.text(head, 'ns1.example.com.')

    parsed = dns.rdata.from_text('IN', 'SOA', text)
    assert parsed.to_text() == text
    assert parsed.to_wire() == soa_rdata.encode(head)
    managed = whole_recordset(RecordSet('example.com.', 'SOA', managed=True), domain, 'ns1.example.com.')
    assert [record.data for record in managed.records] == [text]


NAMES = [f'zone-{number}.example.com.' for number in range(20)]


class SlowServer:
    """Answers only when it has got nothing for a while, as one that cannot keep up; counts what it has not answered.

    :ivar most: queries that it had at once
    """

    def __init__(self) -> None:
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sock.bind(('127.0.0.1', 0))
        self._sock.settimeout(0.1)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.port = self._sock.getsockname()[1]
        self.most = self.asked = 0

    def __enter__(self) -> SlowServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(10)
        self._sock.close()

    def _run(self) -> None:
        held: list[tuple[bytes, tuple[str, int]]] = []
        while not self._stopping.is_set():
            try:
                held.append(self._sock.recvfrom(65535))
                self.most, self.asked = max(self.most, len(held)), self.asked + 1
            except TimeoutError:
                for octets, address in held:
                    self._sock.sendto(_answer(octets), address)
                held.clear()


def _answer(octets: bytes) -> bytes:
    answer = dns.message.make_response(dns.message.from_wire(octets))
    name = answer.question[0].name
    answer.flags |= dns.flags.AA
    answer.answer.append(dns.rrset.from_text(name, 60, 'IN', 'SOA', 'ns.example. admin.example. 7 1 1 1 60'))
    return answer.to_wire()


@pytest.fixture
def server() -> Iterator[SlowServer]:
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(SlowServer())


@pytest.mark.parametrize('most', [1, 4])
def test_a_server_gets_no_more_queries_at_once_than_it_may(server: SlowServer, most: int) -> None:
    names = NAMES[:4 * most]
    said = soa_exchange.ask('127.0.0.1', server.port, None, names, Deadline(60), resend=60, most_in_flight=most)
    assert {name: reply and reply.serial for name, reply in said.items()} == dict.fromkeys(names, 7)
    assert (server.most, server.asked) == (most, len(names))
