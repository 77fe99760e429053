"""Old garbage is collected while a program waits for its end."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from designate_pool.cmd.compose.lifecycle import wait_for_stop


class Lost:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.itself = self


class Signals:
    """Each wait leaves garbage, which is old; the third sets the signal."""

    def __init__(self) -> None:
        self.stop = self.hangup = False
        self.lost: list[weakref.ref[Lost]] = []

    def wait(self, seconds: float) -> None:
        assert seconds <= 60 and not any(reference() for reference in self.lost)
        kept = Lost()
        gc.collect()
        self.lost.append(weakref.ref(kept))
        self.stop = len(self.lost) == 3


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Nobody else collects."""
    thresholds = gc.get_threshold()
    gc.disable()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    gc.enable()


@pytest.mark.usefixtures('no_collection')
def test_what_is_lost_when_it_is_old_is_freed() -> None:
    signals = Signals()
    wait_for_stop(signals, ())  # type: ignore[arg-type]
    assert len(signals.lost) == 3
