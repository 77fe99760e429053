"""Secondary zones: what a real BIND as master has is served by the pool's own servers."""

from __future__ import annotations

import base64
import pathlib
import uuid
from collections.abc import Iterator
from typing import Any

import dns.message
import dns.query
import dns.rcode
import dns.update
import pytest

from designate_pool.model import TsigKey
from testing.bind import Named
from testing.knot import Knotd
from testing.nsd import Nsd
from testing.processes import Log, wait_until
from testing.stack import MASTERS, Stack

SERVER = str(uuid.uuid4())
KEY = TsigKey('from-master.', 'hmac-sha256', base64.b64encode(b'a key of the master').decode())
#: Refresh and retry are short, so that what happens after a day in production is seen in a test.
SOA = 'ns1.master.example. first\\.last.master.example. {serial} {refresh} 1 {expire} 300'
ZONES = ('one.example.com.', 'keyed.example.com.', 'gone.example.com.', 'limits.example.com.', 'left.example.com.')


def zone_file(serial: int, refresh: int, expire: int) -> str:
    return (f'$TTL 120\n@ 60 IN SOA {SOA.format(serial=serial, refresh=refresh, expire=expire)}\n'
            '@ IN NS ns1.master.example.\n@ IN NS ns2.master.example.\nwww 30 IN A 192.0.2.1\n')


class Master(Named):
    """A BIND with primary zones, which notifies MiniDNS of their changes."""

    def __init__(self, folder: pathlib.Path, minidns_port: int) -> None:
        super().__init__(folder, keys=[KEY], statements='\n'.join(
            f'zone "{name}" {{ type primary; file "{name}master"; notify explicit; notify-delay 0;'
            f' also-notify {{ 127.0.0.1 port {minidns_port}; }}; allow-update {{ any; }};'
            f' {f"allow-transfer {{ key {KEY.name} ; }};" if name.startswith("keyed") else ""} }};'
            for name in ZONES))
        folder.mkdir(parents=True, exist_ok=True)
        for name in ZONES:
            # This one is not refreshed in time, but expires.
            refresh, expire = (1, 3) if name.startswith('gone') else (3600, 86400)
            (folder / f'{name}master').write_text(zone_file(7, refresh, expire))

    def update(self, zone: str, *added: str, gone: str | None = None) -> None:
        update = dns.update.UpdateMessage(zone)
        for each in added:
            name, ttl, rtype, data = each.split(' ', 3)
            update.add(name, int(ttl), rtype, data)
        if gone is not None:
            update.delete(gone)
        assert dns.query.tcp(update, self.host, port=self.port, timeout=5).rcode() == dns.rcode.NOERROR


class KnotMaster(Knotd):
    """A Knot with the zone knot.example.com, which notifies MiniDNS of its changes."""

    zone = 'knot.example.com.'

    def __init__(self, folder: pathlib.Path, minidns_port: int) -> None:
        super().__init__(folder, sections=f"""
remote:
  - id: minidns
    address: 127.0.0.1@{minidns_port}
acl:
  - id: all
    address: 127.0.0.1
    action: transfer
""", templates=f"""
zone:
  - domain: {self.zone}
    zonefile-load: whole
    notify: minidns
    acl: all
""")
        (folder / 'zones').mkdir(parents=True, exist_ok=True)
        (folder / 'zones' / f'{self.zone}zone').write_text(zone_file(7, 3600, 86400))

    def add_host(self) -> None:
        self.knotc('zone-begin', self.zone)
        self.knotc('zone-set', self.zone, 'api', '60', 'A', '192.0.2.7')
        self.knotc('zone-commit', self.zone)


class NsdMaster(Nsd):
    """An NSD with the zone nsd.example.com, which notifies MiniDNS of its changes."""

    zone = 'nsd.example.com.'

    def __init__(self, folder: pathlib.Path, minidns_port: int) -> None:
        self._file = folder / 'master'
        super().__init__(folder, statements=f"""
zone:
    name: {self.zone}
    zonefile: "{self._file}"
    notify: 127.0.0.1@{minidns_port} NOKEY
    provide-xfr: 127.0.0.1 NOKEY
""")
        folder.mkdir(parents=True, exist_ok=True)
        self._file.write_text(zone_file(7, 3600, 86400))

    def add_host(self) -> None:
        self._file.write_text(zone_file(8, 3600, 86400) + 'api 60 IN A 192.0.2.7\n')
        assert self.control('reload', self.zone) == 'ok\n'


@pytest.fixture(scope='module')
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Named]:
    """The pool's."""
    with Named(tmp_path_factory.mktemp('server')) as running:
        yield running


@pytest.fixture(scope='module')
def stack(tmp_path_factory: pytest.TempPathFactory, server: Named) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp('pool')
    with Stack(folder, [server.section(SERVER, call_timeout=2), MASTERS],
               f'sqlite:///{folder}/pool.sqlite') as running:
        yield running
        running.must_be_sound()


@pytest.fixture(scope='module')
def master(tmp_path_factory: pytest.TempPathFactory, stack: Stack) -> Iterator[Master]:
    with Master(tmp_path_factory.mktemp('master'), stack.minidns_port) as running:
        yield running


def create(stack: Stack, master: Named | Knotd | Nsd, name: str) -> Any:
    return stack.create_secondary(name, f'127.0.0.1:{master.port}')


def existing(stack: Stack, name: str) -> Any:
    """The zone, if there is one."""
    return next(iter(stack.request('GET', f'/v2/zones?name={name}', 200)['zones']), None)


def followed(stack: Stack, zone: Any) -> Any:
    """How a zone follows its masters."""
    return stack.request('GET', f'/v2/zones/{zone["id"]}/servers', 200)['secondary']


def test_a_zone_follows_its_master(stack: Stack, server: Named, master: Master) -> None:
    """Created, changed at the master, notified, and served by the pool with the SOA of the master."""
    name = 'one.example.com.'
    zone = create(stack, master, name)
    assert (zone['type'], zone['status'], zone['transferred_at']) == ('SECONDARY', 'PENDING', None)
    shown = stack.wait_for(zone['id'])
    assert (shown['serial'], shown['ttl'], shown['email']) == (7, 60, 'first.last@master.example')
    assert server.texts(name, 'SOA') == [SOA.format(serial=7, refresh=3600, expire=86400)]
    assert server.texts(name, 'NS') == ['ns1.master.example.', 'ns2.master.example.']
    master.update(name, f'api.{name} 300 TXT "a text"', gone=f'www.{name}')
    wait_until(lambda: server.texts(f'api.{name}', 'TXT') == ['"a text"'], 'the change is served')
    assert server.texts(f'www.{name}', 'A') == []
    assert stack.wait_for(zone['id'])['serial'] == server.serial(name) == 8
    found = followed(stack, zone)
    assert (found['served'], found['failures'], found['last_error']) == (True, 0, None)
    assert found['checked_with'] == found['masters'][0] == f'127.0.0.1:{master.port}'
    explained = stack.command('zone', 'explain', name)
    assert f'Refreshed last from 127.0.0.1:{master.port}' in explained and 'Next refresh: in' in explained
    assert not Log(stack.processes['all'].log).lines(f'{name} is transferred whole')  # IXFR was enough


@pytest.mark.parametrize('make', [KnotMaster, NsdMaster])
def test_a_zone_of_a_master_of_another_make(stack: Stack, server: Named, tmp_path: pathlib.Path,
                                            make: type[KnotMaster | NsdMaster]) -> None:
    with make(tmp_path / 'master', stack.minidns_port) as master:
        zone = create(stack, master, master.zone)
        stack.wait_for(zone['id'])
        master.add_host()
        wait_until(lambda: server.texts(f'api.{master.zone}', 'A') == ['192.0.2.7'], 'the change is served')
        assert server.serial(master.zone) == stack.wait_for(zone['id'])['serial']


def test_an_abandoned_zone_follows_its_master_no_more(stack: Stack, server: Named, master: Master) -> None:
    """It stays on the server as it was; created again, it follows its master again."""
    name = 'left.example.com.'
    zone = create(stack, master, name)
    stack.wait_for(zone['id'])
    stack.request('POST', f'/v2/zones/{zone["id"]}/tasks/abandon', 204)
    stack.request('GET', f'/v2/zones/{zone["id"]}', 404)
    master.update(name, f'api.{name} 300 TXT "a text"')
    assert stack.request('GET', f'/v2/zones?name={name}')['zones'] == []
    assert server.serial(name) == 7 and server.texts(f'www.{name}', 'A') == ['192.0.2.1']

    again = create(stack, master, name)
    assert again['id'] != zone['id']
    assert stack.wait_for(again['id'])['serial'] == 8
    wait_until(lambda: server.texts(f'api.{name}', 'TXT') == ['"a text"'], 'the change is served')
    assert server.serial(name) == 8


def test_a_transfer_that_needs_a_key(stack: Stack, server: Named, master: Master) -> None:
    """The key of the zone signs its transfers; before there is one, the zone is in ERROR and says why."""
    name = 'keyed.example.com.'
    zone = create(stack, master, name)
    stack.wait_for(zone['id'], 'ERROR')
    assert 'refuses the transfer (REFUSED)' in followed(stack, zone)['last_error']
    explained = stack.command('zone', 'explain', name)
    assert 'is ERROR and not served: it has not been transferred' in explained
    assert server.query(name, 'SOA').rcode() == dns.rcode.REFUSED
    stack.request('POST', '/v2/tsigkeys', 201, json={
        'name': KEY.name, 'algorithm': KEY.algorithm, 'secret': KEY.secret, 'scope': 'ZONE',
        'resource_id': zone['id']})

    def refresh() -> bool:
        # MiniDNS knows a new key after some seconds.
        stack.command('zone', 'refresh', name)
        return stack.zone(zone['id'])['status'] == 'ACTIVE'

    wait_until(refresh, 'it is transferred with the key')
    assert server.serial(name) == 7


def test_a_master_that_is_down(stack: Stack, server: Named, master: Master) -> None:
    """It is asked again until the zone expires, and then until it answers."""
    name = 'gone.example.com.'
    zone = create(stack, master, name)
    stack.wait_for(zone['id'])
    stack.command('zone', 'refresh', name, '--wait')
    master.stop()
    stack.command('zone', 'refresh', name, '--wait', code=3)
    stack.wait_for(zone['id'], 'ERROR')
    found = followed(stack, zone)
    assert not found['served'] and 'no DNS server answers there' in found['last_error'] and found['failures'] > 1
    assert 'it has expired: no master could be reached' in stack.command('zone', 'explain', name)
    asked = dns.message.make_query(name, 'SOA')
    assert dns.query.udp(asked, '127.0.0.1', 5, port=stack.minidns_port).rcode() == dns.rcode.REFUSED
    master.start()
    stack.wait_for(zone['id'])
    assert followed(stack, zone)['served']


def test_a_master_that_is_the_pool_itself(stack: Stack, server: Named, master: Master) -> None:
    """Neither MiniDNS nor a server of the pool: the zone would be its own master."""
    name = 'limits.example.com.'
    zone = existing(stack, name) or create(stack, master, name)
    for port, why in ((stack.minidns_port, 'MiniDNS itself'), (server.port, 'a server of the pool')):
        shown = stack.request('PATCH', f'/v2/zones/{zone["id"]}', 202, json={'masters': [f'127.0.0.1:{port}']})
        assert shown['masters'] == [f'127.0.0.1:{port}']
        wait_until(lambda: why in (followed(stack, zone)['last_error'] or ''), why)
    stack.command('zone', 'set', name, '--master', f'127.0.0.1:{stack.minidns_port}', '--wait', code=3)
    for _ in range(2):  # the second one changes nothing, and there is nothing to wait for
        stack.command('zone', 'set', name, '--master', f'127.0.0.1:{master.port}', '--wait')
        assert followed(stack, zone)['last_error'] is None, 'it follows its master again'


def test_a_zone_is_deleted_and_created_as_another_kind(stack: Stack, server: Named, master: Master) -> None:
    name = 'limits.example.com.'
    existing(stack, name) or create(stack, master, name)
    stack.command('zone', 'delete', name, '--wait')
    stack.command('zone', 'create', name, '--email', 'hostmaster@example.com', '--wait')
    assert server.texts(f'www.{name}', 'A') == []
    stack.command('zone', 'delete', name, '--wait')
    stack.command('zone', 'create', name, '--type', 'SECONDARY', '--master', f'127.0.0.1:{master.port}', '--wait')
    assert server.texts(f'www.{name}', 'A') == ['192.0.2.1']
