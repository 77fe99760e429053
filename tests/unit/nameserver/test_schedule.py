"""Doing things later."""

from __future__ import annotations

import queue
from collections.abc import Iterator

import pytest

from designate_pool.nameserver.sockets import TaskSchedule


@pytest.fixture
def schedule() -> Iterator[TaskSchedule]:
    schedule = TaskSchedule()
    schedule.start()
    yield schedule
    schedule.stop()


def test_in_the_order_of_time(schedule: TaskSchedule) -> None:
    done: queue.Queue[str] = queue.Queue()
    schedule.after(0.06, lambda: done.put('second'))
    schedule.after(0.02, lambda: done.put('first'))
    assert [done.get(timeout=5), done.get(timeout=5)] == ['first', 'second']


def fail() -> None:
    raise ZeroDivisionError


def test_a_failure_does_not_end_it(schedule: TaskSchedule) -> None:
    done: queue.Queue[str] = queue.Queue()
    schedule.after(0, fail)
    schedule.after(0.01, lambda: done.put('still here'))
    assert done.get(timeout=5) == 'still here'


def test_what_is_to_come_is_forgotten_at_the_stop(schedule: TaskSchedule) -> None:
    done: queue.Queue[str] = queue.Queue()
    schedule.after(0.05, lambda: done.put('too late'))
    schedule.stop()
    schedule.start()
    schedule.after(0.1, lambda: done.put('later'))
    assert done.get(timeout=5) == 'later'
    assert done.empty()
