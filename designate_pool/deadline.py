"""How long what speaks to a server may still take."""

from __future__ import annotations

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
