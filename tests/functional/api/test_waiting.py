"""Waiting for zones over HTTP, with the real Central on SQLite; the pool is played by writing what it would."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import pathlib
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from designate_pool import runtime
from designate_pool.api.app import create_app
from designate_pool.api.http.limits import RequestLimits
from designate_pool.api.http.server import ApiServer
from designate_pool.api.services.wait_verdict import WaitTarget
from designate_pool.api.services.zone_watcher import ZoneWatcher
from designate_pool.central.service import Central
from designate_pool.errors import TooManyWaits
from designate_pool.model import (Action, Context, Domain, Endpoint, Outcome, PageRequest, Pool, PoolServer, Report,
                                  ServerState, ServerStatus, utcnow)
from designate_pool.rpc.direct import Direct
from designate_pool.rpc.pool_manager import PoolManagerClient, topic
from designate_pool.settings import ApiSettings
from designate_pool.storage.operations import pool_servers, server_statuses
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import pools
from testing.databases import count_statements, upgraded_sqlite
from testing.processes import wait_until
from testing.settings import central_settings
from tests.fixtures.api import Quiet

EVERYBODY = Context(all_projects=True)
IDS = tuple(digit * 32 for digit in '123')
WAITS = 60


@dataclasses.dataclass
class System:
    url: str
    storage: Storage
    central: Central
    watch: ZoneWatcher
    stop: Callable[[], None]

    def create(self, name: str) -> Domain:
        return self.central.create_domain(EVERYBODY, {'name': name, 'email': 'hostmaster@example.com'})

    def change(self, domain: Domain) -> Domain:
        return self.central.update_domain(EVERYBODY, domain.id, {'ttl': domain.ttl + 1})

    def seen(self, domain: Domain, server: int, status: Outcome | None = Outcome.SUCCESS, serial: int | None = None,
             **values: Any) -> None:
        """A server serves the domain's serial, or an older one, or has deleted it."""
        action = Action.DELETE if domain.is_going else Action.UPDATE
        row = ServerStatus(IDS[server], domain.id, action, domain.serial, status=status,
                           serial_number=domain.serial if serial is None else serial,
                           version=int(time.monotonic() * 1000), **values)
        self.storage.run(server_statuses.write, [row], utcnow())

    def agreed(self, domain: Domain, status: Outcome = Outcome.SUCCESS) -> None:
        """The pool manager reports what the pool agrees on."""
        self.central.update_statuses(EVERYBODY, [
            Report(domain.id, domain.action, domain.generation, status, domain.serial)])

    def wait(self, domain: Domain, status: int = 200, **query: object) -> Any:
        answer = requests.get(f'{self.url}/v2/zones/{domain.id}/wait', params=query, timeout=60)
        assert answer.status_code == status, answer.text
        return answer.json()

    @contextlib.contextmanager
    def waiting(self, domain: Domain, **query: object) -> Iterator[concurrent.futures.Future[Any]]:
        """A wait that has begun."""
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            before = len(self.watch)
            future = pool.submit(self.wait, domain, **{'timeout': 60, **query})
            wait_until(lambda: len(self.watch) > before, 'the wait has begun')
            yield future

    def goes_on(self, waiting: concurrent.futures.Future[Any]) -> bool:
        """Whether a wait is not over when the watch has looked again."""
        with count_statements(self.storage) as statements:
            # Between the first and the third time that a statement is executed lies a whole look.
            wait_until(lambda: waiting.done() or max(statements.values(), default=0) > 2, 'the watch has looked again')
        return not waiting.done()


@pytest.fixture(scope='module')
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with make_system(tmp_path_factory.mktemp('waiting')) as made:
        yield made


@contextlib.contextmanager
def make_system(folder: pathlib.Path, waits: int = WAITS) -> Iterator[System]:
    storage, threads = Storage(upgraded_sqlite(folder / 'database.sqlite')), runtime.Threads()
    direct = Direct(threads.workers(2, 'casts'))
    pool = Pool('default', threshold_percentage=66)
    central = Central(storage, PoolManagerClient(direct), threads, settings=central_settings())
    direct.serve(topic(pool.name), PoolManagerClient, Quiet())
    storage.run(pool_servers.register, 'default', [
        PoolServer(each, '', f'fake:192.0.2.{number}:53', 'fake', ServerState.ACTIVE, 'f' * 64, number)
        for number, each in enumerate(IDS, 1)], False, True, utcnow())
    storage.run(pools.publish, pool, utcnow())
    [found] = central.find_pools(EVERYBODY, {'name': pool.name})
    central.update_pool(EVERYBODY, {'id': found.id, 'name_servers': ['ns1.example.org.']})
    settings = ApiSettings(threads=2, threads_per_client=2, waits=waits)
    watch = ZoneWatcher(storage, settings)
    app = create_app(central, pool, pool_managers=PoolManagerClient(direct), storage=storage, watcher=watch)
    server = ApiServer(RequestLimits(app, settings), Endpoint('127.0.0.1', 0), settings)
    watch.start()
    server.start()

    def stop() -> None:
        watch.stop()
        server.stop()

    yield System(f'http://{server.endpoint}', storage, central, watch, stop)
    stop()
    direct.stop()
    storage.close()


@pytest.fixture
def zone(system: System, request: pytest.FixtureRequest) -> Domain:
    return system.create(f'{request.node.name.replace("_", "-").replace("[", "-").replace("]", "")}.example.')


def test_what_is_served_is_answered_at_once_and_again(system: System, zone: Domain) -> None:
    for server in (0, 1):
        system.seen(zone, server)
    system.agreed(zone)
    for _ in range(2):
        answer = system.wait(zone)
        assert answer.pop('seconds') < 30
        assert answer == {
            'zone_id': str(answer['zone_id']), 'zone_name': zone.name, 'serial': zone.serial,
            'zone_serial': zone.serial, 'reported_serial': zone.serial, 'status': 'ACTIVE', 'action': 'NONE',
            'needed': 2, 'current': 2, 'servers_current': ['fake:192.0.2.1:53', 'fake:192.0.2.2:53'], 'done': True,
            'timed_out': False, 'failed': False, 'freeze': None}


def test_a_project_that_a_zone_is_shared_with_is_told_no_servers(system: System, zone: Domain) -> None:
    for server in (0, 1):
        system.seen(zone, server)
    system.agreed(zone)
    system.central.share_domain(EVERYBODY, zone.id, {'target_project_id': 'guest'})
    answer = requests.get(f'{system.url}/v2/zones/{zone.id}/wait', headers={'X-Project-Id': 'guest'},
                          timeout=60).json()
    assert (answer['done'], answer['current'], answer['servers_current']) == (True, 2, [])


def test_what_is_served_later_and_the_next_change(system: System, zone: Domain) -> None:
    for _ in range(2):
        with system.waiting(zone) as waiting:
            system.seen(zone, 0)
            system.seen(zone, 1)
            assert system.goes_on(waiting)
            system.agreed(zone)
            answer = waiting.result(30)
        assert (answer['done'], answer['serial'], answer['status']) == (True, zone.serial, 'ACTIVE')
        zone = system.change(zone)


def test_by_one_server_before_the_pool_agrees_and_by_all_after(system: System, zone: Domain) -> None:
    with system.waiting(zone, servers=1) as one, system.waiting(zone, servers=3) as all_of_them:
        system.seen(zone, 2)
        answer = one.result(30)
        assert (answer['done'], answer['needed'], answer['current'], answer['status']) == (True, 1, 1, 'PENDING')
        assert answer['servers_current'] == ['fake:192.0.2.3:53']
        system.seen(zone, 0)
        system.agreed(zone)
        assert system.wait(zone)['done'] and system.goes_on(all_of_them)
        system.seen(zone, 1)
        answer = all_of_them.result(30)
        assert (answer['done'], answer['current']) == (True, 3)


def test_a_newer_serial_counts(system: System, zone: Domain) -> None:
    with system.waiting(zone, serial=zone.serial) as waiting:
        newer = system.change(zone)
        system.seen(newer, 0)
        system.seen(newer, 1)
        system.agreed(newer)
        answer = waiting.result(30)
    assert (answer['done'], answer['serial'], answer['zone_serial']) == (True, zone.serial, newer.serial)
    latest = system.change(newer)
    assert system.wait(latest, serial=zone.serial)['done']
    assert system.wait(latest, serial=newer.serial, servers=2)['done']
    assert system.wait(latest, timeout=0)['timed_out']


def test_an_error_ends_it_and_so_does_the_next_round(system: System, zone: Domain) -> None:
    with system.waiting(zone) as waiting:
        for server in (0, 1):
            system.seen(zone, server, Outcome.ERROR, last_error='connection refused', next_attempt_at=utcnow())
        system.agreed(zone, Outcome.ERROR)
        answer = waiting.result(30)
    assert (answer['failed'], answer['done'], answer['timed_out'], answer['status']) == (True, False, False, 'ERROR')
    assert system.wait(zone)['failed']
    again = system.change(zone)
    with system.waiting(again) as waiting:
        system.seen(again, 0)
        system.seen(again, 1)
        system.agreed(again)
        assert waiting.result(30)['done']


def test_a_deletion_is_waited_for_and_is_answered_when_it_is_over(system: System, zone: Domain) -> None:
    gone = system.central.delete_domain(EVERYBODY, zone.id)
    with system.waiting(gone, serial=gone.serial) as waiting:
        system.seen(gone, 0)
        system.seen(gone, 1)
        system.agreed(gone)
        answer = waiting.result(30)
    # Two have confirmed, and the third has no row: nothing of the zone was ever begun there.
    assert (answer['done'], answer['status'], answer['current']) == (True, 'DELETED', 3)
    assert system.wait(gone)['done']


def test_a_zone_that_is_deleted_meanwhile(system: System, zone: Domain) -> None:
    with system.waiting(zone) as waiting:
        system.central.delete_domain(EVERYBODY, zone.id)
        answer = waiting.result(30)
    assert (answer['failed'], answer['action']) == (True, 'DELETE')


def test_the_time_is_over(system: System, zone: Domain) -> None:
    system.seen(zone, 0)
    answer = system.wait(zone, timeout=0.2)
    assert (answer['timed_out'], answer['done'], answer['failed']) == (True, False, False)
    assert (answer['current'], answer['servers_current']) == (1, ['fake:192.0.2.1:53'])
    assert answer['seconds'] >= 0.2


@pytest.mark.parametrize('query', ['serial=4294967296', 'serial=-1', 'serial=x', 'servers=0', 'servers=4',
                                   'timeout=300.1', 'timeout=-1', 'timeout=nan', 'timeout=x', 'for=ever',
                                   'serial=1&serial=2'])
def test_what_cannot_be_waited_for(system: System, query: str) -> None:
    [zone, *_] = system.central.find_domains(EVERYBODY, PageRequest(limit=1)) or [system.create('example.com.')]
    answer = requests.get(f'{system.url}/v2/zones/{zone.id}/wait?{query}', timeout=60)
    assert answer.status_code == 400, answer.text


def test_a_zone_that_nobody_has_or_that_another_project_had(system: System, zone: Domain) -> None:
    assert requests.get(f'{system.url}/v2/zones/{"e" * 32}/wait', timeout=60).status_code == 404
    theirs = system.central.create_domain(Context(project_id='theirs'), {
        'name': 'theirs.example.', 'email': 'hostmaster@example.com'})
    gone = system.central.delete_domain(EVERYBODY, theirs.id)
    system.agreed(gone)
    for project, status in (('ours', 404), ('theirs', 200)):
        answer = requests.get(f'{system.url}/v2/zones/{gone.id}/wait', headers={'X-Project-Id': project}, timeout=60)
        assert answer.status_code == status, answer.text


def test_no_project_takes_all_the_places_of_those_who_wait(system: System, zone: Domain) -> None:
    few = ZoneWatcher(system.storage, ApiSettings(waits=10))
    few.start()
    wanted = WaitTarget(zone.id, zone.serial)
    with concurrent.futures.ThreadPoolExecutor(10) as threads:
        for number, project in enumerate(('ours', 'ours', *('', 'theirs') * 2, *('',) * 4), 1):
            threads.submit(few.wait, wanted, 60, project_id=project)
            wait_until(lambda number=number: len(few) == number, 'it waits')
            if number == 2:
                with pytest.raises(TooManyWaits, match='2 requests of the project are waiting'):
                    few.wait(wanted, 60, project_id='ours')
        with pytest.raises(TooManyWaits, match='10 requests are waiting'):
            few.wait(wanted, 60)
        few.stop()


def test_many_wait_while_others_are_served_and_none_too_many(system: System, zone: Domain) -> None:
    with concurrent.futures.ThreadPoolExecutor(WAITS) as clients:
        waits = []
        for number in range(1, WAITS + 1):
            waits.append(clients.submit(system.wait, zone, timeout=60))
            wait_until(lambda number=number: len(system.watch) == number, 'it waits')
        refused = requests.get(f'{system.url}/v2/zones/{zone.id}/wait', timeout=60)
        assert (refused.status_code, refused.json()['type']) == (503, 'too_many_waits')
        assert int(refused.headers['Retry-After']) > 0
        for _ in range(20):
            assert requests.get(f'{system.url}/v2/zones/{zone.id}', timeout=60).json()['status'] == 'PENDING'
        with count_statements(system.storage) as statements:
            wait_until(lambda: statements.total() > 4, 'the watch has looked again')
        assert len(statements) <= 3
        for server in (0, 1):
            system.seen(zone, server)
        system.agreed(zone)
        assert all(each.result(60)['done'] for each in waits)
    wait_until(lambda: len(system.watch) == 0, 'nobody waits')
    assert system.wait(zone)['done']


def test_whoever_has_left_does_not_wait_on(system: System, zone: Domain) -> None:
    host, _, port = system.url.removeprefix('http://').rpartition(':')
    with socket.create_connection((host, int(port))) as client:
        client.sendall(f'GET /v2/zones/{zone.id}/wait?timeout=300 HTTP/1.1\r\nHost: {host}\r\n\r\n'.encode())
        wait_until(lambda: len(system.watch) == 1, 'the wait has begun')
    wait_until(lambda: len(system.watch) == 0, 'the wait has ended')


def test_the_api_stops_while_somebody_waits(tmp_path: pathlib.Path) -> None:
    with make_system(tmp_path) as system:
        zone = system.create('example.com.')
        with concurrent.futures.ThreadPoolExecutor(1) as clients:
            waiting = clients.submit(requests.get, f'{system.url}/v2/zones/{zone.id}/wait?timeout=300', timeout=60)
            wait_until(lambda: len(system.watch) == 1, 'the wait has begun')
            system.stop()
            answer = waiting.result(30)
        assert answer.status_code == 503 and 'Retry-After' in answer.headers


class TestARecordset:
    def ask(self, system: System, zone: Domain, recordset: str) -> Any:
        answer = requests.get(f'{system.url}/v2/zones/{zone.id}/recordsets/{recordset}/servers', timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def test_spreads_server_by_server_and_so_does_its_next_change(self, system: System, zone: Domain) -> None:
        first = zone
        system.seen(first, 0)
        made = system.central.create_recordset(EVERYBODY, zone.id, {
            'name': f'www.{zone.name}', 'type': 'A', 'ttl': 60,
            'records': ['192.0.2.1', '192.0.2.2']})
        second = system.central.get_domain(EVERYBODY, zone.id)
        shown = self.ask(system, zone, made.id)
        assert (shown['serial'], shown['status'], shown['needed'], shown['total'], shown['current']) == (
            second.serial, 'PENDING', 2, 3, 0)
        assert [each['served'] for each in shown['servers']] == [False] * 3
        system.seen(second, 1)
        system.seen(second, 2, None, first.serial)
        shown = self.ask(system, zone, made.id)
        assert [(each['name'], each['serial'], each['served']) for each in shown['servers']] == [
            ('fake:192.0.2.1:53', first.serial, False), ('fake:192.0.2.2:53', second.serial, True),
            ('fake:192.0.2.3:53', first.serial, False)]
        # What is taken out of it is a change of it too, though what stays has an old serial.
        system.central.update_recordset(EVERYBODY, zone.id, made.id, {'records': ['192.0.2.1'], 'ttl': 60})
        third = system.central.get_domain(EVERYBODY, zone.id)
        assert self.ask(system, zone, made.id)['serial'] == third.serial
        # A change of another recordset is none of it.
        system.change(third)
        assert self.ask(system, zone, made.id)['serial'] == third.serial

    def test_the_soa_goes_with_the_zone(self, system: System, zone: Domain) -> None:
        [soa] = system.central.find_recordsets(EVERYBODY, zone.id, PageRequest({'type': 'SOA'}))
        assert self.ask(system, zone, soa.id)['serial'] == zone.serial
