"""Staged releases on real servers: those that transfer, those that read the catalog zone, and those that are fed."""

from __future__ import annotations

import base64
import pathlib
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from designate_pool.model import Endpoint, TsigKey
from testing.bind import Named
from testing.daemon import Daemon
from testing.knot import Knotd
from testing.pdns import PowerDns
from testing.processes import binary, free_port, wait_until
from tests.fixtures.staged import StagedPool

CATALOG = 'catalog.pool.example.'
#: The servers by their stages, and of each by which driver the pool has it.
STAGES = (('bind', 'knot by catalog'), ('fed', 'bind by catalog'), ('powerdns by catalog', 'fed by octodns'))
ALL = tuple(name for stage in STAGES for name in stage)
#: What the Knot has beside its own: the catalog zone, and what the members of it are like.
KNOT = '''  - id: member
    storage: "{{folder}}/zones"
    master: minidns
    acl: minidns
    zonefile-sync: -1
    zonefile-load: none
    journal-content: all
zone:
  - domain: {catalog}
    master: minidns
    acl: minidns
    catalog-role: interpret
    catalog-template: member
'''


class Makes(StagedPool):
    """A pool with servers of several makes in each stage."""

    def __init__(self, folder: pathlib.Path) -> None:
        minidns = Endpoint('127.0.0.1', free_port())
        keys = {name: TsigKey(f'key{number}.example.com.', 'hmac-sha256', base64.b64encode(name.encode() * 4).decode())
                for number, name in enumerate(ALL)}
        reader = keys['knot by catalog']
        access = (f'remote:\n  - id: minidns\n    address: {minidns.host}@{minidns.port}\n    key: {reader.name}\n'
                  f'acl:\n  - id: minidns\n    key: {reader.name}\n    action: [notify, transfer]\n')
        self._minidns = minidns
        self.servers: dict[str, Daemon] = {
            'bind': Named(folder / 'bind', keys=[keys['bind']]),
            'knot by catalog': Knotd(folder / 'knot', keys=[reader], sections=access,
                                     templates=KNOT.format(catalog=CATALOG)),
            'fed': PowerDns(folder / 'fed', driver='pdns-native'),
            'bind by catalog': Named(folder / 'reader', catalog=(CATALOG, [minidns], keys['bind by catalog'])),
            # It signs no transfer of a member, so that it is known by an address of its own.
            'powerdns by catalog': PowerDns(folder / 'pdns', host='127.0.0.2', settings={
                'query-local-address': '127.0.0.2', 'xfr-cycle-interval': '1', 'zone-cache-refresh-interval': '0'}),
            'fed by octodns': PowerDns(folder / 'octodns', driver='pdns-native')}
        sections, labels = [], {}
        for name, server in self.servers.items():
            key, by_octodns = keys[name], name == 'fed by octodns'
            options: dict[str, object] = {'call_timeout': 4}
            if isinstance(server, Named | Knotd):
                options['tsig_key'] = f'{key.name}:{key.algorithm}:{key.secret}'
            driver = 'catalog' if 'catalog' in name else 'octodns' if by_octodns else server.driver
            if by_octodns:
                assert isinstance(server, PowerDns)
                options |= {'class': 'octodns_powerdns.PowerDnsProvider', 'settings': (
                    f'{{host: {server.host}, port: {server.api_port}, api_key: {server.api_key}}}')}
            if driver == server.driver:
                sections.append(server.section(str(uuid.uuid4()), [minidns] if name == 'bind' else (), **options))
            else:
                options |= {'host': server.host, 'port': server.port}
                sections.append('\n'.join([f'[backend:{driver}:{uuid.uuid4()}]', *(
                    f'{option} = {value}' for option, value in options.items()), '']))
            labels[name] = f'{driver}:{server.host}:{server.port}'
        super().__init__(folder, minidns.port, self.servers, sections, catalog_zone=CATALOG, release_bake='0.5',
                         release=f'canary {", ".join(labels[name] for name in STAGES[0])}; 60 %; all')

    def start(self) -> Makes:
        super().start()
        for command in (('create-secondary-zone', CATALOG, str(self._minidns)), ('set-kind', CATALOG, 'consumer')):
            subprocess.run([binary('pdnsutil'), f'--config-dir={self.servers["powerdns by catalog"].folder}', *command],
                           check=True, capture_output=True, timeout=30)
        return self

    def follow(self, name: str, address: str, comes: bool = True) -> None:
        """Until all servers serve the address, or none: each does so only after all those of the stages before."""
        def look() -> bool:
            serving = set(self.serving(name, address))
            done = serving if comes else set(ALL) - serving
            for stage, later in zip(STAGES, STAGES[1:]):
                assert done.issuperset(stage) or done.isdisjoint(later), f'{name} {address}: {sorted(done)}'
            return len(done) == len(ALL)

        wait_until(look, f'{name} {address} {"comes" if comes else "goes"}: {self.serving(name, address)}', 60)


@pytest.fixture
def pool(tmp_path: pathlib.Path) -> Iterator[Makes]:
    with Makes(tmp_path) as running:
        yield running
        running.stack.must_be_sound()


def test_each_make_gets_what_is_released_in_its_stage_and_nothing_of_what_is_held_before(pool: Makes) -> None:
    name = 'lives.example.com.'
    zone, www = pool.begin(name)
    going, _ = pool.begin('going.example.com.')
    pool.follow(name, '192.0.2.1')
    pool.stack.wait_for(zone)
    pool.stack.set_recordset(zone, www, '192.0.2.2')
    pool.follow(name, '192.0.2.2')
    pool.stack.wait_for(zone)
    pool.stack.delete_zone(zone)
    pool.follow(name, '192.0.2.2', comes=False)
    pool.stack.wait_for(zone, 'gone')
    zone, www = pool.begin(name, '192.0.2.3')  # the next of its name
    pool.follow(name, '192.0.2.3')
    pool.stack.wait_for(zone)
    pool.stack.wait_for(going)
    # A server of the second stage fails.
    pool.servers['bind by catalog'].kill()
    created, _ = pool.begin('new.example.com.')
    pool.stack.set_recordset(zone, www, '192.0.2.66')
    pool.stack.delete_zone(going)
    for each in (zone, created, going):
        wait_until(lambda: 'catalog' in str((pool.stack.zone(each)['release'] or {}).get('held')), 'it is held', 60)
    wait_until(lambda: {*STAGES[0], 'fed'} <= {*pool.serving(name, '192.0.2.3')}, 'they are turned back')
    for last in STAGES[2]:
        assert pool.servers[last].addresses(name) == ['192.0.2.3']
        assert pool.servers[last].addresses('going.example.com.') == ['192.0.2.1']
        assert pool.servers[last].addresses('new.example.com.') is None
    pool.servers['bind by catalog'].start()
    for each in (zone, created, going):
        pool.stack.request('POST', f'/v2/zones/{each}/tasks/abort_release', 202)
    pool.stack.wait_for(created, 'gone')
    for each, its_name, address in ((zone, name, '192.0.2.3'), (going, 'going.example.com.', '192.0.2.1')):
        pool.stack.wait_for(each)
        wait_until(lambda: len(pool.serving(its_name, address)) == len(ALL), f'all serve {its_name}')
    assert not pool.serving('new.example.com.', '192.0.2.1')
