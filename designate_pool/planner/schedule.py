"""When runs are due: at the start, then at an interval, and earlier after an event."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

LOG = logging.getLogger(__name__)
TICK = 1.0


class StopEvent(Protocol):
    """Such as a :class:`threading.Event`."""

    def wait(self, timeout: float) -> bool:
        """Wait for the event, at most *timeout* seconds; returns whether it has happened."""


class RunSchedule:
    """Times of runs, in seconds of one monotonic clock.

    A run is due ``interval`` after the start of the last one, or earlier after an event, but at least
    ``min_event_sync_interval`` after that start.  An event never delays a run.

    :param interval: from the start of one run to the start of the next
    """

    def __init__(self, now: float, interval: float, min_event_sync_interval: float = 5.0) -> None:
        self.interval = interval
        self.min_event_sync_interval = min_event_sync_interval
        self.next_run_at = now
        self.last_run_at: float | None = None
        self._lock = threading.Lock()

    def schedule(self, now: float) -> None:
        """After an event: a run is due as soon as possible."""
        with self._lock:
            earliest = now if self.last_run_at is None else max(now, self.last_run_at + self.min_event_sync_interval)
            self.next_run_at = min(self.next_run_at, earliest)

    def is_due(self, now: float) -> bool:
        """Whether a run is to begin."""
        return now >= self.next_run_at

    def begin(self, now: float) -> None:
        """A run begins; later events need another one."""
        with self._lock:
            self.last_run_at = now
            self.next_run_at = now + max(self.interval, self.min_event_sync_interval)


class RunController:
    """Runs something on schedule; an exception of one run is logged and does not stop the next.

    :param run: one run
    :param clock: monotonic seconds
    :param tick: seconds between two checks of the schedule
    """

    def __init__(self, run: Callable[[], object], interval: float, min_event_sync_interval: float = 5.0,
                 clock: Callable[[], float] = time.monotonic, tick: float = TICK) -> None:
        self._run = run
        self._clock = clock
        self._tick = tick
        self._schedule = RunSchedule(clock(), interval, min_event_sync_interval)

    def once(self) -> None:
        """One run now; its exceptions are raised."""
        self._schedule.begin(self._clock())
        self._run()

    def schedule(self) -> None:
        """A source has changed: run as soon as possible.  Thread-safe."""
        self._schedule.schedule(self._clock())

    def forever(self, stop: StopEvent) -> None:
        """Run whenever it is due, until *stop* is set."""
        while True:
            if self._schedule.is_due(self._clock()):
                try:
                    self.once()
                except Exception:  # a provider may raise anything; the loop continues
                    LOG.exception('A run failed; the next starts in at most %.0f seconds', self._schedule.interval)
            if stop.wait(self._tick):
                return
