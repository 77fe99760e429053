"""What becomes of a request's body is decided when its headers are there; and who waits how long for a worker."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from designate_pool.api.auth.token_file import digest, make_token, new_secret
from designate_pool.api.http.admission import OnlyPosted
from designate_pool.api.http.cross_site import CrossSiteGuard
from designate_pool.api.http.server import ApiServer
from designate_pool.model import Endpoint
from testing.processes import wait_until
from tests.functional.api.test_http_server import served

MIB = 1 << 20
TOKEN = new_secret()
IMPORTS = '/v2/zones/tasks/imports'


OPTIONS = {'threads': 2, 'body_limit': 4 * MIB, 'bodies_limit': 5 * MIB}


@pytest.fixture(scope='module')
def tokens(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp('admission') / 'tokens'
    path.write_text(make_token('ada', 'blue', ('member',), digest(TOKEN)).line())
    return str(path)


@pytest.fixture(scope='module', params=['threading', 'eventlet'])
def port(request: pytest.FixtureRequest, tokens: str) -> Iterator[int]:
    with served(request.param, **OPTIONS, tokens=tokens) as (port, _):
        yield port


class Client:
    """Sends a request's headers, and its body by and by."""

    def __init__(self, port: int, path: str = IMPORTS, length: int | None = 2 * MIB, token: str | None = TOKEN,
                 more: str = '', method: str = 'POST') -> None:
        self.socket = socket.create_connection(('127.0.0.1', port), timeout=30)
        size = 'Transfer-Encoding: chunked' if length is None else f'Content-Length: {length}'
        secret = '' if token is None else f'X-Auth-Token: {token}\r\n'
        kind = 'text/dns' if path == IMPORTS else 'application/json'
        self.send(f'{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n'
                  f'{secret}{size}\r\n{more}\r\n')

    def send(self, content: str | bytes) -> None:
        self.socket.sendall(content.encode() if isinstance(content, str) else content)

    def send_what_is_taken(self, content: bytes) -> None:
        """As :meth:`send`, also where the server may stop reading before the end."""
        with contextlib.suppress(ConnectionError):
            self.send(content)

    def status(self) -> int:
        """Of the answer, once there is one."""
        return int(self.socket.recv(4096).split()[1])

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()


def zone_file(size: int) -> bytes:
    return b'$ORIGIN example.net.\n'.ljust(size, b';')


@pytest.mark.parametrize('wrong, status', [
    ({'token': None}, 401),
    ({'token': 'dpt_unknown'}, 401),
    ({'token': None, 'more': 'Expect: 100-continue\r\n'}, 401),
    ({'token': None, 'length': None}, 401),
    ({'path': '/v2/nowhere'}, 404),
    ({'path': '/v2/limits'}, 405),
    ({'path': '/v2/tsigkeys'}, 413),
    ({'length': 5 * MIB}, 413),
], ids=str)
def test_who_is_refused_by_the_headers_is_told_before_the_body(port: int, wrong: dict, status: int) -> None:
    with Client(port, **wrong) as client:
        assert client.status() == status


def test_a_body_is_taken_once_its_headers_were_found_good(port: int) -> None:
    with Client(port, more='Expect: 100-continue\r\n') as client:
        assert client.status() == 100
        client.send(zone_file(2 * MIB))
        assert client.status() == 202


def test_a_body_without_a_length_has_the_limit_of_its_operation(port: int) -> None:
    with Client(port, length=None) as client:
        client.send(b'%x\r\n%s\r\n0\r\n\r\n' % (2 * MIB, zone_file(2 * MIB)))
        assert client.status() == 202
    with Client(port, '/v2/tsigkeys', length=None) as client:
        client.send_what_is_taken(b'%x\r\n%s' % (2 * MIB, b' ' * (MIB + MIB // 2)))
        assert client.status() == 413


@pytest.mark.parametrize('before', [b'', b'0\r\n'], ids=['size', 'trailer'])
def test_what_stands_around_the_chunks_has_a_limit(port: int, before: bytes) -> None:
    with Client(port, length=None) as client:
        client.send_what_is_taken(before + b'f' * MIB)
        assert client.status() == 400


@pytest.mark.parametrize('line, header, why', [
    (IMPORTS, f'Content-Length: {"9" * 5000}', 'headers are invalid'),
    ('http://[', 'Content-Length: 5', 'headers are invalid'),
    (IMPORTS, 'Content-Length: 5\r\nTransfer-Encoding: chunked', 'exclude each other'),
], ids=['length', 'address', 'both'])
def test_headers_that_say_nothing_or_two_things_are_refused(port: int, line: str, header: str, why: str) -> None:
    with socket.create_connection(('127.0.0.1', port), timeout=30) as client:
        client.sendall(f'POST {line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/dns\r\nX-Auth-Token: {TOKEN}\r\n'
                       f'{header}\r\n\r\n0\r\n\r\n'.encode())
        client.shutdown(socket.SHUT_WR)
        answer = client.makefile().read()
    assert answer.startswith('HTTP/1.1 400 ') and answer.count('HTTP/1.1') == 1 and why in answer


def test_who_waits_to_be_told_is_told_once(webhook_port: int) -> None:
    for _ in range(1500):
        with Client(webhook_port, length=1 << 15, more='Expect: 100-continue\r\n') as client:
            assert client.status() == 100
            client.send(b'x' * (1 << 15))
            assert client.status() == 200


def test_all_bodies_together_have_a_limit(port: int) -> None:
    with Client(port, length=3 * MIB, more='Expect: 100-continue\r\n') as first:
        assert first.status() == 100
        first.send(b';' * MIB)
        with Client(port, length=3 * MIB) as second:
            assert second.status() == 503
        with Client(port, length=None) as second:
            second.send_what_is_taken(b'%x\r\n%s' % (4 * MIB, b';' * (3 * MIB)))
            assert second.status() == 503
        first.send(zone_file(2 * MIB))
        assert first.status() == 202


@pytest.fixture
def webhook_port() -> Iterator[int]:
    def app(environ: dict, start_response: Any) -> list[bytes]:
        body = str(len(environ['wsgi.input'].read())).encode()
        start_response('200 OK', [('Content-Length', str(len(body)))])
        return [body]

    server = ApiServer(CrossSiteGuard(OnlyPosted(app, 4 * MIB)), Endpoint('127.0.0.1', 0), body_limit=4 * MIB,
                       bodies_limit=5 * MIB, checks_headers=True)
    server.start()
    yield server.endpoint.port
    server.stop()


@pytest.mark.parametrize('wrong, status', [
    ({'method': 'PUT'}, 413), ({'more': 'Origin: https://example.net\r\n'}, 403), ({'length': 5 * MIB}, 413)], ids=str)
def test_where_nobody_is_asked_who_comes_the_size_decides(webhook_port: int, wrong: dict, status: int) -> None:
    with Client(webhook_port, **wrong) as client:
        assert client.status() == status
    with Client(webhook_port, length=3 * MIB, more='Expect: 100-continue\r\n') as first:
        assert first.status() == 100
        with Client(webhook_port, length=3 * MIB) as second:
            assert second.status() == 503
        first.send(b'x' * 3 * MIB)
        assert first.status() == 200


def test_a_request_counts_once_though_it_is_looked_at_twice(tokens: str) -> None:
    found = []
    with served('threading', **OPTIONS, tokens=tokens, rate=0.001) as (port, _):
        for _ in range(4):
            with Client(port, more='Expect: 100-continue\r\n') as client:
                found.append(client.status())
                if found[-1] == 100:
                    client.send(zone_file(2 * MIB))
                    assert client.status() == 202
    assert found == [100, 100, 100, 429]


@pytest.fixture(scope='module')
def of_three(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """A file of tokens, and these: two of one project, one of another."""
    tokens = {'blue': new_secret(), 'blue too': new_secret(), 'red': new_secret()}
    path = tmp_path_factory.mktemp('clients') / 'tokens'
    path.write_text(''.join(
        make_token(name.replace(' ', '-'), name.partition(' ')[0], ('member',), digest(secret)).line() + '\n'
        for name, secret in tokens.items()))
    return str(path), tokens


class Crowd:
    """Clients that each ask for something, each over a connection of its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.sockets: list[socket.socket] = []

    def ask(self, path: str, times: int = 1, token: str | None = None, address: str = '127.0.0.1') -> None:
        secret = '' if token is None else f'X-Auth-Token: {token}\r\n'
        for _ in range(times):
            self.sockets.append(socket.create_connection(('127.0.0.1', self._port), 10, source_address=(address, 0)))
            self.sockets[-1].sendall(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n{secret}\r\n'.encode())

    def status(self) -> int:
        """Of the last answer, when it is there within some seconds."""
        return int(self.sockets[-1].recv(12).split()[1])

    def held(self) -> int:
        """How many are being held; asked from an address that nobody else has."""
        with socket.create_connection(('127.0.0.1', self._port), 10, source_address=('127.0.0.9', 0)) as client:
            client.sendall(b'GET /held HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
            return int(b''.join(iter(lambda: client.recv(4096), b'')).split()[-1])


@contextlib.contextmanager
def crowd(port: int) -> Iterator[Crowd]:
    found = Crowd(port)
    try:
        yield found
        found.ask('/released', address='127.0.0.9')
        assert found.status() == 200
    finally:
        for each in found.sockets:
            each.close()


HELD = f'/v2/zones/{"8" * 32}'


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_an_address_whose_requests_take_long_leaves_workers_to_others(concurrency: str) -> None:
    with served(concurrency, threads=4) as (port, _), crowd(port) as clients:
        clients.ask(HELD, times=20)
        clients.ask('/healthz', address='127.0.0.2')
        assert clients.status() == 200
        wait_until(lambda: clients.held() == 2, 'half of the workers are held')


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_a_project_whose_requests_take_long_leaves_workers_to_others(
        concurrency: str, of_three: tuple[str, dict[str, str]]) -> None:
    path, tokens = of_three
    with served(concurrency, threads=8, threads_per_client=3, tokens=path) as (port, _), crowd(port) as clients:
        for each in ('blue', 'blue too'):
            clients.ask('/v2/limits', token=tokens[each])
            assert clients.status() == 200
        clients.ask(HELD, 10, tokens['blue'])
        clients.ask(HELD, 10, tokens['blue too'], '127.0.0.2')
        wait_until(lambda: clients.held() == 3, 'the tokens of a project hold as much as one')
        clients.ask('/v2/zones', token=tokens['red'])
        assert clients.status() == 200
        clients.ask(HELD, 10, tokens['red'])
        clients.ask('/v2/zones', token=tokens['blue'], address='127.0.0.3')
        wait_until(lambda: clients.held() == 6, 'and another project as much again')
        clients.ask('/healthz', address='127.0.0.4')
        assert clients.status() == 200


def test_what_waited_for_its_client_is_carried_out_once_there_is_room() -> None:
    with served('threading', threads=2) as (port, _), crowd(port) as clients:
        clients.ask(HELD, times=6)
        wait_until(lambda: clients.held() == 1, 'one is held, and the others wait')
        clients.ask('/released', address='127.0.0.9')
        assert [int(each.recv(12).split()[1]) for each in clients.sockets] == [404] * 6 + [200]
