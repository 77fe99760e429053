"""Signals of a program that runs until it is stopped."""

from __future__ import annotations

import contextlib
import signal
import socket
from typing import Any


class Signals:
    """Sets a flag by SIGTERM and SIGINT, and another by SIGHUP.

    :ivar stop: whether the program is to stop
    :ivar hangup: whether SIGHUP came; whoever acts on it clears it
    """

    def __init__(self) -> None:
        self.stop = self.hangup = False
        # A signal does not end the wait of an event loop, but what comes over a socket does.
        self._arrived, sender = socket.socketpair()
        sender.setblocking(False)
        self._sender = sender
        signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._handle)

    def wait(self, seconds: float) -> None:
        """Wait until one has arrived since the last call, or :meth:`wake` was called; at most so long."""
        self._arrived.settimeout(seconds)
        with contextlib.suppress(TimeoutError):
            self._arrived.recv(4096)

    def wake(self) -> None:
        """End the present wait, or the next one at once; from any thread."""
        with contextlib.suppress(BlockingIOError):  # a full socket wakes as well
            self._sender.send(b'.')

    def _handle(self, number: int, frame: Any) -> None:
        if number == signal.SIGHUP:
            self.hangup = True
        else:
            self.stop = True
