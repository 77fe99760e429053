"""``config check`` of a PowerDNS that is not set up as the pool needs it."""

from __future__ import annotations

from collections.abc import Callable

import dns.rcode
import pytest

from designate_pool.model import TsigKey
from designate_pool.testing import NOWHERE, a_domain, opened
from testing.pdns import PowerDns
from tests.fixtures.rigs import KEY

Start = Callable[..., PowerDns]


@pytest.mark.parametrize(('settings', 'what', 'advice'), [
    ({'secondary': 'no'}, 'secondary=no: PowerDNS transfers no zones', 'set secondary=yes and restart PowerDNS'),
    ({'allow-unsigned-notify': 'no'}, 'allow-unsigned-notify=no, and the section has no tsig_key', 'give the section'),
    ({'allow-notify-from': '192.0.2.0/24, ::/0'}, 'allow-notify-from does not have 127.0.0.1', 'add 127.0.0.1 to'),
])
def test_check_finds_a_setting(powerdns: Start, settings: dict[str, str], what: str, advice: str) -> None:
    server = powerdns(settings=settings)
    with opened(server.server([NOWHERE])) as backend:
        [finding] = backend.check()
        assert backend.create_domain(a_domain()).ok
    assert what in finding.what
    assert advice in finding.advice
    assert finding.serious
    assert server.notify('example.com.').rcode() == dns.rcode.REFUSED


@pytest.mark.parametrize(('settings', 'what', 'serious'), [
    ({}, 'ixfr = true and gsqlite3-dnssec=yes: PowerDNS does not answer for records that came by IXFR', True),
    ({'gsqlite3-dnssec': 'no'}, 'ixfr = true: PowerDNS answers NXDOMAIN for a name without records', False),
])
def test_check_finds_that_changes_alone_are_fetched(powerdns: Start, settings: dict[str, str], what: str,
                                                    serious: bool) -> None:
    server = powerdns(settings=settings)
    with opened(server.server([NOWHERE], ixfr=True)) as backend:
        [finding] = backend.check()
    assert what in finding.what and 'set ixfr = false' in finding.advice
    assert finding.serious == serious


@pytest.mark.parametrize(('settings', 'key'), [
    ({'allow-unsigned-notify': 'no'}, KEY),
    ({'allow-notify-from': '192.0.2.0/24, ::/0'}, KEY),
    ({'allow-notify-from': '!127.0.0.0/8, 127.0.0.1'}, None),
])
def test_check_finds_nothing_where_notify_is_accepted(powerdns: Start, settings: dict[str, str],
                                                      key: TsigKey | None) -> None:
    server = powerdns(settings=settings, keys=[KEY])
    with opened(server.server([NOWHERE], tsig_key=key)) as backend:
        assert backend.check() == []
        assert backend.create_domain(a_domain()).ok
    assert server.notify('example.com.', key=key).rcode() == dns.rcode.NOERROR


@pytest.mark.parametrize(('key', 'what'), [
    (TsigKey(KEY.name, KEY.algorithm, 'YW5vdGhlcg=='), 'another secret for the TSIG key transfer.example'),
    (TsigKey(KEY.name, 'hmac-sha512', KEY.secret), 'with the algorithm hmac-sha512, not hmac-sha256')])
def test_check_finds_another_key_of_the_same_name(powerdns: Start, key: TsigKey, what: str) -> None:
    server = powerdns(keys=[key])
    with opened(server.server([NOWHERE], tsig_key=KEY)) as backend:
        [finding] = backend.check()
    assert what in finding.what
    assert not any(secret in str(finding) for secret in (key.secret, KEY.secret))


def test_check_of_an_api_that_is_off(powerdns: Start) -> None:
    server = powerdns(settings={'api': 'no'})
    with opened(server.server([NOWHERE])) as backend:
        assert 'lacks api=yes' in backend.check()[0].what
        assert not backend.delete_domain(a_domain()).ok


def test_check_of_an_api_that_does_not_let_us_in(powerdns: Start) -> None:
    server = powerdns(settings={'webserver-allow-from': '192.0.2.1'})
    with opened(server.server([NOWHERE])) as backend:
        assert 'webserver-allow-from' in backend.check()[0].advice
