"""What a browser sends for a web page from elsewhere is refused where nobody is asked for a token."""

from __future__ import annotations

import socket

import falcon.testing
import pytest

from designate_pool.api.app import create_app
from designate_pool.api.http.cross_site import CrossSiteGuard
from tests.fixtures.observed_central import POOL, ObservedCentral, PoolManager

HERE = '127.0.0.1:9001'
ZONE = {'name': 'example.com.', 'email': 'a@example.com'}


@pytest.fixture
def client(central: ObservedCentral) -> falcon.testing.TestClient:
    app = create_app(central, POOL, pool_managers=PoolManager(), storage=central.storage)
    return falcon.testing.TestClient(CrossSiteGuard(app, ['dns.example.com']))


@pytest.mark.parametrize('headers, told', [
    ({'Host': 'rebound.example.net:9001'}, 'Host says rebound.example.net:9001'),
    ({'Host': '127.0.0.1.example.net'}, 'Host says'),
    ({'Host': 'localhost.example.net:9001'}, 'Host says'),
    ({'Host': 'notlocalhost:9001'}, 'Host says'),
    ({'Origin': 'https://example.net'}, 'Origin says https://example.net'),
    ({'Origin': 'http://127.0.0.1:8000'}, 'Origin says'),
    ({'Origin': 'null'}, 'Origin says null'),
    ({'Origin': 'http://['}, 'Origin says'),
    ({'Sec-Fetch-Site': 'cross-site'}, 'Sec-Fetch-Site says cross-site'),
    ({'Sec-Fetch-Site': 'same-site'}, 'Sec-Fetch-Site says same-site'),
    ({'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'iframe'}, 'Sec-Fetch-Site says'),
])
@pytest.mark.parametrize('method', ['GET', 'POST'])
def test_what_comes_from_elsewhere(client: falcon.testing.TestClient, method: str, headers: dict, told: str) -> None:
    sent = {'Host': HERE, **headers}
    answer = client.simulate_request(method, '/v2/zones', headers=sent, json=ZONE if method == 'POST' else None)
    assert (answer.status_code, answer.json['type']) == (403, 'forbidden')
    assert told in answer.json['message']
    assert answer.headers['X-Openstack-Request-Id'] == answer.json['request_id']
    assert client.simulate_get('/v2/zones', headers={'Host': HERE}).json['zones'] == []


@pytest.mark.parametrize('headers', [
    {}, {'Host': 'localhost:9001'}, {'Host': 'LOCALHOST.:9001'}, {'Host': 'pool.localhost'}, {'Host': '[::1]:9001'},
    {'Host': '192.0.2.1'}, {'Host': 'DNS.example.com:9001'}, {'Host': socket.gethostname()},
    {'Origin': f'http://{HERE}'}, {'Sec-Fetch-Site': 'same-origin'}, {'Host': '[2001:db8::1]'}, {'Host': '127.0.0.1.'},
])
def test_what_comes_from_here_or_from_no_page(client: falcon.testing.TestClient, headers: dict) -> None:
    answer = client.simulate_post('/v2/zones', headers={'Host': HERE, **headers}, json=ZONE)
    assert answer.status_code == 202


def test_a_link_from_elsewhere_may_be_followed_and_nothing_sent_with_it(client: falcon.testing.TestClient) -> None:
    followed = {'Host': HERE, 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate',
                'Sec-Fetch-Dest': 'document'}
    assert client.simulate_get('/v2/zones', headers=followed).status_code == 200
    assert client.simulate_post('/v2/zones', headers=followed, json=ZONE).status_code == 403


@pytest.mark.parametrize('kind', [None, 'text/plain', 'application/x-www-form-urlencoded'])
def test_a_body_says_that_it_is_json(client: falcon.testing.TestClient, kind: str | None) -> None:
    body = '{"name": "example.com.", "email": "a@example.com"}'
    answer = client.simulate_post('/v2/zones', headers={'Host': HERE, **({'Content-Type': kind} if kind else {})},
                                  body=body)
    assert (answer.status_code, answer.json['type']) == (415, 'unsupported_content_type')


FORM = {'Content-Type': 'application/x-www-form-urlencoded'}


@pytest.mark.parametrize('headers', [
    FORM, {'Content-Type': 'multipart/form-data; boundary=x'}, {'Content-Type': 'Text/Plain'},
    {'Origin': 'null'}, {'Origin': 'https://example.net'}, {'Origin': ''}, {'Origin': 'http://[::1]:9001'},
    {'Origin': 'http://127.0.0.1.:9001'}, {'Origin': 'http://127.0.0.1'},
    {'Origin': f'http://{HERE} http://example.net'},
    {'Sec-Fetch-Site': 'cross-site'}, {'Sec-Fetch-Site': 'none'}, {'Sec-Fetch-Site': 'Cross-Site'},
    {'Sec-Fetch-Site': ''},
    {'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document'},
    {'Host': 'rebound.example.net'}, {'Host': 'rebound.example.net.:9001'}, {'Host': 'rebound.example.net:9001'},
    {'Host': '[::1].example.net'}, {'Host': '[::1]example.net:9001'}, {'Host': '127.0.0.1:9001.example.net'},
    {'Host': '127.0.0.1.example.net.'}, {'Host': 'localhost:x'}, {'Host': 'localhost:9001:9001'}, {'Host': '[::1'},
    {'Host': 'localhost@example.net'}, {'Host': 'example.net, localhost'}, {'Host': '[2001:db8::1'}, {'Host': ':9001'},
    {'Host': 'rebound.example.net', 'Origin': 'http://rebound.example.net'},
    {'Host': 'rebound.example.net:9001', 'Origin': 'http://rebound.example.net:9001', 'Sec-Fetch-Site': 'same-origin'},
], ids=str)
@pytest.mark.parametrize('method, path', [('POST', '/v2/zones/{}/tasks/export'), ('DELETE', '/v2/zones/{}')])
def test_a_page_from_elsewhere_sends_nothing_without_a_body_either(
        client: falcon.testing.TestClient, method: str, path: str, headers: dict) -> None:
    zone = client.simulate_post('/v2/zones', headers={'Host': HERE}, json=ZONE).json
    answer = client.simulate_request(method, path.format(zone['id']), headers={'Host': HERE, **headers})
    assert answer.status_code in (403, 415), answer.text
    zones = client.simulate_get('/v2/zones', headers={'Host': HERE}).json['zones']
    assert [each['action'] for each in zones] == [zone['action']]
    assert client.simulate_get('/v2/zones/tasks/exports', headers={'Host': HERE}).json['exports'] == []


@pytest.mark.parametrize('headers', [{}, {'Host': '[::1]:9001'}, {'Host': 'localhost.:9001'}], ids=str)
def test_what_is_no_page_needs_no_type_without_a_body(client: falcon.testing.TestClient, headers: dict) -> None:
    zone = client.simulate_post('/v2/zones', headers={'Host': HERE}, json=ZONE).json
    sent = {'Host': HERE, **headers}
    assert client.simulate_post(f'/v2/zones/{zone["id"]}/tasks/export', headers=sent).status_code == 202
    assert client.simulate_delete(f'/v2/zones/{zone["id"]}', headers=sent).status_code == 202
