"""The pace of the sweep."""

from __future__ import annotations

import logging

import pytest

from designate_pool.pool_manager.periodic import Round


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def run(pace: Round, time: Time, pages: int, work: float) -> float:
    """A round of *pages* pages that take *work* seconds each; how long it lasts, the wait for the next included."""
    started = time.now
    for page in range(1, pages + 1):
        time.now += work
        time.now += pace.next_page(str(page) if page < pages else '', 120)
    return time.now - started


@pytest.mark.parametrize('pages', [1, 2, 7])
def test_a_round_takes_the_interval_the_first_time_and_the_second(pages: int) -> None:
    time = Time()
    pace = Round(time)
    assert run(pace, time, pages, 0.5) == pytest.approx(120)
    assert run(pace, time, pages, 0.5) == pytest.approx(120)


def test_the_pages_of_the_second_round_are_spread_evenly() -> None:
    time = Time()
    pace = Round(time)
    run(pace, time, 4, 1)
    pauses = []
    for page in ('a', 'b', 'c', ''):
        time.now += 1
        pauses.append(pace.next_page(page, 120))
        time.now += pauses[-1]
    assert pauses == pytest.approx([29, 29, 29, 29])


def test_a_round_that_does_not_fit_goes_on_without_a_pause_and_says_how_long_it_takes(
        caplog: pytest.LogCaptureFixture) -> None:
    time = Time()
    pace = Round(time)
    run(pace, time, 10, 20)
    with caplog.at_level(logging.WARNING):
        assert run(pace, time, 10, 20) == pytest.approx(200)
    assert 'takes 200 s' in caplog.text
