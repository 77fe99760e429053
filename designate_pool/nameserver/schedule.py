"""Timers, on one thread."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

LOG = logging.getLogger(__name__)


class TaskSchedule:
    """Runs short pieces of work at their time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._running = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._running = True
        self._thread = threading.Thread(target=self._run, name='schedule', daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Drop what is scheduled, and end."""
        with self._changed:
            self._running = False
            self._heap.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def after(self, seconds: float, work: Callable[[], None]) -> None:
        """Run *work* in so many seconds."""
        with self._changed:
            heapq.heappush(self._heap, (time.monotonic() + seconds, next(self._order), work))
            if self._heap[0][2] is work:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            work = self._next()
            if work is None:
                return
            try:
                work()
            except Exception:  # one failure must not stop the thread
                LOG.exception('Scheduled work failed')

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while self._running:
                wait = self._heap[0][0] - time.monotonic() if self._heap else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._heap)[2]
                self._changed.wait(wait)
        return None
