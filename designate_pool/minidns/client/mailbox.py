"""Work for the exchange's loop, from other threads.

To wake a thread costs more than the small work that it is woken for, all the more as both threads then want the
interpreter.  So as long as work keeps coming the loop looks for it on its own, and what does not hurry wakes nobody.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable, Iterator

#: Seconds from one look to the next, and how long the loop goes on looking after it has found something.
BEAT, AFTERWARDS = 0.002, 0.02

Work = Callable[[], None]


class Mailbox:
    """
    :param wake: ends what the loop waits in
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._work: collections.deque[Work] = collections.deque()
        self._looking_until = 0.0

    def put(self, work: Work, hurried: bool) -> None:
        """From any thread.

        :param hurried: whether it is to be begun at once; else that may be a beat later
        """
        self._work.append(work)
        if hurried or time.monotonic() >= self._looking_until:
            self._wake()

    # What follows is called in the loop alone.

    def take(self, now: float) -> Iterator[Work]:
        """What has come until now."""
        if self._work:
            self._looking_until = now + AFTERWARDS
        for _ in range(len(self._work)):
            yield self._work.popleft()

    def patience(self, seconds: float | None) -> float | None:
        """How long to wait, when nothing else comes to pass for so many seconds, or ever."""
        if time.monotonic() < self._looking_until:
            seconds = BEAT if seconds is None else min(seconds, BEAT)
        # Last: what is put in after this look finds out by the clock that nobody would look again.
        return 0.0 if self._work else seconds
