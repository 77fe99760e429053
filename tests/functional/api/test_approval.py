"""Changes that wait for approval, over HTTP, between two users; what a client of Designate sees of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from designate_pool.api.operation_registry import operations
from designate_pool.cli.client import with_hint
from designate_pool.model import Context, Pool, new_id, utcnow
from designate_pool.storage.zones import pools
from tests.fixtures.api import Place, opened

ADMIN = Context(project_id='alpha', user='admin-of-alpha', may_approve=True)
WWW = {'name': 'www', 'type': 'A', 'records': ['192.0.2.1']}


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A pool whose zones need approval."""
    for place in opened(tmp_path_factory.mktemp('approval')):
        place.storage.run(pools.publish, Pool('default', requires_approval=True), utcnow())
        yield place


@pytest.fixture
def zone(place: Place) -> str:
    """The path of a zone with a recordset at www."""
    name = f'a{new_id()[:8]}.example.'
    domain = place.central.create_domain(ADMIN, {'name': name, 'email': 'hostmaster@alpha.example'}, [
        {**WWW, 'name': f'www.{name}'}])
    return f'/v2/zones/{domain.id}'


def test_a_client_of_designate_sees_a_recordset_that_is_pending(place: Place, zone: str) -> None:
    name = place.ask('GET', zone).json['name']
    answer = place.ask('POST', f'{zone}/recordsets', status=202, json={**WWW, 'name': f'new.{name}'})
    new = answer.json
    assert (new['name'], new['records'], new['status'], new['action']) == (f'new.{name}', ['192.0.2.1'], 'PENDING',
                                                                           'CREATE')
    assert 'etag' not in {header.lower() for header in answer.headers}
    place.ask('GET', f'{zone}/recordsets/{new["id"]}', status=404)
    www = place.ask('GET', f'{zone}/recordsets', params={'name': f'www.{name}'}).json['recordsets'][0]
    path = f'{zone}/recordsets/{www["id"]}'
    changed = place.ask('PUT', path, status=202, json={'records': ['192.0.2.2'], 'ttl': 77}).json
    assert (changed['records'], changed['ttl'], changed['status']) == (['192.0.2.2'], 77, 'PENDING')
    assert place.ask('DELETE', path, status=202).json['action'] == 'DELETE'
    assert place.ask('PATCH', zone, status=202, json={'ttl': 77}).json['ttl'] == 77
    assert place.ask('DELETE', zone, status=202).json['action'] == 'DELETE'
    assert place.ask('POST', f'{zone}/changes', status=202, json={'changes': [
        {**WWW, 'name': f'new.{name}'}]}).json['status'] == 'PENDING'
    assert place.ask('GET', path).json['records'] == ['192.0.2.1']
    changes = place.ask('GET', '/v2/changes', params={'zone_id': zone.rpartition('/')[2]}).json['changes']
    assert len(changes) == 6
    assert 'It has 6 changes that wait for approval' in place.ask('GET', f'{zone}/explain').json['summary']


def test_another_user_who_may_approves_it_and_the_history_names_both(place: Place, zone: str) -> None:
    change = place.ask('PATCH', zone, json={'ttl': 77}).json['links']['change'].partition('.org')[2]
    shown = place.ask('GET', change, status=200)
    assert shown.json['changes'] == [{'name': place.ask('GET', zone).json['name'], 'type': 'zone',
                                      'before': {'ttl': 3600}, 'after': {'ttl': 77}}]
    assert (shown.json['asked_by'], shown.json['state']) == ('member-of-alpha of alpha', 'PARKED')
    place.ask('POST', f'{change}/approve', 'member', status=403)
    place.ask('POST', f'{change}/approve', 'admin', 'beta', status=404)
    assert place.ask('GET', '/v2/changes', 'admin', 'beta').json['changes'] == []
    assert place.ask('POST', f'{change}/approve', 'admin', status=202).json['state'] == 'APPLIED'
    newest = place.ask('GET', f'{zone}/versions').json['versions'][0]
    assert (newest['user'], newest['approved_by']) == ('member-of-alpha', 'admin-of-alpha')
    assert place.ask('GET', zone).json['ttl'] == 77
    # A plan is shown to operators without the address of who asked for it.
    plan = place.ask('GET', f'/v2/plans/{change.rpartition("/")[2]}', 'operator', status=200,
                     headers={'X-Auth-All-Projects': 'true'})
    assert plan.json['document'].keys() == {'changes'}


def test_who_asked_withdraws_it_and_another_refuses_it_with_a_reason(place: Place, zone: str) -> None:
    for role, body, why in (('member', None, 'refused by member-of-alpha of alpha'),
                            ('admin', {'reason': 'not on a Friday'},
                             'refused by admin-of-alpha of alpha: not on a Friday')):
        change = place.ask('PATCH', zone, json={'ttl': 77}).json['links']['change'].partition('.org')[2]
        answer = place.ask('POST', f'{change}/refuse', role, status=200, **({} if body is None else {'json': body}))
        assert (answer.json['state'], answer.json['why']) == ('DROPPED', why)
        place.ask('POST', f'{change}/approve', 'admin', status=409)
    assert place.ask('GET', zone).json['ttl'] == 3600


def test_another_one_who_may_not_approve_it_does_not_refuse_it(place: Place, zone: str) -> None:
    change = place.ask('PATCH', zone, json={'ttl': 77}).json['links']['change'].partition('.org')[2]
    answer = place.ask('POST', f'{change}/refuse', 'operator', status=403).json
    assert 'who may approve it has to, or who has asked for it' in answer['message']
    assert place.ask('GET', change).json['state'] == 'PARKED'


def test_a_guest_follows_and_withdraws_its_own_change(place: Place, zone: str) -> None:
    place.ask('POST', f'{zone}/shares', 'admin', status=201, json={'target_project_id': 'beta'})
    name = place.ask('GET', zone).json['name']
    place.ask('PATCH', zone, json={'ttl': 77})
    change = place.ask('POST', f'{zone}/recordsets', project='beta', status=202, json={
        **WWW, 'name': f'guest.{name}'}).json['links']['change'].partition('.org')[2]
    listed = place.ask('GET', '/v2/changes', project='beta', params={'zone_id': zone.rpartition('/')[2]}).json
    assert [each['asked_by'] for each in listed['changes']] == ['member-of-beta of beta']
    assert place.ask('GET', change, project='beta', status=200).json['changes'][0]['name'] == f'guest.{name}'
    place.ask('POST', f'{change}/approve', 'admin', 'beta', status=403)
    assert place.ask('POST', f'{change}/refuse', project='beta', status=200).json['state'] == 'DROPPED'


def test_whatever_can_wait_is_answered_in_a_form_that_names_the_change(place: Place, zone: str) -> None:
    waiting = place.ask('POST', f'{zone}/tasks/transfer_requests', status=202).json
    assert (waiting['status'], waiting['key']) == ('PENDING', '') and waiting['links']['change']
    forms = {operation.name: operation.answers.get(202) for operation in operations()}
    for name in ('give_zone', 'move_zone', 'abandon_zone', 'restore_zone', 'revert_zone'):
        assert 'change' in forms[name].schema['properties']['links']['properties'], name


def test_a_ptr_record_of_a_floating_ip_that_has_changed_hands_is_stale(place: Place) -> None:
    mine, _ = place.neutron.create('alpha'), place.neutron.create('alpha')
    waiting = place.ask('PATCH', f'/v2/reverse/floatingips/{mine}', status=202, json={'ptrdname': 'www.example.com.'})
    path = waiting.json['links']['change'].partition('.org')[2]
    change, approve = path.rpartition('/')[2].replace('-', ''), f'{path}/approve'
    all_projects = {'X-Auth-All-Projects': 'true'}
    own = place.neutron.by_project.pop('alpha')
    place.neutron.by_project['beta'] = [each._replace(id='another') for each in own]
    answer = place.ask('POST', approve, 'admin', 'beta', status=409, headers=all_projects).json
    assert 'Neutron shows your token no floating IP of the project alpha in one' in answer['message']
    place.neutron.by_project['alpha'] = own[1:]
    answer = place.ask('POST', approve, 'admin', 'beta', status=409, headers=all_projects).json
    assert with_hint(answer['message'], answer['type']) == (
        f'The change {change} is not made: the floating IP {own[0].address} is another one by now. It waits no '
        'longer; who asked for it has to ask for it again, as the zone is now.')
    assert not place.central.find_managed_records(Context(all_projects=True))
    place.neutron.by_project['alpha'] = own
    answer = place.ask('POST', approve, 'admin', 'beta', status=409, headers=all_projects).json
    assert with_hint(answer['message'], answer['type']) == (
        f'The change {change} is DROPPED, and does not wait for approval. '
        "'designate-pool zone changes' shows those that wait.")
    place.neutron.by_project.clear()


def test_outdated_ptr_records_are_deleted_without_approval(place: Place) -> None:
    floating_ip = f'/v2/reverse/floatingips/{place.neutron.create("alpha")}'
    waiting = place.ask('PATCH', floating_ip, status=202, json={'ptrdname': 'www.example.com.'}).json
    assert (waiting['status'], waiting['ptrdname']) == ('PENDING', 'www.example.com.')
    assert place.ask('GET', floating_ip).json['ptrdname'] is None
    change = waiting['links']['change'].partition('.org')[2]
    place.ask('POST', f'{change}/approve', 'admin', 'beta', status=202, headers={'X-Auth-All-Projects': 'true'})
    assert place.ask('GET', floating_ip).json['ptrdname'] == 'www.example.com.'
    removal = place.ask('PATCH', floating_ip, status=202, json={'ptrdname': None}).json
    assert (removal['ptrdname'], removal['status']) == ('www.example.com.', 'PENDING')
    place.neutron.by_project['alpha'][:] = []
    place.neutron.create('alpha')
    place.ask('GET', '/v2/reverse/floatingips', status=200)
    assert not place.central.find_managed_records(Context(all_projects=True))
