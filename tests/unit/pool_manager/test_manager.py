"""What becomes of the zones of a pool as they are made, changed and deleted, with servers that fail and come back."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from designate_pool.errors import ServiceUnavailable
from designate_pool.model import Action, Context, Domain, Outcome, Status
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from designate_pool.pool_manager.service import PoolManager
from designate_pool.rpc import pool_manager as manager_rpc
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.zones import domains
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, Clock, World, all_needed, later


def test_first_create(world: World) -> None:
    domain = world.create()
    assert world.get(domain).status is Status.ACTIVE
    assert all(row.status is Outcome.SUCCESS and row.next_attempt_at is None for row in world.rows(domain).values())
    assert [world.serial(server) for server in SERVERS] == [domain.serial] * 3


def test_the_same_cast_once_more_does_nothing(world: World) -> None:
    domain = world.create()
    before = world.rows(domain)
    world.endpoint.create_domain(CONTEXT, domain)
    world.deliver()
    assert world.rows(domain) == before
    assert all(len(server.calls) == 1 for server in world.servers.values())


def test_a_change_is_polled_for_and_reported(world: World) -> None:
    domain = world.create()
    changed = world.change(domain)
    after = world.get(domain)
    assert (after.status, after.serial, after.reported_serial) == (Status.ACTIVE, changed.serial, changed.serial)
    assert all(len(server.calls) == 1 for server in world.servers.values())


@all_needed
def test_an_update_while_an_update_is_in_flight_ends_at_the_last_serial(world: World) -> None:
    domain = world.create()
    first = world.central.update_domain(CONTEXT, domain.id, {'ttl': 60})
    late = [dataclasses.replace(world.poll(request), serial_number=first.serial, expected_serial=first.serial)
            for request in world.asked]
    second = world.central.update_domain(CONTEXT, domain.id, {'ttl': 61})
    world.endpoint.update_statuses(CONTEXT, late)
    assert world.get(domain).reported_serial == first.serial and world.get(domain).status is Status.PENDING
    world.deliver()
    world.endpoint.update_statuses(CONTEXT, late)
    assert world.get(domain).reported_serial == second.serial and world.get(domain).status is Status.ACTIVE


@all_needed
def test_a_change_while_the_create_is_under_way_is_brought_by_it(world: World) -> None:
    changed: list[Domain] = []

    def change_meanwhile() -> None:
        domain = next(iter(world.storage.read(domains.live_by_name, ['example.com.']).values()))
        changed.append(world.central.update_domain(CONTEXT, domain.id, {'ttl': 77}))

    world.servers[SERVERS[0]].before_return = change_meanwhile
    domain = world.create()
    assert world.get(domain).status is Status.ACTIVE and world.get(domain).reported_serial == changed[0].serial
    assert [len(server.calls) for server in world.servers.values()] == [1, 1, 1]


def test_one_server_dead_at_create_costs_the_others_nothing(world: World) -> None:
    world.servers[SERVERS[1]].dead = True
    domain = world.create()
    assert world.get(domain).status is Status.ACTIVE
    row = world.rows(domain)[SERVERS[1], Action.CREATE]
    assert (row.status, row.attempts, row.last_error) == (None, 1, 'connection refused')


@all_needed
def test_one_server_dead_at_create_is_an_error_when_the_tries_are_used_up(world: World, clock: Clock) -> None:
    world.servers[SERVERS[1]].dead = True
    domain = world.create()
    for _ in range(2):
        later(world, clock, 2.1)
        assert world.get(domain).status is Status.PENDING
    later(world, clock, 2.1)
    assert world.get(domain).status is Status.ERROR
    world.servers[SERVERS[1]].dead = False
    later(world, clock, 10)
    assert world.get(domain).status is Status.ACTIVE
    assert world.serial(SERVERS[1]) == domain.serial


@all_needed
def test_a_refused_key_is_an_error_at_once(world: World) -> None:
    world.servers[SERVERS[0]].refuses = True
    domain = world.create()
    assert world.get(domain).status is Status.ERROR
    assert world.rows(domain)[SERVERS[0], Action.CREATE].last_error == 'the key was refused'


@all_needed
def test_one_server_dead_at_update_and_back_again(world: World, clock: Clock) -> None:
    domain = world.create()
    world.servers[SERVERS[2]].dead = True
    changed = world.change(domain)
    assert world.get(domain).status is Status.ERROR
    assert world.manager.workers[SERVERS[2]].dns.is_open
    world.servers[SERVERS[2]].dead = False
    later(world, clock, 400)
    assert world.get(domain).status is Status.ACTIVE
    assert world.serial(SERVERS[2]) == changed.serial


@all_needed
def test_changes_that_keep_coming_do_not_hide_that_a_server_is_dead(world: World, clock: Clock) -> None:
    domain = world.create()
    world.servers[SERVERS[2]].dead = True
    changed = world.change(domain)
    assert world.manager.workers[SERVERS[2]].dns.is_open
    for _ in range(4):
        later(world, clock, 5)
        changed = world.change(domain)
        assert world.get(domain).status is Status.ERROR, 'its tries are used up, whatever the serial'
    world.servers[SERVERS[2]].dead = False
    later(world, clock, 400)
    assert world.get(domain).status is Status.ACTIVE and world.serial(SERVERS[2]) == changed.serial


@all_needed
def test_a_server_that_was_right_has_all_its_tries_when_a_change_fails(world: World, clock: Clock) -> None:
    domain = world.create()
    world.servers[SERVERS[2]].dead = True
    world.manager.workers[SERVERS[2]].dns.failed(3)
    world.change(domain)
    for seconds in (2, 2, 1.9):
        clock.offset += timedelta(seconds=seconds)
        PeriodicLoops(world.manager, world.registry, world.runtime).run_due()
        assert world.get(domain).status is Status.PENDING
        world.change(domain)
    clock.offset += timedelta(seconds=0.2)
    PeriodicLoops(world.manager, world.registry, world.runtime).run_due()
    assert world.get(domain).status is Status.ERROR


def test_one_server_dead_at_delete_is_reported_at_the_threshold_and_finished_later(world: World, clock: Clock) -> None:
    domain = world.create()
    world.servers[SERVERS[0]].dead = True
    world.delete(domain)
    assert world.get(domain).status is Status.DELETED
    assert world.rows(domain)[SERVERS[0], Action.DELETE].status is None
    world.servers[SERVERS[0]].dead = False
    later(world, clock, 10)
    assert world.serial(SERVERS[0]) is None and 'example.com.' not in world.servers[SERVERS[0]].zones
    assert world.rows(domain) == {}


def test_delete_leaves_no_rows_when_every_server_has_confirmed(world: World) -> None:
    domain = world.create()
    world.delete(domain)
    assert world.get(domain).status is Status.DELETED and world.rows(domain) == {}
    assert all('example.com.' not in server.zones for server in world.servers.values())


@pytest.mark.parametrize('order', [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_delete_then_create_of_a_name_with_casts_in_every_order(world: World, order: tuple[int, ...]) -> None:
    world.lose_casts = True
    first = world.create()
    going = world.central.delete_domain(CONTEXT, first.id)
    second = world.create()
    world.lose_casts = False
    casts = [lambda: world.endpoint.create_domain(CONTEXT, first), lambda: world.endpoint.delete_domain(CONTEXT, going),
             lambda: world.endpoint.create_domain(CONTEXT, second)]
    for number in order:
        casts[number]()
        world.deliver()
    assert world.get(first).status is Status.DELETED and world.get(second).status is Status.ACTIVE
    assert [world.serial(server) for server in SERVERS] == [second.serial] * 3


def test_a_deletion_under_way_while_the_name_is_created_anew_does_not_take_the_new_zone_with_it(
        world: World, clock: Clock) -> None:
    first = world.create()
    second: list[Domain] = []

    def create_meanwhile() -> None:
        # Another pool manager creates the new zone, which the server says it has, and only then the deletion ends.
        second.append(world.create())
        world.servers[SERVERS[0]].zones.pop('example.com.', None)

    world.servers[SERVERS[0]].before_return = create_meanwhile
    world.delete(first)
    later(world, clock, 1)
    assert world.get(second[0]).status is Status.ACTIVE and world.get(first).status is Status.DELETED
    assert [world.serial(server) for server in SERVERS] == [second[0].serial] * 3


def test_a_server_that_lost_its_zones_gets_them_again_and_only_that_server(world: World) -> None:
    domain = world.create()
    world.servers[SERVERS[1]].zones.clear()
    changed = world.change(domain)
    assert world.serial(SERVERS[1]) == changed.serial
    assert [len(world.servers[server].calls) for server in SERVERS] == [1, 2, 1]


def test_the_sweep_finds_a_zone_that_was_removed_by_hand(world: World) -> None:
    domain = world.create()
    del world.servers[SERVERS[2]].zones['example.com.']
    world.sweep()
    world.deliver()
    assert world.serial(SERVERS[2]) == domain.serial
    assert world.get(domain).status is Status.ACTIVE


def test_sweeps_over_a_healthy_pool_write_nothing(world: World) -> None:
    domain = world.create()
    before = world.rows(domain)
    for _ in range(2):
        world.sweep()
        assert not world.asked
    assert world.rows(domain) == before


def test_a_cast_that_never_arrived_is_made_up_for(world: World, clock: Clock) -> None:
    world.lose_casts = True
    domain = world.create()
    assert world.get(domain).status is Status.PENDING and world.rows(domain) == {}
    clock.offset += timedelta(seconds=10)
    PeriodicLoops(world.manager, world.registry, world.runtime).run_unsettled()
    world.deliver()
    assert world.get(domain).status is Status.ACTIVE


def test_a_report_that_central_never_got_is_sent_again(world: World, clock: Clock,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(context: Context, reports: Any) -> None:
        raise ServiceUnavailable(service='central', why='no answer')

    with monkeypatch.context() as patched:
        patched.setattr(world.central, 'update_statuses', deaf)
        domain = world.create()
    assert world.get(domain).status is Status.PENDING
    clock.offset += timedelta(seconds=10)
    PeriodicLoops(world.manager, world.registry, world.runtime).run_unsettled()
    assert world.get(domain).status is Status.ACTIVE


def test_a_manager_killed_between_the_driver_s_call_and_the_row_loses_nothing(world: World, clock: Clock) -> None:
    def die() -> None:
        raise SystemExit

    world.servers[SERVERS[0]].before_return = die
    domain = world.create()
    assert world.rows(domain)[SERVERS[0], Action.CREATE].claimed_by == 'one'
    world.manager = world.new_manager('two')
    world.endpoint = PoolManager(world.manager, world.registry, world.runtime)
    world.caller.serve(manager_rpc.topic('default'), world.endpoint)
    later(world, clock, 1)
    assert world.get(domain).status is not Status.ACTIVE or world.serial(SERVERS[0]) is None
    later(world, clock, 31)
    assert world.get(domain).status is Status.ACTIVE
    assert [world.serial(server) for server in SERVERS] == [domain.serial] * 3


def test_a_server_that_says_it_has_the_zone_and_does_not_is_an_error_with_a_reason(world: World, clock: Clock) -> None:
    server = world.servers[SERVERS[0]]
    server.zones = Forgetful()
    domain = world.create()
    later(world, clock, 1)
    row = world.rows(domain)[SERVERS[0], Action.UPDATE]
    assert (row.status, row.last_error) == (Outcome.ERROR, 'REFUSED')
    assert world.get(domain).status is Status.ACTIVE
    calls = len(server.calls)
    later(world, clock, 1)
    assert len(server.calls) == calls


class Forgetful(dict[str, 'int | None']):
    """Takes every zone and keeps none."""

    def setdefault(self, key: str, default: int | None = None) -> int | None:  # type: ignore[override]
        return default


def test_a_new_server_of_the_pool_is_given_every_domain_by_the_sweep(world: World) -> None:
    domain = world.create()
    world.storage.run(pool_servers.purge, SERVERS[2], [domain.id])
    world.servers[SERVERS[2]].zones.clear()
    world.sweep()
    world.deliver()
    assert world.serial(SERVERS[2]) == domain.serial


def test_the_specification_s_update_status_is_the_same_as_a_poll(world: World) -> None:
    world.lose_casts = True
    domain = world.create()
    world.lose_casts = False
    world.endpoint.create_domain(CONTEXT, domain)
    world.asked.clear()
    for name_server in (SERVERS[0], '192.0.2.1:54'):
        assert world.get(domain).status is Status.PENDING
        world.endpoint.update_status(CONTEXT, domain, name_server, Outcome.SUCCESS, domain.serial)
    assert world.get(domain).status is Status.ACTIVE
