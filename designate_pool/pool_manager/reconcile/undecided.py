"""Domains with new outcomes of which Central has yet to be told: when to read and weigh them again.

Two pool managers that write one outcome each may both have read before the other wrote.  Only those with polls in
flight wait here: the results of these mostly decide them first, and then nothing is read.  All others go straight into
the queue that these go into in the end; a queue has no times, and nothing is taken out of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from designate_pool.concurrency import Wakeable

#: Seconds after which an undecided domain is read and weighed again that waits for polls in flight.
PAUSE = 0.2
#: Seconds until the next look when no domain is undecided.
IDLE_INTERVAL = 30.0


class UndecidedDomains(Wakeable):
    """The first that is added wakes the loop.

    :param weigh: is given the ids of those whose time has come
    """

    def __init__(self, weigh: Callable[[Sequence[str]], None]) -> None:
        super().__init__()
        self._weigh = weigh
        self._lock = threading.Lock()
        self._times: dict[str, datetime] = {}

    def __bool__(self) -> bool:
        return bool(self._times)

    def add(self, domain_ids: Iterable[str], now: datetime) -> None:
        """Weigh these in a moment; those that are undecided already, when they would have been."""
        at = now + timedelta(seconds=PAUSE)
        with self._lock:
            was_idle = not self._times
            for domain_id in domain_ids:
                self._times.setdefault(domain_id, at)
            is_first = was_idle and bool(self._times)
        if is_first:
            self.wake()

    def discard(self, domain_ids: Iterable[str]) -> None:
        """Central is told of these."""
        with self._lock:
            for domain_id in domain_ids:
                self._times.pop(domain_id, None)

    def run(self, now: datetime) -> float:
        """Weigh those whose time has come, or lies too far ahead: the clock was put back; seconds until the next."""
        last = now + timedelta(seconds=PAUSE)
        with self._lock:
            due = [key for key, at in self._times.items() if not now < at <= last]
            for key in due:
                del self._times[key]
            wait = min(((at - now).total_seconds() for at in self._times.values()), default=IDLE_INTERVAL)
        self._weigh(due)
        return wait
