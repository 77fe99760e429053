from __future__ import annotations

import re
import uuid

from designate_pool.errors import ServiceUnavailable
from tests.fixtures.observed_central import FIRST_SERIAL, POOL_ID


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


def test_an_exact_last_page_has_no_next(api, zone):
    assert 'next' not in api.simulate_get('/v2/zones?limit=1').json['links']


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
    central.fault = KeyError()
    assert api.simulate_get('/healthz').json['central'] == 'it failed (KeyError)'
    central.fault = None
    assert api.simulate_get('/healthz').json['status'] == 'ok'
