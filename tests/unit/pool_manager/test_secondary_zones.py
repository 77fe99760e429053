"""A name that was deleted is created again as a secondary zone: servers are given that when it was transferred."""

from __future__ import annotations

import dataclasses

from designate_pool.backends.base import Capabilities
from designate_pool.model import Action, Domain, Outcome, Status
from tests.unit.pool_manager.conftest import C, Clock, ScriptedPool, all_needed, later

NAME = 'example.com.'


def deleted_but_on_one(pool: ScriptedPool) -> Domain:
    """A domain that is deleted everywhere but on a server that is down."""
    domain = pool.create()
    pool.servers[C].dead = True
    gone = pool.delete(domain)
    assert NAME in pool.servers[C].zones and pool.rows(gone)[C, Action.DELETE].status is not Outcome.SUCCESS
    pool.servers[C].calls.clear()
    return gone


def test_the_former_zone_is_deleted_while_the_new_one_waits_for_its_first_transfer(
        pool: ScriptedPool, clock: Clock) -> None:
    gone = deleted_but_on_one(pool)
    second = pool.create_secondary()
    pool.servers[C].dead = False
    later(pool, clock, 10)
    assert NAME not in pool.servers[C].zones and pool.servers[C].calls == [('delete', gone.id)]
    assert pool.get(gone).status is Status.DELETED and pool.rows(gone) == {}
    pool.transfer(7)
    pool.deliver()
    assert pool.get(second).status is Status.ACTIVE and pool.serial(C) == 7


def test_the_former_zone_is_replaced_once_the_new_one_was_transferred(pool: ScriptedPool, clock: Clock) -> None:
    gone = deleted_but_on_one(pool)
    second = pool.create_secondary()
    pool.transfer(7)
    pool.deliver()
    pool.servers[C].dead = False
    pool.servers[C].calls.clear()
    later(pool, clock, 10)
    assert pool.servers[C].calls == [('create', second.id)]
    assert pool.serial(C) == 7 and pool.rows(gone) == {}


@all_needed
def test_a_zone_that_is_transferred_while_the_former_one_is_being_deleted_is_created_after_that(
        pool: ScriptedPool, clock: Clock) -> None:
    gone = deleted_but_on_one(pool)
    second = pool.create_secondary()
    pool.servers[C].dead = False
    pool.servers[C].before_return = lambda: pool.transfer(7)
    later(pool, clock, 10)
    assert pool.servers[C].calls == [('delete', gone.id), ('create', second.id)]
    assert pool.get(second).status is Status.ACTIVE and pool.serial(C) == 7


def test_a_server_that_reads_the_catalog_has_replaced_the_former_zone_already(
        pool: ScriptedPool, clock: Clock) -> None:
    pool.pool = pool.manager.reconciler.pool = dataclasses.replace(pool.pool, catalog_zone='catalog.example.')
    pool.servers[C].capabilities = Capabilities(reads_catalog=True)
    gone = deleted_but_on_one(pool)
    pool.create_secondary()
    later(pool, clock, 10)
    assert pool.servers[C].calls == [] and pool.rows(gone) == {}
