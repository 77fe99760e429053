"""What the webhook asks of the pool's API, and how often."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import falcon.testing
import pytest

from designate_pool.errors import ApiRefused
from designate_pool.planner.targets.pool import KeptZone, PoolProvider
from designate_pool.webhook.app import MEDIA_TYPE, MOST_REQUESTS, create_app
from tests.unit.webhook.test_endpoints import endpoint


class Api:
    """The pool's API in memory; *asked* counts what is asked of it, exports by the zone's name."""

    def __init__(self, *names: str) -> None:
        self.hosts = {name: {'www': '192.0.2.1'} for name in names}
        self.serials = dict.fromkeys(names, 1)
        self.asked: collections.Counter[str] = collections.Counter()
        self.refused: set[str] = set()
        self.without_contents: set[str] = set()
        self.why_none = 'no_contents', 'There is no content now: its masters were not reached.', 404
        self.code = 400

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
        if name in self.without_contents:
            raise ApiRefused(*self.why_none)
        return f'@ 300 SOA ns1.example.net. hostmaster.{name} {self.serials[name]} 3600 600 86400 300\n' + ''.join(
            f'{host} 300 A {address}\n' for host, address in self.hosts[name].items())

    def change(self, zone_id: str, changes: Sequence[dict[str, Any]], serial: int | None = None) -> dict[str, Any]:
        name = zone_id.removeprefix('id of ')
        assert serial == self.serials[name]
        self.asked['change'] += 1
        for each in changes:
            if each['name'] in self.refused:
                raise ApiRefused('invalid_object', f'{each["name"]} is refused', self.code)
        self.serials[name] += 1
        for each in changes:
            host = each['name'].removesuffix(f'.{name}')
            self.hosts[name].pop(host, None)
            if each['records']:
                self.hosts[name][host] = each['records'][0]
        return self.head(name)

    def ping(self) -> None:
        self.asked['ping'] += 1

    def close(self) -> None:
        pass


@pytest.fixture
def api() -> Api:
    return Api('example.com.', 'example.org.', 'example.net.')


@pytest.fixture
def client(api: Api) -> falcon.testing.TestClient:
    return client_of(api)


def client_of(api: Api, *names: str) -> falcon.testing.TestClient:
    kept: dict[str, KeptZone] = {}

    def new_pool() -> PoolProvider:
        pool = PoolProvider('webhook', kept=kept)
        vars(pool)['_api'] = api
        return pool

    return falcon.testing.TestClient(create_app(new_pool, names))


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


@pytest.mark.parametrize('why', [('no_contents', 'There is no content now: its masters were not reached.', 404),
                                 ('over_quota', 'The quota api_export_size allows 1; this would make it 2.', 413)])
def test_a_zone_that_cannot_be_exported_keeps_no_other_from_being_read_and_changed(
        api: Api, client: falcon.testing.TestClient, why: tuple[str, str, int]) -> None:
    api.without_contents, api.why_none = {'example.net.'}, why
    assert sorted(records(client)) == ['www.example.com', 'www.example.org']
    for host in ('new.example.net', 'new.example.com'):
        answer = client.simulate_post('/records', json={'create': [endpoint(host, 'A', '192.0.2.5')]})
        assert answer.status_code == 204
    assert api.hosts['example.com.']['new'] == '192.0.2.5' and 'new' not in api.hosts['example.net.']


def test_records_of_a_zone_that_cannot_be_exported_are_refused_at_once_and_not_put_into_the_one_above_it(
        caplog: pytest.LogCaptureFixture) -> None:
    api = Api('example.com.', 'sub.example.com.')
    client, api.without_contents = client_of(api), {'sub.example.com.'}
    created = [endpoint(f'h{number}.sub.example.com', 'A', '192.0.2.5') for number in range(9)]
    answer = client.simulate_post('/records', json={'create': created})
    assert answer.status_code == 204
    assert api.asked == {'list': 1, 'sub.example.com.': 1} and 'h8.sub.example.com.: ' in caplog.text


@pytest.mark.parametrize('refusal', ['too_many_waiting_changes', 'signing_held', 'pool_frozen'])
def test_a_zone_that_is_not_changed_at_present_keeps_no_other_from_it(
        api: Api, client: falcon.testing.TestClient, monkeypatch: pytest.MonkeyPatch, refusal: str) -> None:
    change = api.change

    def refuse(zone_id: str, *rest: Any) -> dict[str, Any]:
        if zone_id == 'id of example.com.':
            raise ApiRefused(refusal, 'example.com. is not changed now', 409)
        return change(zone_id, *rest)

    monkeypatch.setattr(api, 'change', refuse)
    for _ in range(2):
        assert client.simulate_post('/records', json={'create': [
            endpoint(f'new.{zone}', 'A', '192.0.2.5') for zone in ('example.com', 'example.org')]}).status_code == 204
    assert 'new' not in api.hosts['example.com.'] and api.hosts['example.org.']['new'] == '192.0.2.5'


def test_a_zone_that_others_change_meanwhile_keeps_no_other_from_it(
        api: Api, client: falcon.testing.TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    change = api.change

    def refuse(zone_id: str, *rest: Any) -> dict[str, Any]:
        if zone_id == 'id of example.com.':
            raise ApiRefused('serial_moved', 'example.com. was changed meanwhile', 409)
        return change(zone_id, *rest)

    monkeypatch.setattr(api, 'change', refuse)
    assert client.simulate_post('/records', json={'create': [
        endpoint(f'new.{zone}', 'A', '192.0.2.5') for zone in ('example.com', 'example.org')]}).status_code == 503
    assert 'new' not in api.hosts['example.com.'] and api.hosts['example.org.']['new'] == '192.0.2.5'


def test_what_waits_for_approval_is_answered_as_done_and_logged(
        api: Api, client: falcon.testing.TestClient, caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, 'change', lambda zone_id, changes, serial: {
        **api.head(zone_id.removeprefix('id of ')), 'links': {'change': 'http://192.0.2.1/v2/changes/7f3a'}})
    for _ in range(2):  # external-dns asks again until it is made
        assert client.simulate_post('/records', json={
            'create': [endpoint('new.example.com', 'A', '192.0.2.5')]}).status_code == 204
    assert 'new.example.com' not in records(client)
    assert 'the changes of example.com. wait for approval: http://192.0.2.1/v2/changes/7f3a' in caplog.text


def test_what_the_pool_refuses_is_left_out_and_the_others_are_made(
        api: Api, client: falcon.testing.TestClient, caplog: pytest.LogCaptureFixture) -> None:
    hosts = [f'h{number:02}' for number in range(50)]
    api.refused = {'h07.example.com.', 'h31.example.com.'}
    changes = {'create': [endpoint(f'{host}.example.com', 'A', '192.0.2.5') for host in hosts]}
    for _ in range(2):
        assert client.simulate_post('/records', json=changes).status_code == 204
        assert sorted(api.hosts['example.com.']) == [host for host in hosts if host not in ('h07', 'h31')] + ['www']
    assert [record.getMessage() for record in caplog.records if 'left out' in record.getMessage()] == [
        f'an endpoint is left out: {name}: {name} is refused' for name in sorted(api.refused)], 'once each'


def test_many_refusals_keep_external_dns_waiting_for_a_bounded_time_and_no_other_change_for_ever(
        api: Api, client: falcon.testing.TestClient) -> None:
    hosts = [f'h{number:03}' for number in range(200)]
    api.refused = {f'{host}.example.com.' for host in hosts if host != 'h199'}
    changes = {'create': [endpoint(f'{host}.example.com', 'A', '192.0.2.5') for host in hosts]}
    changes['create'].append(endpoint('new.example.org', 'A', '192.0.2.5'))  # of another zone
    rounds = 0
    while 'h199' not in api.hosts['example.com.']:
        before, rounds = api.asked['change'], rounds + 1
        assert client.simulate_post('/records', json=changes).status_code == 204
        assert api.asked['change'] - before <= MOST_REQUESTS
        assert 'new' in api.hosts['example.org.']
        assert rounds < 10
    api.refused = set()
    assert client.simulate_post('/records', json=changes).status_code == 204
    assert len(api.hosts['example.com.']) == 201


@pytest.mark.parametrize(('code', 'answered'), [(401, 401), (429, 503), (500, 503), (503, 503)])
def test_a_refusal_that_is_of_no_change_is_told(api: Api, client: falcon.testing.TestClient, code: int,
                                                answered: int) -> None:
    api.refused, api.code = {'a.example.com.'}, code
    changes = {'create': [endpoint(f'{host}.example.com', 'A', '192.0.2.5') for host in 'ab']}
    told = client.simulate_post('/records', json=changes)
    assert told.status_code == answered == told.json['code'] and told.json['type'] and told.json['message']
    assert api.asked['change'] == 1


@pytest.mark.parametrize(('path', 'kind'), [('/nothing', 'not_found'), ('/', 'not_acceptable')])
def test_an_error_is_json(client: falcon.testing.TestClient, path: str, kind: str) -> None:
    told = client.simulate_get(path, headers={'Accept': 'text/html'})
    assert told.headers['Content-Type'] == 'application/json'
    assert (told.json['code'], told.json['type']) == (told.status_code, kind)


@pytest.mark.parametrize('path', ['/records', '/adjustendpoints'])
def test_half_of_a_surrogate_pair_is_no_text(client: falcon.testing.TestClient, path: str) -> None:
    for escaped in (r'\ud800', r'\uDC00'):
        body = '{"create": [{"dnsName": "%s.example.com", "recordType": "A", "targets": ["192.0.2.1"]}]}' % escaped
        assert client.simulate_post(path, body=body, headers={'Content-Type': 'application/json'}).status_code == 400


@pytest.mark.parametrize(('names', 'shown'), [
    (['example.com.'], {'www.example.com', 'www.sub.example.com'}),
    (['sub.example.com.'], {'www.sub.example.com'}),
    (['www.example.com.', 'example.edu.'], {'www.example.com'}),
], ids=['a zone above', 'a zone', 'names in and outside of zones'])
def test_names_are_shown_at_and_below_those_that_are_given(names: list[str], shown: set[str]) -> None:
    api = Api('example.com.', 'sub.example.com.', 'example.org.')
    client = client_of(api, *names)
    assert set(records(client)) == shown
    assert client.simulate_get('/', headers={'Accept': MEDIA_TYPE}).json == {'include': [name[:-1] for name in names]}
    wanted = [endpoint('a.www.example.com', 'A', '192.0.2.1')]
    assert client.simulate_post('/adjustendpoints', json=wanted).json == wanted * ('www.example.com' in shown)
