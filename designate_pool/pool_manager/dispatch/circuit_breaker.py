"""A circuit breaker: after some consecutive failures a server gets no calls but an occasional cheap probe.

There are two for each server, since its control channel and its DNS can fail independently.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from designate_pool.backoff import Backoff

#: If probes succeed and calls fail, the pause between probes doubles, up to this many intervals.
LONGEST = 16
#: Seconds for which a circuit was open lately.
LATELY = 600.0


class CircuitBreaker:
    """Closed while the server answers.

    :param failures: number of consecutive failures that opens it
    :param probe_interval: seconds between two probes while it is open
    :param clock: monotonic seconds
    """

    def __init__(self, failures: int, probe_interval: float, clock: Callable[[], float]) -> None:
        self._limit = failures
        self._clock = clock
        self._lock = threading.Lock()
        self._count = 0
        self._open_since: float | None = None
        self._closed_at = -LATELY
        self._next_probe = 0.0
        self._pauses = Backoff(probe_interval, cap=LONGEST * probe_interval)
        self._unproven = 0
        self._proven = True
        self._heard_at = clock()

    @property
    def is_open(self) -> bool:
        """Whether the server gets only probes."""
        return self._open_since is not None

    @property
    def was_open_lately(self) -> bool:
        """Whether it is open, or was within the last :data:`LATELY` seconds."""
        return self.is_open or self._clock() - self._closed_at < LATELY

    def failed(self, count: int = 1) -> bool:
        """Count *count* failures to reach the server; whether this opened the circuit."""
        with self._lock:
            self._heard_at = self._clock()
            self._count += count
            if self._open_since is not None or self._count < self._limit:
                return False
            self._open_since = self._clock()
            self._unproven = 0 if self._proven else self._unproven + 1
            self._next_probe = self._open_since + self._pauses.delay(self._unproven)
            return True

    def answered(self, probe: bool = False) -> bool:
        """The server has answered anything at all; whether this closed the circuit.

        :param probe: whether it answered only a probe, which proves little
        """
        with self._lock:
            self._heard_at = self._clock()
            self._count = 0
            was_open = self._open_since is not None
            if was_open:
                self._closed_at = self._clock()
            self._open_since = None
            self._proven = not probe
            return was_open

    def probe_due(self) -> bool:
        """Whether a probe may be sent now; if so, the next one is due after the pause."""
        with self._lock:
            if self._open_since is None or self._clock() < self._next_probe:
                return False
            self._next_probe = self._clock() + self._pauses.delay(self._unproven)
            return True

    def close_unheard(self, longest: float) -> bool:
        """Close if nothing was heard of the probes; whether it was closed.

        What they find goes to another process then, and this one would never hear that the server answers.

        :param longest: seconds that an answer or a failure takes at most
        """
        with self._lock:
            if self._open_since is None or self._clock() - self._heard_at <= longest + 2 * self._pauses.cap:
                return False
            self._open_since, self._count, self._closed_at = None, 0, self._clock()
            return True
