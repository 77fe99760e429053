"""Zones that the pool signs, served by BIND, NSD, Knot and PowerDNS: every version is valid on each of them."""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import dns.message
import dns.query
import dns.rdata
import dns.tsig
import dns.zone
import pytest

from testing.asking import transfer
from testing.processes import binary
from testing.stack import NAME_SERVERS
from tests.fixtures.mixed import MAKES, Mixed, signing

#: Signatures are renewed while the tests run; one key of another algorithm.
HASHED = 'algorithm = ED25519\nkeys = csk\nsignal_project = operator\n'
NAMES = 'www 1 IN A 192.0.2.1\n*.wild 1 IN TXT "any"\nfar.below 1 IN A 192.0.2.2\nchild 1 IN NS ns.child\n' \
        'ns.child 1 IN A 192.0.2.3\n'


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    folder = tmp_path_factory.mktemp('mixed')
    with Mixed(folder, f'sqlite:///{folder}/pool.sqlite', others=[signing(folder, hashed=HASHED)]) as running:
        yield running
        running.stack.must_be_sound()


class SignedZone:
    """A zone that is signed by a policy, and what servers serve of it.

    :param project: whose it is, and empty but for the name servers then; '' for nobody's, with names of many kinds
    :ivar id: of the zone
    """

    def __init__(self, pool: Mixed, name: str, folder: pathlib.Path, project: str = '') -> None:
        self.pool, self.name, self.folder = pool, name, folder
        if project:
            self.id = pool.stack.request('POST', '/v2/zones', 202, json={'name': name, 'email': 'root@example.org'},
                                         headers={'X-Project-Id': project, 'X-Auth-All-Projects': 'true'})['id']
        else:
            self.id = pool.stack.import_zone(
                f'$ORIGIN {name}\n$TTL 1\n@ 1 IN SOA ns1.example.org. hostmaster.example.com. 1 3600 600 86400 3\n'
                f'{NAMES}')
            pool.stack.request('PATCH', f'/v2/zones/{self.id}', 202, json={'ttl': 1})
        pool.stack.wait_for(self.id)

    def ask(self, method: str, path: str = '', status: int = 202, **body: Any) -> Any:
        return self.pool.stack.request(method, f'/v2/zones/{self.id}/dnssec{path}', status,
                                       **({'json': body} if body else {}))

    def wait_for(self, state: str) -> Any:
        """How far its signing has come, once that is *state*."""
        def look() -> Any:
            found = self.ask('GET', status=200)
            return found if found['state'] == state else None

        return self.pool.wait(look, f'{self.name} is {state}', 60)

    def change(self, name: str, rtype: str, *records: str) -> None:
        self.pool.stack.create_recordset(self.id, f'{name}.{self.name}' if name else self.name, rtype, *records)

    def valid(self, *names: str, makes: Sequence[str] = MAKES) -> None:
        """Every server serves the newest serial, the whole of it valid for BIND's tools, as are answers for *names*."""
        self.pool.stack.wait_for(self.id)

        def newest() -> str | None:
            """What all of them serve; None while one has not yet what another has, or there is a newer serial."""
            serial = self.pool.stack.zone(self.id)['serial']
            if any(self.pool.servers[make].serial(self.name) != serial for make in makes):
                return None
            contents = {self.transfer(make) for make in makes}
            return contents.pop() if len(contents) == 1 else None

        self.verify(self.pool.wait(newest, f'{makes} serve the same {self.name}'))
        for make in makes:
            for name in names:
                self.answer(make, name)

    def transfer(self, make: str) -> str:
        """The zone as a server gives it, in the order of DNSSEC."""
        zone = transfer(self.pool.servers[make], self.name, self.pool.keys[make])
        return '\n'.join(sorted(zone.to_text(relativize=False).splitlines()))

    def verify(self, text: str) -> None:
        file = self.folder / 'zone'
        file.write_text(text + '\n')
        done = subprocess.run([binary('dnssec-verify'), '-z', '-o', self.name, str(file)], capture_output=True,
                              text=True, check=False, timeout=20)
        assert done.returncode == 0, f'{done.stderr}\n{text}'

    def answer(self, make: str, name: str, rtype: str = 'A') -> set[str]:
        """An answer of a server, also that there is no such name, is valid by the zone's keys; its data."""
        server, file = self.pool.servers[make], self.folder / 'anchor'
        keys = [key['dnskey'].split(' ', 3) for key in self.ask('GET', status=200)['keys'] if key['role'] != 'ZSK']
        file.write_text('trust-anchors {%s};' % ' '.join(
            f'{self.name} static-key {flags} {protocol} {algorithm} "{key}";'
            for flags, protocol, algorithm, key in keys))
        done = subprocess.run([binary('delv'), f'@{server.host}', '-p', str(server.port), '-a', str(file),
                               f'+root={self.name}', f'{name}.{self.name}'.removeprefix('.'), rtype],
                              capture_output=True, text=True, check=False, timeout=20)
        assert 'fully validated' in done.stdout, f'{make} {name}: {done.stdout}{done.stderr}'
        return {dns.rdata.from_text('IN', rtype, line.split(None, 4)[4]).to_text() for line in done.stdout.splitlines()
                if line.split(None, 4)[3:4] == [rtype]}


@pytest.mark.parametrize('policy', ['default', 'hashed'])
def test_a_zone_is_signed_changed_and_unsigned(pool: Mixed, policy: str, tmp_path: pathlib.Path) -> None:
    zone = SignedZone(pool, f'{policy}.example.com.', tmp_path)
    zone.ask('POST', policy=policy)
    zone.wait_for('ds_wait')
    zone.valid('www', 'none', 'below', 'a.wild')
    zone.change('new', 'A', '192.0.2.9')
    zone.change('other', 'NS', 'ns.other.example.org.')
    zone.change('', 'MX', f'10 new.{zone.name}')
    zone.valid('new', 'none')
    pool.stack.request('PATCH', f'/v2/zones/{zone.id}', 202, json={'ttl': 2, 'email': 'new@example.com'})
    zone.valid('new')
    pool.stack.command('zone', 'revert', zone.name, '--to', '1s', '--yes')
    zone.valid('www')
    zone.ask('POST', '/tasks/confirm_ds', present=True)
    zone.wait_for('secure')
    pool.stack.request('DELETE', f'/v2/zones/{zone.id}', 409)
    zone.ask('DELETE')
    zone.valid('www')
    zone.ask('POST', '/tasks/confirm_ds', present=False)
    pool.wait(lambda: pool.stack.request('GET', f'/v2/zones/{zone.id}/dnssec').get('type') == 'zone_not_signed',
              'the zone is unsigned', 60)
    pool.stack.wait_for(zone.id)
    serial = pool.stack.zone(zone.id)['serial']
    for make in MAKES:
        pool.wait(lambda: pool.servers[make].serial(zone.name) == serial, f'{make} serves {serial}')
        assert 'RRSIG' not in zone.transfer(make) and 'DNSKEY' not in zone.transfer(make)


@pytest.mark.parametrize('role', ['ZSK', 'KSK'])
def test_a_key_is_rolled(pool: Mixed, role: str, tmp_path: pathlib.Path) -> None:
    zone = SignedZone(pool, f'roll-{role.lower()}.example.com.', tmp_path)
    zone.ask('POST')
    zone.wait_for('ds_wait')
    zone.ask('POST', '/tasks/confirm_ds', present=True)
    first = {key['tag'] for key in zone.wait_for('secure')['keys'] if key['role'] == role}
    pool.wait(lambda: all(key['state'] == 'active' for key in zone.ask('GET', status=200)['keys']), 'keys are active')
    zone.ask('POST', '/tasks/roll', role=role)

    def of_role() -> dict[str, int]:
        return {key['state']: key['tag'] for key in zone.ask('GET', status=200)['keys'] if key['role'] == role}

    if role == 'KSK':
        pool.wait(lambda: 'ready' in of_role(), 'the new key is ready', 60)
        zone.valid('www', 'none')
        zone.ask('POST', '/tasks/confirm_ds', present=True)
    pool.wait(lambda: set(of_role()) == {'active'} and not first & set(of_role().values()), 'only the new key is there',
              60)
    zone.valid('www', 'none')


def test_zones_of_the_name_servers_tell_the_keys_of_a_new_zone(pool: Mixed, tmp_path: pathlib.Path) -> None:
    """RFC 9615: valid by the signatures of those zones, at each of their servers."""
    zone = SignedZone(pool, 'told.example.com.', tmp_path)
    signals = [SignedZone(pool, f'_signal.{name}', tmp_path, 'operator') for name in NAME_SERVERS]
    for signal in signals:
        signal.ask('POST')
        pool.stack.wait_for(signal.id)
    zone.ask('POST', policy='hashed')
    zone.wait_for('ds_wait')
    name = f'_dsboot.{zone.name.rstrip(".")}'

    def told() -> list[set[str]]:
        """What the zones have in the database."""
        return [{record for recordset in pool.stack.request('GET', f'/v2/zones/{signal.id}/recordsets', 200)[
            'recordsets'] for record in recordset['records'] if recordset['type'] in ('CDS', 'CDNSKEY')}
            for signal in signals]

    def served() -> None:
        """Every server has of each of the zones what the zone itself asks its parent for, valid by each one's keys."""
        zone.valid()
        own = {rtype: zone.answer('bind9', '', rtype) for rtype in ('CDS', 'CDNSKEY')}
        assert all(own.values())
        for signal in signals:
            signal.valid()
            assert {rtype: signal.answer('bind9', name, rtype) for rtype in own} == own

    pool.wait(lambda: [len(records) for records in told()] == [2, 2], 'each has a CDS and a CDNSKEY')
    served()
    zone.ask('DELETE')
    pool.wait(lambda: told() == 2 * [{'0 0 0 00', '0 3 0 AA=='}], 'they ask for the removal of the DS')
    served()
    zone.ask('POST', '/tasks/confirm_ds', present=False)
    pool.wait(lambda: told() == [set(), set()], 'they have nothing of it any more')
    for signal in signals:
        signal.valid()
        signal.ask('DELETE', '?force=true', 204)
