from __future__ import annotations

import json
import re
import uuid

import falcon.testing
import pytest

from designate_pool.api.app import create_app
from designate_pool.errors import BadInput, ServiceUnavailable
from designate_pool.protocol.zonefile import validated
from tests.fixtures.observed_central import FIRST_SERIAL, POOL, POOL_ID, PoolManager


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
        'lock_reason': None, 'locked_by_admin': False, 'locked_recordsets': 0, 'freeze': None,
        'release': None, 'requires_approval': False,
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
    assert 'secret' not in answer.text and answer.json['message'] == 'Something went wrong in the pool.'
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


def test_health_follows_the_broker(central):
    def fail():
        raise ServiceUnavailable(service='the broker', why='no answer in 3 s')

    app = create_app(central, POOL, pool_managers=PoolManager(), storage=central.storage, check_broker=fail)
    answer = falcon.testing.TestClient(app).simulate_get('/healthz')
    assert (answer.status_code, answer.json['status'], answer.json['central']) == (503, 'unavailable', 'ok')
    assert answer.json['broker'] == 'the broker does not answer: no answer in 3 s.'


IMPORTS, EXPORTS = '/v2/zones/tasks/imports', '/v2/zones/tasks/exports'
ZONE_FILE = '$ORIGIN example.net.\n@ 60 SOA ns1.example.net. hostmaster.example.net. 1 60 60 60 60\n'
BATCHES = '/v2/zones/tasks/import_batches'
DNS = {'Content-Type': 'text/dns'}


def test_several_zone_files_each_have_an_import(api):
    answer = api.simulate_post(BATCHES, json={'zonefiles': [ZONE_FILE, 'nonsense', ZONE_FILE.replace('net', 'org')]})
    tasks = answer.json['imports']
    assert (answer.status_code, [each['message'] for each in tasks]) == (202, [
        'example.net. imported', "line 1: Text input is malformed: 'nonsense'.", 'example.org. imported'])
    for each in tasks:
        assert api.simulate_get(f'{IMPORTS}/{each["id"]}').json == each


@pytest.mark.parametrize('zone_files, field', [
    ([], 'zonefiles'), ([ZONE_FILE] * 201, 'zonefiles'), ([ZONE_FILE, 5], 'zonefiles.1'),
    ([ZONE_FILE, ';' * 40000], 'zonefiles.1'), ([ZONE_FILE, '\u00e9' * 20000], 'zonefiles.1'),
    ([ZONE_FILE, ' \n'], 'zonefiles.1'), ([ZONE_FILE, f'{ZONE_FILE}\0'], 'zonefiles.1'),
    ([ZONE_FILE, '\ud800'], 'zonefiles.1')])
def test_of_several_zone_files_one_that_cannot_be_taken_is_named(api, zone_files, field):
    answer = api.simulate_post(BATCHES, body=json.dumps({'zonefiles': zone_files}),
                               headers={'Content-Type': 'application/json'})
    assert (answer.status_code, answer.json['type']) == (400, 'invalid_object')
    assert field in answer.json['message'], answer.json
    assert api.simulate_get(IMPORTS).json['imports'] == []


def test_a_zone_file_that_is_too_long(api):
    answer = api.simulate_post(IMPORTS, body=ZONE_FILE + ';' * 1000, headers=DNS)
    assert (answer.status_code, answer.json['type']) == (413, 'body_too_large')


def test_an_export_gives_the_zone_file(api, zone):
    answer = api.simulate_post(f'/v2/zones/{zone["id"]}/tasks/export')
    assert (answer.status_code, answer.json['status'], answer.json['zone_id']) == (202, 'PENDING', zone['id'])
    assert answer.json['location'] is None and set(answer.json['links']) == {'self'}
    shown = api.simulate_get(f'/v2/zones/tasks/exports/{answer.json["id"]}').json
    assert shown['status'] == 'COMPLETE' and shown['location'] == shown['links']['export']
    exported = api.simulate_get(f'/v2/zones/tasks/exports/{answer.json["id"]}/export')
    assert exported.text.startswith('$ORIGIN example.com.\n') and ' IN SOA ns1.example.org. ' in exported.text
    assert exported.headers['Content-Type'].startswith('text/dns')


def test_a_zone_is_read_without_a_task(api, zone):
    assert api.simulate_get(f'{EXPORTS}/{zone["id"]}/export').text.startswith('$ORIGIN example.com.\n')
    assert api.simulate_get(EXPORTS).json['exports'] == []


def test_no_export_of_what_is_not_there(api):
    assert api.simulate_post(f'/v2/zones/{uuid.uuid4()}/tasks/export').json['type'] == 'zone_not_found'
    assert api.simulate_get(f'{EXPORTS}/{uuid.uuid4()}/export').json['type'] == 'zone_export_not_found'


@pytest.mark.parametrize('pieces', [(b'',), (b' \n', b'\t'), (b'\xc3', b'('), (b'a\xe2\x82',), (b'a', b'\0')])
def test_what_is_no_zone_file_is_refused_wherever_it_is_cut(pieces):
    with pytest.raises(BadInput, match='zone file'):
        list(validated(pieces))


def test_a_character_may_be_cut_in_two():
    assert list(validated([b'a\xe2', b'\x82', b'\xac'])) == [b'a\xe2', b'\x82', b'\xac']
    with pytest.raises(BadInput, match='byte 3'):
        list(validated([b'ab\xe2'[:2], b'c\xff']))
