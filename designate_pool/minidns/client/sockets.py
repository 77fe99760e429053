"""UDP sockets that never block, and waiting for any of them.

They may be the runtime's, which are green or not, or the system's own, for a native thread.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
from collections.abc import Iterable
from typing import Any

from designate_pool.concurrency import NativeThread

# Linux's names for "tell me of ICMP errors, and whose datagram each was about" (ip(7), ipv6(7)).
_IP_RECVERR, _IPV6_RECVERR = 11, 25
_EXTENDED_ERROR = struct.Struct('=IBBBBII')
_BUFFER = 4 << 20
#: Octets that an answer to one of our questions may have: none of them offers to take more than 512 over UDP, but a
#: signature comes on top of that.
_LARGEST = 4096

Address = tuple[Any, ...]


def udp_socket(family: int, source: str | None = None, port: int = 0, sockets: Any = socket,
               reuse_port: bool = False) -> socket.socket:
    """A UDP socket that does not block, bound to *source* or any address.

    :param sockets: the module ``socket``
    :param reuse_port: whether others may have the same address and port
    :raises OSError: when the address or port cannot be had
    """
    sock: socket.socket = sockets.socket(family, socket.SOCK_DGRAM)
    try:
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, reuse_port)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
        sock.bind((source or ('::' if family == socket.AF_INET6 else '0.0.0.0'), port))
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def want_errors(sock: socket.socket) -> None:
    """Have ICMP errors kept for :func:`refusals`; where the system cannot, a refusing port looks like a silent one."""
    with contextlib.suppress(OSError):
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)


def refusals(sock: socket.socket) -> list[tuple[Address, int, bytes]]:
    """The (destination, errno, octets) of datagrams that came back as ICMP errors; octets as far as they are quoted.

    Anybody may send such errors who guesses the ports; who quotes what was sent has seen it.
    """
    found: list[tuple[Address, int, bytes]] = []
    while len(found) < 4096:
        try:
            quoted, ancillary, _, address = sock.recvmsg(512, 512, socket.MSG_ERRQUEUE)
        except OSError:
            break
        for _, _, data in ancillary:
            if len(data) >= _EXTENDED_ERROR.size:
                found.append((address, _EXTENDED_ERROR.unpack_from(data)[0], quoted))
    return found


def words(number: int | None) -> str:
    """What an errno says."""
    return os.strerror(number or 0).lower()


def drain(sock: socket.socket, most: int) -> list[tuple[bytes, Address]]:
    """What has arrived, *most* datagrams at the utmost, with their source addresses; the rest after an ICMP error, of
    which :func:`refusals` tells, is left to the next call.
    """
    found: list[tuple[bytes, Address]] = []
    with contextlib.suppress(OSError):
        while len(found) < most:
            found.append(sock.recvfrom(_LARGEST))
    return found


class SocketSelector:
    """Waits until something has arrived on some of the sockets, or somebody calls :meth:`wake`."""

    def __init__(self, sockets: Iterable[socket.socket]) -> None:
        self._selector = selectors.DefaultSelector()
        self._inner, self._outer = socket.socketpair()
        self._inner.setblocking(False)
        self._outer.setblocking(False)
        self._selector.register(self._inner, selectors.EVENT_READ)
        for sock in sockets:
            self._selector.register(sock, selectors.EVENT_READ)

    def wait(self, seconds: float | None) -> None:
        """Return when there may be something to do; which socket has it, only reading shows."""
        self._selector.select(seconds)
        with contextlib.suppress(BlockingIOError):
            while self._inner.recv(4096):
                pass

    def wake(self) -> None:
        with contextlib.suppress(OSError):  # a full pipe wakes as well, a closed one has nobody to wake
            self._outer.send(b'.')

    def close(self) -> None:
        self._selector.close()
        self._inner.close()
        self._outer.close()


class NativeSelector:
    """Waits in a native thread until something can be done on some of the sockets, or somebody calls :meth:`wake`.

    :param native: has the modules
    """

    def __init__(self, native: NativeThread) -> None:
        self._poll = native.select.poll()
        self._reading, self._writing = native.select.POLLIN, native.select.POLLOUT
        self._inner, self._outer = native.socket.socketpair()
        self._inner.setblocking(False)
        self._outer.setblocking(False)
        self._rung = False
        self.want(self._inner.fileno())

    def want(self, number: int, writing: bool = False) -> None:
        """Look at the socket with this file number, in place of what was wanted from it before."""
        self._poll.register(number, self._writing if writing else self._reading)

    def forget(self, number: int) -> None:
        self._poll.unregister(number)

    def wait(self, seconds: float | None) -> list[int]:
        """The file numbers of those with which there may be something to do."""
        ready = [number for number, _ in self._poll.poll(None if seconds is None else seconds * 1000)]
        if self._inner.fileno() in ready:
            ready.remove(self._inner.fileno())
            with contextlib.suppress(BlockingIOError):
                self._inner.recv(4096)
        self._rung = False  # before the caller looks at what he is woken for: what comes later rings once more
        return ready

    def wake(self) -> None:
        """From any thread, when there is something for the one that waits."""
        if not self._rung:
            self._rung = True
            with contextlib.suppress(OSError):  # a full pipe wakes as well, a closed one has nobody to wake
                self._outer.send(b'.')

    def close(self) -> None:
        self._inner.close()
        self._outer.close()
