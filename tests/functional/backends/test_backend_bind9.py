"""The bind9 driver against real BINDs."""

from __future__ import annotations

import os
import pathlib
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from designate_pool.backends.bind9 import rndc
from designate_pool.testing import NOWHERE, KeyedContract, KeyedRig, RemoteContract, TcpRig, a_domain, opened
from testing.bind import Named
from testing.processes import wait_until
from tests.fixtures.rigs import ProcessRig

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
