"""When to look for due rows next."""

from __future__ import annotations

from datetime import timedelta

import pytest

from designate_pool.model import utcnow
from designate_pool.pool_manager.reconcile.reconciler import HORIZON, DueTimer

NOW = utcnow()


def after(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def test_a_row_has_one_time() -> None:
    timer = DueTimer()
    timer.set({'a': NOW + after(5), 'b': NOW + after(5)}, NOW)
    timer.set({'a': NOW + after(7)}, NOW)
    assert timer.until_next(NOW, NOW, 60.0) == pytest.approx(5, abs=0.02)
    timer.set({'b': None}, NOW)
    assert timer.until_next(NOW, NOW, 60.0) == pytest.approx(7, abs=0.02)
    timer.set({'a': NOW}, NOW)
    assert timer.until_next(NOW, NOW, 60.0) == 60.0


def test_rows_that_need_nothing_more_leave_nothing_behind() -> None:
    timer = DueTimer()
    for number in range(1000):
        timer.set({number: NOW + after(number / 100 + 5)}, NOW)
    timer.set(dict.fromkeys(range(500)), NOW)
    timer.until_next(NOW + after(20), NOW + after(20), 0.5)
    assert not timer._slots and not timer._slot_of and not timer._order


def test_a_time_far_ahead_keeps_no_slots_that_are_empty() -> None:
    timer = DueTimer()
    timer.set({'first': NOW + after(1)}, NOW)
    for number in range(5000):
        timer.set({'a': NOW + after(5 + number / 200)}, NOW)
    assert len(timer._order) < 1100
    assert timer.until_next(NOW, NOW, 60.0) == pytest.approx(1, abs=0.02)
    now = NOW + after(2)
    assert timer.until_next(now, now, 60.0) == pytest.approx(3 + 4999 / 200, abs=0.02)


def test_what_another_writer_wrote_is_not_put_off() -> None:
    timer = DueTimer()
    timer.set({'a': NOW + after(1), 'b': NOW + after(3), 'c': NOW + after(2)}, NOW)
    timer.set({'a': NOW + after(5), 'b': NOW + after(2), 'c': None}, NOW, only_sooner=True)
    timer.set({'b': NOW + after(2.5)}, NOW)
    for past, left in ((0, 1), (1.5, 0.5), (2.2, 0.3), (2.6, 60)):
        now = NOW + after(past)
        assert timer.until_next(now, now, 60.0) == pytest.approx(left, abs=0.02)


@pytest.mark.parametrize('times, wakes', [
    ({'c': 1}, True), ({'a': 1}, True), ({'c': 3}, False), ({'a': None}, False), ({'a': 4}, False)])
def test_only_a_sooner_time_ends_a_wait(times: dict[str, float | None], wakes: bool) -> None:
    timer = DueTimer()
    timer.set({'a': NOW + after(2), 'b': NOW + after(2.5)}, NOW)
    timer.wait(0)
    timer.set({key: None if each is None else NOW + after(each) for key, each in times.items()}, NOW)
    assert timer._woken.is_set() is wakes


def test_nothing_ahead_is_the_regular_look() -> None:
    assert DueTimer().until_next(NOW, NOW, 0.5) == 0.5


def test_the_soonest_counts_and_what_is_over_is_forgotten() -> None:
    timer = DueTimer()
    timer.set({'a': NOW + after(2), 'b': None, 'c': NOW + after(0.2), 'd': NOW - after(1), 'e': NOW + after(0.4)}, NOW)
    assert timer.until_next(NOW, NOW, 0.5) == pytest.approx(0.2, abs=0.01)
    assert timer.until_next(NOW + after(0.3), NOW + after(0.3), 0.5) == pytest.approx(0.1, abs=0.01)
    assert timer.until_next(NOW + after(0.41), NOW + after(0.41), 0.5) == 0.5
    assert timer.until_next(NOW + after(1.9), NOW + after(1.9), 0.5) == pytest.approx(0.1, abs=0.01)
    assert timer.until_next(NOW + after(3), NOW + after(3), 0.5) == 0.5


def test_what_is_far_ahead_is_left_to_the_regular_looks() -> None:
    timer = DueTimer()
    timer.set({'a': NOW + HORIZON * 2}, NOW)
    assert timer.until_next(NOW + HORIZON * 2 - after(0.1), NOW + HORIZON * 2 - after(0.1), 0.5) == 0.5


def test_a_time_that_passes_while_rows_are_looked_for_is_not_lost() -> None:
    timer = DueTimer()
    timer.set({'a': NOW + after(0.1)}, NOW)
    assert timer.until_next(NOW, NOW + after(0.2), 5.0) == 0.0
    assert timer.until_next(NOW + after(0.2), NOW + after(0.3), 5.0) == 5.0
