"""Time limits: of a call to a server, with connections that keep to it, and of a turn of a green thread."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar('T')
#: Seconds after which whatever reads outside input lets other green threads run.
TURN = 0.01


class Turns:
    """Lets other green threads run when a turn is over."""

    def __init__(self) -> None:
        self._end = time.monotonic() + TURN

    def give(self) -> None:
        """Let them run if it is time; to be called often."""
        if time.monotonic() >= self._end:
            time.sleep(0)
            self._end = time.monotonic() + TURN

    def between(self, items: Iterable[T]) -> Iterator[T]:
        """*items*, with turns between them."""
        clock = time.monotonic
        for item in items:
            if clock() >= self._end:
                self.give()
            yield item


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

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self._end

    def __str__(self) -> str:
        return f'no answer within {self.seconds:g} s'

    def progress(self, octets: int) -> None:
        """Note that some *octets* were received."""


class Stream(Protocol):
    """A connected socket, or TLS over one."""

    def settimeout(self, value: float, /) -> None: ...

    def sendall(self, data: bytes, /) -> None: ...

    def recv(self, size: int, /) -> bytes: ...

    def setsockopt(self, level: int, name: int, value: bytes, /) -> None: ...

    def close(self) -> None: ...


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


def send(connection: Stream, octets: bytes, deadline: Deadline) -> None:
    """Send all *octets*."""
    connection.settimeout(deadline.left())
    connection.sendall(octets)


def receive(connection: Stream, deadline: Deadline, most: int = 1 << 16) -> bytes:
    """The next octets, at least one and at most *most*.

    :raises ClosedUnanswered: when there are none any more
    """
    connection.settimeout(deadline.left())
    octets = connection.recv(most)
    if not octets:
        raise ClosedUnanswered
    deadline.progress(len(octets))
    return octets


def abort(connection: Stream) -> None:
    """Close a connection and discard the data that has not been delivered.

    After a normal close the kernel would continue to send it for minutes, and a server that becomes reachable in that
    time would execute requests that have timed out.
    """
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    connection.close()
