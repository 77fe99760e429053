"""The time limit of a call to a server, and connections that keep to it."""

from __future__ import annotations

import contextlib
import socket
import struct
import time


class Deadline:
    """The seconds that are left of a call."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds left, more than 0.

        :raises TimeoutError: when there are none
        """
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds


class ClosedUnanswered(ConnectionError):
    """The server closed the connection before it had answered."""

    def __init__(self) -> None:
        super().__init__('the server closed the connection before it had answered')


def connect(address: str | tuple[str, int], deadline: Deadline) -> socket.socket:
    """A connection to a host, whose addresses share the time left, or a unix socket, for whose full queue it waits."""
    if not isinstance(address, str):
        entries = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
        for number, (family, kind, protocol, _, where) in enumerate(entries):
            connection = socket.socket(family, kind, protocol)
            try:
                connection.settimeout(deadline.left() / (len(entries) - number))
                connection.connect(where)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
            except BaseException as error:  # as below
                connection.close()
                if number == len(entries) - 1 or not isinstance(error, OSError):
                    raise
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.setblocking(False)  # with a time limit a green socket would try again and again without a pause
            connection.connect(address)
            return connection
        except BlockingIOError:
            connection.close()
            time.sleep(min(0.01, deadline.left()))
        except BaseException:  # eventlet's Timeout too must not leave the socket open
            connection.close()
            raise


def send(connection: socket.socket, octets: bytes, deadline: Deadline) -> None:
    """Send all *octets*."""
    connection.settimeout(deadline.left())
    connection.sendall(octets)


def receive(connection: socket.socket, deadline: Deadline, most: int = 1 << 16) -> bytes:
    """The next octets, at least one and at most *most*.

    :raises ClosedUnanswered: when there are none any more
    """
    connection.settimeout(deadline.left())
    octets = connection.recv(most)
    if not octets:
        raise ClosedUnanswered
    return octets


def abort(connection: socket.socket) -> None:
    """Close a connection and discard the data that has not been delivered.

    After a normal close the kernel would continue to send it for minutes, and a server that becomes reachable in that
    time would execute requests that have timed out.
    """
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    connection.close()
