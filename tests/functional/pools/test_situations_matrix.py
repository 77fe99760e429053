"""The core situations on every combination of broker, database and concurrency that the main tests do not use.

Three real BINDs each: over RabbitMQ and PostgreSQL with native threads, and all in one process on SQLite, with green
threads and with native ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testing.processes import wait_until
from tests.fixtures.world import ALL, World

COMBINATIONS = {
    'RabbitMQ, PostgreSQL, threading': ('rabbitmq', 'postgresql', 'threading'),
    'SQLite, eventlet': (None, None, 'eventlet'),
    'SQLite, threading': (None, None, 'threading'),
}


@pytest.fixture(scope='module', params=COMBINATIONS.values(), ids=list(COMBINATIONS))
def world(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[World]:
    broker, database, concurrency = request.param
    folder = tmp_path_factory.mktemp('pool')
    url = request.getfixturevalue(database).create_database() if database else f'sqlite:///{folder}/pool.sqlite'
    transport_url = request.getfixturevalue(broker).url if broker else None
    with World(folder, url, transport_url, concurrency) as running:
        yield running
        running.stack.must_be_sound()


def test_create_change_and_delete(world: World) -> None:
    zone, recordset = world.create('plain.example.com.')
    changed = world.stack.set_recordset(zone, recordset, '192.0.2.2', '192.0.2.3')
    assert changed['status'] == 'PENDING'
    active = world.stack.wait_for(zone)
    assert [world.addresses(number, 'plain.example.com.') for number in ALL] == [['192.0.2.2', '192.0.2.3']] * 3
    assert [world.row(zone, number)['serial'] for number in ALL] == [active['serial']] * 3
    world.stack.delete_zone(zone)
    world.stack.wait_for(zone, 'gone')
    assert world.who_has('plain.example.com.') == []
    again, _ = world.create('plain.example.com.', '192.0.2.9')
    assert again != zone and world.stack.zone(again)['serial'] > active['serial']
    # Nothing to add, nothing to delete twice: the second round gave each server one command more.
    assert (world.calls('addzone', 'plain.example.com.'), world.calls('delzone', 'plain.example.com.')) == (
        [2, 2, 2], [1, 1, 1])


def test_deleted_and_created_again_in_quick_succession(world: World) -> None:
    zone, _ = world.create('again.example.com.', '192.0.2.1')
    world.stack.delete_zone(zone)
    zone, recordset = world.begin('again.example.com.', '192.0.2.2')
    world.stack.wait_for(zone)
    world.wait_until_served('again.example.com.', '192.0.2.2')
    world.stack.set_recordset(zone, recordset, '192.0.2.3')
    world.stack.wait_for(zone)
    world.all_serve('again.example.com.', '192.0.2.3')


def test_one_server_dead_and_back_again(world: World) -> None:
    changed, recordset = world.create('dead-change.example.com.')
    deleted, _ = world.create('dead-delete.example.com.')
    world.named[1].kill()
    created, _ = world.begin('dead-create.example.com.')
    world.stack.set_recordset(changed, recordset, '192.0.2.2')
    world.stack.delete_zone(deleted)
    for zone in (created, changed, deleted):
        world.stack.wait_for(zone, 'ERROR')
        row = world.wait_for_row(zone, 1, lambda row: row['status'] == 'ERROR', 'the dead server is in ERROR')
        assert row['last_error'] and row['next_attempt_at']
    world.wait_until_served('dead-create.example.com.', '192.0.2.1', [0, 2])
    world.all_serve('dead-change.example.com.', '192.0.2.2', [0, 2])
    assert world.who_has('dead-delete.example.com.', [0, 2]) == []
    world.named[1].start()
    for zone in (created, changed):
        world.stack.wait_for(zone)
    world.stack.wait_for(deleted, 'gone')
    world.all_serve('dead-create.example.com.', '192.0.2.1')
    world.all_serve('dead-change.example.com.', '192.0.2.2')
    assert world.who_has('dead-delete.example.com.') == []


def test_a_server_that_lost_its_zones_is_given_them_again_and_only_that_server(world: World) -> None:
    zone, _ = world.create('lost.example.com.')
    world.named[2].forget_zones()
    world.wait_until_served('lost.example.com.', '192.0.2.1', [2])
    world.wait_for_row(zone, 2, lambda row: row['current'], 'the server is known to serve it')
    assert world.calls('addzone', 'lost.example.com.') == [1, 1, 2]


def test_sigterm_ends_it_in_good_order_with_nothing_lost(world: World) -> None:
    zones = [world.begin(f'term{number}.example.com.')[0] for number in range(3)]
    assert world.stack.stop() == dict.fromkeys(world.stack.programs, 0)
    world.stack.launch(*world.stack.programs)
    for number, zone in enumerate(zones):
        world.stack.wait_for(zone)
        wait_until(lambda: world.row(zone, 0)['current'], 'the row is done')
        world.all_serve(f'term{number}.example.com.', '192.0.2.1')
