"""The time limit of a call to a server, and how its connection is closed when it has passed."""

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


def abort(connection: socket.socket) -> None:
    """Close a connection and discard the data that has not been delivered.

    After a normal close the kernel would continue to send it for minutes, and a server that becomes reachable in that
    time would execute requests that have timed out.
    """
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    connection.close()
