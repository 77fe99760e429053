"""What a report from the pool makes of a domain.

The invariant: what a domain says depends on which reports have arrived, not on their order, nor on how often each came.
``reported_serial`` is the newest serial that was ever reported as served and never goes back; a domain is ACTIVE only
when that is its own serial, and DELETED only by the success of its own deletion.

That holds because a report counts for less and less as time goes on, by rules that look at nothing else:

* A report about another generation, or about the zone's being there when it is to go (or the reverse), is void.
* A serial is compared by RFC 1982 around the domain's own; one newer than that was never issued, one exactly 2**31
  away has no order, and both say nothing.
* SUCCESS moves ``reported_serial`` forward or does nothing.  At the domain's own serial it is ACTIVE.
* ERROR does nothing for a serial that is reported already.  Else it concerns the records up to its serial; and the
  domain, if its serial is the domain's own: an error of what has been overtaken says nothing about what is under way.
* A deletion has one serial, so reports of it are not compared by serial.
"""

from __future__ import annotations

import dataclasses

from designate_pool.model import Action, Domain, Outcome, Report, Status
from designate_pool.serial import at_least


@dataclasses.dataclass(frozen=True, slots=True)
class StatusDecision:
    """What a report changes.

    :ivar domain: as it is from now on
    :ivar settled: whether records up to ``domain.reported_serial`` are done
    :ivar failed_serial: records up to this serial that are PENDING have failed; None when none have
    """

    domain: Domain
    settled: bool = False
    failed_serial: int | None = None


def decide(domain: Domain, report: Report) -> StatusDecision | None:
    """What *report* changes; None when nothing.

    :param domain: as it is, under a lock
    """
    if domain.status is Status.DELETED or report.generation != domain.generation:
        return None
    if (report.action is Action.DELETE) != (domain.action is Action.DELETE):
        return None
    if domain.action is Action.DELETE:
        return _decide_deletion(domain, report)
    serial = report.serial_number
    # One that is ahead of the domain, or without order to it, was never issued.
    if not at_least(domain.serial, serial) or _is_reported(serial, domain):
        return None
    if report.status is Outcome.SUCCESS:
        return _succeed(domain, serial)
    if serial != domain.serial:
        return StatusDecision(domain, failed_serial=serial)
    if domain.status is Status.PENDING:
        return StatusDecision(dataclasses.replace(domain, status=Status.ERROR), failed_serial=serial)
    return None


def _decide_deletion(domain: Domain, report: Report) -> StatusDecision | None:
    if report.status is Outcome.SUCCESS:
        return StatusDecision(dataclasses.replace(domain, action=Action.NONE, status=Status.DELETED,
                                                  reported_serial=domain.serial))
    if domain.status is Status.PENDING:
        return StatusDecision(dataclasses.replace(domain, status=Status.ERROR))
    return None


def _succeed(domain: Domain, serial: int) -> StatusDecision:
    if serial == domain.serial:
        return StatusDecision(dataclasses.replace(domain, action=Action.NONE, status=Status.ACTIVE,
                                                  reported_serial=serial),
                              settled=True)
    # The domain exists on the pool; what is still due is an update of it.
    return StatusDecision(dataclasses.replace(domain, action=Action.UPDATE, reported_serial=serial), settled=True)


def _is_reported(serial: int, domain: Domain) -> bool:
    return domain.reported_serial is not None and at_least(domain.reported_serial, serial)
