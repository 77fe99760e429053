"""The core situations on every combination of broker, database and concurrency that the main tests do not use.

Three real BINDs each: over RabbitMQ and PostgreSQL with native threads, and all in one process on SQLite, with green
threads and with native ones.
"""

from __future__ import annotations

import pytest

from testing.processes import wait_until
from tests.functional.pools.conftest import ALL, ThreeBinds

COMBINATIONS = {
    'RabbitMQ, PostgreSQL, threading': ('rabbitmq', 'postgresql', 'threading'),
    'SQLite, eventlet': (None, None, 'eventlet'),
    'SQLite, threading': (None, None, 'threading'),
}


pytestmark = [pytest.mark.slow,
              pytest.mark.parametrize('binds', COMBINATIONS.values(), ids=list(COMBINATIONS), indirect=True)]


def test_create_change_and_delete(binds: ThreeBinds) -> None:
    zone, recordset = binds.create('plain.example.com.')
    changed = binds.stack.set_recordset(zone, recordset, '192.0.2.2', '192.0.2.3')
    assert changed['status'] == 'PENDING'
    active = binds.stack.wait_for(zone)
    assert [named.addresses('plain.example.com.') for named in binds.named] == [['192.0.2.2', '192.0.2.3']] * 3
    assert [binds.row(zone, number)['serial'] for number in ALL] == [active['serial']] * 3
    binds.stack.delete_zone(zone)
    binds.stack.wait_for(zone, 'gone')
    assert binds.who_has('plain.example.com.') == []
    again, _ = binds.create('plain.example.com.', '192.0.2.9')
    assert again != zone and binds.stack.zone(again)['serial'] > active['serial']
    # Nothing to add, nothing to delete twice: the second round gave each server one command more.
    assert (binds.calls('addzone', 'plain.example.com.'), binds.calls('delzone', 'plain.example.com.')) == (
        [2, 2, 2], [1, 1, 1])


def test_deleted_and_created_again_in_quick_succession(binds: ThreeBinds) -> None:
    zone, _ = binds.create('again.example.com.', '192.0.2.1')
    binds.stack.delete_zone(zone)
    zone, recordset = binds.begin('again.example.com.', '192.0.2.2')
    binds.stack.wait_for(zone)
    binds.wait_until_served('again.example.com.', '192.0.2.2')
    binds.stack.set_recordset(zone, recordset, '192.0.2.3')
    binds.stack.wait_for(zone)
    binds.all_serve('again.example.com.', '192.0.2.3')


def test_one_server_dead_and_back_again(binds: ThreeBinds) -> None:
    changed, recordset = binds.create('dead-change.example.com.')
    deleted, _ = binds.create('dead-delete.example.com.')
    binds.named[1].kill()
    created, _ = binds.begin('dead-create.example.com.')
    binds.stack.set_recordset(changed, recordset, '192.0.2.2')
    binds.stack.delete_zone(deleted)
    for zone in (created, changed, deleted):
        binds.stack.wait_for(zone, 'ERROR')
        row = binds.wait_for_row(zone, 1, lambda row: row['status'] == 'ERROR', 'the dead server is in ERROR')
        assert row['last_error'] and row['next_attempt_at']
    binds.wait_until_served('dead-create.example.com.', '192.0.2.1', [0, 2])
    binds.all_serve('dead-change.example.com.', '192.0.2.2', [0, 2])
    assert binds.who_has('dead-delete.example.com.', [0, 2]) == []
    binds.named[1].start()
    for zone in (created, changed):
        binds.stack.wait_for(zone)
    binds.stack.wait_for(deleted, 'gone')
    binds.all_serve('dead-create.example.com.', '192.0.2.1')
    binds.all_serve('dead-change.example.com.', '192.0.2.2')
    assert binds.who_has('dead-delete.example.com.') == []


def test_a_server_that_lost_its_zones_is_given_them_again_and_only_that_server(binds: ThreeBinds) -> None:
    zone, _ = binds.create('lost.example.com.')
    binds.named[2].forget_zones()
    binds.wait_until_served('lost.example.com.', '192.0.2.1', [2])
    binds.wait_for_row(zone, 2, lambda row: row['current'], 'the server is known to serve it')
    assert binds.calls('addzone', 'lost.example.com.') == [1, 1, 2]


def test_sigterm_ends_it_in_good_order_with_nothing_lost(binds: ThreeBinds) -> None:
    zones = [binds.begin(f'term{number}.example.com.')[0] for number in range(3)]
    assert binds.stack.stop() == dict.fromkeys(binds.stack.programs, 0)
    binds.stack.launch(*binds.stack.programs)
    for number, zone in enumerate(zones):
        binds.stack.wait_for(zone)
        wait_until(lambda: binds.row(zone, 0)['current'], 'the row is done')
        binds.all_serve(f'term{number}.example.com.', '192.0.2.1')
