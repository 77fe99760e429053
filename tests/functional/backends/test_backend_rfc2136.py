"""The rfc2136 driver against real servers."""

from __future__ import annotations

import pathlib
import socket
from collections.abc import Callable
from typing import Any

import pytest

from designate_pool.model import Reason, Server, TsigKey, new_id
from designate_pool.planner.targets.fake import zone_of
from designate_pool.planner.zone.zone import Zone
from designate_pool.testing import Contract, RemoteContract, a_domain, opened
from testing.bind import Named
from testing.processes import free_port
from tests.fixtures.fed_servers import feed
from tests.fixtures.rigs import ETC, ProcessRig, example_servers, put_in
from tests.fixtures.updates import KEY, NEW, SOA, LossyWay, named_with

Start = Callable[..., Named]
NAME = 'example.com.'


def updated(named: Named, **facts: Any) -> Server:
    """It as the pool's value; *facts* are fields of Server, or options."""
    fields = {name: facts.pop(name) for name in ('port', 'tsig_key', 'call_timeout') if name in facts}
    return Server(id=new_id(), driver='rfc2136', host=named.host,
                  **{'port': named.port, 'tsig_key': KEY} | fields, options=facts)


class UpdatedRig(ProcessRig):
    def server(self, **facts: Any) -> Server:
        return updated(self.process, **facts)

    def holds(self, name: str) -> bool:
        return bool(self.process.serial(name) is not None)

    def nowhere(self) -> dict[str, Any]:
        return {'port': free_port()}

    def listening(self) -> tuple[socket.socket, dict[str, Any]]:
        listening = socket.create_server(('127.0.0.1', 0))
        return listening, {'port': listening.getsockname()[1]}


@pytest.fixture
def bind(named: Start, tmp_path: pathlib.Path) -> Named:
    return named_with(named, tmp_path, {name: NEW.format(serial=5)
                                        for name in (NAME, f'one.{NAME}', f'two.{NAME}')})


@pytest.fixture
def rig(bind: Named) -> UpdatedRig:
    return UpdatedRig(bind)


class TestContract:
    """What holds for every driver, but for the making and removing of zones."""

    test_create_and_create_again = Contract.test_create_and_create_again
    test_delete_of_what_never_was = Contract.test_delete_of_what_never_was
    test_nothing_to_do = Contract.test_nothing_to_do
    test_ping = Contract.test_ping
    test_keys_are_not_managed = Contract.test_keys_are_not_managed
    test_nobody_listens = RemoteContract.test_nobody_listens
    test_the_control_channel_hangs = RemoteContract.test_the_control_channel_hangs
    test_something_else_listens = RemoteContract.test_something_else_listens
    test_restarted_between_two_calls = RemoteContract.test_restarted_between_two_calls
    test_dead_and_back_again = RemoteContract.test_dead_and_back_again
    test_check_of_a_server_that_is_as_it_should_be = RemoteContract.test_check_of_a_server_that_is_as_it_should_be
    test_check_of_one_that_is_not_there = RemoteContract.test_check_of_one_that_is_not_there


def zone(text: str = '', serial: int = 1000, name: str = NAME) -> Zone:
    return zone_of(name, SOA.format(serial=serial) + '@ 300 NS ns1.example.net.\n' + text)


def test_a_zone_that_nobody_has_made_is_made_later(bind: Named, named: Start, tmp_path: pathlib.Path) -> None:
    desired = zone('www A 192.0.2.1\n', name='example.org.')
    with opened(updated(bind)) as backend:
        result = backend.create_domain(a_domain('example.org.'))
        assert 'does not have the zone example.org.' in str(result.error)
        assert 'create it there by hand' in str(result.error)
        assert result.reason is Reason.NOT_PRIMARY and not result.retryable
        assert feed(backend, desired)[0].error == result.error
    second = named_with(named, tmp_path, {'example.org.': NEW.format(serial=1)}, name='ns2')
    with opened(updated(second)) as backend:
        assert feed(backend, desired)[0].ok
        assert second.serial('example.org.') == 1000


def test_updates_have_a_port_of_their_own(bind: Named) -> None:
    way = LossyWay(bind.port)
    with opened(updated(bind, update_port=way.port)) as backend:
        assert feed(backend, zone('www A 192.0.2.1\n'))[0].ok
    assert len(way.updates) == 1
    way.stop()


@pytest.mark.parametrize('key', [
    TsigKey('another.example.', KEY.algorithm, KEY.secret), TsigKey(KEY.name, KEY.algorithm, 'bm90IHRoZSBrZXk=')])
def test_a_wrong_key_is_permanent(bind: Named, key: TsigKey) -> None:
    with opened(updated(bind, tsig_key=key)) as backend:
        for result in (backend.create_domain(a_domain()), backend.delete_domain(a_domain()), backend.ping(),
                       feed(backend, zone('www A 192.0.2.1\n'))[0], backend.list_zones([NAME]).result):
            assert not result.ok and not result.retryable and not result.unreachable
            assert 'the key' in str(result.error) and result.reason is Reason.BAD_KEY
        finding, = backend.check()
        assert 'BADKEY' in finding.what or 'BADSIG' in finding.what
        assert 'by the same name, algorithm and secret' in finding.advice
    assert bind.serial(NAME) == 5


@pytest.mark.parametrize(('allows', 'reason'), [
    ('allow-update { none; }; allow-transfer { any; };', Reason.UPDATE_REFUSED),
    ('allow-update { any; }; allow-transfer { none; };', Reason.REFUSED)])
def test_what_the_server_does_not_let_be_done_is_told_apart(named: Start, tmp_path: pathlib.Path, allows: str,
                                                            reason: Reason) -> None:
    server = named_with(named, tmp_path, {NAME: NEW.format(serial=5)}, allows)
    with opened(updated(server)) as backend:
        result, _ = feed(backend, zone('www A 192.0.2.1\n'))
        assert (result.reason, result.retryable, result.unreachable) == (reason, False, False)


def test_the_example_runs(tmp_path: pathlib.Path) -> None:
    """Both files together: a zone is fed, served and emptied."""
    server = Named(tmp_path / 'ns1')
    server.folder.mkdir()
    text = (ETC / 'example-rfc2136.named.conf').read_text()
    first_file = '\n'.join(line.removeprefix('#   ') for line in text.splitlines() if line.startswith('#   '))
    assert first_file.startswith('$TTL 300\n@ SOA')
    (server.folder / 'example.com.zone').write_text(first_file + '\n')
    server.configuration = put_in(text, {
        'directory "/var/lib/bind";': f'directory "{server.folder}"; pid-file "named.pid"; lock-file none;'
                                      ' session-keyfile "session.key";',
        'listen-on { 192.0.2.1; };': f'listen-on port {server.port} {{ 127.0.0.1; }};'}) + (
        f'\ninclude "{server.folder}/rndc.key";\ncontrols {{ inet 127.0.0.1 port {server.rndc_port}'
        ' allow { 127.0.0.1; } keys { "rndc-key"; }; };\nlogging { category default { default_stderr; }; };\n')
    first = example_servers('example-rfc2136.conf', tmp_path, {
        'host = 192.0.2.1\n': f'host = 127.0.0.1\nport = {server.port}\n'})[0]
    try:
        server.start()
        with opened(first) as backend:
            assert backend.check() == []
            assert feed(backend, zone('@ MX 10 mail\nmail A 192.0.2.1\n', 2000))[0].ok
            assert server.serial(NAME) == 2000
            assert server.texts(NAME, 'MX') == ['10 mail.example.com.']
            assert 'key update.example.com' in server.log
            assert backend.delete_domain(a_domain()).ok
            assert server.texts(NAME, 'MX') == []
    finally:
        server.stop()
