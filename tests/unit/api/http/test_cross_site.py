"""What a browser sends for a web page from elsewhere is refused where nobody is asked for a token."""

from __future__ import annotations

import socket

import falcon.testing
import pytest

from designate_pool.api.http.cross_site import CrossSiteGuard

HERE = '127.0.0.1:9001'
FOLLOWED = {'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document'}


class Client:
    """Sends requests through the guard.

    :ivar passed: how many the application got
    """

    def __init__(self) -> None:
        self.passed = 0
        self._client = falcon.testing.TestClient(CrossSiteGuard(self._app, ['dns.example.com']))

    def _app(self, environ, start_response):
        self.passed += 1
        start_response('204 No Content', [])
        return []

    def send(self, method: str, **headers: str) -> falcon.testing.Result:
        return self._client.simulate_request(method, '/v2/zones', headers={'Host': HERE, **headers})


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.mark.parametrize('headers, told', [
    ({'Host': 'rebound.example.net:9001'}, 'Host says rebound.example.net:9001'),
    *(({'Host': host}, 'Host says') for host in (
        '127.0.0.1.example.net', 'localhost.example.net:9001', 'notlocalhost:9001', 'rebound.example.net',
        'rebound.example.net.:9001', '[::1].example.net', '[::1]example.net:9001', '127.0.0.1:9001.example.net',
        '127.0.0.1.example.net.', 'localhost:x', 'localhost:9001:9001', '[::1', 'localhost@example.net',
        'example.net, localhost', '[2001:db8::1', ':9001')),
    ({'Host': 'rebound.example.net', 'Origin': 'http://rebound.example.net'}, 'Host says'),
    ({'Host': 'rebound.example.net:9001', 'Origin': 'http://rebound.example.net:9001', 'Sec-Fetch-Site': 'same-origin'},
     'Host says'),
    ({'Origin': 'https://example.net'}, 'Origin says https://example.net'),
    *(({'Origin': origin}, 'Origin says') for origin in (
        'http://127.0.0.1:8000', 'null', 'http://[', '', 'http://[::1]:9001', 'http://127.0.0.1.:9001',
        'http://127.0.0.1', f'http://{HERE} http://example.net')),
    *(({'Sec-Fetch-Site': site}, 'Sec-Fetch-Site says') for site in ('cross-site', 'same-site', 'Cross-Site', '')),
    ({**FOLLOWED, 'Sec-Fetch-Dest': 'iframe'}, 'Sec-Fetch-Site says'),
], ids=str)
def test_what_comes_from_elsewhere(client: Client, headers: dict, told: str) -> None:
    for method in ('GET', 'POST', 'DELETE'):
        answer = client.send(method, **headers)
        assert (answer.status_code, answer.json['type'], told in answer.json['message']) == (403, 'forbidden', True)
        assert answer.headers['X-Openstack-Request-Id'] == answer.json['request_id']
    assert client.passed == 0


@pytest.mark.parametrize('headers', [
    {}, {'Host': 'localhost:9001'}, {'Host': 'LOCALHOST.:9001'}, {'Host': 'pool.localhost'}, {'Host': '[::1]:9001'},
    {'Host': '192.0.2.1'}, {'Host': 'DNS.example.com:9001'}, {'Host': socket.gethostname()},
    {'Origin': f'http://{HERE}'}, {'Sec-Fetch-Site': 'same-origin'}, {'Host': '[2001:db8::1]'}, {'Host': '127.0.0.1.'},
    {'Content-Type': 'application/json'},
], ids=str)
def test_what_comes_from_here_or_from_no_page(client: Client, headers: dict) -> None:
    assert {client.send(method, **headers).status_code for method in ('GET', 'POST', 'DELETE')} == {204}


@pytest.mark.parametrize('headers', [FOLLOWED, {'Sec-Fetch-Site': 'none'}], ids=str)
def test_a_link_from_elsewhere_may_be_followed_and_nothing_sent_with_it(client: Client, headers: dict) -> None:
    assert client.send('GET', **headers).status_code == 204
    assert {client.send(method, **headers).status_code for method in ('POST', 'DELETE')} == {403}


@pytest.mark.parametrize('kind', ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'Text/Plain'])
def test_no_form_of_a_page_is_taken(client: Client, kind: str) -> None:
    for method in ('POST', 'DELETE'):
        answer = client.send(method, **{'Content-Type': kind})
        assert (answer.status_code, answer.json['type']) == (415, 'unsupported_content_type')
    assert client.passed == 0
