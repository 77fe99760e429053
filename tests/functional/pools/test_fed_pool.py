"""One pool, one threshold: a BIND that transfers beside a PowerDNS fed through its API and a BIND fed by updates.

Everything is real: the programs, the servers, the commands.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import uuid
from collections.abc import Callable, Iterator

import dns.query
import dns.rcode
import dns.tsigkeyring
import dns.update
import pytest

from designate_pool.deadline import Deadline
from designate_pool.powerdns import PdnsServer
from testing.bind import Named
from testing.daemon import Daemon
from testing.pdns import PowerDns
from testing.processes import wait_until
from testing.stack import QUICK, Stack
from tests.fixtures.updates import KEY, NEW, named_with

NAME = 'example.com.'
MANY = tuple(f'z{number}.example.net.' for number in range(5))


@dataclasses.dataclass
class Fed:
    """The pool; *servers* by the driver that each has."""

    stack: Stack
    servers: dict[str, Daemon]
    ids: dict[str, str]
    sections: dict[str, str]

    def hosts(self, *numbers: int, gone: bool = False) -> list[dict[str, object]]:
        return [{'name': f'h{number}.{NAME}', 'type': 'A', 'records': [] if gone else [f'192.0.2.{number}']}
                for number in numbers]

    def change(self, zone: str, changes: list[dict[str, object]]) -> int:
        return int(self.stack.request('POST', f'/v2/zones/{zone}/changes', 202, json={'changes': changes})['serial'])

    def answers(self, driver: str, name: str) -> list[str]:
        server = self.servers[driver]
        assert isinstance(server, (Named, PowerDns))
        reply = server.query(name, 'A')
        return sorted(str(each) for rrset in reply.answer for each in rrset)

    def serials(self, name: str = NAME) -> dict[str, int | None]:
        return {driver: server.serial(name) for driver, server in self.servers.items()
                if isinstance(server, (Named, PowerDns))}

    def row(self, zone: str, driver: str) -> dict[str, object]:
        found: dict[str, object] = self.stack.servers(zone)[self.ids[driver]]
        return found


@pytest.fixture
def fed(tmp_path: pathlib.Path, named: Callable[..., Named], powerdns: Callable[..., PowerDns]) -> Iterator[Fed]:
    servers: dict[str, Daemon] = {
        'bind9': named(), 'pdns-native': powerdns(driver='pdns-native'),
        'rfc2136': named_with(named, tmp_path, {name: NEW.format(serial=5) for name in (NAME, *MANY)}, name='ns2')}
    ids = {driver: str(uuid.uuid4()) for driver in servers}
    native, updated = servers['pdns-native'], servers['rfc2136']
    assert isinstance(native, PowerDns) and isinstance(updated, Named)
    assert isinstance(servers['bind9'], Named)
    sections = {
        'bind9': servers['bind9'].section(ids['bind9'], call_timeout=2),
        'pdns-native': native.section(ids['pdns-native'], call_timeout=2),
        'rfc2136': f'[backend:rfc2136:{ids["rfc2136"]}]\nhost = {updated.host}\nport = {updated.port}\n'
                   f'call_timeout = 2\ntsig_key = {KEY.name}:{KEY.algorithm}:{KEY.secret}\n'}
    stack = Stack(tmp_path / 'stack', list(sections.values()), f'sqlite:///{tmp_path}/pool.sqlite',
                  manager={**QUICK, 'periodic_sync_interval': '3'})
    with stack:
        yield Fed(stack, servers, ids, sections)


def test_a_zone_s_life_on_servers_of_three_kinds(fed: Fed) -> None:
    zone = fed.stack.create_zone(NAME)['id']
    created = fed.stack.wait_for(zone)
    assert set(fed.serials().values()) == {created['serial']}

    serial = fed.change(zone, fed.hosts(*range(1, 21)))
    assert fed.stack.wait_for(zone)['serial'] == serial
    assert fed.serials() == dict.fromkeys(fed.servers, serial)
    for driver in fed.servers:
        assert fed.answers(driver, f'h7.{NAME}') == ['192.0.2.7']

    # Too many at once: those that are fed wait for an operator, and say so.
    serial = fed.change(zone, fed.hosts(*range(1, 11), gone=True))
    fed.stack.wait_for(zone, 'ERROR')
    wait_until(lambda: fed.serials()['bind9'] == serial, 'the one that transfers goes on')
    plans = wait_until(lambda: [*found] if len(found := fed.stack.request('GET', '/v2/plans', 200)['plans']) == 2
                       else None, 'both are parked')
    assert {plan['state'] for plan in plans} == {'PARKED'}
    wait_until(lambda: all(fed.row(zone, driver)['last_error'] for driver in ('pdns-native', 'rfc2136')), 'both say so')
    for driver in ('pdns-native', 'rfc2136'):
        row = fed.row(zone, driver)
        assert f'{NAME} on {row["name"]}: 10 of 21 RRsets would be deleted, over 30 %' in str(row['last_error'])
        assert row['plan_id'] in {plan['id'] for plan in plans} and row['reason'] == 'PARKED'
        assert fed.answers(driver, f'h7.{NAME}') == ['192.0.2.7']
    for plan in plans:
        fed.stack.request('POST', f'/v2/plans/{plan["id"]}/approve', 202)
    assert fed.stack.wait_for(zone)['serial'] == serial
    assert fed.serials() == dict.fromkeys(fed.servers, serial)
    for driver in fed.servers:
        assert fed.answers(driver, f'h7.{NAME}') == [] and fed.answers(driver, f'h17.{NAME}') == ['192.0.2.17']

    fed.stack.delete_zone(zone)
    fed.stack.wait_for(zone, 'gone')
    assert fed.serials() | {'rfc2136': None} == dict.fromkeys(fed.servers, None)
    assert fed.answers('rfc2136', f'h17.{NAME}') == [], 'a zone cannot be removed by an update, but it is empty'


def test_a_deleted_domain_and_a_drained_server_leave_what_others_have_on_shared_servers(fed: Fed) -> None:
    shared = {'pdns-native': 'ownership = txt\npolicy = sync\n',
              'rfc2136': 'ownership = database\npolicy = sync\nmanaged_types = A\n'}
    fed.stack.reload([text + shared.get(driver, '') for driver, text in fed.sections.items()])
    native, updated = fed.servers['pdns-native'], fed.servers['rfc2136']
    assert isinstance(native, PowerDns) and isinstance(updated, Named)
    zone = fed.stack.create_zone(NAME)['id']
    fed.change(zone, fed.hosts(1))
    fed.stack.wait_for(zone)
    answer = PdnsServer(native.api_url, native.api_key).ask('PATCH', f'/zones/{NAME}', Deadline(10), {
        'rrsets': [{'name': f'theirs.{NAME}', 'type': 'A', 'ttl': 60, 'changetype': 'REPLACE',
                    'records': [{'content': '198.51.100.1', 'disabled': False}]}]})
    assert answer.status == 204, answer.words
    keyring = dns.tsigkeyring.from_text({KEY.name: (KEY.algorithm, KEY.secret)})
    update = dns.update.UpdateMessage(NAME, keyring=keyring)
    update.add('theirs', 60, 'A', '198.51.100.1')
    assert dns.query.tcp(update, updated.host, port=updated.port, timeout=10).rcode() == dns.rcode.NOERROR

    fed.stack.delete_zone(zone)
    fed.stack.wait_for(zone, 'gone')
    for driver in shared:
        assert fed.answers(driver, f'h1.{NAME}') == []
        assert fed.answers(driver, f'theirs.{NAME}') == ['198.51.100.1']

    zone = fed.stack.create_zone(NAME)['id']
    fed.change(zone, fed.hosts(2))
    fed.stack.wait_for(zone)
    for driver in shared:
        assert fed.answers(driver, f'h2.{NAME}') == ['192.0.2.2']
        fed.stack.command('server', 'drain', fed.ids[driver], '--delete-zones')
        wait_until(lambda: fed.stack.servers_state()[fed.ids[driver]]['state'] == 'removed', 'it has left')
        assert fed.answers(driver, f'h2.{NAME}') == []
        assert fed.answers(driver, f'theirs.{NAME}') == ['198.51.100.1']


def test_servers_that_are_fed_leave_rest_and_join(fed: Fed) -> None:
    stack = fed.stack
    stack.reload([fed.sections['bind9'], fed.sections['pdns-native']])
    wait_until(lambda: stack.servers_state()[fed.ids['rfc2136']]['state'] == 'removed', 'it has left')
    zones = {name: stack.create_zone(name)['id'] for name in MANY}
    serials = {name: stack.wait_for(zone)['serial'] for name, zone in zones.items()}

    stack.reload(list(fed.sections.values()))
    wait_until(lambda: stack.servers_state()[fed.ids['rfc2136']]['state'] == 'active', 'it has joined')
    for name, serial in serials.items():
        assert fed.serials(name) == dict.fromkeys(fed.servers, serial)

    stack.command('server', 'maintenance', fed.ids['rfc2136'])
    name = MANY[0]
    stack.create_recordset(zones[name], f'www.{name}', 'A', '192.0.2.1')
    stack.wait_for(zones[name])
    assert (fed.answers('pdns-native', f'www.{name}'), fed.answers('rfc2136', f'www.{name}')) == (['192.0.2.1'], [])
    stack.command('server', 'resume', fed.ids['rfc2136'])
    wait_until(lambda: fed.answers('rfc2136', f'www.{name}') == ['192.0.2.1'], 'what it missed is there')

    assert json.loads(stack.command('server', 'resync', fed.ids['pdns-native'], '-f', 'json'))['missing'] == []
    stack.command('server', 'drain', fed.ids['pdns-native'], '--delete-zones')
    wait_until(lambda: fed.serials(name)['pdns-native'] is None, 'its zones are deleted')
    assert fed.serials(name)['bind9'] is not None
