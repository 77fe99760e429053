"""The HTTP server under both kinds of concurrency: no client's manners may stop the others."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import pathlib
import socket
import subprocess
import sys

import pytest
import requests

from testing.processes import wait_until

ROOT = pathlib.Path(__file__).parents[3]
REQUEST = b'GET /v2/zones HTTP/1.1\r\nHost: x\r\n\r\n'


@contextlib.contextmanager
def served(concurrency, **options):
    process = subprocess.Popen([sys.executable, '-m', 'tests.functional.api.serve', concurrency, json.dumps(options)],
                               cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield int(process.stdout.readline()), process
    finally:
        process.stdin.close()
        try:
            assert process.wait(15) == 0
        finally:
            process.kill()
            process.stdout.close()


@pytest.fixture(scope='module', params=['threading', 'eventlet'])
def api(request):
    with served(request.param, threads=4, connections=100, body_limit=1 << 20, idle_timeout=1,
                request_timeout=2) as found:
        yield found


def url(port, path):
    return f'http://127.0.0.1:{port}{path}'


def connect(port, sent=b''):
    client = socket.create_connection(('127.0.0.1', port), timeout=20)
    client.sendall(sent)
    return client


def closed_by_server(client):
    client.settimeout(0.05)
    try:
        return client.recv(1000) == b''
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def test_requests_are_answered_side_by_side_and_one_after_the_other(api):
    port, _ = api
    with requests.Session() as session:
        zone = session.post(url(port, '/v2/zones'), json={'name': 'example.com.', 'email': 'a@example.com'})
        assert zone.status_code == 202
        assert session.get(zone.headers['Location']).json() == zone.json()
        chunks = session.post(url(port, '/v2/zones/tasks/imports'), data=iter([b'$ORIGIN ', b'example.org.\n']),
                              headers={'Content-Type': 'text/dns'})
        assert chunks.json()['message'] == 'example.org. imported'
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda path: requests.get(url(port, path)).text, ['/pair'] * 4))
    assert answers == ['done'] * 4


def test_unfinished_requests_hold_nobody(api):
    port, _ = api
    clients = [connect(port, b'POST /v2/zones HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{') for _ in range(40)]
    for _ in range(5):
        assert requests.get(url(port, '/healthz'), timeout=2).status_code == 200
    for client in clients:
        wait_until(lambda: closed_by_server(client), 'an idle connection is closed', 10)
        client.close()


def test_readers_that_do_not_read_hold_nobody(api):
    port, _ = api
    clients = [connect(port, b'GET /large HTTP/1.1\r\nHost: x\r\n\r\n') for _ in range(4)]
    for client in clients:
        assert client.recv(12) == b'HTTP/1.1 200'
    for _ in range(5):
        assert requests.get(url(port, '/healthz'), timeout=5).status_code == 200
    for client in clients:
        client.close()
    assert len(requests.get(url(port, '/large'), timeout=10).content) == 32 << 20


def test_a_request_that_drips_in_for_ever_is_cut_off(api):
    port, _ = api
    client = connect(port, b'GET /v2/zones HTTP/1.1\r\nHost: x\r\n')

    def drip():
        with contextlib.suppress(OSError):
            client.sendall(b'X: y\r\n')
        return closed_by_server(client)

    wait_until(drip, 'the connection is closed though bytes keep coming', 10)
    client.close()
    assert requests.get(url(port, '/healthz'), timeout=2).status_code == 200


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_whoever_holds_every_connection_keeps_nobody_out(concurrency):
    with served(concurrency, connections=100, idle_timeout=60, request_timeout=60) as (port, _):
        modest = socket.create_connection(('127.0.0.1', port), timeout=20, source_address=('127.0.0.2', 0))
        greedy = [connect(port, REQUEST[:-1]) for _ in range(120)]
        with socket.create_connection(('127.0.0.1', port), timeout=20, source_address=('127.0.0.3', 0)) as client:
            client.sendall(REQUEST)
            assert client.recv(12) == b'HTTP/1.1 200'
        wait_until(lambda: any(closed_by_server(each) for each in greedy), 'places are given up')
        modest.sendall(REQUEST)
        assert modest.recv(12) == b'HTTP/1.1 200'
        for each in (modest, *greedy):
            each.close()


def test_more_clients_than_connections_wait_for_their_turn(api):
    port, _ = api
    idle = [connect(port) for _ in range(120)]
    assert requests.get(url(port, '/healthz'), timeout=10).status_code == 200
    for client in idle:
        client.close()


@pytest.mark.parametrize('sent, code, told', [
    (b'nonsense\r\n\r\n', 400, 'bad_request'),
    (b'POST /v2/zones HTTP/1.1\r\nContent-Length: x\r\n\r\n', 400, 'bad_request'),
    (b'GET / HTTP/1.1\r\nA: ' + b'x' * (1 << 19) + b'\r\n\r\n', 431, 'request_header_fields_too_large'),
    (b'POST /v2/zones/tasks/imports HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n', 413, 'request_entity_too_large'),
], ids=['no HTTP', 'a length that is no number', 'a large header', 'a large body'])
def test_what_never_reaches_the_application_is_refused_in_the_same_form(api, sent, code, told):
    port, _ = api
    with connect(port) as client:
        client.sendall(sent)
        with client.makefile('rb') as answer:
            head, _, body = answer.read().partition(b'\r\n\r\n')
    assert head.startswith(f'HTTP/1.1 {code} '.encode()) or head.startswith(f'HTTP/1.0 {code} '.encode())
    fault = json.loads(body)
    assert (fault['code'], fault['type']) == (code, told)
    assert f'X-Openstack-Request-Id: {fault["request_id"]}'.lower() in head.decode().lower()


def test_a_client_that_sends_far_too_much_is_told_so_once_it_is_done(api):
    port, _ = api
    answer = requests.post(url(port, '/v2/zones/tasks/imports'), data=b';' * (20 << 20),
                           headers={'Content-Type': 'text/dns'})
    assert (answer.status_code, answer.json()['type']) == (413, 'request_entity_too_large')
    assert requests.get(url(port, '/healthz'), timeout=2).status_code == 200


def test_a_body_at_the_limit_reaches_the_application(api):
    port, _ = api
    for size, code in ((1 << 20, 202), ((1 << 20) + 1, 413)):
        answer = requests.post(url(port, '/v2/zones/tasks/imports'), data=b'$ORIGIN example.net.\n'.ljust(size, b';'),
                               headers={'Content-Type': 'text/dns'})
        assert answer.status_code == code


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_a_request_in_flight_is_finished_before_the_end(concurrency):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with served(concurrency) as (port, process):
            waiting = connect(port, REQUEST)
            assert waiting.recv(12) == b'HTTP/1.1 200'
            late = connect(port, b'GET /slow?0.5 HTTP/1.1\r\nHost: x\r\n\r\n' + REQUEST[:10])
            answer = pool.submit(late.recv, 1000)
            assert requests.get(url(port, '/healthz')).status_code == 200
        assert answer.result(5).startswith(b'HTTP/1.1 200')
        waiting.close()
        late.close()
