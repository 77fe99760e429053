"""When to look for due rows next."""

from __future__ import annotations

from datetime import timedelta

import pytest

from designate_pool.model import utcnow
from designate_pool.pool_manager.periodic.due_timer import HORIZON, DueTimer

NOW = utcnow()


def after(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def test_times_that_nobody_waits_for_do_not_pile_up() -> None:
    timer = DueTimer()
    for number in range(30_000):
        timer.set([NOW + after(number / 100 + 5), NOW + after(number / 100 + 5.001)], NOW + after(number / 100))
    assert len(timer._slots) <= 12_000
    assert 0 < timer.until_next(NOW + after(304.95), NOW + after(304.95), 0.5) < 0.05


def test_nothing_ahead_is_the_regular_look() -> None:
    assert DueTimer().until_next(NOW, NOW, 0.5) == 0.5


def test_the_soonest_counts_and_what_is_over_is_forgotten() -> None:
    timer = DueTimer()
    timer.set([NOW + after(2), None, NOW + after(0.2), NOW - after(1), NOW + after(0.4)], NOW)
    assert timer.until_next(NOW, NOW, 0.5) == pytest.approx(0.2, abs=0.01)
    assert timer.until_next(NOW + after(0.3), NOW + after(0.3), 0.5) == pytest.approx(0.1, abs=0.01)
    assert timer.until_next(NOW + after(0.41), NOW + after(0.41), 0.5) == 0.5
    assert timer.until_next(NOW + after(1.9), NOW + after(1.9), 0.5) == pytest.approx(0.1, abs=0.01)
    assert timer.until_next(NOW + after(3), NOW + after(3), 0.5) == 0.5


def test_what_is_far_ahead_is_left_to_the_regular_looks() -> None:
    timer = DueTimer()
    timer.set([NOW + HORIZON * 2], NOW)
    assert timer.until_next(NOW + HORIZON * 2 - after(0.1), NOW + HORIZON * 2 - after(0.1), 0.5) == 0.5


def test_a_time_that_passes_while_rows_are_looked_for_is_not_lost() -> None:
    timer = DueTimer()
    timer.set([NOW + after(0.1)], NOW)
    assert timer.until_next(NOW, NOW + after(0.2), 5.0) == 0.0
    assert timer.until_next(NOW + after(0.2), NOW + after(0.3), 5.0) == 5.0
