"""Changes of now and of the past that wait for one server: neither starves, and both are bounded."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from designate_pool.model import Domain, utcnow
from designate_pool.pool_manager.dispatch import server_worker
from designate_pool.pool_manager.dispatch.server_worker import RECENT, PollsInFlight, is_recent
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from designate_pool.storage.operations import server_statuses
from designate_pool.testing import a_domain
from tests.unit.pool_manager.conftest import SERVERS, Clock, ScriptedPool, new_domain

NOW = utcnow()


@pytest.mark.parametrize('age, wanted', [(timedelta(0), True), (RECENT - timedelta(seconds=1), True), (RECENT, False)])
def test_a_change_is_of_now_for_a_while(age: timedelta, wanted: bool) -> None:
    assert is_recent(dataclasses.replace(a_domain('a.'), changed_at=NOW - age), NOW) is wanted
    assert not is_recent(dataclasses.replace(a_domain('a.'), changed_at=None), NOW)


def test_polls_whose_round_has_ended_are_forgotten() -> None:
    polls = PollsInFlight()
    for seconds, name in enumerate(('one', 'two', 'three'), 1):
        polls.add(name, NOW + timedelta(seconds=seconds), recent=name == 'two')
    polls.add('one', NOW + timedelta(seconds=4), recent=False)
    assert [polls.is_recent(name) for name in ('one', 'two', 'four')] == [False, True, False]
    polls.discard('three')
    polls.discard('three')
    assert polls.room(NOW) == server_worker.MOST_POLLS - 2
    assert polls.room(NOW + timedelta(seconds=2)) == server_worker.MOST_POLLS - 1
    assert 'one' in polls and 'two' not in polls


def test_polls_of_the_past_are_bounded_and_those_of_now_go_at_once(
        pool: ScriptedPool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    old = domains_of_the_past(pool, clock, 12)
    monkeypatch.setattr(server_worker, 'MOST_POLLS', 5)
    due_on(SERVERS[0], old, pool, clock)
    periodic = PeriodicLoops(pool.manager, pool.registry, pool.runtime)
    assert periodic.run_due() == 0
    assert periodic.run_due() > 0, 'there is no room for more'
    first = [request.name for request in pool.asked]
    assert len(first) == 5 and set(first) <= {domain.name for domain in old}
    new_domain(pool, 'new.example.com.')
    assert [request.name for request in pool.asked[5:]] == ['new.example.com.'] * len(SERVERS)
    asked = []
    for _ in range(4):
        asked += [request.name for request in pool.asked if request.name != 'new.example.com.']
        pool.deliver()
        periodic.run_due()
    assert sorted(asked) == [domain.name for domain in old], 'each of them once'


def test_polls_that_another_pool_manager_hears_of_make_room(
        pool: ScriptedPool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.registry.start()
    old = domains_of_the_past(pool, clock, 8)
    monkeypatch.setattr(server_worker, 'MOST_POLLS', 5)
    due_on(SERVERS[0], old, pool, clock)
    periodic = PeriodicLoops(pool.manager, pool.registry, pool.runtime)
    periodic.run_due()
    polls = pool.manager.workers[SERVERS[0]].polls
    pool.new_manager('two').queue_results(pool.poll(request) for request in pool.asked[:3])
    assert polls.room(clock()) == 0
    periodic.run_polls()
    assert polls.room(clock()) == 3


def test_outcomes_of_recent_changes_are_handled_first(pool: ScriptedPool, clock: Clock) -> None:
    old, = domains_of_the_past(pool, clock, 1)
    due_on(SERVERS[0], [old], pool, clock)
    PeriodicLoops(pool.manager, pool.registry, pool.runtime).run_due()
    new_domain(pool, 'new.example.com.')
    first = {request.name: pool.manager._is_recent(pool.poll(request)) for request in pool.asked}
    assert first == {old.name: False, 'new.example.com.': True}


def domains_of_the_past(pool: ScriptedPool, clock: Clock, count: int) -> list[Domain]:
    made = [new_domain(pool, f'd{number:03}.example.com.') for number in range(count)]
    pool.deliver()
    clock.offset += 2 * RECENT
    return made


def due_on(server: str, due: list[Domain], pool: ScriptedPool, clock: Clock) -> None:
    for domain in due:
        pool.storage.run(server_statuses.wake_domain, server, domain.id, clock())
