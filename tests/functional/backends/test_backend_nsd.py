"""The nsd driver against real NSDs."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator

import dns.rcode
import pytest

from designate_pool.model import Endpoint, Reason
from designate_pool.testing import NOWHERE, KeyedContract, KeyedRig, RemoteContract, TcpRig, UnixRig, a_domain, opened
from designate_pool.testing.contract import ChannelContract
from testing.asking import Asked
from testing.nsd import Nsd, tls_files
from testing.processes import binary, free_port, listens, running, wait_until
from tests.fixtures.nameservers import Primary, zone_text
from tests.fixtures.rigs import ETC, ProcessRig, example_servers, put_in

Start = Callable[..., Nsd]
Keys = Callable[[str], pathlib.Path]
#: The name that takes most characters to write down: 250 octets that are escaped.
ESCAPES = '.'.join(['\\001' * 63] * 3 + ['\\001' * 61]) + '.'


class _NsdRig(ProcessRig):
    """What both kinds of control channel have in common."""

    def holds(self, name: str) -> bool:
        return bool(self.process.holds(name))


class SocketRig(_NsdRig, UnixRig):
    path_option = 'control_socket'

    @property
    def folder(self) -> pathlib.Path:  # type: ignore[override]
        folder: pathlib.Path = self.process.control_socket.parent
        return folder


class TlsRig(_NsdRig, TcpRig, KeyedRig):
    wrong_key_reason = Reason.BAD_TLS
    port_option = 'control_port'
    many = 400  # each that is deleted takes a connection of its own

    def __init__(self, nsd: Nsd, foreign: pathlib.Path) -> None:
        super().__init__(nsd)
        self.wrong_key = {name: tls_files(foreign)[name] for name in ('control_key_file', 'control_cert_file')}


class TestOverTheSocket(RemoteContract):
    @pytest.fixture
    def rig(self, nsd: Start) -> Iterator[SocketRig]:
        rig = SocketRig(nsd())
        yield rig
        assert 'Assertion' not in rig.process.log


class TestOverTls(ChannelContract, KeyedContract):
    @pytest.fixture
    def rig(self, nsd: Start, nsd_keys: Keys) -> TlsRig:
        return TlsRig(nsd(tls=nsd_keys('own')), nsd_keys('foreign'))


def test_create_again_with_another_pattern_takes_effect_and_with_the_same_changes_nothing(
        nsd: Start, primary: Primary) -> None:
    with Primary() as other:
        primary.publish('example.com.', zone_text(5))
        other.publish('example.com.', zone_text(3))
        server = nsd()
        with opened(server.server([primary.endpoint])) as before, opened(server.server([other.endpoint])) as after:
            assert before.create_domain(a_domain()).ok
            wait_until(lambda: server.serial('example.com.') == 5, 'the first contents are served')
            assert after.create_domain(a_domain()).ok
            wait_until(lambda: server.serial('example.com.') == 3, "the other primary's contents are served")
            assert after.create_domain(a_domain()).ok
            assert server.log.count('control cmd: changezone') == 1


def test_a_zone_in_nsd_conf_is_refused_and_its_neighbours_in_the_batch_are_done(nsd: Start) -> None:
    server = nsd(statements='zone:\n    name: "example.com"\n    request-xfr: 127.0.0.1@9 NOKEY')
    batch = [a_domain(name) for name in ('before.example.com.', 'example.com.', 'after.example.com.')]
    with opened(server.server([NOWHERE])) as backend:
        for verb in (backend.create_domains, backend.delete_domains):
            first, second, third = verb(batch)
            assert first.ok and third.ok
            assert 'nsd.conf' in str(second.error)
            assert not second.retryable
        assert backend.list_zones([]).serials == {'example.com.': None}


@pytest.mark.parametrize('tls', [False, True])
def test_a_primary_zone_of_the_operators_is_left_alone(nsd: Start, nsd_keys: Keys, tmp_path: pathlib.Path,
                                                       tls: bool) -> None:
    file = tmp_path / 'own.zone'
    file.write_text('@ 300 IN SOA ns1.example.org. hostmaster.example.com. 7 3600 600 86400 300\n'
                    '@ 300 IN NS ns1.example.org.\n')
    server = nsd(statements=f'pattern:\n    name: "own"\n    zonefile: "{file}"',
                 **{'tls': nsd_keys('own')} if tls else {})
    server.control('addzone', 'example.com', 'own')
    wait_until(lambda: server.serial('example.com.') == 7, 'it is served')
    batch = [a_domain(name) for name in ('before.example.com.', 'example.com.', 'after.example.com.')]
    with opened(server.server([NOWHERE])) as backend:
        for verb in (backend.create_domains, backend.delete_domains):
            first, second, third = verb(batch)
            assert first.ok and third.ok
            assert 'a primary zone that was added by hand' in str(second.error)
        assert backend.list_zones([]).serials == {}
    assert 'pattern: own' in server.control('zonestatus', 'example.com') and server.serial('example.com.') == 7


def test_a_name_that_would_be_forgotten_in_a_restart_is_refused(nsd: Start) -> None:
    with opened(nsd().server([NOWHERE])) as backend:
        kept, lost = backend.create_domains([a_domain('example.com.'), a_domain(ESCAPES)])
        assert kept.ok
        assert 'a restart would lose the zone' in str(lost.error) and not lost.retryable
        assert backend.delete_domain(a_domain(ESCAPES)).ok
        assert set(backend.list_zones([]).serials) == {'example.com.'}


def test_a_pattern_that_is_not_there_is_permanent_and_the_check_says_what_to_do(nsd: Start) -> None:
    with opened(nsd().server(pattern='absent')) as backend:
        result = backend.create_domain(a_domain())
        finding, = backend.check()
    assert result.error == 'addzones example.com: error pattern absent does not exist'
    assert not result.retryable
    assert 'nsd-control reconfig' in finding.advice
    assert finding.serious


def test_check_finds_a_pattern_without_primaries(nsd: Start) -> None:
    server = nsd()
    empty = server.pattern([], name='empty')
    with opened(server.server([Endpoint('192.0.2.10', 5354)], pattern=empty)) as backend:
        finding, = backend.check()
    assert finding.what == 'the pattern empty has no request-xfr: its zones would never be transferred'
    assert 'request-xfr and allow-notify for 192.0.2.10@5354' in finding.advice and finding.serious


def test_check_finds_a_pattern_that_fetches_from_elsewhere(nsd: Start) -> None:
    server = nsd()
    with socket.create_server(('127.0.0.1', 0)) as silent:
        port = silent.getsockname()[1]
        elsewhere = server.pattern([Endpoint('127.0.0.1', port)], name='elsewhere')
        with opened(server.server([Endpoint('192.0.2.10', 5354)], pattern=elsewhere)) as backend:
            finding, = backend.check()
            assert backend.list_zones([]).serials == {}
    assert finding.what == (f'the pattern elsewhere has zones transferred from 127.0.0.1:{port}, which is none of the'
                            ' primaries')
    assert not finding.serious


def test_tls_is_spoken_on_the_socket_too_where_an_address_stands_first(nsd: Start, nsd_keys: Keys) -> None:
    server = nsd(tls=nsd_keys('own'))
    path, without = str(server.control_socket), dict.fromkeys(tls_files(nsd_keys('own')))
    with opened(server.server([NOWHERE], control_socket=path)) as backend:
        assert backend.create_domain(a_domain()).ok
        assert backend.list_zones([]).serials == {'example.com.': None}
    with opened(server.server([NOWHERE], control_socket=path, **without)) as backend:
        result = backend.create_domain(a_domain())
        finding, = backend.check()
    assert 'it may require TLS' in str(result.error) and not result.retryable
    assert 'server_cert_file' in finding.advice


def test_a_server_with_another_certificate_is_not_talked_to(nsd: Start, nsd_keys: Keys) -> None:
    server = nsd(tls=nsd_keys('own'))
    foreign = tls_files(nsd_keys('foreign'))['server_cert_file']
    with opened(server.server([NOWHERE], server_cert_file=foreign)) as backend:
        result = backend.create_domain(a_domain())
    assert 'is not the one in server_cert_file' in str(result.error) and not result.retryable
    assert not server.holds('example.com.')


def test_other_files_are_used_from_the_next_call(nsd: Start, nsd_keys: Keys, tmp_path: pathlib.Path) -> None:
    files = tmp_path / 'files'
    server = nsd(tls=nsd_keys('own'))
    with opened(server.server([NOWHERE], **tls_files(files))) as backend:
        assert 'server_cert_file' in str(backend.ping().error)
        shutil.copytree(nsd_keys('foreign'), files, dirs_exist_ok=True)
        assert not backend.ping().ok
        shutil.copytree(nsd_keys('own'), files, dirs_exist_ok=True)
        assert backend.ping().ok


_UNDER_EVENTLET = '''
import json, sys
from designate_pool import runtime
runtime.patch()
from designate_pool import backends, model
from designate_pool.testing import a_domain
backend = backends.build(model.Server(model.new_id(), 'nsd', '127.0.0.1', options=json.loads(sys.argv[1])))
domains = [a_domain(f'zone{number}.example.') for number in range(100)]
for verb in (backend.create_domains, backend.create_domains):
    assert all(result.ok for result in verb(domains))
assert len(backend.list_zones([]).serials) == 100
assert all(result.ok for result in backend.delete_domains(domains))
print('done')
'''


@pytest.mark.parametrize('tls', [False, True])
def test_under_eventlet(nsd: Start, nsd_keys: Keys, tls: bool) -> None:
    options = dict(nsd(tls=nsd_keys('own') if tls else None).server([NOWHERE]).options)
    done = subprocess.run([sys.executable, '-c', _UNDER_EVENTLET, json.dumps(options)], capture_output=True, text=True,
                          timeout=60, check=False, cwd=ETC.parent)
    assert done.stdout == 'done\n', done.stderr


def test_the_example_runs(nsd_keys: Keys, tmp_path: pathlib.Path) -> None:
    first, second = example_servers('example-nsd.conf', tmp_path, {'/etc/designate-pool/ns1': str(nsd_keys('own'))})
    assert first.tsig_key is not None
    with Primary(keys=[first.tsig_key]) as primary:
        port, control_port = free_port(), free_port()
        (tmp_path / 'nsd.conf').write_text(put_in((ETC / 'example-nsd.nsd.conf').read_text(), {
            '192.0.2.1@53': f'127.0.0.1@{port}', 'interface: 192.0.2.1': 'interface: 127.0.0.1',
            'control-port: 8952': f'control-port: {control_port}', 'username: "nsd"': 'username: ""',
            '/var/lib/nsd': str(tmp_path), '/run/nsd': str(tmp_path), '/etc/nsd': str(nsd_keys('own')),
            '192.0.2.10@5354': f'127.0.0.1@{primary.port}', 'notify: 192.0.2.10': 'notify: 127.0.0.1'}))
        here = dataclasses.replace(first, host='127.0.0.1', port=port, primaries=(primary.endpoint,),
                                   options={**first.options, 'control_port': control_port})
        asked = Asked()
        asked.host, asked.port = here.host, here.port
        primary.publish('example.com.', zone_text(1))
        with (running([binary('nsd'), '-d', '-c', str(tmp_path / 'nsd.conf')], tmp_path / 'log',
                      lambda: listens(control_port)), opened(here) as backend, opened(second)):
            assert backend.check() == []
            assert backend.create_domain(a_domain()).ok
            wait_until(lambda: asked.serial('example.com.') == 1, 'the zone is served')
            primary.publish('example.com.', zone_text(2))
            wait_until(lambda: asked.follows('example.com.', 2, key=first.tsig_key), 'the change is served')
            assert backend.delete_domain(a_domain()).ok
            wait_until(lambda: asked.query('example.com.').rcode() == dns.rcode.REFUSED, 'the zone is gone')
