"""When to look for due rows next."""

from __future__ import annotations

from datetime import timedelta

import pytest

from designate_pool.model import utcnow
from designate_pool.pool_manager.reconcile.reconciler import DueTimer

NOW = utcnow()


def after(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


@pytest.mark.parametrize('stored, written, wait', [
    (None, None, 60), (2, None, 2), (None, 3, 3), (2, 3, 2), (3, 2, 2), (90, 80, 60), (-1, None, 0), (2, -1, 0)])
def test_the_next_look_is_when_the_soonest_row_is_due(stored: float | None, written: float | None, wait: float) -> None:
    timer = DueTimer()
    timer.start_look()
    if written is not None:  # while rows are looked for, which does not end a wait
        timer.set(NOW + after(written))
    assert not timer._woken.is_set()
    assert timer.end_look(None if stored is None else NOW + after(stored), NOW, 60.0) == pytest.approx(wait, abs=0.02)


@pytest.mark.parametrize('written, wakes', [(1, True), (2, False), (3, False)])
def test_only_a_sooner_time_ends_a_wait(written: float, wakes: bool) -> None:
    timer = DueTimer()
    timer.end_look(NOW + after(2), NOW, 60.0)
    timer.set(NOW + after(written))
    assert timer._woken.is_set() is wakes
    timer.wait(0)
    timer.set(NOW + after(written))
    assert not timer._woken.is_set(), 'that is known'
