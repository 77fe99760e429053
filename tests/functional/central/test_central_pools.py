"""Pools, on each database."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.central import domain_changes
from designate_pool.central.rules import pools as pool_rules
from designate_pool.central.service import Central
from designate_pool.model import Action, Outcome, PageRequest, Status, Task, utcnow
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.runtime import Inline
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import nameserver_updates
from designate_pool.storage.zones.nameserver_updates import NameserverUpdate
from testing.settings import central_settings
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
