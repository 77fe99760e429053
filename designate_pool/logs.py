"""Logs: of state changes, for people and programs; and of failures, which cannot fill them.

Of an outage there is a line at its beginning and one at its end, of a kind of failure one a minute.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

#: Seconds between two lines of one kind in a :class:`RateLimitedLog`.
EVERY = 60.0
#: Sources that a :class:`RateLimitedLog` tells apart at a time, and lines that it admits in :data:`EVERY` seconds.
MOST = 100
_OTHERS = object()


def transition(log: logging.Logger, level: int, text: str, *arguments: object, request_id: str = '',
               **fields: Any) -> None:
    """Log a change of state: *text* % *arguments* for people, and *fields* for programs.

    oslo.log's JSON format (``[DEFAULT] use_json``) has the fields under ``extra``; a line of text ends with the request
    id.

    :param request_id: of the request that led to it; empty when it is not known
    :param fields: ``domain``, ``server``, ``action``, ``serial`` and others
    """
    if not log.isEnabledFor(level):
        return
    if request_id:
        text, arguments = f'{text} [%s]', (*arguments, request_id)
    log.log(level, text, *arguments, extra={'extra': {**fields, 'request_id': request_id or None}}, stacklevel=2)


def failure(log: logging.Logger, error: BaseException, text: str, *arguments: object) -> None:
    """Log a failure that was not expected, with its stack trace; at DEBUG where its cause has been logged."""
    log.log(logging.DEBUG if is_logged(error) else logging.ERROR, text, *arguments, exc_info=error)


def is_logged(error: object) -> bool:
    """Whether the cause of *error* was logged where it was noticed: see :class:`designate_pool.errors.PoolError`."""
    return bool(getattr(error, 'is_logged', False))


class OutageLog:
    """Logs the first failure of an outage at *level*, those that follow at DEBUG, and its end at INFO.

    Failures whose cause has been logged where it was noticed are at DEBUG too.

    Threads may share it.  One log may keep several outages apart, each by its *key*.

    :param failing: the line of the failures, with ``%`` places for the arguments of :meth:`failed`
    :param ended: the line of the end, with places for the arguments of :meth:`ended`; how long the outage lasted and
        how many failures it had is added
    """

    def __init__(self, log: logging.Logger, failing: str, ended: str, level: int = logging.ERROR,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._failing = failing
        self._ended = f'{ended} (after %.0f s and %d failures)'
        self._level = level
        self._clock = clock
        self._lock = threading.Lock()
        #: By key: when the outage began, its failures so far, and whether its begin was logged.
        self._outages: dict[Hashable, tuple[float, int, bool]] = {}

    def __bool__(self) -> bool:
        """Whether there is an outage."""
        return bool(self._outages)

    def failed(self, *arguments: object, key: Hashable = None, exc_info: bool = False) -> None:
        """Count a failure of the outage of *key*, which begins with the first; *exc_info* adds the stack trace."""
        with self._lock:
            since, count, was_told = self._outages.get(key, (self._clock(), 0, False))
            is_told = was_told or not any(map(is_logged, arguments))
            self._outages[key] = since, count + 1, is_told
        self._log.log(self._level if is_told and not was_told else logging.DEBUG, self._failing, *arguments,
                      exc_info=exc_info or None)

    def ended(self, *arguments: object, key: Hashable = None) -> None:
        """End the outage, if there is one; cheap if there is none."""
        if self._outages:
            with self._lock:
                since, count, is_told = self._outages.pop(key, (0.0, 0, False))
            if count:
                self._log.log(logging.INFO if is_told else logging.DEBUG, self._ended, *arguments,
                              self._clock() - since, count)

    def forget(self, key: Hashable) -> None:
        """Drop the outage of *key* without logging its end."""
        with self._lock:
            self._outages.pop(key, None)


class RateLimitedLog:
    """Admits the first line of a kind at once, then one every minute with the number of lines left out.

    Queries of strangers can fill neither memory nor log: sources beyond :data:`MOST` are counted together, and at most
    that many lines a minute are admitted.  Threads may share it.

    :param clock: seconds that only grow
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: By source and kind: when a line was admitted last, and how many were left out since.
        self._last: dict[Hashable, dict[str, tuple[float, int]]] = {}
        self._window = (clock(), 0)

    def admit(self, kind: str, source: Hashable = None) -> str | None:
        """What to add to the line, mostly nothing; None when it is to be left out."""
        with self._lock:
            now = self._clock()
            if source not in self._last:
                source, kind = self._place(source, kind, now)
            kinds = self._last.setdefault(source, {})
            at, left_out = kinds.get(kind, (now - EVERY, 0))
            if now - at < EVERY or not self._has_room(now):
                kinds[kind] = at, left_out + 1
                return None
            kinds[kind] = now, 0
        others = ' (beside many others)' if source is _OTHERS else ''
        return others + (f' (and {left_out} times more since the last such line)' if left_out else '')

    def reset(self, source: Hashable) -> None:
        """Forget the failures of *source*: its next one is admitted at once."""
        if self._last:
            with self._lock:
                self._last.pop(source, None)

    def _place(self, source: Hashable, kind: str, now: float) -> tuple[Hashable, str]:
        if len(self._last) >= MOST:
            self._last = {subject: kinds for subject, kinds in self._last.items()
                          if any(now - at < EVERY for at, _ in kinds.values())}
        return (source, kind) if len(self._last) < MOST else (_OTHERS, '')

    def _has_room(self, now: float) -> bool:
        began, lines = self._window
        if now - began >= EVERY:
            began, lines = now, 0
        self._window = began, lines + 1
        return lines < MOST
