"""What services say of themselves, and what becomes of it when they fall silent."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest
import sqlalchemy as sa

from designate_pool.central.purger import Purger
from designate_pool.central.service import Central
from designate_pool.cmd.compose.lifecycle import Heartbeat
from designate_pool.errors import NotFound, Refused
from designate_pool.model import PageRequest, utcnow
from designate_pool.runtime import Threads
from designate_pool.settings import CentralSettings
from designate_pool.storage.operations.heartbeats import SILENCE
from designate_pool.storage.sql.database import Storage
from testing.processes import wait_until
from tests.fixtures.central import WHO, Clock


def statuses(central: Central) -> dict[str, str]:
    return {f'{each.service_name} {each.hostname} {each.pool_name}'.rstrip(): each.status
            for each in central.find_service_statuses(WHO)}


def test_it_lives_falls_silent_comes_back_and_is_stopped(central: Central, database: Storage, clock: Clock) -> None:
    heart = Heartbeat(database, ['central', 'api'], 'one.example.com', 'default')
    heart.start(Threads())
    assert statuses(central) == {'api one.example.com': 'UP', 'central one.example.com': 'UP'}
    (api, _) = central.find_service_statuses(WHO)
    assert {'version', 'pid', 'started_at'} <= api.stats.keys() and api.capabilities == {}
    assert len(central.find_service_statuses(WHO, PageRequest({'status': 'UP'}))) == 2
    clock.now += SILENCE + 60
    assert set(statuses(central).values()) == {'DOWN'}
    assert [len(central.find_service_statuses(WHO, PageRequest({'status': each}))) for each in ('UP', 'DOWN')] == [0, 2]
    clock.now -= SILENCE + 60
    heart.stop()
    assert set(statuses(central).values()) == {'DOWN'}
    again = Heartbeat(database, ['api'], 'one.example.com', 'default')
    again.start(Threads())
    assert statuses(central)['api one.example.com'] == 'UP'
    again.stop()
    assert len(statuses(central)) == 2, 'a process that begins again is the same service'
    assert central.find_service_statuses(WHO, PageRequest({'hostname': 'one.*', 'service_name': 'api'}))[0].id == api.id


def test_a_program_that_could_not_start_is_not_listed(central: Central, database: Storage) -> None:
    running, failed = (Heartbeat(database, ['api'], 'one.example.com', 'default') for _ in range(2))
    running._write_status('UP')
    failed.stop()
    assert [each.status for each in central.find_service_statuses(WHO)] == ['UP']


@pytest.mark.all_databases
def test_many_processes_say_it_at_once(central: Central, database: Storage, caplog: pytest.LogCaptureFixture) -> None:
    hearts = [Heartbeat(database, ['minidns', 'central', 'api'], 'one.example.com', 'default') for _ in range(4)]
    threads = [threading.Thread(target=each._write_status, args=('UP',)) for each in hearts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert 'could not be written' not in caplog.text
    for each in hearts:
        each._write_status('UP')
    assert set(statuses(central).values()) == {'UP'} and len(statuses(central)) == 3


def beat(database: Storage, pool_name: str, parts: tuple[str, ...] = ('minidns', 'pool_manager', 'central')) -> None:
    Heartbeat(database, parts, 'one.example.com', pool_name)._write_status('UP')


def test_programs_of_two_pools_on_one_host_are_told_apart(central: Central, database: Storage) -> None:
    beat(database, 'default')
    silver = Heartbeat(database, ('minidns', 'pool_manager', 'central'), 'one.example.com', 'silver')
    silver._write_status('UP')
    assert set(statuses(central)) == {
        'central one.example.com', *(f'{service} one.example.com {pool_name}' for service in ('minidns', 'pool_manager')
                                     for pool_name in ('default', 'silver'))}
    assert len(central.find_service_statuses(WHO, PageRequest({
        'pool_name': 'silver', 'service_name': 'minidns', 'hostname': 'one.example.com'}))) == 1
    silver._parts = ('minidns',)
    silver._write_status('DOWN')
    assert {key for key, status in statuses(central).items() if status == 'DOWN'} == {'minidns one.example.com silver'}


def test_two_of_a_kind_on_a_host_are_two_and_a_restarted_one_takes_over_its_row(central: Central,
                                                                                database: Storage) -> None:
    child = subprocess.Popen(['sleep', '1000'])
    try:
        first, other = (Heartbeat(database, ['minidns'], 'one.example.com', 'default') for _ in range(2))
        other._stats |= {'pid': child.pid}
        first._write_status('UP')
        other._write_status('UP')
        first._write_status('UP')
        assert [each.status for each in central.find_service_statuses(WHO)] == ['UP', 'UP']
        rows = {each.id for each in central.find_service_statuses(WHO)}
        third = Heartbeat(database, ['minidns'], 'one.example.com', 'default')
        third._stats |= {'pid': 1}
        first._write_status('DOWN')
        third._write_status('UP')
        assert {each.id: each.status for each in central.find_service_statuses(WHO)} == dict.fromkeys(rows, 'UP')
    finally:
        child.kill()
        child.wait()
    again = Heartbeat(database, ['minidns'], 'one.example.com', 'default')
    again._stats |= {'pid': os.getppid()}
    again._write_status('UP')  # the child was killed, and has not been silent for long
    assert {each.id for each in central.find_service_statuses(WHO)} == rows


def test_containers_of_one_host_name_are_two_and_leave_no_row_behind(central: Central, database: Storage,
                                                                     clock: Clock) -> None:
    killed, other, again = (Heartbeat(database, ['minidns'], 'one.example.com', 'default') for _ in range(3))
    for _ in range(2):
        killed._write_status('UP')
        other._write_status('UP')
    assert [each.status for each in central.find_service_statuses(WHO)] == ['UP', 'UP'], 'their pids are the same'
    again._write_status('UP')
    clock.now += SILENCE + 1
    other._write_status('UP')
    again._write_status('UP')
    assert [each.status for each in central.find_service_statuses(WHO)] == ['UP', 'UP'], 'the killed one has no row'


def test_the_row_of_a_program_that_was_renamed_can_be_removed(central: Central, database: Storage) -> None:
    heart = Heartbeat(database, ['api'], 'old.example.com', '')
    heart._write_status('UP')
    (service,) = central.find_service_statuses(WHO)
    with pytest.raises(Refused, match='is running'):
        central.delete_service_status(WHO, service.id)
    heart._write_status('DOWN')
    central.delete_service_status(WHO, service.id)
    assert statuses(central) == {}
    with pytest.raises(NotFound):
        central.delete_service_status(WHO, service.id)


@pytest.mark.parametrize('length', [204, 205, 300])
def test_a_long_host_and_a_long_pool(central: Central, database: Storage, length: int) -> None:
    for pool_name in ('p' * 50, 'q' * 50, 'ü' * 50):
        Heartbeat(database, ['minidns'], 'h' * length, pool_name)._write_status('UP')
    Heartbeat(database, ['central'], 'h' * length, '')._write_status('UP')
    assert {(len(each.hostname), each.pool_name) for each in central.find_service_statuses(WHO)} == {
        (min(length, 255), pool_name) for pool_name in ('p' * 50, 'q' * 50, 'ü' * 50, '')}


def test_one_that_has_been_silent_for_long_is_forgotten(central: Central, database: Storage, clock: Clock) -> None:
    clock.now = utcnow().timestamp()
    beat(database, 'silver', ('minidns', 'central'))
    keeper = Purger(database, CentralSettings(deleted_retention=10 ** 7))
    clock.now += 80000
    keeper.purge()
    assert set(statuses(central).values()) == {'DOWN'}
    clock.now += 10000
    keeper.purge()
    assert statuses(central) == {}


def test_a_database_that_refuses_is_told_of_once_and_tried_again(
        tmp_path: object, caplog: pytest.LogCaptureFixture) -> None:
    database = Storage(f'sqlite:///{tmp_path}/database.sqlite', patience=0.1)
    heart = Heartbeat(database, ['api'], 'one.example.com', 'default', interval=3600.0, retry_interval=0.05)
    heart.start(Threads())
    wait_until(lambda: 'could not be written' in caplog.text, 'it is told')
    table = sa.text('CREATE TABLE service_statuses (id, created_at, updated_at, service_name, hostname, status, '
                    'heartbeated_at, stats, capabilities, pool_name)')
    database.run(lambda tx: tx.execute(table).close())
    wait_until(lambda: database.read(lambda tx: tx.execute(sa.text('SELECT 1 FROM service_statuses')).first()),
               'it goes on')
    heart.stop()
    assert caplog.text.count('could not be written') == 1
    database.close()
