"""Deleted domains that are restored, or purged."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from designate_pool.central.purger import Purger
from designate_pool.central.service import Central
from designate_pool.model import (Action, Context, Domain, Outcome, PageRequest, Pool, PoolServer, ServerState,
                                  ServerStatus, Status, new_id, utcnow)
from designate_pool.serial import newer
from designate_pool.settings import CentralSettings
from designate_pool.storage.operations import pool_servers, rrset_ownership, server_statuses
from designate_pool.storage.serving import catalog
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains, pools as pool_store
from tests.fixtures.central import SERVERS, WHO, WWW, Caller, Clock, contents, create, refused, started, succeed

RED, BLUE = Context(project_id='red'), Context(project_id='blue')
SERVER = new_id()


def deleted(central: Central, domain: Domain, who: Context = RED) -> Domain:
    """The domain, deleted on all servers."""
    gone = central.delete_domain(who, domain.id, delete_shares=True)
    central.update_status(WHO, gone, Outcome.SUCCESS, gone.serial)
    return gone


def listed(central: Central, who: Context = RED) -> list[str]:
    return [each.id for each in central.find_deleted_domains(who)]


@pytest.mark.all_databases
def test_a_restored_domain_is_as_it_was(central: Central, caller: Caller) -> None:
    domain = succeed(central, create(central, 'example.com.', WWW, who=RED))
    www, = central.find_recordsets(RED, domain.id, PageRequest({'name': 'www.example.com.'}))
    central.update_recordset(RED, domain.id, www.id, {'description': 'the site'})
    central.update_domain(RED, domain.id, {'attributes': '{"tier": "one"}', 'description': 'ours'})
    central.share_domain(RED, domain.id, {'target_project_id': 'blue'})
    before = central.get_domain(RED, domain.id)
    sets = {each.id: (each.name, each.description) for each in central.find_recordsets(RED, domain.id)}
    had = contents(central, domain)
    gone = deleted(central, before)
    assert listed(central) == [domain.id] == listed(central, WHO) and listed(central, BLUE) == []
    for who in (RED, BLUE):
        assert refused(central.get_domain, who, domain.id) == 'zone_not_found'
        assert central.find_domains(who) == []
        assert central.find_all_recordsets(who) == []
    caller.cast_domains.clear()
    back = central.restore_domain(RED, domain.id)
    assert (back.id, back.action, back.status, back.deleted_at) == (domain.id, Action.CREATE, Status.PENDING, None)
    assert back.generation == gone.generation + 1 and newer(back.serial, gone.serial)
    assert (back.first_serial, back.reported_serial) == (back.serial, None)
    assert (back.description, back.attributes, back.created_at) == (
        before.description, before.attributes, before.created_at)
    assert [each for _, each in caller.cast_domains] == [back]
    assert {each.id: (each.name, each.description) for each in central.find_recordsets(RED, domain.id)} == sets
    assert contents(central, back) == had
    assert back.shared and [each.id for each in central.find_domains(BLUE)] == [domain.id]
    assert succeed(central, back).status is Status.ACTIVE
    assert listed(central) == [] and refused(central.restore_domain, RED, domain.id) == 'deleted_zone_not_found'


def test_versions_are_shown_to_the_owner_of_their_time(central: Central) -> None:
    domain = succeed(central, create(central, 'example.com.', WWW, who=RED))
    central.update_domain(RED, domain.id, {'ttl': 1200})
    central.give_domain(WHO, domain.id, 'blue')
    central.update_domain(BLUE, domain.id, {'ttl': 2400})
    deleted(central, domain, BLUE)

    def kinds(who: Context, *page: int) -> list[str]:
        return [version.kind.value for version in central.find_versions(who, domain.id, *(page or (10,)))]

    assert kinds(WHO) == ['DELETE', 'API', 'OWNER', 'API', 'CREATE']
    assert kinds(RED) == ['API', 'CREATE']
    assert kinds(BLUE) == ['DELETE', 'API', 'OWNER']
    first, second = central.find_versions(WHO, domain.id, 2)
    assert kinds(WHO, 10, second.number) == ['OWNER', 'API', 'CREATE'] and first.number > second.number
    assert refused(central.find_versions, Context(project_id='green'), domain.id, 10) == 'zone_not_found'
    central.purge_domain(BLUE, domain.id)
    assert kinds(WHO) == ['DELETE', 'CREATE']


@pytest.mark.all_databases
def test_twice_and_by_a_request_whose_answer_was_lost(central: Central) -> None:
    domain, serials = create(central, who=RED), []
    for _ in range(3):
        deleted(central, domain)
        who = Context(project_id='red', operation_id=new_id())
        back = central.restore_domain(who, domain.id)
        assert central.restore_domain(who, domain.id).serial == back.serial
        serials.append(back.serial)
    assert all(newer(after, before) for before, after in zip(serials, serials[1:]))


def test_a_deletion_that_comes_a_second_time_leaves_the_restored_domain_alone(central: Central) -> None:
    domain = succeed(central, create(central, 'example.com.', WWW, who=RED))
    request = dataclasses.replace(RED, operation_id=new_id())
    deleted(central, domain, request)
    restored = central.restore_domain(RED, domain.id)
    assert central.delete_domain(request, domain.id).action is restored.action
    assert central.get_domain(RED, domain.id).action is Action.CREATE
    assert central.delete_domain(RED, domain.id).action is Action.DELETE


def test_while_a_server_has_not_confirmed_the_deletion(central: Central, database: Storage, caller: Caller) -> None:
    database.run(pool_servers.register, 'default', [PoolServer(SERVER, '', 'fake:one', 'fake', ServerState.ACTIVE)],
                 False, True, utcnow())
    domain = succeed(central, create(central, who=RED))
    rows = [ServerStatus(SERVER, domain.id, action, domain.serial, new_id(), claimed_by='me', next_attempt_at=utcnow(),
                         claimed_until=utcnow() + timedelta(hours=1)) for action in (Action.UPDATE, Action.DELETE)]
    gone = central.delete_domain(RED, domain.id)
    database.run(server_statuses.write, rows, utcnow())
    assert listed(central) == [domain.id]
    caller.cast_domains.clear()
    back = central.restore_domain(RED, domain.id)
    (_, leftover), (_, cast) = caller.cast_domains
    assert cast == back and (leftover.moved_id, leftover.name) == (domain.id, domain.name)
    assert leftover.is_going and gone.generation <= leftover.generation < back.generation
    statuses = database.read(server_statuses.for_domains, [domain.id, leftover.id])
    assert statuses[domain.id] == []
    assert {(row.action, row.claimed_by) for row in statuses[leftover.id]} == {
        (Action.UPDATE, 'me'), (Action.DELETE, 'me')}
    assert listed(central) == [] and [each.id for each in central.find_domains(RED)] == [domain.id]
    # A late report of the former deletion changes nothing, nor does what a pool manager took for its end.
    central.update_status(WHO, gone, Outcome.SUCCESS, gone.serial)
    assert central.get_domain(RED, domain.id).status is Status.PENDING
    database.run(server_statuses.write, [ServerStatus(SERVER, domain.id, Action.UPDATE, back.serial)], utcnow())
    database.run(server_statuses.purge_domains, [domain.id], [SERVER], utcnow())
    assert len(database.read(server_statuses.for_domains, [domain.id])[domain.id]) == 1
    assert central.delete_domain(RED, domain.id).generation == back.generation + 1


def test_of_two_of_a_name_each_by_its_id(central: Central, database: Storage) -> None:
    first = create(central, 'example.com.', WWW, who=RED)
    database.run(rrset_ownership.note, SERVER, first.id, ['www.example.com.\tA'], [])
    deleted(central, first)
    second = create(central, who=RED)
    gone = deleted(central, second)
    assert set(listed(central)) == {first.id, second.id}
    back = central.restore_domain(RED, first.id)
    assert newer(back.serial, gone.serial) and back.generation == gone.generation + 1
    assert database.read(rrset_ownership.keys, SERVER, first.id) == {'www.example.com.\tA'}
    assert refused(central.restore_domain, RED, second.id) == 'duplicate_zone'
    deleted(central, back)
    assert newer(central.restore_domain(RED, second.id).serial, back.serial)


@pytest.mark.parametrize(('name', 'owner', 'error'), [
    ('a.example.com.', RED, 'duplicate_zone'), ('a.example.com.', BLUE, 'name_taken'),
    ('example.com.', BLUE, 'illegal_child'), ('b.a.example.com.', BLUE, 'illegal_parent')],
    ids=['taken', 'taken by another', 'below another', 'above another'])
def test_a_name_that_is_taken_since(central: Central, name: str, owner: Context, error: str) -> None:
    domain = create(central, 'a.example.com.', who=RED)
    deleted(central, domain)
    taken = create(central, name, who=owner)
    assert refused(central.restore_domain, RED, domain.id) == error == refused(create, central, domain.name, who=RED)
    deleted(central, taken, owner)
    assert central.restore_domain(RED, domain.id).id == domain.id


def test_records_that_belong_to_a_zone_above_or_below_since(central: Central) -> None:
    domain = create(central, 'a.example.com.', ('x.b.a.example.com.', 'A', ['192.0.2.1']), who=RED)
    deleted(central, domain)
    below = create(central, 'b.a.example.com.', who=RED)
    assert refused(central.restore_domain, RED, domain.id) == 'invalid_object'
    deleted(central, below)
    above = create(central, 'example.com.', ('www.a.example.com.', 'A', ['192.0.2.1']), who=RED)
    assert refused(central.restore_domain, RED, domain.id) == 'records_in_the_way'
    deleted(central, above)
    central.restore_domain(RED, domain.id)


@pytest.mark.all_databases
def test_quotas_and_lists(database: Storage, caller: Caller, clock: Clock) -> None:
    for counts in (False, True):
        with started(database, caller, count_deleted_zones=counts, quota_zones=1) as central:
            domain = create(central, 'example.com.', WWW, who=RED)
            deleted(central, domain)
            if counts:
                assert refused(create, central, 'example.org.', who=RED) == 'over_quota'
            else:
                other = create(central, 'example.org.', who=RED)
                assert refused(central.restore_domain, RED, domain.id) == 'over_quota'
                central.purge_domain(RED, deleted(central, other).id)
            central.set_quotas(WHO, 'red', {'zone_records': 0})
            assert refused(central.restore_domain, RED, domain.id) == 'over_quota'
            central.reset_quotas(WHO, 'red')
            entry = central.blacklists.create(WHO, {'pattern': r'^example\.com\.$'})
            assert refused(central.restore_domain, RED, domain.id) == 'invalid_zone_name'
            central.blacklists.delete(WHO, entry.id)
            central.restore_domain(RED, domain.id)
            central.purge_domain(RED, deleted(central, domain).id)


def test_the_pool_has_changed(central: Central, database: Storage) -> None:
    domain = create(central, 'example.com.', WWW, who=RED)
    deleted(central, domain)
    pool, = central.find_pools(WHO)
    database.run(pool_store.publish, Pool('default', catalog_zone='catalog.example.'), utcnow())
    central.update_pool(WHO, {'id': pool.id, 'name_servers': [SERVERS[1], 'ns3.example.net.']})
    former = database.run(catalog.establish, pool.id, utcnow())
    back = central.restore_domain(RED, domain.id)
    assert contents(central, back) == [
        'example.com. NS ns2.example.net.', 'example.com. NS ns3.example.net.',
        'www.example.com. A 192.0.2.1', 'www.example.com. A 192.0.2.2']
    head: Any = database.read(catalog.head, 'default')
    assert former is not None and newer(head.serial, former)
    silver = central.create_pool(WHO, {'name': 'silver', 'name_servers': ['ns.silver.example.']})
    database.run(pool_servers.register, 'silver', [PoolServer(new_id(), '', 'fake:two', 'fake', ServerState.ACTIVE)],
                 False, True, utcnow())
    moved = central.move_domain(WHO, succeed(central, back).id, silver.id)
    deleted(central, succeed(central, moved))
    assert central.restore_domain(RED, domain.id).pool_name == 'silver'
    deleted(central, domain)
    central.delete_pool(WHO, silver.id)
    assert refused(central.restore_domain, RED, domain.id) == 'pool_was_deleted'


def test_an_abandoned_one_is_taken_over_from_its_servers(central: Central) -> None:
    domain = succeed(central, create(central, 'example.com.', WWW, who=RED))
    central.abandon_domain(RED, domain.id)
    back = central.restore_domain(RED, domain.id)
    assert not back.abandoned and not central.get_domain(RED, domain.id).abandoned
    assert back.is_of('default') and newer(back.serial, domain.serial)


def test_it_is_kept_from_its_deletion_on(central: Central, database: Storage, clock: Clock) -> None:
    domain = create(central, 'example.com.', WWW, who=RED)
    keeper = Purger(database, CentralSettings(deleted_retention=1000))
    gone = central.delete_domain(RED, domain.id)
    clock.now += 990
    central.update_status(WHO, gone, Outcome.SUCCESS, gone.serial)
    while keeper.purge():
        pass
    assert listed(central) == [domain.id]
    clock.now += 20
    while keeper.purge():
        pass
    assert listed(central) == [] and refused(central.restore_domain, RED, domain.id) == 'deleted_zone_not_found'
    assert create(central, who=RED).generation == gone.generation + 1


def test_purged_it_leaves_its_serial_and_generation(central: Central, database: Storage) -> None:
    domain = create(central, 'example.com.', WWW, who=RED)
    central.share_domain(RED, domain.id, {'target_project_id': 'blue'})
    assert refused(central.purge_domain, RED, domain.id) == 'deleted_zone_not_found'
    gone = deleted(central, domain)
    for work in (central.purge_domain, central.restore_domain, central.get_deleted_domain):
        assert refused(work, BLUE, domain.id) == 'deleted_zone_not_found'
    central.purge_domain(RED, domain.id)
    assert listed(central) == [] and refused(central.restore_domain, WHO, domain.id) == 'deleted_zone_not_found'
    stored: Any = database.read(domains.get, domain.id)
    assert (stored.serial, stored.generation, stored.purged) == (gone.serial, gone.generation, True)
    again = create(central, who=RED)
    assert newer(again.serial, gone.serial) and again.generation == gone.generation + 1


def test_a_restored_domain_goes_to_another_project_by_a_new_request_only(central: Central) -> None:
    domain = succeed(central, create(central, 'example.com.', WWW, who=RED))
    former = central.create_transfer_request(RED, domain.id, {})
    deleted(central, domain)
    back = succeed(central, central.restore_domain(RED, domain.id))
    assert refused(central.create_transfer_accept, BLUE, former.id, former.key) == 'zone_transfer_request_not_found'
    request = central.create_transfer_request(RED, domain.id, {'target_project_id': 'blue'})
    assert central.create_transfer_accept(BLUE, request.id, request.key).domain_id == domain.id
    assert contents(central, central.get_domain(BLUE, domain.id)) == contents(central, back)
    assert refused(central.get_domain, RED, domain.id) == 'zone_not_found'
    # What it deletes, it restores itself, and reverts to the time from which on it has had the zone.
    deleted(central, central.get_domain(BLUE, domain.id), BLUE)
    assert listed(central) == [] and listed(central, BLUE) == [domain.id]
    central.restore_domain(BLUE, domain.id)
    assert central.plan_revert(BLUE, domain.id, str(back.serial)).changes == []
    assert refused(central.plan_revert, BLUE, domain.id, str(domain.serial)) == 'contents_not_kept'
