"""UDP sockets that hear of refusals."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator

import pytest

from designate_pool.minidns.client.sockets import enable_icmp_errors, icmp_errors, udp_socket
from testing.processes import free_port, wait_until


@pytest.fixture
def sock() -> Iterator[socket.socket]:
    with contextlib.closing(udp_socket(socket.AF_INET, '127.0.0.1')) as results:
        enable_icmp_errors(results)
        yield results


def test_a_refusal_keeps_nothing_that_has_arrived(sock: socket.socket) -> None:
    refusing = '127.0.0.1', free_port()
    sock.sendto(b'arrived', sock.getsockname())
    sock.sendto(b'refused', refusing)
    heard = wait_until(lambda: icmp_errors(sock), 'the refusal is told')
    assert heard == [(refusing, errno.ECONNREFUSED, b'refused')]
    with contextlib.suppress(ConnectionRefusedError):  # the first call may be told of the error
        sock.recv(0, socket.MSG_PEEK)
    assert sock.recvfrom(100) == (b'arrived', sock.getsockname())
