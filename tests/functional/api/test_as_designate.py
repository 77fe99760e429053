"""What Designate 23 answers in places that its clients and its tests look at, and so do we."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from designate_pool.model import Context, Outcome, Report
from tests.fixtures.api import EVERYBODY, Place, opened

ALPHA = Context(project_id='alpha')
ABSENT = str(uuid.UUID(int=1))
ZONE = {'email': 'hostmaster@alpha.example'}
_NUMBERS = itertools.count()


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yield from opened(tmp_path_factory.mktemp('designate'))


def create_zone(place: Place, **values: Any) -> Any:
    return place.ask('POST', '/v2/zones', status=202,
                     json={'name': f'zone{next(_NUMBERS)}.example.', **ZONE, **values}).json


@pytest.fixture
def zone(place: Place) -> Any:
    return create_zone(place)


@pytest.fixture
def recordset(place: Place, zone: Any) -> Any:
    return place.ask('POST', f'/v2/zones/{zone["id"]}/recordsets', status=202, json={
        'name': f'www.{zone["name"]}', 'type': 'A', 'records': ['192.0.2.1']}).json


def managed(place: Place, zone: Any) -> dict[str, str]:
    """The addresses of the recordsets that the pool makes, by type."""
    found = place.ask('GET', f'/v2/zones/{zone["id"]}/recordsets').json['recordsets']
    return {each['type']: f'/v2/zones/{zone["id"]}/recordsets/{each["id"]}' for each in found}


class TestAttributes:
    def test_are_kept_shown_and_replaced(self, place: Place) -> None:
        given = {'tier': 'gold', 'größe': 'l' * 50, '!': 'x'}
        zone = create_zone(place, attributes=given)
        address = f'/v2/zones/{zone["id"]}'
        assert zone['attributes'] == place.ask('GET', address).json['attributes'] == given
        assert [each['attributes'] for each in place.ask('GET', '/v2/zones').json['zones']
                if each['id'] == zone['id']] == [given]
        assert place.ask('PATCH', address, json={'attributes': {'tier': 'tin'}}).json['attributes'] == {'tier': 'tin'}
        assert place.ask('PATCH', address, json={'ttl': 60}).json['attributes'] == {'tier': 'tin'}
        assert place.ask('PATCH', address, json={'attributes': {}}).json['attributes'] == {}

    def test_choose_the_pool_for_those_who_may(self, place: Place) -> None:
        given = {'name': 'chosen.example.', **ZONE, 'attributes': {'pool_id': str(uuid.UUID(place.pool.id))}}
        place.ask('POST', '/v2/zones', json=given, status=403)
        made = place.ask('POST', '/v2/zones', 'admin', json=given, status=202).json
        assert made['pool_id'] == made['attributes']['pool_id'] == str(uuid.UUID(place.pool.id))


class TestUnchangedFields:
    def test_of_a_zone_may_be_named(self, place: Place, zone: Any) -> None:
        given = {name: value for name, value in zone.items() if name not in ('links', 'changed_at', 'converged_at')}
        answer = place.ask('PATCH', f'/v2/zones/{zone["id"]}', json={**given, 'ttl': 77})
        assert (answer.status_code, answer.json['ttl']) == (202, 77)

    def test_of_a_recordset_may_be_named(self, place: Place, recordset: Any) -> None:
        given = {name: value for name, value in recordset.items() if name != 'links'}
        address = f'/v2/zones/{recordset["zone_id"]}/recordsets/{recordset["id"]}'
        answer = place.ask('PUT', address, json={**given, 'name': given['name'].upper(), 'records': ['192.0.2.2']})
        assert (answer.status_code, answer.json['records']) == (202, ['192.0.2.2'])
        refused = place.ask('PUT', address, json={'name': 'other.example.', 'type': 'AAAA'})
        assert (refused.status_code, refused.json['type']) == (400, 'invalid_object')
        assert [each['path'] for each in refused.json['errors']['errors']] == [['name'], ['type']]


def test_a_body_that_is_no_object_is_told_before_what_is_not_there(place: Place) -> None:
    for method, path in ('POST', f'/v2/zones/{ABSENT}/recordsets'), ('PATCH', f'/v2/zones/{ABSENT}'):
        answer = place.ask(method, path, body='s1.example. a. 1 2 3 4 5', headers={'Content-Type': 'application/json'})
        assert (answer.status_code, answer.json['type']) == (400, 'bad_request')


@pytest.mark.parametrize(('method', 'path'), [
    ('PATCH', '/v2/zones/{absent}'), ('POST', '/v2/zones/{absent}/recordsets'), ('POST', '/v2/zones/{absent}/changes'),
    ('PUT', '/v2/zones/{absent}/recordsets/{absent}'), ('PUT', '/v2/zones/{zone}/recordsets/{absent}'),
    ('PATCH', '/v2/tsigkeys/{absent}'), ('PATCH', '/v2/pools/{absent}')])
def test_what_is_not_there_is_told_before_what_is_wrong(place: Place, zone: Any, method: str, path: str) -> None:
    path = path.format(absent=ABSENT, zone=zone['id'])
    assert place.ask(method, path, 'admin', json={'colour': 'red'}).status_code == 404
    assert place.ask(method, path, 'admin', json={'id': ABSENT}).status_code == 404


def test_what_is_not_there_is_named_as_it_was_asked_for(place: Place) -> None:
    answer = place.ask('GET', f'/v2/zones/{ABSENT}', status=404)
    assert answer.json['message'] == f'There is no zone {ABSENT}.'


class TestNames:
    """They are answered as they were given, and compared without case."""

    def test_of_a_zone_with_recordsets(self, place: Place) -> None:
        zone = create_zone(place, name='MiXed.Example.', recordsets=[
            {'name': 'API.mixed.EXAMPLE.', 'type': 'A', 'records': ['192.0.2.1']},
            {'name': 'www.mixed.example.', 'type': 'A', 'records': ['192.0.2.1']}])
        path = f'/v2/zones/{zone["id"]}'
        assert zone['name'] == place.ask('GET', path).json['name'] == 'MiXed.Example.'
        for name in ('mixed.example.', 'MIXED.*'):
            assert [each['name'] for each in place.ask('GET', f'/v2/zones?name={name}').json['zones']] == [zone['name']]
        found = place.ask('GET', f'{path}/recordsets?sort_key=name').json['recordsets']
        assert [each['name'] for each in found] == ['API.mixed.EXAMPLE.', *['MiXed.Example.'] * 2, 'www.mixed.example.']
        assert {each['zone_name'] for each in found} == {'MiXed.Example.'}
        changed = place.ask('PATCH', path, json={'ttl': 60, 'name': 'mixed.example.'}, status=202).json
        assert changed['name'] == 'MiXed.Example.'
        place.ask('POST', '/v2/zones', json={'name': 'mixed.EXAMPLE.', **ZONE}, status=409)

    def test_of_an_imported_zone(self, place: Place) -> None:
        text = '$ORIGIN ImPorted.Example.\n@ 300 SOA ns1 h 1 2 3 4 5\nWwW 60 A 192.0.2.1\n'
        made = place.ask('POST', '/v2/zones/tasks/imports', body=text, headers={'Content-Type': 'text/dns'}).json
        assert made['message'] == 'ImPorted.Example. imported'
        zone = f'/v2/zones/{made["zone_id"]}'
        assert place.ask('GET', zone).json['name'] == 'ImPorted.Example.'
        found = place.ask('GET', f'{zone}/recordsets?type=A').json['recordsets']
        assert [(each['zone_name'], each['name']) for each in found] == [('ImPorted.Example.', 'WwW.ImPorted.Example.')]
        explained = place.ask('GET', f'{zone}/explain').json
        assert explained['zone_name'] == 'ImPorted.Example.' and ' ImPorted.Example. is ' in explained['summary']

    def test_of_a_recordset(self, place: Place, zone: Any) -> None:
        path = f'/v2/zones/{zone["id"]}/recordsets'
        body = {'name': f'WwW.{zone["name"]}', 'type': 'A', 'records': ['192.0.2.1']}
        made = place.ask('POST', path, json=body, status=202).json
        assert made['name'] == place.ask('GET', f'{path}/{made["id"]}').json['name'] == body['name']
        assert place.ask('PUT', f'{path}/{made["id"]}', json={'ttl': 60}, status=202).json['name'] == body['name']
        place.ask('POST', path, json={**body, 'name': body['name'].lower()}, status=409)
        place.ask('POST', f'/v2/zones/{zone["id"]}/changes', status=202, json={'changes': [
            {'name': body['name'].upper(), 'type': 'A', 'records': ['192.0.2.2']},
            {'name': f'New.{zone["name"]}', 'type': 'A', 'records': ['192.0.2.2']}]})
        found = place.ask('GET', f'/v2/recordsets?name=*.{zone["name"]}&type=A&sort_key=name').json['recordsets']
        assert [(each['name'], each['records']) for each in found] == [
            (f'New.{zone["name"]}', ['192.0.2.2']), (body['name'], ['192.0.2.2'])]
        assert place.ask('DELETE', f'{path}/{made["id"]}', status=202).json['name'] == body['name']
        again = place.ask('POST', path, json={**body, 'name': body['name'].lower()}, status=202).json
        assert again['name'] == body['name'].lower()


class TestManagedRecords:
    HEADER = {'X-Designate-Edit-Managed-Records': 'true'}

    @pytest.mark.parametrize('rtype', ['SOA', 'NS'])
    def test_are_the_pools(self, place: Place, zone: Any, rtype: str) -> None:
        address = managed(place, zone)[rtype]
        for method, body in (('PUT', {'ttl': 60}), ('PUT', {'colour': 'red'}), ('DELETE', None)):
            for role, headers in (('member', {}), ('admin', self.HEADER)):
                answer = place.ask(method, address, role, headers=headers, json=body)
                assert (answer.status_code, answer.json['type']) == (400, 'bad_request'), answer.text
        made = place.ask('POST', f'/v2/zones/{zone["id"]}/recordsets', json={
            'name': zone['name'], 'type': rtype, 'records': [{'NS': 'a.', 'SOA': 'a. b. 1 2 3 4 5'}[rtype]]})
        assert (made.status_code, made.json['type']) == (400, 'bad_request')

    def test_of_resources_are_changed_by_who_may_also_with_what_stays(self, place: Place, recordset: Any) -> None:
        place.central.set_resource_records(EVERYBODY, {'plugin': 'p', 'resource_type': 't', 'resource_id': 'i'},
                                           recordset['zone_id'], [{'name': recordset['name'], 'type': recordset['type'],
                                                                   'data': '192.0.2.77'}])
        address = f'/v2/zones/{recordset["zone_id"]}/recordsets/{recordset["id"]}'
        shown = place.ask('GET', address).json
        assert shown['managed'] is True
        body = {'ttl': 60, 'name': shown['name'], 'type': shown['type'], 'managed': True}
        refusal = place.ask('PUT', address, json=body, status=400).json
        assert 'is there for a floating IP, an instance' in refusal['message']
        place.ask('PUT', address, 'admin', headers=self.HEADER, json=body, status=202)

    def test_the_header_is_for_admins(self, place: Place, recordset: Any) -> None:
        address = f'/v2/zones/{recordset["zone_id"]}/recordsets/{recordset["id"]}'
        for query, headers in ('', self.HEADER), ('?edit_managed_records=true', {}):
            for role, status in ('member', 403), ('admin', 202):
                place.ask('PUT', address + query, role, headers=headers, json={'ttl': 60}, status=status)


def test_the_header_of_a_hard_delete_is_for_admins(place: Place, zone: Any) -> None:
    for role, status in ('member', 403), ('admin', 202):
        place.ask('DELETE', f'/v2/zones/{zone["id"]}', role, status=status,
                  headers={'X-Designate-Hard-Delete': 'true'})


def test_a_zone_is_abandoned_by_admins(place: Place, zone: Any) -> None:
    address = f'/v2/zones/{zone["id"]}'
    place.ask('POST', f'{address}/tasks/abandon', status=403)
    assert place.ask('POST', f'{address}/tasks/abandon', 'admin', status=204).text == ''
    place.ask('GET', address, status=404)
    place.ask('POST', f'{address}/tasks/abandon', 'admin', status=404)
    place.ask('POST', '/v2/zones', json={'name': zone['name'], **ZONE}, status=202)


def test_quotas_of_another_project_are_reset_without_a_header(place: Place) -> None:
    every = {'X-Auth-All-Projects': 'true'}
    place.ask('PATCH', '/v2/quotas/beta', 'admin', headers=every, json={'zones': 3}, status=200)
    place.ask('DELETE', '/v2/quotas/beta', 'member', status=403)
    place.ask('DELETE', '/v2/quotas/beta', 'admin', status=204)
    assert place.ask('GET', '/v2/quotas', project='beta').json['zones'] != 3


def test_quotas_that_designate_lacks_are_shown_where_they_are_set(place: Place) -> None:
    every, deletes = {'X-Auth-All-Projects': 'true'}, {'deletes_per_hour': 50, 'zone_deletes_per_hour': 5}
    before = place.ask('GET', '/v2/quotas', project='beta', status=200).json
    assert before.keys() == {'api_export_size', 'recordset_records', 'zone_records', 'zone_recordsets', 'zones'}
    place.ask('PATCH', '/v2/quotas/beta', 'admin', headers=every, json=deletes, status=200)
    assert place.ask('GET', '/v2/quotas', project='beta').json == {**before, **deletes}
    place.ask('DELETE', '/v2/quotas/beta', 'admin', status=204)
    assert place.ask('GET', '/v2/quotas', project='beta').json == before


def test_an_export_names_the_zone_as_it_was_given(place: Place) -> None:
    zone = create_zone(place, name='Given.Example.')
    text = place.ask('GET', f'/v2/zones/tasks/exports/{zone["id"]}/export', status=200).text
    assert text.startswith('$ORIGIN Given.Example.\n') and '\nGiven.Example. 3600 IN SOA ' in text


@pytest.mark.parametrize('path', ['/v2/zones', '/v2/recordsets', '/v2/zones/{zone}/recordsets',
                                  '/v2/zones/tasks/imports', '/v2/zones/tasks/exports'])
def test_nothing_has_a_status_that_there_is_not(place: Place, recordset: Any, path: str) -> None:
    address, key = path.format(zone=recordset['zone_id']), path.rpartition('/')[2]
    assert place.ask('GET', address, query_string='status=fine', status=200).json[key] == []


class TestImportsAsJson:
    ADDRESS = '/v2/zones/tasks/imports'
    FILE = '$ORIGIN {name}\n@ 300 SOA ns1.example.org. h 1 2 3 4 5\n'

    def file(self) -> str:
        return self.FILE.format(name=f'import{next(_NUMBERS)}.example.')

    def test_the_zone_has_the_attributes(self, place: Place) -> None:
        for attributes in {'tier': 'gold'}, {}:
            made = place.ask('POST', self.ADDRESS, json={'zonefile': self.file(), 'attributes': attributes})
            assert (made.status_code, made.json.get('status')) == (202, 'COMPLETE'), made.text
            zone = place.ask('GET', f'/v2/zones/{made.json["zone_id"]}').json
            assert zone['attributes'] == attributes

    def test_the_pool_is_chosen_by_those_who_may(self, place: Place) -> None:
        pool = str(uuid.UUID(place.pool.id))
        body = {'zonefile': self.file(), 'attributes': {'pool_id': pool}}
        place.ask('POST', self.ADDRESS, json=body, status=403)
        made = place.ask('POST', self.ADDRESS, 'admin', json=body, status=202).json
        assert place.ask('GET', f'/v2/zones/{made["zone_id"]}').json['attributes'] == {'pool_id': pool}
        body['attributes'] = {'pool_id': ABSENT}
        assert place.ask('POST', self.ADDRESS, json=body, status=404).json['type'] == 'pool_not_found'

    @pytest.mark.parametrize('body', [
        b'no JSON{{{', b'[]', b'{"attributes": {"tier": "gold"}}', b'{"zonefile": 7}', b'{"zonefile": " "}',
        b'{"zonefile": "\\ud800"}', b'{"zonefile": "x", "attributes": ["tier"]}',
        b'{"zonefile": "x", "attributes": {"tier": 7}}', b'{"zonefile": "x", "colour": "red"}'])
    def test_what_is_refused(self, place: Place, body: bytes) -> None:
        place.ask('POST', self.ADDRESS, body=body, headers={'Content-Type': 'application/json'}, status=400)


class TestAdmin:
    EVERY = {'X-Auth-All-Projects': 'true'}

    def test_quotas(self, place: Place) -> None:
        address = '/admin/quotas/beta'
        shown = place.ask('PATCH', address, 'admin', json={'quota': {'zones': 7, 'zone_records': 8}}, status=200).json
        assert (shown['quota']['zones'], shown['quota']['zone_records']) == (7, 8)
        assert place.ask('GET', address, 'admin', status=200).json == shown
        assert place.ask('GET', '/v2/quotas', project='beta').json == shown['quota']
        place.ask('PATCH', address, 'admin', json={'quota': {'colours': 7}}, status=400)
        assert place.ask('DELETE', address, 'admin', status=204).text == ''
        assert place.ask('GET', address, 'admin').json['quota']['zones'] != 7

    def test_reports(self, place: Place, recordset: Any) -> None:
        def ask_for(path: str, **options: Any) -> Any:
            return place.ask('GET', f'/admin/reports/{path}', 'admin', status=200, **options).json

        own, every = ask_for('counts')['counts'][0], ask_for('counts', headers=self.EVERY)['counts'][0]
        zones = place.ask('GET', '/v2/zones', query_string='limit=1000').json['zones']
        assert own['zones'] == len(zones) <= every['zones'] and own['tenants'] == 1 <= every['tenants']
        assert len(zones) < own['records'] <= every['records']
        for name in 'zones', 'records', 'tenants':
            assert ask_for(f'counts/{name}')['counts'] == [{name: own[name]}]
        place.ask('GET', '/admin/reports/counts/colours', 'admin', status=404)
        (tenant,) = ask_for('tenants')['tenants']
        assert (tenant['id'], tenant['zone_count']) == ('alpha', len(zones))
        assert 'alpha' in [each['id'] for each in ask_for('tenants', headers=self.EVERY)['tenants']]
        shown = ask_for('tenants/alpha')
        assert sorted(shown['zones']) == sorted(each['name'] for each in zones)
        assert ask_for('tenants/beta')['zones_count'] == 0

    def test_a_zone_file(self, place: Place, recordset: Any) -> None:
        found = place.ask('GET', f'/admin/zones/export/{recordset["zone_id"]}', 'admin', status=200)
        assert recordset['name'] in found.text and found.headers['Content-Type'] == 'text/dns'


def test_an_import_leads_to_its_zone(place: Place) -> None:
    things = place.things('alpha')
    found = place.ask('GET', f'/v2/zones/tasks/imports/{things["import_id"]}').json
    assert found['links']['zone'].endswith(f'/v2/zones/{found["zone_id"]}')


@pytest.mark.parametrize('values', [{'description': 'new'}, {'ttl': 17}, {'attributes': {'tier': 'gold'}}],
                         ids=['description', 'ttl', 'attributes'])
@pytest.mark.parametrize('is_created', [False, True], ids=['new', 'created'])
def test_a_change_of_a_zone_is_an_update(place: Place, zone: Any, values: dict[str, Any], is_created: bool) -> None:
    found = place.central.get_domain(ALPHA, zone['id'])
    if is_created:
        place.central.update_statuses(ALPHA, [Report(found.id, found.action, found.generation, Outcome.SUCCESS,
                                                     found.serial)])
    shown = place.ask('PATCH', f'/v2/zones/{zone["id"]}', json=values).json
    assert (shown['action'], shown['status'], shown['serial'] > found.serial) == ('UPDATE', 'PENDING', True)


@pytest.mark.parametrize('word', ['all_projects', 'all_tenants'])
def test_all_projects_in_the_query(place: Place, zone: Any, word: str) -> None:
    place.ask('GET', '/v2/zones', query_string=f'{word}=true', status=403)
    place.ask('GET', '/v2/zones', query_string=f'{word}=maybe', status=400)
    found = place.ask('GET', '/v2/zones', 'admin', 'beta', query_string=f'{word}=true&limit=1&name={zone["name"]}')
    assert [each['id'] for each in found.json['zones']] == [zone['id']]
    page = place.ask('GET', '/v2/zones', 'admin', 'beta', query_string=f'{word}=true&limit=1')
    assert f'{word}=true' in page.json['links'].get('next', f'{word}=true')


def test_a_recordset_that_is_elsewhere_is_shown_too(place: Place, recordset: Any) -> None:
    found = place.ask('GET', f'/v2/recordsets/{recordset["id"]}', status=301)
    assert found.headers['Location'] == found.json['links']['self'] == recordset['links']['self']


@pytest.mark.parametrize(('name', 'rtype', 'record', 'status'), [
    ('*', 'NS', 'ns1.example.org.', 400),
    ('sub', 'NS', 'ns1.example.org.', 202),
    ('txt', 'TXT', 'text\\', 400),
    ('txt', 'TXT', '\\\\', 400),
    ('txt', 'TXT', '"\\\\"', 202),
    ('txt', 'TXT', '"\\    "', 202),
    ('sshfp', 'SSHFP', '-0 1 ' + 'ab' * 20, 400),
    ('_443._tcp', 'TLSA', '3 1 1 ' + 'ab' * 16, 400),
    ('_443._tcp', 'TLSA', f'3 1 1 (\n    {"ab" * 16}\n    {"ab" * 16}\n)', 202),
    ('https', 'HTTPS', '1 sample.example.org. port=foo', 400),
    ('https', 'HTTPS', '1 sample.example.org. ech=foo//', 400),
    ('https', 'HTTPS', '1 sample.example.org. alpn=h3,foo', 202),
    ('svcb', 'SVCB', '1 sample.example.org. ipv6hint=2001:db8::1 mandatory=alpn', 400),
])
def test_records(place: Place, zone: Any, name: str, rtype: str, record: str, status: int) -> None:
    answer = place.ask('POST', f'/v2/zones/{zone["id"]}/recordsets', json={
        'name': f'{name}.{zone["name"]}', 'type': rtype, 'records': [record]}, status=status)
    assert status == 202 or answer.json['type'] == 'invalid_object'


def test_a_zone_of_one_label_is_refused(place: Place) -> None:
    for role in ('member', 'admin'):
        answer = place.ask('POST', '/v2/zones', role, json={'name': 'label.', **ZONE}, status=400)
        assert answer.json['type'] == 'invalid_zone_name'


def test_all_that_is_wrong_is_told_together(place: Place, zone: Any) -> None:
    answer = place.ask('POST', '/v2/zones', json={'name': '-.-', 'email': 'nobody', 'description': 'd' * 161})
    assert [each['path'] for each in answer.json['errors']['errors']] == [['name'], ['email'], ['description']]
    answer = place.ask('POST', f'/v2/zones/{zone["id"]}/recordsets', json={
        'name': 'relative', 'type': 'A', 'records': ['192.0.2.1', 'here', 'there']})
    assert [each['path'] for each in answer.json['errors']['errors']] == [['name'], ['records[1]'], ['records[2]']]


def test_a_secret_need_not_be_base64(place: Place) -> None:
    made = place.ask('POST', '/v2/tsigkeys', 'admin', status=201, json={
        'name': 'plain.example.', 'algorithm': 'hmac-sha256', 'secret': 'secret-tempest-17', 'scope': 'POOL',
        'resource_id': place.pool.id})
    assert made.json['secret'] == '***'


@pytest.mark.parametrize('path', ['/v2/reverse/nothing', '/v2/nothing'])
def test_without_a_token_nothing_is_told_of_what_there_is(place: Place, path: str) -> None:
    assert place.api.simulate_get(path).status_code == 401
    assert place.ask('GET', path, 'guest').status_code == 403
    assert place.ask('GET', path, 'reader').status_code in (404, 501)


class TestListsOfNamesAndTransfers:
    """What Designate answers about top-level domains, blacklists and transfer requests."""

    @pytest.mark.parametrize('path, role', [('/v2/tlds', 'admin'), ('/v2/blacklists', 'admin'),
                                            ('/v2/zones/tasks/transfer_requests', 'member')])
    def test_what_is_not_there_is_told_before_what_is_wrong(self, place: Place, path: str, role: str) -> None:
        for method in ('GET', 'PATCH', 'DELETE'):
            body = {'json': {'description': 5}} if method == 'PATCH' else {}
            assert place.ask(method, f'{path}/{ABSENT}', role, status=404, **body).json['type'].endswith('_not_found')
            assert place.ask(method, f'{path}/foo', role, status=400, **body).json['type'] == 'invalid_uuid'
        assert place.ask('GET', f'{path}.json', role, status=404)

    def test_a_change_may_name_what_stays(self, place: Place) -> None:
        things = place.things('alpha', '{transfer_request_id} {tld_id} {blacklist_id}')
        for path, role in ((f'/v2/tlds/{things["tld_id"]}', 'admin'),
                           (f'/v2/blacklists/{things["blacklist_id"]}', 'admin'),
                           (f'/v2/zones/tasks/transfer_requests/{things["transfer_request_id"]}', 'member')):
            shown = place.ask('GET', path, role, status=200).json
            named = {name: value for name, value in shown.items() if name not in ('links', 'updated_at')}
            changed = place.ask('PATCH', path, role, status=200, json={**named, 'description': 'another'}).json
            assert changed['description'] == 'another' and changed['id'] == shown['id']
            refused = place.ask('PATCH', path, role, status=400, json={'id': ABSENT, 'description': 'x'}).json
            assert refused['errors']['errors'] == [{'path': ['id'], 'message': 'cannot be changed'}]

    def test_every_mistake_of_an_entry_is_told(self, place: Place) -> None:
        for path, given in (('/v2/tlds', {'name': 'a..b'}), ('/v2/blacklists', {'pattern': '('})):
            answer = place.ask('POST', path, 'admin', status=400, json={**given, 'description': 'x' * 161}).json
            assert {each['path'][0] for each in answer['errors']['errors']} == {*given, 'description'}

    @pytest.mark.parametrize('path', ['/v2/zones/tasks/transfer_requests', '/v2/zones/tasks/transfer_accepts'])
    def test_an_unknown_status_finds_nothing(self, place: Place, path: str) -> None:
        place.things('alpha', '{transfer_request_id} {transfer_accept_id}')
        key = path.rpartition('/')[2]
        assert place.ask('GET', path, 'admin', status=200).json[key]
        assert place.ask('GET', f'{path}?status=zahlabut', 'admin', status=200).json[key] == []

    @pytest.mark.parametrize('body', [{}, {'body': 'null', 'content_type': 'application/json'}], ids=['none', 'null'])
    def test_a_request_needs_no_body(self, place: Place, zone: Any, body: dict[str, str]) -> None:
        path = f'/v2/zones/{zone["id"]}/tasks/transfer_requests'
        made = place.ask('POST', path, status=201, **body)
        assert made.headers['Location'] == made.json['links']['self'] and made.json['target_project_id'] is None
        assert place.ask('POST', path, status=409).json['type'] == 'duplicate_zone_transfer_request'
        assert place.ask('POST', f'/v2/zones/{ABSENT}/tasks/transfer_requests', status=404,
                         json={'description': 5}).json['type'] == 'zone_not_found'


class TestSharedZones:
    """What Designate answers about shares of zones."""

    @pytest.fixture
    def path(self, zone: Any) -> str:
        return f'/v2/zones/{zone["id"]}'

    @pytest.mark.parametrize('body', [{}, {'target_project_id': None}, {'target_project_id': 'x' * 37},
                                      {'target_project_id': 'beta', 'zone_id': ABSENT}])
    def test_what_is_no_share(self, place: Place, path: str, body: Any) -> None:
        assert place.ask('POST', f'{path}/shares', status=400, json=body).json['type'] == 'invalid_object'
        assert place.ask('POST', f'/v2/zones/{ABSENT}/shares', status=404, json=body).json['type'] == 'zone_not_found'

    def test_what_is_not_there_or_is_there_already(self, place: Place, path: str) -> None:
        for method in ('GET', 'DELETE'):
            for zone in (path, f'/v2/zones/{ABSENT}'):
                found = place.ask(method, f'{zone}/shares/{ABSENT}', status=404).json
                assert found['type'] == 'shared_zone_not_found'
            assert place.ask(method, f'{path}/shares/foo', status=400).json['type'] == 'invalid_uuid'
        own = place.ask('POST', f'{path}/shares', status=400, json={'target_project_id': 'alpha'}).json
        assert own['type'] == 'bad_request'
        place.ask('POST', f'{path}/shares', status=201, json={'target_project_id': 'beta'})
        twice = place.ask('POST', f'{path}/shares', status=409, json={'target_project_id': 'beta'}).json
        assert twice['type'] == 'duplicate_shared_zone'

    def test_the_change_of_a_zone_may_name_that_it_is_shared(self, place: Place, path: str) -> None:
        place.ask('POST', f'{path}/shares', status=201, json={'target_project_id': 'beta'})
        place.ask('PATCH', path, status=202, json={'shared': True, 'ttl': 777})
        place.ask('PATCH', path, status=400, json={'shared': False, 'ttl': 778})
