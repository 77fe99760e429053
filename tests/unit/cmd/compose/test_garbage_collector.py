"""Old garbage is collected while a program waits for its end."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace

from designate_pool.cmd.compose.lifecycle import wait_for_stop


class Lost:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.itself = self


def test_what_is_lost_when_it_is_old_is_freed() -> None:
    lost: list[weakref.ref[Lost]] = []

    def wait(seconds: float) -> None:
        """Each wait leaves garbage, which is old; the third sets the signal."""
        assert seconds <= 60 and not any(reference() for reference in lost)
        kept = Lost()
        gc.collect()
        lost.append(weakref.ref(kept))
        signals.stop = len(lost) == 3

    signals = SimpleNamespace(stop=False, hangup=False, wait=wait)
    thresholds = gc.get_threshold()
    gc.disable()  # nobody else collects
    try:
        wait_for_stop(signals, ())  # type: ignore[arg-type]
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        gc.enable()
    assert len(lost) == 3
