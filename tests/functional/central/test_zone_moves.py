"""Domains that move to other pools, on each database: what Central keeps, refuses and has done."""

from __future__ import annotations

import dataclasses
import json
import uuid
from datetime import timedelta

import pytest

from designate_pool import errors
from designate_pool.central.service import Central
from designate_pool.model import (Action, Context, Domain, Outcome, Pool, PoolServer, Report, ServerState, ServerStatus,
                                  Status, ZoneTransferIn, new_id, utcnow)
from designate_pool.storage.operations import pool_servers, rrset_ownership, server_statuses, sweeps
from designate_pool.storage.serving import catalog, zone_snapshot
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains, pools as pool_store, secondary_zones
from testing.settings import central_settings
from tests.fixtures.central import SERVERS, WHO, Caller, Clock, contents, create, succeed

HERE, THERE = new_id(), new_id()


@pytest.fixture
def silver(central: Central, database: Storage) -> Pool:
    """The pool ``silver`` with a server, and a server for the pool ``default``."""
    made = central.create_pool(WHO, {'name': 'silver', 'name_servers': ['ns.silver.example.']})
    for name, server in (('default', HERE), ('silver', THERE)):
        database.run(pool_servers.register, name, [PoolServer(server, '', f'fake:{name}', 'fake', ServerState.ACTIVE)],
                     False, True, utcnow())
    return made


def served(database: Storage, pool: str, domain: Domain) -> list[str]:
    """The name servers with which a pool serves a domain; none if it does not."""
    return [name for head in database.read(zone_snapshot.heads, [domain.name], pool).values()
            for name in head.name_servers]


def leftovers(database: Storage, domain: Domain, pool: str = 'default') -> list[Domain]:
    found = database.read(domains.unsettled, pool, utcnow() + timedelta(days=2), timedelta(0), '', 10)
    return [each for each in found if each.moved_id == domain.id]


def test_a_domain_moves_and_its_former_pool_keeps_it_until_the_new_one_serves_it(
        central: Central, silver: Pool, database: Storage, caller: Caller) -> None:
    domain = succeed(central, create(central))
    row = ServerStatus(HERE, domain.id, Action.CREATE, domain.serial, status=Outcome.SUCCESS)
    database.run(server_statuses.write, [row], utcnow())
    caller.cast_domains.clear()
    moved = central.move_domain(WHO, domain.id, silver.id)
    assert (moved.id, moved.pool_name, moved.former_pool_name, moved.status, moved.reported_serial) == (
        domain.id, 'silver', 'default', Status.PENDING, None)
    assert moved.serial != domain.serial
    assert contents(central, moved) == ['example.com. NS ns.silver.example.']
    assert len(caller.cast_domains) == 2, 'both pools are told'
    assert served(database, 'silver', domain) == served(database, 'default', domain) == ['ns.silver.example.']
    with pytest.raises(errors.Refused, match='still has'):
        central.delete_pool(WHO, domain.pool_id)
    # What the former pool had still to report says nothing about the new one.
    central.update_statuses(WHO, [Report(domain.id, Action.UPDATE, domain.generation, Outcome.SUCCESS, domain.serial),
                                  Report(domain.id, Action.UPDATE, domain.generation, Outcome.ERROR, domain.serial)])
    assert central.get_domain(WHO, domain.id) == moved
    done = succeed(central, moved)
    assert (done.status, done.pool_id, done.former_pool_id) == (Status.ACTIVE, silver.id, None)
    assert served(database, 'default', domain) == []
    [left] = leftovers(database, domain)
    assert (left.name, left.action, left.pool_name) == (domain.name, Action.DELETE, 'default')
    assert [each.domain_id for each in database.read(server_statuses.for_domains, [left.id])[left.id]] == [left.id]
    assert central.find_domains(WHO) == [done], 'nobody else sees the rest'
    central.update_status(WHO, left, Outcome.SUCCESS, left.serial)
    assert leftovers(database, domain) == []
    assert central.get_domain(WHO, domain.id) == done


def test_no_domain_moves_between_pools_with_a_common_machine(central: Central, silver: Pool,
                                                             database: Storage) -> None:
    domain = succeed(central, create(central))
    second = PoolServer(new_id(), '', 'fake:default', 'fake', ServerState.ACTIVE)
    there = PoolServer(THERE, '', 'fake:silver', 'fake', ServerState.ACTIVE)
    database.run(pool_servers.register, 'silver', [there, second], False, True, utcnow())
    with pytest.raises(errors.Refused, match='fake:default is a server of the pool default and of the pool silver'):
        central.move_domain(WHO, domain.id, silver.id)
    database.run(pool_servers.register, 'silver', [there], False, True, utcnow())
    assert central.move_domain(WHO, domain.id, silver.id).pool_name == 'silver'


def test_back_again_while_the_first_pool_still_deletes_it(central: Central, silver: Pool, database: Storage) -> None:
    domain = succeed(central, create(central))
    default = domain.pool_id
    succeed(central, central.move_domain(WHO, domain.id, silver.id))
    [left] = leftovers(database, domain)
    back = succeed(central, central.move_domain(WHO, domain.id, default))
    assert (back.pool_id, back.status, contents(central, back)) == (
        default, Status.ACTIVE, [f'example.com. NS {each}' for each in SERVERS])
    assert left.generation < back.generation, 'it is superseded'
    assert len(leftovers(database, domain, 'silver')) == 1
    again = succeed(central, central.move_domain(WHO, domain.id, silver.id))
    assert (again.pool_id, len(leftovers(database, domain))) == (silver.id, 2)


def test_back_again_it_owns_what_the_first_pool_has_not_deleted(
        central: Central, silver: Pool, database: Storage) -> None:
    domain = succeed(central, create(central))
    keys = frozenset({'www.example.com.\tA', 'example.com.\tNS'})
    database.run(rrset_ownership.note, HERE, domain.id, keys, ())
    for _ in range(2):
        succeed(central, central.move_domain(WHO, domain.id, silver.id))
        assert database.read(rrset_ownership.keys, HERE, domain.id) == frozenset()
        database.run(rrset_ownership.note, HERE, domain.id, ['www.example.com.\tA'], ())  # by a call that came late
        # The deletion is superseded now: what is not owned could be neither changed nor deleted there.
        succeed(central, central.move_domain(WHO, domain.id, domain.pool_id))
        assert database.read(rrset_ownership.keys, HERE, domain.id) == keys


def test_what_another_domain_of_the_name_has_left_in_its_new_pool_is_its_own(
        central: Central, silver: Pool, database: Storage) -> None:
    first = succeed(central, create(central))
    database.run(rrset_ownership.note, HERE, first.id, ['www.example.com.\tA'], ())
    central.delete_domain(WHO, first.id)
    second = central.create_domain(WHO, {'name': first.name, 'email': 'a@example.com', 'pool_name': 'silver'})
    assert database.read(rrset_ownership.keys, HERE, second.id) == frozenset()
    central.move_domain(WHO, second.id, first.pool_id)
    assert database.read(rrset_ownership.keys, HERE, second.id) == {'www.example.com.\tA'}


def test_what_was_left_before_the_name_was_in_another_pool_is_its_own(
        central: Central, silver: Pool, database: Storage) -> None:
    wanted = {'name': 'example.com.', 'email': 'a@example.com'}
    first = central.create_domain(WHO, {**wanted, 'pool_name': 'default'})
    database.run(rrset_ownership.note, HERE, first.id, ['www.example.com.\tA'], ())
    central.delete_domain(WHO, first.id)
    central.delete_domain(WHO, central.create_domain(WHO, {**wanted, 'pool_name': 'silver'}).id)
    third = central.create_domain(WHO, {**wanted, 'pool_name': 'default'})
    assert database.read(rrset_ownership.keys, HERE, third.id) == {'www.example.com.\tA'}


def test_back_before_the_new_pool_serves_it(central: Central, silver: Pool, database: Storage) -> None:
    domain = succeed(central, create(central))
    third = central.create_pool(WHO, {'name': 'third', 'name_servers': ['ns.third.example.']})
    database.run(pool_servers.register, 'third', [PoolServer(new_id(), '', 'fake:third', 'fake', ServerState.ACTIVE)],
                 False, True, utcnow())
    central.move_domain(WHO, domain.id, silver.id)
    with pytest.raises(errors.Refused, match='still being moved'):
        central.move_domain(WHO, domain.id, third.id)
    back = central.move_domain(WHO, domain.id, domain.pool_id)
    assert (back.pool_name, back.former_pool_name, leftovers(database, domain)) == ('default', 'silver', [])
    assert succeed(central, back).former_pool_id is None
    assert [each.pool_name for each in leftovers(database, domain, 'silver')] == ['silver']
    assert succeed(central, central.move_domain(WHO, domain.id, third.id)).pool_name == 'third'


def test_the_former_pool_keeps_it_for_a_time(central: Central, silver: Pool, database: Storage, clock: Clock,
                                             caller: Caller) -> None:
    central._settings = central_settings(pool_move_delay=60)
    domain = succeed(central, create(central))
    moved = succeed(central, central.move_domain(WHO, domain.id, silver.id))
    central.backlog.delete_from_former_pools()
    assert served(database, 'default', domain) == ['ns.silver.example.']
    caller.cast_domains.clear()
    changed = succeed(central, central.update_domain(WHO, domain.id, {'ttl': 77}))
    assert len(caller.cast_domains) == 2, 'it also gets changes'
    assert changed.former_until == moved.former_until
    row = ServerStatus(HERE, domain.id, Action.UPDATE, moved.serial)
    database.run(server_statuses.write, [row], utcnow())
    for server, behind in ((HERE, [domain.id]), (THERE, [])):
        assert database.read(sweeps.kept_behind, domain.pool_id, [server], 10) == behind
    database.run(server_statuses.write, [dataclasses.replace(row, expected_serial=changed.serial, version=2)], utcnow())
    assert database.read(sweeps.kept_behind, domain.pool_id, [HERE], 10) == []
    assert database.read(pool_servers.count_domains, domain.pool_id) == 1, 'servers that join are given it too'
    clock.now += 61
    central.backlog.delete_from_former_pools()
    assert database.read(pool_servers.count_domains, domain.pool_id) == 0
    assert served(database, 'default', domain) == []
    assert len(leftovers(database, domain)) == 1
    database.run(server_statuses.write, [ServerStatus(key, domain.id, Action.CREATE, 1) for key in (HERE, THERE)],
                 utcnow())
    strays = [database.run(pool_servers.purge_strays, key, [domain.id]) for key in (HERE, THERE)]
    assert strays == [1, 0], 'it is of the one pool no more'
    central.backlog.delete_from_former_pools()
    assert len(leftovers(database, domain)) == 1


def test_a_secondary_domain_keeps_its_serial_and_is_refreshed_by_its_new_pool(
        central: Central, silver: Pool, database: Storage, caller: Caller) -> None:
    domain = succeed(central, transferred(central))
    caller.cast_domains.clear()
    moved = central.move_domain(WHO, domain.id, silver.id)
    assert (moved.pool_name, moved.former_pool_name, moved.status, moved.action, moved.serial) == (
        'silver', 'default', Status.PENDING, Action.UPDATE, 7)
    assert contents(central, moved) == ['example.com. NS ns1.master.example.']
    assert len(caller.cast_domains) == 2, 'both pools are told'
    assert database.read(secondary_zones.masters, 'default', [domain.name]) == {
        domain.name: (domain.id, ['192.0.2.1:53'])}
    late = Report(domain.id, Action.UPDATE, domain.generation, Outcome.SUCCESS, 7, 'default')
    central.update_statuses(WHO, [late])
    assert central.get_domain(WHO, domain.id) == moved, 'its former pool says nothing about the new one'
    assert central.claim_refreshes(WHO, 'default', 60, 10) == []
    store(central, 'silver', 8)
    assert served(database, 'default', domain) and served(database, 'silver', domain)
    done = succeed(central, central.get_domain(WHO, domain.id))
    assert (done.status, done.serial, done.former_pool_id) == (Status.ACTIVE, 8, None)
    [left] = leftovers(database, domain)
    central.update_status(WHO, left, Outcome.SUCCESS, left.serial)
    assert leftovers(database, domain) == [] and served(database, 'default', domain) == []
    assert not database.read(secondary_zones.masters, 'default', [domain.name])


def test_a_secondary_domain_that_was_never_transferred(central: Central, silver: Pool, database: Storage,
                                                       caller: Caller) -> None:
    domain = central.create_domain(WHO, {'name': 'example.com.', 'masters': ['192.0.2.1']})
    moved = central.move_domain(WHO, domain.id, silver.id)
    assert (moved.status, moved.action, moved.awaits_transfer) == (Status.PENDING, Action.CREATE, True)
    assert caller.cast_domains == []
    store(central, 'silver', 7)
    assert succeed(central, central.get_domain(WHO, domain.id)).status is Status.ACTIVE


def test_a_domain_that_is_deleted_while_it_moves_is_deleted_in_both_pools(central: Central, silver: Pool,
                                                                          database: Storage, caller: Caller) -> None:
    domain = succeed(central, create(central))
    central.move_domain(WHO, domain.id, silver.id)
    caller.cast_domains.clear()
    gone = central.delete_domain(WHO, domain.id)
    assert [(method, each.pool_name) for method, each in caller.cast_domains] == [
        ('delete_domain', 'default'), ('delete_domain', 'silver')]
    [left] = leftovers(database, domain)
    for each in (gone, left):
        central.update_status(WHO, each, Outcome.SUCCESS, each.serial)
    again = create(central)
    assert (again.pool_name, again.generation > gone.generation) == ('default', True)


def transferred(central: Central) -> Domain:
    """A secondary domain in the pool ``default``, at serial 7."""
    domain = central.create_domain(WHO, {'name': 'example.com.', 'masters': ['192.0.2.1']})
    store(central, 'default', 7)
    return central.get_domain(WHO, domain.id)


def store(central: Central, pool: str, serial: int) -> None:
    [task] = central.claim_refreshes(WHO, pool, 60, 10)
    central.store_transfer(WHO, task.domain_id, task.claim, '192.0.2.1:53', ZoneTransferIn(
        serial, f'ns1.master.example. host.master.example. {serial} 3600 600 86400 300', 900,
        [('example.com.', 'NS', 300, 'ns1.master.example.')]))


def test_what_is_refused(central: Central, silver: Pool, database: Storage) -> None:
    domain = succeed(central, create(central))
    for pool_id, why in ((domain.pool_id, 'the zone is in this pool'), (new_id(), 'there is no such pool')):
        with pytest.raises(errors.InvalidField, match=why):
            central.move_domain(WHO, domain.id, pool_id)
    with pytest.raises(errors.BadInput, match='the attributes of the zone choose the pool that it is in'):
        central.move_domain(WHO, domain.id)
    empty = central.create_pool(WHO, {'name': 'empty'})
    with pytest.raises(errors.Refused, match='has no name servers'):
        central.move_domain(WHO, domain.id, empty.id)
    central.update_pool(WHO, {'id': empty.id, 'name_servers': ['ns.empty.example.']})
    with pytest.raises(errors.Refused, match='has no servers'):
        central.move_domain(WHO, domain.id, empty.id)
    database.run(pool_store.publish, Pool('silver', catalog_zone='example.com.'), utcnow())
    with pytest.raises(errors.InvalidField, match="it lies in the pool's catalog zone"):
        central.move_domain(WHO, domain.id, silver.id)
    with pytest.raises(errors.DomainNotFound):
        central.move_domain(Context(project_id='other'), domain.id, silver.id)
    central.delete_domain(WHO, domain.id)
    with pytest.raises(errors.DomainBeingDeleted):
        central.move_domain(WHO, domain.id, silver.id)


def test_attributes_choose_where_it_moves_and_name_its_pool(central: Central, silver: Pool) -> None:
    for pool, tier in ((silver.id, 'silver'), (central.find_pools(WHO, {'name': 'default'})[0].id, 'gold')):
        central.update_pool(WHO, {'id': pool, 'attributes': json.dumps({'tier': tier})})
    domain = succeed(central, central.create_domain(WHO, {
        'name': 'example.com.', 'email': 'a@example.com', 'attributes': json.dumps({'tier': 'gold'})}))
    central.update_domain(WHO, domain.id, {'attributes': json.dumps({'tier': 'silver'})})
    assert central.move_domain(WHO, domain.id).pool_name == 'silver'
    named = succeed(central, central.create_domain(WHO, {
        'name': 'example.info.', 'email': 'a@example.com', 'attributes': json.dumps({'pool_id': domain.pool_id})}))
    moved = central.move_domain(WHO, named.id, silver.id)
    assert json.loads(moved.attributes) == {'pool_id': str(uuid.UUID(silver.id))}


def test_a_move_whose_answer_was_lost_is_not_made_twice(central: Central, silver: Pool) -> None:
    domain = succeed(central, create(central))
    who = Context('req-1', all_projects=True, operation_id=new_id())
    first = central.move_domain(who, domain.id, silver.id)
    assert central.move_domain(who, domain.id, silver.id) == first


def test_the_catalogs_of_both_pools(central: Central, silver: Pool, database: Storage) -> None:
    default = central.find_pools(WHO, {'name': 'default'})[0].id
    for pool_id in (default, silver.id):
        database.run(catalog.establish, pool_id, utcnow())

    def look(pool: str, since: int) -> tuple[list[str], list[str]]:
        found = database.read(catalog.snapshot, pool, [], lambda reading: (
            [name for _, _, name in reading.members()], sorted(reading.changed(since, 100))))
        assert found is not None
        return found

    def changes(pool: str) -> int:
        found = database.read(catalog.head, pool)
        assert found is not None and found.changes is not None
        return found.changes

    domain, other = succeed(central, create(central)), succeed(central, create(central, 'example.info.'))
    here, there = changes('default'), changes('silver')
    moved = central.move_domain(WHO, domain.id, silver.id)
    assert sorted(look('default', here)[0]) == ['example.com.', 'example.info.']
    assert look('silver', there) == (['example.com.'], [domain.id])
    succeed(central, moved)
    members, changed = look('default', here)
    assert members == [other.name] and domain.id in changed, 'that it went is seen'
    assert look('silver', there) == (['example.com.'], [domain.id])
