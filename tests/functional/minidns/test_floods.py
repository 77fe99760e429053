"""Whoever sends without end, as fast as MiniDNS takes it, leaves the others their turn."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import threading
from collections.abc import Callable, Iterator

import dns.message
import dns.query
import pytest

from designate_pool.storage.sql.database import Storage
from testing.minidns import MiniDnsProcess
from tests.functional.minidns.conftest import PLAIN, serial_of

SERVER = {'id': PLAIN.id, 'driver': PLAIN.driver, 'host': PLAIN.host, 'port': PLAIN.port}
STRANGER = '127.0.0.9'
#: Seconds that an answer may take; MiniDNS has only a part of one CPU here.
PATIENCE = 10.0

Send = Callable[[], object]


@pytest.fixture
def minidns(tmp_path: pathlib.Path, url: str, sqlite: Storage) -> Iterator[MiniDnsProcess]:
    running = MiniDnsProcess(tmp_path / 'minidns', url, [SERVER], 'eventlet').start()
    yield running
    running.stop()


@contextlib.contextmanager
def without_end(send: Send) -> Iterator[None]:
    """Have *send* called again and again, after it was called a few times."""
    over, begun = threading.Event(), threading.Event()

    def loop() -> None:
        while True:
            with contextlib.suppress(TimeoutError, ConnectionError):
                send()
            if over.is_set():
                return
            begun.set()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        assert begun.wait(20)
        yield
    finally:
        over.set()
        thread.join(20)


@pytest.fixture(params=['datagrams', 'noise', 'queries'])
def flood(request: pytest.FixtureRequest, minidns: MiniDnsProcess) -> Iterator[Send]:
    place = minidns.host, minidns.port
    query = dns.message.make_query('example.com', 'SOA').to_wire()
    with contextlib.ExitStack() as stack:
        kind = socket.SOCK_DGRAM if request.param == 'datagrams' else socket.SOCK_STREAM
        sock = stack.enter_context(socket.socket(socket.AF_INET, kind))
        sock.bind((STRANGER, 0))
        sock.settimeout(0.2)
        sock.connect(place)
        if request.param == 'datagrams':
            yield lambda: [sock.send(query) for _ in range(200)]
        elif request.param == 'noise':
            yield lambda: sock.send(bytes(1 << 16))  # messages of no octets at all
        else:
            reader = threading.Thread(target=read_all, args=(sock,))
            reader.start()
            stack.callback(reader.join, 20)
            stack.callback(sock.shutdown, socket.SHUT_RDWR)
            yield lambda: sock.send((len(query).to_bytes(2, 'big') + query) * 2000)


def read_all(sock: socket.socket) -> None:
    """Take what comes from *sock* until it is shut down.

    An answer that is under way then resets the connection, as Linux does for octets that nobody is to read.
    """
    while True:
        try:
            if not sock.recv(1 << 16):
                return
        except TimeoutError:
            continue
        except ConnectionResetError:
            return


def test_a_server_is_answered_beside_a_stranger_who_sends_without_end(minidns: MiniDnsProcess, flood: Send) -> None:
    with without_end(flood):
        for _ in range(3):
            answer = dns.query.tcp(dns.message.make_query('example.com', 'SOA'), minidns.host, PATIENCE, minidns.port)
            assert serial_of(answer) == 7
