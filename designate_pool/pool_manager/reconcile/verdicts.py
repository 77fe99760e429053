"""The reports that follow from the verdicts on several domains, and the domains that are to be weighed again.

The invariant: the pool manager that writes the last outcome of a verdict sees all outcomes.  Two pool managers that
write one outcome each may both have read before the other wrote, so each reads again after writing; the later one then
sees both.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta

from designate_pool import consensus
from designate_pool.concurrency import Wakeable
from designate_pool.model import Domain, Report, ServerStatus
from designate_pool.pool_manager.reconcile.domain_state import DomainState
from designate_pool.serial import at_least

#: Seconds after which an undecided domain is read and weighed again that waits for polls in flight.
PAUSE = 0.2
#: Seconds until the next look when no domain is undecided.
IDLE_INTERVAL = 30.0


@dataclasses.dataclass(slots=True)
class Verdicts:
    """The verdicts on several domains.

    :ivar reports: to send to Central
    :ivar finished: ids of domains whose deletion is complete, with nothing due and no call queued or in flight
    :ivar undecided: ids of domains with new outcomes and no report yet: others may have been written meanwhile
    """

    reports: list[Report] = dataclasses.field(default_factory=list)
    finished: list[str] = dataclasses.field(default_factory=list)
    undecided: list[str] = dataclasses.field(default_factory=list)


def evaluate(states: Iterable[DomainState], servers: Sequence[str], threshold_percentage: int,
             uncounted: Sequence[str]) -> Verdicts:
    """Weigh domains by their rows.

    :param servers: ids of those that count, as for :func:`consensus.weigh`
    """
    who = servers, threshold_percentage, uncounted
    weighed = Verdicts()
    for state in states:
        domain, rows = state.domain, tuple(state.rows.values())
        reports = consensus.reports(domain, rows, *who)
        weighed.reports.extend(reports)
        if domain.is_going and not reports and not consensus.weigh(domain, rows, *who).behind:
            if not state.call_claims and not _is_any_due(rows, (*servers, *uncounted)):
                weighed.finished.append(domain.id)
        elif state.has_new_outcomes and not _is_reported(domain, reports):
            weighed.undecided.append(domain.id)
    return weighed


def _is_any_due(rows: Iterable[ServerStatus], servers: Collection[str]) -> bool:
    """Whether any row of these servers is due, now or later."""
    return any(row.next_attempt_at is not None and row.server_id in servers for row in rows)


def _is_reported(domain: Domain, reports: Sequence[Report]) -> bool:
    """Whether the domain's own serial was reported to Central or is in *reports*; never for a deletion in progress."""
    if any(report.serial_number == domain.serial for report in reports):
        return True
    if domain.is_going or domain.reported_serial is None:
        return False
    return at_least(domain.reported_serial, domain.serial)


class UndecidedDomains(Wakeable):
    """Domains with new outcomes and no report yet, which wait for the results of polls in flight.

    These results mostly decide them, and then nothing is read.  All other undecided domains go straight into the queue
    into which these go in the end; a queue has no times, and nothing is taken out of it.  The first domain that is
    added wakes the loop.

    :param weigh: is given the ids of those whose time has come
    """

    def __init__(self, weigh: Callable[[Sequence[str]], None]) -> None:
        super().__init__()
        self._weigh = weigh
        self._lock = threading.Lock()
        self._times: dict[str, datetime] = {}

    def __bool__(self) -> bool:
        return bool(self._times)

    def add(self, domain_ids: Iterable[str], now: datetime) -> None:
        """Weigh these in a moment; those that are undecided already, when they would have been."""
        at = now + timedelta(seconds=PAUSE)
        with self._lock:
            was_idle = not self._times
            for domain_id in domain_ids:
                self._times.setdefault(domain_id, at)
            is_first = was_idle and bool(self._times)
        if is_first:
            self.wake()

    def discard(self, domain_ids: Iterable[str]) -> None:
        """Central is told of these."""
        with self._lock:
            for domain_id in domain_ids:
                self._times.pop(domain_id, None)

    def run(self, now: datetime) -> float:
        """Weigh those whose time has come, or lies too far ahead: the clock was put back; seconds until the next."""
        last = now + timedelta(seconds=PAUSE)
        with self._lock:
            due = [key for key, at in self._times.items() if not now < at <= last]
            for key in due:
                del self._times[key]
            wait = min(((at - now).total_seconds() for at in self._times.values()), default=IDLE_INTERVAL)
        self._weigh(due)
        return wait
