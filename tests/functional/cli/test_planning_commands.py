"""Zones kept in files, from the user's side: the command, the real programs of a pool, and real servers behind it."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import dns.query
import dns.rdatatype
import dns.zone
import pytest

from designate_pool.planner import config_file
from testing import warm
from testing.bind import Named
from testing.processes import wait_until
from testing.stack import Stack
from tests.fixtures import documentation
from tests.fixtures.bind_pool import BindPool
from tests.fixtures.commands import Folder, Ran, wait
from tests.fixtures.documentation import PAGES, ROOT
from tests.fixtures.updates import KEY, NEW, named_with

CONFIG = '''
providers:
  files: {class: zonefile, directory: zones, file_extension: .zone, check_origin: false}
  pool: {class: pool, url: env/DESIGNATE_POOL_URL}
zones:
  '*': {sources: [files], targets: [pool]}
'''
CONTENTS = '''
$TTL 3600
@        MX    10 mail
@        TXT   "v=spf1 mx -all"
www  300 A     192.0.2.10
www  300 A     192.0.2.11
mail     A     192.0.2.25
ftp      CNAME www
'''
PAGE = PAGES / 'zones-in-git.rst'
HOSTS = ''.join(f'host{number} 3600 IN A 192.0.2.{number}\n' for number in range(100, 112))


def test_the_example_works(tmp_path: pathlib.Path) -> None:
    for name in ('example-sync.yaml', 'example-sync-zones'):
        copy = shutil.copytree if (ROOT / 'etc' / name).is_dir() else shutil.copy
        copy(ROOT / 'etc' / name, tmp_path / name)  # type: ignore[operator]
    with BindPool(tmp_path / 'pool') as pool:
        folder = Folder(tmp_path, pool.stack.url)
        words = '--config', 'example-sync.yaml'
        plan = folder.run('plan', *words).plan
        for _ in range(2):  # a wait that was interrupted can be resumed
            applied = folder.run('apply', plan, *words, wait())
            assert 'example.com. is ACTIVE at serial' in applied.err
        assert pool.served('ftp.example.com', 'CNAME') == ['www.example.com.']
        assert pool.served('www.example.net', 'CNAME') == ['www.example.com.']
        assert folder.run('plan', *words, '--detailed-exitcode').out.startswith('Nothing to do')
        folder.change('example-sync-zones/example.net.zone', 'www         IN CNAME www.example.com.\n', '')
        assert 'Blocked (policy): Delete www.example.net.' in folder.run('plan', *words, '--detailed-exitcode').out

        empty = 'empty.example.com.'
        pool.stack.request('POST', '/v2/zones', 202, json={
            'name': empty, 'type': 'SECONDARY', 'masters': ['192.0.2.1']})
        dump = 'dump', *words, '--source', 'pool', '--output', 'dumped'
        told = folder.run(*dump)
        assert told.out.count('RRsets dumped/') == 2
        assert told.err == (f'{empty} is left out: pool cannot be read: There is no content of '
                            f'{empty} now: its masters were not reached.\n')
        assert 'its masters were not reached' in folder.run(*dump, empty, code=1).err


def test_a_parked_plan_is_found_looked_at_and_approved(named: Callable[..., Named], tmp_path: pathlib.Path) -> None:
    """In a pool of a BIND that transfers and one that is fed by records."""
    ns1, ns2 = named('ns1'), named_with(named, tmp_path, {'example.com.': NEW.format(serial=1)}, name='ns2')
    section = (f'[backend:rfc2136:{uuid.uuid4()}]\nhost = {ns2.host}\nport = {ns2.port}\ncall_timeout = 2\n'
               f'tsig_key = {KEY.name}:{KEY.algorithm}:{KEY.secret}\n')
    with Stack(tmp_path / 'stack', [ns1.section(str(uuid.uuid4()), call_timeout=2), section],
               f'sqlite:///{tmp_path}/database.sqlite') as stack:
        folder = Folder(tmp_path / 'git', stack.url)
        folder.write('designate-pool-sync.yaml', CONFIG)

        def bring(text: str, *words: str, code: int = 0) -> Ran:
            """Have the zone be *text* in the pool, however unsafe."""
            folder.write('zones/example.com.zone', text)
            return folder.run('apply', '--yes', *words, code=code)

        def plans(*words: str) -> list[Any]:
            return list(folder.run('plan', 'list', *words, '-f', 'json').json)

        bring(CONTENTS + HOSTS, wait())
        assert ns2.texts('host100.example.com.', 'A') == ['192.0.2.100']
        # What the operator forces needs no second approval on the server that is fed.
        told = bring(CONTENTS, '--force', 'example.com', wait())
        assert 'is approved, since the zone is forced' in told.err and 'on 2 of 2 servers' in told.err
        assert ns2.texts('host100.example.com.', 'A') == [] and plans('--state', 'parked') == []
        bring(CONTENTS + HOSTS, wait())
        folder.write('zones/example.com.zone', CONTENTS)
        told = warm.run('designate_pool.cmd.programs.sync', '--config', 'designate-pool-sync.yaml', '--once', '--force',
                        'example.com', cwd=folder.path, env={**os.environ, 'DESIGNATE_POOL_URL': stack.url})
        assert told.returncode == 0 and 'is approved, since the zone is forced' in told.stderr, told.stderr
        assert ns2.texts('host100.example.com.', 'A') == [] and plans('--state', 'parked') == []
        bring(CONTENTS + HOSTS, wait())

        folder.change('designate-pool-sync.yaml', 'class: pool', 'class: pool, delete_pcent_threshold: 1.0')
        told = bring(CONTENTS, wait(), code=3)
        (plan,) = plans('--state', 'parked')
        assert f"Approve it with 'designate-pool apply {plan['id'].replace('-', '')}'" in told.err
        told = bring(CONTENTS + 'new A 192.0.2.1\n', '--force', 'example.com', wait(), code=3)
        assert 'is parked' in told.err
        (plan,) = plans('--state', 'parked')  # it has more than what was forced
        short = plan['id'][:8]
        explained = folder.run('zone', 'explain', 'example.com').out
        assert f"decide on the plan: 'designate-pool plan show {short}' shows it" in explained
        shown = folder.run('plan', 'show', short).out
        assert '    - host100.example.com. 3600 A 192.0.2.100\n' in shown and 'RRsets would be deleted' in shown
        assert "--force is for plans of your own" in folder.run('apply', short, '--force', 'example.com', code=1).err

        # Dropped, it is looked at anew, and is another plan that waits.
        folder.run('plan', 'drop', short)
        (again,) = wait_until(lambda: plans('--state', 'parked'), 'the plan is parked anew')
        assert again['id'] != plan['id']
        assert ns2.texts('host100.example.com.', 'A') == ['192.0.2.100']

        assert f'Plan {again["id"]} is approved' in folder.run('apply', again['id']).out
        for _ in range(2):
            done = folder.run('apply', again['id'], wait())
            assert 'example.com. is ACTIVE at serial' in done.err and 'on 2 of 2 servers' in done.err
        assert ns2.texts('host100.example.com.', 'A') == []
        refused = folder.run('apply', again['id'], code=1)
        assert 'only a parked plan can be approved' in refused.err

        # Without a configuration, too: what is parked needs none.
        (folder.path / 'designate-pool-sync.yaml').unlink()
        assert {each['state'] for each in plans()} == {'APPLIED', 'DROPPED'}


def test_every_configuration_of_the_page_can_be_read(tmp_path: pathlib.Path) -> None:
    texts = [block.text for block in documentation.blocks(PAGE) if block.kind == 'yaml']
    assert texts
    path = tmp_path / 'config.yaml'
    for text in texts:
        path.write_text(text)
        found = config_file.read(path, {'UPDATE_SECRET': 'c2VjcmV0'})
        assert found.zones and found.providers


NAME = 'example.com.'
SERVER = f'[backend:fake:{uuid.uuid4()}]\nhost = 127.0.0.1\nport = 9\ncall_timeout = 2\n'
#: Recordsets before and after: owner, type, and TTL and data each.
CHANGES = {
    'replaced by a CNAME': ('alias', 'A', (None, ['192.0.2.1', '192.0.2.2']), None),
    'a CNAME instead': ('alias', 'CNAME', None, (60, ['www.example.com.'])),
    'data instead of a CNAME': ('other', 'CNAME', (None, ['www.example.com.']), None),
    'data': ('other', 'TXT', None, (None, ['"a; b" "c \\" \\\\ d"', '"\\195\\169"'])),
    'one more': ('www', 'A', (None, ['192.0.2.1']), (None, ['192.0.2.1', '192.0.2.2'])),
    'another TTL': ('www', 'AAAA', (60, ['2001:db8::1', '2001:db8::2']), (90, ['2001:db8::2'])),
    'a delegation': ('sub', 'NS', (None, ['ns1.example.net.']), (None, ['ns2.example.net.', 'ns3.example.net.'])),
    'deleted': ('gone', 'MX', (None, ['10 mail.example.net.']), None),
    'unchanged': ('*', 'SRV', (None, ['0 5 5060 sip.example.com.']), (None, ['0 5 5060 sip.example.com.'])),
    'odd name': (r'a\"b\\c\;d', 'TXT', (None, ['"x"']), (None, ['"y"'])),
    'unknown type': ('typed', 'TYPE65280', None, (None, [r'\# 4 0a000001'])),
}


class Versions:
    """A zone with two versions, and BIND."""

    def __init__(self, folder: pathlib.Path, url: str, start: Callable[..., Named]) -> None:
        self.folder = folder
        self.start = start
        self.command = Folder(folder, url)
        self.command.run('zone', 'create', NAME, '--email', 'hostmaster@example.com')

    def put(self, sets: dict[tuple[str, str], tuple[int | None, list[str]]]) -> str:
        for (name, rtype), (ttl, records) in sets.items():
            words = [word for record in records for word in ('--record', record)]
            self.command.run('recordset', 'create', NAME, f'{name}.{NAME}', rtype, *words,
                             *(() if ttl is None else ('--ttl', str(ttl))))
        return self.serial()

    def serial(self) -> str:
        return self.command.run('zone', 'show', NAME, '-f', 'value', '-c', 'serial').out.strip()

    def exported(self, at: str) -> dns.zone.Zone:
        return dns.zone.from_text(self.command.run('zone', 'export', NAME, '--at', at).out)

    def diff(self, first: str, *others: str) -> list[str]:
        return self.command.run('zone', 'diff', NAME, first, *others).out.splitlines()

    def updated(self, first: str, second: str) -> dns.zone.Zone:
        """What BIND serves that had the first version, after nsupdate."""
        (self.folder / first).mkdir()
        served = named_with(self.start, self.folder, {NAME: self.command.run(
            'zone', 'export', NAME, '--at', first).out}, 'allow-update { any; }; allow-transfer { any; };',
            f'ns-{first}')
        commands = self.command.run('zone', 'diff', NAME, first, second, '--as', 'nsupdate').out
        subprocess.run(['nsupdate', '-v'], check=True, timeout=60, text=True,
                       input=f'server {served.host} {served.port}\n{commands}')
        return dns.zone.from_xfr(dns.query.xfr(served.host, NAME, port=served.port))


@pytest.fixture
def versions(tmp_path: pathlib.Path, named: Callable[..., Named]) -> Iterator[Versions]:
    with Stack(tmp_path / 'stack', [SERVER], f'sqlite:///{tmp_path}/pool.sqlite') as stack:
        yield Versions(tmp_path, stack.url, named)


def test_nsupdate_leads_a_server_from_one_version_to_the_other(versions: Versions) -> None:
    first = versions.put({(name, rtype): before for name, rtype, before, _ in CHANGES.values() if before})
    for name, rtype, before, after in CHANGES.values():
        if before and before != after:
            versions.command.run('recordset', 'delete', NAME, f'{name}.{NAME}', rtype)
    second = versions.put({(name, rtype): after for name, rtype, before, after in CHANGES.values()
                           if after and before != after})
    for at in (first, second):
        assert versions.exported(at).get_soa().serial == int(at)
    assert versions.updated(first, second) == versions.exported(second)
    served = versions.updated(second, first)
    soa = dns.rdatatype.SOA
    assert served.get_soa().serial > int(second)
    for zone in (served, wanted := versions.exported(first)):
        zone.delete_rdataset('@', soa)
    assert served == wanted

    lines = versions.diff(first, second)
    assert [line[:2] for line in lines[:2]] == ['- ', '+ '] and lines[1].split()[:4] == ['+', NAME, '3600', 'SOA']
    assert '+ www.example.com. 3600 A 192.0.2.2' in lines
    assert '- gone.example.com. 3600 MX 10 mail.example.net.' in lines
    assert not any('SRV' in line or '192.0.2.1' in line and 'www' in line for line in lines)
    assert versions.diff(first) == lines and versions.diff(second, first)[0] == f'-{lines[1][1:]}'
    plan = versions.diff(first, second, '--as', 'plan')
    assert plan[:2] == ['  Delete gone.example.com. MX', '    - gone.example.com. 3600 MX 10 mail.example.net.']
    assert '  Replace alias.example.com. A CNAME' in plan and '  Update www.example.com. A' in plan
    assert not any('SOA' in line for line in plan)
    assert [versions.diff(second, second, '--as', form) for form in ('records', 'plan', 'nsupdate')] == [[], [], []]


def test_a_long_difference_is_sent_in_parts(versions: Versions) -> None:
    first = versions.serial()
    text = ' '.join(f'"{"x" * 250}"' for _ in range(100))
    second = versions.put({(f'long{number}', 'TXT'): (None, [text]) for number in range(4)})
    served, wanted = versions.updated(first, second), versions.exported(second)
    for zone in (served, wanted):
        zone.delete_rdataset('@', 'SOA')
    assert served == wanted


def test_former_versions_by_command(versions: Versions) -> None:
    run = versions.command.run
    first = versions.put({('www', 'A'): (60, ['192.0.2.1'])})
    run('recordset', 'set', NAME, 'www', 'A', '--record', '192.0.2.2', '--no-ttl')
    run('zone', 'set', NAME, '--ttl', '300')
    shown = run('zone', 'show', NAME, '--at', first, '-f', 'json').json
    assert (str(shown['serial']), shown['ttl'], shown['soa'].split()[2]) == (first, 3600, first)
    assert run('recordset', 'list', NAME, '--at', first, '--type', 'a', '-f', 'json').json == [
        {'name': f'www.{NAME}', 'type': 'A', 'records': ['192.0.2.1'], 'ttl': 60}]
    history = run('recordset', 'history', NAME, 'www', '-f', 'json').json
    assert [(each['removed_records'], each['added_records']) for each in history] == [
        ([f'www.{NAME} 60 A 192.0.2.1'], [f'www.{NAME} A 192.0.2.2']), ([], [f'www.{NAME} 60 A 192.0.2.1'])]
    assert str(history[-1]['serial']) == first and history[0]['kind'] == 'API' and len(history[0]['when']) == 19
    run('zone', 'delete', NAME)
    assert run('recordset', 'list', NAME, '--at', first, '--name', 'www', '-f', 'json').json[0]['ttl'] == 60
    assert run('recordset', 'history', NAME, 'www', 'AAAA', '-f', 'json').json == []
    assert versions.exported(first).get_rdataset('www', 'A').ttl == 60
    assert 'it was created at' in run('zone', 'show', NAME, '--at', '2001-02-03', code=1).err
    for words in ((), (NAME, '--data', 'x'), (NAME, '--limit', '1')):
        assert '--at needs a zone' in run('recordset', 'list', *words, '--at', first, code=1).err
