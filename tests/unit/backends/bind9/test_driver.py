"""What the bind9 driver makes of names and options, without a server."""

from __future__ import annotations

import contextlib
import pathlib
import re
from xml.sax.saxutils import quoteattr

import dns.name
import pytest
from hypothesis import given, strategies as st

from designate_pool.backends.bind9 import driver, named_conf, rndc
from designate_pool.errors import BackendError, InvalidField
from designate_pool.model import Endpoint, TsigKey
from designate_pool.protocol.names_and_rdata import escaped

LABELS = st.lists(st.binary(min_size=1, max_size=63), min_size=0, max_size=3)
NAMES = LABELS.map(lambda labels: dns.name.Name([*labels, b'']))


@given(NAMES)
def test_an_escaped_name_is_that_name_and_nothing_else(name: dns.name.Name) -> None:
    text = escaped(name, named_conf.PLAIN_OCTETS)
    assert re.fullmatch(r'(?:[A-Za-z0-9_.-]|\\[0-9]{3})+', text)
    assert dns.name.from_text(text) == name


@given(NAMES, NAMES, st.integers(1, 50), st.integers(1, 50), st.sampled_from(['_default', 'a', 'b.c']))
def test_no_two_zones_share_a_file(one: dns.name.Name, other: dns.name.Name, first: int, second: int,
                                   view: str) -> None:
    files = {named_conf.file_name(one, view, first), named_conf.file_name(other, view, second)}
    assert len(files) == len({(one, first), (other, second)})


@given(NAMES, st.integers(1, 2 ** 31))
def test_files_have_plain_names(name: dns.name.Name, generation: int) -> None:
    file = named_conf.file_name(name, '_default', generation)
    assert re.fullmatch(r'[a-z0-9_][a-z0-9_.-]*\.[0-9]+\.db', file)
    assert '..' not in file
    assert len(file) < 230


@given(NAMES, NAMES, st.integers(1, 50), st.sampled_from(['', '/var/cache/bind/', 'zones/']))
def test_a_zone_knows_its_files(one: dns.name.Name, other: dns.name.Name, generation: int, folder: str) -> None:
    path = folder + named_conf.file_name(one, 'inside', generation)
    assert named_conf.is_file_of(path, one, 'inside')
    assert named_conf.is_file_of(path, other, 'inside') == (one == other)
    assert not named_conf.is_file_of(path, one, '_default')


SHOWN = r'''zone "a\"\;{ file \"x\"; }.example.com" IN inside { type slave; file "zones/a b.db";
  allow-transfer  { 192.0.2.1/32; key "k{"; }; primaries { 192.0.2.9 port 53 key "k{"; }; };'''


def test_a_zone_that_named_shows() -> None:
    held = named_conf.read_zone(SHOWN)
    assert named_conf.zone_type(held) == 'secondary'
    assert named_conf.zone_file(held) == 'zones/a b.db'
    assert [statement[0] for statement in held] == ['type', 'file', 'allow-transfer', 'primaries']
    source = named_conf.primaries([Endpoint('192.0.2.9', 53)], TsigKey('k{', 'hmac-sha256', 'AAAA'))
    assert set(named_conf.secondary(source, 'zones/a b.db')[1:]) < set(held)
    assert named_conf.read_zone('zone "a" ' + named_conf.written(held) + ';') == held


@pytest.mark.parametrize('text', ['', 'zone', 'zone "a" { };', 'zone "a" { type secondary; ', 'zone "a" } {',
                                  'not found', 'zone "a" { type secondary }', 'view "a" { type secondary; };'])
def test_what_is_no_zone_is_an_error(text: str) -> None:
    with pytest.raises(BackendError, match='something else than a zone statement'):
        named_conf.read_zone(text)


@pytest.mark.parametrize('name, file', [
    ('example.com.', 'example.com.1.db'),
    ('EXAMPLE.com.', 'example.com.1.db'),
    ('_sip._tcp.example.com.', '_sip._tcp.example.com.1.db'),
])
def test_usual_files_are_named_for_their_zone(name: str, file: str) -> None:
    assert named_conf.file_name(dns.name.from_text(name), '_default', 1) == file


KEY = rndc.RndcKey.make('rndc-key', 'hmac-sha256', 'c2VjcmV0')
TABLES = st.recursive(st.dictionaries(st.text('abc_', max_size=9), st.binary(max_size=40), max_size=4),
                      lambda inner: st.dictionaries(st.text('abc_', max_size=9), st.binary(max_size=9) | inner,
                                                    max_size=4), max_leaves=12)


@given(TABLES)
def test_tables_survive_the_wire(table: rndc.Table) -> None:
    assert rndc.unpack(rndc.pack(table)) == table


@given(st.binary(max_size=200))
def test_junk_is_not_trusted(wire: bytes) -> None:
    with pytest.raises(BackendError, match='is not signed correctly'):
        rndc._verified(KEY, wire)


@given(TABLES, st.integers(0, 10000))
def test_one_wrong_octet_is_found(table: rndc.Table, where: int) -> None:
    signed = rndc.pack(table)
    body = rndc.pack({'_auth': rndc._signature(KEY, signed)}) + signed
    assert rndc._verified(KEY, body) == table
    where %= len(body)
    with pytest.raises(BackendError, match='is not signed correctly'):
        rndc._verified(KEY, body[:where] + bytes([body[where] ^ 1]) + body[where + 1:])


def test_deep_nesting_is_an_error() -> None:
    wire = b''
    for _ in range(20000):
        wire = b'\0\2' + len(wire).to_bytes(4, 'big') + wire
    with pytest.raises(ValueError):
        rndc.unpack(wire)


GENERATED = '''\
key "rndc-key" {
\talgorithm hmac-sha256;
\tsecret "c2VjcmV0";
};
'''


@pytest.mark.parametrize('text, name', [
    (GENERATED, None),
    (GENERATED, 'RNDC-KEY'),
    ('# key "other" { algorithm hmac-md5; secret "AAAA"; };\n' + GENERATED, None),
    ('/* key "other" {\n} */ // more\n' + GENERATED.replace('\n\t', ' '), None),
    ('key other { algorithm hmac-md5; secret "b3RoZXI="; };\n' + GENERATED, 'rndc-key'),
    ('options { default-port 953; };\nkey rndc-key { secret c2VjcmV0; ALGORITHM HMAC-SHA256; };', None),
])
def test_key_files(tmp_path: pathlib.Path, text: str, name: str | None) -> None:
    (tmp_path / 'rndc.key').write_text(text)
    assert rndc.RndcKey.read(str(tmp_path / 'rndc.key'), name) == KEY


def test_a_secret_that_looks_like_a_comment(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'rndc.key').write_text(GENERATED.replace('c2VjcmV0', 'ab//cd=='))
    assert rndc.RndcKey.read(str(tmp_path / 'rndc.key')).secret == b'i\xbf\xffq'


@pytest.mark.parametrize('text, name, said', [
    ('', None, 'does not contain a key'),
    (GENERATED, 'other', 'does not contain a key other'),
    (GENERATED.replace('hmac-sha256', 'hmac-crc32'), None, "rndc_key_algorithm: 'hmac-crc32' is unknown"),
    (GENERATED.replace('c2VjcmV0', '!!!'), None, 'rndc_key_secret: it is not Base64'),
    (GENERATED.replace('\tsecret "c2VjcmV0";\n', ''), None, 'does not contain a key'),
])
def test_key_files_that_hold_no_key(tmp_path: pathlib.Path, text: str, name: str | None, said: str) -> None:
    (tmp_path / 'rndc.key').write_text(text)
    with pytest.raises(InvalidField, match=said):
        rndc.RndcKey.read(str(tmp_path / 'rndc.key'), name)


def test_a_key_file_that_is_not_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(InvalidField, match='rndc_key_file: .* cannot be read'):
        rndc.RndcKey.read(str(tmp_path / 'none'))


def test_the_secret_stays_out_of_texts() -> None:
    assert 'secret' not in repr(KEY)


def zone(name: str, serial: int | str = 1, kind: str = 'secondary', rdclass: str = 'IN') -> str:
    return (f'<zone name={quoteattr(name)} rdataclass="{rdclass}"><type>{kind}</type><serial>{serial}</serial>'
            '<loaded>2026-01-01T00:00:00Z</loaded></zone>')


ANSWER = f'''<?xml version="1.0" encoding="UTF-8"?>
<?xml-stylesheet type="text/xsl" href="/bind9.xsl"?>
<statistics version="3.13"><server><version>a "&lt;[ strange" one</version></server><views>
<view name="other"><zones>{zone('example.com', 5)}</zones></view>
<view name="inside"><zones>{zone('EXAMPLE.com', 4294967295)}{zone('empty.example', '-')}
{zone('own.example', 3, 'primary')}{zone('10.IN-ADDR.ARPA', 0, 'builtin')}{zone('version.bind', 0, 'secondary', 'CH')}
{zone('old.example', 2, 'slave')}{zone('a' + chr(92) + '"' + chr(92) + ' <&>.example', 7)}{zone('.', 8)}</zones></view>
<view name="none"/></views></statistics>'''.encode()
ZONES = {'example.com.': 4294967295, 'empty.example.': None, 'own.example.': 3, 'old.example.': 2,
         'a\\"\\032<&>.example.': 7, '.': 8}


def read(octets: bytes, view: str, size: int = 64) -> dict[str, int | None]:
    pieces = (octets[start:start + size] for start in range(0, len(octets), size))
    return {name: serial for name, serial, is_primary in driver._zones(pieces, view)
            if is_primary is (name == 'own.example.')}


@given(st.integers(1, 400))
def test_zones_of_the_view_however_the_answer_is_cut(size: int) -> None:
    assert read(ANSWER, 'inside', size) == ZONES
    assert read(ANSWER, 'other', size) == {'example.com.': 5}
    assert read(ANSWER, 'none', size) == {}


def test_a_view_that_is_not_there() -> None:
    with pytest.raises(BackendError, match="no view 'outside', but has other, inside, none"):
        read(ANSWER, 'outside')


@given(st.integers(0, len(ANSWER) - 1))
def test_an_answer_that_is_cut_short_is_no_answer(length: int) -> None:
    with pytest.raises(driver.MALFORMED):
        read(ANSWER[:length], 'inside')


@given(st.integers(0, len(ANSWER) - 1), st.sampled_from([b'<', b'>', b'&', b'"', b'/', b'x', b'\xff']))
def test_a_wrong_character_is_an_error_or_harmless(where: int, character: bytes) -> None:
    with contextlib.suppress(BackendError, *driver.MALFORMED):
        read(ANSWER[:where] + character + ANSWER[where + 1:], 'inside')


@pytest.mark.parametrize('text', ['{"views": []}', '<html>', '<view name="inside"><zone name="a"/></view>',
                                  '<view name="inside"><zones><zone rdataclass="IN"><type>slave</type></zone></zones>'
                                  '</view>',
                                  f'<view name="inside"><zones>{zone("a..b")}</zones></view>',
                                  f'<view name="inside"><zones>{zone("a", "x")}</zones></view>'])
def test_another_shape_is_malformed(text: str) -> None:
    with pytest.raises(driver.MALFORMED):
        read(text.encode(), 'inside')


@pytest.mark.parametrize('text', ['a', '<a/>'])
def test_what_is_no_zone_is_not_gathered(text: str) -> None:
    with pytest.raises(ValueError, match='octets without a zone'):
        read(b'<statistics>' + text.encode() * (driver.LARGEST_ZONE // len(text)), 'inside', 1 << 16)


@pytest.mark.parametrize('url', ['https://192.0.2.53:8053', '192.0.2.53:8053', 'http://', 'http://192.0.2.53:x',
                                 'http://[::1', 'http://192.0.2.53/a b', 'http://192.0.2.53/?a', 'file:///etc/passwd'])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(InvalidField, match='statistics_url'):
        driver.StatisticsChannel(url)
