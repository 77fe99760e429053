"""What the bind9 driver makes of names and options, without a server."""

from __future__ import annotations

import re
from typing import Any

import dns.name
import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool import backends
from designate_pool.backends import bind9
from designate_pool.errors import InvalidField
from designate_pool.model import Endpoint, Server, TsigKey, new_id
from tests.unit.backends.contract import ODD_NAMES, a_domain

LABELS = st.lists(st.binary(min_size=1, max_size=63), min_size=0, max_size=3)
NAMES = LABELS.map(lambda labels: dns.name.Name([*labels, b'']))


@given(NAMES)
def test_an_escaped_name_is_that_name_and_nothing_else(name: dns.name.Name) -> None:
    text = bind9._escaped(name)
    assert re.fullmatch(r'(?:[A-Za-z0-9_.-]|\\[0-9]{3})+', text)
    assert dns.name.from_text(text) == name


@given(NAMES, NAMES, st.integers(1, 50), st.integers(1, 50), st.sampled_from(['_default', 'a', 'b.c']))
def test_no_two_zones_share_a_file(one: dns.name.Name, other: dns.name.Name, first: int, second: int,
                                   view: str) -> None:
    files = {bind9.file_name(one, view, first), bind9.file_name(other, view, second)}
    assert len(files) == len({(one, first), (other, second)})


@given(NAMES, st.integers(1, 2 ** 31))
def test_files_have_plain_names(name: dns.name.Name, generation: int) -> None:
    file = bind9.file_name(name, '_default', generation)
    assert re.fullmatch(r'[a-z0-9_][a-z0-9_.-]*\.[0-9]+\.db', file)
    assert '..' not in file
    assert len(file) < 230


@pytest.mark.parametrize('name, file', [
    ('example.com.', 'example.com.1.db'),
    ('EXAMPLE.com.', 'example.com.1.db'),
    ('_sip._tcp.example.com.', '_sip._tcp.example.com.1.db'),
])
def test_usual_files_are_named_for_their_zone(name: str, file: str) -> None:
    assert bind9.file_name(dns.name.from_text(name), '_default', 1) == file


@pytest.mark.parametrize('what', ['255 octets', 'slashes', 'escaped dot', 'quotation mark', 'option'])
def test_odd_files_are_named_by_hash(what: str) -> None:
    assert re.fullmatch('[0-9a-f]{64}[.]1[.]db', bind9.file_name(dns.name.from_text(ODD_NAMES[what]), '_default', 1))


def build(**options: Any) -> None:
    fields = {name: options.pop(name) for name in ('primaries', 'tsig_key') if name in options}
    backends.build(Server(new_id(), 'bind9', '192.0.2.1', **fields, options={'rndc_key_secret': 'c2VjcmV0'} | options))


@pytest.mark.parametrize('options, said', [
    ({'rndc_key_secret': None}, 'rndc_key_file: exactly one of rndc_key_file and rndc_key_secret is needed'),
    ({'rndc_key_file': '/etc/bind/rndc.key'}, 'rndc_key_file: exactly one of'),
    ({'rndc_key_secret': 'no base64!'}, 'rndc_key_secret: it is not Base64'),
    ({'rndc_key_algorithm': 'hmac-crc32'}, "rndc_key_algorithm: 'hmac-crc32' is unknown"),
    ({'view': 'a" { };'}, 'view: it may hold letters'),
    ({'zone_file_folder': 'a"; };'}, 'zone_file_folder: it may hold printable ASCII'),
    ({'primaries': (Endpoint('ns1.example.com', 53),)}, "primaries: 'ns1.example.com' is not an IP address"),
    ({'tsig_key': TsigKey('a" {', 'hmac-sha256', 'AAAA'), 'primaries': (Endpoint('192.0.2.9', 53),)}, 'tsig_key: '),
])
def test_options_that_cannot_work_are_named(options: dict[str, Any], said: str) -> None:
    build()
    with pytest.raises(InvalidField, match=re.escape(said)):
        build(**options)


def test_no_primaries_is_permanent() -> None:
    backend = backends.build(Server(new_id(), 'bind9', '192.0.2.1', options={'rndc_key_secret': 'c2VjcmV0'}))
    result = backend.create_domain(a_domain())
    assert 'no primaries' in str(result.error)
    assert not result.retryable
