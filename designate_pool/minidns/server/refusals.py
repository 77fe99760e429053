"""A rate-limited log of refused queries: the first of a kind at once, after that one line a minute with a count.

Queries of strangers must fill neither memory nor log: at most :data:`MAX_KINDS` sources are told apart, the others are
counted together.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from designate_pool.minidns.access.acl import Refusal

LOG = logging.getLogger(__name__)

LOG_INTERVAL = 60.0
MAX_KINDS = 100
_OTHERS = ('others', '')


class RefusalLog:
    """Refusals by source (address and key) and kind; safe for threads.

    :param clock: monotonic seconds
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: By address and key, then by kind: when it was last logged, and how often it has happened since.
        self._kinds_by_source: dict[tuple[str, str], dict[str, tuple[float, int]]] = {}
        self._window = (clock(), 0)

    def refused(self, refusal: Refusal) -> None:
        now = self._clock()
        with self._lock:
            source, kind = self._key_of(refusal, now)
            kinds = self._kinds_by_source.setdefault(source, {})
            logged_at, suppressed = kinds.get(kind, (now - LOG_INTERVAL, 0))
            is_logged = now - logged_at >= LOG_INTERVAL and self._has_line_budget(now)
            kinds[kind] = (now, 0) if is_logged else (logged_at, suppressed + 1)
        if is_logged:
            repeat_note = f' (and {suppressed} times more since the last such line)' if suppressed else ''
            others_note = ' (beside many others)' if source == _OTHERS else ''
            LOG.warning('refused: %s%s%s', refusal.why, others_note, repeat_note)

    def accepted(self, address: str, key: str) -> None:
        """A query from this source was accepted: log its next refusal at once."""
        if self._kinds_by_source:
            with self._lock:
                self._kinds_by_source.pop((address, key), None)

    def _key_of(self, refusal: Refusal, now: float) -> tuple[tuple[str, str], str]:
        """The source and kind to count it under."""
        source = refusal.address, refusal.key
        if source in self._kinds_by_source:
            return source, refusal.kind
        if len(self._kinds_by_source) >= MAX_KINDS:
            self._kinds_by_source = {each: kinds for each, kinds in self._kinds_by_source.items()
                                     if any(now - logged_at < LOG_INTERVAL for logged_at, _ in kinds.values())}
        return (source, refusal.kind) if len(self._kinds_by_source) < MAX_KINDS else (_OTHERS, '')

    def _has_line_budget(self, now: float) -> bool:
        """Whether another line may be logged this minute."""
        started, lines = self._window
        if now - started >= LOG_INTERVAL:
            started, lines = now, 0
        self._window = started, lines + 1
        return lines < MAX_KINDS
