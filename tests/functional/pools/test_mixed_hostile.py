"""The hostile corpus in a pool of a BIND, an NSD, a Knot and a PowerDNS: what is accepted is served by all four.

What is refused would have stopped the zone, and with it the transfers of all others at MiniDNS.
"""

from __future__ import annotations

import contextlib
import functools
import pathlib
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import requests

from designate_pool.central.service import Central
from designate_pool.errors import PoolError
from designate_pool.planner import master
from designate_pool.planner.targets.pool import PoolProvider
from designate_pool.planner.targets.yaml_target import YamlProvider
from designate_pool.planner.zone.zone import Zone
from designate_pool.rpc.notifications import Notification
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.settings import NovaSettings
from designate_pool.sink.handlers import NovaFixedHandler
from designate_pool.sink.service import SinkService
from designate_pool.storage.sql.database import Storage
from testing.inline import Inline
from testing.processes import wait_until
from testing.settings import central_settings
from testing.stack import MASTERS
from tests.fixtures import hostile_files, hostile_records
from tests.fixtures.central import Caller
from tests.fixtures.hostile_files import FILES, yaml_file, zone_file
from tests.fixtures.hostile_master import DIFFERENCES, FIRST, LATER, LATER_SERIALS, MESSAGES, TRANSFERS, HostileMaster
from tests.fixtures.hostile_records import NAMES, RECORDS
from tests.fixtures.mixed import Mixed, for_all

#: Cases that must not be refused, so that the corpus does not become one of mistakes alone.
ACCEPTED = {'dname-apex', 'naptr', 'naptr-groups', 'x25', 'nsap', 'dnskey', 'cds-cdnskey', 'a-100', 'txt-15k',
            'svcb-60-params', 'txt-40k-set', 'name-control', 'ns-occluded', 'name-deep', 'types-100', 'types-apex'}
#: Of these, what octoDNS's YAML has no type or no text for.
NOT_IN_YAML = {'x25', 'nsap', 'dnskey', 'cds-cdnskey', 'types-100', 'types-apex'}
#: Of the pool manager: hundreds of zones come at once, and no server is to be asked again for what it is busy with.
UNHURRIED = {'poll_timeout': '10', 'poll_retry_interval': '5', 'retry_backoff_initial': '5',
             'retry_backoff_maximum': '60', 'claim_seconds': '60', 'periodic_sync_interval': '5'}
#: Names of instances.
HOSTS = ('a\\000b', 'a b', '\u00fc', 'a' * 64, 'a.' * 120, '*', '*.a', '@', '$INCLUDE', '-', '..', '', 'A', 'a/b',
         'a\\.b', '"', '\n', '0', '_a', '\\', '\\300', 'a\\', '%s', '%(zone)s', '\u2003', 'www', 'd.www', '_70000._tcp',
         ';', '\ud800')


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    folder = tmp_path_factory.mktemp('pool')
    with Mixed(folder / 'mixed', f'sqlite:///{folder}/pool.sqlite', others=[MASTERS], manager=UNHURRIED) as running:
        yield running


def is_accepted(pool: Mixed, path: str, **sent: Any) -> bool:
    """Whether a request is; one that is refused names the field."""
    answer = requests.post(f'{pool.stack.url}{path}', timeout=60, **sent)
    assert answer.status_code in (202, 400), f'{path} {sent}: {answer.text}'
    assert answer.status_code == 202 or re.search(r'records|type|name|recordset', answer.json()['message']), answer.text
    return answer.status_code == 202


def by_changes(pool: Mixed, case: str, name: str) -> bool:
    zone = pool.stack.create_zone(name)
    accepted = is_accepted(pool, f'/v2/zones/{zone["id"]}/changes', json={
        'changes': list(hostile_records.recordsets(case, name))})
    assert accepted or contents(pool, zone) == (zone['serial'], 2), case
    return accepted


def by_recordsets(pool: Mixed, case: str, name: str) -> bool:
    if case in ACCEPTED:
        zone = pool.stack.create_zone(name)
    else:  # the zone that has none of it, as /changes has refused it
        zone, = pool.stack.request('GET', f'/v2/zones?name={case}.by-changes.example.com.', 200)['zones']
    recordsets = list(hostile_records.recordsets(case, zone['name']))
    before = recordsets[:-1] if len(recordsets) > 50 else []  # too many of them are too many with the last
    assert not before or is_accepted(pool, f'/v2/zones/{zone["id"]}/changes', json={'changes': before})
    accepted = [is_accepted(pool, f'/v2/zones/{zone["id"]}/recordsets', json=recordset)
                for recordset in recordsets[len(before):]]
    assert contents(pool, zone)[1] == 2 + len(before) + sum(accepted), case
    return all(accepted)


def by_plan(pool: Mixed, case: str, name: str) -> bool:
    return is_planned(pool, case, name, lambda desired: desired.add_pairs(master.read(zone_file(case, name), name)))


def by_yaml(pool: Mixed, case: str, name: str) -> bool:
    def read(desired: Zone) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / f'{name}yaml').write_text(yaml_file(case, name), encoding='utf-8')
            assert YamlProvider('in', folder).populate(desired, lenient=True)

    return is_planned(pool, case, name, read)


def is_planned(pool: Mixed, case: str, name: str, read: Callable[[Zone], None]) -> bool:
    """Whether what is *read* can be read, planned and applied."""
    desired, target = Zone(name), PoolProvider('pool', url=pool.stack.url)
    with contextlib.closing(target):
        try:
            read(desired)
            plan = target.plan(desired)
        except PoolError:
            return False
        assert plan is not None
        result = target.apply(plan)
        # It does not know the limits of the servers.
        assert result.ok or re.search(r'^recordsets\[\d+\]\.(records|type): .* takes ', str(result.errors[0])), result
        assert result.ok == bool(pool.stack.request('GET', f'/v2/zones?name={name}', 200)['zones']), case
        return result.ok


def by_import(pool: Mixed, case: str, name: str) -> bool:
    return is_imported(pool, zone_file(case, name))


def is_imported(pool: Mixed, text: str) -> bool:
    """Whether a zone file is; one that is refused names the line, or the record."""
    stack = pool.stack
    answer = requests.post(f'{stack.url}/v2/zones/tasks/imports', text.encode(), timeout=60,
                           headers={'Content-Type': 'text/dns'})
    assert answer.status_code in (202, 400), answer.text
    if answer.status_code == 400:
        return False
    task = stack.wait_for_import(answer.json()['id'])
    assert task['status'] == 'COMPLETE' or re.search(
        r'^line \d+|\.example\.com\. |^zone file: |^text: |^name: |quota', task['message']), f'{text[:300]}: {task}'
    return bool(task['status'] == 'COMPLETE')


def contents(pool: Mixed, zone: Any) -> tuple[int, int]:
    """Serial and number of recordsets."""
    recordsets = pool.stack.request('GET', f'/v2/zones/{zone["id"]}/recordsets?limit=1000', 200)['recordsets']
    return pool.stack.request('GET', f'/v2/zones/{zone["id"]}', 200)['serial'], len(recordsets)


def all_are_served(pool: Mixed) -> None:
    try:
        pool.wait_for_all(120)
    finally:
        print('not active:', [(zone['name'], pool.stack.servers(zone['id'])) for status in ('ERROR', 'PENDING')
                              for zone in pool.stack.request('GET', f'/v2/zones?status={status}', 200)['zones']])
    pool.stack.must_be_sound()


def through(pool: Mixed, door: Callable[[Mixed, str, str], bool], cases: Sequence[str]) -> set[str]:
    """The cases that the door accepts.  Zones without those that it refuses stay: NSD 4.6.1 may crash of deletes."""
    name = door.__name__.replace('_', '-')
    return {case for case, is_taken in zip(cases, for_all(cases, lambda case: door(
        pool, case, f'{case}.{name}.example.com.'))) if is_taken}


@pytest.fixture(scope='module')
def cases(pool: Mixed) -> list[str]:
    """What ``/changes`` refuses, and some that it takes: another door may only take what the servers take too."""
    accepted = through(pool, by_changes, list(RECORDS))
    assert accepted >= ACCEPTED
    all_are_served(pool)
    return [case for case in RECORDS if case in ACCEPTED or case not in accepted]


@pytest.mark.parametrize('door', [by_recordsets, by_import, by_plan, by_yaml], ids=lambda door: door.__name__)
def test_nothing_is_accepted_that_leaves_a_zone_not_active(pool: Mixed, cases: list[str],
                                                           door: Callable[[Mixed, str, str], bool]) -> None:
    assert through(pool, door, cases) >= (ACCEPTED - NOT_IN_YAML if door is by_yaml else ACCEPTED)
    all_are_served(pool)


def test_names_of_zones(pool: Mixed) -> None:
    """Created and imported."""
    def create(case: str) -> bool:
        name = f'{NAMES[case]}.names.example.com.'
        accepted = is_accepted(pool, '/v2/zones', json={'name': name, 'email': 'hostmaster@example.com'})
        text = f'{name.replace("names", "files")} 300 SOA {hostile_files.SOA}\n'
        assert is_imported(pool, text) or not accepted, case
        return accepted

    accepted = {case for case, is_created in zip(NAMES, for_all(list(NAMES), create)) if is_created}
    assert accepted >= {'upper', 'dashes', 'punycode', 'digits', 'rfc2317', 'label-63', 'octets-255', 'labels-many',
                        'octet-45', 'octet-47', 'octet-95', 'escaped-letters'}
    all_are_served(pool)


def test_zone_files(pool: Mixed) -> None:
    accepted = through(pool, by_import, list(FILES))
    assert accepted >= {'no-ns', 'ttl-highest', 'soa-highest', 'generate', 'delegated', 'case-twice', 'owner-tab',
                        'crlf'}
    all_are_served(pool)


def test_transfers_of_masters(pool: Mixed, cases: list[str]) -> None:
    with contextlib.closing(HostileMaster()) as sender:
        def follow(case: str) -> str | None:
            """Why it is refused."""
            zone = secondary(pool, case, sender)
            error, = wait_until(lambda: ended(pool, zone, FIRST), f'{case} is transferred or refused', 60)
            if error:
                assert contents(pool, zone)[1] == 0, case
                refused.append(zone['id'])
            return error or None

        refused: list[str] = []
        every = list(dict.fromkeys([*cases, *TRANSFERS, *MESSAGES]))
        whys = dict(zip(every, for_all(every, follow, clients=16)))  # who wait
        assert not [case for case in (*ACCEPTED, 'plain', 'nsec-all', 'nsec3', 'rrsig-beside-cname')
                    if whys[case]], whys
        assert not {'trailing', 'truncated-flag'} ^ {case for case in MESSAGES if not whys[case]}, whys
        for zone_id in refused:
            pool.stack.delete_zone(zone_id)
        all_are_served(pool)
        later = {case: secondary(pool, case, sender) for case in DIFFERENCES}
        pool.wait_for_all(60)
        sender.later.update(f'{case}.masters.example.com.' for case in DIFFERENCES)
        for zone in later.values():
            pool.stack.request('POST', f'/v2/zones/{zone["id"]}/tasks/xfr', 202)
        errors = {case: wait_until(lambda: ended(pool, zone, LATER_SERIALS.get(case, LATER)),
                                   f'{case} is refreshed or refused', 60)[0] for case, zone in later.items()}
        assert {case for case, error in errors.items() if error} == {'serial-back'}, errors
        all_are_served(pool)
        for case in DIFFERENCES:
            pool.all_serve(f'{case}.masters.example.com.', '192.0.2.1')


def secondary(pool: Mixed, case: str, sender: HostileMaster) -> Any:
    return pool.stack.create_secondary(f'{case}.masters.example.com.', f'127.0.0.1:{sender.port}')


def ended(pool: Mixed, zone: Any, serial: int) -> list[str]:
    """Why a refresh has failed, an empty text once the zone has the serial; nothing while neither is so."""
    state = pool.stack.request('GET', f'/v2/zones/{zone["id"]}/servers', 200)['secondary']
    if state['last_error']:
        return [state['last_error']]
    return [''] if state['served'] and contents(pool, zone)[0] == serial else []


def test_names_of_instances(pool: Mixed) -> None:
    zone = pool.stack.create_zone('sink.example.com.')['id']
    pool.stack.request('POST', f'/v2/zones/{zone}/changes', 202, json={'changes': [
        {'name': 'www.sink.example.com.', 'type': 'DNAME', 'records': ['example.net.']}]})
    with contextlib.closing(Storage(pool.stack.database_url)) as database:
        service = Central(database, PoolManagerClient(Caller()), Inline(), settings=central_settings())
        settings = NovaSettings(zone_id=zone.replace('-', ''))
        sink = SinkService([functools.partial(NovaFixedHandler, settings)], service,
                           lambda sources, types, handle: [], pause=0.01)
        for number, host in enumerate(HOSTS):
            addresses = [{'address': address, 'label': host}
                         for address in (f'192.0.2.{number}', f'2001:db8::{number}')]
            assert sink.handle(Notification({'project_name': 'blue'}, 'compute.instance.create.end', {
                'instance_id': f'i-{number}', 'hostname': host, 'display_name': host, 'fixed_ips': addresses}, {
                'message_id': f'm-{number}', 'timestamp': f'2026-05-01 12:00:{number:02}.000000'})), host
        service.stop()
    names = {recordset['name'] for recordset in pool.stack.request(
        'GET', f'/v2/zones/{zone}/recordsets?type=A&limit=1000', 200)['recordsets']}
    assert 'a.sink.example.com.' in names and '_a.sink.example.com.' in names
    all_are_served(pool)
