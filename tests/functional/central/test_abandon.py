"""Domains that are abandoned, on each database: what Central keeps, ends and refuses."""

from __future__ import annotations

import pytest

from designate_pool import errors
from designate_pool.central.service import Central
from designate_pool.model import (Action, Context, Outcome, Pool, PoolServer, ServerState, ServerStatus, Status, new_id,
                                  utcnow)
from designate_pool.storage.operations import pool_servers, rrset_ownership, server_statuses
from designate_pool.storage.reporting import invariants
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains, pools as pool_store
from tests.fixtures.central import WHO, Caller, create, succeed

SERVER = new_id()


def put_row(database: Storage, domain_id: str, action: Action) -> None:
    row = ServerStatus(SERVER, domain_id, action, 1, new_id(), status=Outcome.ERROR, next_attempt_at=utcnow())
    database.run(server_statuses.write, [row], utcnow())


@pytest.fixture(autouse=True)
def server(central: Central, database: Storage) -> None:
    database.run(pool_servers.register, 'default', [PoolServer(SERVER, '', 'fake:one', 'fake', ServerState.ACTIVE)],
                 False, True, utcnow())


def test_an_abandoned_domain_is_gone_and_nothing_is_done_on_its_servers(
        central: Central, database: Storage, caller: Caller) -> None:
    domain = succeed(central, create(central))
    put_row(database, domain.id, Action.UPDATE)
    caller.cast_domains.clear()
    gone = central.abandon_domain(WHO, domain.id)
    assert (gone.status, gone.action, gone.abandoned) == (Status.DELETED, Action.NONE, True)
    assert caller.cast_domains == []
    assert database.read(server_statuses.for_domains, [domain.id])[domain.id] == []
    assert not database.read(domains.get, domain.id).is_of('default')
    assert central.find_domains(WHO) == []
    with pytest.raises(errors.DomainNotFound):
        central.abandon_domain(WHO, domain.id)
    assert database.read(invariants.ever_used, [domain.name]) == set()


def test_created_again_it_takes_over_what_is_there(central: Central, database: Storage) -> None:
    domain = succeed(central, create(central))
    database.run(rrset_ownership.note, SERVER, domain.id, ['www.example.com.\tA'], [])
    gone = central.abandon_domain(WHO, domain.id)
    again = create(central)
    assert again.serial > gone.serial > domain.serial and again.generation > gone.generation
    assert database.read(rrset_ownership.keys, SERVER, again.id) == {'www.example.com.\tA'}
    assert database.read(invariants.ever_used, [domain.name]) == {domain.name}


def test_deletions_that_have_begun_end_with_it(central: Central, database: Storage) -> None:
    former = central.delete_domain(WHO, succeed(central, create(central)).id)
    put_row(database, former.id, Action.DELETE)
    domain = create(central)
    central.delete_domain(WHO, domain.id)
    put_row(database, domain.id, Action.DELETE)
    central.abandon_domain(WHO, domain.id)
    found = database.read(domains.get_many, [former.id, domain.id])
    assert [(each.status, each.action, each.abandoned) for each in found.values()] == [
        (Status.DELETED, Action.NONE, True)] * 2
    assert database.read(server_statuses.for_domains, [*found]) == {former.id: [], domain.id: []}


def test_a_domain_that_has_the_name_since_stays(central: Central, database: Storage) -> None:
    former = central.delete_domain(WHO, succeed(central, create(central)).id)
    put_row(database, former.id, Action.DELETE)
    lives = succeed(central, create(central))
    put_row(database, lives.id, Action.UPDATE)
    assert central.abandon_domain(WHO, former.id).id == former.id
    assert database.read(server_statuses.for_domains, [former.id])[former.id] == []
    assert central.get_domain(WHO, lives.id) == lives
    assert len(database.read(server_statuses.for_domains, [lives.id])[lives.id]) == 1


def test_an_abandonment_whose_answer_was_lost_succeeds(central: Central) -> None:
    domain = create(central)
    who = Context('req-1', all_projects=True, operation_id=new_id())
    assert central.abandon_domain(who, domain.id).id == central.abandon_domain(who, domain.id).id


def test_what_is_refused(central: Central, database: Storage) -> None:
    domain = succeed(central, create(central))
    with pytest.raises(errors.DomainNotFound):
        central.abandon_domain(Context(project_id='other'), domain.id)
    central.share_domain(WHO, domain.id, {'target_project_id': 'other'})
    with pytest.raises(errors.Forbidden):
        central.abandon_domain(Context(project_id='other'), domain.id)
    with pytest.raises(errors.Refused, match='is shared with'):
        central.abandon_domain(WHO, domain.id)
    database.run(pool_store.publish, Pool('default', catalog_zone='catalog.example.'), utcnow())
    with pytest.raises(errors.Refused, match='the catalog zone catalog.example.'):
        central.abandon_domain(WHO, domain.id, delete_shares=True)
    database.run(pool_store.publish, Pool('default'), utcnow())
    assert not central.abandon_domain(WHO, domain.id, delete_shares=True).shared


def test_one_that_is_being_moved(central: Central, database: Storage) -> None:
    silver = central.create_pool(WHO, {'name': 'silver', 'name_servers': ['ns.silver.example.']})
    database.run(pool_servers.register, 'silver', [PoolServer(new_id(), '', 'fake:two', 'fake', ServerState.ACTIVE)],
                 False, True, utcnow())
    domain = succeed(central, create(central))
    moved = central.move_domain(WHO, domain.id, silver.id)
    with pytest.raises(errors.Refused, match='still being moved'):
        central.abandon_domain(WHO, domain.id)
    succeed(central, moved)
    gone = central.abandon_domain(WHO, domain.id)
    assert (gone.pool_name, gone.former_pool_id) == ('silver', None)
