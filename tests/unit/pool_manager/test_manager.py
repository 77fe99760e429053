"""What becomes of the zones of a pool as they are made, changed and deleted, with servers that fail and come back."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from designate_pool.errors import ServiceUnavailable
from designate_pool.model import Action, Context, Domain, Outcome, Status
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.zones import domains
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, Clock, ScriptedPool, all_needed, later


def test_the_same_cast_once_more_does_nothing(pool: ScriptedPool) -> None:
    domain = pool.create()
    before = pool.rows(domain)
    pool.endpoint.create_domain(CONTEXT, domain)
    pool.deliver()
    assert pool.rows(domain) == before
    assert all(len(server.calls) == 1 for server in pool.servers.values())


@all_needed
def test_an_update_while_an_update_is_in_flight_ends_at_the_last_serial(pool: ScriptedPool) -> None:
    domain = pool.create()
    first = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 60})
    late = [dataclasses.replace(pool.poll(request), serial_number=first.serial, expected_serial=first.serial)
            for request in pool.asked]
    second = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 61})
    pool.endpoint.update_statuses(CONTEXT, late)
    assert pool.get(domain).reported_serial == first.serial and pool.get(domain).status is Status.PENDING
    pool.deliver()
    pool.endpoint.update_statuses(CONTEXT, late)
    assert pool.get(domain).reported_serial == second.serial and pool.get(domain).status is Status.ACTIVE


@all_needed
def test_a_change_while_the_create_is_under_way_is_brought_by_it(pool: ScriptedPool) -> None:
    changed: list[Domain] = []

    def change_meanwhile() -> None:
        domain = next(iter(pool.storage.read(domains.live_by_name, ['example.com.']).values()))
        changed.append(pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77}))

    pool.servers[SERVERS[0]].before_return = change_meanwhile
    domain = pool.create()
    assert pool.get(domain).status is Status.ACTIVE and pool.get(domain).reported_serial == changed[0].serial
    assert [len(server.calls) for server in pool.servers.values()] == [1, 1, 1]


@all_needed
def test_one_server_dead_at_create_is_an_error_when_the_tries_are_used_up(pool: ScriptedPool, clock: Clock) -> None:
    pool.servers[SERVERS[1]].dead = True
    domain = pool.create()
    for _ in range(2):
        later(pool, clock, 2.1)
        assert pool.get(domain).status is Status.PENDING
    later(pool, clock, 2.1)
    assert pool.get(domain).status is Status.ERROR
    pool.servers[SERVERS[1]].dead = False
    later(pool, clock, 10)
    assert pool.get(domain).status is Status.ACTIVE
    assert pool.serial(SERVERS[1]) == domain.serial


@all_needed
def test_changes_that_keep_coming_do_not_hide_that_a_server_is_dead(pool: ScriptedPool, clock: Clock) -> None:
    domain = pool.create()
    pool.servers[SERVERS[2]].dead = True
    changed = pool.change(domain)
    assert pool.manager.workers[SERVERS[2]].dns.is_open
    for _ in range(4):
        later(pool, clock, 5)
        changed = pool.change(domain)
        assert pool.get(domain).status is Status.ERROR, 'its tries are used up, whatever the serial'
    pool.servers[SERVERS[2]].dead = False
    later(pool, clock, 400)
    assert pool.get(domain).status is Status.ACTIVE and pool.serial(SERVERS[2]) == changed.serial


@all_needed
def test_a_server_that_was_right_has_all_its_tries_when_a_change_fails(pool: ScriptedPool, clock: Clock) -> None:
    domain = pool.create()
    pool.servers[SERVERS[2]].dead = True
    pool.manager.workers[SERVERS[2]].dns.failed(3)
    pool.change(domain)
    for seconds in (2, 2, 1.9):
        clock.offset += timedelta(seconds=seconds)
        PeriodicLoops(pool.manager, pool.registry, pool.runtime).run_due()
        assert pool.get(domain).status is Status.PENDING
        pool.change(domain)
    clock.offset += timedelta(seconds=0.2)
    PeriodicLoops(pool.manager, pool.registry, pool.runtime).run_due()
    assert pool.get(domain).status is Status.ERROR


def test_one_server_dead_at_delete_is_reported_at_the_threshold_and_finished_later(
        pool: ScriptedPool, clock: Clock) -> None:
    domain = pool.create()
    pool.servers[SERVERS[0]].dead = True
    pool.delete(domain)
    assert pool.get(domain).status is Status.DELETED
    assert pool.rows(domain)[SERVERS[0], Action.DELETE].status is None
    pool.servers[SERVERS[0]].dead = False
    later(pool, clock, 10)
    assert pool.serial(SERVERS[0]) is None and 'example.com.' not in pool.servers[SERVERS[0]].zones
    assert pool.rows(domain) == {}


@pytest.mark.parametrize('order', [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_delete_then_create_of_a_name_with_casts_in_every_order(pool: ScriptedPool, order: tuple[int, ...]) -> None:
    pool.lose_casts = True
    first = pool.create()
    going = pool.central.delete_domain(CONTEXT, first.id)
    second = pool.create()
    pool.lose_casts = False
    casts = [lambda: pool.endpoint.create_domain(CONTEXT, first), lambda: pool.endpoint.delete_domain(CONTEXT, going),
             lambda: pool.endpoint.create_domain(CONTEXT, second)]
    for number in order:
        casts[number]()
        pool.deliver()
    assert pool.get(first).status is Status.DELETED and pool.get(second).status is Status.ACTIVE
    assert [pool.serial(server) for server in SERVERS] == [second.serial] * 3


def test_a_server_that_lost_its_zones_gets_them_again_and_only_that_server(pool: ScriptedPool) -> None:
    domain = pool.create()
    pool.servers[SERVERS[1]].zones.clear()
    changed = pool.change(domain)
    assert pool.serial(SERVERS[1]) == changed.serial
    assert [len(pool.servers[server].calls) for server in SERVERS] == [1, 2, 1]


def test_sweeps_over_a_healthy_pool_write_nothing(pool: ScriptedPool) -> None:
    domain = pool.create()
    before = pool.rows(domain)
    for _ in range(2):
        pool.sweep()
        assert not pool.asked
    assert pool.rows(domain) == before


def test_a_report_that_central_never_got_is_sent_again(pool: ScriptedPool, clock: Clock,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(context: Context, reports: Any) -> None:
        raise ServiceUnavailable(service='central', why='no answer')

    with monkeypatch.context() as patched:
        patched.setattr(pool.central, 'update_statuses', deaf)
        domain = pool.create()
    assert pool.get(domain).status is Status.PENDING
    clock.offset += timedelta(seconds=10)
    PeriodicLoops(pool.manager, pool.registry, pool.runtime).run_unsettled()
    assert pool.get(domain).status is Status.ACTIVE


def test_polls_are_repeated_but_for_those_of_a_server_that_may_be_fetching(pool: ScriptedPool, clock: Clock) -> None:
    domain = pool.create()
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 60})
    assert len(pool.asked) == 3
    pool.asked.clear()
    pool.manager.repeat_polls()
    later(pool, clock, 0)
    assert pool.asked == []
    later(pool, clock, 2)
    assert pool.get(domain).reported_serial == changed.serial
    assert not any(row.next_attempt_at for row in pool.rows(domain).values())


def test_a_server_that_says_it_has_the_zone_and_does_not_is_an_error_with_a_reason(
        pool: ScriptedPool, clock: Clock) -> None:
    server = pool.servers[SERVERS[0]]
    server.zones = Forgetful()
    domain = pool.create()
    later(pool, clock, 1)
    row = pool.rows(domain)[SERVERS[0], Action.UPDATE]
    assert (row.status, row.last_error) == (Outcome.ERROR, 'REFUSED')
    assert pool.get(domain).status is Status.ACTIVE
    calls = len(server.calls)
    later(pool, clock, 1)
    assert len(server.calls) == calls


class Forgetful(dict[str, 'int | None']):
    """Takes every zone and keeps none."""

    def setdefault(self, key: str, default: int | None = None) -> int | None:  # type: ignore[override]
        return default


def test_a_new_server_of_the_pool_is_given_every_domain_by_the_sweep(pool: ScriptedPool) -> None:
    domain = pool.create()
    pool.storage.run(pool_servers.purge, SERVERS[2], [domain.id])
    pool.servers[SERVERS[2]].zones.clear()
    pool.sweep()
    pool.deliver()
    assert pool.serial(SERVERS[2]) == domain.serial
