"""The loops of the pool manager never end by themselves."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from designate_pool.pool_manager.periodic.due_timer import DueTimer
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from designate_pool.runtime import Threads
from testing.processes import wait_until


class Timeout(BaseException):
    """As eventlet's is: no Exception."""


class Trouble:
    """In place of a manager: whatever is asked of it fails, each time in another way."""

    def __init__(self) -> None:
        self.asked = 0
        self.reconciler = SimpleNamespace(due_timer=DueTimer())

    def __getattr__(self, name: str) -> Any:
        self.asked += 1
        raise (Timeout if self.asked % 2 else RuntimeError)(name)


def test_whatever_is_raised_every_loop_comes_round_again(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble()
    periodic = PeriodicLoops(trouble, trouble, Threads())  # type: ignore[arg-type]
    with caplog.at_level(logging.CRITICAL):
        periodic.start()
        wait_until(lambda: len(periodic.last_tick) == 11, 'every loop has begun')
        first = dict(periodic.last_tick)
        wait_until(lambda: all(periodic.last_tick[name] > first[name] for name in first), 'every loop came round again')
    periodic.stop()
    assert trouble.asked >= 14
