"""A zone that the pool signs, below a real BIND: the parent is asked, and the signatures of all makes are watched."""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3
from collections.abc import Iterator, Sequence

import pytest

from testing.bind import Named
from testing.processes import wait_until
from tests.fixtures.mixed import Mixed, signing
from tests.functional.pools.test_signed_zones import SignedZone

NAME = 'below.example.com.'


class Parent(Named):
    """With example.com."""

    def __init__(self, folder: pathlib.Path) -> None:
        super().__init__(folder, statements='zone "example.com" { type primary; file "parent.zone"; };')
        folder.mkdir(parents=True, exist_ok=True)
        self._serial = 0
        self.write([])

    def write(self, ds: Sequence[str]) -> None:
        self._serial += 1
        (self.folder / 'parent.zone').write_text(
            f'@ 1 IN SOA ns1 host {self._serial} 3600 600 86400 1\n@ 1 IN NS ns1\nns1 1 IN A 127.0.0.1\n'
            'below 1 IN NS ns1.example.net.\n' + ''.join(f'below 1 IN DS {each}\n' for each in ds))

    def delegate(self, *ds: str) -> None:
        self.write(ds)
        assert self.command('reload example.com').result == 0


@pytest.fixture
def parent(tmp_path: pathlib.Path) -> Iterator[Parent]:
    with Parent(tmp_path / 'parent') as running:
        yield running


def test_keys_wait_for_what_the_servers_of_the_parent_have(parent: Parent, tmp_path: pathlib.Path) -> None:
    with Mixed(tmp_path / 'mixed', f'sqlite:///{tmp_path}/pool.sqlite', others=[signing(tmp_path)], manager={
            'signature_audit_interval': '1', 'parent_servers': f'127.0.0.1:{parent.port}'}) as pool:
        zone = SignedZone(pool, NAME, tmp_path)
        zone.ask('POST')
        found = zone.wait_for('ds_wait')
        pool.stack.wait_for_round('SIGNATURES', domains=1, asked=4, unanswered=0, findings=0)
        parent.delegate(*found['ds'])
        zone.wait_for('secure')
        pool.stack.wait_for_round('SIGNATURES', domains=1, asked=4, unanswered=0, findings=0)
        with contextlib.closing(sqlite3.connect(pool.servers['pdns'].database, timeout=10)) as database, database:
            assert database.execute('UPDATE records SET content = ? WHERE name = ? AND type = ?', (
                '192.0.2.66', f'www.{NAME}'.rstrip('.'), 'A')).rowcount == 1
        pool.stack.wait_for_round('SIGNATURES', domains=1, asked=4, unanswered=0, findings=1)
        finding, = pool.stack.request('GET', f'/v2/zones/{zone.id}/explain', 200)['findings']
        assert finding['server_name'].startswith('pdns')
        assert finding['found'].startswith(f'the zone that it serves is not valid: A of www.{NAME}')
        for server in pool.stack.servers_state().values():
            pool.stack.command('server', 'resync', server['name'], '--contents', '--fix')
        pool.stack.wait_for_round('SIGNATURES', domains=1, asked=4, unanswered=0, findings=0)
        zone.ask('DELETE')
        zone.wait_for('ds_leaving')
        parent.delegate()
        wait_until(lambda: pool.stack.request('GET', f'/v2/zones/{zone.id}/dnssec').get('type') == 'zone_not_signed',
                   'it is unsigned', 60)
        pool.stack.must_be_sound()
