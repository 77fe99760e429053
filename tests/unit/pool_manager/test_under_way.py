"""Servers get other settings, rest or leave while calls to them are under way."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import timedelta

import pytest

from designate_pool.model import Action, Domain, Endpoint, ServerState, Status
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from designate_pool.storage.operations import pool_servers as server_store
from tests.unit.pool_manager.conftest import CONTEXT, A, B, C, Clock, EditablePool, later, some


def create(editable: EditablePool, name: str = 'example.com.') -> Domain:
    return editable.central.create_domain(CONTEXT, {'name': name, 'email': 'hostmaster@example.com'})


def verbs(editable: EditablePool, server: str) -> list[str]:
    return [verb for verb, _ in editable.servers[server].calls]


def test_a_section_that_goes_during_a_call_costs_the_other_servers_nothing(editable: EditablePool) -> None:
    def remove() -> None:
        del editable.configured[C]
        editable.registry.reload()

    editable.servers[C].before_return = remove
    domain = create(editable)
    editable.deliver()
    assert editable.get(domain).status is Status.ACTIVE
    assert editable.rows(domain)[C, Action.CREATE].claimed_by is None
    editable.settle()
    assert editable.states[C] == 'removed'


@pytest.mark.parametrize('setting', [{'port': 5300}, {'primaries': (Endpoint('192.0.2.10', 5354),)}])
def test_a_call_that_was_made_with_former_settings_is_made_again_with_those_of_now(
        editable: EditablePool, clock: Clock, setting: dict[str, object]) -> None:
    def change() -> None:
        editable.configured[C] = dataclasses.replace(editable.configured[C], **setting)  # type: ignore[arg-type]
        editable.registry.reload()
        editable.filling.run()

    editable.servers[C].before_return = change
    domain = create(editable)
    editable.deliver()
    later(editable, clock, 2)
    assert verbs(editable, C) == ['create', 'create']
    editable.settle()
    assert editable.get(domain).status is Status.ACTIVE


def test_a_deletion_at_the_former_address_is_made_at_the_present_one(editable: EditablePool, clock: Clock) -> None:
    def move() -> None:
        editable.configured[C] = dataclasses.replace(editable.configured[C], host='192.0.2.77')
        editable.registry.reload()

    domain, = some(editable, 1)
    editable.servers[C].before_return = move
    gone = editable.central.delete_domain(CONTEXT, domain.id)
    later(editable, clock, 2)
    assert verbs(editable, C) == ['create', 'delete', 'delete']
    assert editable.get(gone).status is Status.DELETED and editable.rows(gone) == {}


def rest(editable: EditablePool) -> None:
    editable.put(C, ServerState.MAINTENANCE)


def go(editable: EditablePool) -> None:
    del editable.configured[C]
    editable.registry.reload()


@pytest.mark.parametrize('leave', [rest, go])
def test_a_server_that_leaves_just_before_due_rows_are_claimed_holds_up_no_other(
        editable: EditablePool, clock: Clock, monkeypatch: pytest.MonkeyPatch,
        leave: Callable[[EditablePool], None]) -> None:
    create(editable)
    editable.asked.clear()  # as with a MiniDNS that died
    clock.offset += timedelta(seconds=13)
    queues = editable.manager.queues

    def left_meanwhile() -> dict[str, int]:
        monkeypatch.setattr(editable.manager, 'queues', queues)
        leave(editable)
        return queues()

    monkeypatch.setattr(editable.manager, 'queues', left_meanwhile)
    PeriodicLoops(editable.manager, editable.registry, editable.runtime).run_due()
    assert sorted(each.server_id for each in editable.asked) == [A, B]


def test_what_others_begin_on_a_server_that_has_just_left_goes_with_it(editable: EditablePool, clock: Clock) -> None:
    other = editable.new_manager('two')  # which has yet to see that it leaves
    editable.put(C, ServerState.DRAINING, dismissed=True)
    editable.settle()
    editable.lose_casts = True
    domain = create(editable)
    other.queue_changes([domain.id])
    editable.deliver()
    editable.registry.refresh()
    editable.settle()
    assert [key for key in editable.rows(domain) if key[0] == C] == []
    editable.lose_casts = False
    gone = editable.central.delete_domain(CONTEXT, domain.id)
    later(editable, clock, 2)
    assert editable.get(gone).status is Status.DELETED and editable.rows(gone) == {}


def test_a_server_is_forgotten_only_when_it_has_been_emptied(editable: EditablePool, clock: Clock) -> None:
    other = editable.new_manager('two')
    del editable.configured[C]
    editable.registry.reload()
    editable.settle()
    editable.lose_casts = True
    domain = create(editable)
    other.queue_changes([domain.id])
    clock.offset += server_store.KEPT
    editable.registry.reload()
    editable.settle()
    assert [key for key in editable.rows(domain) if key[0] == C] == []
    clock.offset += server_store.KEPT
    editable.registry.reload()
    assert C not in editable.states
