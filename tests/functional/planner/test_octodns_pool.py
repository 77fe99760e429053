"""The pool as a provider of octoDNS: octoDNS's own commands, the real programs and a BIND."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator

import dns.rcode
import pytest
from octodns.provider.plan import Plan
from octodns.record import Create, Record
from octodns.zone import Zone

from designate_pool import errors
from designate_pool.octodns_provider import DesignatePoolProvider
from testing.bind import Named
from testing.processes import free_port, wait_until
from testing.stack import Stack
from tests.fixtures.proxy import Proxy

RECORDS = r'''
? ''
: - type: CAA
    value: {flags: 0, tag: issue, value: ca.example.net}
  - type: MX
    value: {exchange: mail.example.net., preference: 10}
  - type: TXT
    values: [v=spf1 -all, v=DKIM1\; k=rsa\; p=MIGf]
'*.wild':
  type: CNAME
  value: www.{zone}
_443._tcp.www:
  type: TLSA
  value: {certificate_usage: 3, selector: 1, matching_type: 0, certificate_association_data: 0123456789abcdef}
_sip._tcp:
  type: SRV
  value: {priority: 0, weight: 5, port: 5060, target: sip.example.net.}
alias:
  type: CNAME
  value: www.{zone}
host:
  - type: LOC
    value: {altitude: -2, lat_degrees: 52, lat_direction: N, lat_minutes: 22, lat_seconds: 23, long_degrees: 4,
            long_direction: E, long_minutes: 53, long_seconds: 32, precision_horz: 10000, precision_vert: 10, size: 1}
  - type: NAPTR
    value: {flags: U, order: 100, preference: 10, regexp: '!^.*$!sip:info@example.com!', replacement: .,
            service: E2U+sip}
  - type: SSHFP
    value: {algorithm: 4, fingerprint: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef,
            fingerprint_type: 2}
old:
  type: A
  value: 192.0.2.9
svc:
  type: HTTPS
  value: {svcparams: {alpn: [h2, h3], ipv4hint: [192.0.2.1]}, svcpriority: 1, targetname: .}
www:
  - ttl: 60
    type: A
    values: [192.0.2.1, 192.0.2.2]
  - type: AAAA
    value: 2001:db8::1
'''


class World:
    """A pool of one BIND, and octoDNS with a folder of YAML.

    :ivar yaml: where octoDNS's zones are
    :ivar proxy: through which octoDNS speaks to the API
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.yaml = folder / 'yaml'
        self.yaml.mkdir(parents=True)
        self.named = Named(folder / 'named')
        self.stack = Stack(folder / 'stack', [self.named.section(str(uuid.uuid4()), call_timeout=2)],
                           f'sqlite:///{folder}/database.sqlite')
        self.proxy = Proxy(self.stack.api_port)
        self.config = folder / 'octodns.yaml'

    def write(self, name: str, text: str = RECORDS) -> None:
        (self.yaml / f'{name}yaml').write_text(text.replace('{zone}', name))

    def configure(self, *zones: str, url: str = '', more: str = '') -> None:
        listed = ''.join(f'  {name}:\n    sources: [config]\n    targets: [pool]\n' for name in zones)
        self.config.write_text(textwrap.dedent(f'''
            providers:
              config:
                class: octodns.provider.yaml.YamlProvider
                directory: {self.yaml}
                enforce_order: false
                escaped_semicolons: true
              pool:
                class: designate_pool.octodns_provider.DesignatePoolProvider
                url: {url or f'http://127.0.0.1:{self.proxy.port}'}
                email: dns@example.com
                {more}
              dumped:
                class: octodns.provider.yaml.YamlProvider
                directory: {self.folder / 'dumped'}
                escaped_semicolons: true
            zones:
            ''') + listed)

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One of octoDNS's commands."""
        program = pathlib.Path(sys.executable).parent / command
        return subprocess.run([str(program), '--config-file', str(self.config), *arguments], text=True, timeout=120,
                              capture_output=True, check=False, env={**os.environ, 'PYTHONWARNINGS': 'ignore'})

    def sync(self, *arguments: str) -> str:
        """What ``octodns-sync`` logs; it has to end well."""
        done = self.run('octodns-sync', *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def writes(self) -> int:
        """How many requests that write something came through the proxy."""
        return self.proxy.asked.count(b'POST /v2/')

    def served(self, name: str, rtype: str) -> list[str] | None:
        answer = self.named.query(name, rtype)
        if answer.rcode() not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
            return None
        return sorted(rdata.to_text() for rrset in answer.answer for rdata in rrset)

    def zone(self, name: str) -> dict[str, object]:
        """The zone as the API has it, once it is served."""
        found = self.stack.request('GET', f'/v2/zones?name={name}', 200)['zones']
        assert len(found) == 1
        active: dict[str, object] = self.stack.wait_for(found[0]['id'])
        return active

    def names(self) -> list[str]:
        return [zone['name'] for zone in self.stack.request('GET', '/v2/zones', 200)['zones']]


@pytest.fixture(scope='module')
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp('octodns-pool'))
    made.named.start()
    try:
        with made.stack:
            yield made
    finally:
        made.named.stop()
        made.proxy.stop()


def totals(log: str) -> str:
    """How many changes ``octodns-sync`` says that it made."""
    return str(re.findall(r'(\d+) total changes', log)[-1])


def test_a_zone_is_planned_made_served_and_the_second_round_is_empty(world: World) -> None:
    name = 'first.example.com.'
    world.write(name)
    world.configure(name)
    writes = world.writes()
    assert 'Creates=14, Updates=0, Deletes=0' in world.sync()
    assert name not in world.names()
    assert world.writes() == writes
    assert totals(world.sync('--doit')) == '14'
    assert world.writes() == writes + 1
    zone = world.zone(name)
    assert zone['email'] == 'dns@example.com'
    assert world.served(f'www.{name}', 'A') == ['192.0.2.1', '192.0.2.2']
    assert world.served(name, 'TXT') == ['"v=DKIM1; k=rsa; p=MIGf"', '"v=spf1 -all"']
    assert world.served(f'alias.{name}', 'CNAME') == [f'www.{name}']
    assert world.served(name, 'NS') == ['ns1.example.org.', 'ns2.example.org.']
    again = world.sync('--doit')
    assert totals(again) == '0' and 'No changes were planned' in again
    assert world.zone(name)['serial'] == zone['serial']


def test_many_changes_of_a_zone_are_one_request_at_one_serial(world: World) -> None:
    name = 'many.example.com.'
    world.write(name)
    world.configure(name)
    world.sync('--doit')
    world.zone(name)
    writes = world.writes()
    changed = RECORDS.replace('alias:\n  type: CNAME\n  value: www.{zone}', 'alias:\n  type: A\n  value: 192.0.2.5')
    changed = changed.replace('old:\n  type: A\n  value: 192.0.2.9', 'old:\n  type: CNAME\n  value: www.{zone}')
    changed = changed.replace('_sip._tcp', '_sips._tcp').replace('ttl: 60', 'ttl: 90')
    world.write(name, changed)
    assert totals(world.sync('--doit')) == '7'
    assert world.writes() == writes + 1
    world.zone(name)
    assert world.served(f'alias.{name}', 'A') == ['192.0.2.5']
    assert world.served(f'old.{name}', 'CNAME') == [f'www.{name}']
    assert world.served(f'_sip._tcp.{name}', 'SRV') == []
    assert totals(world.sync('--doit')) == '0'
    world.write(name)
    assert totals(world.sync('--doit')) == '7'
    world.zone(name)
    assert world.served(f'alias.{name}', 'CNAME') == [f'www.{name}']


def test_what_deletes_too_much_is_refused_by_octodns_and_done_with_force(world: World) -> None:
    name = 'unsafe.example.com.'
    world.write(name)
    world.configure(name)
    world.sync('--doit')
    before = world.zone(name)
    world.write(name, 'www:\n  type: A\n  ttl: 60\n  values: [192.0.2.1, 192.0.2.2]\n')
    refused = world.run('octodns-sync', '--doit')
    assert refused.returncode != 0 and 'Too many deletes' in refused.stderr
    assert world.zone(name)['serial'] == before['serial']
    assert totals(world.sync('--doit', '--force')) == '13'
    world.zone(name)
    assert world.served(f'_sip._tcp.{name}', 'SRV') == []
    assert world.served(f'www.{name}', 'A') == ['192.0.2.1', '192.0.2.2']
    assert totals(world.sync('--doit', '--force')) == '0'


def test_the_pool_can_be_dumped_and_what_was_dumped_is_what_is_there(world: World) -> None:
    name = 'dump.example.com.'
    world.write(name)
    world.configure(name)
    world.sync('--doit')
    world.zone(name)
    dumped = world.run('octodns-dump', '--output-dir', str(world.folder / 'again'), name, 'pool')
    assert dumped.returncode == 0, dumped.stderr
    (world.folder / 'again' / f'{name}yaml').rename(world.yaml / f'{name}yaml')
    assert totals(world.sync('--doit')) == '0'


def test_the_zones_of_the_pool_are_listed_for_octodns(world: World) -> None:
    for name in ('listed.example.com.', 'listed.example.net.'):
        world.stack.wait_for(world.stack.create_zone(name)['id'])
    provider = DesignatePoolProvider('pool', url=world.stack.url)
    assert {'listed.example.com.', 'listed.example.net.'} <= set(provider.list_zones())


def test_a_zone_that_was_deleted_is_made_again(world: World) -> None:
    name = 'again.example.com.'
    world.write(name)
    world.configure(name)
    world.sync('--doit')
    zone = world.zone(name)
    world.stack.delete_zone(str(zone['id']))
    world.stack.wait_for(str(zone['id']), 'gone')
    assert totals(world.sync('--doit')) == '14'
    assert world.zone(name)['id'] != zone['id']
    wait_until(lambda: world.served(f'www.{name}', 'A') == ['192.0.2.1', '192.0.2.2'], 'it is served again')


def test_root_ns_records_are_the_pools_own(world: World) -> None:
    name = 'root.example.com.'
    world.write(name, '? \'\'\n: type: NS\n  value: ns.example.net.\nwww:\n  type: A\n  value: 192.0.2.1\n')
    world.configure(name)
    refused = world.run('octodns-sync', '--doit')
    assert refused.returncode != 0 and 'root NS record not supported' in refused.stderr
    world.configure(name, more='strict_supports: false')
    assert totals(world.sync('--doit')) == '1'
    world.zone(name)
    assert world.served(name, 'NS') == ['ns1.example.org.', 'ns2.example.org.']
    assert totals(world.sync('--doit')) == '0'


def test_a_record_that_octodns_cannot_have_is_left_alone(world: World) -> None:
    name = 'odd.example.com.'
    world.write(name)
    world.configure(name)
    world.sync('--doit')
    zone = world.zone(name)
    world.stack.create_recordset(str(zone['id']), f'h.{name}', 'HINFO', '"PC" "Linux"')
    world.stack.create_recordset(str(zone['id']), f't.{name}', 'TXT', '"\\"all of it quoted\\""')
    world.zone(name)
    log = world.sync('--doit')
    assert totals(log) == '0' and f't.{name} TXT: ' in log
    assert world.served(f'h.{name}', 'HINFO') == ['"PC" "Linux"']


def test_data_that_dns_cannot_have_is_told_by_a_dry_run(world: World) -> None:
    name = 'wrong.example.com.'
    world.write(name, 'host:\n  type: TLSA\n  value: {certificate_usage: 3, selector: 1, matching_type: 1, '
                      'certificate_association_data: 0123456789abcdef}\n')
    world.configure(name)
    refused = world.run('octodns-sync')
    assert refused.returncode != 0 and f"host.{name} TLSA: '3 1 1 0123456789abcdef' is not" in refused.stderr
    world.configure(name, more='strict_supports: false')
    assert totals(world.sync('--doit')) == '0'


def test_a_pool_that_is_away_is_an_error_in_words_and_never_an_empty_zone(world: World) -> None:
    world.write('away.example.com.')
    world.configure('away.example.com.', url=f'http://127.0.0.1:{free_port()}')
    for arguments in ((), ('--doit', '--force')):
        failed = world.run('octodns-sync', *arguments)
        assert failed.returncode != 0
        assert 'connection refused' in failed.stderr.splitlines()[-1]


def test_a_zone_that_somebody_else_changes_meanwhile_is_not_changed(world: World) -> None:
    name = 'race.example.com.'
    zone_id = world.stack.create_zone(name)['id']
    world.stack.wait_for(zone_id)
    provider = DesignatePoolProvider('pool', url=world.stack.url)
    desired = Zone(name, [])
    desired.add_record(Record.new(desired, 'www', {'type': 'A', 'ttl': 60, 'value': '192.0.2.1'}))
    plan = provider.plan(desired)
    assert plan is not None and plan.exists
    world.stack.create_recordset(zone_id, f'other.{name}', 'A', '192.0.2.2')
    with pytest.raises(errors.PoolError) as caught:
        provider.apply(plan)
    assert 'serial' in str(caught.value)
    again = provider.plan(desired)
    assert again is not None and again.change_counts == {'Create': 1, 'Delete': 1, 'Update': 0}
    provider.apply(again)
    assert provider.plan(desired) is None


def test_what_the_pool_refuses_is_told_and_nothing_is_made(world: World) -> None:
    name = 'refused.example.com.'
    provider = DesignatePoolProvider('pool', url=world.stack.url)
    desired = Zone(name, [])
    for label, rtype, value in (('www', 'A', '192.0.2.1'), ('www', 'CNAME', 'a.example.net.')):
        desired.add_record(Record.new(desired, label, {'type': rtype, 'ttl': 60, 'value': value}))
    plan = Plan(Zone(name, []), desired, [Create(record) for record in desired.records], False)
    with pytest.raises(errors.PoolError, match='CNAME'):
        provider.apply(plan)
    assert name not in world.names()


def test_the_example_runs(world: World, tmp_path: pathlib.Path) -> None:
    name = 'shown.example.com.'
    (tmp_path / 'zones').mkdir()
    (tmp_path / 'zones' / f'{name}yaml').write_text('www:\n  type: TXT\n  value: a; b\n')
    example = (pathlib.Path(__file__).resolve().parents[3] / 'etc' / 'example-octodns.yaml').read_text()
    world.config.write_text(example.replace('./zones', str(tmp_path / 'zones'))
                            .replace('http://127.0.0.1:9001', world.stack.url))
    assert totals(world.sync('--doit')) == '1'
    world.zone(name)
    assert world.served(f'www.{name}', 'TXT') == ['"a; b"']
    assert totals(world.sync('--doit')) == '0'
