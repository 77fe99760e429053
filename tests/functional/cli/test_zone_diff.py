"""Former versions of zones by command; and what nsupdate makes of the difference, on BIND."""

from __future__ import annotations

import pathlib
import subprocess
import uuid
from collections.abc import Callable, Iterator

import dns.query
import dns.rdatatype
import dns.zone
import pytest

from testing.bind import Named
from testing.stack import Stack
from tests.fixtures.commands import Folder
from tests.fixtures.updates import named_with

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
