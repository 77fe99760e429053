"""One question over TCP (RFC 7766), on a socket that never blocks."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

_LENGTH = 2


class TcpQuery:
    """A connection that sends *message* and takes one reply.

    :param sockets: the module ``socket``
    :ivar writing: whether it waits to send, or for the connection, rather than to receive
    """

    __slots__ = ('writing', '_sock', '_left', '_received')

    def __init__(self, sockets: Any, address: tuple[str, int], message: bytes) -> None:
        family = socket.AF_INET6 if ':' in address[0] else socket.AF_INET
        self._sock = sockets.socket(family, socket.SOCK_STREAM)
        self._left = len(message).to_bytes(_LENGTH, 'big') + message
        self._received = b''
        self.writing = True
        self._sock.setblocking(False)
        self._sock.connect_ex(address)  # how it went is told when the socket can be written to

    def fileno(self) -> int:
        return int(self._sock.fileno())

    def go_on(self) -> bytes | None:
        """Do what can be done now; the reply, or None while it is not there in full.

        :raises OSError: when there will be none
        """
        try:
            if self.writing:
                self._send()
                return None
            return self._receive()
        except BlockingIOError:
            return None

    def close(self) -> None:
        self._sock.close()

    def _send(self) -> None:
        error = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))
        self._left = self._left[self._sock.send(self._left):]
        self.writing = bool(self._left)

    def _receive(self) -> bytes | None:
        wanted = _LENGTH
        if len(self._received) >= _LENGTH:
            wanted += int.from_bytes(self._received[:_LENGTH], 'big')
        more = self._sock.recv(wanted - len(self._received))
        if not more:
            raise ConnectionResetError(errno.ECONNRESET, 'the server closed the connection')
        self._received += more
        if len(self._received) == wanted > _LENGTH:
            return self._received[_LENGTH:]
        return None
