"""Whatever a client sends, it is told what is wrong, and the API goes on."""

from __future__ import annotations

import concurrent.futures
import json
import socket
import string
import subprocess
import sys
import uuid

import falcon.testing
import pytest
import requests
from hypothesis import example, given, strategies as st

from designate_pool import model
from designate_pool.api.app import create_app
from designate_pool.api.http.cross_site import CrossSiteGuard
from designate_pool.api.http.limits import PLACE, RequestLimits, network_of
from designate_pool.api.http.server import ApiServer
from designate_pool.errors import ServiceUnavailable
from designate_pool.model import Endpoint
from designate_pool.rpc.serializer import FEW, pack, unpack
from designate_pool.settings import ApiSettings
from testing.processes import wait_until
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


SCRIPT = """
import designate_pool
from designate_pool import runtime
runtime.patch()
import io, json, sys, threading, time
import falcon, falcon.testing
from designate_pool.api.http import request
from designate_pool.api.operation_registry import operations
from designate_pool.model import Action, Outcome, Report
from designate_pool.rpc.serializer import pack, unpack

changes = [{'name': f'h{number}.example.com.', 'type': 'A', 'records': ['192.0.2.1']} for number in range(8000)]
body = json.dumps({'changes': changes}).encode()
ended, turns = [], [0]

def wait():
    while not ended:
        turns[0] += 1
        time.sleep(0)

threading.Thread(target=wait).start()
time.sleep(0)
def took(work, *arguments, **options):
    before = turns[0]
    found = work(*arguments, **options)
    told.append(turns[0] - before)
    return found

told = []
environ = falcon.testing.create_environ(method='POST', body=body, headers={'Content-Type': 'application/json'})
req = falcon.Request(environ)
req.context.operation = next(each for each in operations() if each.name == 'change_zone')
given = took(request.body, req, 1 << 25)
assert given['changes'] == changes
values = [Report('d' * 32, Action.UPDATE, 1, Outcome.SUCCESS, number) for number in range(8000)]
packed = took(pack, values)
assert took(unpack, packed) == values
ended.append(True)
print(json.dumps(told))
"""


def test_others_have_their_turns_while_a_large_body_is_read_and_sent_on() -> None:
    ran = subprocess.run([sys.executable, '-W', 'ignore', '-c', SCRIPT], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    read, packed, unpacked = json.loads(ran.stdout)
    assert read >= 16 and packed >= 8 and unpacked >= 8


@pytest.mark.parametrize('count', [FEW, FEW + 1])
def test_long_lists_come_out_as_they_went_in(count: int) -> None:
    reports = [model.Report('d' * 32, model.Action.UPDATE, 1, model.Outcome.SUCCESS, serial) for serial in range(count)]
    packed = pack({'reports': reports})
    assert unpack(json.loads(json.dumps(packed))) == {'reports': reports}
    assert count == FEW or max(map(len, packed['reports']['v'])) < 200_000, 'in pieces'


def nothing(environ, start_response):
    start_response('204 No Content', [])
    return []


@pytest.mark.parametrize('host', ['127.0.0.1', '::1'])
def test_start_stop_and_start_again(host):
    server = ApiServer(nothing, Endpoint(host, 0), ApiSettings(threads=2, waits=0))
    for _ in range(2):
        server.start()
        assert requests.get(f'http://{server.endpoint}/').status_code == 204
        taken = server.endpoint
        server.stop()
        with pytest.raises(requests.ConnectionError):
            requests.get(f'http://{taken}/', timeout=2)
    server.stop()


class Caller:
    """Calls the application of :class:`RequestLimits`, which calls *during* with the place of each request."""

    def __init__(self, total: int, per_client: int, during=lambda place: None) -> None:
        self._during = during
        self.limits = RequestLimits(self._app, ApiSettings(threads=total, threads_per_client=per_client))

    def _app(self, environ, start_response):
        self._during(environ[PLACE])
        start_response('200 OK', [])
        return [b'done']

    def call(self, address='192.0.2.1'):
        answer = []
        body = b''.join(self.limits({'REMOTE_ADDR': address}, lambda *arguments: answer.extend(arguments)))
        return answer[0], dict(answer[1]), body


def test_more_than_the_total_wait_and_who_has_left_makes_room() -> None:
    def during(place):
        if not waiting:
            waiting.append(threads.submit(caller.call, '192.0.2.2'))
            wait_until(lambda: len(caller.limits.counts) == 2, 'the second waits')
            assert not waiting[0].done()
            place.assign_to(None)
            assert waiting[0].result(10)[0] == '200 OK'

    waiting: list[concurrent.futures.Future] = []
    caller = Caller(1, 1, during)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        assert caller.call()[0] == '200 OK'
    assert caller.call()[0] == '200 OK' and not caller.limits.counts


def test_who_has_too_many_is_told_when_to_come_again() -> None:
    refused: list[tuple[str, dict[str, str], bytes]] = []
    caller = Caller(2, 1, lambda place: refused.append(caller.call()))
    assert caller.call()[0] == '200 OK'
    ((status, headers, body),) = refused
    assert (status, headers['Retry-After']) == ('429 Too Many Requests', '1') and b'over_limit' in body


def test_an_error_of_the_application_gives_the_place_back() -> None:
    def during(place):
        raise ZeroDivisionError

    caller = Caller(1, 1, during)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            caller.call()


@pytest.mark.parametrize('address, network', [
    ('192.0.2.1', '192.0.2.1'), ('::ffff:192.0.2.1', '192.0.2.1'), ('2001:db8::1:2', '2001:db8::/64'),
    ('fe80::1%eth0', 'fe80::/64'), ('localhost', 'localhost'), ('', '')])
def test_an_address_of_a_network_is_all_of_it(address: str, network: str) -> None:
    assert network_of(address) == network
