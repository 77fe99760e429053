"""Which names, algorithms and secrets make a TSIG key."""

from __future__ import annotations

import pytest

from designate_pool.config import values
from designate_pool.model import TSIG_ALGORITHMS, TsigKey
from designate_pool.protocol import tsig
from designate_pool.protocol.tcp_client import key_of

SECRET = 'c2VjcmV0'


@pytest.mark.parametrize('algorithm', [*TSIG_ALGORITHMS, 'HMAC-MD5.SIG-ALG.REG.INT', 'HMAC-SHA256.'])
def test_configuration_planner_and_minidns_know_the_same_algorithms(algorithm: str) -> None:
    configured = values.make_key('Key.Example', algorithm, SECRET)
    assert configured.name == 'key.example.'
    assert tsig.key_from(configured) == key_of('key.example.', SECRET, algorithm)


@pytest.mark.parametrize(('key', 'part'), [
    (TsigKey('k.', 'hmac-rot13', SECRET), 'algorithm'),
    # Truncated ones: BIND signs those by hmac-sha256 and cuts the MAC, NSD, Knot and PowerDNS do not know them.
    (TsigKey('k.', 'hmac-sha256-128', SECRET), 'algorithm'), (TsigKey('k.', 'hmac-sha512-256', SECRET), 'algorithm'),
    (TsigKey('k.', 'gss-tsig', SECRET), 'algorithm'), (TsigKey('k..', 'hmac-sha256', SECRET), 'name'),
    (TsigKey('k.', 'hmac-sha256', f'{SECRET}!'), 'secret'), (TsigKey('k.', 'hmac-sha256', ''), 'secret')])
def test_what_makes_no_key_is_told_without_its_secret(key: TsigKey, part: str) -> None:
    with pytest.raises(tsig.InvalidKey, match=f'the {part} of the TSIG key') as caught:
        tsig.key_from(key)
    assert caught.value.part == part and SECRET not in str(caught.value)
    with pytest.raises(ValueError, match=part):
        values.make_key(key.name, key.algorithm, key.secret)


@pytest.mark.parametrize(('one', 'other', 'equal'), [
    ('c2VjcmV0', 'c2VjcmV0', True), ('c2VjcmV0', 'b3RoZXI=', False), ('abc', 'abc', False),
    ('', 'c2VjcmV0', False), ('a key with ä', 'c2VjcmV0', False)])
def test_secrets_are_equal_when_both_decode_to_the_same(one: str, other: str, equal: bool) -> None:
    assert tsig.same_secret(one, other) is equal


@pytest.mark.parametrize('algorithm', ['hmac-md5', 'HMAC-MD5.SIG-ALG.REG.INT', 'hmac-md5.sig-alg.reg.int.'])
def test_an_algorithm_with_two_names_has_one_plain_name(algorithm: str) -> None:
    assert tsig.plain_algorithm(algorithm) == 'hmac-md5'
