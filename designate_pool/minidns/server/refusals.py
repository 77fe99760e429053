"""The log of who was refused, and why: the first of a kind at once, after that one line a minute with a count.

What strangers send must fill neither the memory nor the log: only so many kinds are told apart at a time, and what
comes beyond them is counted together.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from designate_pool.minidns.access.acl import Refusal

LOG = logging.getLogger(__name__)

EVERY = 60.0
MOST = 100
_OTHERS = ('others', '')


class RefusalLog:
    """Refusals by who asked (address and key) and kind; threads may share it.

    :param clock: seconds that only grow
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: By address and key, then by kind: when it was said last, and how often it happened since.
        self._said: dict[tuple[str, str], dict[str, tuple[float, int]]] = {}
        self._window = (clock(), 0)

    def refused(self, refusal: Refusal) -> None:
        now = self._clock()
        with self._lock:
            who, kind = self._place(refusal, now)
            kinds = self._said.setdefault(who, {})
            at, unsaid = kinds.get(kind, (now - EVERY, 0))
            loud = now - at >= EVERY and self._may_say(now)
            kinds[kind] = (now, 0) if loud else (at, unsaid + 1)
        if loud:
            more = f' (and {unsaid} times more since the last such line)' if unsaid else ''
            who_else = ' (beside many others)' if who == _OTHERS else ''
            LOG.warning('refused: %s%s%s', refusal.why, who_else, more)

    def worked(self, address: str, key: str) -> None:
        """Who asks from there with that key is in order: the next refusal is news."""
        if self._said:
            with self._lock:
                self._said.pop((address, key), None)

    def _place(self, refusal: Refusal, now: float) -> tuple[tuple[str, str], str]:
        """Under which who and kind it goes."""
        who = refusal.address, refusal.key
        if who in self._said:
            return who, refusal.kind
        if len(self._said) >= MOST:
            self._said = {each: kinds for each, kinds in self._said.items()
                          if any(now - at < EVERY for at, _ in kinds.values())}
        return (who, refusal.kind) if len(self._said) < MOST else (_OTHERS, '')

    def _may_say(self, now: float) -> bool:
        """Whether this minute still has room for a line."""
        began, lines = self._window
        if now - began >= EVERY:
            began, lines = now, 0
        self._window = began, lines + 1
        return lines < MOST
