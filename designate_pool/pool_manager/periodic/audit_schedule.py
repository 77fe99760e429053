"""What the audits share: who takes the next page, and when; and the record of what they find.

The invariant: the pages of a round, assumed to be as many as in the last round, are spread evenly over its interval; a
round that takes longer continues without pauses.  So that servers are not flooded, at most :data:`MOST_SENT` messages
are unanswered at a time, and none of the last round when the next one begins.  A message that is not answered for
:data:`PATIENCE` counts as lost.

Each finding has an id.  The rows that become due for it carry that id, so that the log of the repair refers to the
finding and not to the request that changed the domain last.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from designate_pool import logs
from designate_pool.model import Answer, Audit, AuditFinding, AuditKind, ServerState, ServerStatus, new_id
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.reconcile.domain_state import DomainState, Step
from designate_pool.storage.operations import server_statuses, sweeps
from designate_pool.storage.reporting import audit_findings

LOG = logging.getLogger(__name__)

#: Domains in a page, which is one message.
PAGE = 1000
MOST_SENT = 16
#: Seconds.
PATIENCE = 30.0
#: Seconds to wait while another pool manager has the page, while messages are unanswered, and at most.
BUSY, CROWDED, LONGEST = 0.25, 0.05, 45.0
#: Findings about one server that are recorded at a time: all zones may be lost for the same reason.
MAX_RECORDED = 20
#: How long findings are kept, and how many are purged at a time.
KEPT, PURGE_BATCH = timedelta(days=30), 1000

RECREATED = 'the server is polled again; if it does not have the zone, the zone is created there again'
POLLED_AGAIN = 'the server is notified and polled again'
REFETCHED = 'the server transfers the zone again'
#: How findings of a serial audit are repaired; other answers are no findings.
REPAIRS = {Answer.NO_ZONE: RECREATED, Answer.NOT_AUTH: POLLED_AGAIN, Answer.SERIAL: POLLED_AGAIN,
           Answer.BAD: POLLED_AGAIN}


def claim_page(manager: Manager, kind: AuditKind, seconds: float | None = None) -> tuple[Audit | None, float]:
    """Claim the next page of a pool's round, and create the first round if there is none.

    :param seconds: for which it is claimed; by default as long as operations are
    :returns: the round, or None and the seconds to wait
    """
    storage, pool_name, by = manager.storage, manager.pool.name, manager.settings.name
    now, audit = storage.now(), storage.read(sweeps.get, pool_name, kind)
    if audit is None:
        storage.run(sweeps.create, pool_name, kind, now)
        audit = storage.read(sweeps.get, pool_name, kind)
    if audit is None:
        return None, BUSY
    if wait := pause(audit, by, now):
        return None, wait
    if is_silent(audit, now):
        storage.run(sweeps.forget_unanswered, audit)
        return None, 0.0
    until = now + timedelta(seconds=manager.settings.claim_seconds if seconds is None else seconds)
    return storage.run(sweeps.claim, audit, by, now, until), BUSY


def pause(audit: Audit, by: str, now: datetime) -> float:
    """Seconds after which *by*, a pool manager, is to try again to take the next page; 0 if it may take it now."""
    if audit.next_at is not None and now < audit.next_at:
        return min(LONGEST, (audit.next_at - now).total_seconds())
    if audit.claimed_by not in (None, by) and audit.claimed_until is not None and now < audit.claimed_until:
        return BUSY
    most = MOST_SENT if audit.after_id else 1
    if audit.sent - audit.heard >= most and not is_silent(audit, now):
        return CROWDED
    return 0.0


def is_silent(audit: Audit, now: datetime) -> bool:
    """Whether the unanswered messages are lost."""
    return (audit.sent > audit.heard and audit.updated_at is not None
            and audit.updated_at <= now - timedelta(seconds=PATIENCE))


def next_page_at(audit: Audit, interval: float, more: bool, now: datetime) -> datetime:
    """When the page after this one is due, if there are *more*, or the next round; *audit* as when it was claimed."""
    if not more:
        return max(now, audit.started_at + timedelta(seconds=interval))
    done = pages(audit.now.domains) + 1
    expected = pages(audit.last.domains) if audit.last is not None else 1
    return max(now, audit.started_at + timedelta(seconds=interval * done / max(expected, done + 1)))


def active_workers(manager: Manager) -> list[ServerWorker]:
    """Of the servers that have all their zones, in order."""
    active = {server.id for server in manager.members.servers
              if server.state is ServerState.ACTIVE and not server.is_filling}
    return [worker for server_id, worker in sorted(manager.workers.items()) if server_id in active]


def log_finding(finding: AuditFinding) -> None:
    """Log a new finding."""
    logs.transition(LOG, logging.WARNING, '%s on %s: the audit of %s found that %s; %s', finding.name, finding.label,
                    finding.kind.value.lower(), finding.what, finding.done, request_id=finding.request_id,
                    domain=finding.name, server=finding.label, finding=finding.id)


def pages(domains: int) -> int:
    """Number of pages of so many domains."""
    return -(-domains // PAGE)


class FindingRecorder:
    """The findings of one step of an audit."""

    def __init__(self, manager: Manager, kind: AuditKind, now: datetime) -> None:
        self._manager = manager
        self._kind = kind
        self._now = now
        self._found: list[AuditFinding] = []
        self._counts: collections.Counter[str] = collections.Counter()

    def marked(self, state: DomainState, server_id: str, rows: Sequence[ServerStatus], what: str,
               done: str) -> list[ServerStatus]:
        """*rows* with the id of the new finding: *what* was found, and what is *done* to repair it."""
        self._counts[server_id] += 1
        if self._counts[server_id] > MAX_RECORDED:
            return list(rows)
        domain, label = state.domain, self._manager.all_workers[server_id].server.label
        finding = AuditFinding(new_id(), self._now, domain.pool_id, self._kind, domain.id, domain.name, server_id,
                               label, what, done)
        self._found.append(finding)
        return [dataclasses.replace(row, finding_id=finding.id) for row in rows]

    def save(self, step: Step) -> None:
        """Store and log the findings whose rows were written, and not dropped because another writer was first."""
        rows = step.writes
        if step.conflicts:
            stored = self._manager.storage.read(server_statuses.for_domains, step.states,
                                                {row.server_id for row in rows})
            rows = [row for of_domain in stored.values() for row in of_domain]
        marks = {row.finding_id for row in rows}
        findings = [finding for finding in self._found if finding.id in marks]
        if not findings:
            return
        self._manager.storage.run(audit_findings.add, findings)
        for finding in findings:
            log_finding(finding)
        for server_id, count in self._counts.items():
            if count > MAX_RECORDED:
                LOG.warning('the audit of %s found %d more on %s; they are repaired too', self._kind.value.lower(),
                            count - MAX_RECORDED, self._manager.all_workers[server_id].server.label)
