"""What the bind9 driver makes of names and options, without a server."""

from __future__ import annotations

import re

import dns.name
import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool.backends.bind9 import named_conf
from designate_pool.errors import BackendError
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
