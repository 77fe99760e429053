"""UDP sockets that hear of refusals."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator
from typing import Any, cast

import pytest

from designate_pool.minidns.client.sockets import enable_icmp_errors, icmp_errors, receive_datagrams, udp_socket
from testing.processes import free_port, wait_until


@pytest.fixture
def sock() -> Iterator[socket.socket]:
    with contextlib.closing(udp_socket(socket.AF_INET, '127.0.0.1')) as results:
        enable_icmp_errors(results)
        yield results


def test_what_has_arrived_is_taken_but_no_more_than_is_wanted(sock: socket.socket) -> None:
    for fd in range(5):
        sock.sendto(b'%d' % fd, sock.getsockname())
    assert [message for message, _ in receive_datagrams(sock, 3)] == [b'0', b'1', b'2']
    assert receive_datagrams(sock, 3) == [(b'3', sock.getsockname()), (b'4', sock.getsockname())]
    assert receive_datagrams(sock, 3) == []


def test_a_refusal_keeps_nothing_that_has_arrived(sock: socket.socket) -> None:
    refusing = '127.0.0.1', free_port()
    sock.sendto(b'arrived', sock.getsockname())
    sock.sendto(b'refused', refusing)
    heard = wait_until(lambda: icmp_errors(sock), 'the refusal is told')
    assert heard == [(refusing, errno.ECONNREFUSED, b'refused')]
    arrived = receive_datagrams(sock, 10) or receive_datagrams(sock, 10)  # the first may be told of the error
    assert arrived == [(b'arrived', sock.getsockname())]


def test_what_arrived_before_an_error_is_not_lost() -> None:
    class Refused:
        """An error comes after two datagrams."""

        def __init__(self) -> None:
            self.news: list[bytes | OSError] = [b'1', b'2', ConnectionRefusedError(), b'3', BlockingIOError()]

        def recvfrom(self, size: int) -> tuple[bytes, tuple[str, int]]:
            each = self.news.pop(0)
            if isinstance(each, OSError):
                raise each
            return each, ('192.0.2.1', 53)

    refused = cast(Any, Refused())
    assert [message for message, _ in receive_datagrams(refused, 10)] == [b'1', b'2']
    assert [message for message, _ in receive_datagrams(refused, 10)] == [b'3']
