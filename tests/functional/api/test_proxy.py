"""The API behind nginx with the configuration of the documentation: what a proxy holds off does not reach the API."""

from __future__ import annotations

import contextlib
import json
import re
import ssl
import subprocess
import textwrap

import pytest
import requests

from testing.processes import free_port, wait_until
from tests.functional.api.test_http_server import (HELD, ROOT, Flood, Held, closed_by_server, connect, get,
                                                   seconds_of_processor, seconds_to_answer, served)

pytestmark = pytest.mark.slow

PAGE = ROOT / 'doc/source/guide/proxy.rst'
#: Around the configuration of the page; nothing of it lies outside of the folder of the test.
AROUND = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {configuration}
}}
"""
#: Fewer than the silent connections that are made to the proxy.
CONNECTIONS = 60
GOOD = '127.0.0.1'


class Proxy:
    """nginx, which speaks TLS."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._context = ssl.create_default_context()
        self._context.check_hostname, self._context.verify_mode = False, ssl.CERT_NONE

    def encrypted(self, sent: bytes = b'', address: str = GOOD) -> ssl.SSLSocket:
        client = self._context.wrap_socket(connect(self.port, address=address))
        client.sendall(sent)
        return client


@pytest.fixture(scope='module')
def proxy(tmp_path_factory):
    folder = tmp_path_factory.mktemp('nginx')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                    '-subj', '/CN=dns.example.com', '-keyout', folder / 'key.pem', '-out', folder / 'certificate.pem'],
                   check=True, capture_output=True)
    [block] = re.findall(r'code-block:: nginx\n\n((?: {3}.*\n|\n)+)', PAGE.read_text())
    port = free_port()
    with served('threading', threads=8, connections=CONNECTIONS, trusted_proxy='127.0.0.1') as api:
        configuration = textwrap.dedent(block)
        for old, new in (('127.0.0.1:9001', f'127.0.0.1:{api}'), ('listen 443', f'listen 127.0.0.1:{port}'),
                         ('/etc/ssl/certs/dns.example.com.pem', f'{folder}/certificate.pem'),
                         ('/etc/ssl/private/dns.example.com.key', f'{folder}/key.pem')):
            assert configuration.count(old) == 1
            configuration = configuration.replace(old, new)
        (folder / 'nginx.conf').write_text(AROUND.format(folder=folder, configuration=configuration))
        nginx = subprocess.Popen(['/usr/sbin/nginx', '-p', folder, '-c', folder / 'nginx.conf', '-e', 'stderr'])
        try:
            wait_until(lambda: connect(port).close() or True, 'nginx listens')
            yield Proxy(port)
        finally:
            nginx.terminate()
            nginx.wait(20)


@contextlib.contextmanager
def many(clients):
    clients = list(clients)
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


def assert_served(proxy: Proxy) -> None:
    """A good client is answered as quickly as ever."""
    longest = max(seconds_to_answer(proxy.encrypted) for _ in range(5))
    assert longest < max(1.0, 10 * seconds_of_processor())


def test_answers_are_those_of_the_api_with_the_urls_of_the_proxy(proxy: Proxy) -> None:
    url = f'https://127.0.0.1:{proxy.port}'
    with requests.Session() as session:
        session.trust_env = session.verify = False
        zone = session.post(f'{url}/v2/zones', json={'name': 'example.com.', 'email': 'a@example.com'})
        assert zone.status_code == 202
        assert zone.json()['links']['self'].startswith(f'{url}/v2/zones/')
        assert session.post(f'{url}/v2/zones/tasks/imports', data=b';' * (33 << 20),
                            headers={'Content-Type': 'text/dns'}).status_code == 413


def test_history_has_the_address_of_the_client_of_the_proxy(proxy: Proxy) -> None:
    body = b'{"name": "example.net.", "email": "a@example.com"}'
    head = (b'POST /v2/zones HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n'
            b'X-Forwarded-For: 192.0.2.1\r\nContent-Length: %d\r\n\r\n' % len(body))
    with proxy.encrypted(head + body, '127.0.0.9') as client, client.makefile('rb') as answer:
        zone = json.loads(answer.read().rpartition(b'\r\n\r\n')[2])
    with requests.Session() as session:
        session.trust_env = session.verify = False
        version, = session.get(f'https://127.0.0.1:{proxy.port}/v2/zones/{zone["id"]}/versions').json()['versions']
    assert version['address'] == '127.0.0.9'


def test_silent_and_slow_clients_end_at_the_proxy(proxy: Proxy) -> None:
    unfinished = b'POST /v2/zones HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{'
    with many(connect(proxy.port, address='127.0.0.3') for _ in range(2 * CONNECTIONS)) as silent, \
            many(proxy.encrypted(get('/v2/zones')[:-1], '127.0.0.4') for _ in range(CONNECTIONS)) as headers, \
            many(proxy.encrypted(unfinished, f'127.0.0.{number % 2 + 5}') for number in range(CONNECTIONS)) as bodies:
        assert_served(proxy)
        for client in (*silent, *headers, *bodies):
            wait_until(lambda client=client: closed_by_server(client), 'the proxy closes it', 30)
        assert_served(proxy)


def test_a_flood_of_an_address_ends_at_the_proxy(proxy: Proxy) -> None:
    with Flood(proxy.encrypted, get('/v2/zones'), clients=10) as flood:
        wait_until(lambda: flood.statuses[429] > 100, 'the flood is refused')
        assert_served(proxy)


def test_the_api_knows_addresses_behind_the_proxy(proxy: Proxy) -> None:
    with Held(proxy.encrypted) as clients:
        clients.ask(HELD, address='127.0.0.7', times=8)
        wait_until(lambda: clients.executed() == 6, 'three quarters of the threads are used')
        assert_served(proxy)
        assert clients.answers() == {404: 6, 429: 2}
