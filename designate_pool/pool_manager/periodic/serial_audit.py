"""The audit of serials: MiniDNS polls every server for every domain, a page at a time.

A result here is only a hint.  If a server that should serve a serial does not, or has not answered, its row becomes due
for a regular poll, which has its tries and decides.

All pool managers of a pool share one round, whose state is in the database.  A page is one statement and one message
for all servers; rows are read only for findings.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from designate_pool.errors import PoolError
from designate_pool.logs import OutageLog
from designate_pool.model import Action, Answer, Audit, AuditKind, Context, Counts, PollResult, ServerStatus, Status
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.periodic import audit_schedule
from designate_pool.pool_manager.periodic.audit_schedule import REPAIRS, FindingRecorder
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.pool_manager.reconcile.domain_state import DomainState
from designate_pool.pool_manager.reconcile.reconciler import WHO
from designate_pool.serial import newer
from designate_pool.storage.operations import sweeps
from designate_pool.storage.reporting import audit_findings

LOG = logging.getLogger(__name__)

KIND = AuditKind.SERIALS
#: Messages with results that are applied together, at most.
_MAX_BATCH = 8


class SweepResult(NamedTuple):
    """The results of one page; see :meth:`designate_pool.rpc.pool_manager.PoolManagerClient.audited`."""

    started_at: datetime
    counts: Sequence[tuple[str, int, int]]
    findings: Sequence[PollResult]


class SerialAudit:
    """The serial audit of *manager*'s pool, as far as this pool manager takes part."""

    def __init__(self, manager: Manager, runtime: Any) -> None:
        self._manager = manager
        self._answers = runtime.work_queue(self._apply_results, _MAX_BATCH, name='audits')
        self._late = OutageLog(
            LOG, 'an audit of all zones takes %.0f s, longer than periodic_sync_interval, %g s',
            'an audit of all zones takes %.0f s and fits into periodic_sync_interval again', logging.WARNING)
        self._unsent = OutageLog(LOG, 'the audit could not ask the servers for their serials: %s',
                                 'the audit can ask the servers for their serials again', logging.WARNING)

    def stop(self) -> None:
        """Apply the results that are queued, for a few seconds at most, and end."""
        self._answers.stop()

    def run(self) -> float:
        """Take the next page if it is due; seconds until the next."""
        claimed, wait = audit_schedule.claim_page(self._manager, KIND)
        return wait if claimed is None else self._take_page(claimed)

    def audited(self, context: Context, started_at: datetime, counts: Sequence[tuple[str, int, int]],
                findings: Sequence[PollResult]) -> None:
        """MiniDNS has polled a page."""
        self._answers.put(SweepResult(started_at, counts, findings))

    def _take_page(self, audit: Audit) -> float:
        manager = self._manager
        tracked = [server.id for server in manager.members.servers
                   if server.id in manager.members.tracked and not server.is_filling]
        page = manager.storage.read(sweeps.page, audit.pool_id, audit.after_id, audit_schedule.PAGE, tracked)
        self._schedule_missing(audit, page, tracked)
        # Their deletion was reported, but their rows are still there.
        manager.queue_changes(page.unfinished)
        if not audit.after_id:
            # Their pool is another one now, so that nothing else finds a change here whose cast was lost.
            manager.queue_changes(manager.storage.read(sweeps.kept_behind, audit.pool_id, tracked, audit_schedule.PAGE))
        watched = [worker for server_id, worker in manager.workers.items()
                   if server_id in tracked and worker.backend.capabilities.keeps_serial]
        sent = self._send_page(audit, page, [worker for worker in watched if not worker.dns.is_open])
        now = self._manager.storage.now()
        next_at = audit_schedule.next_page_at(audit, manager.settings.periodic_sync_interval, bool(page.last_id), now)
        counts = Counts(domains=len(page.domains), pairs=len(page.domains) * len(watched))
        manager.storage.run(sweeps.advance, audit, page.last_id, counts, sent, next_at, now)
        if not page.last_id:
            manager.storage.run(audit_findings.forget, audit.pool_id, now - audit_schedule.KEPT,
                                audit_schedule.PURGE_BATCH)
            seconds, interval = (now - audit.started_at).total_seconds(), manager.settings.periodic_sync_interval
            if seconds > interval:
                self._late.failed(seconds, interval)
            else:
                self._late.ended(seconds)
        return min(audit_schedule.LONGEST, (next_at - now).total_seconds())

    def _schedule_missing(self, audit: Audit, page: sweeps.DomainPage, tracked: Sequence[str]) -> None:
        """Schedule domains of *page* on servers without rows for them, and the due syncs of servers fed by records."""
        manager, now = self._manager, self._manager.storage.now()
        read_before = {server_id: now - timedelta(seconds=interval) for server_id, worker in manager.workers.items()
                       if worker.backend.capabilities.fed_by_records
                       and (interval := worker.backend.options['audit_interval'])}
        old = manager.storage.read(sweeps.unchanged_since, read_before, audit.after_id,
                                   page.last_id or '~') if read_before else []
        if not page.lacking and not old:
            return
        with manager.reconciler.step((*page.lacking, *old)) as step:
            for state in step.states.values():
                if state.domain.status is not Status.PENDING:
                    state.change(*state.schedule(tracked, step.now))
                state.change(*_rows_to_reread(state, read_before, step.now))

    def _send_page(self, audit: Audit, page: sweeps.DomainPage, workers: Sequence[ServerWorker]) -> int:
        """Have MiniDNS poll for *page*; the number of messages sent, 0 if the broker is down."""
        if not page.domains or not workers:
            return 0
        try:
            self._manager.minidns.audit_serials(WHO, self._manager.pool.name, audit.started_at,
                                                [worker.server.id for worker in workers], page.domains)
        except PoolError as error:
            self._unsent.failed(error)
            return 0
        self._unsent.ended()
        return 1

    def _apply_results(self, results: Sequence[SweepResult]) -> None:
        manager = self._manager
        for server_id, answered, unanswered in itertools.chain.from_iterable(result.counts for result in results):
            worker = manager.workers.get(server_id)
            if worker is not None and (answered or unanswered):
                # One that has answered for no domain of the page has failed once.
                manager.update_circuit(worker, worker.dns, int(not answered), 'no answer to an audit')
        scheduled = self._schedule_polls([result for page_results in results for result in page_results.findings])
        for started_at in {result.started_at for result in results}:
            answers = [result for result in results if result.started_at == started_at]
            manager.storage.run(sweeps.count_answers, manager.pool.name, KIND, started_at,
                                _sum(answers, scheduled), len(answers), self._manager.storage.now())

    def _schedule_polls(self, findings: Sequence[PollResult]) -> set[tuple[str, str]]:
        """Have the findings polled that are new; which these are, as (domain id, server id)."""
        manager = self._manager
        here = manager.relevant(findings)
        if not here:
            return set()
        recorder, scheduled = FindingRecorder(manager, KIND, manager.storage.now()), set[tuple[str, str]]()
        with manager.reconciler.step((result.domain_id for result in here),
                                     {result.server_id for result in here}) as step:
            for result in here:
                state = step.states.get(result.domain_id)
                rows = [] if state is None else _rows_to_poll(state, result, step.now)
                if state is None or not rows:
                    continue
                if (done := REPAIRS.get(result.answer)) is not None:  # that it has not answered is no finding
                    rows = recorder.marked(state, result.server_id, rows, result.error or str(result.answer), done)
                state.change(*rows)
                scheduled.add((result.domain_id, result.server_id))
        recorder.save(step)
        return scheduled


def _sum(results: Sequence[SweepResult], found: set[tuple[str, str]]) -> Counts:
    unanswered = sum(silent for result in results for _, _, silent in result.counts)
    return Counts(asked=unanswered + sum(answered for result in results for _, answered, _ in result.counts),
                  unanswered=unanswered,
                  findings=sum((result.domain_id, result.server_id) in found for page in results
                               for result in page.findings))


def _rows_to_poll(state: DomainState, result: PollResult, now: datetime) -> list[ServerStatus]:
    """The rows that are due for a poll then; none if one is due anyway, or the domain has changed meanwhile."""
    is_lost = result.answer is Answer.NO_ZONE
    row, domain = state.rows.get((result.server_id, Action.UPDATE)), state.on(result.server_id, is_lost)
    if row is None or not row_transitions.is_at_rest(row) or domain is None or domain.is_going:
        return []
    if state.on(result.server_id) is None:  # a poll would be for what it had
        return row_transitions.provision(domain, state.rows, result.server_id, now, gone=True)
    if result.expected_serial is not None and newer(domain.serial, result.expected_serial):
        return []
    # What was asked for is for servers of other stages, or waits for the end of a freeze.
    if (state.released is not None or domain.freeze is not None) and result.serial_number == domain.serial:
        return []
    scheduled = state.schedule([result.server_id], now)
    return scheduled or [row_transitions.recheck(row, now)]


def _rows_to_reread(state: DomainState, read_before: dict[str, datetime], now: datetime) -> list[ServerStatus]:
    """The rows to sync of servers that are fed by records, if not written since the server's time in *read_before*."""
    rows = [(row, moment) for server_id, moment in read_before.items()
            if (row := state.rows.get((server_id, Action.UPDATE))) is not None]
    return [row_transitions.recheck(row, now) for row, moment in rows
            if row_transitions.is_at_rest(row) and row.updated_at is not None and row.updated_at <= moment]
