"""Zone files as a source: with what they include, and what is told of them."""

from __future__ import annotations

import pathlib

import pytest

from designate_pool.errors import SourceError
from designate_pool.planner.sources.zonefile import MOST_FILES, ZoneFileSource
from designate_pool.planner.zone.zone import Zone

HEAD = '@ 300 SOA ns1 hostmaster 1 3600 600 86400 300\n@ 300 NS ns1.example.net.\n'


def read(folder: pathlib.Path, text: str, lenient: bool = False) -> Zone:
    (folder / 'example.com.').write_text(HEAD + text)
    zone = Zone('example.com.')
    ZoneFileSource('files', str(folder)).populate(zone, lenient=lenient)
    return zone


def test_included_files_are_read_too(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'sub').mkdir()
    (tmp_path / 'sub' / 'hosts').write_text('a 300 A 192.0.2.1\n')
    zone = read(tmp_path, '$INCLUDE sub/hosts\n$include "sub/hosts" deep ; text\nb 300 A 192.0.2.2\n')
    assert {key for key in zone.packed if key.endswith('\tA')} == {
        f'{name}.example.com.\tA' for name in ('a', 'a.deep', 'b')}


@pytest.mark.parametrize(('text', 'words'), [
    ('$INCLUDE wrong\nb 300 A nothing\n',
     'example.com. cannot(.|\n)*wrong, line 2: .*nowhere(.|\n)*  line 4: .*nothing'),
    ('$INCLUDE ../other\n', 'example.com., line 3 cannot be read: .*other is not in '),
    ('$INCLUDE missing\n', 'missing cannot be read: No such file'),
    ('$INCLUDE example.com.\n', 'it includes itself'),
    ('$INCLUDE hosts\n$TTL 60\n  A 192.0.2.1\n', 'line 5 cannot be read: the name is missing'),
    ('$INCLUDE hosts\n$INCLUDE nameless\n', 'nameless, line 1 cannot be read: the name is missing'),
    ('$INCLUDE empty\n' * MOST_FILES, 'or more than 1000 files'),
    ('$INCLUDE latin\n', 'it is not a text in UTF-8')
], ids=['wrong', 'outside', 'missing', 'itself', 'nameless', 'nameless there', 'many', 'latin'])
def test_what_is_wrong_is_told_with_its_file(tmp_path: pathlib.Path, text: str, words: str) -> None:
    (tmp_path / 'wrong').write_text('; text\na 300 A nowhere\n')
    (tmp_path / 'empty').write_text('')
    (tmp_path / 'hosts').write_text('a 300 A 192.0.2.1\n')
    (tmp_path / 'nameless').write_text('  300 TXT "x"\n')
    (tmp_path / 'latin').write_bytes(b'a 300 TXT "\xe9"\n')
    with pytest.raises(SourceError, match=words):
        read(tmp_path, text)


def test_several_ttls_in_an_rrset_are_told(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    zone = read(tmp_path, 'www 300 A 192.0.2.1\nwww 200 A 192.0.2.2\nb 60 A 192.0.2.1\nb 60 A 192.0.2.2\n')
    assert zone['www.example.com.\tA'].ttl == 200
    assert [record.getMessage().partition(': ')[2] for record in caplog.records] == [
        'of several TTLs in an RRset the lowest is used: www.example.com. A']
