"""How long what speaks to a server may still take, and how its connection is given up when that is over."""

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
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def abort(connection: socket.socket) -> None:
    """Close a connection so that nothing that it has not yet delivered is sent any more.

    After a plain close the system goes on sending for minutes, and a server that was away meanwhile carries out what
    nobody waits for any longer.
    """
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    connection.close()
