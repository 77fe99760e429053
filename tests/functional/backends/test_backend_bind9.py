"""The bind9 driver against real BINDs."""

from __future__ import annotations

import os
import pathlib
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import dns.rcode
import dns.tsig
import pytest

from designate_pool.backends.bind9 import rndc
from designate_pool.model import TsigKey
from designate_pool.testing import NOWHERE, ODD_NAMES, KeyedContract, KeyedRig, RemoteContract, TcpRig, a_domain, opened
from testing.bind import Named
from testing.processes import wait_until
from tests.fixtures.nameservers import Primary, zone_text
from tests.fixtures.rigs import KEY, ProcessRig

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


def test_each_server_transfers_and_takes_notify_with_a_key_of_its_own(named: Start) -> None:
    keys = [KEY, TsigKey('other.example.', 'hmac-sha512', 'YW5vdGhlciBrZXkgb25seSBmb3IgdGVzdHM=')]
    keyed = Primary(keys=keys)
    keyed.start()
    try:
        keyed.publish('example.com.', zone_text(7))
        servers = [named(key.name, keys=[key]) for key in keys]
        for server, key in zip(servers, keys, strict=True):
            with opened(server.server([keyed.endpoint], tsig_key=key)) as backend:
                assert backend.create_domain(a_domain()).ok
        for server, key in zip(servers, keys, strict=True):
            wait_until(lambda server=server: server.serial('example.com.') == 7, 'the contents are served')
            assert f"TSIG '{key.name.rstrip('.')}'" in server.log
        keyed.publish('example.com.', zone_text(8))
        for server, key, other in zip(servers, keys, reversed(keys), strict=True):
            with pytest.raises(dns.tsig.PeerBadKey):
                server.notify('example.com.', 8, key=other)
            assert server.notify('example.com.', 8, key=key).rcode() == dns.rcode.NOERROR
            wait_until(lambda server=server: server.serial('example.com.') == 8, 'the new contents are served')
    finally:
        keyed.stop()


def test_deleted_zone_leaves_no_file(named: Start, primary: Primary, tmp_path: pathlib.Path) -> None:
    name = ODD_NAMES['slashes']
    primary.publish(name, zone_text(1))
    (tmp_path / 'zones').mkdir()
    server = named()
    with opened(server.server([primary.endpoint], zone_file_folder=str(tmp_path / 'zones'))) as backend:
        assert backend.create_domain(a_domain(name)).ok
        wait_until(lambda: list((tmp_path / 'zones').glob('*.1.db')), 'named has written the zone')
        assert backend.delete_domain(a_domain(name)).ok
        wait_until(lambda: not list((tmp_path / 'zones').iterdir()), 'named has removed the file')


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
