"""Which faults are possible with which back ends."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from testing.bind import Named
from testing.knot import Knotd
from testing.nsd import Nsd
from testing.pdns import PowerDns
from tests.torture import faults
from tests.torture.backends import BACKENDS
from tests.torture.schedule import FaultKind

SERVERS = {'bind1': Named, 'knot1': Knotd, 'native1': PowerDns, 'nsd1': Nsd, 'pdns1': PowerDns}


def some(*names: str, can_fail_over: bool = False) -> SimpleNamespace:
    return SimpleNamespace(is_cluster=len(names) > 1, nodes=[SimpleNamespace(name=name) for name in names],
                           can_fail_over=can_fail_over)


def kinds(database: SimpleNamespace, broker: SimpleNamespace) -> list[FaultKind]:
    """Of a lab that was not started."""
    lab: Any = SimpleNamespace(
        server_nodes={name: SimpleNamespace(daemon=make.__new__(make), is_fed=name == 'native1')
                      for name, make in SERVERS.items()},
        services=dict.fromkeys(['central1', 'manager1', 'minidns1', 'api1']), keyed=['bind1', 'knot1'],
        database=database, broker=broker)
    return faults.kinds(lab)


SINGLE = kinds(some('database'), some('broker'))
GALERA = kinds(some('galera1', 'galera2', 'galera3'), some('broker'))
STANDBY = kinds(some('standby1', 'standby2', can_fail_over=True), some('broker'))
RABBITMQ = kinds(some('database'), some('broker1', 'broker2', 'broker3'))


def names_of(found: list[FaultKind], target: str) -> set[str]:
    return {kind.name for kind in found if target in kind.targets}


def test_every_fault_is_done_with_some_back_ends() -> None:
    assert {kind.name for found in (SINGLE, GALERA, STANDBY, RABBITMQ) for kind in found} == faults.FAULTS.keys()
    assert len(BACKENDS) == 5


@pytest.mark.parametrize(('found', 'node', 'expected'), [
    (SINGLE, 'database', {'kill', 'restart', 'pause', 'fill_disk'}),
    (SINGLE, 'broker', {'kill', 'restart', 'pause', 'fill_disk'}),
    (GALERA, 'galera2', {'kill', 'restart', 'pause', 'fill_disk', 'isolate_node'}),
    (STANDBY, 'standby1', {'kill', 'restart', 'pause', 'fill_disk', 'isolate_node'}),
    (RABBITMQ, 'broker3', {'kill', 'restart', 'pause', 'fill_disk', 'isolate_node'})],
    ids=['database', 'broker', 'galera', 'standby', 'rabbitmq'])
def test_what_is_done_to_a_node_itself(found: list[FaultKind], node: str, expected: set[str]) -> None:
    assert expected <= names_of(found, node) <= expected | {
        'lose_commits', 'lose_commit_answers', 'cut_connections', 'partition_database', 'partition_broker'}


def test_one_node_of_a_cluster_at_a_time_is_lost() -> None:
    for found, nodes in ((GALERA, 'galera'), (STANDBY, 'standby'), (RABBITMQ, 'broker')):
        of_nodes = [kind for kind in found if any(target.removeprefix(nodes).isdigit() for target in kind.targets)]
        assert of_nodes and all(kind.alone for kind in of_nodes)
        assert len({kind.group for kind in of_nodes}) == 1
    assert {kind.name: kind.group for kind in STANDBY}['fail_over'] in {
        kind.group for kind in STANDBY if 'standby1' in kind.targets}


def test_services_are_cut_off_from_the_database_and_each_node_of_the_broker() -> None:
    for found, names in ((SINGLE, ['database', 'broker']), (GALERA, ['database', 'broker']),
                         (RABBITMQ, ['database', 'broker1', 'broker3'])):
        assert {f'central1-{name}' for name in names} <= {
            target for kind in found if kind.name == 'cut' for target in kind.targets}


@pytest.mark.parametrize('fault', [faults.wipe, faults.move], ids=lambda fault: fault.__name__)
def test_a_server_on_a_read_only_disk_is_not_killed_to_be_wiped(fault: Any) -> None:
    server = SimpleNamespace(running=True, is_read_only=lambda: True)  # without kill
    trouble: Any = SimpleNamespace(server=lambda target: server)
    with pytest.raises(faults.NotInjected, match='read-only'):
        next(fault(trouble, 'bind1', random.Random(1)))


@pytest.mark.parametrize('seed', range(12))
def test_a_server_whose_clock_was_far_ahead_is_started_anew(seed: int) -> None:
    done: list[Any] = []
    clock = SimpleNamespace(set=lambda seconds: done.append(seconds), is_seen_by=lambda leader: True)
    server = SimpleNamespace(running=True, wanted=True, clock=clock, leader=lambda: 1, stop=lambda: done.append('stop'))
    trouble: Any = SimpleNamespace(server=lambda target: server)
    assert len(list(faults.wrong_server_clock(trouble, 'bind1', random.Random(seed)))) == 1
    assert done == [done[0], 0, *(['stop'] if done[0] in (600, 7200) else [])]
    assert server.wanted
