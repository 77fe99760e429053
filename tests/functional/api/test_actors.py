"""Who has changed a zone, and by what, whatever door the change came through: in its history and in notifications."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from designate_pool.cmd.manage import app as manage
from designate_pool.minidns import refresher
from designate_pool.model import Actor, Context, Version, ZoneTransferIn
from designate_pool.pool_manager.reconcile import reconciler
from designate_pool.sink import service as sink
from tests.fixtures.api import EVERYBODY, Place, opened

AGENT = 'curl/8.5 \xe9\t' + 'x' * 80
CLIENT = ('curl/8.5 ??' + 'x' * 80)[:64]
MEMBER = Actor('member-of-alpha', 'alpha', '192.0.2.7', CLIENT)
ADMIN = Actor('admin-of-alpha', 'alpha', '192.0.2.7', CLIENT)
BETA = Actor('member-of-beta', 'beta', '192.0.2.7', CLIENT)
PLAN = {'X-Designate-Pool-Change-Kind': 'PLAN'}
EMAIL = 'hostmaster@example.com'
SOA = 'ns1.example.net. host.example.net. 7 3600 600 86400 300'
Things = dict[str, str]


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yield from opened(tmp_path_factory.mktemp('actors'))


def ask(place: Place, method: str, path: str, role: str = 'member', project: str = 'alpha',
        headers: dict[str, str] | None = None, **options: Any) -> Any:
    answer = place.ask(method, path, role, project, remote_addr='192.0.2.7',
                       headers={'User-Agent': AGENT, **(headers or {})}, **options)
    assert answer.status_code < 300, answer.text
    return answer.json if answer.content else None


def create(place: Place, things: Things, headers: dict[str, str] | None = None) -> Any:
    return ask(place, 'POST', '/v2/zones', json={'name': f'new.{things["zone_name"]}', 'email': EMAIL,
                                                 'attributes': {}}, headers=headers)['id']


def change(place: Place, things: Things) -> None:
    ask(place, 'POST', f'/v2/zones/{things["zone_id"]}/changes', headers=PLAN, json={
        'changes': [{'name': f'www.{things["zone_name"]}', 'type': 'A', 'records': ['192.0.2.9']}]})


def zone_file(things: Things, label: str) -> str:
    return f'$ORIGIN {label}.{things["zone_name"]}\n@ 300 SOA ns1.example.org. h 1 2 3 4 5\n'


def import_one(place: Place, things: Things) -> Any:
    return ask(place, 'POST', '/v2/zones/tasks/imports', body=zone_file(things, 'one'),
               headers={'Content-Type': 'text/dns'})['zone_id']


def import_several(place: Place, things: Things) -> Any:
    made = ask(place, 'POST', '/v2/zones/tasks/import_batches', json={
        'zonefiles': [zone_file(things, label) for label in ('two', 'three')]})
    return made['imports'][1]['zone_id']


def restore(place: Place, things: Things) -> None:
    ask(place, 'DELETE', f'/v2/zones/{things["zone_id"]}', 'admin')
    ask(place, 'POST', f'/v2/deleted_zones/{things["zone_id"]}/tasks/restore')


def transfer(place: Place, things: Things) -> None:
    request = ask(place, 'POST', f'/v2/zones/{things["zone_id"]}/tasks/transfer_requests', json={})
    ask(place, 'POST', '/v2/zones/tasks/transfer_accepts', project='beta', json={
        'zone_transfer_request_id': request['id'], 'key': request['key']})


def float_address(place: Place, things: Things) -> Any:
    ask(place, 'PATCH', f'/v2/reverse/floatingips/{things["floating_ip"]}', json={'ptrdname': 'vm.example.'})
    return next(zone.id for zone in place.central.find_domains(EVERYBODY) if zone.name == '2.0.192.in-addr.arpa.')


def refresh(place: Place, things: Things) -> str:
    zone = place.central.create_domain(Context(project_id='alpha'), {
        'name': f'secondary.{things["zone_name"]}', 'masters': ['198.51.100.1']})
    task, = place.central.claim_refreshes(refresher.WHO, 'default', 60, 10)
    place.central.store_transfer(refresher.WHO, zone.id, task.claim, '198.51.100.1:53', ZoneTransferIn(
        7, SOA, 900, [(zone.name, 'NS', 300, 'ns1.example.net.')]))
    return zone.id


#: By the door: what is done, which returns the zone if it is not that of the things; by whom, of what kind, and which
#: notification comes of it.
DOORS: dict[str, tuple[Callable[[Place, Things], Any], Actor, str, str]] = {
    'create': (create, MEMBER, 'CREATE', 'dns.zone.create'),
    'create-by-plan': (lambda place, things: create(place, things, PLAN), MEMBER, 'PLAN', 'dns.zone.create'),
    'import': (import_one, MEMBER, 'IMPORT', 'dns.zone.create'),
    'imports-together': (import_several, MEMBER, 'IMPORT', 'dns.zone.create'),
    'update': (lambda place, things: ask(place, 'PATCH', f'/v2/zones/{things["zone_id"]}', json={'ttl': 77}),
               MEMBER, 'API', 'dns.zone.update'),
    'recordset': (lambda place, things: ask(
        place, 'DELETE', f'/v2/zones/{things["zone_id"]}/recordsets/{things["recordset_id"]}'),
        MEMBER, 'API', 'dns.recordset.delete'),
    'plan': (change, MEMBER, 'PLAN', 'dns.zone.update'),
    'delete': (lambda place, things: ask(place, 'DELETE', f'/v2/zones/{things["zone_id"]}'),
               MEMBER, 'DELETE', 'dns.zone.delete'),
    'abandon': (lambda place, things: ask(place, 'POST', f'/v2/zones/{things["zone_id"]}/tasks/abandon', 'admin'),
                ADMIN, 'DELETE', 'dns.zone.delete'),
    'revert': (lambda place, things: ask(
        place, 'POST', f'/v2/zones/{things["zone_id"]}/tasks/revert', headers=PLAN,
        json={'to': str(place.central.find_versions(EVERYBODY, things['zone_id'], 9)[-1].serial)}),
        MEMBER, 'UNDO', 'dns.zone.update'),
    'restore': (restore, MEMBER, 'RESTORE', 'dns.zone.create'),
    'give': (lambda place, things: ask(place, 'POST', f'/v2/zones/{things["zone_id"]}/project', 'admin',
                                       json={'project_id': 'gamma'}), ADMIN, 'OWNER', 'dns.zone.update'),
    'transfer': (transfer, BETA, 'OWNER', 'dns.zone.update'),
    'move': (lambda place, things: ask(place, 'POST', f'/v2/zones/{things["zone_id"]}/tasks/pool_move', 'admin',
                                       json={'pool_id': place._other_pool()}), ADMIN, 'MOVE', 'dns.zone.update'),
    'pool': (lambda place, things: ask(
        place, 'PATCH', f'/v2/pools/{place.pool.id}', 'admin',
        json={'ns_records': [{'hostname': 'ns2.example.org.', 'priority': 1}]}), ADMIN, 'POOL', 'dns.zone.update'),
    'pool-on-the-host': (lambda place, things: place.central.update_pool(
        manage.WHO, {'id': place.pool.id, 'name_servers': ['ns3.example.org.']}),
        Actor('manage'), 'POOL', 'dns.zone.update'),
    'floating-ip': (float_address, MEMBER, 'API', 'dns.recordset.create'),
    'sink': (lambda place, things: place.central.set_resource_records(
        sink.WHO, {'plugin': 'nova_fixed', 'resource_type': 'instance', 'resource_id': 'one'}, things['zone_id'],
        [{'name': f'vm.{things["zone_name"]}', 'type': 'A', 'data': '192.0.2.8'}]),
        Actor('sink'), 'SINK', 'dns.recordset.create'),
    'refresh': (refresh, Actor('refresh'), 'REFRESH', 'dns.zone.update'),
    'serial': (lambda place, things: place.central.raise_serial_above(
        reconciler.WHO, things['zone_id'], place.central.get_domain(EVERYBODY, things['zone_id']).serial + 99),
        Actor('pool-manager'), 'SERIAL', 'dns.zone.update'),
}


@pytest.mark.parametrize('door', DOORS)
def test_by_each_door(place: Place, door: str) -> None:
    act, actor, kind, event = DOORS[door]
    things = place.things('alpha', '')
    place.notified.told.clear()
    made = act(place, things)
    zone_id = made.replace('-', '') if isinstance(made, str) else things['zone_id']
    newest: Version = place.central.find_versions(EVERYBODY, zone_id, 1)[0]
    assert (newest.actor, newest.kind) == (actor, kind)
    assert newest.request_id.startswith('req-') is bool(actor.address), 'of the request itself'
    told = [payload['actor'] for event_type, payload in place.notified.told if event_type == event
            and zone_id in (str(payload['id']).replace('-', ''), str(payload.get('zone_id')).replace('-', ''))]
    assert told[-1] == dataclasses.asdict(actor)


def test_addresses_and_clients_are_for_administrators(place: Place) -> None:
    path = f'/v2/zones/{create(place, place.things("alpha"))}/versions'
    mine, admins = (ask(place, 'GET', path, role)['versions'][0] for role in ('member', 'admin'))
    assert (mine['user'], mine['project_id'], mine['address'], mine['client']) == (
        'member-of-alpha', 'alpha', None, None)
    assert admins == mine | {'address': '192.0.2.7', 'client': CLIENT}
    assert ask(place, 'GET', path.replace('versions', 'explain'))['changed_by'] == 'member-of-alpha of alpha'


def test_a_kind_that_only_the_service_gives_is_refused(place: Place) -> None:
    answer = place.ask('GET', '/v2/zones', headers={'X-Designate-Pool-Change-Kind': 'UNDO'})
    assert answer.status_code == 400 and 'X-Designate-Pool-Change-Kind' in answer.json['message']


def test_who_stored_a_plan_and_who_approved_one(place: Place) -> None:
    stored = ask(place, 'POST', '/v2/plans', 'admin', json={'zone_name': 'example.com.', 'target': 'x', 'document': {}})
    approved = ask(place, 'POST', f'/v2/plans/{place.things("alpha", "{plan_id}")["plan_id"]}/approve', 'operator')
    assert (stored['asked_by'], approved['asked_by']) == ('admin-of-alpha of alpha', 'operator-of-alpha of alpha')


def test_an_import_that_is_forgotten_tells_who_did_it(place: Place) -> None:
    task = ask(place, 'POST', '/v2/zones/tasks/imports', body=zone_file(place.things('alpha'), 'four'),
               headers={'Content-Type': 'text/dns'})
    ask(place, 'DELETE', f'/v2/zones/tasks/imports/{task["id"]}', 'admin')
    assert {event: payload['actor']['user'] for event, payload in place.notified.told
            if payload['id'] == task['id']} == {
        'dns.zone_import.create': 'member-of-alpha', 'dns.zone_import.update': 'member-of-alpha',
        'dns.zone_import.delete': 'admin-of-alpha'}
