"""``designate-pool-manage designate finish`` and ``back``: servers that get their zones from Designate get them from
here, and from Designate again."""

from __future__ import annotations

import contextlib
import http.server
import json
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import requests
import sqlalchemy as sa

from designate_pool.backends.base import Backend
from designate_pool.model import CallResult, Domain, Endpoint, utcnow
from designate_pool.storage.designate import tables
from designate_pool.storage.sql.database import Storage, Tx
from testing import designate as theirs
from testing.bind import Named
from testing.daemon import Daemon
from testing.databases import DatabaseServer, upgraded_sqlite
from testing.knot import Knotd
from testing.nsd import Nsd
from testing.pdns import PowerDns
from testing.processes import free_port, wait_until
from testing.rabbitmq import RabbitMq
from testing.stack import QUICK, Stack
from tests.fixtures.nameservers import Primary, zone_text

pytestmark = pytest.mark.slow

ZONES = [f'zone-{number}.example.com.' for number in range(8)]
#: Of the secondary zone that is created here.
SECONDARY_SERIAL = 7
MASTERS = '[service:central]\nmaster_networks = 127.0.0.0/8\n'
#: A program that is killed before or after it has called a function for the given time.
KILLED = '''
import importlib, os, signal, sys
from oslo_config import cfg
from designate_pool.cmd.manage import app

where, when, calls, *arguments = sys.argv[1:]
module, _, path = where.partition(':')
owner, left = importlib.import_module('designate_pool.' + module), int(calls)
*parts, name = path.split('.')
for part in parts:
    owner = getattr(owner, part)
inner = getattr(owner, name)

def called(*given, **named):
    global left
    left -= 1
    if when == 'before' and not left:
        os.kill(os.getpid(), signal.SIGKILL)
    result = inner(*given, **named)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(owner, name, called)
sys.exit(app.main(arguments, cfg.ConfigOpts()))
'''
IDS = ('11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222')


class Monitor:
    """Asks servers for the serials of zones, all the time."""

    def __init__(self, servers: Sequence[Daemon], names: Sequence[str] = ZONES) -> None:
        self.servers = servers
        self.names = names
        self.faults: list[str] = []
        self.rounds = 0
        self._stop = threading.Event()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
            rounds = self.rounds
            wait_until(lambda: self.rounds > rounds + 1, 'the monitor has asked once more')
        finally:
            self._stop.set()
            thread.join()

    def _run(self) -> None:
        last: dict[tuple[int, str], int] = {}
        while not self._stop.wait(0.02):
            for number, server in enumerate(self.servers):
                for name in self.names:
                    serial = server.serial(name)
                    if serial is None or serial < last.get((number, name), 0):
                        self.faults.append(f'{server.driver} {number}: {name} at {serial}')
                    else:
                        last[number, name] = serial
            self.rounds += 1


@pytest.fixture
def designate(tmp_path: pathlib.Path, primary: Primary) -> Iterator[Storage]:
    """Designate's database; its MiniDNS is *primary*."""
    found = theirs.new(f'sqlite:///{tmp_path}/designate.sqlite')
    (tmp_path / 'designate.conf').write_text(f'[storage:sqlalchemy]\nconnection = {found.engine.url}\n')
    for name in ZONES:
        found.run(lambda tx: theirs.insert_zone(tx, name, {('www', 'A'): ['192.0.2.1']}))
        primary.publish(name, their_text(name, theirs.SERIAL, 'www A 192.0.2.1'))
    yield found
    found.close()


@pytest.fixture
def binds(named: Callable[..., Named], designate: Storage, primary: Primary) -> list[Named]:
    """Two BINDs to which Designate has added its zones."""
    found = [named('one'), named('two')]
    for each in found:
        for name in ZONES:
            added = each.command(
                f'addzone {name.rstrip(".")}  {{ type slave; masters {{ 127.0.0.1 port {primary.port};}}; '
                f'file "slave.{name}00000000-0000-4000-8000-000000000000"; }};')
            assert added.result == 0, added
    wait_until(lambda: all(each.serial(name) == theirs.SERIAL for each in found for name in ZONES),
               'they have the zones')
    return found


@pytest.fixture
def stack(tmp_path: pathlib.Path, binds: list[Named]) -> Iterator[Stack]:
    """Ours, with a copy of the zones; no program runs yet."""
    found = Stack(tmp_path / 'stack', [each.section(server_id, call_timeout=2) for each, server_id in zip(binds, IDS)],
                  upgraded_sqlite(tmp_path / 'ours.sqlite'))
    found.configure(found.config, [*found._servers, MASTERS], found.threshold)
    try:
        yield found
    finally:
        found.stop()


def their_text(name: str, serial: int, *lines: str) -> str:
    """A zone as Designate's MiniDNS serves it."""
    soa = f'@ SOA {theirs.NAME_SERVERS[0]} hostmaster.{name} {serial} 3587 600 86400 3600'
    return '\n'.join(['$TTL 3600', soa, *(f'@ NS {each}' for each in theirs.NAME_SERVERS), *lines]) + '\n'


def designate_command(stack: Stack, verb: str, *words: str) -> tuple[int, str]:
    return stack._manage('designate', verb, '--designate-conf', str(stack.folder.parent / 'designate.conf'), *words)


def test_the_servers_are_turned_and_serve_all_the_time(stack: Stack, binds: list[Named], designate: Storage,
                                                       primary: Primary) -> None:
    code, told = designate_command(stack, 'copy')
    assert code == 0, told
    code, told = designate_command(stack, 'finish')
    assert (code, 'no minidns of the pool default runs; start it with this configuration' in told) == (1, True)
    stack.launch('all')
    zone = designate.read(lambda tx: tx.execute(sa.select(tables.zones.c.id).where(
        tables.zones.c.name == ZONES[0])).scalar_one())
    designate.run(lambda tx: tx.execute(sa.update(tables.zones).values(status='PENDING', action='UPDATE').where(
        tables.zones.c.id == zone)))
    code, told = designate_command(stack, 'finish', '--quiet', '0.1')
    assert (code, f'1 zones are not settled in Designate: {ZONES[0]}; stop its API' in told) == (1, True)
    designate.run(theirs.settle, zone)
    code, told = designate_command(stack, 'finish', '--quiet', '0.1')
    assert code == 1
    assert (f'serves 1 zones otherwise at {binds[0].host}:{binds[0].port}: {ZONES[0]} at {theirs.SERIAL} in place of '
            in told)
    assert f'port {primary.port}' in binds[0].command(f'showzone {ZONES[0]}').text
    primary.publish(ZONES[0], their_text(ZONES[0], theirs.SERIAL + 1, 'www A 192.0.2.1', 'other A 192.0.2.2'))
    for each in binds:
        each.command(f'refresh {ZONES[0]}')
    wait_until(lambda: all(each.serial(ZONES[0]) == theirs.SERIAL + 1 for each in binds), 'they have the last change')
    code, told = designate_command(stack, 'finish', '--quiet', '0.1')
    assert code == 1
    assert (f'does not have 1 zones as they are here, or does not show them: {ZONES[0]}: serves serial '
            f'{theirs.SERIAL + 1} with other contents than ours: 4 records ours, 5 theirs; e.g. other.{ZONES[0]} A. '
            'The servers are left as they are; ') in told
    assert f'port {primary.port}' in binds[0].command(f'showzone {ZONES[0]}').text
    primary.publish(ZONES[0], their_text(ZONES[0], theirs.SERIAL + 1, 'www A 192.0.2.1'))
    for each in binds:
        each.command(f'retransfer {ZONES[0]}')
    wait_until(lambda: not any(each.texts(f'other.{ZONES[0]}', 'A') for each in binds), 'they have what Designate has')
    monitor = Monitor(binds)
    with monitor.running():
        code, told = designate_command(stack, 'finish', '--quiet', '0.1')
        assert (code, told.splitlines()[-1]) == (0, 'All servers get their zones from here; each serves all 8 zones of '
                                                    'its pool at the serials and with the records that they have here.')
        for each in binds:
            for name in ZONES:
                shown = each.command(f'showzone {name}').text
                assert f'port {stack.minidns_port}' in shown and f'port {primary.port}' not in shown
        stack.create_recordset(zone, f'new.{ZONES[0]}', 'A', '192.0.2.9')
        stack.wait_for(zone)
    assert monitor.faults == []
    for each in binds:
        assert each.texts(f'new.{ZONES[0]}', 'A') == ['192.0.2.9']
    code, told = designate_command(stack, 'follow', '--once')
    assert (code, 'get its zones from here already' in told) == (1, True)
    assert designate_command(stack, 'finish')[0] == 0


class DesignateStandIn:
    """A stand-in for Designate's API that writes into its database; nothing is published before :meth:`publish`.

    :ivar running: the services that it says are up
    :ivar projects: in whose names changes were made
    """

    def __init__(self, designate: Storage, primary: Primary) -> None:
        self.running: list[str] = []
        self.projects: set[str] = set()
        self._designate = designate
        self._primary = primary
        self._server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), self._handler())
        self.url = f'http://127.0.0.1:{self._server.server_port}'
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def publish(self) -> None:
        """Do as producer, worker and MiniDNS."""
        self._designate.run(self._publish)

    def _publish(self, tx: Tx) -> None:
        zones, sets, records = tables.zones, tables.recordsets, tables.records
        serial = int(time.time()) + 1000
        for zone in tx.execute(sa.select(zones).where(zones.c.deleted == '0', zones.c.increment_serial)).all():
            lines = [f'{row.name} {row.type} {row.data}' for row in tx.execute(
                sa.select(sets.c.name, sets.c.type, records.c.data).join(records, records.c.recordset_id == sets.c.id)
                .where(sets.c.zone_id == zone.id, sets.c.type == 'A'))]
            tx.execute(sa.update(zones).where(zones.c.id == zone.id).values(
                serial=serial, increment_serial=False, status='ACTIVE', action='NONE'))
            self._primary.publish(zone.name, their_text(zone.name, serial, *lines))

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        stand_in = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get('Content-Length', 0))) or 'null')
                stand_in.projects.add(self.headers.get('X-Auth-Sudo-Project-ID', ''))
                path = self.path.partition('?')[0].split('/')[2:]
                said = json.dumps(stand_in._designate.run(stand_in._change, self.command, path, body)).encode()
                self.send_response(202)
                self.send_header('Content-Length', str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

            def log_message(self, *words: Any) -> None:
                pass

        return Handler

    def _change(self, tx: Tx, method: str, path: list[str], body: Any) -> Any:
        zones, sets, records = tables.zones, tables.recordsets, tables.records
        ids = [each.replace('-', '') for each in path]
        match method, len(path):
            case 'GET', _:
                return {'service_statuses': [{'service_name': each, 'status': 'UP', 'heartbeated_at':
                                              utcnow().strftime('%Y-%m-%dT%H:%M:%S.000000')} for each in self.running]}
            case 'POST', 1 if 'masters' in body:
                made = theirs.insert_secondary(tx, body['name'], body['masters'], description=body['description'])
                return {'id': str(uuid.UUID(made))}
            case 'POST', 4 if path[2:] == ['tasks', 'xfr']:
                name = tx.execute(sa.select(zones.c.name).where(zones.c.id == ids[1])).scalar_one()
                self._primary.publish(name, zone_text(SECONDARY_SERIAL))
                return None
            case 'POST', 1:
                made = theirs.insert_zone(tx, body['name'], email=body['email'], increment_serial=True)
                for key, value in body['attributes'].items():
                    theirs.insert(tx, tables.zone_attributes, zone_id=made, key=key, value=value)
                return {'id': str(uuid.UUID(made))}
            case 'DELETE', 2:
                tx.execute(sa.update(zones).where(zones.c.id == ids[1]).values(deleted=ids[1]))
                return None
            case 'PATCH', 2:
                tx.execute(sa.update(zones).where(zones.c.id == ids[1]).values(body))
            case 'POST', 3:
                theirs.add_recordset(tx, ids[1], body['name'], body['type'], body['records'], ttl=body['ttl'])
            case 'PUT', 4:
                tx.execute(sa.delete(records).where(records.c.recordset_id == ids[3]))
                for each in body['records']:
                    theirs.add_record(tx, ids[1], ids[3], each)
            case 'DELETE', 4:
                tx.execute(sa.delete(records).where(records.c.recordset_id == ids[3]))
                tx.execute(sa.delete(sets).where(sets.c.id == ids[3]))
        tx.execute(sa.update(zones).where(zones.c.id == ids[1]).values(increment_serial=True, status='PENDING',
                                                                       action='UPDATE'))
        return {}


@pytest.fixture
def master() -> Iterator[Primary]:
    """Of secondary zones."""
    found = Primary()
    found.start()
    yield found
    found.stop()


@pytest.fixture
def stand_in(designate: Storage, primary: Primary) -> Iterator[DesignateStandIn]:
    found = DesignateStandIn(designate, primary)
    yield found
    found.stop()


def test_changes_are_taken_back_and_the_servers_turned(stack: Stack, binds: list[Named], designate: Storage,
                                                       primary: Primary, master: Primary, stand_in: DesignateStandIn,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    assert designate_command(stack, 'copy')[0] == 0
    stack.launch('all')
    assert designate_command(stack, 'finish', '--quiet', '0.1')[0] == 0
    ids = {each['name']: each['id'] for each in stack.request('GET', '/v2/zones', 200)['zones']}
    www = {each['zone_id']: each['id'] for each in stack.request('GET', '/v2/recordsets?type=A', 200)['recordsets']}
    added, changed, emptied, deleted, described = (ids[name] for name in ZONES[:5])
    stack.create_recordset(added, f'new.{ZONES[0]}', 'A', '192.0.2.9')
    stack.set_recordset(changed, www[changed], '192.0.2.7', '192.0.2.8')
    stack.request('DELETE', f'/v2/zones/{emptied}/recordsets/{www[emptied]}', 202)
    stack.delete_zone(deleted)
    stack.request('PATCH', f'/v2/zones/{described}', 202, json={'email': 'other@example.com'})
    made = stack.create_zone('made.example.org.')['id']
    stack.create_recordset(made, 'www.made.example.org.', 'A', '192.0.2.5')
    master.publish('second.example.org.', zone_text(SECONDARY_SERIAL))
    second = stack.request('POST', '/v2/zones', 202, json={
        'name': 'second.example.org.', 'type': 'SECONDARY', 'masters': [str(master.endpoint)]})['id']
    for each in (added, changed, emptied, described, made, second):
        stack.wait_for(each)
    stack.wait_for(deleted, 'gone')

    def back(*words: str) -> tuple[int, str]:
        return designate_command(stack, 'back', '--api', stand_in.url, '--header', 'X-Auth-Project-ID:admin',
                                 '--primary', f'127.0.0.1:{primary.port}', '--patience', '1', *words)

    create = Backend.create_domains

    def without_answer(driver: Backend, domains: Sequence[Domain]) -> list[CallResult]:
        """MiniDNS fails when a server asks for a zone at once; the server would ask again in ten minutes."""
        if all(each.name != 'made.example.org.' for each in domains):
            return create(driver, domains)
        before = failed()
        primary.set_fault('servfail@made.example.org.')
        results = create(driver, domains)
        wait_until(lambda: failed() > before, 'the server has asked for the zone')
        primary.clear_faults()
        return results

    def failed() -> int:
        return sum(each.log.count('zone made.example.org/IN: refresh: ') for each in binds)

    code, told = back('--dry-run')
    assert (code, sorted(line.split()[0] for line in told.splitlines())) == (
        0, ['DELETE', 'DELETE', 'PATCH', 'POST', 'POST', 'POST', 'POST', 'PUT'])
    tld = stack.request('POST', '/v2/tlds', 201, json={'name': 'org'})['id']
    code, told = back()
    assert code == 1 and 'not taken back: TLD org: it is only here' in told
    stack.request('DELETE', f'/v2/tlds/{tld}', 204)
    stand_in.running = ['worker', 'central']
    code, told = back()
    assert code == 1 and "Designate's worker must not run while changes are repeated" in told
    stand_in.running = ['central']
    monitor = Monitor(binds, [name for name in ZONES if name != ZONES[3]])
    with monitor.running():
        code, told = back()
        assert code == 1 and '8 requests were accepted.' in told
        assert "Designate's MiniDNS does not serve 5 zones at a serial newer than here" in told
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:  # as behind a firewall
            silent.bind(('127.0.0.1', 0))
            code, told = back('--primary', f'127.0.0.1:{silent.getsockname()[1]}')
            assert code == 1 and f'127.0.0.1:{silent.getsockname()[1]} has not replied within 1 s' in told
        stand_in.publish()
        stand_in.running = ['central', 'producer', 'worker']
        monkeypatch.setattr(Backend, 'create_domains', without_answer)
        code, told = back('--patience', '20')
        assert (code, told.splitlines()[-1]) == (0, 'All servers get their zones from Designate; each serves all 9 '
                                                    'zones of its pool at its serials.')
    assert monitor.faults == []
    assert stand_in.projects == {'', 'some-project'}
    for each in binds:
        assert each.texts(f'new.{ZONES[0]}', 'A') == ['192.0.2.9']
        assert each.texts(f'www.{ZONES[1]}', 'A') == ['192.0.2.7', '192.0.2.8']
        assert each.texts(f'www.{ZONES[2]}', 'A') == []
        assert each.texts('www.made.example.org.', 'A') == ['192.0.2.5']
        for name in (ZONES[0], ZONES[7], 'made.example.org.'):
            shown = each.command(f'showzone {name}').text
            assert f'port {primary.port}' in shown and f'port {stack.minidns_port}' not in shown


def test_zones_that_no_server_serves_do_not_block_either_way(stack: Stack, binds: list[Named], designate: Storage,
                                                             primary: Primary, master: Primary,
                                                             stand_in: DesignateStandIn) -> None:
    late, never = 'late.example.org.', 'never.example.org.'
    designate.run(lambda tx: theirs.insert_zone(tx, 'catalog.example.org.', type='CATALOG', status='PENDING',
                                                action='CREATE'))
    for name in (late, never):
        designate.run(theirs.insert_awaiting, name, [f'{master.host}:{master.port}'])
        for each in binds:
            assert each.command(f'addzone {name} {{ type slave; masters {{ 127.0.0.1 port {primary.port};}}; '
                                f'file "slave.{name}"; }};').result == 0
    code, told = designate_command(stack, 'copy')
    assert code == 0, told
    stack.launch('all')
    code, told = designate_command(stack, 'finish', '--quiet', '0.1')
    assert (code, 'each serves all 8 zones' in told) == (0, True), told
    master.publish(late, zone_text(SECONDARY_SERIAL))
    ids = {each['name']: each['id'] for each in stack.request('GET', '/v2/zones', 200)['zones']}
    stack.request('POST', f'/v2/zones/{ids[late]}/tasks/xfr', 202)
    stack.wait_for(ids[late])
    assert [each.serial(late) for each in binds] == [SECONDARY_SERIAL] * 2
    shown = stack.request('GET', f'/v2/zones/{ids[never]}', 200)
    assert (shown['serial'], shown['transferred_at']) == (1, None)
    stand_in.running = ['central', 'producer', 'worker']
    code, told = designate_command(stack, 'back', '--api', stand_in.url, '--header', 'X-Auth-Project-ID:admin',
                                   '--primary', f'127.0.0.1:{primary.port}', '--patience', '20')
    assert (code, 'all 9 zones of its pool' in told) == (0, True), told
    for each in binds:
        assert f'port {primary.port}' in each.command(f'showzone {late}').text


def test_a_server_that_shows_no_records_is_compared_by_serials_when_told_so(
        named: Callable[..., Named], designate: Storage, primary: Primary, tmp_path: pathlib.Path) -> None:
    server = named('one')
    for name in ZONES:
        assert server.command(f'addzone {name.rstrip(".")} {{ type slave; masters {{ 127.0.0.1 port {primary.port};}}; '
                              f'allow-transfer {{ none; }}; file "slave.{name}"; }};').result == 0
    wait_until(lambda: all(server.serial(name) == theirs.SERIAL for name in ZONES), 'it has the zones')
    stack = Stack(tmp_path / 'stack', [server.section(IDS[0], call_timeout=2)],
                  upgraded_sqlite(tmp_path / 'ours.sqlite'))
    try:
        assert designate_command(stack, 'copy')[0] == 0
        stack.launch('all')
        code, told = designate_command(stack, 'finish', '--quiet', '0.1')
        assert (code, '8 zones as they are here, or does not show them' in told, 'REFUSED' in told,
                'where transfers to this host cannot be allowed, --compare serials' in told) == (1, True, True, True)
        code, told = designate_command(stack, 'finish', '--quiet', '0.1', '--compare', 'serials')
        assert (code, told.splitlines()[-1].endswith('at the serials that they have here.')) == (0, True)
    finally:
        stack.stop()


def a_knot(folder: pathlib.Path, primary: Endpoint) -> Knotd:
    server = Knotd(folder, sections='acl:\n  - id: here\n    address: 127.0.0.1\n    action: [transfer, notify]\n'
                                    f'remote:\n  - id: designate\n    address: {primary.host}@{primary.port}\n').start()
    server.change(*([*words] for name in ZONES for words in (
        ('conf-set', f'zone[{name}]'), ('conf-set', f'zone[{name}].master', 'designate'),
        ('conf-set', f'zone[{name}].acl', 'here'))))
    return server


def an_nsd(folder: pathlib.Path, primary: Endpoint) -> Nsd:
    server = Nsd(folder)
    server.pattern([primary], name='slave')
    server.start()
    for name in ZONES:
        assert server.control('addzone', name, 'slave') == 'ok\n'
    return server


def a_powerdns(folder: pathlib.Path, primary: Endpoint) -> PowerDns:
    server = PowerDns(folder).start()
    zones, headers = f'{server.api_url}/api/v1/servers/localhost/zones', {'X-API-Key': server.api_key}
    for name in ZONES:
        requests.post(zones, json={'name': name, 'kind': 'slave', 'masters': [str(primary)]}, headers=headers,
                      timeout=30).raise_for_status()
        requests.put(f'{zones}/{name}/axfr-retrieve', headers=headers, timeout=30).raise_for_status()
    return server


@pytest.mark.parametrize('make', [a_knot, an_nsd, a_powerdns])
def test_servers_of_other_makes_are_turned_and_handed_back(
        make: Callable[[pathlib.Path, Endpoint], Daemon], designate: Storage, primary: Primary,
        stand_in: DesignateStandIn, tmp_path: pathlib.Path) -> None:
    theirs_mdns, ours_mdns = Endpoint(primary.host, primary.port), Endpoint('127.0.0.1', free_port())
    with contextlib.ExitStack() as ended:
        servers = []
        for name in ('one', 'two'):
            servers.append(make(tmp_path / name, theirs_mdns))
            ended.callback(servers[-1].remove)
            if isinstance(servers[-1], Nsd):
                # A zone stays with its pattern, which names both primaries before the change.
                servers[-1].pattern([theirs_mdns, ours_mdns], name='slave')
        wait_until(lambda: all(each.serial(name) == theirs.SERIAL for each in servers for name in ZONES),
                   'they have the zones')
        options: dict[str, object] = {'pattern': 'slave'} if servers[0].driver == 'nsd' else {}
        stack = Stack(tmp_path / 'stack', [each.section(server_id, call_timeout=4, **options)
                                           for each, server_id in zip(servers, IDS)],
                      upgraded_sqlite(tmp_path / 'ours.sqlite'), minidns_port=ours_mdns.port)
        ended.callback(stack.stop)
        monitor = Monitor(servers)
        ended.enter_context(monitor.running())
        code, told = designate_command(stack, 'copy')
        assert code == 0, told
        stack.launch('all')
        code, told = designate_command(stack, 'finish', '--quiet', '0.1')
        assert code == 0, told
        ids = {each['name']: each['id'] for each in stack.request('GET', '/v2/zones', 200)['zones']}
        stack.create_recordset(ids[ZONES[0]], f'new.{ZONES[0]}', 'A', '192.0.2.9')
        stack.wait_for(ids[ZONES[0]])
        assert [each.texts(f'new.{ZONES[0]}', 'A') for each in servers] == [['192.0.2.9']] * 2
        stand_in.running = ['central']
        back = ('back', '--api', stand_in.url, '--header', 'X-Auth-Project-ID:admin', '--primary', str(theirs_mdns),
                '--patience')
        assert designate_command(stack, *back, '1')[0] == 1  # there is no newer serial yet
        stand_in.publish()
        stand_in.running = ['central', 'producer', 'worker']
        code, told = designate_command(stack, *back, '30')
        assert code == 0, told
        stack.stop()
        # Only Designate can have this change.
        primary.publish(ZONES[0], their_text(ZONES[0], int(time.time()) + 2000, 'last A 192.0.2.10'))
        for each in servers:
            each.notify(ZONES[0])
        wait_until(lambda: all(each.texts(f'last.{ZONES[0]}', 'A') == ['192.0.2.10'] for each in servers),
                   'they have the change of Designate')
    assert monitor.faults == []


def killed(stack: Stack, where: str, when: str, calls: int, verb: str, *words: str) -> None:
    """Run a command until it is killed there."""
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', KILLED, where, when, str(calls), '--config-file', str(stack.config),
         'designate', verb, '--designate-conf', str(stack.folder.parent / 'designate.conf'), *words],
        capture_output=True, text=True, timeout=300)
    assert done.returncode == -signal.SIGKILL, f'{where}: {done.returncode}\n{done.stdout}\n{done.stderr}'


def test_both_ways_go_on_after_a_kill_at_any_step(stack: Stack, binds: list[Named], designate: Storage,
                                                  primary: Primary, stand_in: DesignateStandIn) -> None:
    killed(stack, 'cmd.takeover.lists:write_pool', 'after', 1, 'copy')
    killed(stack, 'cmd.takeover.zone_copy:ZoneCopy._write_page', 'after', 1, 'copy')
    killed(stack, 'cmd.takeover.zone_copy:ZoneCopy.run', 'after', 1, 'copy')
    code, told = designate_command(stack, 'copy')
    assert code == 0, told
    stack.launch('all')
    monitor = Monitor(binds)
    with monitor.running():
        for where, when in (('cmd.takeover.zone_copy:ZoneCopy.run', 'after'), ('cmd.takeover.switch:begin', 'before'),
                            ('storage.designate.target:begin_service', 'after'), ('cmd.takeover.switch:begin', 'after'),
                            ('cmd.takeover.switch:_wait', 'after'), ('cmd.takeover.switch:end', 'after')):
            killed(stack, where, when, 1, 'finish', '--quiet', '0.1')
        code, told = designate_command(stack, 'finish', '--quiet', '0.1')
        assert code == 0, told
        ids = {each['name']: each['id'] for each in stack.request('GET', '/v2/zones', 200)['zones']}
        for name in ZONES[:3]:
            stack.create_recordset(ids[name], f'new.{name}', 'A', '192.0.2.9')
        for name in ZONES[:3]:
            stack.wait_for(ids[name])
        stand_in.running = ['central']
        back = ('--api', stand_in.url, '--header', 'X-Auth-Project-ID:admin', '--primary', f'127.0.0.1:{primary.port}',
                '--patience', '20')
        killed(stack, 'cmd.takeover.hand_back:rest', 'after', 1, 'back', *back)
        killed(stack, 'cmd.takeover.replay:Replay._call', 'after', 5, 'back', *back)
        killed(stack, 'cmd.takeover.hand_back:turn', 'before', 1, 'back', *back)
        stand_in.publish()
        stand_in.running = ['central', 'producer', 'worker']
        killed(stack, 'backends.base:Backend.create_domains', 'after', 5, 'back', *back)
        killed(stack, 'cmd.takeover.hand_back:_wait', 'after', 1, 'back', *back)
        code, told = designate_command(stack, 'back', *back)
        assert code == 0, told
    assert monitor.faults == []
    for each in binds:
        for name in ZONES:
            assert each.texts(f'new.{name}', 'A') == (['192.0.2.9'] if name in ZONES[:3] else [])
            assert f'port {primary.port}' in each.command(f'showzone {name}').text


def test_two_pools_and_a_secondary_zone_are_turned_in_one_run(
        named: Callable[..., Named], designate: Storage, primary: Primary, master: Primary, postgresql: DatabaseServer,
        rabbitmq: RabbitMq, tmp_path: pathlib.Path) -> None:
    silver = '5' * 32

    def move(tx: Tx) -> None:
        theirs.insert_pool(tx, 'silver', silver)
        tx.execute(sa.update(tables.zones).where(tables.zones.c.name.in_(ZONES[4:])).values(pool_id=silver))
        theirs.insert_secondary(tx, 'second.example.', [f'{master.host}:{master.port}'], pool_id=silver)

    designate.run(move)
    second = ('$TTL 900\n@ SOA primary.second.example. admin.second.example. {} 1800 300 604800 60\n'
              '@ NS primary.second.example.\ntxt TXT "{}"\n')
    primary.publish('second.example.', second.format(theirs.SERIAL, 'of the masters'))
    master.publish('second.example.', second.format(theirs.SERIAL + 1, 'changed'))
    names = {'default': ZONES[:4], 'silver': [*ZONES[4:], 'second.example.']}
    servers = {pool: named(pool) for pool in names}
    url = postgresql.create_database()
    stacks = {}
    for (pool, server), server_id in zip(servers.items(), IDS):
        for name in names[pool]:
            assert server.command(f'addzone {name} {{ type slave; masters {{ 127.0.0.1 port {primary.port};}}; '
                                  f'file "slave.{name}"; }};').result == 0
        wait_until(lambda: all(server.serial(name) == theirs.SERIAL for name in names[pool]), 'it has the zones')
        stacks[pool] = Stack(tmp_path / f'stack-{pool}', [server.section(server_id, call_timeout=2), MASTERS], url,
                             rabbitmq.url, manager={**QUICK, 'pool_name': pool}, host=f'{pool}.example.com')
    default, also = stacks['default'], ('--also', str(stacks['silver'].config))
    monitors = [Monitor([server], names[pool]) for pool, server in servers.items()]
    with contextlib.ExitStack() as ended:
        for each in stacks.values():
            ended.callback(each.stop)
        default.manage('database', 'upgrade')
        code, told = designate_command(default, 'copy', *also)
        assert code == 0, told
        default.launch('central', 'minidns', 'manager', 'api')
        code, told = designate_command(default, 'finish', '--quiet', '0.1', *also)
        assert (code, 'no minidns of the pool silver runs' in told) == (1, True)
        stacks['silver'].launch('minidns', 'manager')
        with contextlib.ExitStack() as monitored:
            for each in monitors:
                monitored.enter_context(each.running())
            code, told = designate_command(default, 'finish', '--quiet', '0.1', *also)
            assert (code, 'all 9 zones of its pool' in told.splitlines()[-1]) == (0, True), told
            wait_until(lambda: servers['silver'].texts('txt.second.example.', 'TXT') == ['"changed"'],
                       'the secondary zone is refreshed from its master')
        assert [each.faults for each in monitors] == [[], []]
        for pool, server in servers.items():
            assert f'port {stacks[pool].minidns_port}' in server.command(f'showzone {names[pool][0]}').text
