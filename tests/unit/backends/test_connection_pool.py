"""Connections that are kept, and what becomes of one on which an answer does not come in time."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable

import dns.message
import pytest

from designate_pool.backends.bind9 import rndc
from designate_pool.backends.connection_pool import ConnectionPool
from designate_pool.backends.nsd.control_protocol import NsdControl
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendUnreachable
from designate_pool.powerdns import PdnsServer
from designate_pool.protocol.tcp_client import TcpPeer


class Line:
    """A connection that counts what is done with it, or raises."""

    def __init__(self) -> None:
        self.uses = 0
        self.closed = False
        self.error: BaseException | None = None

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def made() -> list[Line]:
    return []


@pytest.fixture
def lines(made: list[Line]) -> ConnectionPool[Line]:
    def connect(deadline: Deadline) -> Line:
        made.append(Line())
        return made[-1]

    return ConnectionPool(connect, keep=2)


def use(line: Line, deadline: Deadline) -> Line:
    if line.error is not None:
        raise line.error
    line.uses += 1
    return line


def test_one_call_after_the_other_shares_a_connection(lines: ConnectionPool[Line], made: list[Line]) -> None:
    for _ in range(3):
        lines.use(use, Deadline(1))
    assert [line.uses for line in made] == [3]


def test_calls_at_once_have_one_each_and_only_some_are_kept(lines: ConnectionPool[Line], made: list[Line]) -> None:
    def nested(line: Line, deadline: Deadline) -> None:
        if len(made) < 4:
            lines.use(nested, deadline)

    lines.use(nested, Deadline(1))
    assert len(made) == 4
    assert [line.closed for line in made].count(False) == 2


def test_a_dead_kept_connection_is_replaced_once(lines: ConnectionPool[Line], made: list[Line]) -> None:
    lines.use(use, Deadline(1))
    made[0].error = ConnectionResetError()
    lines.use(use, Deadline(1))
    assert [line.uses for line in made] == [1, 1]
    assert made[0].closed


def test_a_new_connection_that_fails_is_not_replaced(lines: ConnectionPool[Line], made: list[Line]) -> None:
    def fail(line: Line, deadline: Deadline) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        lines.use(fail, Deadline(1))
    assert [line.closed for line in made] == [True]


@pytest.mark.parametrize('error', [TimeoutError(), ValueError(), KeyboardInterrupt()])
def test_after_any_other_failure_nobody_gets_the_connection(lines: ConnectionPool[Line], made: list[Line],
                                                            error: BaseException) -> None:
    lines.use(use, Deadline(1))
    made[0].error = error
    with pytest.raises(type(error)):
        lines.use(use, Deadline(1))
    assert made[0].closed
    lines.use(use, Deadline(1))
    assert len(made) == 2


def test_an_idle_one_is_not_used_after_a_while(lines: ConnectionPool[Line], made: list[Line],
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, 'monotonic', lambda: clock[0])
    lines.use(use, Deadline(1))
    clock[0] += 19
    lines.use(use, Deadline(1))
    clock[0] += 21
    lines.use(use, Deadline(1))
    assert [line.uses for line in made] == [2, 1]
    assert made[0].closed


def test_close_closes_the_idle_ones(lines: ConnectionPool[Line], made: list[Line]) -> None:
    lines.use(use, Deadline(1))
    lines.close()
    assert made[0].closed
    lines.use(use, Deadline(1))
    assert len(made) == 2


KEY = rndc.RndcKey.make('rndc-key', 'hmac-sha256', 'c2VjcmV0')
QUESTION = dns.message.make_query('example.com.', 'SOA')
CLIENTS: dict[str, Callable[[int], object]] = {
    'bind9': lambda port: rndc.open_channel('127.0.0.1', port, KEY, Deadline(0.3)),
    'nsd': lambda port: NsdControl(('127.0.0.1', port), None).ask('status', Deadline(0.3)),
    'pdns': lambda port: PdnsServer(f'http://127.0.0.1:{port}', 'key').ask('DELETE', '/zones', Deadline(0.3)),
    'rfc2136': lambda port: TcpPeer('127.0.0.1', port).ask(QUESTION, 0.3),
}


@pytest.mark.parametrize('client', CLIENTS)
def test_what_is_not_answered_in_time_is_aborted(client: str) -> None:
    """So that what the server has not received yet is never sent to it."""
    with socket.create_server(('127.0.0.1', 0)) as listener:
        with contextlib.suppress(TimeoutError, BackendUnreachable):
            CLIENTS[client](listener.getsockname()[1])
            raise AssertionError('it was answered')
        connected, _ = listener.accept()
        with connected:
            connected.settimeout(10)
            assert connected.recv(65536), 'it had asked'
            with pytest.raises(ConnectionResetError):
                connected.recv(65536)
