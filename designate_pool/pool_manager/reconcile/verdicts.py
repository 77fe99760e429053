"""What follows from the verdicts on several domains.

The invariant: whoever writes the last of the outcomes that a verdict takes sees all of them.  Two pool managers that
write one outcome each have both read before the other wrote, and neither of them sees more than its own: each has to
look once more after it has written, and the later of them then finds both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from designate_pool import consensus
from designate_pool.model import Domain, Report
from designate_pool.pool_manager.reconcile.domain_state import DomainState
from designate_pool.serial import at_least


@dataclasses.dataclass(slots=True)
class Verdicts:
    """
    :ivar reports: what Central has yet to be told
    :ivar finished: ids of the domains whose deletion is complete, and for which no call is left anywhere
    :ivar open: ids of those that had outcomes written and wait for others, which may be there by now
    """

    reports: list[Report] = dataclasses.field(default_factory=list)
    finished: list[str] = dataclasses.field(default_factory=list)
    open: list[str] = dataclasses.field(default_factory=list)


def weigh(situations: Iterable[DomainState], servers: Sequence[str], threshold_percentage: int,
          resting: Sequence[str]) -> Verdicts:
    """
    :param servers: ids of those that count, as for :func:`consensus.weigh`
    """
    who = servers, threshold_percentage, resting
    weighed = Verdicts()
    for situation in situations:
        domain, rows = situation.domain, tuple(situation.rows.values())
        reports = consensus.reports(domain, rows, *who)
        weighed.reports.extend(reports)
        if domain.is_going and not reports and not consensus.weigh(domain, rows, *who).behind:
            if not situation.held:
                weighed.finished.append(domain.id)
        elif situation.outcomes and not _is_told(domain, reports):
            weighed.open.append(domain.id)
    return weighed


def _is_told(domain: Domain, reports: Sequence[Report]) -> bool:
    """Whether Central knows of the domain at its own serial, or will; a deletion under way is never told for good."""
    if any(report.serial_number == domain.serial for report in reports):
        return True
    if domain.is_going or domain.reported_serial is None:
        return False
    return at_least(domain.reported_serial, domain.serial)
