"""Zones read from real servers by transfer, and from files that real servers read as well."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

from designate_pool.errors import InvalidField, SourceError, SupportsException, ZoneError
from designate_pool.model import TsigKey
from designate_pool.planner import master
from designate_pool.planner.sources.axfr import AxfrSource
from designate_pool.planner.sources.zonefile import ZoneFileSource
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import rrset
from testing.bind import Named
from testing.knot import Knotd

ZONE = 'example.com.'
KEY = TsigKey('transfer.', 'hmac-sha512', 'c2VjcmV0IG9ubHkgZm9yIHRlc3RzLCAzMiBvY3RldHM=')
TEXT = r'''$TTL 1h
@ SOA ns1.example.net. Hostmaster.example.net. ( 7 ; serial
    3600 600 86400 300 )
@ NS ns1.example.net.
@ 60 IN MX 10 Mail
www A 192.0.2.2
    A 192.0.2.1
    AAAA 2001:DB8::1
a\.b IN 5m CNAME WWW
\*.quoted TXT ( "one ; two" "a \"b\" \200" )
$ORIGIN sub.example.com.
$GENERATE 1-2 host$ A 192.0.2.1$
_sip._tcp SRV 1 2 5060 @
@ CAA 0 issue "ca.example.net"
'''
EXPECTED = r'''
*.quoted.example.com. 3600 TXT "one ; two" "a \"b\" \200"
_sip._tcp.sub.example.com. 3600 SRV 1 2 5060 sub.example.com.
a\.b.example.com. 300 CNAME www.example.com.
example.com. 3600 NS ns1.example.net.
example.com. 3600 SOA ns1.example.net. hostmaster.example.net. 7 3600 600 86400 300
example.com. 60 MX 10 mail.example.com.
host1.sub.example.com. 3600 A 192.0.2.11
host2.sub.example.com. 3600 A 192.0.2.12
sub.example.com. 3600 CAA 0 issue "ca.example.net"
www.example.com. 3600 A 192.0.2.1, 192.0.2.2
www.example.com. 3600 AAAA 2001:db8::1
'''


def shown(zone: Zone) -> str:
    return '\n' + '\n'.join(sorted(map(str, zone))) + '\n'


def primary(named: Callable[..., Named], folder: pathlib.Path, text: str = TEXT, allow: str = 'any',
            **options: object) -> Named:
    """A BIND that has *text* for its zone."""
    folder.mkdir(exist_ok=True)
    (folder / 'example.com.master').write_text(text)
    return named(folder.name, statements=f'zone "{ZONE}" {{ type primary; file "example.com.master"; '
                                         f'allow-transfer {{ {allow}; }}; }};', **options)


def source(server: Named | Knotd, **options: object) -> AxfrSource:
    return AxfrSource('primary', server.host, server.port, **options)  # type: ignore[arg-type]


def read(each: AxfrSource | ZoneFileSource, zone: str = ZONE) -> Zone:
    found = Zone(zone)
    assert each.populate(found)
    return found


def refused(each: AxfrSource, zone: str = ZONE) -> str:
    found = Zone(zone)
    with pytest.raises(SourceError) as caught:
        each.populate(found)
    assert len(found) == 0
    return str(caught.value)


def test_a_zone_comes_from_bind_as_its_file_says(named: Callable[..., Named], tmp_path: pathlib.Path) -> None:
    server = primary(named, tmp_path / 'ns1')
    found = read(source(server))
    assert shown(found) == EXPECTED
    (tmp_path / 'files').mkdir()
    (tmp_path / 'files' / 'example.com.').write_text(TEXT)
    from_file = read(ZoneFileSource('files', str(tmp_path / 'files')))
    assert from_file == found and changes.between(from_file, found) == []


def test_what_we_write_is_what_bind_serves(named: Callable[..., Named], tmp_path: pathlib.Path) -> None:
    zone = Zone(ZONE)
    zone.add_pairs(master.read(TEXT, ZONE))
    server = primary(named, tmp_path / 'ns1', ''.join(master.write(zone)))
    assert read(source(server)) == zone


def test_keys_that_are_right_and_wrong(named: Callable[..., Named], tmp_path: pathlib.Path) -> None:
    server = primary(named, tmp_path / 'ns1', allow=f'key {KEY.name}', keys=[KEY])
    right = {'key_name': KEY.name, 'key_secret': KEY.secret, 'key_algorithm': KEY.algorithm}
    assert shown(read(source(server, **right))) == EXPECTED
    assert 'does not let example.com. be transferred (REFUSED)' in refused(source(server))
    assert 'another secret for the key transfer.' in refused(source(server, **right | {'key_secret': 'AAAAAAAA'}))
    assert 'know the key other. by hmac-sha512 (BADKEY)' in refused(source(server, **right | {'key_name': 'other.'}))
    assert shown(read(source(server, **right))) == EXPECTED, 'and again'


def test_a_host_by_its_name(named: Callable[..., Named], tmp_path: pathlib.Path) -> None:
    server = primary(named, tmp_path / 'ns1')
    assert shown(read(AxfrSource('primary', 'localhost', server.port))) == EXPECTED
    assert 'cannot be read' in refused(AxfrSource('primary', 'no-such-host.invalid', server.port))
    with pytest.raises(SupportsException, match='have to be named'):
        source(server).list_zones()


def test_zones_are_listed_by_the_ends_of_their_files(tmp_path: pathlib.Path) -> None:
    for name in ('example.com.zone', '0-25.2.0.192.in-addr.arpa.zone', 'example.com.', 'readme'):
        (tmp_path / name).write_text(TEXT)
    assert ZoneFileSource('files', str(tmp_path), '.zone').list_zones() == ['0-25.2.0.192.in-addr.arpa.', ZONE]
    assert ZoneFileSource('files', str(tmp_path)).list_zones() == [ZONE]
    with pytest.raises(SupportsException):
        ZoneFileSource('file', file=str(tmp_path / 'example.com.')).list_zones()
    with pytest.raises(SourceError, match='No such file'):
        ZoneFileSource('files', str(tmp_path / 'none')).list_zones()


def test_one_file_for_whatever_zone_is_asked_for(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'zone').write_text(TEXT)
    assert shown(read(ZoneFileSource('file', file=str(tmp_path / 'zone')))) == EXPECTED
    for both in ({}, {'directory': 'a', 'file': 'b'}):
        with pytest.raises(InvalidField, match="one of 'directory' and 'file'"):
            ZoneFileSource('file', **both)


def test_the_file_of_a_name_with_a_slash_is_in_the_folder(tmp_path: pathlib.Path) -> None:
    (tmp_path / '0-25.2.0.192.in-addr.arpa.zone').write_text(
        '@ 60 SOA a. b. 1 2 3 4 5\n@ 60 NS a.\n1 60 PTR www.example.com.\n')
    found = read(ZoneFileSource('files', str(tmp_path), '.zone'), '0/25.2.0.192.in-addr.arpa.')
    assert len(found) == 3


@pytest.mark.parametrize(('text', 'words'), [
    (None, 'example.com.zone cannot be read: No such file or directory'),
    ('', 'it has no SOA record of example.com.'),
    ('@ 60 SOA a. b. 1 2 3 4 5\n', 'it has no NS records of example.com.'),
    (TEXT[:60], 'line 2 cannot be read: a parenthesis is not closed before the file ends'),
    (TEXT + 'www.example.org. A 192.0.2.1\n', 'line 15 cannot be read: www.example.org. A is not inside the zone'),
])
def test_a_file_that_is_missing_or_wrong_is_no_empty_zone(tmp_path: pathlib.Path, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / 'example.com.zone').write_text(text)
    zone = Zone(ZONE)
    with pytest.raises(SourceError) as caught:
        ZoneFileSource('files', str(tmp_path), '.zone').populate(zone)
    assert words in str(caught.value) and len(zone) == 0


MISTAKEN = """$TTL 300
@ SOA ns1.example.net. hostmaster.example.net. 1 2 3 4 5
www A 192.0.2
  A 192.0.2.1
www.example.org. A 192.0.2.1
mail MX ten mail.example.net.
ftp CNAME www
ftp CNAME mail
ftp TXT "beside"
deep.sub A 192.0.2.2
sub NS ns1.example.net.
$GENERATE 1-2 h$ A 192.0.2.300
"""


def test_all_that_is_wrong_with_a_file_is_told_at_once_with_its_lines(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'example.com.zone').write_text(MISTAKEN)
    zone = Zone(ZONE, sub_zones=[f'sub.{ZONE}'])
    with pytest.raises(SourceError) as caught:
        ZoneFileSource('files', str(tmp_path), '.zone').populate(zone)
    head, *told = str(caught.value).splitlines()
    assert head.endswith('example.com.zone cannot be read: it has these mistakes:') and len(zone) == 0
    begins = ['line 3: ', 'line 5: www.example.org. A is not inside the zone', 'line 6: ',
              'line 8: a second CNAME record of ftp.example.com.', 'line 12: ', 'it has no NS records of example.com.',
              'line 7: ', 'line 9: ', 'line 10: deep.sub.example.com. A belongs to the zone sub.example.com.']
    lines = MISTAKEN.splitlines()
    assert len(told) == len(begins)
    for each, begin in zip(told, begins):
        assert each.strip().startswith(begin)
        if begin.startswith('line '):
            assert lines[int(begin[5:].partition(':')[0]) - 1] in each


def test_a_file_that_is_no_text(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'example.com.').write_bytes(TEXT.encode() + b'www TXT "\xff"\n')
    with pytest.raises(SourceError, match='not a text in UTF-8'):
        read(ZoneFileSource('files', str(tmp_path)))


def test_parts_of_a_zone_and_records_outside_where_that_is_wanted(
        tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / 'example.com.').write_text('www 60 A 192.0.2.1\nwww.example.org. 60 A 192.0.2.1\n')
    part = ZoneFileSource('files', str(tmp_path), check_origin=False)
    zone = Zone(ZONE)
    zone.add_record(rrset(ZONE, 'NS', 60, ['ns1.example.net.']))
    with pytest.raises((SourceError, ZoneError)):
        part.populate(zone)
    assert len(zone) == 1 and part.populate(zone, lenient=True) and len(zone) == 2
    assert 'line 2: www.example.org. A is not inside the zone example.com. and is left out' in caplog.text
