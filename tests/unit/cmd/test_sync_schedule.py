"""When runs of ``designate-pool-sync`` happen: the first, the next, events, bursts, errors, the end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import pytest

from designate_pool.cmd.programs.sync import RunSchedule


class ScheduledRuns:
    """A schedule whose waiting moves its clock; it ends when a moment is reached.

    :ivar events: moments at which an event comes
    """

    def __init__(self, until: float, interval: float, least: float = 5.0, events: Sequence[float] = (),
                 run_takes: float = 0.0, fails: int = 0) -> None:
        self.now = 1000.0
        self.begun: list[float] = []
        self._fails = fails
        self._end = self.now + until
        self._events = [self.now + event for event in events]
        self._takes = run_takes
        self._schedule = RunSchedule(self.run, interval, least, clock=lambda: self.now)
        self._schedule.repeat(self)

    def run(self) -> None:
        self.begun.append(self.now - 1000)
        self._pass(self._takes)
        if len(self.begun) <= self._fails:
            raise LookupError('the source is away')

    def wait(self, timeout: float) -> bool:
        self._pass(timeout)
        return self.now >= self._end

    def _pass(self, seconds: float) -> None:
        end = self.now + seconds
        for event in [event for event in self._events if event <= end]:
            self._events.remove(event)
            self.now = event
            self._schedule.hasten()
        self.now = end


@pytest.mark.parametrize(('until', 'interval', 'settings', 'begun'), [
    pytest.param(250, 60, {}, [0, 60, 120, 180, 240], id='the first at once, then every interval'),
    pytest.param(100, 60, {'events': (20,)}, [0, 20, 80], id='an event brings the next forward'),
    pytest.param(60, 1000, {'events': (1, 2, 3, 30, 31, 32), 'least': 10}, [0, 10, 30, 40],
                 id='a burst of events is one run, not too soon after the last'),
    pytest.param(60, 1000, {'events': (5,), 'run_takes': 8, 'least': 20}, [0, 20], id='an event during a short run'),
    pytest.param(60, 1000, {'events': (5,), 'run_takes': 30, 'least': 20}, [0, 31], id='an event during a long run'),
    pytest.param(45, 20, {'events': (19.5,), 'least': 15}, [0, 20, 40], id='an event never delays a run'),
    pytest.param(25, 1, {'least': 10}, [0, 10, 20], id='an interval under the least one'),
])
def test_when_runs_begin(until: float, interval: float, settings: dict[str, object], begun: list[float]) -> None:
    """E-11, E-13, E-14, E-15, E-16."""
    assert ScheduledRuns(until, interval, **settings).begun == begun  # type: ignore[arg-type]


def test_a_run_that_fails_is_logged_and_the_next_comes_when_it_is_due(caplog: pytest.LogCaptureFixture) -> None:
    """E-15, A85."""
    with caplog.at_level(logging.ERROR):
        assert ScheduledRuns(130, 60, fails=2).begun == [0, 60, 120]
    assert ['the source is away' in (record.exc_text or '') for record in caplog.records] == [True, True]


def test_it_ends_when_it_is_told_to_in_the_middle_of_waiting() -> None:
    ran, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=RunSchedule(ran.set, 3600, tick=600).repeat, args=(stop,))
    thread.start()
    assert ran.wait(10)
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
