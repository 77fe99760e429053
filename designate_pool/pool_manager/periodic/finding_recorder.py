"""Records of what audits find: in the database and in the log, each finding with an id of its own.

The rows that become due for a finding carry its id, so that the log of the repair refers to the finding and not to the
request that changed the domain last.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from designate_pool import logs
from designate_pool.model import Answer, AuditFinding, AuditKind, ServerStatus, new_id
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.reconcile.domain_state import DomainState, Step
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.reporting import audit_findings

LOG = logging.getLogger(__name__)

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
        """*rows* with the id of the new finding.

        :param what: was found
        :param done: to repair it
        """
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
            logs.transition(LOG, logging.WARNING, '%s on %s: the audit of %s found that %s; %s', finding.name,
                            finding.label, finding.kind.value.lower(), finding.what, finding.done,
                            request_id=finding.request_id, domain=finding.name, server=finding.label,
                            finding=finding.id)
        for server_id, count in self._counts.items():
            if count > MAX_RECORDED:
                LOG.warning('the audit of %s found %d more on %s; they are repaired too', self._kind.value.lower(),
                            count - MAX_RECORDED, self._manager.all_workers[server_id].server.label)
