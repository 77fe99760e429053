"""Zones and their files in ``named.conf`` and ``nsd.conf``."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

from designate_pool.errors import SourceError
from designate_pool.planner.sources.server_config import tsig_key, zone_files

NAMED = '''
options { directory "zones"; listen-on { any; }; };  // type primary
# zone "commented.example" { type primary; file "x"; };
/* zone "commented.example" {
   type primary; file "x"; }; */
include "more.conf";
view "inside" {
    match-clients { 192.0.2.0/24; };
    zone "view.example" IN { type master; file "view.db"; };
};
zone "secondary.example" { type secondary; file "s"; primaries { 192.0.2.1; }; };
zone "chaos.example" CH { type primary; file "c"; };
zone "Example.COM." { allow-update { key "a;b"; }; type primary; file "/srv/example.com"; };
'''
NSD = '''
server:
    zonesdir: "/srv/zones"  # zone: name
    port: 53
pattern:
    name: "own"
    zonefile: "%s.zone"
pattern:
    name: "pool"
    zonefile: "%s.x"
    request-xfr: 192.0.2.1 NOKEY
zone:
    name: example.com
    include-pattern: "own"
zone: name: "example.org." zonefile: "org"
zone:
    name: "secondary.example"
    include-pattern: "pool"
include: "more*.conf"
'''


@pytest.mark.parametrize(('text', 'why'), [
    ('zone { type primary; file "x"; };', 'a zone has no name'), ('include { a; };', 'an include has no file'),
    ('a {' * 3000, 'more than 16 braces'), ('include "a\0";', 'cannot be the name of a file'),
    ('zone:\ninclude: ""\n', 'include: '), ('zone:\ninclude: "/a\0"\n', 'cannot be the name of a file')],
    ids=['zone', 'include', 'braces', 'zero octet', 'no pattern', 'zero octet in nsd.conf'])
def test_what_is_no_configuration_is_told(tmp_path: pathlib.Path, text: str, why: str) -> None:
    path = tmp_path / 'server.conf'
    path.write_text(text)
    with pytest.raises(SourceError, match=why):
        zone_files(path)


@pytest.mark.parametrize('text', [
    'key "a" { { b; } c; };', 'key { a; } { algorithm hmac-sha256; secret "c2VjcmV0"; };'],
    ids=['list in the key', 'list for its name'])
def test_what_is_no_key_is_told(tmp_path: pathlib.Path, text: str) -> None:
    path = tmp_path / 'key'
    path.write_text(text)
    with pytest.raises(SourceError, match='it has no key'):
        tsig_key(path)


def test_named_conf(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'named.conf').write_text(NAMED)
    (tmp_path / 'more.conf').write_text('zone "more.example" { file "more.db"; type primary; };')
    assert zone_files(tmp_path / 'named.conf') == {
        'view.example.': tmp_path / 'zones' / 'view.db', 'more.example.': tmp_path / 'zones' / 'more.db',
        'example.com.': pathlib.Path('/srv/example.com')}


def test_nsd_conf(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'nsd.conf').write_text(NSD)
    (tmp_path / 'more-1.conf').write_text('zone:\n  name: more.example\n  zonefile: more.db\n')
    folder = pathlib.Path('/srv/zones')
    assert zone_files(tmp_path / 'nsd.conf') == {
        'example.com.': folder / 'example.com.zone', 'example.org.': folder / 'org',
        'more.example.': folder / 'more.db'}


@pytest.mark.parametrize(('name', 'text', 'said'), [
    ('named.conf', 'options { directory "x"; ', 'a brace or a semicolon is missing'),
    ('named.conf', 'zone "a.example" { type primary } ;', 'a brace or a semicolon is missing at type primary'),
    ('named.conf', 'zone "a.example" { type primary; file "a"; };\nzone "a.example" { type primary; file "b"; };',
     'a.example. is there twice'),
    ('named.conf', 'include "named.conf";', 'include one another'),
    ('named.conf', 'include "absent.conf";', 'absent.conf'),
    ('nsd.conf', 'include: absent.conf\n', 'absent.conf'),
    ('nsd.conf', 'zone:\n name: a.example\n include-pattern: p\n', 'wants the pattern p'),
    ('nsd.conf', 'zone:\n name: a.example\n zonefile: %1/%s\n', 'has more than %s'),
    ('nsd.conf', 'zone:\n include: nsd.conf\n', 'include one another')])
def test_mistakes(tmp_path: pathlib.Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(SourceError, match=said):
        zone_files(tmp_path / name)


@pytest.mark.parametrize(('pattern', 'names'), [
    ('*.conf', ['a', 'b']), ('**b.conf', ['b']), ('**/*.conf', ['c']), ('{folder}/*.conf', ['a', 'b'])],
    ids=['here', 'two stars', 'one folder below', 'absolute'])
def test_files_are_included_by_the_patterns_of_glob(tmp_path: pathlib.Path, pattern: str, names: list[str]) -> None:
    for name in ('a', 'b', '.hidden', 'below/c', 'below/far/d'):
        path = tmp_path / f'{name}.conf'
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'zone:\n  name: {path.stem}.example.\n  zonefile: {path.stem}.db\n')
    main = tmp_path / 'nsd.main'
    main.write_text(f'server:\n  port: 53\ninclude: "{pattern.replace("{folder}", str(tmp_path))}"\n')
    assert sorted(zone_files(main)) == [f'{name}.example.' for name in names]


def test_an_included_folder_that_may_not_be_read_is_not_taken_for_empty(
        tmp_path: pathlib.Path, forbid: Callable[[pathlib.Path], None]) -> None:
    folder = tmp_path / 'zones.d'
    folder.mkdir()
    (folder / 'more.conf').write_text('zone:\n  name: more.example\n  zonefile: more.db\n')
    (tmp_path / 'nsd.conf').write_text('zone:\n  name: a.example\n  zonefile: a.db\ninclude: "zones.d/*.conf"\n')
    assert len(zone_files(tmp_path / 'nsd.conf')) == 2
    forbid(folder)
    with pytest.raises(SourceError, match='zones.d cannot be read: Permission denied'):
        zone_files(tmp_path / 'nsd.conf')


def test_tsig_key(tmp_path: pathlib.Path) -> None:
    file = tmp_path / 'key'
    file.write_text('key "transfer.example" {\n\talgorithm hmac-sha256;\n\tsecret "c2VjcmV0";\n};\n')
    assert tsig_key(file) == ('transfer.example', 'c2VjcmV0', 'hmac-sha256')
    file.write_text('key "transfer.example" { algorithm hmac-sha256; };')
    with pytest.raises(SourceError, match='it has no key'):
        tsig_key(file)
