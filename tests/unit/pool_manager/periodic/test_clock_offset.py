"""Whether this host's clock and the database's are in step."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from designate_pool import metrics
from designate_pool.model import utcnow
from designate_pool.pool_manager.periodic import clock_offset
from designate_pool.storage.reporting.clock_offset import offset

NOON = utcnow()


class Database:
    """One whose clock says *at*."""

    def __init__(self, at: datetime | None) -> None:
        self.at = at

    def read(self, work: Callable[..., Any]) -> datetime | None:
        return self.at


def here(*seconds: float) -> Callable[[], datetime]:
    """This host's clock, before and after the question."""
    left = list(seconds)
    return lambda: NOON + timedelta(seconds=left.pop(0))


@pytest.mark.parametrize(('before', 'after', 'ahead'), [
    (-1, 1, 0), (90, 91, 90), (-91, -90, -90), (0.5, 3, 0.5), (0, 0, 0)])
def test_of_what_is_possible_the_least_is_told(before: float, after: float, ahead: float) -> None:
    assert offset(Database(NOON), here(before, after)) == ahead  # type: ignore[arg-type]


def test_a_database_without_a_clock_of_its_own_is_in_step() -> None:
    assert offset(Database(None), here(5, 6)) == 0  # type: ignore[arg-type]


def test_it_is_told_once_that_they_differ_and_once_that_they_do_no_more(caplog: pytest.LogCaptureFixture) -> None:
    database = Database(NOON)
    looking = clock_offset.ClockOffset(database, here(0, 0, 90, 90, 90, 90, 1, 1))  # type: ignore[arg-type]
    with caplog.at_level(logging.INFO):
        for ahead in (0, 90, 90, 1):
            assert looking.check() is (ahead < 90)
            assert metrics.CLOCK_AHEAD._value.get() == ahead
    assert [record.levelname for record in caplog.records] == ['ERROR', 'INFO']
    assert "this host's clock is 90.0 s ahead of the database's" in caplog.text
