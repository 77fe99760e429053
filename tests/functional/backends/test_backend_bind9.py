"""The bind9 driver against real BINDs."""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from designate_pool.backends import base
from designate_pool.backends.bind9 import rndc
from designate_pool.model import Finding, TsigKey
from designate_pool.testing import NOWHERE, KeyedContract, KeyedRig, RemoteContract, TcpRig, a_domain, opened
from testing.bind import Named
from testing.processes import free_port, patience, wait_until
from tests.fixtures.nameservers import Primary, zone_text
from tests.fixtures.rigs import ETC, ProcessRig, example_servers, put_in

Start = Callable[..., Named]


class BindRig(ProcessRig, TcpRig, KeyedRig):
    wrong_key = {'rndc_key_file': None, 'rndc_key_secret': 'bm90IHRoZSBrZXk='}
    port_option = 'rndc_port'


@pytest.fixture
def rig(named: Start) -> Iterator[BindRig]:
    rig = BindRig(named())
    yield rig
    assert 'assertion failure' not in rig.process.log


class TestContract(RemoteContract, KeyedContract):
    pass


@pytest.mark.parametrize('algorithm', rndc.ALGORITHMS)
def test_every_algorithm(named: Start, algorithm: str) -> None:
    server = named(rndc_algorithm=algorithm)
    options: dict[str, Any] = {'rndc_key_file': None, 'rndc_key_algorithm': algorithm,
                               'rndc_key_secret': server.rndc_secret}
    with opened(server.server([NOWHERE])) as by_file, opened(server.server([NOWHERE], **options)) as by_secret:
        assert by_file.ping().ok
        assert by_secret.ping().ok


def is_stopped(pid: int) -> bool:
    return all(path.read_text().rpartition(')')[2].split()[0] == 'T'
               for path in pathlib.Path(f'/proc/{pid}/task').glob('*/stat'))


def test_command_that_nobody_waits_for_any_more_is_not_carried_out(named: Start) -> None:
    server = named()
    with opened(server.server([NOWHERE], call_timeout=1.0)) as backend:
        assert backend.ping().ok  # so that there is a connection for the next command
        os.kill(server.pid, signal.SIGSTOP)
        try:
            # The thread that takes the signal stops the others, which go on until it has had its turn.
            wait_until(lambda: is_stopped(server.pid), 'all threads of named have stopped')
            result = backend.create_domain(a_domain())
            given_up = time.time()
            assert result.unreachable
            wait_until(lambda: time.time() > given_up + 2, 'the command has expired')
        finally:
            os.kill(server.pid, signal.SIGCONT)
        wait_until(lambda: 'invalid command from' in server.log, 'named has read the command')
        assert backend.ping().ok
        assert server.command('showzone example.com').error == 'not found'
        assert backend.create_domain(a_domain()).ok


def test_another_key_in_the_file_is_used_from_the_next_connection(named: Start) -> None:
    server = named()
    key_file = server.folder / 'rndc.key'
    right = key_file.read_text()
    key_file.write_text(right.replace(server.rndc_secret, 'bm90IHRoZSBrZXk='))
    with opened(server.server([NOWHERE])) as backend:
        assert not backend.ping().ok
        key_file.write_text(right)
        assert backend.ping().ok


def check(server: Named, **facts: Any) -> Finding:
    """The one finding."""
    with opened(server.server([NOWHERE], **facts)) as backend:
        findings = backend.check()
    assert len(findings) == 1
    assert findings[0].serious
    return findings[0]


def passes(server: Named, **facts: Any) -> bool:
    with opened(server.server([NOWHERE], **facts)) as backend:
        return backend.check() == []


@pytest.mark.parametrize('view', [None, 'inside'])
def test_new_zones_are_not_allowed(named: Start, view: str | None) -> None:
    server = named(allow_new_zones=False, statements=f'view "{view}" {{ }};' if view else '')
    finding = check(server, view=view)
    assert 'permission denied: Not allowing new zones' in finding.what
    assert "put 'allow-new-zones yes;' into the options" in finding.advice
    with opened(server.server([NOWHERE], view=view)) as backend:
        assert not backend.create_domain(a_domain()).retryable
    server.reconfigure('allow-new-zones no', 'allow-new-zones yes')
    assert passes(server, view=view)


@pytest.mark.parametrize(('statements', 'facts', 'what', 'advice'), [
    ('', {'view': 'outside'}, "no matching view found for 'outside'", "correct 'view'"),
    ('', {'rndc_key_file': None, 'rndc_key_secret': 'bm90IHRoZSBrZXk='},
     "does not accept the key 'rndc-key'", "for 'bad auth' give the section the algorithm and secret"),
    ('', {'rndc_key_file': None, 'rndc_key_secret': '{secret}', 'rndc_key_algorithm': 'hmac-sha512'},
     "does not accept the key 'rndc-key'", "for 'bad auth' give the section the algorithm and secret"),
    ('controls {{ inet 127.0.0.1 port {port} allow {{ 192.0.2.1; }} keys {{ "rndc-key"; }}; }};',
     {'rndc_port': '{port}'}, "or this host's address", "add this host's address to 'allow'"),
    ('', {'statistics_url': 'http://127.0.0.1:{port}'},
     'the zones cannot be listed: connection failed: Connection refused', "has a 'statistics-channels' statement"),
    ('statistics-channels {{ inet 127.0.0.1 port {port} allow {{ 192.0.2.1; }}; }};',
     {'statistics_url': 'http://127.0.0.1:{port}'}, 'the zones cannot be listed', "allows this host's address"),
    ('statistics-channels {{ inet 127.0.0.1 port {port}; }};',
     {'statistics_url': 'http://127.0.0.1:{port}/elsewhere'}, 'answered 404', "has a 'statistics-channels' statement"),
], ids=['view', 'secret', 'algorithm', 'address', 'no statistics', 'statistics for others', 'statistics elsewhere'])
def test_what_is_wrong_is_found(named: Start, statements: str, facts: dict[str, str | None], what: str,
                                advice: str) -> None:
    port = free_port()
    server = named(statements=statements.format(port=port))
    finding = check(server, **{name: value and value.format(port=port, secret=server.rndc_secret)
                               for name, value in facts.items()})
    assert what in finding.what
    assert advice in finding.advice


def test_a_view_is_needed_where_there_are_views(named: Start) -> None:
    server = named(statements='view "inside" { };')
    assert 'has no default view' in check(server).advice
    assert passes(server, view='inside')


def test_zones_that_named_signs(named: Start) -> None:
    primary = Primary().start()
    try:
        primary.publish('example.com.', zone_text(7))
        server = named(statistics=True, options='dnssec-policy default;')  # alone it does nothing in 9.18
        facts = {'statistics_url': server.statistics_url}
        assert passes(server, **facts)
        signed = (f'type secondary; file "signed.db"; primaries {{ 127.0.0.1 port {primary.endpoint.port}; }}; '
                  'inline-signing yes;')
        assert server.command(f'addzone example.com {{ {signed} }};').result == 0
        wait_until(lambda: 'inline signing: yes' in server.command('zonestatus example.com').text, 'it is loaded')
        with opened(server.server([NOWHERE])) as backend:
            finding, = backend.check(['other.example.', 'EXAMPLE.com.'])
        assert (finding.what, 'inline-signing' in finding.advice) == (
            'named signs zones, so that their serials are not ours', True)
        with opened(server.server([NOWHERE], **facts)) as backend:
            assert list(backend.list_zones(['EXAMPLE.com.']).serials) == ['example.com.'], 'listed as a primary zone'
    finally:
        primary.stop()


def test_the_clocks_are_too_far_apart(named: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = named()
    monkeypatch.setattr(rndc, 'time', types.SimpleNamespace(time=lambda: time.time() + 1000))
    finding = check(server)
    assert 'clocks of the two hosts differ by more than 5 minutes' in finding.what
    assert "for 'clock skew' set the clocks" in finding.advice
    assert 'clock skew' in server.log


@pytest.mark.parametrize('said, error', [
    (b'', 'no answer within'),
    (b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n<statistics><views>', 'cannot be parsed'),
    (b'HTTP/1.1 200 OK\r\n\r\n\xff', 'cannot be parsed'),
    (b'SSH-2.0-something\r\n', 'cannot be parsed'),
])
def test_something_else_listens_for_statistics(named: Start, monkeypatch: pytest.MonkeyPatch, said: bytes,
                                               error: str) -> None:
    monkeypatch.setattr(base, 'LISTING_SECONDS', 0.5)
    server = named()
    with socket.create_server(('127.0.0.1', 0)) as other:
        thread = threading.Thread(target=_say, args=(other, said), daemon=True)
        thread.start()
        started = time.monotonic()
        finding = check(server, statistics_url=f'http://127.0.0.1:{other.getsockname()[1]}')
        assert time.monotonic() - started < patience(5)
        thread.join()
    assert error in finding.what


def _say(listening: socket.socket, said: bytes) -> None:
    """Say it to whoever connects first and hang up, or wait until he does when there is nothing to say."""
    connection, _ = listening.accept()
    with connection:
        connection.settimeout(10)
        connection.recv(4096)
        connection.sendall(said)
        if not said:
            connection.recv(1)


def test_the_example_works(tmp_path: pathlib.Path) -> None:
    primary = Primary(keys=[TsigKey('transfer.example.com.', 'hmac-sha256', 'bm90IGEgc2VjcmV0LCBhbiBleGFtcGxl')])
    primary.start()
    server = Named(tmp_path / 'ns1')
    server.configuration = put_in((ETC / 'example-bind9.named.conf').read_text(), {
        'directory "/var/cache/bind";': f'directory "{server.folder}"; pid-file "named.pid"; lock-file none;'
                                        ' session-keyfile "session.key";',
        'listen-on { 192.0.2.1; };': f'listen-on port {server.port} {{ 127.0.0.1; }};',
        '192.0.2.1 port 953': f'127.0.0.1 port {server.rndc_port}',
        '192.0.2.1 port 8053': f'127.0.0.1 port {server.statistics_port}',
        'allow { 192.0.2.10; }': 'allow { 127.0.0.1; }'}) + 'logging { category default { default_stderr; }; };\n'
    pairs = {
        'listen = 192.0.2.10:5354': f'listen = {primary.endpoint}',
        'host = 192.0.2.1\n': f'host = 127.0.0.1\nport = {server.port}\n',
        'rndc_port = 953': f'rndc_port = {server.rndc_port}',
        'http://192.0.2.1:8053': server.statistics_url}
    try:
        server.start()
        first = example_servers('example-bind9.conf', tmp_path, pairs)[0]
        primary.publish('example.org.', zone_text(1, 'www A 192.0.2.80'))
        with opened(first) as backend:
            assert backend.check() == []
            assert backend.create_domain(a_domain('example.org.')).ok
            wait_until(lambda: server.serial('example.org.') == 1, 'the zone is served')
            assert "TSIG 'transfer.example.com'" in server.log
            primary.publish('example.org.', zone_text(2, 'www A 192.0.2.81'))
            wait_until(lambda: server.follows('example.org.', 2, key=first.tsig_key), 'it follows')
            assert server.texts('www.example.org.', 'A') == ['192.0.2.81']
            assert dict(backend.list_zones(['example.org.']).serials) == {'example.org.': 2}
            assert backend.delete_domain(a_domain('example.org.')).ok
            wait_until(lambda: server.serial('example.org.') is None, 'it is gone')
    finally:
        server.stop()
        primary.stop()
