"""Limits of requests a second for one token, project or address: token buckets.

A bucket holds *burst* tokens, each request takes one, and *rate* of them come back every second.  The buckets are in
the memory of this process: several API processes count separately.
"""

from __future__ import annotations

import collections
import math
import threading
import time
from collections.abc import Callable

#: Buckets that are kept; the least recently used is dropped first, and starts again full.
MOST_REMEMBERED = 10000


class RateLimits:
    """
    :param rate: requests a second; 0 for no limit
    :param burst: requests that may come at once
    :param clock: seconds, never going back
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic,
                 remembered: int = MOST_REMEMBERED) -> None:
        self._rate = rate
        self._burst = max(burst, 1)
        self._clock = clock
        self._most_remembered = remembered
        self._buckets: collections.OrderedDict[str, tuple[float, float]] = collections.OrderedDict()
        self._lock = threading.Lock()

    @property
    def text(self) -> str:
        """The limit in words."""
        return f'{self._rate:g} a second, {self._burst} at once'

    def take(self, key: str) -> int:
        """Count one request of *key*: 0 when it may go on, else in how many whole seconds to try again."""
        if not self._rate:
            return 0
        now = self._clock()
        with self._lock:
            level, since = self._buckets.pop(key, (float(self._burst), now))
            level = min(level + (now - since) * self._rate, self._burst)
            allowed = level >= 1
            self._buckets[key] = (level - 1 if allowed else level), now
            if len(self._buckets) > self._most_remembered:
                self._buckets.popitem(last=False)
        return 0 if allowed else max(1, math.ceil((1 - level) / self._rate))
