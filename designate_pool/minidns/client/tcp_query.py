"""One query over TCP (RFC 7766), on a non-blocking socket."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

_LENGTH_OCTETS = 2


class TcpQuery:
    """A connection that sends *message* and reads one reply.

    :param sockets: the module ``socket``, green or not
    :ivar writing: True while it connects or sends, False while it receives
    """

    __slots__ = ('writing', '_sock', '_unsent', '_received')

    def __init__(self, sockets: Any, address: tuple[str, int], message: bytes) -> None:
        family = socket.AF_INET6 if ':' in address[0] else socket.AF_INET
        self._sock = sockets.socket(family, socket.SOCK_STREAM)
        self._unsent = len(message).to_bytes(_LENGTH_OCTETS, 'big') + message
        self._received = b''
        self.writing = True
        self._sock.setblocking(False)
        self._sock.connect_ex(address)  # the result is read when the socket becomes writable

    def fileno(self) -> int:
        return int(self._sock.fileno())

    def advance(self) -> bytes | None:
        """Send or receive what is possible now; the reply, or None while it is incomplete.

        :raises OSError: when the connection has failed
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
        self._unsent = self._unsent[self._sock.send(self._unsent):]
        self.writing = bool(self._unsent)

    def _receive(self) -> bytes | None:
        expected_length = _LENGTH_OCTETS
        if len(self._received) >= _LENGTH_OCTETS:
            expected_length += int.from_bytes(self._received[:_LENGTH_OCTETS], 'big')
        chunk = self._sock.recv(expected_length - len(self._received))
        if not chunk:
            raise ConnectionResetError(errno.ECONNRESET, 'the server closed the connection')
        self._received += chunk
        if len(self._received) == expected_length > _LENGTH_OCTETS:
            return self._received[_LENGTH_OCTETS:]
        return None
