from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest

from benchmarks.serials import await_serials
from designate_pool.model import Endpoint

SOA = 'ns1.example.net. hostmaster.example.com. {} 1 1 1 1'


@contextlib.contextmanager
def answering(serials: Mapping[str, list[int | None]]) -> Iterator[Endpoint]:
    """A name server that gives the serials of a zone one after the other, REFUSED for None, and stays at the last."""
    left = {name: list(values) for name, values in serials.items()}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(('127.0.0.1', 0))

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    query, address = sock.recvfrom(4096)
                    if not query:
                        return
                    sock.sendto(_answer(dns.message.from_wire(query), left), address)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Endpoint(*sock.getsockname())
        finally:
            sock.sendto(b'', sock.getsockname())
            thread.join()


def _answer(query: dns.message.Message, left: Mapping[str, list[int | None]]) -> bytes:
    name = query.question[0].name.to_text()
    values = left[name]
    value = values.pop(0) if len(values) > 1 else values[0]
    answer = dns.message.make_response(query)
    if value is None:
        answer.set_rcode(dns.rcode.REFUSED)
    else:
        answer.flags |= dns.flags.AA
        answer.answer.append(dns.rrset.from_text(name, 300, 'IN', 'SOA', SOA.format(value)))
    return answer.to_wire()


def test_it_waits_until_every_server_has_every_serial() -> None:
    first = {'a.example.com.': [1, 1, 2], 'b.example.com.': [None, 7]}
    second = {'a.example.com.': [2], 'b.example.com.': [7]}
    with answering(first) as one, answering(second) as other:
        await_serials([one, other], {'a.example.com.': 2, 'b.example.com.': 7}, 10.0)


def test_it_waits_until_a_zone_is_refused() -> None:
    with answering({'a.example.com.': [5, 5, None]}) as server:
        await_serials([server], {'a.example.com.': None}, 10.0)


def test_another_serial_is_never_enough() -> None:
    with answering({'a.example.com.': [3]}) as server, pytest.raises(AssertionError, match='1 answers'):
        await_serials([server], {'a.example.com.': 2}, 0.05)
