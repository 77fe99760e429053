"""The invariants see faults: each of these is put into the product by replacing one function, on a path to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from designate_pool import consensus
from designate_pool.central.rules import domains as domain_rules
from designate_pool.model import Action, CallResult, Outcome, ServerStatus
from designate_pool.pool_manager.reconcile import row_transitions, verdicts
from tests.unit.state_machines.cluster import NAMES, SERVERS, Cluster
from tests.unit.state_machines.invariants import Breach, Invariants
from tests.unit.state_machines.machine import database
from tests.unit.state_machines.simulation import SimulatedClock, simulated_world

Patch = pytest.MonkeyPatch


def a_deletion_is_complete_at_the_threshold(patch: Patch) -> None:
    evaluate = verdicts.evaluate

    def early(states: Any, *arguments: Any) -> Any:
        states = list(states)
        found = evaluate(states, *arguments)
        found.finished += [each.domain_id for each in found.reports
                           if each.action is Action.DELETE and each.status is Outcome.SUCCESS]
        return found

    patch.setattr(verdicts, 'evaluate', early)


def silence_is_taken_for_absence(patch: Patch) -> None:
    after_call = row_transitions.after_call

    def lenient(row: ServerStatus, result: CallResult, *arguments: Any) -> ServerStatus:
        return after_call(row, CallResult() if row.action is Action.DELETE else result, *arguments)

    patch.setattr(row_transitions, 'after_call', lenient)


def one_server_less_than_the_threshold_is_enough(patch: Patch) -> None:
    needed = consensus.needed
    patch.setattr(consensus, 'needed', lambda *arguments: max(1, needed(*arguments) - 1))


def a_new_domain_begins_with_any_serial(patch: Patch) -> None:
    patch.setattr(domain_rules, 'first_serial', lambda last, lowest, now: int(now))


def delete_while_a_server_is_not_reached(cluster: Cluster) -> None:
    cluster.servers[SERVERS[2]].hears_control = False
    cluster.ask('delete', NAMES[0])
    cluster.live(5)


def change_while_two_servers_are_not_reached(cluster: Cluster) -> None:
    for server in SERVERS[1:]:
        cluster.servers[server].hears_dns = False
    cluster.ask('change', NAMES[0])
    cluster.live(5)


def delete_and_create(cluster: Cluster) -> None:
    for kind in ('delete', 'create'):
        cluster.ask(kind, NAMES[0], at_once=True)


PLANTED = (
    (a_deletion_is_complete_at_the_threshold, delete_while_a_server_is_not_reached),
    (silence_is_taken_for_absence, delete_while_a_server_is_not_reached),
    (one_server_less_than_the_threshold_is_enough, change_while_two_servers_are_not_reached),
    (a_new_domain_begins_with_any_serial, delete_and_create))


@pytest.mark.parametrize(('plant', 'path'), PLANTED, ids=lambda each: each.__name__)
def test_a_planted_fault_is_found(plant: Callable[[Patch], None], path: Callable[[Cluster], None],
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    clock = SimulatedClock()
    with simulated_world(clock):
        cluster = Cluster(database(), clock, 66)
        invariants = Invariants(cluster)
        try:
            cluster.ask('create', NAMES[0])
            with pytest.raises(Breach):
                cluster.live(3)
                path(cluster)
                cluster.heal()
                invariants.check_end()
        finally:
            cluster.end()
