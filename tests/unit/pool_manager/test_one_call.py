"""One call at a time for a name on a server, whichever pool manager makes it, and what follows when one is late."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from designate_pool.model import Action, CallResult, Domain, Outcome, Status
from designate_pool.pool_manager.dispatch.server_worker import CallOutcome, Operation
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from designate_pool.pool_manager.reconcile import reconciler
from tests.unit.pool_manager.conftest import (CONTEXT, SERVERS, Clock, ScriptedPool, all_needed, held_up, later,
                                              new_domain)

NAME = 'example.com.'
FIRST = SERVERS[0]


def verbs(pool: ScriptedPool, server: str = FIRST) -> list[str]:
    return [verb for verb, _ in pool.servers[server].calls]


def test_a_call_whose_claim_has_ended_before_it_begins_leaves_no_claim(
        pool: ScriptedPool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    make_calls = pool.manager.reconciler.make_calls

    def too_late(orders: Any) -> None:
        monkeypatch.setattr(pool.manager.reconciler, 'make_calls', make_calls)
        clock.offset += timedelta(seconds=31)
        make_calls(orders)

    monkeypatch.setattr(pool.manager.reconciler, 'make_calls', too_late)
    domain = new_domain(pool)
    assert verbs(pool) == []
    assert {row.claimed_by for row in pool.rows(domain).values()} == {None}, 'others may end the rows meanwhile'
    later(pool, clock, 5)
    assert pool.get(domain).status is Status.ACTIVE


def test_a_call_that_succeeds_after_another_manager_has_claimed_its_row_leaves_no_claim_if_that_one_is_killed(
        pool: ScriptedPool, clock: Clock) -> None:
    other, worker = pool.new_manager('two'), pool.manager.workers[FIRST]
    with held_up(pool.manager) as late, held_up(other) as lost:
        domain = new_domain(pool)
        clock.offset += timedelta(seconds=31)
        PeriodicLoops(other, pool.registry, pool.runtime).run_due()
        assert len(late) == len(lost) == 1
        pool.manager._outcomes.put(CallOutcome(late.pop(), worker.backend.create_domain(domain)))
        lost.clear()
    made = pool.rows(domain)[FIRST, Action.CREATE]
    assert made.status is Outcome.SUCCESS and made.claimed_by == 'two', 'its call may be under way'
    later(pool, clock, 31)
    made = pool.rows(domain)[FIRST, Action.CREATE]
    assert made.status is Outcome.SUCCESS and (made.claimed_by, made.next_attempt_at) == (None, None)
    assert verbs(pool) == ['create'] and pool.get(domain).status is Status.ACTIVE


def test_of_two_that_claim_a_name_at_once_one_goes_on_and_then_the_other(
        pool: ScriptedPool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    first = pool.create()
    other = pool.new_manager('two')
    write, under_way, most = pool.manager.reconciler._write_rows, [0], [0]

    def created_meanwhile(*arguments: Any) -> Any:
        # The deletion is decided on; the name is created anew and its CREATE claimed before the DELETE is.
        monkeypatch.setattr(pool.manager.reconciler, '_write_rows', write)
        pool.lose_casts = True
        other.queue_changes([new_domain(pool).id])
        return write(*arguments)

    def counting(act: Any) -> Any:
        def counted(*arguments: Any) -> Any:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
            try:
                return act(*arguments)
            finally:
                under_way[0] -= 1
        return counted

    for name in ('create_domains', 'delete_domains'):
        monkeypatch.setattr(pool.servers[FIRST], name, counting(getattr(pool.servers[FIRST], name)))
    with held_up(other):
        pool.lose_casts = True
        gone = pool.central.delete_domain(CONTEXT, first.id)
        monkeypatch.setattr(pool.manager.reconciler, '_write_rows', created_meanwhile)
        pool.manager.queue_changes([gone.id])
        assert verbs(pool) == ['create']
    pool.lose_casts = False
    for _ in range(4):
        later(pool, clock, 3)
        pool.deliver()
    second = pool.central.find_domains(CONTEXT)[0]
    assert most == [1]
    assert pool.get(second).status is Status.ACTIVE
    assert [pool.serial(server) for server in SERVERS] == [second.serial] * 3


@contextlib.contextmanager
def late_deletion(pool: ScriptedPool, clock: Clock) -> Iterator[Domain]:
    """A domain that was given to a server, which then lost it to a deletion of the former one of its name.

    What happens meanwhile does so before the deletion runs, in the eyes of another manager.
    """
    first = pool.create()
    other = pool.new_manager('two')
    pool.lose_casts = True
    gone = pool.central.delete_domain(CONTEXT, first.id)
    worker = pool.manager.workers[FIRST]
    with held_up(pool.manager) as operations:
        pool.manager.queue_changes([gone.id])
        clock.offset += timedelta(seconds=31)
        second = new_domain(pool)
        other.queue_changes([second.id])
        yield second
        late, operations[:] = operations[:], []
    pool.manager._outcomes.put(*(CallOutcome(work, worker.backend.delete_domain(work.domain)) for work in late))


@all_needed
@pytest.mark.parametrize('unasked', [False, True])
def test_what_was_seen_before_a_late_deletion_ran_counts_no_more_when_it_is_told_after_that(
        pool: ScriptedPool, clock: Clock, unasked: bool) -> None:
    with late_deletion(pool, clock) as second:
        heard = [pool.poll(request) for request in pool.asked]
        pool.asked.clear()
        assert {(each.status, each.serial_number) for each in heard} == {(Outcome.SUCCESS, second.serial)}
        if unasked:
            heard = [dataclasses.replace(each, expected_serial=None, incarnation=None) for each in heard]
    pool.manager.queue_results(heard)
    row = pool.rows(second)[FIRST, Action.UPDATE]
    assert (row.status, row.serial_number) == (None, None)
    assert pool.get(second).status is Status.PENDING
    later(pool, clock, 31)
    pool.deliver()
    pool.manager.queue_results(heard)
    pool.deliver()
    assert pool.get(second).status is Status.ACTIVE
    assert [pool.serial(server) for server in SERVERS] == [second.serial] * 3
    row = pool.rows(second)[FIRST, Action.UPDATE]
    assert (row.status, row.serial_number, row.next_attempt_at) == (Outcome.SUCCESS, second.serial, None)


@all_needed
def test_what_was_called_before_a_late_deletion_ran_counts_no_more_when_it_is_told_after_that(
        pool: ScriptedPool, clock: Clock) -> None:
    server = pool.servers[FIRST]
    with late_deletion(pool, clock) as second:
        made = pool.rows(second)[FIRST, Action.CREATE]
        assert made.status is Outcome.SUCCESS
        server.before_return = lambda: setattr(server, 'dead', True)  # once it has lost the zone
    pool.manager._outcomes.put(CallOutcome(Operation(second, made), CallResult()))
    assert NAME not in server.zones and pool.rows(second)[FIRST, Action.CREATE].status is None
    server.dead = False
    later(pool, clock, 31)
    assert NAME in server.zones and pool.rows(second)[FIRST, Action.CREATE].status is Outcome.SUCCESS


def test_what_is_known_of_a_deleted_domain_stays_until_its_last_call_has_ended(
        pool: ScriptedPool, clock: Clock) -> None:
    other = pool.new_manager('two')
    with held_up(pool.manager):
        first = new_domain(pool)
        pool.lose_casts = True
        gone = pool.central.delete_domain(CONTEXT, first.id)
        new_domain(pool)
        other.queue_changes([gone.id])
        assert pool.get(gone).status is Status.DELETED
        assert pool.rows(gone)[FIRST, Action.CREATE].claimed_by == 'one'
    later(pool, clock, 5)
    assert pool.rows(gone) == {} and NAME in pool.servers[FIRST].zones


def test_a_deletion_that_only_late_calls_tell_of_is_begun_on_every_server(
        pool: ScriptedPool, clock: Clock) -> None:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(held_up(pool.manager, server)) for server in SERVERS]
        domain = new_domain(pool)
        pool.lose_casts = True
        pool.central.delete_domain(CONTEXT, domain.id)
        lost, held[2][:] = held[2][:], []  # with the process that was to make it
    assert lost and verbs(pool, SERVERS[2]) == []
    later(pool, clock, 31)
    assert verbs(pool, SERVERS[2]) == ['delete']
    assert pool.get(domain).status is Status.DELETED and pool.rows(domain) == {}


def test_a_creation_for_the_former_domain_that_ends_late_leaves_the_new_one_its_zone(
        pool: ScriptedPool, clock: Clock) -> None:
    other = pool.new_manager('two')
    worker = pool.manager.workers[FIRST]
    with held_up(pool.manager) as operations:
        first = new_domain(pool)
        pool.lose_casts = True
        clock.offset += timedelta(seconds=31)
        other.queue_changes([pool.central.delete_domain(CONTEXT, first.id).id])
        second = new_domain(pool)
        other.queue_changes([second.id])
        pool.deliver()
        assert pool.get(second).status is Status.ACTIVE
        late, operations[:] = operations[:], []
    before = len(verbs(pool))
    pool.manager._outcomes.put(*(CallOutcome(work, worker.backend.create_domain(work.domain)) for work in late))
    assert verbs(pool)[before:] == ['create']
    assert NAME in pool.servers[FIRST].zones and pool.rows(first) == {}


def test_a_deletion_that_a_late_creation_restarts_while_its_rows_go_is_carried_out(
        pool: ScriptedPool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    other, worker, evaluate = pool.new_manager('two'), pool.manager.workers[FIRST], reconciler.evaluate
    with held_up(pool.manager) as operations:
        domain = new_domain(pool)
        late, operations[:] = operations[:], []

        def created_meanwhile(*arguments: Any) -> reconciler.Verdicts:
            found = evaluate(*arguments)
            if found.finished:
                monkeypatch.setattr(reconciler, 'evaluate', evaluate)
                pool.manager._outcomes.put(*(CallOutcome(work, worker.backend.create_domain(work.domain))
                                             for work in late))
                operations.clear()  # with the process that was to delete it again
            return found

        monkeypatch.setattr(reconciler, 'evaluate', created_meanwhile)
        pool.lose_casts = True
        clock.offset += timedelta(seconds=31)
        other.queue_changes([pool.central.delete_domain(CONTEXT, domain.id).id])
    assert verbs(pool) == ['delete', 'create'] and pool.get(domain).status is Status.DELETED
    later(pool, clock, 31)
    assert NAME not in pool.servers[FIRST].zones and pool.rows(domain) == {}


def test_the_rows_of_a_deleted_domain_go_together_when_none_is_due(pool: ScriptedPool, clock: Clock) -> None:
    with held_up(pool.manager) as operations:
        domain = new_domain(pool)
        operations.clear()  # with the process that was to make the call
        gone = pool.central.delete_domain(CONTEXT, domain.id)
    clock.offset += timedelta(seconds=31)
    deletion = pool.rows(domain)[FIRST, Action.DELETE]
    pool.manager._outcomes.put(CallOutcome(Operation(gone, deletion), CallResult()))
    assert pool.get(domain).status is Status.DELETED
    creation = pool.rows(domain)[FIRST, Action.CREATE]
    assert creation.next_attempt_at and creation.claimed_by == 'one'
    later(pool, clock, 0)
    assert pool.rows(domain) == {}


def test_what_takes_longer_than_its_claim_is_not_done_twice(pool: ScriptedPool, clock: Clock) -> None:
    other = pool.new_manager('two')

    def take_long() -> None:
        for _ in range(3):
            clock.offset += timedelta(seconds=25)
            pool.manager.extend_claims()
            PeriodicLoops(other, pool.registry, pool.runtime).run_due()

    pool.servers[FIRST].before_return = take_long
    domain = pool.create()
    assert verbs(pool) == ['create']
    row = pool.rows(domain)[FIRST, Action.CREATE]
    assert (row.status, row.claimed_by) == (Outcome.SUCCESS, None)
