"""Whatever a client sends, it is told what is wrong, and the API goes on."""

from __future__ import annotations

import json
import string
import uuid

import falcon.testing
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from designate_pool.api.app import create_app
from designate_pool.errors import ServiceUnavailable
from designate_pool.settings import ApiSettings
from tests.fixtures.observed_central import POOL, SERVER_IDS, PoolManager, observed_central

NIL = str(uuid.UUID(int=0))
GOOD_ZONE = {'name': 'example.com.', 'email': 'hostmaster@example.com'}
GOOD_RECORDSET = {'name': 'www.example.com.', 'type': 'A', 'records': ['192.0.2.1']}


@pytest.mark.parametrize('field, body', [
    ('name', {'email': 'a@example.com'}),
    ('name', {**GOOD_ZONE, 'name': 7}),
    ('name', {**GOOD_ZONE, 'name': ' '}),
    ('name', {**GOOD_ZONE, 'name': 'example\x00.com.'}),
    ('ttl', {**GOOD_ZONE, 'ttl': True}),
    ('ttl', {**GOOD_ZONE, 'ttl': 1.5}),
    ('ttl', {**GOOD_ZONE, 'ttl': 2**31}),
    ('description', {**GOOD_ZONE, 'description': '\ud800'}),
    ('recordsets.1.records.0', {**GOOD_ZONE, 'recordsets': [
        GOOD_RECORDSET, {**GOOD_RECORDSET, 'description': 'a\tb', 'records': ['\udfff']}]}),
    ('?', {**GOOD_ZONE, '\ud800': 'example.com.'}),
    ('description', {**GOOD_ZONE, 'description': '\x9b31m'}),
    ('description', {**GOOD_ZONE, 'description': 'one line\u2028another'}),
    ('masters', {'name': 'example.com.', 'type': 'SECONDARY'}),
    ('type', {**GOOD_ZONE, 'type': {}}),
    ('masters', {**GOOD_ZONE, 'masters': ['192.0.2.1']}),
    ('attributes.pool_id', {**GOOD_ZONE, 'attributes': {'pool_id': 'gold'}}),
    ('attributes.tier', {**GOOD_ZONE, 'attributes': {'tier': 'g' * 51}}),
    ('attributes', {**GOOD_ZONE, 'attributes': {'t' * 51: 'gold'}}),
    ('attributes', {**GOOD_ZONE, 'attributes': {str(number): 'gold' for number in range(21)}}),
    ('serial', {**GOOD_ZONE, 'serial': 7}),
])
def test_a_wrong_zone(api, field, body):
    answer = api.simulate_post('/v2/zones', body=json.dumps(body), headers={'Content-Type': 'application/json'})
    assert_refused(answer, field)


def test_every_mistake_of_a_body_is_told_at_once(api):
    body = {'emial': 'a@example.com', 'email': 5, 'ttl': -1,
            'recordsets': [{**GOOD_RECORDSET, 'ttl': 'long', 'type': '\x07'}]}
    answer = api.simulate_post('/v2/zones', json={'name': 'example.com.', **body})
    assert answer.status_code == 400
    assert {'.'.join(each['path']): each['message'] for each in answer.json['errors']['errors']} == {
        'emial': 'not known here; known are name, email, ttl, description, type, masters, attributes, recordsets',
        'email': 'must be a text', 'ttl': f'must be from 0 to {2**31 - 1}',
        'recordsets.0.ttl': 'must be a whole number',
        'recordsets.0.type': 'has control characters in it'}
    assert answer.json['message'].startswith('emial: ')


def test_of_a_body_with_very_many_mistakes_the_first_is_told(api):
    wrong = [{**GOOD_RECORDSET, 'ttl': 'long'}] * 5000
    assert_refused(api.simulate_post('/v2/zones', json={**GOOD_ZONE, 'recordsets': wrong}), 'recordsets.0.ttl')


def test_a_whole_number_may_be_written_with_a_fraction_of_nothing(api):
    answer = api.simulate_post('/v2/zones', body='{"name": "example.com.", "email": "a@example.com", "ttl": 60.0}',
                               headers={'Content-Type': 'application/json'})
    assert (answer.status_code, answer.json['ttl'], '60.0' in answer.text) == (202, 60, False)


@pytest.mark.parametrize('field, body', [
    ('name', {'name': 'example.org.'}),
    ('ttl', {'ttl': None}),
    ('email', {'email': ''}),
])
def test_a_wrong_change_of_a_zone(api, zone, field, body):
    assert_refused(api.simulate_patch(f'/v2/zones/{zone["id"]}', json=body), field)


@pytest.mark.parametrize('field, body', [
    ('records', {**GOOD_RECORDSET, 'records': '192.0.2.1'}),
    ('records', {**GOOD_RECORDSET, 'records': []}),
    ('records.1', {**GOOD_RECORDSET, 'records': ['192.0.2.1', 5]}),
    ('records.0', {**GOOD_RECORDSET, 'records': ['']}),
    ('records.0', {**GOOD_RECORDSET, 'records': ['192.0.2.1\r']}),
    ('zone_id', {**GOOD_RECORDSET, 'zone_id': NIL}),
])
def test_a_wrong_recordset(api, zone, field, body):
    assert_refused(api.simulate_post(f'/v2/zones/{zone["id"]}/recordsets', json=body), field)


@pytest.mark.parametrize('field, command, body', [
    ('delete_zones', 'drain', {'delete_zones': None}),
    ('delete_extra', 'resync', {'delete_extra': True}),
    ('for', 'maintenance', {'for': '5 minutes'}),
])
def test_a_wrong_command_about_a_server(api, central, pool_manager, field, command, body):
    assert_refused(api.simulate_post(f'/v2/servers/{SERVER_IDS[0]}/{command}', json=body), field)
    assert (central.contexts, pool_manager.asked) == ([], [])


@pytest.mark.parametrize('field, query', [
    ('limit', 'limit=0'), ('limit', 'limit=-1'), ('limit', 'limit=ten'), ('limit', 'limit='),
    ('limit', 'limit=%C2%B2'), ('limit', 'limit=1&limit=2'), ('marker', 'marker=here'),
    ('marker', f'marker={NIL}'), ('sort_dir', 'sort_dir=up'), ('sort_key', 'sort_key=colour'),
    ('name', 'name='), ('nmae', 'nmae=example.com.'), ('name', 'name=%00'),
])
def test_a_wrong_query(api, field, query):
    kind = f'invalid_{field}' if field in ('limit', 'marker', 'sort_dir', 'sort_key') else 'invalid_object'
    assert_refused(api.simulate_get('/v2/zones', query_string=query), field, kind)


def test_a_limit_of_more_than_a_page_is_a_page(api, zone):
    assert len(api.simulate_get('/v2/zones', query_string='limit=5000').json['zones']) == 1


@pytest.mark.parametrize('field, path', [
    ('zone_id', '/v2/zones/1234'), ('zone_id', '/v2/zones/1234/servers'), ('zone_id', '/v2/zones/1234/recordsets'),
    ('zone_id', '/v2/zones/{' + 'a' * 32 + '}'), ('import_id', '/v2/zones/tasks/imports/1'),
    ('export_id', '/v2/zones/tasks/exports/1'), ('server_id', '/v2/servers/1234'),
    ('recordset_id', f'/v2/zones/{NIL}/recordsets/www'),
])
def test_a_wrong_id(api, field, path):
    assert_refused(api.simulate_get(path), field, 'invalid_uuid')


def test_a_wrong_host(api):
    assert_refused(api.simulate_get('/v2/zones', headers={'Host': 'a"b<c>'}), 'Host')
    answer = api.simulate_get('/v2/zones', headers={'Host': '[2001:db8::1]:9001'})
    assert (answer.status_code, answer.headers['cache-control']) == (200, 'no-store')


@pytest.mark.parametrize('header, value', [('X-Project-Id', 'a' * 37), ('X-Auth-Sudo-Project-Id', 'a b'),
                                           ('X-Auth-All-Projects', 'yes')])
def test_a_wrong_header(api, header, value):
    assert_refused(api.simulate_get('/v2/zones', headers={header: value}), header)


@pytest.mark.parametrize('body, told', [
    (b'', 'not JSON'), (b'{"name": ', 'not JSON'), (b'\xff\xfe', 'not UTF-8'), (b'[]', 'must be a JSON object'),
    (b'null', 'must be a JSON object'), (b'[' * 100_000, 'nested too deeply'), (b'1' * 5000, 'not JSON'),
    (b'{"ttl": NaN}', 'not JSON'), (b'{"name": "a.", "name": "b."}', 'name: given more than once'),
])
def test_a_body_that_is_no_object(api, body, told):
    answer = api.simulate_post('/v2/zones', body=body, headers={'Content-Type': 'application/json'})
    assert (answer.status_code, told in answer.json['message']) == (400, True)


def test_a_body_of_another_kind(api):
    for path, kind in (('/v2/zones', 'text/dns'), ('/v2/zones/tasks/imports', 'text/html')):
        answer = api.simulate_post(path, body=json.dumps(GOOD_ZONE), headers={'Content-Type': kind})
        assert (answer.status_code, answer.json['type']) == (415, 'unsupported_content_type')
        assert kind in answer.json['message']


def test_a_body_that_is_too_large(api):
    answer = api.simulate_post('/v2/zones', json={**GOOD_ZONE, 'description': 'x' * (1 << 20)})
    assert (answer.status_code, answer.json['type']) == (413, 'body_too_large')


@pytest.mark.parametrize('body', [b'\xff', b'', b' \n', b'$ORIGIN example.com.\n\x00'])
def test_a_body_that_is_no_zone_file(api, body):
    answer = api.simulate_post('/v2/zones/tasks/imports', body=body, headers={'Content-Type': 'text/dns'})
    assert (answer.status_code, 'zone file' in answer.json['message']) == (400, True)


def test_nothing_to_change(api, zone):
    for method in ('PATCH', 'DELETE', 'PUT'):
        answer = api.simulate_request(method, f'/v2/zones/{zone["id"]}', json={})
        assert answer.status_code == {'PATCH': 400, 'DELETE': 202, 'PUT': 405}[method]
    assert 'PUT is not possible here' in answer.json['message']


def test_an_address_makes_no_lines_of_the_log(api, central, caplog):
    central.fault = ServiceUnavailable(service='central', why='it is being started')
    assert api.simulate_get('/status/zones/%0aERROR%20forged%e2%80%a8%1b%5bm').status_code == 503
    assert caplog.messages and all(each.startswith('GET /status/zones/?ERROR forged??[m: ') for each in caplog.messages)


def assert_refused(answer, field, kind='invalid_object'):
    assert answer.status_code == 400, answer.text
    assert answer.json['type'] == kind
    assert answer.json['code'] == 400
    assert answer.json['message'].startswith(f'{"Invalid UUID " if kind == "invalid_uuid" else ""}{field}: ')
    assert answer.json['request_id'] == answer.headers['X-Openstack-Request-Id']
    [error] = answer.json['errors']['errors']
    assert error['path'] == field.split('.')


# What nobody thought of.

RECORDSETS = '/v2/zones/ZONE_ID/recordsets'
PATHS = ['/v2/zones', '/v2/zones/ZONE_ID', RECORDSETS, f'{RECORDSETS}/RECORDSET_ID', '/v2/zones/tasks/imports',
         '/v2/servers', '/v2/servers/reload', *(f'/v2/servers/{SERVER_IDS[0]}{command}'
                                                for command in ('', '/drain', '/resync', '/resume'))]
NAMES = st.sampled_from(['name', 'email', 'ttl', 'type', 'records', 'description', 'masters', 'attributes',
                         'delete_zones', 'fix', 'delete_extra']) | st.text()
VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                      lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
                      max_leaves=5)


def sender(folder):
    """Yields what sends a request about one zone and its recordset, whose ids it puts into the path."""
    for central in observed_central(folder):
        client = falcon.testing.TestClient(create_app(
            central, POOL, ApiSettings(max_body=1000), pool_managers=PoolManager(), storage=central.storage))
        zone_id = client.simulate_post('/v2/zones', json=GOOD_ZONE).json['id']
        recordset_id = client.simulate_post(f'/v2/zones/{zone_id}/recordsets', json=GOOD_RECORDSET).json['id']

        def send(method, path, **options):
            path = path.replace('ZONE_ID', zone_id).replace('RECORDSET_ID', recordset_id)
            return client.simulate_request(method, path, **options)

        yield send


@pytest.fixture(scope='module')
def send(tmp_path_factory):
    yield from sender(tmp_path_factory.mktemp('central'))


def assert_answered(answer, below=500):
    assert 200 <= answer.status_code < below, answer.text
    assert answer.headers['X-Openstack-Request-Id'].startswith('req-')
    if answer.status_code >= 400:
        assert answer.json['code'] == answer.status_code
        assert answer.json['message'] and answer.json['type']


@given(method=st.sampled_from(['POST', 'PUT', 'PATCH']), path=st.sampled_from(PATHS),
       body=VALUES | st.dictionaries(NAMES, VALUES, max_size=5))
@example(method='PATCH', path=PATHS[1], body={'ttl': float('nan')})
def test_any_json_is_answered(send, method, path, body):
    assert_answered(send(method, path, body=json.dumps(body),
                         headers={'Content-Type': 'application/json'}))


@given(path=st.lists(st.sampled_from(['v2', 'zones', 'tasks', 'imports', 'servers', 'ZONE_ID', 'recordsets'])
                     | st.text(st.characters(exclude_characters='?', exclude_categories=['Cs'])), max_size=6),
       query=st.text(string.printable, max_size=60), method=st.sampled_from(['GET', 'OPTIONS', 'POST']))
def test_any_address_is_answered(send, path, query, method):
    assert_answered(send(method, '/' + '/'.join(path), query_string=query.replace('?', '')))


@given(query=st.dictionaries(st.sampled_from(['name', 'limit', 'marker', 'status', 'sort_dir', 'x']), st.text(),
                             max_size=4))
def test_any_query_is_answered(send, query):
    for path in (PATHS[0], RECORDSETS):
        assert_answered(send('GET', path, params=query))
