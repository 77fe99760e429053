"""The schedule of the garbage collector: young objects seldom, everything from time to time."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

#: Thresholds of the young and of the older generations.
_YOUNG, _OLDER = 20_000, 20
#: The least seconds between two full collections, and the least multiple of the duration of one.
EVERY, SHARE = 60.0, 100


class GarbageCollector:
    """Tunes the garbage collector of the process from now on.

    By default it would traverse all imported modules again and again, though hardly anything of ours is a cycle, and it
    would not collect old objects for hours.  These may be few and large: each lost connection to a broker is a cycle
    with a buffer of 128 KiB.

    :param clock: seconds
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        gc.collect()
        gc.freeze()
        gc.set_threshold(_YOUNG, _OLDER, _OLDER)
        self._due = clock() + EVERY

    def collect_if_due(self) -> None:
        """Make a full collection of what was allocated since the start, when it is due."""
        began = self._clock()
        if began < self._due:
            return
        gc.collect()
        ended = self._clock()
        self._due = ended + max(EVERY, SHARE * (ended - began))
