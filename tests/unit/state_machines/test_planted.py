"""Faults that are put into the product: the invariants see some on a path to them, the state machine finds others."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from designate_pool import consensus
from designate_pool.central.rules import domains as domain_rules
from designate_pool.model import Action, CallResult, Outcome, ServerStatus
from designate_pool.pool_manager.periodic.orphan_audit import OrphanAudit
from designate_pool.pool_manager.reconcile import reconciler, row_transitions
from designate_pool.storage.operations import server_statuses
from tests.torture.planted import Plant
from tests.unit.state_machines import planted
from tests.unit.state_machines.cluster import NAMES, SERVERS, Cluster, simulated_pool
from tests.unit.state_machines.invariants import Breach, Invariants
from tests.unit.state_machines.machine import database
from tests.unit.state_machines.simulation import SimulatedClock

Patch = pytest.MonkeyPatch


def a_deletion_is_complete_at_the_threshold(patch: Patch) -> None:
    evaluate = reconciler.evaluate

    def early(states: Any, *arguments: Any) -> Any:
        states = list(states)
        found = evaluate(states, *arguments)
        found.finished += [each.domain_id for each in found.reports
                           if each.action is Action.DELETE and each.status is Outcome.SUCCESS]
        return found

    patch.setattr(reconciler, 'evaluate', early)
    patch.setattr(server_statuses, 'purge_domains', lambda tx, domain_ids, *_: server_statuses.forget(tx, domain_ids))


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


def orphans_are_not_looked_for(patch: Patch) -> None:
    patch.setattr(OrphanAudit, '_find_orphans', lambda self, worker: [])


def delete_while_a_server_is_out_of_the_configuration(cluster: Cluster) -> None:
    for kind in ('delete', 'nothing'):
        cluster.change_members('section', SERVERS[2])
        cluster.live(15)
        if kind == 'delete':
            cluster.ask(kind, NAMES[0])
        cluster.live(15)
    cluster.has_audits = True


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
    (a_new_domain_begins_with_any_serial, delete_and_create),
    (orphans_are_not_looked_for, delete_while_a_server_is_out_of_the_configuration))


@pytest.mark.parametrize(('plant', 'path'), PLANTED, ids=lambda each: each.__name__)
def test_a_planted_fault_is_found(plant: Callable[[Patch], None], path: Callable[[Cluster], None],
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    clock = SimulatedClock()
    with simulated_pool(clock):
        cluster = Cluster(database(), clock, 66, deletes_on_removal=False)
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


@pytest.mark.parametrize('plant', planted.PLANTS.values(), ids=planted.PLANTS)
def test_what_is_planted_changes_text_that_is_there(plant: Plant) -> None:
    for change in plant.changes:
        spec = importlib.util.find_spec(f'designate_pool.{change.module}')
        assert spec is not None and spec.origin is not None
        assert pathlib.Path(spec.origin).read_text().count(change.old) == 1, change


def machine_output(plant: str, runs: int, **environment: str) -> str:
    return subprocess.run([sys.executable, '-W', 'ignore', '-m', planted.__name__, plant, str(runs)],
                          stdout=subprocess.PIPE, text=True, timeout=900, env={**os.environ, **environment}).stdout


@pytest.mark.slow
@pytest.mark.parametrize('name', planted.FOUND)
def test_the_state_machine_finds_a_planted_bug_by_itself(name: str) -> None:
    assert f'{name}: found by run' in machine_output(name, planted.RUNS)


@pytest.mark.slow
def test_the_steps_of_a_seed_do_not_depend_on_the_order_of_sets() -> None:
    outputs = {machine_output('none', 25, PYTHONHASHSEED=seed).rsplit(',', 1)[0] for seed in '01'}
    assert len(outputs) == 1 and 'not found in' in outputs.pop()
