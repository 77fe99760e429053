"""What can happen to the system itself: brokers, databases and programs that die or are told to end, on real servers.

Three BINDs, RabbitMQ and MariaDB, each service a process of its own.  Whatever a test takes away is back when it ends.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterator, Sequence

import pytest

from testing.databases import MariaDB
from testing.processes import wait_until
from testing.rabbitmq import RabbitMq
from testing.stack import SERVICES
from tests.functional.pools.conftest import ALL, ThreeBinds

QUEUE = 'pool_manager.default'


@pytest.fixture
def second_manager(binds: ThreeBinds) -> Iterator[str]:
    """One more pool manager; its commands to the first BIND do not go through the proxy."""
    config = binds.stack.folder / 'second.conf'
    binds.stack.configure(config, binds.direct, binds.stack.threshold)
    binds.stack.launch('manager', key='second manager', config=config)
    yield 'second manager'
    if 'second manager' in binds.stack.processes:
        binds.stack.stop('second manager')


def all_become_active(binds: ThreeBinds, zones: Sequence[str], seconds: float = 30) -> None:
    for zone in zones:
        binds.stack.wait_for(zone, seconds=seconds)


def test_a_manager_killed_between_the_driver_s_call_and_the_row(binds: ThreeBinds) -> None:
    binds.proxy.hold(b'zone')
    try:
        zone, _ = binds.begin('killed.example.com.')
        wait_until(lambda: binds.calls('addzone', 'killed.example.com.') == [1, 1, 1], 'all were told to add the zone')
        binds.wait_until_served('killed.example.com.', '192.0.2.1')
        row = binds.row(zone, 0)
        assert (row['action'], row['status']) == ('CREATE', 'PENDING')
        binds.stack.kill('manager')
    finally:
        binds.proxy.release()
    binds.stack.launch('manager')
    binds.stack.wait_for(zone)
    binds.wait_for_row(zone, 0, lambda row: row['current'], 'the row of the killed one is done')
    # Once more, unless MiniDNS was first to report that the zone is served there.
    assert binds.calls('addzone', 'killed.example.com.') in ([2, 1, 1], [1, 1, 1])
    binds.all_serve('killed.example.com.', '192.0.2.1')


def test_the_first_of_two_managers_does_the_work_and_the_second_when_that_is_killed(binds: ThreeBinds,
                                                                                    second_manager: str) -> None:
    names = [f'shared{number}.example.com.' for number in range(12)]
    for name in names:  # one by one: a manager that is slow under load leaves some of many to the other
        binds.create(name)
        assert binds.calls('addzone', name) == [1, 1, 1]
    assert binds.proxy.asked.count(b'file "shared') > 9, 'the managers take turns'

    binds.proxy.hold(b'zone')
    try:
        before = binds.proxy.asked.count(b'addzone')
        names = [f'orphan{number}.example.com.' for number in range(10)]
        zones = [binds.begin(name)[0] for name in names]
        wait_until(lambda: binds.proxy.asked.count(b'addzone') > before, 'the first manager is at work')
        binds.stack.kill('manager')
    finally:
        binds.proxy.release()
    all_become_active(binds, zones)
    for name in names:
        binds.all_serve(name, '192.0.2.1')
    binds.stack.launch('manager')


def test_casts_that_never_arrived_are_made_up_for(binds: ThreeBinds, rabbitmq: RabbitMq) -> None:
    def throw_away_cast() -> None:
        wait_until(lambda: rabbitmq.purge(QUEUE), 'the cast is thrown away')

    changed, recordset = binds.create('unheard-change.example.com.')
    deleted, _ = binds.create('unheard-delete.example.com.')
    assert binds.stack.stop('manager') == {'manager': 0}
    created, _ = binds.begin('unheard-create.example.com.')
    throw_away_cast()  # one by one: Central may send those that wait together as one message
    binds.stack.set_recordset(changed, recordset, '192.0.2.2')
    throw_away_cast()
    binds.stack.delete_zone(deleted)
    throw_away_cast()
    binds.stack.launch('manager')
    all_become_active(binds, [created, changed])
    binds.stack.wait_for(deleted, 'gone')
    binds.all_serve('unheard-create.example.com.', '192.0.2.1')
    binds.all_serve('unheard-change.example.com.', '192.0.2.2')
    assert binds.who_has('unheard-delete.example.com.') == []


def test_the_broker_is_killed_and_restarted_in_mid_flight(binds: ThreeBinds, rabbitmq: RabbitMq) -> None:
    changed, recordset = binds.create('broker-change.example.com.')
    deleted, _ = binds.create('broker-delete.example.com.')
    binds.proxy.hold(b'zone')
    try:
        created, _ = binds.begin('broker-create.example.com.')
        binds.stack.delete_zone(deleted)
        binds.stack.set_recordset(changed, recordset, '192.0.2.2')
        rabbitmq.kill()
        # The API needs the database alone; what it has accepted is cast, or found to be due, later.
        assert binds.stack.request('GET', f'/v2/zones/{created}', 200)['id'] == created
        binds.stack.set_recordset(changed, recordset, '192.0.2.3')
    finally:
        binds.proxy.release()
        rabbitmq.restart()
    all_become_active(binds, [created, changed])
    binds.stack.wait_for(deleted, 'gone')
    binds.all_serve('broker-create.example.com.', '192.0.2.1')
    binds.all_serve('broker-change.example.com.', '192.0.2.3')
    assert binds.who_has('broker-delete.example.com.') == []
    # And the second round: all services are connected again, in both directions.
    binds.create('broker-after.example.com.')


def test_the_database_is_killed_and_restarted_in_mid_flight(binds: ThreeBinds, mariadb: MariaDB) -> None:
    changed, recordset = binds.create('database-change.example.com.')
    deleted, _ = binds.create('database-delete.example.com.')
    binds.proxy.hold(b'zone')
    try:
        created, _ = binds.begin('database-create.example.com.')
        binds.stack.delete_zone(deleted)
        with concurrent.futures.ThreadPoolExecutor(1) as user:
            mariadb.kill()
            # Asked for while there is no database, and done when it is back.
            change = user.submit(binds.stack.set_recordset, changed, recordset, '192.0.2.2')
            binds.proxy.release()
            mariadb.start()
            change.result(30)
    finally:
        binds.proxy.release()
    all_become_active(binds, [created, changed])
    binds.stack.wait_for(deleted, 'gone')
    binds.all_serve('database-create.example.com.', '192.0.2.1')
    binds.all_serve('database-change.example.com.', '192.0.2.2')
    assert binds.who_has('database-delete.example.com.') == []
    binds.create('database-after.example.com.')


def test_sigterm_ends_each_program_in_good_order_with_nothing_lost(binds: ThreeBinds) -> None:
    changed, recordset = binds.create('term-change.example.com.')
    zones = [binds.begin(f'term{number}.example.com.')[0] for number in range(5)]
    binds.stack.set_recordset(changed, recordset, '192.0.2.2')
    assert binds.stack.stop() == dict.fromkeys(SERVICES, 0)
    binds.stack.launch(*SERVICES)
    all_become_active(binds, [changed, *zones])
    binds.all_serve('term-change.example.com.', '192.0.2.2')
    for number in range(5):
        binds.all_serve(f'term{number}.example.com.', '192.0.2.1')


def test_a_zone_of_the_operator_s_own_is_named_and_what_to_do_about_it(binds: ThreeBinds) -> None:
    binds.rndc(2, 'addzone own.example.com { type static-stub; server-addresses { 127.0.0.1; }; };')
    zone, _ = binds.begin('own.example.com.')
    binds.stack.wait_for(zone, 'ERROR')
    row = binds.wait_for_row(zone, 2, lambda row: row['status'] == 'ERROR', 'the server is in ERROR')
    assert "as a static-stub zone that was added by hand: remove it with 'rndc delzone'" in row['last_error']
    assert row['next_attempt_at'] and row['reason'] == 'CONFLICT'
    binds.all_serve('own.example.com.', '192.0.2.1', [0, 1])
    binds.rndc(2, 'delzone own.example.com')
    binds.stack.wait_for(zone)
    binds.all_serve('own.example.com.', '192.0.2.1')


def test_a_server_that_hangs_costs_the_others_nothing(binds: ThreeBinds) -> None:
    with binds.named[0].standing_still():
        zone, _ = binds.begin('slow.example.com.')
        binds.wait_until_served('slow.example.com.', '192.0.2.1', [1, 2])
        assert binds.stack.zone(zone)['status'] == 'PENDING'
    binds.stack.wait_for(zone)
    binds.all_serve('slow.example.com.', '192.0.2.1')


@pytest.mark.parametrize('binds', [('rabbitmq', 'postgresql', 'threading')], ids=['threading'], indirect=True)
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
