"""The pure parts of the pdns driver."""

from __future__ import annotations

import re
from typing import Any

import dns.name
import pytest
from hypothesis import given, strategies as st

from designate_pool import backends
from designate_pool.backends.pdns import misfits, misfits_of_key
from designate_pool.model import Endpoint, Server, TsigKey
from designate_pool.powerdns import api_id, api_text
from designate_pool.testing import ODD_NAMES

PRIMARIES = (Endpoint('192.0.2.10', 53),)
KEY = TsigKey('transfer.example.', 'hmac-sha256', 'c2VjcmV0')


def server(**facts: Any) -> Server:
    fields = {name: facts.pop(name) for name in ('host', 'primaries', 'tsig_key') if name in facts}
    return Server(id='1' * 32, driver='pdns', **{'host': '192.0.2.1', 'primaries': PRIMARIES} | fields,
                  options={'api_key': 'only-for-us'} | facts)


labels = st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=5)


@given(st.one_of(labels, st.sampled_from([dns.name.from_text(name).labels[:-1] for name in ODD_NAMES.values()])))
def test_no_name_breaks_out_and_none_is_lost(found: Any) -> None:
    name = dns.name.Name([*found, b''])
    in_path = api_id(name)
    assert re.fullmatch(r'[A-Za-z0-9.=-]+', in_path)
    assert '..' not in in_path and not in_path.startswith('.')
    decoded = re.sub('=([0-9A-F]{2})', lambda digits: chr(int(digits[1], 16)), in_path)
    assert decoded == api_text(name)
    assert dns.name.from_text(decoded) == name


@pytest.mark.parametrize(('host', 'url'), [
    ('192.0.2.1', 'http://192.0.2.1:8081'), ('2001:db8::1', 'http://[2001:db8::1]:8081'),
    ('ns1.example.com', 'http://ns1.example.com:8081')])
def test_api_is_on_the_host_when_nothing_is_said(host: str, url: str) -> None:
    assert backends.build(server(host=host))._api.url == url  # type: ignore[attr-defined]


@pytest.mark.parametrize(('settings', 'words'), [
    ({'secondary': 'yes', 'slave': 'no'}, []),
    ({'secondary': 'no', 'slave': 'yes'}, ['secondary=no']),
    ({'slave': 'no'}, ['slave=no']),
    ({'slave': 'yes'}, []),
    ({'secondary': 'yes', 'allow-unsigned-notify': 'no'}, ['allow-unsigned-notify=no']),
    ({'cache-ttl': '0', 'query-cache-ttl': '0', 'negquery-cache-ttl': '0'}, []),
    ({'cache-ttl': '20', 'query-cache-ttl': '0', 'negquery-cache-ttl': '60'}, ['cache-ttl=20, negquery-cache-ttl=60:']),
    ({'allow-notify-from': '0.0.0.0/0,::/0'}, []),
    ({'allow-notify-from': '192.0.2.10'}, []),
    ({'allow-notify-from': '192.0.2.0/24, !192.0.2.10'}, ['does not have 192.0.2.10']),
    ({'allow-notify-from': '!192.0.2.0/24 192.0.2.10'}, []),
    ({'allow-notify-from': '::/0'}, ['does not have 192.0.2.10']),
    ({'allow-notify-from': ''}, ['does not have 192.0.2.10']),
    ({}, []),
])
def test_settings_that_keep_an_unsigned_server_from_following(settings: dict[str, str], words: list[str]) -> None:
    found = list(misfits(settings, server()))
    assert len(found) == len(words)
    assert all(word in finding.what for word, finding in zip(words, found))


def test_signed_notify_needs_no_leave() -> None:
    settings = {'secondary': 'yes', 'allow-unsigned-notify': 'no', 'allow-notify-from': '::/0'}
    assert list(misfits(settings, server(tsig_key=KEY))) == []


@pytest.mark.parametrize(('held', 'words'), [
    ({'algorithm': 'hmac-sha256', 'key': 'c2VjcmV0'}, None),
    ({'algorithm': 'HMAC-SHA256.', 'key': 'c2Vj cmV0'}, None),
    ({'algorithm': 'hmac-sha1', 'key': 'c2VjcmV0'}, 'with the algorithm hmac-sha1, not hmac-sha256'),
    ({'algorithm': 'hmac-sha256', 'key': 'b3RoZXI='}, 'another secret for the TSIG key transfer.example'),
    ({'algorithm': 'hmac-sha256', 'key': 'x'}, 'another secret'),
    (None, 'has no TSIG key transfer.example'),
])
def test_key_that_the_server_holds(held: Any, words: str | None) -> None:
    found = list(misfits_of_key(held, KEY))
    if words is None:
        assert found == []
    else:
        [finding] = found
        assert words in finding.what
        assert finding.advice == 'on its host: pdnsutil import-tsig-key transfer.example hmac-sha256 SECRET'


def test_the_old_algorithm_goes_by_its_short_name_there() -> None:
    key = TsigKey(KEY.name, 'hmac-md5.sig-alg.reg.int', KEY.secret)
    assert list(misfits_of_key({'algorithm': 'hmac-md5', 'key': KEY.secret}, key)) == []
