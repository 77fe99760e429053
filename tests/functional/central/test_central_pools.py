"""Pools, one and several, and who is told of what Central changes."""

from __future__ import annotations

import dataclasses
import pathlib
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool import errors
from designate_pool.central import domain_changes
from designate_pool.central.rules import pools as pool_rules
from designate_pool.central.service import Central
from designate_pool.errors import InvalidField
from designate_pool.model import (Action, Context, Outcome, PageRequest, Pool, PoolServer, ServerState, Status, Task,
                                  TsigKey, new_id, utcnow)
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.storage.operations import heartbeats, pool_servers
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import domains
from designate_pool.storage.zones import nameserver_updates, pools
from designate_pool.storage.zones.nameserver_updates import NameserverUpdate
from testing.inline import Inline
from testing.settings import central_settings
from tests.fixtures.api import EVERYBODY, Place, token
from tests.fixtures.central import SERVERS, WHO, Caller, Clock, create, succeed
from tests.fixtures.notifications import Recorder


class TestPools:
    def test_create_find_get_update_delete(self, central: Central) -> None:
        made = central.create_pool(WHO, {'name': 'second', 'description': 'x', 'also_notifies': ['192.0.2.1:53'],
                                         'name_servers': ['b.example.', 'a.example.']})
        assert made == central.get_pool(WHO, made.id)
        assert (made.name_servers, made.also_notifies) == (('b.example.', 'a.example.'), ('192.0.2.1:53',))
        assert central.find_pools(WHO, {'name': 'sec*'}) == [made]
        assert [each.name for each in central.find_pools(WHO)] == ['default', 'second']
        changed = central.update_pool(WHO, {'id': made.id, 'name': 'third', 'also_notifies': []})
        assert (changed.name, changed.also_notifies, changed.name_servers) == ('third', (), made.name_servers)
        central.delete_pool(WHO, made.id)
        with pytest.raises(errors.PoolNotFound):
            central.get_pool(WHO, made.id)
        for ask in (central.delete_pool, central.get_pool):
            with pytest.raises(errors.PoolNotFound):
                ask(WHO, 'x')
        with pytest.raises(errors.PoolNotFound):
            central.update_pool(WHO, {'name': 'x'})

    def test_a_notify_is_signed_with_a_key_that_there_is(self, central: Central) -> None:
        (pool,) = central.find_pools(WHO)
        signed = {'id': pool.id, 'also_notifies': ['192.0.2.1', '192.0.2.2:5300 key Given-Out.example.com']}
        with pytest.raises(errors.InvalidField) as caught:
            central.update_pool(WHO, signed)
        assert caught.value.kwargs == {'field': 'also_notifies[1]', 'why': 'there is no TSIG key Given-Out.example.com'}
        with pytest.raises(errors.InvalidField):
            central.create_pool(WHO, {'name': 'second', 'also_notifies': signed['also_notifies']})
        central.tsigkeys.create(WHO, {'name': 'given-out.example.com.', 'algorithm': 'hmac-sha256', 'scope': 'POOL',
                                      'resource_id': pool.id, 'secret': 'c2VjcmV0IHNlY3JldCBzZWNyZXQ='})
        assert central.update_pool(WHO, signed).also_notifies == tuple(signed['also_notifies'])

    def test_a_pool_in_use_stays(self, central: Central, database: Storage) -> None:
        pool = central.create_pool(WHO, {'name': 'second', 'name_servers': SERVERS})
        domain = central.create_domain(WHO, {'name': 'example.com.', 'email': 'a@example.com', 'pool_name': 'second'})
        with pytest.raises(errors.InvalidField):
            central.update_pool(WHO, {'id': pool.id, 'name_servers': []})
        gone = central.delete_domain(WHO, domain.id)
        with pytest.raises(errors.Refused, match='still has'):
            central.delete_pool(WHO, pool.id)
        central.update_status(WHO, gone, Outcome.SUCCESS, gone.serial)
        central.delete_pool(WHO, pool.id)
        again = create(central)
        assert (again.generation, again.serial) == (3, gone.serial + 1)

    def test_new_name_servers_reach_every_domain(self, central: Central, caller: Caller,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pool_rules, 'PAGE', 2)
        made = [succeed(central, create(central, f'd{number}.example.')) for number in range(5)]
        going = central.delete_domain(WHO, create(central, 'going.example.').id)
        caller.cast_domains.clear()
        central.update_pool(WHO, {'id': made[0].pool_id, 'name_servers': ['ns9.example.net.', 'ns1.example.net.']})
        assert sorted(domain.id for _, domain in caller.cast_domains) == sorted(domain.id for domain in made)
        for domain in made:
            found = central.get_domain(WHO, domain.id)
            assert (found.serial, found.action, found.status) == (domain.serial + 1, Action.UPDATE, Status.PENDING)
            soa, ns = sorted(central.find_recordsets(WHO, domain.id), key=lambda each: each.type, reverse=True)
            assert soa.records[0].data.startswith('ns9.example.net. ')
            assert [(record.data, record.task) for record in ns.records] == [
                ('ns1.example.net.', Task.NONE), ('ns9.example.net.', Task.ADD)]
            assert succeed(central, found).status is Status.ACTIVE
        assert central.get_domain(WHO, going.id).serial == going.serial

    def test_what_was_interrupted_between_pages_is_resumed_where_it_was(
            self, central: Central, caller: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pool_rules, 'PAGE', 2)
        made = [create(central, f'd{number}.example.') for number in range(5)]
        page = domain_changes.update_name_servers
        pages: list[str] = []

        def dying(tx: Tx, renewal: NameserverUpdate, after_id: str, *arguments: Any) -> Any:
            pages.append(after_id)
            if len(pages) == 2:
                raise SystemExit
            return page(tx, renewal, after_id, *arguments)

        monkeypatch.setattr(domain_changes, 'update_name_servers', dying)
        with pytest.raises(SystemExit):
            central.update_pool(WHO, {'id': made[0].pool_id, 'name_servers': ['ns9.example.net.']})
        central.backlog.resume_renewals()
        assert len(pages) == 2, 'whoever does it may be at it still'
        clock.now += 61
        done = [each for domain in made if (each := central.get_domain(WHO, domain.id)).serial != domain.serial]
        caller.cast_domains.clear()
        central.backlog.resume_renewals()
        assert len(done) == 2 and len(caller.cast_domains) == 3
        for domain in made:
            found = central.find_recordsets(WHO, domain.id, PageRequest({'type': 'NS'}))
            assert 'ns9.example.net.' in [record.data for record in found[0].records]
        assert [central.get_domain(WHO, each.id).serial for each in done] == [each.serial for each in done]
        clock.now += 61
        central.backlog.resume_renewals()
        assert len(pages) == 4, 'and that was all'

    def test_newer_name_servers_take_the_place_of_those_that_are_being_given(
            self, central: Central, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pool_rules, 'PAGE', 2)
        made = [create(central, f'd{number}.example.') for number in range(5)]
        page = domain_changes.update_name_servers

        def overtaken(tx: Tx, *arguments: Any) -> Any:
            monkeypatch.setattr(domain_changes, 'update_name_servers', page)
            nameserver_updates.begin(tx, NameserverUpdate(made[0].pool_id, 'f' * 32, False, ''), utcnow(), utcnow())
            return page(tx, *arguments)

        monkeypatch.setattr(domain_changes, 'update_name_servers', overtaken)
        central.update_pool(WHO, {'id': made[0].pool_id, 'name_servers': ['ns9.example.net.']})
        rest = [each for each in made if central.get_domain(WHO, each.id).serial == each.serial]
        assert len(rest) == 3, 'the newer one has them all before it'

    def test_the_same_name_servers_again_change_nothing(self, central: Central, caller: Caller) -> None:
        domain = create(central)
        central.update_pool(WHO, {'id': domain.pool_id, 'name_servers': SERVERS})
        assert central.get_domain(WHO, domain.id).serial == domain.serial
        assert len(caller.cast_domains) == 1


def test_changes_of_what_belongs_to_no_zone_are_notified(database: Storage, caller: Caller, clock: Clock,
                                                         central: Central) -> None:
    kept = Recorder()
    ours = Central(database, PoolManagerClient(caller), Inline(), notifications=kept,
                   settings=central_settings())
    pool = ours.create_pool(WHO, {'name': 'second'})
    key = {'name': 'one.', 'algorithm': 'hmac-sha256', 'scope': 'POOL', 'resource_id': pool.id, 'secret': 'c2VjcmV0'}
    lists: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ('tsigkey', key, {'name': 'two.'}), ('tld', {'name': 'com'}, {'name': 'org'}),
        ('blacklist', {'pattern': 'a'}, {'pattern': 'b'})]
    for kind, values, others in lists:
        entries = getattr(ours, f'{kind}s')
        made = entries.create(WHO, values)
        changed = entries.update(WHO, made.id, others)
        assert others.items() <= dataclasses.asdict(changed).items()
        entries.delete(WHO, made.id)
        with pytest.raises(errors.PoolError):
            entries.delete(WHO, made.id)
    ours.stop()
    assert [event for event, _ in kept.told] == [
        'dns.pool.create', *(f'dns.{kind}.{verb}' for kind, *_ in lists for verb in ('create', 'update', 'delete'))]


SERVER_IDS = [new_id(), new_id()]
SECRET = 'c2VjcmV0IG9mIGEga2V5Lg=='
KEY = TsigKey('one.silver.example.', 'hmac-sha256', SECRET)


class Two(Place):
    """The pool ``default``, which the API was configured with, and the pool ``silver``."""

    def __init__(self, folder: pathlib.Path) -> None:
        super().__init__(folder)
        self.silver = self.central.create_pool(EVERYBODY, {'name': 'silver', 'name_servers': ['ns.silver.example.']})
        self.storage.run(pool_servers.register, 'silver', [
            PoolServer(each, '', f'fake:192.0.2.{number}:53', 'fake', ServerState.ACTIVE, 'f' * 64, number,
                       key_name=KEY.name) for number, each in enumerate(SERVER_IDS, 11)], False, True, utcnow())
        self.storage.run(pools.publish, Pool('silver', threshold_percentage=50, catalog_zone='catalog.silver.example.',
                                             count_joining_servers=True, probe_interval=2.5), utcnow())

    def ask(self, path: str, method: str = 'GET', body: Any = None, role: str = 'admin') -> Any:
        answer = self.api.simulate_request(method, path, json=body, headers={'X-Auth-Token': token('alpha', role)})
        return answer if answer.status_code >= 400 else answer.json

    def zone(self, name: str) -> str:
        made = self.central.create_domain(Context(project_id='alpha'), {
            'name': name, 'email': 'hostmaster@example.com', 'pool_id': self.silver.id})
        return made.id


@pytest.fixture
def two(tmp_path: pathlib.Path) -> Iterator[Two]:
    place = Two(tmp_path)
    yield place
    place.close()


def labels(found: Any) -> list[str]:
    return [each['name'] for each in found['servers']]


def test_the_servers_of_all_pools_are_listed_or_those_of_one(two: Two) -> None:
    silver = ['fake:192.0.2.11:53', 'fake:192.0.2.12:53']
    assert labels(two.ask('/v2/servers')) == ['fake:192.0.2.1:53', *silver]
    found = two.ask(f'/v2/servers?pool_id={two.silver.id}')
    assert labels(found) == silver
    assert {each['pool_id'] for each in found['servers']} == {str(uuid.UUID(two.silver.id))}
    assert {each['key_name'] for each in found['servers']} == {'one.silver.example.'}
    assert SECRET not in str(found)
    assert two.ask(f'/v2/servers?pool_id={new_id()}').json['type'] == 'pool_not_found'


def test_a_server_is_compared_by_the_pool_managers_of_its_pool(two: Two) -> None:
    two.ask(f'/v2/servers/{SERVER_IDS[0]}/resync', 'POST')
    two.ask(f'/v2/servers/{two.server_id}/resync', 'POST')
    assert [each[:2] for each in two.pool_managers.asked] == [('silver', SERVER_IDS[0]), ('default', two.server_id)]
    assert two.ask(f'/v2/servers/{new_id()}/resync', 'POST').json['type'] == 'server_not_found'


def test_the_configuration_of_a_pool_is_read_anew_by_its_pool_managers(two: Two) -> None:
    two.ask('/v2/servers/reload', 'POST')
    two.ask('/v2/servers/reload', 'POST', {'pool_id': two.silver.id})
    unborn = two.central.create_pool(EVERYBODY, {'name': 'unborn'})
    assert 'no pool manager was ever started for the pool unborn' in two.ask(
        '/v2/servers/reload', 'POST', {'pool_id': unborn.id}).json['message']
    assert two.pool_managers.asked == [('default',), ('silver',)]


def test_how_many_servers_a_zone_needs_is_told_of_every_pool(two: Two) -> None:
    zone = two.zone('needs.example.')
    shown = two.ask(f'/v2/zones/{zone}/servers')
    assert (shown['threshold_percentage'], shown['needed'], shown['total']) == (50, 1, 2)
    told = two.ask(f'/v2/zones/{zone}/explain')
    assert told['lacking'] == (f'The pool needs 1 of 2 servers at serial {told["serial"]} (threshold 50 %), and has 0.')
    waited = two.ask(f'/v2/zones/{zone}/wait?timeout=0')
    assert (waited['needed'], waited['current'], waited['timed_out']) == (1, 0, True)
    [ns] = two.ask(f'/v2/zones/{zone}/recordsets?type=NS')['recordsets']
    assert two.ask(f'/v2/zones/{zone}/recordsets/{ns["id"]}/servers')['needed'] == 1


def test_servers_that_join_count_where_their_pool_has_it_so(two: Two) -> None:
    zone = two.zone('joins.example.')
    server = two.storage.read(pool_servers.SERVERS.get, SERVER_IDS[0])
    joining = pool_servers.in_state(server, ServerState.JOINING, utcnow())
    assert two.storage.run(pool_servers.save, joining, utcnow())
    assert two.ask(f'/v2/zones/{zone}/servers')['total'] == 2
    two.storage.run(pools.publish, Pool('silver', threshold_percentage=100), utcnow())
    shown = two.ask(f'/v2/zones/{zone}/servers')
    assert (shown['total'], shown['needed']) == (1, 1)


def test_a_pool_shows_what_its_pool_managers_published(two: Two) -> None:
    shown = two.ask(f'/v2/pools/{two.silver.id}')
    assert [shown[each] for each in ('threshold_percentage', 'catalog_zone', 'count_joining_servers')] == [
        50, 'catalog.silver.example.', True]
    assert two.storage.read(pools.get, two.silver.id).probe_interval == 2.5
    unborn = two.central.create_pool(EVERYBODY, {'name': 'unborn'})
    shown = two.ask(f'/v2/pools/{unborn.id}')
    assert [shown[each] for each in ('threshold_percentage', 'catalog_zone', 'count_joining_servers')] == [None] * 3


def test_a_pool_is_made_changed_and_deleted(two: Two) -> None:
    wanted = {'name': 'bronze', 'description': 'the third', 'name_servers': ['ns.bronze.example.'],
              'also_notifies': ['192.0.2.53:53']}
    made = two.ask('/v2/pools', 'POST', wanted)
    assert (made['name'], made['description'], made['also_notifies']) == ('bronze', 'the third', ['192.0.2.53:53'])
    assert two.ask('/v2/pools', 'POST', wanted).json['type'] == 'duplicate_pool'
    assert two.ask('/v2/pools', 'POST', {'name': '-name'}).json['type'] == 'invalid_object'
    path = f'/v2/pools/{made["id"]}'
    changed = two.ask(path, 'PATCH', {'name_servers': ['ns2.bronze.example.'], 'also_notifies': []})
    assert (changed['ns_records'], changed['also_notifies']) == (
        [{'hostname': 'ns2.bronze.example.', 'priority': 1}], [])
    assert two.ask(path, 'PATCH', {}).status_code == 400
    assert two.ask(path, 'PATCH', {'name': 'copper'})['name'] == 'copper'
    assert two.ask(path, 'PATCH', {'name': 'silver'}).json['type'] == 'duplicate_pool'
    assert 'cannot be changed' in two.ask(path, 'PATCH', {'project_id': 'beta'}).text
    assert two.api.simulate_delete(path, headers={'X-Auth-Token': token('alpha', 'admin')}).status_code == 204
    assert two.ask(path).json['type'] == 'pool_not_found'


def test_ns_records_and_attributes_as_designate_has_them(two: Two) -> None:
    wanted = {'name': 'Example Pool', 'project_id': '1', 'attributes': {'service_tier': 'gold', 'name_server': 'x'},
              'ns_records': [{'hostname': 'ns2.example.org.', 'priority': 20},
                             {'hostname': 'ns1.example.org.', 'priority': 5}]}
    made = two.ask('/v2/pools', 'POST', wanted)
    assert {name: made[name] for name in wanted} == {**wanted, 'ns_records': wanted['ns_records'][::-1]}
    path = f'/v2/pools/{made["id"]}'
    assert two.ask(path)['ns_records'] == made['ns_records']
    assert two.ask(path, 'PATCH', {'description': 'only this'})['ns_records'] == made['ns_records']
    equal = [{'hostname': host, 'priority': 1} for host in ('b.example.org.', 'a.example.org.')]
    assert two.ask(path, 'PATCH', {'ns_records': equal, 'attributes': {}})['ns_records'] == equal[::-1]
    assert (two.ask(path)['attributes'], two.ask(path)['ns_records']) == ({}, equal[::-1])
    listed = two.ask('/v2/pools?name=Example*')['pools']
    assert [(each['name'], each['ns_records']) for each in listed] == [('Example Pool', equal[::-1])]
    for wrong, field in (({'hostname': 'ns1_example_org_', 'priority': 1}, 'hostname'),
                         ({'hostname': 'ns1.example.org.', 'priority': 0}, 'priority'),
                         ({'hostname': 'ns1.example.org.', 'priority': 10001}, 'priority'),
                         ({'hostname': 'ns1.example.org.'}, 'priority')):
        refused = two.ask(path, 'PATCH', {'ns_records': [wrong]})
        assert refused.json['type'] == 'invalid_object'
        assert refused.json['errors']['errors'][0]['path'][-1] == field
    assert two.ask(path, 'PATCH', {'name': 'x' * 51}).json['type'] == 'invalid_object'
    both = two.ask(path, 'PATCH', {'ns_records': equal, 'name_servers': ['ns1.example.org.']})
    assert both.json['type'] == 'invalid_object'


def test_a_pool_keeps_its_name_while_its_programs_run(two: Two) -> None:
    two.storage.run(heartbeats.say, 'pool_manager', 'one.example.com', 'silver', 'UP', {}, utcnow())
    path = f'/v2/pools/{two.silver.id}'
    assert two.ask(path, 'PATCH', {'name': 'gold'}).json['type'] == 'pool_in_use'
    assert two.ask(path, 'PATCH', {'name': 'silver', 'description': 'the same name'})['description']
    two.storage.run(heartbeats.say, 'pool_manager', 'one.example.com', 'silver', 'DOWN', {}, utcnow())
    assert two.ask(path, 'PATCH', {'name': 'gold'})['name'] == 'gold'


def test_a_pool_with_zones_stays_and_one_whose_zones_are_gone_goes_with_its_servers(two: Two) -> None:
    path = f'/v2/pools/{two.silver.id}'
    zone = two.zone('stays.example.')
    assert two.ask(path, 'DELETE').json['type'] == 'pool_not_empty'
    two.central.delete_domain(Context(project_id='alpha'), zone)
    gone = two.central.get_domain(Context(project_id='alpha'), zone)
    two.central.update_status(EVERYBODY, gone, Outcome.SUCCESS, gone.serial)
    for service in ('pool_manager', 'minidns'):
        two.storage.run(heartbeats.say, service, 'one.example.com', 'silver', 'UP', {}, utcnow())
    refused = two.ask(path, 'DELETE')
    assert (refused.status_code, refused.json['type'], refused.json['message']) == (
        409, 'pool_in_use', 'Programs of the pool silver are running: minidns on one.example.com, pool_manager on '
        'one.example.com. Stop them; a killed program counts for 30 s more.')
    two.storage.run(heartbeats.say, 'pool_manager', 'one.example.com', 'silver', 'DOWN', {}, utcnow())
    two.storage.run(heartbeats.say, 'minidns', 'one.example.com', 'silver', 'UP', {}, utcnow() - timedelta(seconds=40))
    assert two.api.simulate_delete(path, headers={'X-Auth-Token': token('alpha', 'admin')}).status_code == 204
    assert labels(two.ask('/v2/servers')) == ['fake:192.0.2.1:53']


def test_no_zone_is_made_in_the_catalog_of_its_pool(two: Two) -> None:
    for name in ('catalog.silver.example.', 'zones.catalog.silver.example.'):
        with pytest.raises(InvalidField, match="^name: it lies in the pool's catalog zone, catalog.silver.example"):
            two.zone(name)


def test_the_status_page_shows_the_pool_asked_for_and_how_the_others_are(two: Two) -> None:
    headers = {'X-Auth-Token': token('alpha', 'operator'), 'Accept': 'text/html'}

    def page(query: str) -> str:
        return two.api.simulate_get(f'/status{query}', headers=headers).text

    first, second = page(''), page('?pool=silver')
    assert '<h1>Pool default</h1>' in first and 'fake:192.0.2.1:53' in first and 'fake:192.0.2.11:53' not in first
    assert 'href="/status?pool=silver"' in first
    assert '2 servers are active, and every one has all of 0 zones.' in first
    assert '<h1>Pool silver</h1>' in second and 'fake:192.0.2.11:53' in second and 'pool=default' in second
    wrong = two.zone('wrong.example.')
    two.storage.run(lambda tx: tx.execute(
        sa.update(domains).where(domains.c.id == wrong).values(status=Status.ERROR)).close())
    assert '2 servers are active; a zone is in ERROR.' in page('') and 'a zone is in ERROR' in page('?pool=silver')
    assert two.ask('/status?pool=none').json['type'] == 'pool_not_found'
