"""A zone that the pool signs, below a real BIND: the parent is asked, and the signatures of all makes are watched."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import socket
import sqlite3
from collections.abc import Iterator, Sequence

import dns.message
import pytest

from testing.bind import Named
from testing.processes import wait_until
from tests.fixtures.answering import Scripted
from tests.fixtures.mixed import Mixed, signing
from tests.functional.pool_manager.test_parent_servers import dsync
from tests.functional.pools.test_signed_zones import SignedZone

NAME = 'below.example.com.'


class Parent(Named):
    """With example.com, whose DSYNC record names another server.

    :ivar notified: that server
    """

    def __init__(self, folder: pathlib.Path) -> None:
        super().__init__(folder, statements='zone "example.com" { type primary; file "parent.zone"; };')
        folder.mkdir(parents=True, exist_ok=True)
        self.notified = Scripted(lambda query, over_tcp: [dns.message.make_response(query)])
        self._serial = 0
        self.write([])

    def write(self, ds: Sequence[str]) -> None:
        self._serial += 1
        (self.folder / 'parent.zone').write_text(
            f'@ 1 IN SOA ns1 host {self._serial} 3600 600 86400 1\n@ 1 IN NS ns1\nns1 1 IN A 127.0.0.1\n'
            f'below 1 IN NS ns1.example.net.\n_dsync {dsync(self.notified.port, "ns1.example.com.")}'
            + ''.join(f'below 1 IN DS {each}\n' for each in ds))

    def delegate(self, *ds: str) -> None:
        self.write(ds)
        assert self.command('reload example.com').result == 0


@pytest.fixture
def parent(tmp_path: pathlib.Path) -> Iterator[Parent]:
    with Parent(tmp_path / 'parent') as running:
        yield running
        running.notified.close()


def test_keys_wait_for_what_the_servers_of_the_parent_have(parent: Parent, tmp_path: pathlib.Path) -> None:
    with Mixed(tmp_path / 'mixed', f'sqlite:///{tmp_path}/pool.sqlite', others=[signing(tmp_path)], manager={
            'signature_audit_interval': '1', 'parent_servers': f'127.0.0.1:{parent.port}',
            'parent_resolvers': f'127.0.0.1:{parent.port}'}) as pool:
        zone = SignedZone(pool, NAME, tmp_path)
        assert not parent.notified.notifies()
        zone.ask('POST')
        found = zone.wait_for('ds_wait')
        wait_until(parent.notified.notifies, 'the parent is notified')
        assert {str(notify.question[0]) for notify in parent.notified.notifies()} == {f'{NAME} IN CDS'}
        pool.stack.wait_for_round('SIGNATURES', zones=1, asked=4, unanswered=0, findings=0)
        parent.delegate(*found['ds'])
        zone.wait_for('secure')
        wait_until(lambda: {key['state'] for key in zone.ask('GET', status=200)['keys']} == {'active'},
                   'no version is due', 60)
        pool.stack.wait_for_round('SIGNATURES', zones=1, asked=4, unanswered=0, findings=0)
        before = len(parent.notified.notifies())
        pool.stack.wait_for_round('SIGNATURES', zones=1, asked=4, unanswered=0, findings=0)
        assert len(parent.notified.notifies()) == before  # it has nothing to change any more
        falsify(tmp_path / 'pool.sqlite', '192.0.2.1', '192.0.2.66')
        findings = wait_until(lambda: (found := pool.stack.request(
            'GET', f'/v2/zones/{zone.id}/explain', 200)['findings']) and len(found) == 4 and found,
            'the audit finds it of each server', 60)
        assert {found['found'].startswith(f'the zone is not valid: A of www.{NAME}') for found in findings} == {True}
        falsify(tmp_path / 'pool.sqlite', '192.0.2.66', '192.0.2.1')
        pool.stack.wait_for_round('SIGNATURES', zones=1, asked=4, unanswered=0, findings=0)
        lose_the_database(pool, zone, parent, tmp_path)
        zone.ask('DELETE')
        zone.wait_for('ds_leaving')
        parent.delegate()
        wait_until(lambda: pool.stack.request('GET', f'/v2/zones/{zone.id}/dnssec').get('type') == 'zone_not_signed',
                   'it is unsigned', 60)
        pool.stack.must_be_sound()


def falsify(database: pathlib.Path, former: str, address: str) -> None:
    """Give an address in the database another value, which no server has."""
    with contextlib.closing(sqlite3.connect(database, timeout=10)) as connection, connection:
        assert connection.execute('UPDATE records SET wire = ? WHERE wire = ?', (
            socket.inet_aton(address), socket.inet_aton(former))).rowcount


def lose_the_database(pool: Mixed, zone: SignedZone, parent: Parent, folder: pathlib.Path) -> None:
    """It is restored from before a KSK was made that the servers have: the zone stays as they have it until the
    database has the keys that these, and the parent, rely on."""
    stack, live, backup, files = pool.stack, folder / 'pool.sqlite', folder / 'backup.sqlite', folder / 'keys'

    def keys() -> dict[int, str]:
        return {key['tag']: key['role'] for key in zone.ask('GET', status=200)['keys']}

    offered, known = zone.ask('GET', status=200)['ds'], keys()
    with contextlib.closing(sqlite3.connect(live)) as source, contextlib.closing(sqlite3.connect(backup)) as copy:
        source.backup(copy)
    zone.ask('POST', '/tasks/roll', role='KSK')
    pool.wait(lambda: len(keys()) > len(known) and 'made' not in {
        key['state'] for key in zone.ask('GET', status=200)['keys']}, 'another KSK is published')
    zone.valid('www')
    files.mkdir()
    made, = (path for path in stack.manage('dnssec', 'export', NAME, str(files)).split()
             if int(path.split('+')[-1].removesuffix('.private')) not in known)
    stack.stop()
    for suffix in ('-wal', '-shm'):
        live.with_name(live.name + suffix).unlink(missing_ok=True)
    shutil.copy(backup, live)
    stack.manage('pool', 'renew', 'default')
    stack.launch(*stack.programs)
    assert zone.ask('GET', status=200)['state'] == 'held'
    assert stack.request('PATCH', f'/v2/zones/{zone.id}', 409, json={'ttl': 3})['type'] == 'signing_held'
    assert 'which the database lacks' in stack.manage('dnssec', 'resume', NAME, code=1)
    stack.manage('dnssec', 'import', NAME, made)
    parent.delegate('4711 13 2 ' + 'ab' * 32)
    assert 'not every server of the parent has the DS' in stack.manage('dnssec', 'resume', NAME, code=1)
    parent.delegate(*offered)
    assert stack.manage('dnssec', 'resume', NAME) == f'{NAME} secure\n'
    zone.valid('www', 'none')
    zone.change('resumed', 'A', '192.0.2.9')
    zone.valid('resumed')
