"""Domains with all their rows, as this process has read or written them a moment ago.

The success of a poll that was sent a moment ago is applied without reading what was just written.  It changes its row,
and where the server serves a newer change than the row expects, the rows of servers that are behind.  The version of
each shows whether somebody else has changed it since: then it is not written, and the domain is read again.  If the
domain was deleted meanwhile, such a row is cancelled when it is due.  For everything else the database is read.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
from collections.abc import Iterable
from datetime import datetime, timedelta

from designate_pool.model import Outcome, Report
from designate_pool.pool_manager.reconcile.domain_state import DomainState

#: For how long a state is used.
MOMENT = timedelta(seconds=2)


class RecentStates:
    """
    :param most_rows: of all states together; the oldest are dropped
    """

    def __init__(self, most_rows: int = 20_000) -> None:
        self._most_rows = most_rows
        self._states: collections.OrderedDict[str, tuple[datetime, DomainState]] = collections.OrderedDict()
        self._rows = 0
        self._lock = threading.Lock()

    def put(self, states: Iterable[DomainState], now: datetime) -> None:
        """Keep *states*, all of whose rows are in the database as they are here.

        One that was kept already is no newer for that: its domain, and the rows of others, were not read again.
        """
        kept = [DomainState(state.domain, {
            key: row if row.created_at else dataclasses.replace(row, created_at=now)
            for key, row in state.rows.items()}, is_recalled=state.is_recalled) for state in states]
        with self._lock:
            for state in kept:
                put_at, _ = self._states.get(state.domain.id, (None, None))
                if not state.is_recalled:
                    put_at = now
                self._drop(state.domain.id)
                if put_at is None:
                    continue  # it was dropped meanwhile
                self._states[state.domain.id] = put_at, state
                self._rows += len(state.rows)
            while self._rows > self._most_rows:
                self._drop(next(iter(self._states)))

    def get(self, domain_id: str, now: datetime) -> DomainState | None:
        """A copy of a domain's state; None if there is none of the last moment."""
        with self._lock:
            put_at, state = self._states.get(domain_id, (now, None))
            if state is None:
                return None
            if not timedelta() <= now - put_at < MOMENT:
                self._drop(domain_id)
                return None
            return DomainState(state.domain, dict(state.rows), is_recalled=True)

    def note_reports(self, reports: Iterable[Report]) -> None:
        """Central is told these: they need not be repeated for what is kept here."""
        with self._lock:
            for report in reports:
                put_at, state = self._states.get(report.domain_id, (None, None))
                if put_at is not None and state is not None and report.status is Outcome.SUCCESS:
                    state.domain = dataclasses.replace(state.domain, reported_serial=report.serial_number)

    def drop(self, domain_ids: Iterable[str]) -> None:
        with self._lock:
            for domain_id in domain_ids:
                self._drop(domain_id)

    def clear(self) -> None:
        with self._lock:
            self._states.clear()
            self._rows = 0

    def _drop(self, domain_id: str) -> None:
        _, state = self._states.pop(domain_id, (None, None))
        if state is not None:
            self._rows -= len(state.rows)
