"""The loops of the pool manager never end by themselves."""

from __future__ import annotations

import dataclasses
import logging
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from designate_pool.model import Action, Domain, ServerState, ServerStatus, Status, utcnow
from designate_pool.pool_manager.dispatch.server_worker import RECENT
from designate_pool.pool_manager.periodic import loops
from designate_pool.pool_manager.periodic.loops import IDLE_INTERVAL, PAGE_INTERVAL, UNSETTLED_INTERVAL, PeriodicLoops
from designate_pool.pool_manager.reconcile.reconciler import DueTimer
from designate_pool.runtime import Threads
from designate_pool.storage.operations import pool_servers as server_store, server_statuses
from testing.databases import count_statements
from testing.processes import wait_until
from tests.unit.pool_manager.conftest import CONTEXT, A, C, Clock, EditablePool, ScriptedPool, some


class Timeout(BaseException):
    """As eventlet's is: no Exception."""


class Trouble:
    """In place of a manager: whatever is asked of it fails, each time in another way."""

    def __init__(self) -> None:
        self.asked = 0
        self.reconciler = SimpleNamespace(due_timer=DueTimer())
        self.wait, self.wake = self.reconciler.due_timer.wait, self.reconciler.due_timer.wake

    def __getattr__(self, name: str) -> Any:
        self.asked += 1
        raise (Timeout if self.asked % 2 else RuntimeError)(name)


def test_whatever_is_raised_every_loop_comes_round_again(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble()
    periodic = PeriodicLoops(trouble, trouble, Threads())  # type: ignore[arg-type]
    with caplog.at_level(logging.CRITICAL):
        periodic.start()
        wait_until(lambda: len(periodic.last_tick) == 13, 'every loop has begun')
        first = dict(periodic.last_tick)
        wait_until(lambda: all(periodic.last_tick[name] > first[name] for name in first), 'every loop came round again')
    periodic.stop()
    assert trouble.asked >= 13


def test_due_rows_of_others_are_found_in_the_statement_for_unsettled_domains(
        pool: ScriptedPool, clock: Clock) -> None:
    domain = pool.create()
    pool.deliver()
    periodic = PeriodicLoops(pool.manager, pool.registry, pool.runtime)
    due_timer = pool.manager.reconciler.due_timer
    assert periodic.run_due() == IDLE_INTERVAL
    due_timer.wait(0)
    with count_statements(pool.storage) as statements:
        assert periodic.run_unsettled() == UNSETTLED_INTERVAL < IDLE_INTERVAL
    assert statements.total() == 1 and not due_timer._woken.is_set()
    row = pool.rows(domain)[A, Action.UPDATE]
    due = dataclasses.replace(row, next_attempt_at=clock(), version=row.version + 1)
    pool.storage.run(server_statuses.write, [due], clock())
    with count_statements(pool.storage) as statements:
        periodic.run_unsettled()
    assert statements.total() == 1 and due_timer._woken.is_set()


def test_a_row_that_becomes_due_while_others_are_claimed_is_claimed_next(
        pool: ScriptedPool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = pool.create()
    row = pool.rows(domain)[A, Action.UPDATE]
    later = dataclasses.replace(row, next_attempt_at=clock() + timedelta(seconds=0.1), version=row.version + 1)
    pool.manager.reconciler._write_rows([later], clock())
    claim_due = server_statuses.claim_due

    def slowly(*arguments: Any) -> list[ServerStatus]:
        found = claim_due(*arguments)
        clock.offset += timedelta(seconds=0.2)
        return found

    monkeypatch.setattr(server_statuses, 'claim_due', slowly)
    periodic = PeriodicLoops(pool.manager, pool.registry, pool.runtime)
    assert periodic.run_due() == 0.0
    periodic.run_due()
    assert [each.server_id for each in pool.asked] == [A]


def unheard(pool: ScriptedPool, clock: Clock) -> list[Domain]:
    """Five domains whose casts were lost."""
    pool.lose_casts = True
    made = [pool.create(f'd{number}.example.com.') for number in range(5)]
    clock.offset += timedelta(seconds=UNSETTLED_INTERVAL + 1)
    return made


def test_the_pages_of_unsettled_domains_follow_each_other_quickly(
        pool: ScriptedPool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, 'PAGE', 2)
    made = unheard(pool, clock)
    both = [PeriodicLoops(each, pool.registry, pool.runtime) for each in (pool.manager, pool.new_manager('two'))]
    pauses = []
    for number in range(3):
        pauses.append(both[number % 2].run_unsettled())
        assert 0 < both[1 - number % 2].run_unsettled() <= pauses[-1], 'it is not time for the next one yet'
        clock.offset += timedelta(seconds=pauses[-1])
    assert pauses == [PAGE_INTERVAL, PAGE_INTERVAL, UNSETTLED_INTERVAL]
    pool.deliver()
    assert {pool.get(each).status for each in made} == {Status.ACTIVE}


def test_pages_of_unsettled_domains_do_not_crowd_out_casts(
        pool: ScriptedPool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, 'PAGE', 2)
    unheard(pool, clock)
    periodic, queues = PeriodicLoops(pool.manager, pool.registry, pool.runtime), pool.manager.queues
    monkeypatch.setattr(pool.manager, 'queues', lambda: {**queues(), 'casts': 2})
    assert periodic.run_unsettled() == UNSETTLED_INTERVAL
    pool.deliver()
    assert len(pool.storage.read(loops.domain_store.unsettled, 'default', clock(), timedelta(0), '', 9)) == 3


def test_changed_servers_are_read_when_a_message_says_so_and_when_it_was_lost(editable: EditablePool) -> None:
    server = editable.storage.read(server_store.SERVERS.get, C)
    assert server is not None
    periodic = PeriodicLoops(editable.manager, editable.registry, Threads())
    periodic.start()
    assert C in editable.manager.workers
    resting = server_store.in_state(server, ServerState.MAINTENANCE, utcnow())
    assert editable.storage.run(server_store.save, resting, utcnow())
    editable.endpoint.look_for_changes(CONTEXT)
    wait_until(lambda: C not in editable.manager.workers, 'it is read when a message says so')
    periodic.stop()
    editable.registry.wait(0.0)
    periodic.run_unsettled()
    editable.registry.wait(0.0)
    periodic.run_unsettled()
    assert not editable.registry._woken.is_set()
    resting = dataclasses.replace(resting, version=resting.version + 1)
    assert editable.storage.run(server_store.save, server_store.in_state(resting, ServerState.ACTIVE, utcnow()),
                                utcnow())
    periodic.run_unsettled()
    assert editable.registry._woken.is_set()


def test_all_unsettled_domains_are_weighed_anew_when_other_servers_count(
        editable: EditablePool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, 'PAGE', 2)
    made = some(editable)
    periodic = PeriodicLoops(editable.manager, editable.registry, editable.runtime)
    editable.servers[C].dead = True
    for domain in made:
        editable.change(domain)
    clock.offset += timedelta(seconds=UNSETTLED_INTERVAL + 1)
    while periodic.run_unsettled() == PAGE_INTERVAL:
        clock.offset += timedelta(seconds=PAGE_INTERVAL)
    assert {editable.get(each).status for each in made} <= {Status.PENDING, Status.ERROR}
    editable.put(C, ServerState.MAINTENANCE)
    clock.offset += timedelta(seconds=UNSETTLED_INTERVAL + 1)
    settled = []
    for _ in range(3):
        periodic.run_unsettled()
        settled.append(sum(editable.get(each).status is Status.ACTIVE for each in made))
        clock.offset += timedelta(seconds=PAGE_INTERVAL)
    assert settled == [2, 4, 5]


def test_domains_that_have_been_unsettled_for_long_are_no_recent_changes(pool: ScriptedPool, clock: Clock) -> None:
    old = unheard(pool, clock)
    clock.offset += RECENT
    PeriodicLoops(pool.manager, pool.registry, pool.runtime).run_unsettled()
    assert {request.domain_id for request in pool.asked} == {domain.id for domain in old}
    assert not any(pool.manager._goes_first(pool.poll(request)) for request in pool.asked)
