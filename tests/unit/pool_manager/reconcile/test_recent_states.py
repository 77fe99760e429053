"""What was read or written a moment ago is not read again, and nothing is believed that others have changed since."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from designate_pool.model import (Action, Answer, Domain, Outcome, PollRequest, PollResult, Reason, ServerStatus,
                                  Status, utcnow)
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.pool_manager.reconcile.domain_state import MOMENT, DomainState, RecentStates
from designate_pool.pool_manager.service import PoolManager
from designate_pool.rpc import pool_manager as manager_rpc
from designate_pool.storage.operations import server_statuses
from testing.databases import count_statements
from tests.unit.pool_manager.conftest import CONTEXT, A, B, C, Clock, ScriptedPool, all_needed, held_up, later

NOW = utcnow()


def begun(pool: ScriptedPool) -> tuple[Domain, dict[str, PollRequest]]:
    """A domain whose change was begun, and its polls, by server."""
    domain = pool.create()
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    asked, pool.asked = pool.asked, []
    return changed, {each.server_id: each for each in asked}


@all_needed
def test_the_success_of_a_poll_costs_its_row_alone(pool: ScriptedPool) -> None:
    domain, asked = begun(pool)
    for result in [dataclasses.replace(pool.poll(asked[server]), base=asked[server].seen) for server in (A, B)]:
        with count_statements(pool.storage) as counter:
            pool.manager.queue_results([result])
        assert counter.total() == 1, counter
    pool.manager.queue_results([pool.poll(asked[C])])
    assert pool.get(domain).status is Status.ACTIVE


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
def test_a_row_that_another_has_changed_is_read_again(pool: ScriptedPool) -> None:
    domain, asked = begun(pool)
    row = pool.rows(domain)[A, Action.UPDATE]
    other = dataclasses.replace(row, attempts=2, version=row.version + 1)
    pool.storage.run(server_statuses.write, [other], utcnow())
    pool.manager.queue_results([pool.poll(asked[A])])
    found = pool.rows(domain)[A, Action.UPDATE]
    assert (found.status, found.version, found.serial_number) == (Outcome.SUCCESS, row.version + 2, domain.serial)


@all_needed
def test_results_that_came_to_another_pool_manager_are_found_a_little_later(pool: ScriptedPool) -> None:
    domain, asked = begun(pool)
    other, timer = pool.new_manager('two'), pool.manager.reconciler.undecided_timer
    other.queue_results([pool.poll(asked[A])])
    other.queue_results([pool.poll(asked[B])])
    assert not timer._woken.is_set()
    pool.manager.queue_results([pool.poll(asked[C])])
    assert pool.get(domain).status is Status.PENDING, 'it does not know of the others'
    assert timer._woken.is_set()
    pool.manager.reconciler.weigh_undecided()
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


@all_needed
def test_what_is_found_out_about_one_server_alone_is_not_forgotten(pool: ScriptedPool) -> None:
    domain, asked = begun(pool)
    pool.manager.queue_results([pool.poll(asked[server]) for server in (A, B)])
    with held_up(pool.manager):  # the call that has it transferred again takes a while
        with pool.manager.reconciler.step([domain.id], [A]) as step:
            state = step.states[domain.id]
            state.change(row_transitions.diverge(state.rows[A, Action.UPDATE], 'it has other contents', step.now))
        pool.manager.queue_results([pool.poll(asked[C])])
        assert pool.get(domain).status is not Status.ACTIVE, 'its contents are known to be wrong'


def unheard_change(pool: ScriptedPool) -> tuple[Domain, PollResult]:
    """A domain whose last change was not begun, as a pool manager keeps it, and the poll of a server that has it."""
    domain, asked = begun(pool)
    pool.manager.queue_results([pool.poll(asked[server]) for server in (B, C)])
    pool.lose_casts = True
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 78})
    # The domain is read, and kept, when something is heard of it unasked.
    pool.manager.queue_results([PollResult(domain.id, B, Outcome.SUCCESS, Answer.SERIAL, domain.serial)])
    result = pool.poll(asked[A])
    assert (result.serial_number, result.expected_serial) == (changed.serial, domain.serial)
    return changed, result


@all_needed
def test_a_change_that_was_missed_replaces_nothing_that_another_has_written(pool: ScriptedPool) -> None:
    domain, result = unheard_change(pool)
    row = pool.rows(domain)[C, Action.UPDATE]
    pool.storage.run(server_statuses.write, [dataclasses.replace(row, incarnation=3, version=row.version + 1)],
                     utcnow())
    pool.manager.queue_results([result])
    found = pool.rows(domain)[C, Action.UPDATE]
    assert found.incarnation == 3
    assert found.expected_serial == domain.serial, 'it was read again, and begun'


@all_needed
def test_a_change_that_was_missed_does_not_outlast_a_deletion(pool: ScriptedPool, clock: Clock) -> None:
    domain, result = unheard_change(pool)
    pool.servers[C].dead = True
    other = pool.new_manager('two')
    pool.central.delete_domain(CONTEXT, domain.id)
    other.queue_changes([domain.id])
    pool.manager.queue_results([result])
    pool.servers[C].dead = False
    pool.deliver()
    for _ in range(3):
        later(pool, clock, 30)
    assert pool.get(domain).status is Status.DELETED and pool.rows(domain) == {}
    assert not any(server.zones for server in pool.servers.values())


def state(domain_id: str, rows: int) -> DomainState:
    domain = Domain(domain_id, f'{domain_id}.example.com.', 'p' * 32, 'default', 'hostmaster@example.com', 3600, 1)
    return DomainState(domain, {(str(number), Action.UPDATE): ServerStatus(str(number), domain_id, Action.UPDATE, 1)
                                for number in range(rows)})


def test_only_the_last_moment_is_kept() -> None:
    recent = RecentStates()
    recent.put([state('a', 1)], NOW)
    assert recent.get('a', NOW + MOMENT / 2) is not None
    assert recent.get('a', NOW - timedelta(seconds=1)) is None, 'the clock was put back'
    recent.put([state('a', 1)], NOW)
    assert recent.get('a', NOW + MOMENT) is None


def test_what_is_kept_is_no_newer_for_being_used() -> None:
    recent = RecentStates()
    recent.put([state('a', 1)], NOW)
    used = recent.get('a', NOW + MOMENT / 2)
    assert used is not None
    recent.put([used], NOW + MOMENT / 2)
    assert recent.get('a', NOW + MOMENT) is None
    recent.put([used], NOW + MOMENT)
    assert recent.get('a', NOW + MOMENT) is None, 'it was dropped before it was put back'
