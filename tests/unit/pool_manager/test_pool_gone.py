"""The pool is deleted, or gets another name, while its pool manager runs."""

from __future__ import annotations

import logging

import pytest
import sqlalchemy as sa

from designate_pool.model import Action, Pool, Status, new_id, utcnow
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from designate_pool.runtime import Threads
from designate_pool.storage.operations import pool_servers as server_store
from designate_pool.storage.sql import schema
from designate_pool.storage.zones import pools as pool_store
from testing.processes import wait_until
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, C, Clock, D, EditablePool, ScriptedPool, later, some


def remove(editable: EditablePool) -> PeriodicLoops:
    """The pool goes; the loops of its pool manager go on."""
    other = Pool('other', new_id(), name_servers=('ns1.example.net.',))
    editable.storage.run(pool_store.insert, other, utcnow())
    assert editable.storage.run(pool_store.delete, editable.storage.read(server_store.of_pool, 'default').pool_id)
    periodic = PeriodicLoops(editable.manager, editable.registry, Threads(), longest_pause=0.01)
    periodic.start()
    return periodic


def rows(editable: EditablePool) -> dict[str, int]:
    return editable.storage.read(lambda tx: {table.name: tx.execute(sa.select(sa.func.count()).select_from(
        table)).scalar_one() for table in schema.metadata.sorted_tables})


def test_it_says_so_once_and_does_and_writes_nothing(editable: EditablePool, caplog: pytest.LogCaptureFixture) -> None:
    domain = editable.create()
    gone = editable.central.delete_domain(CONTEXT, domain.id)
    editable.deliver()
    assert editable.get(gone).status is Status.DELETED
    periodic = remove(editable)
    before = rows(editable)
    ticks = dict(periodic.last_tick)
    wait_until(lambda: len(periodic.last_tick) == len(periodic._tasks) and all(
        at > ticks.get(name, 0.0) for name, at in periodic.last_tick.items()), 'each loop came round')
    wait_until(lambda: 'the pool default is not in the database' in caplog.text, 'it is told')
    editable.endpoint.reload()
    editable.manager.queue_changes([domain.id])
    editable.endpoint.create_domain(CONTEXT, domain)
    ticks = dict(periodic.last_tick)
    wait_until(lambda: all(at > ticks[name] for name, at in periodic.last_tick.items()), 'once more')
    assert rows(editable) == before
    editable.endpoint.stop()
    periodic.stop()
    told = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert [each.exc_info for each in told] == [None] * len(told), caplog.text
    assert sum('the pool default is not in the database' in each.getMessage() for each in told) == 1


def test_one_that_is_made_again_is_worked_for_again(editable: EditablePool) -> None:
    pool_id = editable.storage.read(server_store.of_pool, 'default').pool_id
    editable.storage.run(pool_store.insert, Pool('other', new_id()), utcnow())
    assert editable.storage.run(pool_store.delete, pool_id)
    editable.registry.refresh()
    assert editable.manager.workers == {}
    editable.storage.run(pool_store.insert, Pool('default', new_id(), name_servers=('ns1.example.net.',)), utcnow())
    editable.registry.refresh()
    assert sorted(editable.manager.workers) == sorted(SERVERS)
    domain = editable.create()
    editable.deliver()
    assert editable.get(domain).status is Status.ACTIVE


def test_rows_stay_when_the_pool_has_another_name_before_that_is_noticed(pool: ScriptedPool, clock: Clock) -> None:
    pool.registry.start()
    domain = pool.create()
    pool.servers[C].dead = True
    gone = pool.delete(domain)
    assert pool.get(gone).status is Status.DELETED and set(pool.rows(gone)) >= {(C, Action.DELETE)}
    stored, = pool.central.find_pools(CONTEXT)
    pool.central.update_pool(CONTEXT, {'id': stored.id, 'name': 'gold'})
    later(pool, clock, 60)
    pool.central.update_pool(CONTEXT, {'id': stored.id, 'name': 'default'})
    pool.servers[C].dead = False
    later(pool, clock, 600)
    assert domain.name not in pool.servers[C].zones
    assert pool.rows(gone) == {}


def test_a_server_is_not_filled_for_being_asked_under_a_former_name_of_the_pool(editable: EditablePool) -> None:
    domains = some(editable)
    editable.begin_joining(D)
    editable.filling.run()
    stored, = editable.central.find_pools(CONTEXT)
    editable.central.update_pool(CONTEXT, {'id': stored.id, 'name': 'gold'})
    editable.filling.run()
    editable.central.update_pool(CONTEXT, {'id': stored.id, 'name': 'default'})
    editable.registry.refresh()
    editable.settle()
    assert editable.states[D] == 'active'
    assert editable.servers[D].zones.keys() == {each.name for each in domains}
