from __future__ import annotations

import re
import uuid

from designate_pool.errors import PoolError, ServiceUnavailable
from tests.fixtures.observed_central import FIRST_SERIAL, POOL_ID


class Failing(PoolError):
    """It failed."""


def test_a_zone_is_shown_as_designate_shows_it(api):
    answer = api.simulate_post('/v2/zones', json={
        'name': 'example.com.', 'email': 'hostmaster@example.com', 'ttl': 7200, 'description': 'An example',
        'type': 'PRIMARY'}, headers={'X-Project-Id': 'tenant-1', 'Host': 'dns.example.net:9001'})
    zone = answer.json
    assert answer.status_code == 202
    for name in ('created_at', 'updated_at', 'changed_at'):
        assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}', zone.pop(name))
    zone_id = zone.pop('id')
    assert str(uuid.UUID(zone_id)) == zone_id
    address = f'http://dns.example.net:9001/v2/zones/{zone_id}'
    assert answer.headers['Location'] == address
    assert zone == {
        'name': 'example.com.', 'email': 'hostmaster@example.com', 'ttl': 7200, 'description': 'An example',
        'serial': FIRST_SERIAL, 'status': 'PENDING', 'action': 'CREATE', 'type': 'PRIMARY',
        'pool_id': str(uuid.UUID(POOL_ID)), 'project_id': 'tenant-1', 'masters': [], 'attributes': {},
        'transferred_at': None, 'version': 1, 'converged_at': None, 'shared': False,
        'links': {'self': address},
    }


def test_a_zone_is_found_with_and_without_dashes_in_its_id(api, zone):
    for zone_id in (zone['id'], zone['id'].replace('-', ''), zone['id'].upper()):
        assert api.simulate_get(f'/v2/zones/{zone_id}').json['name'] == 'example.com.'


def test_delete_returns_the_zone_that_goes_and_404_when_it_is_gone(api, central, zone):
    answer = api.simulate_delete(f'/v2/zones/{zone["id"]}')
    assert (answer.status_code, answer.json['action'], answer.json['name']) == (202, 'DELETE', 'example.com.')
    central.settle(uuid.UUID(zone['id']).hex)
    for again in (api.simulate_get, api.simulate_delete):
        answer = again(f'/v2/zones/{zone["id"]}')
        assert (answer.status_code, answer.json['type']) == (404, 'zone_not_found')


def test_pages_lead_through_the_whole_list(api):
    names = [f'{number}.example.com.' for number in range(7)]
    for name in reversed(names):
        api.simulate_post('/v2/zones', json={'name': name, 'email': 'hostmaster@example.com'})
    api.simulate_post('/v2/zones', json={'name': 'example.org.', 'email': 'hostmaster@example.com'})
    address, seen, pages = '/v2/zones?name=*.example.com.&limit=3&sort_key=name&sort_dir=asc', [], 0
    while address:
        page = api.simulate_get(address).json
        seen += [zone['name'] for zone in page['zones']]
        pages += 1
        assert page['links']['self'].endswith(address)
        address = page['links'].get('next', '').replace('http://falconframework.org', '')
    assert (seen, pages) == (names, 3)


def test_an_exact_last_page_has_no_next(api, zone):
    assert 'next' not in api.simulate_get('/v2/zones?limit=1').json['links']


def test_filters(api, central, zone):
    assert api.simulate_get('/v2/zones?status=ACTIVE').json['zones'] == []
    central.settle(uuid.UUID(zone['id']).hex)
    assert [each['id'] for each in api.simulate_get('/v2/zones?status=ACTIVE').json['zones']] == [zone['id']]
    assert api.simulate_get('/v2/zones?email=other@example.com').json['zones'] == []


def test_a_request_has_an_id_that_central_gets_too(api, central, zone):
    answer = api.simulate_get(f'/v2/zones/{zone["id"]}', headers={'X-Auth-All-Projects': 'True'})
    request_id = answer.headers['X-Openstack-Request-Id']
    assert re.fullmatch('req-[0-9a-f-]{36}', request_id)
    assert central.contexts[-1].request_id == request_id
    assert central.contexts[-1].all_projects


def test_central_silent(api, central, zone):
    central.fault = ServiceUnavailable(service='central', why='no answer in 30 s')
    answer = api.simulate_get('/v2/zones')
    assert (answer.status_code, answer.json['type']) == (503, 'service_unavailable')
    assert answer.json['message'] == 'central does not answer: no answer in 30 s.'
    central.fault = None
    assert api.simulate_get('/v2/zones').status_code == 200


def test_a_failure_shows_nothing_of_the_inside(api, central, caplog):
    central.fault = KeyError('secret')
    answer = api.simulate_get('/v2/zones')
    assert answer.status_code == 500
    assert 'secret' not in answer.text
    assert answer.json['request_id'] == answer.headers['X-Openstack-Request-Id']
    assert 'secret' in caplog.text


def test_health_follows_central(api, central):
    assert api.simulate_get('/healthz').status_code == 200
    central.fault = ServiceUnavailable(service='central', why='no answer in 30 s')
    answer = api.simulate_get('/healthz')
    assert (answer.status_code, answer.json['status']) == (503, 'unavailable')
    assert 'no answer in 30 s' in answer.json['central']
    central.fault = Failing()
    assert api.simulate_get('/healthz').json['central'] == 'It failed.'
    central.fault = None
    assert api.simulate_get('/healthz').json['status'] == 'ok'
