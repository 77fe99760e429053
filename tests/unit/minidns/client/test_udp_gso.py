"""Datagrams that go out in one system call, over real sockets; what a system would refuse, the socket does."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from designate_pool.minidns.client import udp_gso
from designate_pool.minidns.client.udp_gso import UdpGso
from testing.processes import free_port, wait_until

MESSAGES = [b'message %03d' % number for number in range(100)]


class Fussy:
    """A socket that fails as it is told, and notes how it was used.

    :param fails: the errors of its next calls, by method; None for a call that goes well
    """

    def __init__(self, sock: socket.socket, **fails: list[int | None]) -> None:
        self._sock = sock
        self._fails = fails
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            number = self._fails[name].pop(0) if self._fails.get(name) else None
            if number is not None:
                raise OSError(number, 'as the test says')
            return getattr(self._sock, name)(*arguments)

        return call


class Ends:
    """A socket, and one that it is connected to."""

    def __init__(self, host: str = '127.0.0.1') -> None:
        family = socket.AF_INET6 if ':' in host else socket.AF_INET
        self.far = socket.socket(family, socket.SOCK_DGRAM)
        self.far.bind((host, 0))
        self.near = socket.socket(family, socket.SOCK_DGRAM)
        self.near.connect(self.far.getsockname()[:2])
        self.near.setblocking(False)

    def arrived(self, count: int) -> list[bytes]:
        self.far.settimeout(10)
        found = [self.far.recv(65535) for _ in range(count)]
        self.far.setblocking(False)
        with pytest.raises(BlockingIOError):
            self.far.recv(65535)
        return found

    def close(self) -> None:
        self.near.close()
        self.far.close()


@pytest.fixture(params=['127.0.0.1', '::1'])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    made = Ends(request.param)
    yield made
    made.close()


def test_each_datagram_arrives_by_itself_and_many_take_one_call(ends: Ends) -> None:
    sock = Fussy(ends.near)
    sender = UdpGso(sock)
    assert sender.send(MESSAGES) == udp_gso.MAX_SEGMENTS
    assert sender.send(MESSAGES[udp_gso.MAX_SEGMENTS:]) == len(MESSAGES) - udp_gso.MAX_SEGMENTS
    assert ends.arrived(len(MESSAGES)) == MESSAGES
    assert sock.calls == ['getsockopt', 'sendmsg', 'sendmsg']


def test_one_alone_is_sent_as_usual(ends: Ends) -> None:
    sock = Fussy(ends.near)
    assert UdpGso(sock).send(MESSAGES[:1]) == 1
    assert ends.arrived(1) == MESSAGES[:1] and 'sendmsg' not in sock.calls


def test_a_system_that_does_not_know_of_it_gets_them_one_by_one(ends: Ends) -> None:
    sock = Fussy(ends.near, getsockopt=[errno.ENOPROTOOPT])
    assert UdpGso(sock).send(MESSAGES) == len(MESSAGES)
    assert ends.arrived(len(MESSAGES)) == MESSAGES and 'sendmsg' not in sock.calls


@pytest.mark.parametrize('number', [errno.EIO, errno.EINVAL, errno.EMSGSIZE])
def test_a_device_that_refuses_gets_them_one_by_one_from_then_on(ends: Ends, number: int) -> None:
    sock = Fussy(ends.near, sendmsg=[number])
    sender = UdpGso(sock)
    assert [sender.send(MESSAGES[:5]) for _ in range(2)] == [5, 5]
    assert ends.arrived(10) == MESSAGES[:5] * 2 and sock.calls.count('sendmsg') == 1


def test_no_room_for_all_together_is_none_sent(ends: Ends) -> None:
    sender = UdpGso(Fussy(ends.near, sendmsg=[errno.EAGAIN]))
    assert [sender.send(MESSAGES[:5]) for _ in range(2)] == [0, 5]
    assert ends.arrived(5) == MESSAGES[:5]


def test_no_room_for_more_is_told_by_how_many_went_out(ends: Ends) -> None:
    sender = UdpGso(Fussy(ends.near, getsockopt=[errno.ENOPROTOOPT], send=[None, None, errno.EAGAIN]))
    assert sender.send(MESSAGES[:5]) == 2
    assert ends.arrived(2) == MESSAGES[:2]


def test_an_error_after_some_is_told_by_the_next_call(ends: Ends) -> None:
    sender = UdpGso(Fussy(ends.near, getsockopt=[errno.ENOPROTOOPT], send=[None, errno.ENETDOWN, errno.ENETDOWN]))
    assert sender.send(MESSAGES[:5]) == 1
    with pytest.raises(OSError, match='as the test says'):
        sender.send(MESSAGES[1:5])


def test_a_port_that_refuses_is_an_error() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(('127.0.0.1', free_port()))
        sock.setblocking(False)
        sender = UdpGso(sock)
        assert sender.send(MESSAGES[:5]) == 5

        def is_refused() -> bool:
            try:
                sender.send(MESSAGES[:5])
            except ConnectionRefusedError:
                return True
            return False

        wait_until(is_refused, 'the port refuses')
