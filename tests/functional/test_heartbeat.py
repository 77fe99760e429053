"""What services say of themselves, and what becomes of it when they fall silent."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from designate_pool import errors
from designate_pool.central.reading import SILENCE
from designate_pool.central.service import Central
from designate_pool.cmd import heartbeat
from designate_pool.cmd.heartbeat import Heartbeat
from designate_pool.model import new_id
from designate_pool.runtime import Threads
from designate_pool.storage.sessions import Storage
from tests.fixtures.central import WHO, Clock
from tests.fixtures.processes import wait_until


def statuses(central: Central) -> dict[str, str]:
    return {f'{each.service_name} {each.hostname}': each.status for each in central.find_service_statuses(WHO)}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(heartbeat, 'EVERY', 0.05)
    yield


def test_it_lives_falls_silent_comes_back_and_is_stopped(central: Central, database: Storage, clock: Clock) -> None:
    heart = Heartbeat(database, ['central', 'api'], 'one.example.com')
    heart.start(Threads())
    wait_until(lambda: len(statuses(central)) == 2, 'it has said that it lives')
    assert statuses(central) == {'api one.example.com': 'UP', 'central one.example.com': 'UP'}
    (api, _) = central.find_service_statuses(WHO)
    assert {'version', 'pid', 'started_at'} <= api.stats.keys() and api.capabilities == {}
    assert len(central.find_service_statuses(WHO, {'status': 'UP'})) == 2
    clock.now += SILENCE + 60
    assert set(statuses(central).values()) == {'DOWN'}
    assert [len(central.find_service_statuses(WHO, {'status': each})) for each in ('UP', 'DOWN')] == [0, 2]
    assert central.get_service_status(WHO, api.id).status == 'DOWN'
    assert [len(central.find_service_statuses(WHO, {'status': each})) for each in ('UP', 'DOWN')] == [0, 2]
    clock.now -= SILENCE + 60
    heart.stop()
    assert set(statuses(central).values()) == {'DOWN'}
    again = Heartbeat(database, ['api'], 'one.example.com')
    again.start(Threads())
    wait_until(lambda: statuses(central)['api one.example.com'] == 'UP', 'the next process has said that it lives')
    again.stop()
    assert len(statuses(central)) == 2, 'a process that begins again is the same service'
    assert central.find_service_statuses(WHO, {'hostname': 'one.*', 'service_name': 'api'})[0].id == api.id
    for unknown in (new_id(), 'x'):
        with pytest.raises(errors.ServiceStatusNotFound):
            central.get_service_status(WHO, unknown)


def test_many_processes_say_it_at_once(central: Central, database: Storage) -> None:
    hearts = [Heartbeat(database, ['minidns', 'central', 'api'], 'one.example.com') for _ in range(4)]
    threads = [threading.Thread(target=each._say, args=('UP',)) for each in hearts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for each in hearts:
        each._say('UP')
    assert set(statuses(central).values()) == {'UP'} and len(statuses(central)) == 3


def test_a_database_that_refuses_is_told_of_once_and_tried_again(tmp_path: object, quick: None,
                                                                 caplog: pytest.LogCaptureFixture) -> None:
    database = Storage(f'sqlite:///{tmp_path}/database.sqlite', patience=0.1)
    heart = Heartbeat(database, ['api'], 'one.example.com')
    heart.start(Threads())
    wait_until(lambda: 'cannot be said' in caplog.text, 'it is told')
    table = sa.text('CREATE TABLE service_statuses (id, created_at, updated_at, service_name, hostname, status, '
                    'heartbeated_at, stats, capabilities)')
    database.run(lambda tx: tx.execute(table).close())
    wait_until(lambda: database.read(lambda tx: tx.execute(sa.text('SELECT 1 FROM service_statuses')).first()),
               'it goes on')
    heart.stop()
    assert caplog.text.count('cannot be said') == 1
    database.close()
