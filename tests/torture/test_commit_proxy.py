"""The proxy that ends connections to the database in the middle of a COMMIT."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from designate_pool.model import Endpoint
from testing.processes import wait_until
from tests.torture.commit_proxy import AFTER, BEFORE, CUT, CommitProxy
from tests.torture.network import Host


class Database:
    """Answers each message with ``done``.

    :ivar got: what came, of all connections
    """

    def __init__(self) -> None:
        self.got = b''
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.endpoint = Endpoint(*self._listener.getsockname())
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(1000):
                self.got += data
                connection.sendall(b'done')


@pytest.fixture
def database() -> Iterator[Database]:
    database = Database()
    yield database
    database.close()


@pytest.fixture
def proxy(database: Database) -> Iterator[CommitProxy]:
    here = Host('here', '127.0.0.1', '', '', '', '', ())
    with CommitProxy(here, database.endpoint) as proxy:
        yield proxy


def ask(proxy: CommitProxy, *messages: bytes) -> list[bytes]:
    """The answers on one connection; an empty one, or none, when it has ended."""
    with socket.create_connection((proxy.endpoint.host, proxy.endpoint.port), 10) as connection:
        answers = []
        for message in messages:
            try:
                connection.sendall(message)
                answers.append(connection.recv(1000))
            except ConnectionError:
                answers.append(b'')
        return answers


def test_without_orders_everything_passes(proxy: CommitProxy, database: Database) -> None:
    assert ask(proxy, b'BEGIN', b'COMMIT') == [b'done', b'done']
    assert database.got == b'BEGINCOMMIT'


def order(proxy: CommitProxy, verb: str, number: int) -> None:
    """Tell the proxy, and wait until one connection has met it."""
    proxy.order(verb, number + 1)
    wait_until(lambda: ask(proxy, b'COMMIT') == [b''], 'the proxy has its orders')


def test_a_connection_ends_before_the_database_gets_its_commit(proxy: CommitProxy, database: Database) -> None:
    order(proxy, BEFORE, 1)
    database.got = b''
    assert ask(proxy, b'INSERT', b'COMMIT') == [b'done', b'']
    assert ask(proxy, b'COMMIT') == [b'done']
    assert database.got == b'INSERTCOMMIT'
    wait_until(lambda: proxy.count(BEFORE) == 2, 'the proxy has counted')


def test_a_connection_ends_after_the_database_has_got_its_commit(proxy: CommitProxy, database: Database) -> None:
    order(proxy, AFTER, 1)
    database.got = b''
    assert ask(proxy, b'INSERT', b'COMMIT') == [b'done', b'']
    assert database.got == b'INSERTCOMMIT'
    wait_until(lambda: proxy.count(AFTER) == 2, 'the proxy has counted')


def test_all_connections_end(proxy: CommitProxy) -> None:
    with socket.create_connection((proxy.endpoint.host, proxy.endpoint.port), 10) as connection:
        connection.sendall(b'BEGIN')
        assert connection.recv(1000) == b'done'
        proxy.order(CUT)
        assert connection.recv(1000) == b''
    wait_until(lambda: proxy.count(CUT), 'the proxy has counted')


def test_connections_end_when_new_ones_lead_elsewhere(proxy: CommitProxy, database: Database) -> None:
    other = Database()
    try:
        with socket.create_connection((proxy.endpoint.host, proxy.endpoint.port), 10) as connection:
            connection.sendall(b'BEGIN')
            assert connection.recv(1000) == b'done'
            proxy.lead(other.endpoint)
            assert connection.recv(1000) == b''
        assert ask(proxy, b'SELECT') == [b'done']
        assert (database.got, other.got) == (b'BEGIN', b'SELECT')
    finally:
        other.close()
