"""Two who write the same rows at the same time: nothing that was asked for is lost."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool.model import Action, Answer, CallResult, Domain, Outcome, PollResult, Status, utcnow
from designate_pool.pool_manager.dispatch.server_worker import CallOutcome, Operation
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.pool_manager.reconcile.domain_state import Step
from designate_pool.pool_manager.reconcile.reconciler import choose_due_rows
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.sql import schema
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains
from testing.databases import count_statements
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, ScriptedPool, new_domain, overtaken


def test_what_a_driver_did_is_not_forgotten_where_another_manager_wrote_the_row_first(
        pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch) -> None:
    other = pool.new_manager('two')

    def change_meanwhile() -> None:
        # The other manager begins a change while the first is about to write that the zone was created.
        def then() -> None:
            made = next(iter(pool.storage.read(domains.live_by_name, ['example.com.']).values()))
            pool.central.update_domain(CONTEXT, made.id, {'ttl': 77})
            other.queue_changes([made.id])

        overtaken(pool, monkeypatch, then)

    pool.servers[SERVERS[0]].before_return = change_meanwhile
    domain = pool.create()
    rows = pool.rows(domain)
    assert all(row.status is Outcome.SUCCESS and row.next_attempt_at is None for row in rows.values())
    assert pool.get(domain).status is Status.ACTIVE
    assert [len(server.calls) for server in pool.servers.values()] == [1, 1, 1]


def silence(domain: Domain, server: str) -> PollResult:
    return PollResult(domain.id, server, Outcome.ERROR, Answer.TIMEOUT, None, 'no answer', domain.serial)


def test_a_change_is_begun_again_where_another_manager_wrote_the_row_first(
        pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = pool.create()
    overtaken(pool, monkeypatch, lambda: pool.new_manager('two').queue_results([silence(domain, SERVERS[0])]))
    changed = pool.change(domain)
    assert [pool.rows(domain)[server, Action.UPDATE].expected_serial for server in SERVERS] == [changed.serial] * 3
    assert [pool.serial(server) for server in SERVERS] == [changed.serial] * 3


def test_what_an_older_poll_said_does_not_take_the_place_of_a_change_that_was_begun_meanwhile(
        pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = pool.create()
    overtaken(pool, monkeypatch, lambda: pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77}))
    pool.endpoint.update_statuses(CONTEXT, [silence(domain, SERVERS[0])])
    pool.deliver()
    assert pool.get(domain).status is Status.ACTIVE and pool.get(domain).serial != domain.serial
    assert [row.expected_serial for (_, action), row in pool.rows(domain).items() if action is Action.UPDATE] == [
        pool.get(domain).serial] * 3


def served(domain: Domain, server: str) -> PollResult:
    return PollResult(domain.id, server, Outcome.SUCCESS, Answer.SERIAL, domain.serial, expected_serial=domain.serial)


@pytest.mark.parametrize('pool', [100], indirect=True)
def test_two_managers_that_hear_of_a_server_each_find_that_all_serve_it(
        pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = new_domain(pool)
    other = pool.new_manager('two')
    for _ in range(2):
        pool.manager.queue_results([served(domain, SERVERS[0])])
        overtaken(pool, monkeypatch, lambda: other.queue_results([served(domain, SERVERS[1])]))
        pool.manager.queue_results([served(domain, SERVERS[2])])
        assert pool.get(domain).status is Status.ACTIVE
        domain = pool.central.update_domain(CONTEXT, domain.id, {'ttl': (domain.ttl or 0) + 1})
        assert pool.get(domain).status is Status.PENDING


def test_rows_are_read_before_their_domains_so_that_no_domain_is_older_than_its_rows(pool: ScriptedPool) -> None:
    domain = pool.create()
    with count_statements(pool.storage) as statements:
        assert pool.manager.reconciler.read([domain.id], utcnow())[domain.id].domain.serial == domain.serial
    assert [re.findall(r'FROM (\w+)', statement)[-1] for statement in statements] == ['pool_manager_status', 'domains']


def test_two_managers_that_hear_of_a_failure_each_find_that_too_many_have_failed(
        pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = new_domain(pool)
    other = pool.new_manager('two')
    overtaken(pool, monkeypatch, lambda: other.queue_results([silence(domain, SERVERS[1])]))
    pool.manager.queue_results([silence(domain, SERVERS[2])])
    assert pool.get(domain).status is Status.ERROR


@pytest.mark.parametrize('pool', [100], indirect=True)
def test_two_managers_that_delete_on_a_server_each_find_that_all_have(
        pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = pool.create()
    for server in SERVERS[1:]:
        pool.servers[server].dead = True
    gone = pool.delete(domain)
    rows, now = pool.rows(gone), utcnow()

    def confirm(server: str, manager: Any) -> None:
        row = row_transitions.claim(rows[server, Action.DELETE], manager.settings.name, now)
        pool.storage.run(server_statuses.write, [row], now)
        manager._outcomes.put(CallOutcome(Operation(gone, row), CallResult()))

    other = pool.new_manager('two')
    overtaken(pool, monkeypatch, lambda: confirm(SERVERS[1], other))
    confirm(SERVERS[2], pool.manager)
    assert pool.get(gone).status is Status.DELETED and not pool.rows(gone)


def test_a_server_that_is_done_with_an_older_serial_is_told_of_the_newer_at_once(pool: ScriptedPool) -> None:
    domain = new_domain(pool)
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    pool.asked.clear()
    for _ in range(2):
        # It has transferred the older serial from a MiniDNS that did not ask for it.
        pool.manager.queue_results([PollResult(domain.id, SERVERS[0], Outcome.SUCCESS, Answer.SERIAL, domain.serial)])
    assert [(each.server_id, each.serial, each.seen) for each in pool.asked] == [
        (SERVERS[0], changed.serial, domain.serial)]
    pool.deliver()
    assert pool.rows(domain)[SERVERS[0], Action.UPDATE].status is Outcome.SUCCESS


def test_a_row_that_is_changed_twice_before_it_is_written_is_one_version_on(pool: ScriptedPool) -> None:
    domain = pool.create()
    step = Step(utcnow())
    pool.manager.reconciler.load(step, [domain.id])
    state = step.states[domain.id]
    key = SERVERS[0], Action.UPDATE
    read = state.rows[key]
    state.change(row_transitions.make_due(read, utcnow()))
    state.change(row_transitions.make_due(state.rows[key], utcnow()))
    assert state.changed[key].version == read.version + 1
    # Asked for at once, which is a third change: somebody else who began with the same row and wrote it first has won.
    renewed = row_transitions.restart(read, dataclasses.replace(domain, serial=domain.serial + 1), utcnow())
    pool.storage.run(server_statuses.write, [renewed], utcnow())
    step.now = utcnow()
    choose_due_rows(step, pool.manager.workers, pool.manager.settings)
    assert pool.manager.reconciler._write_rows(step.writes, step.now) == 1
    assert pool.rows(domain)[key].expected_serial == domain.serial + 1


def test_a_deleted_domain_that_waits_for_a_server_is_left_to_it(pool: ScriptedPool) -> None:
    domain = pool.create()
    pool.servers[SERVERS[1]].dead = True
    gone = pool.delete(domain)
    rows = pool.rows(gone)
    assert pool.get(gone).status is Status.DELETED
    pool.sweep()
    assert pool.rows(gone) == rows


def test_a_row_that_waits_for_nothing_is_begun_by_whoever_looks_at_it(pool: ScriptedPool) -> None:
    domain = pool.create()
    row = pool.rows(domain)[SERVERS[0], Action.UPDATE]
    pool.storage.run(server_statuses.write, [dataclasses.replace(row, status=None, version=row.version + 1)], utcnow())
    pool.manager.queue_changes([domain.id])
    assert [each.server_id for each in pool.asked] == [SERVERS[0]]


def test_a_tombstone_that_is_purged_meanwhile_costs_no_other_domain_its_result(
        pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, other = pool.create('gone.example.com.'), pool.create('other.example.com.')

    def purge(tx: Tx) -> None:
        for table in (schema.pool_manager_status, schema.records, schema.recordsets):
            tx.execute(sa.delete(table).where(table.c.domain_id == gone.id))
        tx.execute(sa.delete(schema.domains).where(schema.domains.c.id == gone.id))

    overtaken(pool, monkeypatch, lambda: pool.storage.run(purge))
    pool.manager.queue_results([silence(gone, SERVERS[0]), silence(other, SERVERS[0])])
    assert pool.rows(other)[SERVERS[0], Action.UPDATE].last_error == 'no answer'
