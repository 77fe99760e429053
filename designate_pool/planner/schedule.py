"""When a run is due: at once, then every so often, sooner after an event, and never too soon after another."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

LOG = logging.getLogger(__name__)
TICK = 1.0


class Stopping(Protocol):
    """Says when to end; a :class:`threading.Event` is one."""

    def wait(self, timeout: float) -> bool:
        """Wait *timeout* seconds, or until it is said; gives back whether it is."""


class RunSchedule:
    """Times of runs.  All times are seconds of one clock that does not go back.

    The invariant: a run is due ``interval`` after the beginning of the last, or sooner when an event asked for it, and
    never sooner than ``min_event_sync_interval`` after that beginning.  An event never puts a run off.

    :param interval: from the start of one run to the start of the next
    """

    def __init__(self, now: float, interval: float, min_event_sync_interval: float = 5.0) -> None:
        self.interval = interval
        self.min_event_sync_interval = min_event_sync_interval
        self.next_run_at = now
        self.last_run_at: float | None = None
        self._lock = threading.Lock()

    def schedule(self, now: float) -> None:
        """An event has come: a run is due as soon as may be."""
        with self._lock:
            earliest = now if self.last_run_at is None else max(now, self.last_run_at + self.min_event_sync_interval)
            self.next_run_at = min(self.next_run_at, earliest)

    def is_due(self, now: float) -> bool:
        """Whether a run is to begin."""
        return now >= self.next_run_at

    def begin(self, now: float) -> None:
        """A run begins.  What happens from here on may need another."""
        with self._lock:
            self.last_run_at = now
            self.next_run_at = now + max(self.interval, self.min_event_sync_interval)


class RunController:
    """Runs something again and again; whatever one run raises is logged, and the next comes when it is due.

    :param run: one run
    :param clock: seconds that do not go back
    :param tick: seconds between two looks at the clock
    """

    def __init__(self, run: Callable[[], object], interval: float, min_event_sync_interval: float = 5.0,
                 clock: Callable[[], float] = time.monotonic, tick: float = TICK) -> None:
        self._run = run
        self._clock = clock
        self._tick = tick
        self._schedule = RunSchedule(clock(), interval, min_event_sync_interval)

    def once(self) -> None:
        """One run now; what it raises is the caller's."""
        self._schedule.begin(self._clock())
        self._run()

    def schedule(self) -> None:
        """A source has changed: run as soon as may be.  Any thread may call it."""
        self._schedule.schedule(self._clock())

    def forever(self, stop: Stopping) -> None:
        """Run whenever it is due, until *stop* says to end."""
        while True:
            if self._schedule.is_due(self._clock()):
                try:
                    self.once()
                except Exception:  # whatever a provider raises, the loop goes on
                    LOG.exception('A run failed; the next starts in at most %.0f seconds', self._schedule.interval)
            if stop.wait(self._tick):
                return
