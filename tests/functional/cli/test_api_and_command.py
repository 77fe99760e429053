"""The command, over HTTP, to the real Central on SQLite; only the pool manager and its servers are stood in for."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import io
import json
import logging
import pathlib
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from unittest import mock

import dns.zone
import pytest
import requests

from designate_pool import runtime
from designate_pool.api.app import create_app
from designate_pool.api.http.server import ApiServer
from designate_pool.api.services.zone_watcher import ZoneWatcher
from designate_pool.central.service import Central
from designate_pool.cli.app import Shell
from designate_pool.errors import ServiceUnavailable
from designate_pool.model import (Action, Comparison, Context, Domain, Endpoint, Outcome, Pool, PoolServer, Reloaded,
                                  Report, Server, ServerState, ServerStatus, utcnow)
from designate_pool.rpc.central import TOPIC, CentralClient
from designate_pool.rpc.direct import Direct
from designate_pool.rpc.pool_manager import PoolManagerClient, topic
from designate_pool.storage.operations import pool_servers, server_statuses
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import pools
from testing.databases import upgraded_sqlite
from testing.processes import wait_until
from testing.settings import central_settings
from tests.fixtures import root_log

EVERYBODY = Context(all_projects=True)
SERVERS = tuple(Server(id=digit * 32, driver='fake', host=f'192.0.2.{digit}') for digit in '123')
ZONE_FILE = """\
$ORIGIN example.net.
$TTL 3600
@     IN SOA  ns1.example.org. hostmaster.example.net. 2026010100 3600 600 86400 300
@     IN NS   ns1.example.org.
@     IN MX   10 mail
@     IN TXT  "v=spf1 mx -all" "second \\"part\\""
www 60 IN A   192.0.2.10
www 60 IN A   192.0.2.11
mail  IN AAAA 2001:db8::25
*.any IN CNAME www
"""


class StandInPoolManager:
    """Does at once what it is told, on servers that are either up or down.

    :ivar sections: the servers that the configuration has
    :ivar lost: zones that servers have lost, as (server id, domain)
    """

    def __init__(self, storage: Storage, central: Central, threshold: int) -> None:
        self.down: set[str] = set()
        self.sections = SERVERS
        self.lost: list[tuple[str, Domain]] = []
        self._storage = storage
        self._central = central
        self._threshold = threshold
        self._lock = threading.Lock()
        self._versions = iter(range(1, 100_000))

    def create_domain(self, context: Context, domain: Domain) -> None:
        self.change_domains(context, [domain])

    update_domain = delete_domain = create_domain

    def change_domains(self, context: Context, domains: list[Domain]) -> None:
        with self._lock:
            members = self._storage.read(pool_servers.of_pool, 'default').servers
            active = [each.id for each in members if each.state is ServerState.ACTIVE]
            resting = [each.id for each in members if each.state is ServerState.MAINTENANCE]
            for domain in domains:
                rows = [self._row(domain, server_id) for server_id in active]
                self._storage.run(server_statuses.write, [*rows, *(self._due(domain, each) for each in resting)],
                                  utcnow())
                done = sum(row.status is Outcome.SUCCESS for row in rows)
                status = Outcome.SUCCESS if 100 * done >= self._threshold * len(active) else Outcome.ERROR
                self._central.update_statuses(context, [
                    Report(domain.id, domain.action, domain.generation, status, domain.serial)])

    def reload_servers(self, context: Context) -> Reloaded:
        wanted = [PoolServer(each.id, '', each.label, each.driver, ServerState.ACTIVE, 'f' * 64, position)
                  for position, each in enumerate(self.sections)]
        return self._storage.run(pool_servers.register, 'default', wanted, False, True, utcnow())

    def compare_server(self, context: Context, server_id: str, fix: bool, delete_extra: int | None,
                       contents: bool = False) -> Comparison:
        lost = [domain for server, domain in self.lost if server == server_id]
        if fix:
            self._storage.run(server_statuses.write, [self._due(domain, server_id) for domain in lost], utcnow())
        return Comparison(server_id, 1, tuple(domain.name for domain in lost), extra=(),
                          mending=len(lost) if fix else 0)

    def catch_up(self, server_id: str, domain: Domain) -> None:
        """Do what is due for *domain* on a server."""
        self.lost = [each for each in self.lost if each != (server_id, domain)]
        self._storage.run(server_statuses.write, [self._row(domain, server_id)], utcnow())

    def put(self, server_id: str, state: ServerState, **values: object) -> None:
        """Have a server come into *state*."""
        def save(tx: Tx) -> None:
            server = pool_servers.get(tx, server_id)
            assert server is not None
            assert pool_servers.save(tx, pool_servers.in_state(server, state, utcnow(), **values), utcnow())

        self._storage.run(save)

    def _due(self, domain: Domain, server_id: str) -> ServerStatus:
        return ServerStatus(server_id, domain.id, Action.UPDATE, domain.serial, next_attempt_at=utcnow(),
                            version=next(self._versions))

    def _row(self, domain: Domain, server_id: str) -> ServerStatus:
        down = server_id in self.down
        action = Action.DELETE if domain.action is Action.DELETE else Action.UPDATE
        return ServerStatus(
            server_id, domain.id, action, domain.serial, status=Outcome.ERROR if down else Outcome.SUCCESS,
            serial_number=None if down or action is Action.DELETE else domain.serial, attempts=4 if down else 1,
            last_error='connection refused' if down else None,
            next_attempt_at=utcnow() + timedelta(seconds=30) if down else None, version=next(self._versions))


@dataclasses.dataclass
class System:
    url: str
    direct: Direct
    central: Central
    manager: StandInPoolManager

    def command(self, *words: str, stdin: str = '') -> subprocess.CompletedProcess[str]:
        """What the command does, in this process: one of its own takes ten times as long to start as it works."""
        out, err = io.StringIO(), io.StringIO()
        with root_log.as_before():
            code = Shell(stdin=io.StringIO(stdin), stdout=out, stderr=err).run(['--url', self.url, *words])
        return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())

    def json(self, *words: str, stdin: str = '') -> dict:
        ran = self.command(*words, '-f', 'json', stdin=stdin)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)


@pytest.fixture(params=[66], ids=['threshold 66'])
def system(request: pytest.FixtureRequest, tmp_path: pathlib.Path,
           monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    # The services run in this process too, and their log is not the command's.
    monkeypatch.setattr(logging.getLogger('designate_pool'), 'propagate', False)
    monkeypatch.setenv('COLUMNS', '200')  # or what is asked for may stand on two lines of a cell
    storage, threads = Storage(upgraded_sqlite(tmp_path / 'database.sqlite')), runtime.Threads()
    direct = Direct(threads.workers(2, 'casts'))
    central = Central(storage, PoolManagerClient(direct), threads, settings=central_settings())
    pool = Pool('default', servers=SERVERS, threshold_percentage=request.param)
    manager = StandInPoolManager(storage, central, request.param)
    direct.serve(TOPIC, CentralClient, central)
    direct.serve(topic(pool.name), PoolManagerClient, manager)
    central.start()
    manager.reload_servers(EVERYBODY)
    storage.run(pools.publish, pool, utcnow())
    [found] = central.find_pools(EVERYBODY, {'name': pool.name})
    central.update_pool(EVERYBODY, {'id': found.id, 'name_servers': ['ns1.example.org.', 'ns2.example.org.']})
    watch = ZoneWatcher(storage)
    watch.start()
    app = create_app(central, pool, pool_managers=PoolManagerClient(direct), storage=storage, watcher=watch)
    server = ApiServer(app, Endpoint('127.0.0.1', 0))
    server.start()
    yield System(f'http://{server.endpoint}', direct, central, manager)
    watch.stop()
    server.stop()
    central.stop()
    direct.stop()
    storage.close()


def test_the_life_of_a_zone(system: System) -> None:
    zone = system.json('zone', 'create', 'Example.com', '--email', 'hostmaster@example.com', '--wait')
    assert (zone['name'], zone['status'], zone['action']) == ('example.com.', 'ACTIVE', 'NONE')

    made = system.command('recordset', 'create', 'example.com', 'www', 'A', '--record', '192.0.2.1', '--ttl', '60',
                          '-f', 'json', '--wait')
    assert made.returncode == 0
    assert 'fake:192.0.2.1:53  UPDATE SUCCESS  serial ' in made.stderr
    assert made.stderr.splitlines()[-1].startswith('example.com. is ACTIVE at serial ')
    assert json.loads(made.stdout)['status'] == 'ACTIVE'

    txt = system.json('recordset', 'create', 'example.com', '@', 'TXT', '--record', '"a \\"quoted\\" text"', '--wait')
    assert txt['records'] == ['"a \\"quoted\\" text"']
    changed = system.json('recordset', 'set', 'example.com', 'www', '--record', '192.0.2.2', '--record', '192.0.2.3',
                          '--wait')
    assert (sorted(changed['records']), changed['status']) == (['192.0.2.2', '192.0.2.3'], 'ACTIVE')
    listed = {(each['name'], each['type']) for each in system.json('recordset', 'list', 'example.com')}
    assert listed == {('example.com.', 'SOA'), ('example.com.', 'NS'), ('example.com.', 'TXT'),
                      ('www.example.com.', 'A')}
    later = system.json('zone', 'set', 'example.com', '--ttl', '120', '--wait')
    assert later['serial'] > zone['serial']

    assert system.json('recordset', 'delete', 'example.com', 'www', '--wait')['status'] == 'DELETED'
    assert 'is ACTIVE at serial' in system.command('zone', 'explain', 'example.com').stdout
    assert system.json('zone', 'delete', 'example.com', '--wait')['status'] == 'DELETED'
    gone = system.command('zone', 'show', 'example.com')
    assert (gone.returncode, gone.stderr.count('\n')) == (1, 1)
    again = system.json('zone', 'create', 'example.com', '--email', 'hostmaster@example.com', '--wait')
    assert again['serial'] > later['serial']


def test_a_zone_file_goes_in_and_comes_out(system: System, tmp_path: pathlib.Path) -> None:
    zone = system.json('zone', 'import', '-', '--wait', stdin=ZONE_FILE)
    assert (zone['name'], zone['email'], zone['status']) == ('example.net.', 'hostmaster@example.net', 'ACTIVE')
    exported = system.command('zone', 'export', 'example.net').stdout
    wanted, found = (_contents(text) for text in (ZONE_FILE, exported))
    assert found == wanted
    again = system.command('zone', 'import', '-', stdin=exported)
    assert (again.returncode, again.stdout) == (1, '')
    assert again.stderr == '- was not imported: The zone example.net. exists already.\n'
    broken = system.command('zone', 'import', '-', stdin=ZONE_FILE.replace('192.0.2.10', '192.0.2.310'))
    assert broken.returncode == 1
    assert '192.0.2.310' in broken.stderr or 'line 7' in broken.stderr


def _contents(text: str) -> set[tuple[str, str, int, str]]:
    """All of a zone but SOA and NS, which are the pool's."""
    zone = dns.zone.from_text(text, 'example.net.', relativize=False)
    return {(str(name), str(dataset.rdtype), dataset.ttl, rdata.to_text())
            for name, dataset in zone.iterate_rdatasets() if dataset.rdtype not in (2, 6) for rdata in dataset}


def test_nobody_carries_it_out(system: System) -> None:
    system.direct.serve(topic('default'), PoolManagerClient, None)
    created = system.command('zone', 'create', 'example.com', '--email', 'hostmaster@example.com', '--wait', '0.5')
    assert created.returncode == 4
    assert '0 of 3 servers have the change, 2 are needed' in created.stderr
    assert 'not begun' in system.command('zone', 'explain', 'example.com').stdout


@contextlib.contextmanager
def without_database() -> Iterator[None]:
    """The time of an outage of the database."""
    with mock.patch.object(Storage, 'read', side_effect=ServiceUnavailable(service='the database', why='no answer')):
        yield


def test_the_database_is_gone_and_back(system: System) -> None:
    with without_database():
        ran = system.command('zone', 'list')
        assert (ran.returncode, ran.stderr.count('\n')) == (1, 1)
        assert 'the database does not answer' in ran.stderr
        assert system.command('status').returncode == 1
    assert system.command('status').returncode == 0


def test_a_wait_lasts_through_an_outage_of_the_database(system: System) -> None:
    zone = requests.post(f'{system.url}/v2/zones', json={'name': 'example.com.', 'email': 'a@example.com'}).json()
    wait_until(lambda: requests.get(zone['links']['self']).json()['status'] == 'ACTIVE', 'the zone is ACTIVE')
    manager = system.manager
    system.direct.serve(topic('default'), PoolManagerClient, None)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(system.command, 'zone', 'set', 'example.com', '--ttl', '60', '--wait', '30')
        wait_until(lambda: requests.get(zone['links']['self']).json()['serial'] > zone['serial'], 'the change is made')
        with without_database():
            began = time.monotonic()
            wait_until(
                lambda: requests.get(zone['links']['self']).status_code == 503 and time.monotonic() > began + 0.7,
                'it is gone for longer than the command waits between two looks')
        manager.change_domains(EVERYBODY, [system.central.get_domain(EVERYBODY, zone['id'].replace('-', ''))])
        assert waiting.result(60).returncode == 0


def standing(system: System) -> list[tuple[str, str, int]]:
    """The servers as they are listed."""
    return [(each['name'], each['state'], each['waiting']) for each in system.json('server', 'list')]


def in_the_api(system: System, server_id: str, name: str) -> object:
    return requests.get(f'{system.url}/v2/servers/{server_id}').json()[name]


def created(system: System) -> Domain:
    """The zone example.com., on every server."""
    zone = system.json('zone', 'create', 'example.com', '--email', 'hostmaster@example.com', '--wait')
    return system.central.get_domain(EVERYBODY, zone['id'].replace('-', ''))


@pytest.mark.parametrize('system', [100], indirect=True, ids=['threshold 100'])
def test_a_server_rests_and_gets_what_it_missed(system: System) -> None:
    created(system)
    one = SERVERS[0].id
    assert system.json('server', 'maintenance', '192.0.2.1')['note'] == 'put into maintenance by command'
    changed = system.command('zone', 'set', 'example.com', '--ttl', '60', '--wait')
    assert (changed.returncode, ' on 2 of 2 servers after ' in changed.stderr) == (0, True)
    told = system.command('zone', 'explain', 'example.com').stdout
    assert ' on every server that counts.' in told
    assert 'it has been in maintenance for ' in ' '.join(told.split())
    assert system.json('zone', 'explain', 'example.com')['degraded'] is False
    assert standing(system) == [('fake:192.0.2.1:53', 'maintenance', 1), ('fake:192.0.2.2:53', 'active', 0),
                                ('fake:192.0.2.3:53', 'active', 0)]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        resumed = pool.submit(system.command, 'server', 'resume', '1111', '--wait', '30')
        wait_until(lambda: in_the_api(system, one, 'state') == 'active', 'the server is resumed')
        [domain] = system.central.find_domains(EVERYBODY)
        system.manager.catch_up(one, domain)
        ran = resumed.result(60)
    assert (ran.returncode, ran.stderr.splitlines()[-1]) == (
        0, 'fake:192.0.2.1:53 is active and nothing waits for it.')
    assert ' on every server.' in system.command('zone', 'explain', 'example.com').stdout
    assert system.json('server', 'resume', '1111')['note'] == 'resumed by command'


def test_a_server_has_lost_a_zone(system: System) -> None:
    domain, one = created(system), SERVERS[0].id
    assert system.command('server', 'resync', '192.0.2.1').returncode == 0
    system.manager.lost = [(one, domain)]
    found = system.command('server', 'resync', '192.0.2.1')
    assert (found.returncode, '  example.com.\n' in found.stdout) == (1, True)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        mended = pool.submit(system.command, 'server', 'resync', '192.0.2.1', '--fix')
        wait_until(lambda: in_the_api(system, one, 'waiting') == 1, 'the zone is due')
        system.manager.catch_up(one, domain)
        assert mended.result(60).returncode == 0
    assert system.json('server', 'resync', '192.0.2.1')['missing'] == []


def test_a_server_joins_and_leaves(system: System) -> None:
    created(system)
    fourth = Server(id='4' * 32, driver='fake', host='192.0.2.4')
    system.manager.sections = (*SERVERS, fourth)
    assert system.json('server', 'reload') == {'joined': [fourth.label], 'changed': [], 'draining': []}
    assert system.json('server', 'list')[3]['note'] == '0 of 1 zones started'
    assert system.json('zone', 'explain', 'example.com')['total'] == 3
    assert system.json('server', 'resume', '4444')['state'] == 'active'
    assert system.json('zone', 'explain', 'example.com')['total'] == 4
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        drained = pool.submit(system.command, 'server', 'drain', '4444', '--wait', '30')
        wait_until(lambda: in_the_api(system, fourth.id, 'state') == 'draining', 'the server drains')
        system.manager.put(fourth.id, ServerState.REMOVED)
        assert drained.result(60).returncode == 0
    assert system.json('server', 'reload') == {'joined': [], 'changed': [], 'draining': []}
    assert system.command('server', 'drain', '4444').returncode == 1
    assert len(system.json('zone', 'explain', 'example.com')['servers']) == 3
    assert system.json('server', 'resume', '4444')['state'] == 'joining'
    system.manager.sections = SERVERS
    assert system.json('server', 'reload')['draining'] == [fourth.label]
    refused = system.command('server', 'resume', '4444')
    assert (refused.returncode, 'add it again and reload' in refused.stderr) == (1, True)


def test_a_command_to_a_pool_manager_that_is_away(system: System) -> None:
    system.direct.serve(topic('default'), PoolManagerClient, None)
    for words in (('resync', '1111'), ('reload',)):
        ran = system.command('server', *words)
        assert (ran.returncode, ran.stderr.count('\n')) == (1, 1)
        assert 'pool_manager.default does not answer' in ran.stderr
    assert system.json('server', 'maintenance', '1111')['state'] == 'maintenance'
