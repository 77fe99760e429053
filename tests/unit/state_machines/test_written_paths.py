"""Paths through the machine that were once found to go wrong, written down.

Each is begun by hand, in the order of steps that it takes; then all is well, and the end is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from designate_pool.model import Context, ServerState, Status
from tests.unit.state_machines.cluster import NAMES, SERVERS, Cluster, simulated_pool
from tests.unit.state_machines.invariants import Invariants
from tests.unit.state_machines.machine import database
from tests.unit.state_machines.simulation import Fate, SimulatedClock

NAME = NAMES[0]
FIRST = SERVERS[0]


@pytest.fixture(params=[66, 100])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """With one zone, which all servers serve."""
    yield from served_zone(request.param, ('simulated',) * 4)


@pytest.fixture
def mixed_cluster() -> Iterator[Cluster]:
    """The same, with a server that transfers, one that is fed by records, and one that reads the catalog."""
    yield from served_zone(100, ('simulated', 'records', 'catalog', 'records'))


def served_zone(threshold: int, drivers: Sequence[str]) -> Iterator[Cluster]:
    clock = SimulatedClock()
    with simulated_pool(clock):
        made = Cluster(database(), clock, threshold, drivers, deletes_on_removal=False)
        invariants = Invariants(made)
        made.ask('create', NAME)
        made.live(3)
        assert statuses(made) == [Status.ACTIVE]
        yield made
        made.heal()
        try:
            invariants.check_end()
        finally:
            made.end()


def statuses(cluster: Cluster) -> list[str]:
    return [status for status, in cluster.database.rows('SELECT status FROM domains ORDER BY generation')]


@pytest.mark.parametrize('seconds', [0.0, 1.0, 30.0])
@pytest.mark.parametrize('fate', [Fate.WELL, Fate.UNHEARD, Fate.TWICE])
def test_a_zone_is_restored_on_the_way_of_its_deletion_or_after_it(mixed_cluster: Cluster, seconds: float,
                                                                   fate: Fate) -> None:
    for number in range(2):
        mixed_cluster.ask('delete', NAME, at_once=True)
        mixed_cluster.servers[SERVERS[number]].hears_control = False
        mixed_cluster.live(seconds)
        mixed_cluster.ask('restore', NAME)
        mixed_cluster.happen(mixed_cluster.reach('writes by restore'), fate)
        mixed_cluster.live(2)
        mixed_cluster.servers[SERVERS[number]].hears_control = True
    mixed_cluster.live(120)
    assert mixed_cluster.database.rows("SELECT status, generation > 1 FROM domains WHERE deleted = '0'") == [
        (Status.ACTIVE, 1)]
    assert {operation.is_refused for operation in mixed_cluster.operations} == {False}


@pytest.mark.parametrize(('point', 'skipped'), [
    ('reads by read', 0), ('writes by apply_changes', 0), ('writes by apply_changes', 1)],
    ids=['read', 'check', 'write'])
@pytest.mark.parametrize(('fate', 'meanwhile'), [
    *((fate, None) for fate in (Fate.WELL, Fate.FAILS, Fate.UNHEARD, Fate.TWICE)), (Fate.WELL, 'change'),
    (Fate.UNHEARD, 'change'), (Fate.TWICE, 'delete')])
def test_a_zone_is_reverted_while_it_is_changed(mixed_cluster: Cluster, point: str, skipped: int, fate: Fate,
                                                meanwhile: str | None) -> None:
    first, _ = (mixed_cluster.ask('change', NAME, at_once=True) for _ in range(2))
    mixed_cluster.live(1)
    revert = mixed_cluster.ask('revert', NAME)
    event = mixed_cluster.reach(point)
    for _ in range(skipped):
        mixed_cluster.happen(event)
        event = mixed_cluster.reach(point)
    if meanwhile is not None:
        mixed_cluster.ask(meanwhile, NAME, at_once=True, central=0)
        mixed_cluster.live(1, [event.source])
    mixed_cluster.happen(event, fate)
    mixed_cluster.live(30)
    if meanwhile is None:
        assert (revert.told is not None, revert.is_refused) == (fate in (Fate.WELL, Fate.TWICE), False)
        assert revert.told is None or revert.value == first.value
    elif point != 'reads by read':
        assert revert.is_refused == (fate is not Fate.FAILS)


def test_a_server_is_resumed_at_the_instant_at_which_it_was_put_into_maintenance(cluster: Cluster) -> None:
    central, operator = cluster.centrals[0].service, Context(all_projects=True)
    central.rest_server(operator, FIRST)
    central.resume_server(operator, FIRST)
    assert cluster.states()[FIRST] == ServerState.ACTIVE


def test_the_answer_to_the_report_of_a_deletion_is_lost(cluster: Cluster) -> None:
    cluster.ask('delete', NAME)
    cluster.happen(cluster.reach('calls update_statuses'), Fate.UNHEARD)
    assert statuses(cluster) == [Status.PENDING], 'Central has yet to commit it'
    cluster.live(5)
    assert statuses(cluster) == [Status.DELETED]


def test_the_pool_manager_dies_when_it_has_reported_a_deletion(cluster: Cluster) -> None:
    cluster.ask('delete', NAME)
    cluster.happen(cluster.reach('calls update_statuses'))
    cluster.happen(cluster.reach('writes by apply_reports'))
    for number in (2, 3):
        cluster.restart(number)
    assert statuses(cluster) == [Status.DELETED]


def test_a_zone_that_is_to_be_deleted_is_created_anew_while_the_deletion_is_on_its_way(cluster: Cluster) -> None:
    late = 'calls delete'
    cluster.ask('delete', NAME)
    cluster.reach(f'{late} {NAME} on a')
    cluster.ask('create', NAME)
    cluster.live(2, held=[late])
    cluster.drain()


def test_a_manager_stands_still_before_a_deletion_whose_name_is_created_anew_meanwhile(cluster: Cluster) -> None:
    cluster.ask('delete', NAME)
    cluster.reach(f'calls delete {NAME} on a')
    stopped = next(each.process for each in cluster.managers
                   if any(task.process is each.process and 'calls delete' in task.point
                          for task in cluster.scheduler.tasks))
    stopped.is_stopped = True
    cluster.ask('create', NAME)
    cluster.pass_time(40, late_calls=True)
    cluster.live(40)
    assert statuses(cluster)[-1] == Status.ACTIVE


def test_a_zone_is_deleted_while_its_creation_is_on_its_way(cluster: Cluster) -> None:
    name, late = NAMES[1], 'calls create'
    cluster.ask('create', name)
    cluster.reach(f'{late} {name} on a')
    cluster.ask('delete', name)
    cluster.live(5, held=[late])
    cluster.drain()


def test_both_managers_begin_a_change_of_which_each_has_heard(cluster: Cluster) -> None:
    cluster.ask('create', NAMES[1])
    cluster.happen(cluster.reach('create_domain to pool_manager'), Fate.TWICE)
    writes = [event for event in cluster.events() if 'create_domain begins' in str(event.text)]
    assert len(writes) == 2
    cluster.ask('change', NAMES[1])
    cluster.live(3)


def test_a_server_fetches_the_zone_before_its_creation_is_heard_of_and_an_older_serial_is_told(
        cluster: Cluster) -> None:
    name, heard = NAMES[1], 'hears of create'
    cluster.ask('create', name)
    # The second server fetches a zone as soon as it has it, and that was done before the answer is heard.
    cluster.happen(cluster.reach(f'calls create {name} on b'), Fate.TWICE)
    cluster.ask('change', name)
    cluster.live(2, held=[heard, 'update_statuses to'])
    cluster.drain(held=['update_statuses to'])
    cluster.drain()


def test_a_server_that_was_not_reached_still_has_the_former_zone_of_a_name_that_is_created_anew(
        cluster: Cluster) -> None:
    server, late = cluster.servers[SERVERS[2]], f'{SERVERS[2][0]} wants'
    server.hears_control = server.hears_dns = False
    cluster.ask('delete', NAME)
    cluster.live(1)
    cluster.ask('create', NAME)
    cluster.live(1)
    server.hears_control = server.hears_dns = True
    cluster.live(30, held=[late])
    former, anew = cluster.database.rows('SELECT serial, reported_serial, action FROM domains ORDER BY generation')
    assert server.zones[NAME].serial is not None and server.zones[NAME].serial < anew[0]
    assert anew[1:] == ((None, 'CREATE') if cluster.pool.threshold_percentage == 100 else (anew[0], 'NONE'))


@pytest.mark.parametrize('message', ['update_domain to pool_manager', 'notify_and_poll to', 'update_statuses to'])
@pytest.mark.parametrize('fate', [Fate.FAILS, Fate.TWICE], ids=lambda fate: fate.name.lower())
def test_a_message_of_a_change_is_lost_or_comes_twice(cluster: Cluster, message: str, fate: Fate) -> None:
    cluster.ask('change', NAME)
    cluster.happen(cluster.reach(message), fate)


@pytest.mark.parametrize('commit', ['writes by apply', 'writes by write', 'writes by apply_reports',
                                    'writes by delete_domain', 'writes by purge_domains'])
@pytest.mark.parametrize('fate', [Fate.FAILS, Fate.UNHEARD, Fate.TWICE], ids=lambda fate: fate.name.lower())
def test_a_commit_is_lost_before_or_after_or_made_twice(cluster: Cluster, commit: str, fate: Fate) -> None:
    cluster.ask('delete' if commit.endswith(('delete_domain', 'purge_domains')) else 'change', NAME)
    cluster.happen(cluster.reach(commit), fate)


def test_a_server_is_wiped_while_its_answer_is_on_its_way(cluster: Cluster) -> None:
    cluster.ask('change', NAME)
    cluster.happen(cluster.reach('PostTransferPoll x.example.com. to a'), Fate.LATE)
    cluster.servers[FIRST].remove(NAME)
    cluster.live(8, held=['late reply'])
    cluster.drain()


@pytest.mark.parametrize('fate', [Fate.FAILS, Fate.UNHEARD, Fate.TWICE], ids=lambda fate: fate.name.lower())
@pytest.mark.parametrize('step', ['calls read', 'calls change'])
def test_a_request_to_a_server_that_is_fed_by_records_is_lost_before_or_after(mixed_cluster: Cluster, step: str,
                                                                              fate: Fate) -> None:
    mixed_cluster.ask('change', NAME)
    mixed_cluster.happen(mixed_cluster.reach(f'{step} {NAME} on b'), fate)


def test_a_name_is_created_anew_before_the_catalog_was_read(mixed_cluster: Cluster) -> None:
    held = ['c wants catalog']
    mixed_cluster.ask('delete', NAME)
    mixed_cluster.live(1, held)
    mixed_cluster.ask('create', NAME)
    mixed_cluster.live(1, held)
    mixed_cluster.live(20)
    assert statuses(mixed_cluster)[-1] == Status.ACTIVE


def test_a_zone_is_deleted_and_another_created_while_a_server_is_out_of_the_configuration(
        mixed_cluster: Cluster) -> None:
    mixed_cluster.change_members('section', FIRST)
    mixed_cluster.live(15)
    mixed_cluster.ask('delete', NAME)
    mixed_cluster.ask('create', NAMES[1])
    mixed_cluster.live(15)
    mixed_cluster.change_members('section', FIRST)


def test_a_change_of_which_no_manager_has_heard_is_fetched_by_all_servers_but_one(cluster: Cluster) -> None:
    late = [f'{server[0]} wants' for server in SERVERS[1:]]
    cluster.has_audits = False
    cluster.ask('change', NAME)
    cluster.happen(cluster.reach(f'{FIRST[0]} wants', held=late))
    cluster.drain(held=late)  # one has the first change, the others are about to transfer
    cluster.ask('change', NAME, at_once=True, central=0)
    cluster.restart(0)
    cluster.live(3)
