"""Work that other threads hand to the client loop.

Waking a thread costs as much as a few polls of the mailbox, and both threads then compete for the interpreter.  So
while work comes thick and fast the loop polls the mailbox, and work that is not urgent does not wake it.
"""

from __future__ import annotations

import collections
import math
import time
from collections.abc import Callable, Iterator

#: Seconds between two polls of the mailbox.
POLL_INTERVAL = 0.002

Work = Callable[[], None]


class Mailbox:
    """
    :param wake: ends the loop's wait
    :param poll_duration: seconds that the loop goes on polling when it has found work twice within this time
    """

    def __init__(self, wake: Callable[[], None], poll_duration: float = 2 * POLL_INTERVAL) -> None:
        self._wake = wake
        self._poll_duration = poll_duration
        self._work: collections.deque[Work] = collections.deque()
        self._polling_until = 0.0
        self._taken_at = -math.inf

    def put(self, work: Work, urgent: bool) -> None:
        """Add *work*; from any thread.

        :param urgent: begin it at once; otherwise it may begin :data:`POLL_INTERVAL` later
        """
        self._work.append(work)
        if urgent or time.monotonic() >= self._polling_until:
            self._wake()

    # What follows is called in the loop alone.

    def take(self, now: float) -> Iterator[Work]:
        """The work that has come until now."""
        if self._work:
            if now - self._taken_at < self._poll_duration:
                self._polling_until = now + self._poll_duration
            self._taken_at = now
        for _ in range(len(self._work)):
            yield self._work.popleft()

    def wait_seconds(self, seconds: float | None) -> float | None:
        """Seconds that the loop may wait; None for no limit.

        :param seconds: until the loop's next timer; None when there is none
        """
        if time.monotonic() < self._polling_until:
            seconds = POLL_INTERVAL if seconds is None else min(seconds, POLL_INTERVAL)
        # Check last: a put that comes later sees the expired deadline and wakes the loop.
        return 0.0 if self._work else seconds
