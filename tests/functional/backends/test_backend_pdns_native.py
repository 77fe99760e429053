"""The pdns-native driver against real PowerDNS servers."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from designate_pool.backends.records import RecordBackend
from designate_pool.model import Server
from designate_pool.testing import KeyedContract, RemoteContract, a_domain, opened
from testing.pdns import PowerDns
from tests.fixtures.fed_servers import feed
from tests.fixtures.rigs import ETC, PdnsApiRig, example_servers
from tests.functional.backends.test_backend_pdns import UNSUPPORTED, two_servers
from tests.functional.planner.test_target_pdns import a_zone, ask, there

Start = Callable[..., PowerDns]


def native(powerdns: PowerDns, **facts: Any) -> Server:
    return dataclasses.replace(powerdns.server(**facts), driver='pdns-native')


class NativeRig(PdnsApiRig):
    refused = dict.fromkeys(UNSUPPORTED, 'contains unsupported characters')

    def server(self, **facts: Any) -> Server:
        return native(self.process, **facts)


@pytest.fixture
def rig(powerdns: Start) -> NativeRig:
    return NativeRig(powerdns())


class TestContract(RemoteContract, KeyedContract):
    pass


def test_options_of_the_section_reach_the_zones(powerdns: Start) -> None:
    server = powerdns()
    with opened(native(server, kind='Primary', delete_pcent_threshold=0.1)) as backend:
        assert feed(backend, a_zone('www A 192.0.2.1\n'))[0].ok
        assert isinstance(backend, RecordBackend) and backend.provider.delete_pcent_threshold == 0.1
    assert ask(server, 'GET', '/zones/example.com.?rrsets=false')['kind'] == 'Master'
    assert there(server, 'A')['records'] == [{'content': '192.0.2.1', 'disabled': False}]


@pytest.mark.parametrize(('settings', 'kind', 'what', 'advice'), [
    ({'cache-ttl': '20'}, 'Native', 'cache-ttl=20: PowerDNS may give outdated answers', 'query-cache-ttl=0'),
    ({'primary': 'no'}, 'Primary', 'primary=no: it sends the secondaries of its zones no NOTIFY', 'set primary=yes'),
])
def test_check_reads_the_settings(powerdns: Start, settings: dict[str, str], kind: str, what: str, advice: str) -> None:
    with opened(native(powerdns(settings=settings), kind=kind)) as backend:
        found, = backend.check()
    assert found.what.startswith(what) and advice in found.advice
    assert found.serious == (kind == 'Primary')


def test_check_of_an_api_that_is_off_or_shut(powerdns: Start) -> None:
    with opened(native(powerdns(settings={'api': 'no'}))) as backend:
        assert 'lacks api=yes' in backend.check()[0].what
    with opened(native(powerdns('ns2'), api_key='another')) as backend:
        assert backend.check()[0].advice == 'give the section the api-key of its pdns.conf'
    with opened(native(powerdns('ns3', settings={'webserver-allow-from': '192.0.2.10'}))) as backend:
        assert 'webserver-allow-from' in backend.check()[0].advice


def test_the_example_runs(powerdns: Start, tmp_path: pathlib.Path) -> None:
    """Both files together: a zone is made, fed, served and deleted."""
    text = (ETC / 'example-pdns-native.pdns.conf').read_text()
    shown = (line.partition('#')[0].strip() for line in text.splitlines())
    settings = {name.strip(): value.strip() for name, _, value in (line.partition('=') for line in shown if line)}
    ours = ('gsqlite3-database', 'local-', 'setuid', 'setgid', 'webserver-address', 'webserver-port',
            'webserver-allow-from')
    kept: dict[str, str | None] = {
        name: value for name, value in settings.items() if not name.startswith(ours)}
    kept |= dict.fromkeys(('secondary', 'retrieval-threads'))
    servers = [powerdns(name, settings=kept) for name in ('ns1', 'ns2')]
    shown_servers = example_servers('example-pdns-native.conf', tmp_path, two_servers(*servers))
    for configured, server in zip(shown_servers, servers, strict=True):
        with opened(configured) as backend:
            assert backend.check() == []
            assert feed(backend, a_zone('www A 192.0.2.1\nold DNAME example.org.\n', 4))[0].ok
            assert server.serial('example.com.') == 4
            assert server.texts('a.old.example.com.', 'CNAME') == ['a.example.org.']
            assert backend.delete_domain(a_domain()).ok
        assert server.zones() == {}
