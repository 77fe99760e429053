"""When to try again: delays that grow with each failure, up to a cap, spread at random.  A pure value."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator


@dataclasses.dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds: *initial* x *factor* ** number, at most *cap*, times a random factor.

    :ivar jitter: the least and the greatest random factor
    """

    initial: float
    factor: float = 2.0
    cap: float = math.inf
    jitter: tuple[float, float] = (1.0, 1.0)

    def delay(self, number: int, chance: float = 1.0) -> float:
        """The delay after *number* earlier delays.

        :param chance: a random number from 0 to 1, which chooses between the ends of :attr:`jitter`
        """
        least, greatest = self.jitter
        try:
            delay = min(self.cap, self.initial * self.factor ** number)
        except OverflowError:
            delay = self.cap
        return delay * (least + (greatest - least) * chance)

    def delays(self, chance: Callable[[], float] = lambda: 1.0) -> Iterator[float]:
        """The delays from the first on, without end."""
        return (self.delay(number, chance()) for number in itertools.count())
