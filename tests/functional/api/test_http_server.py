"""The HTTP server under both kinds of concurrency: no client's manners may stop the others."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import functools
import json
import pathlib
import re
import socket
import tempfile
import threading
import time

import pytest
import requests

from designate_pool.api.auth.token_file import digest, make_token, new_secret
from testing import warm
from testing.processes import wait_until
from tests.fixtures.observed_central import database_with_pool

ROOT = pathlib.Path(__file__).parents[3]
REQUEST = b'GET /v2/zones HTTP/1.1\r\nHost: x\r\n\r\n'
SOA = b'@ 60 SOA ns1.example.org. hostmaster.example.org. 1 60 60 60 60\n'
#: Is answered when somebody asks for /released.
HELD = f'/v2/zones/{"8" * 32}'


@contextlib.contextmanager
def served(concurrency, **options):
    """The port of the API as a program."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        options['database'] = database_with_pool(folder)
        process = warm.Program('tests.functional.api.serve', [concurrency, json.dumps(options)], folder / 'log',
                               concurrency, cwd=ROOT).start()
        try:
            yield int(wait_until(lambda: process.running() and re.search(r'^port (\d+)$', process.tail(), re.MULTILINE),
                                 'it serves')[1])
        finally:
            assert process.stop(seconds=15) == 0


@pytest.fixture(scope='module', params=['threading', 'eventlet'])
def port(request):
    # Long enough for a busy machine: while 32 MiB are written to a file, the server reads from nobody.
    with served(request.param, threads=4, connections=100, max_body=1 << 20, idle_timeout=4) as port:
        yield port


def url(port, path):
    return f'http://127.0.0.1:{port}{path}'


def connect(port, sent=b'', address='127.0.0.1'):
    client = socket.create_connection(('127.0.0.1', port), timeout=20, source_address=(address, 0))
    client.sendall(sent)
    return client


def get(path, token=None):
    secret = '' if token is None else f'X-Auth-Token: {token}\r\n'
    return f'GET {path} HTTP/1.1\r\nHost: localhost\r\n{secret}\r\n'.encode()


def closed_by_server(client):
    client.settimeout(0.05)
    try:
        return client.recv(1000) == b''
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def test_requests_are_answered_side_by_side_and_one_after_the_other(port):
    with requests.Session() as session:
        zone = session.post(url(port, '/v2/zones'), json={'name': 'example.com.', 'email': 'a@example.com'})
        assert zone.status_code == 202
        assert session.get(zone.headers['Location']).json() == zone.json()
        chunks = session.post(url(port, '/v2/zones/tasks/imports'), data=iter([b'$ORIGIN ', b'example.org.\n', SOA]),
                              headers={'Content-Type': 'text/dns'})
        assert chunks.json()['message'] == 'example.org. imported'
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda path: requests.get(url(port, path)).text, ['/pair'] * 4))
    assert answers == ['done'] * 4


def test_unfinished_requests_hold_nobody(port):
    clients = [connect(port, b'POST /v2/zones HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{') for _ in range(40)]
    for _ in range(5):
        assert requests.get(url(port, '/healthz'), timeout=2).status_code == 200
    for client in clients:
        wait_until(lambda: closed_by_server(client), 'an idle connection is closed', 30)
        client.close()


def test_readers_that_do_not_read_hold_nobody(port):
    # From an address each, since a slow machine is still carrying out the first request when the fourth comes.
    clients = [connect(port, b'GET /large HTTP/1.1\r\nHost: x\r\n\r\n', f'127.0.0.{number}') for number in range(2, 6)]
    for client in clients:
        assert client.recv(12) == b'HTTP/1.1 200'
    for _ in range(5):
        assert requests.get(url(port, '/healthz'), timeout=5).status_code == 200
    for client in clients:
        client.close()
    assert len(requests.get(url(port, '/large'), timeout=60).content) == 32 << 20


def test_more_clients_than_connections_wait_for_their_turn(port):
    idle = [connect(port) for _ in range(120)]
    assert requests.get(url(port, '/healthz'), timeout=10).status_code == 200
    for client in idle:
        client.close()


def test_a_body_at_the_limit_reaches_the_application(port):
    for size, code in ((1 << 20, 202), ((1 << 20) + 1, 413)):
        answer = requests.post(url(port, '/v2/zones/tasks/imports'), data=b'$ORIGIN example.net.\n'.ljust(size, b';'),
                               headers={'Content-Type': 'text/dns'})
        assert answer.status_code == code


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_a_request_in_flight_is_finished_before_the_end(concurrency):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with served(concurrency) as port:
            waiting = connect(port, REQUEST)
            assert waiting.recv(12) == b'HTTP/1.1 200'
            late = connect(port, b'GET /slow?0.5 HTTP/1.1\r\nHost: x\r\n\r\n' + REQUEST[:10])
            answer = pool.submit(late.recv, 1000)
            assert requests.get(url(port, '/healthz')).status_code == 200
        assert answer.result(5).startswith(b'HTTP/1.1 200')
        waiting.close()
        late.close()


class Flood:
    """Clients of one address that send a request after the other without a pause, until the ``with`` ends.

    :param connect: returns a socket, given what is sent first and the address of the client
    :ivar statuses: how often each was answered
    """

    def __init__(self, connect, request, clients, address='127.0.0.2'):
        self._connect, self._request, self._address = connect, request, address
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._send) for _ in range(clients)]
        self.statuses = collections.Counter()

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _send(self):
        while not self._over.is_set():
            with self._connect(address=self._address) as client, contextlib.suppress(OSError):
                while not self._over.is_set():
                    client.sendall(self._request)
                    if not (answer := client.recv(65536)):
                        break
                    if answer.startswith(b'HTTP/1.1 '):
                        self.statuses[int(answer.split()[1])] += 1


def seconds_to_answer(connect):
    """How long a client takes that connects for one request."""
    began = time.monotonic()
    with connect(get('/v2/zones')) as client:
        assert client.recv(12) == b'HTTP/1.1 200'
    return time.monotonic() - began


def seconds_of_processor():
    """How long this machine takes at the moment for what takes a quiet one about 0.1 s."""
    began = time.monotonic()
    sum(number * number for number in range(1_000_000))
    return time.monotonic() - began


@pytest.mark.parametrize('concurrency, path, clients', [
    ('threading', '/v2', 10), ('eventlet', '/v2', 10), ('threading', '/slow?1', 20)])
def test_a_good_client_is_served_beside_silent_connections_and_a_flood(concurrency, path, clients):
    with served(concurrency, threads=16) as port, contextlib.ExitStack() as silent:
        for number in range(90):
            silent.enter_context(connect(port, b'' if number % 2 else REQUEST[:-1], '127.0.0.3'))
        connect_here = functools.partial(connect, port)
        with Flood(connect_here, get(path), clients) as flood:
            wait_until(lambda: flood.statuses.total() > 10, 'the flood goes on')
            longest = max(seconds_to_answer(connect_here) for _ in range(5))
            assert longest < max(1.0, 10 * seconds_of_processor())


class Held:
    """Clients that each ask for something over a connection of its own, and are answered at the end.

    :param connect: as of :class:`Flood`
    """

    def __init__(self, connect):
        self._connect = connect
        self.sockets = []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for client in self.sockets:
            client.close()

    def ask(self, path, token=None, address='127.0.0.1', times=1):
        for _ in range(times):
            self.sockets.append(self._connect(get(path, token), address))

    def status(self, path, token=None, address='127.0.0.1'):
        with self._connect(get(path, token), address) as client:
            return int(client.recv(12).split()[1])

    def executed(self):
        """How many are being executed; asked from an address that nobody else has."""
        request = get('/held').replace(b'\r\n\r\n', b'\r\nConnection: close\r\n\r\n')
        with self._connect(request, '127.0.0.9') as client:
            return int(b''.join(iter(lambda: client.recv(4096), b'')).split()[-1])

    def answers(self):
        """How many were answered by which status, after all could be."""
        assert self.status('/released', address='127.0.0.9') == 200
        return collections.Counter(int(client.recv(12).split()[1]) for client in self.sockets)


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_an_address_whose_requests_take_long_leaves_threads_to_others(concurrency):
    with served(concurrency, threads=4) as port, Held(functools.partial(connect, port)) as clients:
        clients.ask(HELD, times=10)
        wait_until(lambda: clients.executed() == 3, 'three quarters of the threads are used')
        assert clients.status('/healthz', address='127.0.0.2') == 200
        assert clients.answers() == {404: 3, 429: 7}


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_a_project_whose_requests_take_long_leaves_threads_to_others(concurrency, tmp_path):
    tokens = {'blue': new_secret(), 'blue-too': new_secret(), 'red': new_secret()}
    file = tmp_path / 'tokens'
    file.write_text('\n'.join(make_token(name, name.partition('-')[0], ('member',), digest(secret)).line()
                              for name, secret in tokens.items()))
    with served(concurrency, threads=8, threads_per_client=3, tokens_file=str(file)) as port, \
            Held(functools.partial(connect, port)) as clients:
        clients.ask(HELD, tokens['blue'], times=2)
        clients.ask(HELD, tokens['blue-too'], '127.0.0.2')
        wait_until(lambda: clients.executed() == 3, 'the tokens of a project have as many requests as one')
        assert clients.status('/v2/zones', tokens['blue'], '127.0.0.3') == 429
        clients.ask(HELD, tokens['red'])
        assert clients.status('/v2/zones', tokens['red']) == 200
        assert clients.answers() == {404: 4}
        assert clients.status('/v2/zones', tokens['blue']) == 200
