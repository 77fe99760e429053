"""When runs happen: the first, the next, events, bursts, errors, the end."""

from __future__ import annotations

import logging
import threading

import pytest

from designate_pool.planner.schedule import RunController, RunSchedule
from tests.unit.planner.conftest import ScheduledRuns


def begun(until: float, **settings: object) -> list[float]:
    runs = ScheduledRuns(until, **settings)  # type: ignore[arg-type]
    runs.controller.forever(runs)
    return runs.begun


def test_the_first_run_is_at_once_and_then_every_interval() -> None:
    """E-11, E-14, E-15."""
    assert begun(250, interval=60) == [0, 60, 120, 180, 240]


def test_an_event_brings_the_next_run_forward() -> None:
    """E-13."""
    assert begun(100, interval=60, events=(20,)) == [0, 20, 80]


def test_a_burst_of_events_is_one_run_not_too_soon_after_the_last() -> None:
    """E-16."""
    assert begun(60, interval=1000, events=(1, 2, 3, 30, 31, 32), min_event_sync_interval=10) == [0, 10, 30, 40]


def test_an_event_during_a_run_means_another_one() -> None:
    assert begun(60, interval=1000, events=(5,), run_takes=8, min_event_sync_interval=20) == [0, 20]
    assert begun(60, interval=1000, events=(5,), run_takes=30, min_event_sync_interval=20) == [0, 31]


def test_an_event_never_puts_a_run_off() -> None:
    assert begun(45, interval=20, events=(19.5,), min_event_sync_interval=15) == [0, 20, 40]


def test_an_interval_shorter_than_the_least_is_the_least() -> None:
    assert begun(25, interval=1, min_event_sync_interval=10) == [0, 10, 20]


def test_a_run_that_fails_is_logged_and_the_next_comes_when_it_is_due(caplog: pytest.LogCaptureFixture) -> None:
    """E-15, A85."""
    runs = ScheduledRuns(130, interval=60)
    runs.fails = 2
    with caplog.at_level(logging.ERROR):
        runs.controller.forever(runs)
    assert runs.begun == [0, 60, 120]
    assert [record.exc_text is not None and 'the source is away' in record.exc_text for record in caplog.records] == [
        True, True]


def test_once_is_one_run_whose_error_is_the_callers() -> None:
    """E-12."""
    runs = ScheduledRuns(1, interval=60)
    runs.controller.once()
    assert runs.begun == [0]
    runs.fails = 1
    with pytest.raises(LookupError, match='the source is away'):
        runs.controller.once()


def test_it_ends_when_it_is_told_to_in_the_middle_of_waiting() -> None:
    ran, stop = threading.Event(), threading.Event()
    controller = RunController(ran.set, 3600, tick=600)
    thread = threading.Thread(target=controller.forever, args=(stop,))
    thread.start()
    assert ran.wait(10)
    stop.set()
    thread.join(10)
    assert not thread.is_alive()


def test_a_schedule_by_itself() -> None:
    schedule = RunSchedule(0.0, 60.0, 5.0)
    assert schedule.is_due(0.0)
    schedule.begin(0.0)
    assert not schedule.is_due(59.9) and schedule.is_due(60.0)
    schedule.schedule(1.0)
    assert not schedule.is_due(4.9) and schedule.is_due(5.0)
    schedule.begin(5.0)
    assert not schedule.is_due(64.9) and schedule.is_due(65.0)
