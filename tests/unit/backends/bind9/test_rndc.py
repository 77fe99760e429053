"""The protocol of rndc, without a server."""

from __future__ import annotations

import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool.backends.bind9 import rndc
from designate_pool.errors import BackendError, InvalidField

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
