"""The octodns driver: real servers behind octoDNS's own providers, alone and in a running pool."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from designate_pool.model import Server, new_id
from designate_pool.planner.targets.fake import zone_of
from designate_pool.planner.zone.zone import Zone
from designate_pool.testing import a_domain, opened
from testing.bind import Named
from testing.pdns import PowerDns
from tests.fixtures.fed_servers import feed
from tests.fixtures.rigs import ETC, example_servers
from tests.fixtures.updates import KEY, NEW, named_with

Start = Callable[..., PowerDns]
#: octodns-bind and octodns-powerdns use what octoDNS 1.22 calls old.
pytestmark = pytest.mark.filterwarnings('ignore::DeprecationWarning')
NAME = 'example.com.'
PDNS = 'octodns_powerdns.PowerDnsProvider'
SOA = '@ 300 SOA ns1.example.net. hostmaster.example.com. 7 3600 600 86400 300\n@ 300 NS ns1.example.net.\n'


def settings(server: PowerDns) -> str:
    return f'{{host: {server.host}, port: {server.api_port}, api_key: {server.api_key}}}'


def fed(server: PowerDns, **options: Any) -> Server:
    """A PowerDNS as a server of a pool, through octoDNS."""
    return Server(id=new_id(), driver='octodns', host=server.host, port=server.port, call_timeout=10,
                  options={'class': PDNS, 'settings': settings(server)} | options)


def zone(text: str) -> Zone:
    return zone_of(NAME, SOA + text)


def test_a_zone_is_fed_changed_listed_and_deleted(powerdns: Start) -> None:
    server = powerdns()
    with opened(fed(server)) as backend:
        assert backend.list_zones([NAME]).serials == {}
        for number in (1, 2):
            result, done = feed(backend, zone(f'www 60 A 192.0.2.{number}\n'))
            assert result.ok and done is not None and done.ok
            assert feed(backend, zone(f'www 60 A 192.0.2.{number}\n'))[1] is None
            assert server.texts('www.example.com.', 'A') == [f'192.0.2.{number}']
        listing = backend.list_zones([NAME])
        assert listing.complete and listing.serials == {NAME: None}
        for _ in ('once', 'again'):
            assert backend.delete_domain(a_domain()).ok
            assert server.texts('www.example.com.', 'A') == []
        assert backend.delete_domain(a_domain('never.example.com.')).ok
        assert not backend.capabilities.keeps_serial and backend.capabilities.fed_by_records


def test_a_server_that_dies_and_comes_back_empty(powerdns: Start) -> None:
    server = powerdns()
    with opened(fed(server)) as backend:
        assert feed(backend, zone('www 60 A 192.0.2.1\n'))[0].ok
        server.kill()
        result, done = feed(backend, zone('www 60 A 192.0.2.1\n'))
        assert result.unreachable and result.retryable and done is None
        assert backend.ping().unreachable and backend.list_zones([NAME]).result.unreachable
        assert backend.delete_domain(a_domain()).unreachable
        server.start()
        assert backend.ping().ok
        assert feed(backend, zone('www 60 A 192.0.2.1\n'))[1] is None
        server.forget_zones()
        assert feed(backend, zone('www 60 A 192.0.2.1\n'))[0].ok
        assert server.texts('www.example.com.', 'A') == ['192.0.2.1']


def test_a_server_that_cannot_list_its_zones_is_asked_for_each(
        named: Callable[..., Named], tmp_path: pathlib.Path) -> None:
    server = named_with(named, tmp_path, {NAME: NEW.format(serial=5)})
    text = (f'{{host: {server.host}, port: {server.port}, key_name: {KEY.name}, key_secret: "{KEY.secret}", '
            f'key_algorithm: {KEY.algorithm}}}')
    known = Server(id=new_id(), driver='octodns', host=server.host, port=server.port, call_timeout=5,
                   options={'class': 'octodns_bind.Rfc2136Provider', 'settings': text})
    with opened(known) as backend:
        assert backend.ping().ok
        result, done = feed(backend, zone('www 60 A 192.0.2.1\n'))
        assert result.ok and done is not None and done.ok
        listing = backend.list_zones([NAME])
        assert not listing.complete and listing.serials == {NAME: None}
        assert backend.ping().ok
        server.stop()
        assert backend.ping().unreachable
        result, _ = feed(backend, zone('www 60 A 192.0.2.2\n'))
        assert result.unreachable
        server.start()
        assert feed(backend, zone('www 60 A 192.0.2.2\n'))[0].ok
        assert server.texts('www.example.com.', 'A') == ['192.0.2.2']


def test_check_asks_whether_the_provider_answers(powerdns: Start) -> None:
    server = powerdns()
    with opened(fed(server)) as backend:
        assert backend.check() == []
        server.stop()
        found, = backend.check()
        assert 'refused' in found.what and 'runs' in found.advice
    server.start()
    with opened(fed(server, settings=settings(server).replace(server.api_key, 'another'))) as backend:
        found, = backend.check()
        assert found.what.startswith('the provider does not answer: 401') and 'the page of the driver' in found.advice
        assert 'another' not in found.what


def test_the_example_runs(powerdns: Start, named: Callable[..., Named], tmp_path: pathlib.Path,
                          monkeypatch: pytest.MonkeyPatch) -> None:
    """A zone is fed to both of its servers, served and deleted."""
    pdns = powerdns()
    text = (ETC / 'example-octodns.named.conf').read_text()
    (tmp_path / 'ns2').mkdir()
    zone_file = tmp_path / 'ns2' / 'example.com.zone'
    zone_file.write_text(NEW.format(serial=1))
    statements = text[text.index('key "'):].replace('/var/lib/bind/example.com.zone', str(zone_file))
    bind = named('ns2', statements=statements)
    monkeypatch.setitem(os.environ, 'PDNS_API_KEY', pdns.api_key)
    configured = example_servers('example-octodns.conf', tmp_path, {
        '{host: 192.0.2.1, ': f'{{host: {pdns.host}, port: {pdns.api_port}, ',
        '{host: 198.51.100.1, ': f'{{host: {bind.host}, port: {bind.port}, '})
    assert [each.host for each in configured] == ['192.0.2.1', '198.51.100.1']
    for each, server in zip(configured, (pdns, bind), strict=True):
        with opened(each) as backend:
            assert backend.check() == []
            result, done = feed(backend, zone('www 60 A 192.0.2.1\n'))
            assert result.ok and done is not None and done.ok, result
            assert server.texts('www.example.com.', 'A') == ['192.0.2.1']
            assert backend.delete_domain(a_domain()).ok
            assert server.texts('www.example.com.', 'A') == []
