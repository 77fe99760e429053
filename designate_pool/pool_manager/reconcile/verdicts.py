"""The reports that follow from the verdicts on several domains.

The invariant: the pool manager that writes the last outcome of a verdict sees all outcomes.  Two pool managers that
write one outcome each may both have read before the other wrote, so each reads again after writing; the later one then
sees both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence

from designate_pool import consensus
from designate_pool.model import Domain, Report, ServerStatus
from designate_pool.pool_manager.reconcile.domain_state import DomainState
from designate_pool.serial import at_least


@dataclasses.dataclass(slots=True)
class Verdicts:
    """
    :ivar reports: to send to Central
    :ivar finished: ids of domains whose deletion is complete, with nothing due and no call queued or in flight
    :ivar undecided: ids of domains with new outcomes and no report yet: others may have been written meanwhile
    """

    reports: list[Report] = dataclasses.field(default_factory=list)
    finished: list[str] = dataclasses.field(default_factory=list)
    undecided: list[str] = dataclasses.field(default_factory=list)


def evaluate(states: Iterable[DomainState], servers: Sequence[str], threshold_percentage: int,
             uncounted: Sequence[str]) -> Verdicts:
    """
    :param servers: ids of those that count, as for :func:`consensus.weigh`
    """
    who = servers, threshold_percentage, uncounted
    found = Verdicts()
    for state in states:
        domain, rows = state.domain, tuple(state.rows.values())
        reports = consensus.reports(domain, rows, *who)
        found.reports.extend(reports)
        if domain.is_going and not reports and not consensus.weigh(domain, rows, *who).behind:
            if not state.call_claims and not _is_any_due(rows, (*servers, *uncounted)):
                found.finished.append(domain.id)
        elif state.has_new_outcomes and not _is_reported(domain, reports):
            found.undecided.append(domain.id)
    return found


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
