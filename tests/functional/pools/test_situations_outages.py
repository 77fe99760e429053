"""What can happen to the system itself: brokers, databases and programs that die or are told to end, on real servers.

Three BINDs, RabbitMQ and MariaDB, each service a process of its own.  Whatever a test takes away is back when it ends.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterator, Sequence

import pytest

from designate_pool.model import Endpoint
from designate_pool.nameserver.server import NameServer
from testing.databases import MariaDB
from testing.processes import free_port, wait_until
from testing.rabbitmq import RabbitMq
from testing.stack import SERVICES
from tests.fixtures.world import ALL, World

pytestmark = pytest.mark.slow

QUEUE = 'pool_manager.default'


@pytest.fixture(scope='module')
def world(tmp_path_factory: pytest.TempPathFactory, rabbitmq: RabbitMq, mariadb: MariaDB) -> Iterator[World]:
    with World(tmp_path_factory.mktemp('pool'), mariadb.create_database(), rabbitmq.url, 'eventlet',
               manager={'contents_audit_interval': '0'}) as running:
        yield running
        running.stack.must_be_sound()


@pytest.fixture
def second_manager(world: World) -> Iterator[str]:
    """One more pool manager, which compares contents; its commands to the first BIND do not go through the proxy."""
    config = world.stack.folder / 'second.conf'
    world.stack.configure(config, world.direct, world.stack.threshold)
    config.write_text(config.read_text().replace('contents_audit_interval = 0', 'contents_audit_interval = 2'))
    world.stack.launch('manager', key='second manager', config=config)
    yield 'second manager'
    if 'second manager' in world.stack.processes:
        world.stack.stop('second manager')


def all_become_active(world: World, zones: Sequence[str], seconds: float = 30) -> None:
    for zone in zones:
        world.stack.wait_for(zone, seconds=seconds)


def answers_again(world: World) -> None:
    """Wait until the API and all that is behind it answers."""
    wait_until(lambda: isinstance(world.stack.request('GET', '/v2/zones?limit=1'), dict)
               and 'zones' in world.stack.request('GET', '/v2/zones?limit=1'), 'the API answers')


def test_a_manager_killed_between_the_driver_s_call_and_the_row(world: World) -> None:
    # A first command opens the connection on which the next one is sent without waiting for an answer.
    world.create('opening.example.com.')
    world.proxy.hold()
    try:
        zone, _ = world.begin('killed.example.com.')
        wait_until(lambda: world.calls('addzone', 'killed.example.com.') == [1, 1, 1], 'all were told to add the zone')
        world.wait_until_served('killed.example.com.', '192.0.2.1')
        row = world.row(zone, 0)
        assert (row['action'], row['status']) == ('CREATE', 'PENDING')
        world.stack.kill('manager')
    finally:
        world.proxy.release()
    world.stack.launch('manager')
    world.stack.wait_for(zone)
    world.wait_for_row(zone, 0, lambda row: row['current'], 'the row of the killed one is done')
    assert world.calls('addzone', 'killed.example.com.') == [2, 1, 1]
    world.all_serve('killed.example.com.', '192.0.2.1')


def test_a_manager_killed_between_the_driver_s_call_and_the_row_of_a_deletion(world: World) -> None:
    zone, _ = world.create('killed-twice.example.com.')
    world.proxy.hold()
    try:
        world.stack.delete_zone(zone)
        wait_until(lambda: world.who_has('killed-twice.example.com.', [1, 2]) == [], 'the others have deleted it')
        wait_until(lambda: world.row(zone, 1)['current'] and world.row(zone, 2)['current'], 'their rows say so')
        assert world.row(zone, 0)['status'] == 'PENDING'
        world.stack.kill('manager')
    finally:
        world.proxy.release()
    world.stack.launch('manager')
    world.stack.wait_for(zone, 'gone')
    assert world.who_has('killed-twice.example.com.') == []


def test_two_managers_share_the_work_and_one_is_killed(world: World, second_manager: str) -> None:
    names = [f'shared{number}.example.com.' for number in range(20)]
    before = world.proxy.asked.count(b'addzone')
    all_become_active(world, [world.begin(name)[0] for name in names])
    for name in names:
        world.all_serve(name, '192.0.2.1')
        assert world.calls('addzone', name) == [1, 1, 1]
    assert 0 < world.proxy.asked.count(b'addzone') - before < len(names)

    world.proxy.hold()
    try:
        before = world.proxy.asked.count(b'addzone')
        names = [f'orphan{number}.example.com.' for number in range(10)]
        zones = [world.begin(name)[0] for name in names]
        wait_until(lambda: world.proxy.asked.count(b'addzone') > before, 'the first manager is at work')
        world.stack.kill('manager')
    finally:
        world.proxy.release()
    all_become_active(world, zones)
    for name in names:
        world.all_serve(name, '192.0.2.1')
    world.stack.launch('manager')


def test_other_contents_under_the_same_serial_are_found_and_mended(world: World, second_manager: str) -> None:
    name = 'altered.example.com.'
    zone, _ = world.create(name)
    primary = Endpoint(world.stack.minidns_host, world.stack.minidns_port)
    rogue = NameServer(Endpoint('127.0.0.1', free_port()))
    rogue.set_fault('altered')
    try:
        rogue.start().add_zone(name, [primary])
        wait_until(lambda: rogue.serial(name) == world.stack.zone(zone)['serial'], 'the rogue has the zone')
        world.fetch_from(1, name, rogue.endpoint)
        world.wait_until_served(name, '192.0.2.254', [1])
        log = world.stack.processes[second_manager].log
        wait_until(lambda: f'{name} on bind9' in log.read_text() and 'DIVERGED' in log.read_text(), 'it is found', 60)
        world.fetch_from(1, name, primary, now=False)
        world.wait_for_row(zone, 1, lambda row: row['current'] and not row['diverged'], 'it is mended')
    finally:
        rogue.stop()
    world.all_serve(name, '192.0.2.1')


def test_casts_that_never_arrived_are_made_up_for(world: World, rabbitmq: RabbitMq) -> None:
    changed, recordset = world.create('unheard-change.example.com.')
    deleted, _ = world.create('unheard-delete.example.com.')
    assert world.stack.stop('manager') == {'manager': 0}
    created, _ = world.begin('unheard-create.example.com.')
    world.stack.set_recordset(changed, recordset, '192.0.2.2')
    world.stack.delete_zone(deleted)
    purged = 0

    def all_purged() -> bool:
        nonlocal purged
        purged += rabbitmq.purge(QUEUE)
        return purged == 3

    wait_until(all_purged, 'the three casts are thrown away')
    world.stack.launch('manager')
    all_become_active(world, [created, changed])
    world.stack.wait_for(deleted, 'gone')
    world.all_serve('unheard-create.example.com.', '192.0.2.1')
    world.all_serve('unheard-change.example.com.', '192.0.2.2')
    assert world.who_has('unheard-delete.example.com.') == []


def test_the_broker_is_killed_and_restarted_in_mid_flight(world: World, rabbitmq: RabbitMq) -> None:
    changed, recordset = world.create('broker-change.example.com.')
    deleted, _ = world.create('broker-delete.example.com.')
    world.proxy.hold()
    try:
        created, _ = world.begin('broker-create.example.com.')
        world.stack.delete_zone(deleted)
        world.stack.set_recordset(changed, recordset, '192.0.2.2')
        rabbitmq.kill()
        answer = world.stack.request('GET', '/v2/zones', 503)
        assert answer['type'] == 'service_unavailable'
    finally:
        world.proxy.release()
        rabbitmq.restart()
    all_become_active(world, [created, changed])
    world.stack.wait_for(deleted, 'gone')
    world.all_serve('broker-create.example.com.', '192.0.2.1')
    world.all_serve('broker-change.example.com.', '192.0.2.2')
    assert world.who_has('broker-delete.example.com.') == []
    # And the second round: all services are connected again, in both directions.
    world.create('broker-after.example.com.')


def test_the_database_is_killed_and_restarted_in_mid_flight(world: World, mariadb: MariaDB) -> None:
    changed, recordset = world.create('database-change.example.com.')
    deleted, _ = world.create('database-delete.example.com.')
    world.proxy.hold()
    try:
        created, _ = world.begin('database-create.example.com.')
        world.stack.delete_zone(deleted)
        with concurrent.futures.ThreadPoolExecutor(1) as user:
            mariadb.kill()
            # Asked for while there is no database, and done when it is back.
            change = user.submit(world.stack.set_recordset, changed, recordset, '192.0.2.2')
            world.proxy.release()
            mariadb.start()
            change.result(30)
    finally:
        world.proxy.release()
    all_become_active(world, [created, changed])
    world.stack.wait_for(deleted, 'gone')
    world.all_serve('database-create.example.com.', '192.0.2.1')
    world.all_serve('database-change.example.com.', '192.0.2.2')
    assert world.who_has('database-delete.example.com.') == []
    world.create('database-after.example.com.')


def test_sigterm_ends_each_program_in_good_order_with_nothing_lost(world: World) -> None:
    changed, recordset = world.create('term-change.example.com.')
    zones = [world.begin(f'term{number}.example.com.')[0] for number in range(5)]
    world.stack.set_recordset(changed, recordset, '192.0.2.2')
    assert world.stack.stop() == dict.fromkeys(SERVICES, 0)
    world.stack.launch(*SERVICES)
    all_become_active(world, [changed, *zones])
    world.all_serve('term-change.example.com.', '192.0.2.2')
    for number in range(5):
        world.all_serve(f'term{number}.example.com.', '192.0.2.1')


def test_sigterm_ends_each_program_also_while_the_broker_is_away(world: World, rabbitmq: RabbitMq) -> None:
    rabbitmq.kill()
    try:
        assert world.stack.stop() == dict.fromkeys(SERVICES, 0)
    finally:
        rabbitmq.restart()
        world.stack.launch(*SERVICES)
    world.create('term-broker.example.com.')
    assert [world.has_zone(number, 'term-broker.example.com.') for number in ALL] == [True] * 3
