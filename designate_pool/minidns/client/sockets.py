"""Non-blocking UDP sockets, and a selector that waits for any of them.

The sockets are the runtime's (green or not), or the operating system's for a native thread.
"""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Any

from designate_pool.concurrency import NativeThread

_BUFFER = 4 << 20
#: Octets of the largest reply: our queries allow 512 over UDP, and a TSIG record may come on top.
MAX_DATAGRAM = 4096

Address = tuple[Any, ...]


def udp_socket(family: int, source: str | None = None, port: int = 0, sockets: Any = socket,
               reuse_port: bool = False) -> socket.socket:
    """A non-blocking UDP socket, bound to *source* or any address; for the rest see :func:`bound_socket`."""
    host = source or ('::' if family == socket.AF_INET6 else '0.0.0.0')
    sock = bound_socket(family, socket.SOCK_DGRAM, host, port, reuse_port, sockets)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
    sock.setblocking(False)
    return sock


def bound_socket(family: int, kind: socket.SocketKind, host: str, port: int, reuse_port: bool,
                 sockets: Any = socket) -> socket.socket:
    """A socket bound to an address and port.

    :param reuse_port: whether other sockets may bind the same address and port
    :param sockets: the module ``socket``, green or not
    :raises OSError: when the address or port cannot be bound
    """
    sock: socket.socket = sockets.socket(family, kind)
    try:
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, kind == socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, reuse_port)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f'{error.strerror}: {host} port {port}') from error
    return sock


def error_text(fd: int | None) -> str:
    """The operating system's text for an errno."""
    return os.strerror(fd or 0).lower()


class NativeSelector:
    """Waits in a native thread until one of the sockets can be read, or :meth:`wake` is called.

    :param native: gives the modules ``select`` and ``socket`` that are not green
    """

    def __init__(self, native: NativeThread) -> None:
        self._poll = native.select.poll()
        self._reading = native.select.POLLIN
        #: Called with a file descriptor to wait for no longer.
        self.unwatch = self._poll.unregister
        self._inner, self._outer = native.socket.socketpair()
        self._inner.setblocking(False)
        self._outer.setblocking(False)
        self._is_woken = False
        self.watch(self._inner.fileno())

    def watch(self, fd: int) -> None:
        """Wait for the socket with this file descriptor from now on."""
        self._poll.register(fd, self._reading)

    def wait(self, seconds: float | None) -> list[int]:
        """Wait; the file descriptors that may be read."""
        ready = [fd for fd, _ in self._poll.poll(None if seconds is None else seconds * 1000)]
        if self._inner.fileno() in ready:
            ready.remove(self._inner.fileno())
            with contextlib.suppress(BlockingIOError):
                self._inner.recv(4096)
        self._is_woken = False  # before the caller takes its work, so that work added later wakes again
        return ready

    def wake(self) -> None:
        """End the wait; from any thread."""
        if not self._is_woken:
            self._is_woken = True
            with contextlib.suppress(OSError):  # a full socket pair wakes the waiter too, a closed one has none
                self._outer.send(b'.')

    def close(self) -> None:
        """Close the sockets by which it is woken, once nobody waits."""
        self._inner.close()
        self._outer.close()
