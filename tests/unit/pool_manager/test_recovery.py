"""A server answers again, or goes out of service, while failures are on their way: what these make of its rows."""

from __future__ import annotations

import pytest

from designate_pool.model import Action, Answer, CallResult, Outcome, PollResult, Reason, ServerState, Status
from designate_pool.pool_manager.dispatch.server_worker import CallOutcome
from tests.unit.pool_manager.conftest import (CONTEXT, A, C, Clock, EditablePool, ScriptedPool, held_up, later,
                                              new_domain)

UNREACHABLE = CallResult(error='connection refused', unreachable=True, reason=Reason.UNREACHABLE)


def test_a_call_that_failed_before_its_server_answered_again_is_made_again_at_once(pool: ScriptedPool) -> None:
    worker = pool.manager.workers[A]
    with held_up(pool.manager, A) as operations:
        first, second = new_domain(pool, 'one.example.com.'), new_domain(pool, 'two.example.com.')
        worker.control.failed(99)
        (failed, succeeded), operations[:] = operations[:], []
    pool.manager._outcomes.put(CallOutcome(failed, UNREACHABLE), CallOutcome(succeeded, CallResult()))
    assert not worker.control.is_open
    assert pool.servers[A].calls == [('create', first.id)]
    row = pool.rows(first)[A, Action.CREATE]
    assert (row.status, row.attempts, row.claimed_by) == (Outcome.SUCCESS, 1, None)
    assert pool.rows(second)[A, Action.CREATE].status is Outcome.SUCCESS


def test_a_call_fails_although_its_server_answers_dns_again(pool: ScriptedPool) -> None:
    served = pool.create('served.example.com.')
    worker = pool.manager.workers[A]
    with held_up(pool.manager, A) as operations:
        domain = new_domain(pool, 'one.example.com.')
        worker.dns.failed(99)
        failed = operations.pop()
    pool.manager._outcomes.put(CallOutcome(failed, UNREACHABLE), PollResult(
        served.id, A, Outcome.SUCCESS, Answer.SERIAL, served.serial))
    assert not worker.dns.is_open
    row = pool.rows(domain)[A, Action.CREATE]
    assert (row.last_error, row.attempts, row.claimed_by) == ('connection refused', 1, None)


def test_a_poll_fails_although_its_server_accepts_calls_again(pool: ScriptedPool) -> None:
    domain = pool.create('served.example.com.')
    worker = pool.manager.workers[A]
    with held_up(pool.manager, A) as operations:
        new_domain(pool, 'one.example.com.')
        worker.control.failed(99)
        succeeded = operations.pop()
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    pool.manager._outcomes.put(CallOutcome(succeeded, CallResult()), PollResult(
        domain.id, A, Outcome.ERROR, Answer.SERIAL, domain.serial, 'an older serial', changed.serial))
    assert not worker.control.is_open
    assert pool.rows(domain)[A, Action.UPDATE].last_error == 'an older serial'


@pytest.mark.parametrize('deleted', [False, True])
def test_a_call_that_fails_when_its_server_rests_leaves_no_claim(editable: EditablePool, clock: Clock,
                                                                 deleted: bool) -> None:
    with held_up(editable.manager, C) as operations:
        domain = new_domain(editable)
        if deleted:
            editable.central.delete_domain(CONTEXT, domain.id)
        editable.put(C, ServerState.MAINTENANCE)
        failed = operations.pop(0)
    editable.manager._outcomes.put(CallOutcome(failed, UNREACHABLE))
    row = editable.rows(domain)[C, Action.CREATE]
    assert (row.status, row.attempts, row.claimed_by) == (None, 0, None)
    assert (row.next_attempt_at is None) is deleted
    editable.put(C, ServerState.ACTIVE)
    later(editable, clock, 2)
    assert editable.get(domain).status is (Status.DELETED if deleted else Status.ACTIVE)
    assert [verb for verb, _ in editable.servers[C].calls] == ['delete' if deleted else 'create']
