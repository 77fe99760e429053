"""Servers get other settings, rest or leave while calls to them are under way."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import timedelta

import pytest

from designate_pool.model import Action, Domain, Endpoint, ServerState, Status
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from tests.unit.pool_manager.conftest import CONTEXT, A, B, C, Clock, Town, later, some


def create(town: Town, name: str = 'example.com.') -> Domain:
    return town.central.create_domain(CONTEXT, {'name': name, 'email': 'hostmaster@example.com'})


def verbs(town: Town, server: str) -> list[str]:
    return [verb for verb, _ in town.servers[server].calls]


def test_a_section_that_goes_during_a_call_costs_the_other_servers_nothing(town: Town) -> None:
    def remove() -> None:
        del town.configured[C]
        town.registry.reload()

    town.servers[C].before_return = remove
    domain = create(town)
    town.deliver()
    assert town.get(domain).status is Status.ACTIVE
    assert town.rows(domain)[C, Action.CREATE].claimed_by is None
    town.settle()
    assert town.states[C] == 'removed'


@pytest.mark.parametrize('setting', [{'port': 5300}, {'primaries': (Endpoint('192.0.2.10', 5354),)}])
def test_a_call_that_was_made_with_former_settings_is_made_again_with_those_of_now(
        town: Town, clock: Clock, setting: dict[str, object]) -> None:
    def change() -> None:
        town.configured[C] = dataclasses.replace(town.configured[C], **setting)  # type: ignore[arg-type]
        town.registry.reload()
        town.filling.run()

    town.servers[C].before_return = change
    domain = create(town)
    town.deliver()
    later(town, clock, 2)
    assert verbs(town, C) == ['create', 'create']
    town.settle()
    assert town.get(domain).status is Status.ACTIVE


def test_a_deletion_at_the_former_address_is_made_at_the_present_one(town: Town, clock: Clock) -> None:
    def move() -> None:
        town.configured[C] = dataclasses.replace(town.configured[C], host='192.0.2.77')
        town.registry.reload()

    domain, = some(town, 1)
    town.servers[C].before_return = move
    gone = town.central.delete_domain(CONTEXT, domain.id)
    later(town, clock, 2)
    assert verbs(town, C) == ['create', 'delete', 'delete']
    assert town.get(gone).status is Status.DELETED and town.rows(gone) == {}


def rest(town: Town) -> None:
    town.put(C, ServerState.MAINTENANCE)


def go(town: Town) -> None:
    del town.configured[C]
    town.registry.reload()


@pytest.mark.parametrize('leave', [rest, go])
def test_a_server_that_leaves_just_before_due_rows_are_claimed_holds_up_no_other(
        town: Town, clock: Clock, monkeypatch: pytest.MonkeyPatch,
        leave: Callable[[Town], None]) -> None:
    create(town)
    town.asked.clear()  # as with a MiniDNS that died
    clock.offset += timedelta(seconds=13)
    queues = town.manager.queues

    def left_meanwhile() -> dict[str, int]:
        monkeypatch.setattr(town.manager, 'queues', queues)
        leave(town)
        return queues()

    monkeypatch.setattr(town.manager, 'queues', left_meanwhile)
    PeriodicLoops(town.manager, town.registry, town.runtime).run_due()
    assert sorted(each.server_id for each in town.asked) == [A, B]


def test_what_others_begin_on_a_server_that_has_just_left_goes_with_it(town: Town, clock: Clock) -> None:
    other = town.new_manager('two')  # which has yet to see that it leaves
    town.put(C, ServerState.DRAINING, dismissed=True)
    town.settle()
    town.lose_casts = True
    domain = create(town)
    other.change([domain.id])
    town.deliver()
    town.registry.refresh()
    town.settle()
    assert [key for key in town.rows(domain) if key[0] == C] == []
    town.lose_casts = False
    gone = town.central.delete_domain(CONTEXT, domain.id)
    later(town, clock, 2)
    assert town.get(gone).status is Status.DELETED and town.rows(gone) == {}


def test_a_server_is_forgotten_only_when_it_has_been_emptied(town: Town) -> None:
    other = town.new_manager('two')
    del town.configured[C]
    town.registry.reload()
    town.settle()
    town.lose_casts = True
    domain = create(town)
    other.change([domain.id])
    town.registry.reload()
    town.settle()
    assert [key for key in town.rows(domain) if key[0] == C] == []
    town.registry.reload()
    assert C not in town.states
