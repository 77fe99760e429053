"""Domains that are restored while servers have yet to delete them, or to tell what they did before."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from designate_pool.model import Action, Answer, Context, Domain, Outcome, PollResult, ServerStatus, Status
from designate_pool.pool_manager.reconcile.reconciler import Reconciler
from designate_pool.storage.sql import schema
from tests.unit.pool_manager.conftest import (CONTEXT, SERVERS, A, Clock, ScriptedPool, all_needed, held_up, later,
                                              new_domain)


def restore(pool: ScriptedPool, domain: Domain) -> Domain:
    back = pool.central.restore_domain(CONTEXT, domain.id)
    pool.deliver()
    return back


def check(pool: ScriptedPool, domain: Domain) -> None:
    """It is served by all, and nothing is left of its deletions."""
    assert (pool.get(domain).status, pool.get(domain).action) == (Status.ACTIVE, Action.NONE)
    assert [pool.serial(server) for server in SERVERS] == [pool.get(domain).serial] * 3
    rows = pool.storage.read(lambda tx: tx.execute(sa.select(
        schema.pool_manager_status.c.domain_id, schema.pool_manager_status.c.action)).all())
    assert sorted(rows) == sorted((domain.id, action) for action in (Action.CREATE, Action.UPDATE) for _ in SERVERS)
    others = pool.storage.read(lambda tx: tx.execute(sa.select(schema.domains.c.status).where(
        schema.domains.c.id != domain.id)).scalars().all())
    assert set(others) <= {Status.DELETED}


@pytest.mark.parametrize('again', [False, True], ids=['', 'deleted and restored again'])
@all_needed
def test_while_the_call_that_deletes_it_is_queued(pool: ScriptedPool, clock: Clock, again: bool) -> None:
    domain = pool.create()
    with held_up(pool.manager) as operations:
        pool.central.delete_domain(CONTEXT, domain.id)
        assert [each.row.action for each in operations] == [Action.DELETE]
        restore(pool, domain)
        if again:
            pool.delete(domain)
            restore(pool, domain)
        later(pool, clock, 3)
        assert len(operations) == 1, 'nothing is done for the name on this server before that has ended'
    pool.deliver()
    later(pool, clock, 3)
    later(pool, clock, 3)
    check(pool, domain)
    assert [verb for verb, _ in pool.servers[A].calls] == ['create', 'delete', 'create']


@all_needed
def test_while_a_server_creates_it(pool: ScriptedPool, clock: Clock) -> None:
    domain = new_domain(pool, 'other.example.com.')

    def meanwhile() -> None:
        made, = (each for each in pool.central.find_domains(CONTEXT) if each.name == 'example.com.')
        pool.central.delete_domain(CONTEXT, made.id)
        pool.central.restore_domain(CONTEXT, made.id)

    pool.deliver()
    pool.delete(domain)
    pool.central.purge_domain(CONTEXT, domain.id)
    pool.servers[A].before_return = meanwhile
    domain = pool.create()
    later(pool, clock, 3)
    later(pool, clock, 3)
    check(pool, domain)


def test_between_reading_and_writing_the_rows_of_a_deletion(pool: ScriptedPool, clock: Clock,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever read the deleted domain begins its deletion, and finds that there is none."""
    domain = pool.create()
    write, begun = Reconciler._write_rows, list[ServerStatus]()

    def write_late(reconciler: Reconciler, rows: Sequence[ServerStatus], now: datetime) -> int:
        deletions = [row for row in rows if row.action is Action.DELETE]
        if deletions and not begun:
            begun.extend(deletions)
            pool.central.restore_domain(CONTEXT, domain.id)
        return write(reconciler, rows, now)

    monkeypatch.setattr(Reconciler, '_write_rows', write_late)
    pool.delete(domain)
    later(pool, clock, 400)
    check(pool, domain)
    assert begun and all('delete' not in [verb for verb, _ in server.calls] for server in pool.servers.values())


def test_what_polls_say_of_the_former_life_does_not_count(pool: ScriptedPool) -> None:
    domain = pool.create()
    old = [PollResult(domain.id, server, outcome, answer, serial, None, domain.serial)
           for server in SERVERS for outcome, answer, serial in (
               (Outcome.SUCCESS, Answer.SERIAL, domain.serial), (Outcome.ERROR, Answer.NO_ZONE, None))]
    pool.delete(domain)
    back = pool.central.restore_domain(CONTEXT, domain.id)
    pool.endpoint.update_statuses(CONTEXT, old)
    assert pool.get(domain).reported_serial is None and pool.get(domain).status is Status.PENDING
    pool.deliver()
    pool.endpoint.update_statuses(CONTEXT, [dataclasses.replace(each, expected_serial=None) for each in old[::2]])
    pool.deliver()
    assert pool.get(domain).reported_serial == back.serial
    check(pool, domain)


def test_a_secondary_one_waits_for_its_masters_again(pool: ScriptedPool, clock: Clock) -> None:
    who = Context(project_id='red')
    domain = pool.central.create_domain(who, {'name': 'example.com.', 'masters': ['192.0.2.9']})
    pool.transfer(7)
    pool.deliver()
    pool.servers[A].dead = True
    pool.delete(domain)
    pool.central.restore_domain(who, domain.id)
    assert pool.get(domain).awaits_transfer
    pool.servers[A].dead = False
    later(pool, clock, 400)
    assert [pool.serial(server) for server in SERVERS] == [None] * 3, 'its deletion goes on until then'
    pool.transfer(7)
    pool.deliver()
    clock.offset += timedelta(seconds=1)
    assert pool.get(domain).serial == 7
    check(pool, domain)
