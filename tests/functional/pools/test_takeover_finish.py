"""``designate-pool-manage designate finish``: servers that get their zones from Designate get them from here."""

from __future__ import annotations

import contextlib
import pathlib
import signal
from collections.abc import Callable, Iterator, Sequence

import pytest
import requests
import sqlalchemy as sa

from designate_pool.model import Endpoint
from designate_pool.storage.designate import tables
from designate_pool.storage.sql.database import Storage, Tx
from testing import designate as theirs, warm
from testing.bind import Named
from testing.daemon import Daemon
from testing.databases import DatabaseServer, upgraded_sqlite
from testing.knot import Knotd
from testing.nsd import Nsd
from testing.pdns import PowerDns
from testing.processes import free_port, wait_until
from testing.rabbitmq import RabbitMq
from testing.stack import QUICK, Stack
from tests.fixtures.monitor import monitored
from tests.fixtures.nameservers import Primary, zone_text

ZONES = [f'zone-{number}.example.com.' for number in range(8)]
#: Of the secondary zone that is created here.
SECONDARY_SERIAL = 7
MASTERS = '[service:central]\nmaster_networks = 127.0.0.0/8\n'
IDS = ('11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222')


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
        add_zones(each, ZONES, primary)
    return found


def add_zones(server: Named, names: Sequence[str], primary: Primary, more: str = '', served: bool = True) -> None:
    """Add zones as Designate does, and wait until they are served, where they are to be."""
    for name in names:
        assert server.command(f'addzone {name} {{ type slave; masters {{ 127.0.0.1 port {primary.port};}}; {more}'
                              f'file "slave.{name}00000000-0000-4000-8000-000000000000"; }};').result == 0
    if served:
        wait_until(lambda: all(server.serial(name) == theirs.SERIAL for name in names), 'it has the zones')


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


def launch(stack: Stack) -> None:
    """Start all, and wait until MiniDNS has said that it runs: a program is ready a moment before."""
    stack.launch('all')
    wait_until(lambda: stack.request('GET', '/v2/service_statuses?service_name=minidns')['service_statuses'],
               'MiniDNS has said that it runs')


def designate_command(stack: Stack, verb: str, *words: str) -> tuple[int, str]:
    return stack._manage('designate', verb, '--designate-conf', str(stack.folder.parent / 'designate.conf'), *words)


def test_the_servers_are_turned_and_serve_all_the_time(stack: Stack, binds: list[Named], designate: Storage,
                                                       primary: Primary) -> None:
    code, told = designate_command(stack, 'copy')
    assert code == 0, told
    code, told = designate_command(stack, 'finish')
    assert (code, 'no minidns of the pool default runs; start it with this configuration' in told) == (1, True)
    launch(stack)
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
    with monitored(binds, ZONES):
        code, told = designate_command(stack, 'finish', '--quiet', '0.1')
        assert (code, told.splitlines()[-1]) == (0, 'All servers get their zones from here; each serves all 8 zones of '
                                                    'its pool at the serials and with the records that they have here.')
        for each in binds:
            for name in ZONES:
                shown = each.command(f'showzone {name}').text
                assert f'port {stack.minidns_port}' in shown and f'port {primary.port}' not in shown
        stack.create_recordset(zone, f'new.{ZONES[0]}', 'A', '192.0.2.9')
        stack.wait_for(zone)
    for each in binds:
        assert each.texts(f'new.{ZONES[0]}', 'A') == ['192.0.2.9']
    code, told = designate_command(stack, 'follow', '--once')
    assert (code, 'get its zones from here already' in told) == (1, True)
    assert designate_command(stack, 'finish')[0] == 0


@pytest.fixture
def master() -> Iterator[Primary]:
    """Of secondary zones."""
    with Primary() as found:
        yield found


def test_zones_that_no_server_serves_do_not_block_it(stack: Stack, binds: list[Named], designate: Storage,
                                                     primary: Primary, master: Primary) -> None:
    late, never = 'late.example.org.', 'never.example.org.'
    designate.run(lambda tx: theirs.insert_zone(tx, 'catalog.example.org.', type='CATALOG', status='PENDING',
                                                action='CREATE'))
    for name in (late, never):
        designate.run(theirs.insert_awaiting, name, [f'{master.host}:{master.port}'])
        for each in binds:
            add_zones(each, [name], primary, served=False)
    code, told = designate_command(stack, 'copy')
    assert code == 0, told
    launch(stack)
    code, told = designate_command(stack, 'finish', '--quiet', '0.1')
    assert (code, 'each serves all 8 zones' in told) == (0, True), told
    master.publish(late, zone_text(SECONDARY_SERIAL))
    ids = {each['name']: each['id'] for each in stack.request('GET', '/v2/zones', 200)['zones']}
    stack.request('POST', f'/v2/zones/{ids[late]}/tasks/xfr', 202)
    stack.wait_for(ids[late])
    assert [each.serial(late) for each in binds] == [SECONDARY_SERIAL] * 2
    shown = stack.request('GET', f'/v2/zones/{ids[never]}', 200)
    assert (shown['serial'], shown['transferred_at']) == (1, None)


def test_a_server_that_shows_no_records_is_compared_by_serials_when_told_so(
        named: Callable[..., Named], designate: Storage, primary: Primary, tmp_path: pathlib.Path) -> None:
    server = named('one')
    add_zones(server, ZONES, primary, 'allow-transfer { none; }; ')
    stack = Stack(tmp_path / 'stack', [server.section(IDS[0], call_timeout=2)],
                  upgraded_sqlite(tmp_path / 'ours.sqlite'))
    try:
        assert designate_command(stack, 'copy')[0] == 0
        launch(stack)
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
def test_servers_of_other_makes_are_turned(
        make: Callable[[pathlib.Path, Endpoint], Daemon], designate: Storage, primary: Primary,
        tmp_path: pathlib.Path) -> None:
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
        ended.enter_context(monitored(servers, ZONES))
        code, told = designate_command(stack, 'copy')
        assert code == 0, told
        launch(stack)
        code, told = designate_command(stack, 'finish', '--quiet', '0.1')
        assert code == 0, told
        ids = {each['name']: each['id'] for each in stack.request('GET', '/v2/zones', 200)['zones']}
        stack.create_recordset(ids[ZONES[0]], f'new.{ZONES[0]}', 'A', '192.0.2.9')
        stack.wait_for(ids[ZONES[0]])
        assert [each.texts(f'new.{ZONES[0]}', 'A') for each in servers] == [['192.0.2.9']] * 2


def test_it_goes_on_after_a_kill_at_any_step(stack: Stack, binds: list[Named], designate: Storage,
                                             primary: Primary) -> None:
    code, told = designate_command(stack, 'copy')
    assert code == 0, told
    launch(stack)
    with monitored(binds, ZONES):
        for where, when in (('zone_copy:ZoneCopy.run', 'after'), ('commands:refuse_differences', 'before'),
                            ('commands:target.begin_service', 'after'), ('commands:_wait', 'before'),
                            ('commands:_wait', 'after'), ('commands:refuse_differences', 'after')):
            done = warm.run('tests.fixtures.killed', f'designate_pool.cmd.takeover.{where}', when, '--config-file',
                            str(stack.config), 'designate', 'finish', '--designate-conf',
                            str(stack.folder.parent / 'designate.conf'), '--quiet', '0.1')
            assert done.returncode == -signal.SIGKILL, f'{where}: {done.returncode}\n{done.stdout}\n{done.stderr}'
        code, told = designate_command(stack, 'finish', '--quiet', '0.1')
        assert code == 0, told
        ids = {each['name']: each['id'] for each in stack.request('GET', '/v2/zones', 200)['zones']}
        for name in ZONES[:3]:
            stack.create_recordset(ids[name], f'new.{name}', 'A', '192.0.2.9')
        for name in ZONES[:3]:
            stack.wait_for(ids[name])
    for each in binds:
        for name in ZONES:
            assert each.texts(f'new.{name}', 'A') == (['192.0.2.9'] if name in ZONES[:3] else [])
            assert f'port {stack.minidns_port}' in each.command(f'showzone {name}').text


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
        add_zones(server, names[pool], primary)
        stacks[pool] = Stack(tmp_path / f'stack-{pool}', [server.section(server_id, call_timeout=2), MASTERS], url,
                             rabbitmq.url, manager={**QUICK, 'pool_name': pool}, host=f'{pool}.example.com')
    default, also = stacks['default'], ('--also', str(stacks['silver'].config))
    with contextlib.ExitStack() as ended:
        for each in stacks.values():
            ended.callback(each.stop)
        default.manage('database', 'upgrade')
        code, told = designate_command(default, 'copy', *also)
        assert code == 0, told
        default.launch('minidns', 'manager', 'api')
        code, told = designate_command(default, 'finish', '--quiet', '0.1', *also)
        assert (code, 'no minidns of the pool silver runs' in told) == (1, True)
        stacks['silver'].launch('minidns', 'manager')
        with contextlib.ExitStack() as served:
            for pool, server in servers.items():
                served.enter_context(monitored([server], names[pool]))
            code, told = designate_command(default, 'finish', '--quiet', '0.1', *also)
            assert (code, 'all 9 zones of its pool' in told.splitlines()[-1]) == (0, True), told
            wait_until(lambda: servers['silver'].texts('txt.second.example.', 'TXT') == ['"changed"'],
                       'the secondary zone is refreshed from its master')
        for pool, server in servers.items():
            assert f'port {stacks[pool].minidns_port}' in server.command(f'showzone {names[pool][0]}').text
