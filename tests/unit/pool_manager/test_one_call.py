"""One call at a time for a name on a server, whichever pool manager makes it, and what follows when one is late."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from designate_pool.model import Action, CallResult, Domain, Outcome, Status
from designate_pool.pool_manager.dispatch.server_worker import CallOutcome, ServerWorker
from designate_pool.pool_manager.dispatch.work_queue import Operation
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, Clock, World, all_needed, later

NAME = 'example.com.'
FIRST = SERVERS[0]


@contextlib.contextmanager
def held_up(manager: Manager, server: str = FIRST) -> Iterator[list[Operation]]:
    """What *manager* hands to a server's lane waits there, until the end."""
    worker = manager.workers[server]
    operations: list[Operation] = []
    worker.put = lambda *some: operations.extend(some)  # type: ignore[method-assign]
    try:
        yield operations
    finally:
        del worker.put
        worker.put(*operations)


def verbs(world: World, server: str = FIRST) -> list[str]:
    return [verb for verb, _ in world.servers[server].calls]


def new_domain(world: World) -> Domain:
    return world.central.create_domain(CONTEXT, {'name': NAME, 'email': 'hostmaster@example.com'})


def test_a_deletion_waits_for_the_creation_that_another_manager_has_in_hand(
        world: World, clock: Clock) -> None:
    other = world.new_manager('two')
    with held_up(world.manager):
        domain = new_domain(world)
        world.lose_casts = True
        gone = world.central.delete_domain(CONTEXT, domain.id)
        other.change([gone.id])
        assert [verbs(world, server) for server in SERVERS] == [[], ['create', 'delete'], ['create', 'delete']]
        for _ in range(3):
            clock.offset += timedelta(seconds=2)
            PeriodicLoops(other, world.registry, world.runtime).run_due()
        assert verbs(world) == []
    assert verbs(world) == ['create', 'delete'], 'at once, when the creation has ended'
    assert NAME not in world.servers[FIRST].zones
    assert world.get(domain).status is Status.DELETED and world.rows(domain) == {}


def test_a_creation_that_waits_for_its_turn_is_not_made_once_the_domain_is_gone(
        world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    other = world.new_manager('two')
    carry_out = world.manager.reconciler.carry_out

    def deleted_meanwhile(orders: Any) -> None:
        monkeypatch.setattr(world.manager.reconciler, 'carry_out', carry_out)
        world.lose_casts = True
        made = world.central.find_domains(CONTEXT)[0]
        other.change([world.central.delete_domain(CONTEXT, made.id).id])
        carry_out(orders)

    monkeypatch.setattr(world.manager.reconciler, 'carry_out', deleted_meanwhile)
    domain = new_domain(world)
    assert 'create' not in verbs(world)
    later(world, clock, 5)
    assert all(server.zones == {} for server in world.servers.values())
    assert world.get(domain).status is Status.DELETED and world.rows(domain) == {}


def test_of_two_that_claim_a_name_at_once_one_goes_on_and_then_the_other(
        world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    first = world.create()
    other = world.new_manager('two')
    write, under_way, most = world.manager.reconciler.write, [0], [0]

    def created_meanwhile(*arguments: Any) -> Any:
        # The deletion is decided on; the name is created anew and its CREATE claimed before the DELETE is.
        monkeypatch.setattr(world.manager.reconciler, 'write', write)
        world.lose_casts = True
        other.change([new_domain(world).id])
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
        monkeypatch.setattr(world.servers[FIRST], name, counting(getattr(world.servers[FIRST], name)))
    with held_up(other):
        world.lose_casts = True
        gone = world.central.delete_domain(CONTEXT, first.id)
        monkeypatch.setattr(world.manager.reconciler, 'write', created_meanwhile)
        world.manager.change([gone.id])
        assert verbs(world) == ['create']
    world.lose_casts = False
    for _ in range(4):
        later(world, clock, 3)
        world.deliver()
    second = world.central.find_domains(CONTEXT)[0]
    assert most == [1]
    assert world.get(second).status is Status.ACTIVE
    assert [world.serial(server) for server in SERVERS] == [second.serial] * 3


@all_needed
def test_a_late_deletion_of_the_former_domain_is_made_up_for_before_the_new_one_counts_as_served(
        world: World, clock: Clock) -> None:
    first = world.create()
    other = world.new_manager('two')
    world.lose_casts = True
    gone = world.central.delete_domain(CONTEXT, first.id)
    with held_up(world.manager):
        world.manager.change([gone.id])
        second = new_domain(world)
        other.change([second.id])
        world.deliver()
        assert verbs(world) == ['create'], 'nobody else is at the name meanwhile'
    assert verbs(world) == ['create', 'delete', 'create']
    assert world.rows(second)[FIRST, Action.UPDATE].serial_number is None
    assert world.get(second).status is Status.PENDING
    world.deliver()
    assert world.get(second).status is Status.ACTIVE
    assert [world.serial(server) for server in SERVERS] == [second.serial] * 3


@all_needed
def test_what_was_seen_before_a_late_deletion_ran_counts_no_more(world: World, clock: Clock) -> None:
    first = world.create()
    other = world.new_manager('two')
    world.lose_casts = True
    gone = world.central.delete_domain(CONTEXT, first.id)
    worker = world.manager.workers[FIRST]
    with held_up(world.manager) as operations:
        world.manager.change([gone.id])
        # Its claim runs out while the call is under way, and the server still has the zone by that name.
        clock.offset += timedelta(seconds=31)
        second = new_domain(world)
        other.change([second.id])
        world.deliver()
        assert world.rows(second)[FIRST, Action.UPDATE].status is Outcome.SUCCESS
        late, operations[:] = operations[:], []
    world.manager._outcomes.put(*_done(worker, late))
    assert world.rows(second)[FIRST, Action.UPDATE].serial_number is None
    world.deliver()
    assert NAME in world.servers[FIRST].zones and world.serial(FIRST) == second.serial
    assert world.rows(second)[FIRST, Action.UPDATE].status is Outcome.SUCCESS


@contextlib.contextmanager
def late_deletion(world: World, clock: Clock) -> Iterator[Domain]:
    """A domain that was given to a server, which then lost it to a deletion of the former one of its name.

    What happens meanwhile does so before the deletion runs, in the eyes of another manager.
    """
    first = world.create()
    other = world.new_manager('two')
    world.lose_casts = True
    gone = world.central.delete_domain(CONTEXT, first.id)
    worker = world.manager.workers[FIRST]
    with held_up(world.manager) as operations:
        world.manager.change([gone.id])
        clock.offset += timedelta(seconds=31)
        second = new_domain(world)
        other.change([second.id])
        yield second
        late, operations[:] = operations[:], []
    world.manager._outcomes.put(*_done(worker, late))


@all_needed
@pytest.mark.parametrize('unasked', [False, True])
def test_what_was_seen_before_a_late_deletion_ran_counts_no_more_when_it_is_told_after_that(
        world: World, clock: Clock, unasked: bool) -> None:
    with late_deletion(world, clock) as second:
        heard = [world.poll(request) for request in world.asked]
        world.asked.clear()
        assert {(each.status, each.serial_number) for each in heard} == {(Outcome.SUCCESS, second.serial)}
        if unasked:
            heard = [dataclasses.replace(each, expected_serial=None, incarnation=None) for each in heard]
    world.manager.handle_results(heard)
    row = world.rows(second)[FIRST, Action.UPDATE]
    assert (row.status, row.serial_number) == (None, None)
    assert world.get(second).status is Status.PENDING
    later(world, clock, 31)
    world.deliver()
    world.manager.handle_results(heard)
    world.deliver()
    assert world.get(second).status is Status.ACTIVE
    assert [world.serial(server) for server in SERVERS] == [second.serial] * 3
    row = world.rows(second)[FIRST, Action.UPDATE]
    assert (row.status, row.serial_number, row.next_attempt_at) == (Outcome.SUCCESS, second.serial, None)


@all_needed
def test_what_was_called_before_a_late_deletion_ran_counts_no_more_when_it_is_told_after_that(
        world: World, clock: Clock) -> None:
    server = world.servers[FIRST]
    with late_deletion(world, clock) as second:
        made = world.rows(second)[FIRST, Action.CREATE]
        assert made.status is Outcome.SUCCESS
        server.before_return = lambda: setattr(server, 'dead', True)  # once it has lost the zone
    world.manager._outcomes.put(CallOutcome(Operation(second, made), CallResult()))
    assert NAME not in server.zones and world.rows(second)[FIRST, Action.CREATE].status is None
    server.dead = False
    later(world, clock, 31)
    assert NAME in server.zones and world.rows(second)[FIRST, Action.CREATE].status is Outcome.SUCCESS


def test_a_message_of_an_older_minidns_counts_as_it_did(world: World, clock: Clock) -> None:
    with late_deletion(world, clock) as second:
        pass
    heard = [dataclasses.replace(world.poll(request), incarnation=None) for request in world.asked]
    world.asked.clear()
    world.manager.handle_results(heard)
    assert world.rows(second)[FIRST, Action.UPDATE].status is Outcome.SUCCESS


def _done(worker: ServerWorker, operations: list[Operation]) -> list[CallOutcome]:
    """The calls for *operations*, made without looking at their claims."""
    return [CallOutcome(work, worker.backend.delete_domain(work.domain)) for work in operations]


def test_what_is_known_of_a_deleted_domain_stays_until_its_last_call_has_ended(
        world: World, clock: Clock) -> None:
    other = world.new_manager('two')
    with held_up(world.manager):
        first = new_domain(world)
        world.lose_casts = True
        gone = world.central.delete_domain(CONTEXT, first.id)
        new_domain(world)
        other.change([gone.id])
        assert world.get(gone).status is Status.DELETED
        assert world.rows(gone)[FIRST, Action.CREATE].claimed_by == 'one'
    later(world, clock, 5)
    assert world.rows(gone) == {} and NAME in world.servers[FIRST].zones


def test_a_deletion_that_only_late_calls_tell_of_is_begun_on_every_server(
        world: World, clock: Clock) -> None:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(held_up(world.manager, server)) for server in SERVERS]
        domain = new_domain(world)
        world.lose_casts = True
        world.central.delete_domain(CONTEXT, domain.id)
        lost, held[2][:] = held[2][:], []  # with the process that was to make it
    assert lost and verbs(world, SERVERS[2]) == []
    later(world, clock, 31)
    assert verbs(world, SERVERS[2]) == ['delete']
    assert world.get(domain).status is Status.DELETED and world.rows(domain) == {}


def test_a_creation_for_the_former_domain_that_ends_late_leaves_the_new_one_its_zone(
        world: World, clock: Clock) -> None:
    other = world.new_manager('two')
    worker = world.manager.workers[FIRST]
    with held_up(world.manager) as operations:
        first = new_domain(world)
        world.lose_casts = True
        clock.offset += timedelta(seconds=31)
        other.change([world.central.delete_domain(CONTEXT, first.id).id])
        second = new_domain(world)
        other.change([second.id])
        world.deliver()
        assert world.get(second).status is Status.ACTIVE
        late, operations[:] = operations[:], []
    before = len(verbs(world))
    world.manager._outcomes.put(*(CallOutcome(work, worker.backend.create_domain(work.domain)) for work in late))
    assert verbs(world)[before:] == ['create']
    assert NAME in world.servers[FIRST].zones and world.rows(first) == {}


def test_what_takes_longer_than_its_claim_is_not_done_twice(world: World, clock: Clock) -> None:
    other = world.new_manager('two')

    def take_long() -> None:
        for _ in range(3):
            clock.offset += timedelta(seconds=25)
            world.manager.extend_claims()
            PeriodicLoops(other, world.registry, world.runtime).run_due()

    world.servers[FIRST].before_return = take_long
    domain = world.create()
    assert verbs(world) == ['create']
    row = world.rows(domain)[FIRST, Action.CREATE]
    assert (row.status, row.claimed_by) == (Outcome.SUCCESS, None)
