"""The audit of contents: every zone is compared on every server once in ``contents_audit_interval``.

It compares domains that are ACTIVE or in ERROR, on those servers fed by transfer whose rows say that they serve the
domain's serial.  A server with other contents under that serial, or with a serial that the pool never issued, has
diverged: its row becomes due for a retransfer.  An older serial is left to the audit of serials.

The servers of one domain are compared at the same time, the domains one after the other, so that at most two zones for
each server are in memory.  A server that takes much longer than another one is left behind: its result is taken when
it comes, and until then it is asked about no other domain.
"""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import logging
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

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
from designate_pool.storage.operations import pool_servers as server_store, sweeps
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
#: Seconds for which a server may take longer than the first one; or as long again as that, if that is more.
LAG = 5.0


class _Running(NamedTuple):
    state: DomainState
    worker: ServerWorker
    future: concurrent.futures.Future[ZoneComparison]


class ContentsAudit:
    """The contents audit of *manager*'s pool, as far as this pool manager takes part."""

    def __init__(self, manager: Manager, runtime: Any) -> None:
        self._manager = manager
        self._threads = runtime.workers(WORKERS, name='contents')
        self._stopping = threading.Event()
        self._paces = collections.defaultdict[str, Pace](
            lambda: Pace(manager.settings.contents_audit_rate, self._check_stopping))
        # By server; those of an earlier domain are of servers that were left behind.
        self._running: dict[str, _Running] = {}
        self._late = Counts()
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

    def extend_claim(self) -> None:
        """Renew the claim on the page that is being compared."""
        claimed, storage = self._page, self._manager.storage
        until = storage.now() + timedelta(seconds=self._manager.settings.claim_seconds)
        if claimed is not None and not storage.run(sweeps.renew_claim, claimed, until) and self._page is claimed:
            self._page = None

    def run(self) -> float:
        """Compare one page of domains; seconds until the next."""
        manager = self._manager
        self._late = _sum(self._late, self._take_results(set()))
        if not manager.settings.contents_audit_interval:
            return IDLE
        claimed, wait = audit_schedule.claim_page(manager, KIND)
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
        counts, unanswering, self._late = self._late, set[str](), Counts()
        done: str | None = None
        states = self._manager.reconciler.read(domain_ids, self._manager.storage.now())
        for domain_id in domain_ids:
            results = [self._compare(state, unanswering) for state in states[domain_id].views
                       ] if domain_id in states else []
            if self._stopping.is_set() or self._page is None:
                break  # it may have been broken off
            counts, done = _sum(counts, Counts(bool(results)), *results), domain_id
        else:
            done = last_id
        if self._page is None:
            return  # another pool manager has taken it over and begins it again
        if done is None:
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
        """Compare one domain on all servers that may have this version; those that do not answer are added to
        *unanswering*."""
        rows = self._comparable_rows(state)
        asked = [server for server in rows if server not in unanswering]
        busy = [self._running[server].future for server in asked if server in self._running]
        if len(busy) == len(asked):
            self._wait_for_one(busy)
        counts = self._take_results(unanswering)
        asked = [server for server in asked if server not in self._running and server not in unanswering]
        ours = self._ours(state.domain) if asked else None
        if ours is not None and ours.serial == state.domain.serial:
            started = time.monotonic()
            for server in asked:
                worker = self._manager.all_workers[server]
                self._running[server] = _Running(state, worker, self._threads.submit(
                    zone_compare.compare, worker.server, ours, self._paces[server]))
            self._wait_for_one([comparison.future for comparison in self._running.values()])
            concurrent.futures.wait([self._running[server].future for server in asked],
                                    max(LAG, time.monotonic() - started))
            counts = _sum(counts, self._take_results(unanswering))
        return _sum(counts, Counts(0, len(rows)))

    def _wait_for_one(self, running: Sequence[concurrent.futures.Future[ZoneComparison]]) -> None:
        """Wait until one has ended, or the audit stops: a silent server is waited for as long as it may be silent."""
        while running and not self._stopping.is_set():
            if concurrent.futures.wait(running, 0.5, concurrent.futures.FIRST_COMPLETED).done:
                return

    def _take_results(self, unanswering: set[str]) -> Counts:
        counts = Counts()
        for server, (state, worker, future) in list(self._running.items()):
            if not future.done():
                continue
            del self._running[server]
            answer = future.result()
            self._record_result(worker, answer)
            if answer.match is Match.SILENT:
                unanswering.add(server)
            diverged = answer.match in (Match.OTHER, Match.AHEAD) and self._is_marked(state, server, answer)
            counts = _sum(counts, Counts(0, 0, 1, answer.match not in COMPARED, diverged))
        return counts

    def _check_stopping(self) -> None:
        if self._stopping.is_set():
            raise TimeoutError('the audit stops')

    def _ours(self, domain: Domain) -> zone_compare.Ours | None:
        try:
            return zone_compare.ours(self._manager.storage, domain.id, domain.stage)
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

    def _is_marked(self, seen: DomainState, server: str, answer: ZoneComparison) -> bool:
        """Have the server transfer the zone again, unless its row has changed since *seen*; whether it will."""
        recorder = FindingRecorder(self._manager, KIND, self._manager.storage.now())
        with self._manager.reconciler.step([seen.domain.id]) as step:
            for state in step.states.values():
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
        return bool(step.writes)

    def _record_result(self, worker: ServerWorker, answer: ZoneComparison) -> None:
        """Count *answer*; log once for each server why its contents cannot be compared."""
        server, label = worker.server.id, worker.server.label
        metrics.CONTENTS.labels(label, answer.match.name.lower()).inc()
        if answer.match in COMPARED and not answer.signs:
            self._compared.add(server)
        elif answer.signs or answer.match is Match.UNKNOWN:
            self._unknown.add(server)
            if server not in self._reported:
                self._reported.add(server)
                note, reason = ('its serials are its own: it signs', Reason.SIGNS) if answer.signs else (
                    f'its contents are not checked: {answer.why}', Reason.UNCHECKED)
                logs.transition(LOG, logging.WARNING, '%s: %s', label, note, server=label)
                self._note(server, note, reason)

    def _end_round(self) -> None:
        """Clear the notes of servers that could be compared during all of the round."""
        noted = {server.id for server in self._manager.members.servers
                 if server.reason in (Reason.UNCHECKED, Reason.SIGNS)}
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


def _sum(*parts: Counts) -> Counts:
    return Counts(*map(sum, zip(*map(dataclasses.astuple, parts))))
