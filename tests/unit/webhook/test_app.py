"""What the webhook asks of the pool's API, and how often."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import falcon.testing
import pytest

from designate_pool.planner.targets.pool import KeptZone, PoolProvider
from designate_pool.webhook.app import create_app
from tests.unit.webhook.test_endpoints import endpoint


class Api:
    """The pool's API in memory; *asked* counts what is asked of it, exports by the zone's name."""

    def __init__(self, *names: str) -> None:
        self.hosts = {name: {'www': '192.0.2.1'} for name in names}
        self.serials = dict.fromkeys(names, 1)
        self.asked: collections.Counter[str] = collections.Counter()

    def head(self, name: str) -> dict[str, Any]:
        return {'id': f'id of {name}', 'name': name, 'serial': self.serials[name], 'action': 'NONE'}

    def zones(self) -> list[dict[str, Any]]:
        self.asked['list'] += 1
        return [self.head(name) for name in self.hosts]

    def zone(self, name: str) -> dict[str, Any] | None:
        self.asked['one'] += 1
        return self.head(name) if name in self.hosts else None

    def contents(self, zone_id: str) -> str:
        name = zone_id.removeprefix('id of ')
        self.asked[name] += 1
        return f'@ 300 SOA ns1.example.net. hostmaster.{name} {self.serials[name]} 3600 600 86400 300\n' + ''.join(
            f'{host} 300 A {address}\n' for host, address in self.hosts[name].items())

    def change(self, zone_id: str, changes: Sequence[dict[str, Any]], serial: int | None = None) -> dict[str, Any]:
        name = zone_id.removeprefix('id of ')
        assert serial == self.serials[name]
        self.asked['change'] += 1
        self.serials[name] += 1
        for each in changes:
            host = each['name'].removesuffix(f'.{name}')
            self.hosts[name].pop(host, None)
            if each['records']:
                self.hosts[name][host] = each['records'][0]
        return {}

    def ping(self) -> None:
        self.asked['ping'] += 1

    def close(self) -> None:
        pass


@pytest.fixture
def api() -> Api:
    return Api('example.com.', 'example.org.', 'example.net.')


@pytest.fixture
def client(api: Api) -> falcon.testing.TestClient:
    kept: dict[str, KeptZone] = {}

    def new_pool() -> PoolProvider:
        pool = PoolProvider('webhook', kept=kept)
        vars(pool)['_api'] = api
        return pool

    return falcon.testing.TestClient(create_app(new_pool))


def records(client: falcon.testing.TestClient) -> dict[str, list[str]]:
    return {each['dnsName']: each['targets'] for each in client.simulate_get('/records').json}


def test_only_what_has_changed_is_read_again(api: Api, client: falcon.testing.TestClient) -> None:
    assert len(records(client)) == 3
    assert api.asked == {'list': 1, **dict.fromkeys(api.hosts, 1)}
    api.hosts['example.org.']['new'] = '192.0.2.7'
    api.serials['example.org.'] = 4294967295
    del api.hosts['example.net.']
    for _ in range(3):
        assert records(client) == {'www.example.com': ['192.0.2.1'], 'www.example.org': ['192.0.2.1'],
                                   'new.example.org': ['192.0.2.7']}
    assert api.asked == {'list': 4, 'example.com.': 1, 'example.org.': 2, 'example.net.': 1}


def test_one_that_cannot_be_keeps_neither_the_others_nor_what_is_there(
        api: Api, client: falcon.testing.TestClient, caplog: pytest.LogCaptureFixture) -> None:
    good = endpoint('new.example.com', 'A', '192.0.2.5')
    bad = [endpoint('www.example.com', 'A', 'nowhere'), endpoint('b.example.com', 'A', 'nowhere'),
           endpoint('www.example.edu', 'A', 'nowhere')]
    for _ in range(2):
        answer = client.simulate_post('/adjustendpoints', json=[*bad, good])
        assert answer.status_code == 200
        assert answer.json == [good, endpoint('www.example.com', 'A', '192.0.2.1', ttl=300)]
    told = [record.getMessage() for record in caplog.records if 'left out' in record.getMessage()]
    assert len(told) == 3, 'once each'
    assert 'www.example.com.: ' in ' '.join(told) and 'nowhere' in ' '.join(told)
    client.simulate_post('/adjustendpoints', json=[endpoint(f'b{number}.example.com', 'A', 'nowhere')
                                                   for number in range(30)])
    assert caplog.records[-1].getMessage() == 'and 10 more endpoints are left out'
    assert client.simulate_post('/adjustendpoints', json=[good]).json == [good]
