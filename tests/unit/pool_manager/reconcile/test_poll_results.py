"""The results of polls: which of them count, and those that came to another pool manager."""

from __future__ import annotations

import dataclasses

import pytest

from designate_pool.model import Action, Domain, Outcome, PollRequest, Reason, Status
from designate_pool.pool_manager.service import PoolManager
from designate_pool.rpc import pool_manager as manager_rpc
from tests.unit.pool_manager.conftest import CONTEXT, A, B, C, ScriptedPool, all_needed, held_up


def begun(pool: ScriptedPool) -> tuple[Domain, dict[str, PollRequest]]:
    """A domain whose change was begun, and its polls, by server."""
    domain = pool.create()
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    asked, pool.asked = pool.asked, []
    return changed, {each.server_id: each for each in asked}


@all_needed
@pytest.mark.parametrize('reached_by', ['difference', 'nothing, then difference', 'nothing, then whole zone'])
def test_a_serial_that_a_server_was_not_seen_to_transfer_does_not_count(pool: ScriptedPool, reached_by: str) -> None:
    domain, asked = begun(pool)
    before = pool.rows(domain)[A, Action.UPDATE].serial_number
    by_itself, by_difference, whole = (dataclasses.replace(pool.poll(asked[A]), base=base)
                                       for base in (domain.serial, before, None))
    pool.manager.queue_results([pool.poll(asked[server]) for server in (B, C)])
    if reached_by.startswith('nothing'):
        with held_up(pool.manager):  # the call that compares takes a while
            pool.manager.queue_results([by_itself])
            row = pool.rows(domain)[A, Action.UPDATE]
            assert (row.status, row.reason, row.serial_number) == (None, Reason.UNCHECKED, before)
            assert pool.get(domain).status is Status.PENDING
            pool.manager.queue_results([by_itself])
            assert pool.rows(domain)[A, Action.UPDATE] == row
            pool.manager.queue_results([whole if reached_by.endswith('zone') else by_difference])
    else:
        pool.manager.queue_results([by_difference])
    row = pool.rows(domain)[A, Action.UPDATE]
    assert (row.status, row.reason, row.serial_number) == (Outcome.SUCCESS, None, domain.serial)
    assert pool.get(domain).status is Status.ACTIVE


@all_needed
def test_results_that_came_to_another_pool_manager_are_found(pool: ScriptedPool) -> None:
    domain, asked = begun(pool)
    other = pool.new_manager('two')
    other.queue_results([pool.poll(asked[A])])
    other.queue_results([pool.poll(asked[B])])
    pool.manager.queue_results([pool.poll(asked[C])])
    assert pool.get(domain).status is Status.ACTIVE


@all_needed
def test_a_deletion_that_another_has_finished_leaves_no_row(pool: ScriptedPool) -> None:
    domain, asked = begun(pool)
    results = [pool.poll(each) for each in asked.values()]
    other = pool.new_manager('two')
    pool.caller.serve(manager_rpc.topic('default'), manager_rpc.PoolManagerClient,
                      PoolManager(other, pool.registry, pool.runtime))
    pool.delete(domain)
    assert not pool.rows(domain), 'it is deleted everywhere'
    pool.manager.queue_results(results)
    assert not pool.rows(domain)
    assert pool.get(domain).status is Status.DELETED
