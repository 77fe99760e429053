"""When the garbage collector looks at everything."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from designate_pool.cmd.compose.lifecycle import EVERY, SHARE, GarbageCollector


class Lost:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.itself = self


class Clock:
    """:ivar now: seconds, which pass as each look is *taken*"""

    def __init__(self) -> None:
        self.now = 0.0
        self.taken = 0.0

    def __call__(self) -> float:
        return self.now

    def pass_while_looking(self, phase: str, details: object) -> None:
        self.now += self.taken if phase == 'stop' else 0


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock, thresholds = Clock(), gc.get_threshold()
    gc.disable()  # so that nobody else collects
    gc.callbacks.append(clock.pass_while_looking)
    yield clock
    gc.callbacks.remove(clock.pass_while_looking)
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    gc.enable()


def lost_when_old() -> weakref.ref[Lost]:
    """To what was old when it became garbage."""
    kept = Lost()
    gc.collect()
    return weakref.ref(kept)


@pytest.mark.parametrize('taken, pause', [(0.0, EVERY), (2.0, SHARE * 2.0)],
                         ids=['a minute', 'so long that looking takes no more than its share of the time'])
def test_what_is_lost_when_it_is_old_is_freed_after(taken: float, pause: float, clock: Clock) -> None:
    collector = GarbageCollector(clock)
    clock.now, clock.taken = EVERY, taken
    collector.collect_if_due()
    clock.taken = 0.0
    lost = lost_when_old()
    clock.now += pause - 1
    collector.collect_if_due()
    assert lost() is not None
    clock.now += 1
    collector.collect_if_due()
    assert lost() is None
