"""When to look for due rows next."""

from __future__ import annotations

from datetime import timedelta

from designate_pool.model import utcnow
from designate_pool.pool_manager.periodic.due_timer import HORIZON, DueTimer

NOW = utcnow()


def after(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def test_nothing_ahead_is_the_regular_look() -> None:
    assert DueTimer().until_next(NOW, 0.5) == 0.5


def test_the_soonest_counts_and_what_is_over_is_forgotten() -> None:
    alarms = DueTimer()
    alarms.set([NOW + after(2), None, NOW + after(0.2), NOW - after(1), NOW + after(0.4)], NOW)
    assert alarms.until_next(NOW, 0.5) == 0.2
    assert alarms.until_next(NOW + after(0.3), 0.5) == 0.1
    assert alarms.until_next(NOW + after(0.4), 0.5) == 0.5
    assert alarms.until_next(NOW + after(1.9), 0.5) == 0.1
    assert alarms.until_next(NOW + after(3), 0.5) == 0.5


def test_what_is_far_ahead_is_left_to_the_regular_looks() -> None:
    alarms = DueTimer()
    alarms.set([NOW + HORIZON * 2], NOW)
    assert alarms.until_next(NOW + HORIZON * 2 - after(0.1), 0.5) == 0.5
