"""Signals of a program that runs until it is stopped."""

from __future__ import annotations

import signal
from typing import Any


class Signals:
    """Sets a flag by SIGTERM and SIGINT, and another by SIGHUP.

    :ivar stop: whether the program is to stop
    :ivar hangup: whether SIGHUP came; whoever acts on it clears it
    """

    def __init__(self) -> None:
        self.stop = self.hangup = False
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: Any) -> None:
        if number == signal.SIGHUP:
            self.hangup = True
        else:
            self.stop = True
