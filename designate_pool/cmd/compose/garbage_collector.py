"""When the garbage collector looks: seldom at what is young, and now and then at everything."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

#: Objects after which the collector looks at the young ones, and times after which it looks at older ones as well.
_YOUNG, _OLDER = 20_000, 20
#: Seconds between two looks at everything, and how many times as long as one look takes they are at least.
EVERY, SHARE = 60.0, 100


class GarbageCollector:
    """Sets how the garbage collector of the process goes about it, as from now.

    By itself it would go through all that the program has imported again and again, and hardly anything of ours is a
    cycle.  But what was old before it became garbage it would not look at for hours, and that can be small to count and
    large to hold: each connection to a broker that went away is a cycle with a buffer of 128 KiB.

    :param clock: seconds
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        gc.collect()
        gc.freeze()
        gc.set_threshold(_YOUNG, _OLDER, _OLDER)
        self._due = clock() + EVERY

    def take_turn(self) -> None:
        """Look at everything that came after the start, when it is time to."""
        began = self._clock()
        if began < self._due:
            return
        gc.collect()
        ended = self._clock()
        self._due = ended + max(EVERY, SHARE * (ended - began))
