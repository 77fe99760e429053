"""The audit of contents: every zone is compared on every server once in ``contents_audit_interval``.

It compares domains that are ACTIVE or in ERROR, on those servers fed by transfer whose rows say that they serve the
domain's serial.  A server with other contents under that serial, or with a serial that the pool never issued, has
diverged: its row becomes due for a retransfer.  An older serial is left to the audit of serials.

The servers of one domain are compared at the same time, the domains one after the other, so that at most two zones for
each server are in memory.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from designate_pool import logs, metrics
from designate_pool.model import Action, Audit, AuditKind, Counts, Domain, Reason, ServerState, ServerStatus, Status
from designate_pool.pool_manager.dispatch import zone_compare
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.dispatch.zone_compare import COMPARED, Match, ZoneComparison
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.periodic import audit_schedule
from designate_pool.pool_manager.periodic.audit_schedule import REFETCHED, FindingRecorder
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.pool_manager.reconcile.domain_state import DomainState
from designate_pool.protocol.axfr_inbound import Pace
from designate_pool.serial import newer
from designate_pool.storage.operations import pool_servers as server_store
from designate_pool.storage.operations import sweeps
from designate_pool.storage.reporting import gauges

LOG = logging.getLogger(__name__)

KIND = AuditKind.CONTENTS
#: A page is a thousandth of the domains, so that a round is spread over its interval, and at most this many.
MOST_IN_PAGE = 50
PAGES = 1000
#: Servers that are compared at the same time.
WORKERS = 16
#: Seconds to wait while the audit is off.
IDLE = 5.0


class ContentsAudit:
    """The contents audit of *manager*'s pool, as far as this pool manager takes part."""

    def __init__(self, manager: Manager, runtime: Any) -> None:
        self._manager = manager
        self._threads = runtime.workers(WORKERS, name='contents')
        self._stopping = threading.Event()
        self._paces = collections.defaultdict[str, Pace](lambda: Pace(manager.settings.contents_audit_rate))
        self._reported: set[str] = set()
        # Servers that were compared in this round, and those that could not be compared.
        self._compared: set[str] = set()
        self._unknown: set[str] = set()
        self._expected = 0
        # The page that is being compared, while its claim is ours.
        self._page: Audit | None = None

    def stop(self) -> None:
        """End after the domain that is being compared."""
        self._stopping.set()

    def close(self) -> None:
        """End the workers; after the loop of :meth:`run` has ended."""
        self._threads.stop()

    def extend_claim(self) -> float:
        """Renew the claim on the page that is being compared; seconds until the next renewal."""
        seconds, claimed = self._manager.settings.claim_seconds, self._page
        until = self._manager.storage.now() + timedelta(seconds=seconds)
        is_ours = claimed is None or self._manager.storage.run(sweeps.renew_claim, claimed, until)
        if not is_ours and self._page is claimed:
            self._page = None
        return seconds / 4

    def run(self) -> float:
        """Compare one page of domains; seconds until the next."""
        manager = self._manager
        if not manager.settings.contents_audit_interval:
            return IDLE
        claimed, wait = audit_schedule.claim_page(manager, KIND, manager.settings.contents_audit_interval)
        if claimed is None:
            return wait
        if not claimed.after_id or not self._expected:
            self._expected = (manager.storage.read(gauges.active, manager.pool.name)
                              + manager.storage.read(gauges.unsettled, manager.pool.name)[Status.ERROR])
        size = min(MOST_IN_PAGE, max(1, self._expected // PAGES))
        page = manager.storage.read(sweeps.page, claimed.pool_id, claimed.after_id, size, [])
        self._page = claimed
        try:
            self._compare_page(claimed, [domain_id for domain_id, _, _ in page.domains], page.last_id)
        finally:
            self._page = None
        return 0.0

    def _compare_page(self, audit: Audit, domain_ids: Sequence[str], last_id: str) -> None:
        """Compare these domains and write the progress of the round; *last_id* is empty for its last page."""
        counts, unanswering = Counts(), set[str]()
        states = self._manager.reconciler.read(domain_ids, self._manager.storage.now())
        for domain_id in domain_ids:
            if self._stopping.is_set() or self._page is None:
                break
            if domain_id in states:
                counts = _sum(counts, self._compare(states[domain_id], unanswering))
                done = domain_id
        else:
            done = last_id
        if self._page is None:
            return  # another pool manager has taken it over and begins it again
        if self._stopping.is_set() and not counts.domains:
            self._manager.storage.run(sweeps.release, audit)
            return
        if not done:
            self._end_round()
        now = self._manager.storage.now()
        compared = audit.now.domains + counts.domains
        share = compared / max(self._expected, compared + 1) if done else 1.0
        due = audit.started_at + timedelta(seconds=self._manager.settings.contents_audit_interval * share)
        self._manager.storage.run(sweeps.advance, audit, done, counts, 0, max(now, due), now)

    def _compare(self, state: DomainState, unanswering: set[str]) -> Counts:
        """Compare one domain on all servers that serve it; those that do not answer are added to *unanswering*."""
        rows = self._comparable_rows(state)
        asked = {server: row for server, row in rows.items() if server not in unanswering}
        answers: dict[str, ZoneComparison] = {}
        ours = self._ours(state.domain) if asked else None
        if ours is not None and ours.serial == state.domain.serial:
            workers = {server: self._manager.all_workers[server] for server in asked}
            futures = {server: self._threads.submit(zone_compare.compare, worker.server, ours, self._paces[server])
                       for server, worker in workers.items()}
            answers = {server: future.result() for server, future in futures.items()}
            for server, answer in answers.items():
                self._record_result(workers[server], answer)
        unanswering.update(server for server, answer in answers.items() if answer.match is Match.SILENT)
        other = {server: answer for server, answer in answers.items() if answer.match in (Match.OTHER, Match.AHEAD)}
        diverged = self._mark_diverged(state, other) if other else 0
        unanswered = sum(answer.match not in COMPARED for answer in answers.values())
        return Counts(1, len(rows), len(answers), unanswered, diverged)

    def _ours(self, domain: Domain) -> zone_compare.Ours | None:
        try:
            return zone_compare.ours(self._manager.storage, domain.id)
        except ValueError as error:
            LOG.warning('the contents of %s cannot be built from the database and are not compared: %s',
                        domain.name, error)
            return None

    def _comparable_rows(self, state: DomainState) -> dict[str, ServerStatus]:
        """The UPDATE rows, by server, of servers that transfer the zone and should serve its serial."""
        members = {server.id: server for server in self._manager.members.servers}
        return {server: row for (server, action), row in state.rows.items()
                if action is Action.UPDATE and row_transitions.is_at_rest(row)
                and row.serial_number == state.domain.serial
                and (worker := self._manager.workers.get(server)) is not None
                and not worker.backend.capabilities.fed_by_records
                and not worker.dns.is_open and members[server].state is ServerState.ACTIVE}

    def _mark_diverged(self, seen: DomainState, answers: Mapping[str, ZoneComparison]) -> int:
        """Have these servers transfer the zone again, unless their rows have changed since *seen*; how many."""
        recorder = FindingRecorder(self._manager, KIND, self._manager.storage.now())
        with self._manager.reconciler.step([seen.domain.id]) as step:
            for state in step.states.values():
                for server, answer in answers.items():
                    row, former = state.rows.get((server, Action.UPDATE)), seen.rows[server, Action.UPDATE]
                    if row is None or row.version != former.version:
                        continue
                    if answer.match is Match.OTHER:
                        row = row_transitions.diverge(row, answer.why, step.now)
                    elif answer.serial is not None and newer(answer.serial, state.domain.serial):
                        row = row_transitions.serial_ahead(row, answer.serial, state.domain.serial, step.now)
                    else:
                        continue
                    state.change(*recorder.marked(state, server, [row], answer.why, REFETCHED))
        recorder.save(step)
        return len(step.writes)

    def _record_result(self, worker: ServerWorker, answer: ZoneComparison) -> None:
        """Count *answer*; log once for each server why its contents cannot be compared."""
        server, label = worker.server.id, worker.server.label
        metrics.CONTENTS.labels(label, answer.match.name.lower()).inc()
        if answer.match in COMPARED:
            self._compared.add(server)
        elif answer.match is Match.UNKNOWN:
            self._unknown.add(server)
            if server not in self._reported:
                self._reported.add(server)
                note = f'its contents are not checked: {answer.why}'
                logs.transition(LOG, logging.WARNING, '%s: %s', label, note, server=label)
                self._note(server, note, Reason.UNCHECKED)

    def _end_round(self) -> None:
        """Clear the notes of servers that could be compared during all of the round."""
        noted = {server.id for server in self._manager.members.servers if server.reason is Reason.UNCHECKED}
        for server in (self._compared - self._unknown) & (self._reported | noted):
            self._reported.discard(server)
            self._note(server, None, None)
        self._compared.clear()
        self._unknown.clear()

    def _note(self, server_id: str, note: str | None, reason: Reason | None) -> None:
        """Write *note* in the server's row, unless that has changed meanwhile."""
        server = self._manager.storage.read(server_store.SERVERS.get, server_id)
        if server is not None and (server.note, server.reason) != (note, reason):
            self._manager.storage.run(server_store.save, dataclasses.replace(server, note=note, reason=reason),
                                      self._manager.storage.now())


def _sum(one: Counts, other: Counts) -> Counts:
    total = collections.Counter(dataclasses.asdict(one))
    total.update(dataclasses.asdict(other))
    return Counts(**total)
