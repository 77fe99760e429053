"""The rolling audit of serials: every domain is asked for on every server, a page at a time.

An answer here is only a hint.  A pair that was thought to be right and is not is due again, at once: the poll that
this brings has its tries, and what comes of it is decided as for any other.  So is what nobody answered for.

All pool managers of a pool share one round, which stands in the database: each takes the next page when it is time.  A
page is one statement and one message for all servers; rows are read only where something is amiss.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from designate_pool import logs
from designate_pool.errors import PoolError
from designate_pool.model import Action, Audit, AuditKind, Context, Counts, PollResult, ServerStatus, Status, utcnow
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.manager import NOBODY, Manager
from designate_pool.pool_manager.periodic import audit_schedule, finding_recorder
from designate_pool.pool_manager.periodic.finding_recorder import FindingRecorder, done_about
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.pool_manager.reconcile.domain_state import DomainState
from designate_pool.serial import newer
from designate_pool.storage.operations import sweeps
from designate_pool.storage.reporting import audit_findings

LOG = logging.getLogger(__name__)

KIND = AuditKind.SERIALS
#: Messages with answers that are taken together, at most.
_TOGETHER = 8


@dataclasses.dataclass(frozen=True, slots=True)
class SweepResult:
    """What MiniDNS says of one page.

    :ivar started_at: of the round
    :ivar counts: (server id, how many pairs it answered, how many it did not) of each that was asked
    """

    started_at: datetime
    counts: Sequence[tuple[str, int, int]]
    findings: Sequence[PollResult]


class SerialAudit:
    """The audit of *manager*'s pool, as far as this pool manager does it."""

    def __init__(self, manager: Manager, runtime: Any) -> None:
        self._manager = manager
        self._answers = runtime.batches(self._settle, _TOGETHER, name='audits')
        self._is_late = self._is_mute = False

    def stop(self) -> None:
        self._answers.stop()

    def run(self) -> float:
        """Take the next page when it is time; seconds until the next look."""
        manager, now = self._manager, utcnow()
        audit, wait = audit_schedule.turn(manager.storage, manager.pool.name, KIND, manager.settings.name, now)
        if audit is None:
            return wait
        if audit_schedule.is_silent(audit, now):
            manager.storage.run(sweeps.write_off, audit)
            return 0.0
        until = now + timedelta(seconds=manager.settings.claim_seconds)
        claimed = manager.storage.run(sweeps.claim, audit, manager.settings.name, now, until)
        return audit_schedule.BUSY if claimed is None else self._take_page(claimed)

    def audited(self, context: Context, started_at: datetime, counts: Sequence[tuple[str, int, int]],
                findings: Sequence[PollResult]) -> None:
        """MiniDNS is done with a page."""
        self._answers.put(SweepResult(started_at, counts, findings))

    def _take_page(self, audit: Audit) -> float:
        manager = self._manager
        holding = [each.id for each in manager.members.servers
                   if each.id in manager.members.holding and not each.is_filling]
        page = manager.storage.read(sweeps.page, audit.pool_id, audit.after_id, audit_schedule.PAGE, holding)
        self._make_up(audit, page, holding)
        # Whoever was to forget them did not come to it, or never heard that Central was told.
        manager.change(page.unfinished)
        watched = [lane for server_id, lane in manager.lanes.items()
                   if server_id in holding and lane.backend.capabilities.keeps_serial]
        sent = self._ask(audit, page, [lane for lane in watched if not lane.dns.is_open])
        now = utcnow()
        next_at = audit_schedule.next_page_at(audit, manager.settings.periodic_sync_interval, bool(page.last_id), now)
        found = Counts(domains=len(page.domains), pairs=len(page.domains) * len(watched))
        manager.storage.run(sweeps.advance, audit, page.last_id, found, sent, next_at, now)
        if not page.last_id:
            manager.storage.run(audit_findings.forget, audit.pool_id, now - finding_recorder.KEPT,
                                finding_recorder.BITE)
            self._tell_if_late((now - audit.started_at).total_seconds())
        return min(audit_schedule.LONGEST, (next_at - now).total_seconds())

    def _make_up(self, audit: Audit, page: sweeps.DomainPage, holding: Sequence[str]) -> None:
        """Begin the domains of *page* on servers that have no row for them, and have those read again that are fed."""
        manager, now = self._manager, utcnow()
        before = {server_id: now - timedelta(seconds=interval) for server_id, lane in manager.lanes.items()
                  if lane.backend.capabilities.fed_by_records and (interval := lane.backend.options['audit_interval'])}
        old = manager.storage.read(sweeps.quiet, before, audit.after_id, page.last_id or '~') if before else []
        if not page.lacking and not old:
            return
        with manager.deciding:
            situations = manager.situations(dict.fromkeys((*page.lacking, *old)))
            for situation in situations.values():
                if situation.domain.status is not Status.PENDING:
                    situation.change(*row_transitions.begin(situation.domain, situation.rows, holding, now))
                situation.change(*_read_again(situation, before, now))
            orders = manager.write(situations.values(), now)
        manager.carry_out(orders)

    def _ask(self, audit: Audit, page: sweeps.DomainPage, lanes: Sequence[ServerWorker]) -> int:
        """Have MiniDNS ask for all of *page*; how many messages that took.  Without a broker it is left to next time.
        """
        if not page.domains or not lanes:
            return 0
        try:
            self._manager.minidns.audit_serials(NOBODY, self._manager.pool.name, audit.started_at,
                                                [lane.server.id for lane in lanes], page.domains)
        except PoolError as error:
            if not self._is_mute:
                LOG.warning('the audit could not ask the servers for their serials: %s', error)
            self._is_mute = True
            return 0
        self._is_mute = False
        return 1

    def _tell_if_late(self, seconds: float) -> None:
        """Say once that rounds do not fit, and once that they do again."""
        interval = self._manager.settings.periodic_sync_interval
        if seconds > interval and not self._is_late:
            LOG.warning('an audit of all zones takes %.0f s, longer than periodic_sync_interval, %g s', seconds,
                        interval)
        elif seconds <= interval and self._is_late:
            LOG.info('an audit of all zones takes %.0f s and fits into periodic_sync_interval again', seconds)
        self._is_late = seconds > interval

    def _settle(self, heard: Sequence[SweepResult]) -> None:
        manager = self._manager
        for each in heard:
            self._mind_circuits(each)
        found = self._have_polled([result for each in heard for result in each.findings])
        for started_at in dict.fromkeys(each.started_at for each in heard):
            answers = [each for each in heard if each.started_at == started_at]
            manager.storage.run(sweeps.heard, manager.pool.name, KIND, started_at, _sum(answers, found), len(answers),
                                utcnow())

    def _mind_circuits(self, heard: SweepResult) -> None:
        """A server that answered nothing of what it was asked has failed once."""
        manager = self._manager
        for server_id, answered, unanswered in heard.counts:
            lane = manager.lanes.get(server_id)
            if lane is None:
                continue
            if answered and lane.dns.answered():
                manager.wake(server_id)
            elif unanswered and not answered and lane.dns.failed():
                logs.transition(LOG, logging.WARNING, '%s does not answer DNS: %s', lane.server.label,
                                'no answer to an audit', server=lane.server.label)

    def _have_polled(self, findings: Sequence[PollResult]) -> set[tuple[str, str]]:
        """Have those pairs polled that were thought to be right; which that were, as (domain id, server id)."""
        manager, now = self._manager, utcnow()
        here = manager.relevant(findings)
        if not here:
            return set()
        recorder = FindingRecorder(manager, KIND, now)
        with manager.deciding:
            situations = manager.situations((result.domain_id for result in here),
                                            {result.server_id for result in here})
            found = {(result.domain_id, result.server_id): changed for result in here
                     if (situation := situations.get(result.domain_id)) is not None
                     and (changed := _recorded(recorder, situation, result, _look_again(situation, result, now)))}
            for (domain_id, _), rows in found.items():
                situations[domain_id].change(*rows)
            changed = [row for situation in situations.values() for row in situation.changed.values()]
            orders = manager.write(situations.values(), now)
        recorder.save(changed)
        manager.carry_out(orders)
        return set(found)


def _sum(heard: Sequence[SweepResult], found: set[tuple[str, str]]) -> Counts:
    unanswered = sum(silent for each in heard for _, _, silent in each.counts)
    return Counts(asked=unanswered + sum(answered for each in heard for _, answered, _ in each.counts),
                  unanswered=unanswered,
                  findings=sum((result.domain_id, result.server_id) in found for each in heard
                               for result in each.findings))


def _recorded(recorder: FindingRecorder, situation: DomainState, result: PollResult,
              rows: list[ServerStatus]) -> list[ServerStatus]:
    """*rows*, marked as due for what the audit found out; that there was no answer is nothing found out."""
    done = done_about(result.answer)
    if not rows or done is None:
        return rows
    return recorder.marked(situation, result.server_id, rows, result.reason or str(result.answer), done)


def _look_again(situation: DomainState, result: PollResult, now: datetime) -> list[ServerStatus]:
    """The rows that have a pair polled; none where something is due for it anyway, or a change came meanwhile."""
    row = situation.rows.get((result.server_id, Action.UPDATE))
    if row is None or not row_transitions.is_at_rest(row) or situation.domain.is_going:
        return []
    if result.expected_serial is not None and newer(situation.domain.serial, result.expected_serial):
        return []
    return row_transitions.begin(situation.domain, situation.rows, [result.server_id],
                                 now) or [row_transitions.again(row, now)]


def _read_again(situation: DomainState, before: dict[str, datetime], now: datetime) -> list[ServerStatus]:
    """Rows of servers that are fed by records and were read long ago: their serials tell little."""
    rows = [(row, moment) for server_id, moment in before.items()
            if (row := situation.rows.get((server_id, Action.UPDATE))) is not None]
    return [row_transitions.again(row, now) for row, moment in rows
            if row_transitions.is_at_rest(row) and row.updated_at is not None and row.updated_at <= moment]
