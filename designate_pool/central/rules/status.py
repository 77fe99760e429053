"""The effect of a pool's report on a domain.

The invariant: a domain's status depends on which reports have arrived, not on their order, nor on how often each came.
``reported_serial`` is the newest serial that was ever reported as served and never goes back; a domain is ACTIVE only
when that is its own serial, or an older one with the same contents under other signatures, and DELETED only by the
success of its own deletion.

That holds because the effect of a report depends on nothing but the domain's state, by these rules:

* A report of another generation or pool is void, and so is one of a creation or update during a deletion, or the
  reverse.
* A serial is compared by RFC 1982 with the domain's own; one newer than that was never issued, one exactly 2**31
  away has no order, one older than the domain's first is of a former domain of the name, and all three are ignored.
* SUCCESS moves ``reported_serial`` forward or does nothing.  At a serial with the domain's contents it is ACTIVE.
* ERROR does nothing for a serial that is reported already.  Otherwise it concerns the records up to its serial, and
  the domain only if it has the domain's contents: the failure of an older one says nothing about the current one.
* A deletion has one serial, so reports of it are not compared by serial.
* A report of a stage moves a release that is at this stage, and is void otherwise, and while the pool is frozen.
"""

from __future__ import annotations

import dataclasses

from designate_pool import consensus
from designate_pool.model import Action, Domain, Outcome, Release, Report, Status, parse_stages
from designate_pool.serial import at_least


@dataclasses.dataclass(frozen=True, slots=True)
class StatusDecision:
    """The changes that a report causes.

    :ivar domain: the new state
    :ivar served: whether records up to ``domain.reported_serial`` are complete
    :ivar failed_serial: records up to this serial that are PENDING have failed; None when none have
    """

    domain: Domain
    served: bool = False
    failed_serial: int | None = None


def apply_report(domain: Domain, report: Report) -> StatusDecision | None:
    """The changes that *report* causes to a domain, read under a lock; None when there are none."""
    if domain.status is Status.DELETED or report.generation != domain.generation:
        return None
    if report.pool_name not in ('', domain.pool_name):
        return None
    if report.stage is not None:
        return _move_release(domain, report)
    if (report.action is Action.DELETE) != (domain.action is Action.DELETE):
        return None
    if domain.action is Action.DELETE:
        return _decide_deletion(domain, report)
    serial = report.serial_number
    is_reported = domain.reported_serial is not None and at_least(domain.reported_serial, serial)
    if is_reported or not consensus.is_issued(domain, serial):
        return None
    if report.status is Outcome.SUCCESS:
        # The domain exists on the pool now; if that is at an older serial, what is still due is an update of it.
        is_current = at_least(serial, domain.least_serial)
        return StatusDecision(dataclasses.replace(
            domain, action=Action.NONE if is_current else Action.UPDATE,
            status=Status.ACTIVE if is_current else domain.status, reported_serial=serial), served=True)
    if not at_least(serial, domain.least_serial):
        return StatusDecision(domain, failed_serial=serial)
    if domain.status is Status.PENDING:
        return StatusDecision(dataclasses.replace(domain, status=Status.ERROR), failed_serial=serial)
    return None


def _move_release(domain: Domain, report: Report) -> StatusDecision | None:
    release, released = domain.release, domain.permitted_at(0)
    if (release is None or release.held or released is None or release.stage != report.stage
            or released.serial != report.serial_number or domain.freeze is not None):
        return None
    if report.status is Outcome.SUCCESS:
        return StatusDecision(next_stage(domain, release))
    failed = dataclasses.replace(release, held=report.why or 'a server has failed')
    return StatusDecision(dataclasses.replace(domain, release_state=failed.text, status=Status.ERROR),
                          failed_serial=released.serial)


def next_stage(domain: Domain, release: Release) -> Domain:
    """The domain with its release at the next stage.  After the last one, servers have it all; what has changed
    meanwhile is released then."""
    if domain.pool_release is not None and release.stage + 1 < len(parse_stages(domain.pool_release)):
        return dataclasses.replace(domain, release_state=dataclasses.replace(release, stage=release.stage + 1).text)
    released = domain.permitted_at(0)
    # Signatures that were renewed meanwhile are for all servers at once.
    has_changed = release.version is not None and (
        released is None or not at_least(released.serial, domain.least_serial))
    return dataclasses.replace(domain, version_before=release.version if has_changed else None,
                               release_state=Release().text if has_changed and domain.pool_release else None)


def _decide_deletion(domain: Domain, report: Report) -> StatusDecision | None:
    if report.status is Outcome.SUCCESS:
        return StatusDecision(dataclasses.replace(domain, action=Action.NONE, status=Status.DELETED,
                                                  reported_serial=domain.serial))
    if domain.status is Status.PENDING:
        return StatusDecision(dataclasses.replace(domain, status=Status.ERROR))
    return None
