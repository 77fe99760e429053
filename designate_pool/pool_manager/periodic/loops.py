"""The loops of the pool manager.  An exception in an iteration does not end a loop.

* *due*: claim rows that are due, in pages and by index, and execute them;
* *claims*: renew the claims of operations that are queued or in flight, and of the page of *contents_audit*;
* *polls*: forget polls whose results went to other pool managers, where there is no room for more;
* *probes*: probe servers whose circuit is open;
* *unsettled*: reconcile domains again that have been PENDING or in ERROR for a while, in case a cast or report was
  lost; one pool manager of the pool at a time.  It also wakes *due* for rows that were not written here, and *members*
  when the servers have changed and no message has said so;
* *members*: read the states of the servers, and whether the configuration was read again elsewhere, when woken;
* *gauges*: set the gauges, so that reading the metrics does not read the database;
* *serial_audit*, *contents_audit*, *signature_audit*, *orphan_audit*, *join_and_drain* and *releases*: see the modules
  of these names.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from designate_pool import logs, metrics
from designate_pool.concurrency import Wakeable
from designate_pool.model import Action, Audit, AuditKind, Counts, Outcome, PollRequest, PoolServer, ServerState, Status
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.periodic import audit_schedule
from designate_pool.pool_manager.periodic.contents_audit import ContentsAudit
from designate_pool.pool_manager.periodic.join_and_drain import JoinAndDrain
from designate_pool.pool_manager.periodic.orphan_audit import OrphanAudit
from designate_pool.pool_manager.periodic.releases import Releases
from designate_pool.pool_manager.periodic.serial_audit import SerialAudit
from designate_pool.pool_manager.periodic.signature_audit import SignatureAudit
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.pool_manager.reconcile.domain_state import Step
from designate_pool.pool_manager.server_registry import ServerRegistry
from designate_pool.storage.operations import pool_servers as server_store, server_statuses, sweeps
from designate_pool.storage.reporting import gauges
from designate_pool.storage.reporting.gauges import ServerMeasures
from designate_pool.storage.signing import zone_signing
from designate_pool.storage.zones import domains as domain_store, pools as pool_store

LOG = logging.getLogger(__name__)

DUE_INTERVAL = 0.5
#: Where no row is due sooner: *unsettled* looks for those that others write, or have left when they ended.
IDLE_INTERVAL = 60.0
UNSETTLED_INTERVAL = 5.0
POLLS_INTERVAL = 1.0
#: While the pool is there, and while it is gone.
MEMBERS_INTERVAL, GONE_INTERVAL = 60.0, 1.0
PAGE = 500
#: Seconds between two pages of a round of *unsettled*, so that a round takes a part of a processor only.
PAGE_INTERVAL = 0.25
#: Outcomes that may be queued while due rows are claimed.
BACKLOG = 2000
#: Seconds between two updates of: gauges from memory, those from the database (at most), the number of ACTIVE domains.
GAUGES_INTERVAL, DATABASE_INTERVAL, COUNT_INTERVAL = 1.0, 15.0, 300.0

CHANNELS = ('control', 'dns')


class PeriodicLoops:
    """The loops of one pool manager.

    :param longest_pause: seconds from one run of a loop to its next at most
    :ivar serial_audit: takes the results of its pages
    :ivar last_tick: for each loop, when it last ran (monotonic seconds)
    """

    def __init__(self, manager: Manager, registry: ServerRegistry, runtime: Any,
                 longest_pause: float = math.inf) -> None:
        self._manager = manager
        self._registry = registry
        self._longest_pause = longest_pause
        self._join_and_drain = JoinAndDrain(manager, registry)
        self._gauges = Gauges(manager)
        self._contents_audit = ContentsAudit(manager, runtime)
        self._releases = Releases(manager, runtime)
        self._signature_audit = SignatureAudit(manager, runtime)
        self._orphan_audit = OrphanAudit(manager)
        self._changes: int | None = None
        self._runtime = runtime
        self._stopping = threading.Event()
        self.serial_audit = SerialAudit(manager, runtime)
        self._wakeable: dict[str, Wakeable] = {'due': manager.reconciler.due_timer, 'members': registry}
        self._tasks: list[Any] = []
        self.last_tick: dict[str, float] = {}

    def start(self) -> None:
        """Start a thread for each loop."""
        loops: dict[str, Callable[[], float]] = {
            'due': self.run_due, 'claims': self.run_claims, 'polls': self.run_polls, 'probes': self.run_probes,
            'unsettled': self.run_unsettled, 'members': self.run_members, 'serial_audit': self.serial_audit.run,
            'contents_audit': self._contents_audit.run, 'signature_audit': self._signature_audit.run,
            'orphan_audit': self._orphan_audit.run, 'join_and_drain': self._join_and_drain.run,
            'gauges': self._gauges.run, 'releases': self._releases.run}
        self._tasks = [self._runtime.spawn(self._loop, name, run, name=name) for name, run in loops.items()]

    def stop(self) -> None:
        """End the loops after their present iterations."""
        self._stopping.set()
        for wakeable in self._wakeable.values():
            wakeable.wake()
        self._contents_audit.stop()
        for task in self._tasks:
            task.join(5.0)
        self._contents_audit.close()
        self._releases.close()
        self._signature_audit.close()
        self.serial_audit.stop()

    def run_due(self) -> float:
        """Carry out rows that are due; seconds until the next time."""
        manager, timer, looked_at = self._manager, self._manager.reconciler.due_timer, self._manager.storage.now()
        if manager.queues()['outcomes'] > BACKLOG or not self._rooms():
            return DUE_INTERVAL / 10
        timer.start_look()
        with manager.reconciler.step() as step:
            self._claim_due(step)
        if step.states:
            return 0.0
        is_full = len(self._rooms()) < len(manager.workers)
        next_at = manager.storage.read(server_statuses.next_due, list(manager.workers), looked_at)
        return timer.end_look(next_at, manager.storage.now(), DUE_INTERVAL if is_full else IDLE_INTERVAL)

    def run_claims(self) -> float:
        """Renew claims; seconds until the next time."""
        self._contents_audit.extend_claim()
        return self._manager.extend_claims()

    def run_probes(self) -> float:
        """Probe the servers whose circuits are open; seconds until the next time."""
        manager = self._manager
        for server_id, worker in manager.workers.items():
            if (worker.control.probe_due() and not worker.backend.ping().unreachable
                    and worker.control.answered(probe=True)):
                manager.wake(server_id)
            # The results of polls, those of probes too, go to the first pool manager.
            if worker.dns.probe_due() and not worker.dns.close_unheard(manager.settings.tries.round_seconds):
                self._probe_dns(server_id)
        is_any_open = any(worker.control.is_open or worker.dns.is_open for worker in manager.workers.values())
        interval = manager.settings.circuit_probe_interval
        return min(0.25, interval / 4) if is_any_open else min(1.0, interval)

    def run_unsettled(self) -> float:
        """Reconcile a page of unsettled domains, unless another pool manager does; seconds until the next time.

        Rows that are due, and changes of the servers, are looked for in the same statement.  The pages of a round
        follow each other quickly, unless so many casts are queued that this would delay recent changes.
        """
        now, interval = self._manager.storage.now(), timedelta(seconds=UNSETTLED_INTERVAL)
        waiting = self._manager.storage.read(server_statuses.look, self._manager.pool.name, self._rooms(), now,
                                             interval)
        if waiting.has_due:
            self._manager.reconciler.due_timer.wake()
        if waiting.changes != self._changes:
            self._registry.wake()
            self._changes = waiting.changes
        if not waiting.has_unsettled:
            return UNSETTLED_INTERVAL
        claimed, wait = audit_schedule.claim_page(self._manager, AuditKind.UNSETTLED)
        if claimed is None:
            return min(wait, UNSETTLED_INTERVAL)
        is_crowded = self._manager.queues()['casts'] >= PAGE
        domains = self._manager.storage.read(domain_store.unsettled, self._manager.pool.name, now, interval,
                                             claimed.after_id, PAGE)
        self._manager.queue_changes(domain.id for domain in domains)
        last_id = domains[-1].id if len(domains) == PAGE else ''
        pause = PAGE_INTERVAL if last_id and not is_crowded else UNSETTLED_INTERVAL
        self._manager.storage.run(sweeps.advance, claimed, last_id, Counts(), 0,
                                  now + timedelta(seconds=pause), now)
        return pause

    def run_polls(self) -> float:
        """Make room for polls; seconds until the next time."""
        storage = self._manager.storage
        for server_id, worker in self._manager.workers.items():
            if not worker.polls.room(storage.now()):
                worker.polls.retain(lambda ids: storage.read(server_statuses.being_polled, server_id, ids,
                                                             storage.now()))
        return POLLS_INTERVAL

    def run_members(self) -> float:
        """Read the states of the servers; seconds until the next time."""
        return MEMBERS_INTERVAL if self._registry.refresh() else GONE_INTERVAL

    def _rooms(self) -> dict[str, int]:
        """How many operations of the backlog each server may be given now, by server id."""
        now = self._manager.storage.now()
        return {server: room for server, worker in self._manager.workers.items()
                if (room := min(worker.room(recent=False), worker.polls.room(now)))}

    def _claim_due(self, step: Step) -> None:
        manager = self._manager
        until = step.now + timedelta(seconds=manager.settings.claim_seconds)
        rooms = self._rooms()  # again, since servers come and go only under the lock
        rows = manager.storage.run(server_statuses.claim_due, rooms, step.now, manager.settings.name,
                                   until) if rooms else []
        manager.reconciler.load(step, (row.domain_id for row in rows))
        step.claimed = rows
        for row in rows:
            if row.domain_id in step.states:
                step.states[row.domain_id].remove_claim(row.server_id, row.action)
            else:
                # It was written while its domain left the pool, or the pool was renamed and that is yet to be noticed.
                manager.storage.run(server_store.purge_strays, row.server_id, [row.domain_id])
        # Nothing is left to do where deletion has begun, or another pool manager has succeeded.
        for row in step.unchanged_claimed():
            state, is_done = step.states[row.domain_id], row.status is Outcome.SUCCESS
            domain = state.on(row.server_id)
            if is_done and row.action is not Action.UPDATE or (
                    row.action is not Action.DELETE and domain is not None and domain.is_going):
                state.change(row_transitions.cancel(row))

    def _probe_dns(self, server_id: str) -> None:
        """Poll the server once, with a short timeout, for a domain that it should have."""
        manager = self._manager
        row = manager.storage.read(server_statuses.first_waiting_update, server_id)
        domain = manager.storage.read(domain_store.get_many, [row.domain_id]).get(row.domain_id) if row else None
        if row is None or domain is None:
            manager.workers[server_id].dns.answered()
            return
        once = dataclasses.replace(manager.settings.tries, timeout=manager.settings.circuit_probe_interval,
                                   max_retries=0)
        manager.reconciler.polls.put((PollRequest(domain.id, domain.name, row.expected_serial, server_id,
                                                  incarnation=row.incarnation, probe=True), once, True))

    def _loop(self, name: str, run: Callable[[], float]) -> None:
        while not self._stopping.is_set():
            self.last_tick[name] = time.monotonic()
            metrics.TICKED_AT.labels(name).set_to_current_time()
            pause = DUE_INTERVAL
            try:
                pause = run()
            except (SystemExit, KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as error:  # eventlet's Timeout is no Exception; whatever happens, the loop goes on
                metrics.LOOP_FAILURES.labels(name).inc()
                logs.failure(LOG, error, '%s failed and is retried', name)
            wait = self._wakeable[name].wait if name in self._wakeable else self._stopping.wait
            wait(min(pause, self._longest_pause))


class Gauges:
    """Sets the gauges of one pool manager; *clock* gives monotonic seconds."""

    def __init__(self, manager: Manager, clock: Callable[[], float] = time.monotonic) -> None:
        self._manager = manager
        self._clock = clock
        self._labels: set[str] = set()
        self._measure_at = self._count_at = float('-inf')

    def run(self) -> float:
        """Update the gauges that are due; seconds until the next time."""
        manager = self._manager
        for queue, length in manager.queues().items():
            metrics.QUEUE.labels(queue).set(length)
        for worker in list(manager.all_workers.values()):
            for channel, circuit in zip(CHANNELS, (worker.control, worker.dns)):
                metrics.CIRCUIT_OPEN.labels(manager.pool.name, worker.server.label, channel).set(circuit.is_open)
        if manager.settings.measured and self._clock() >= self._measure_at:
            self._measure_at = self._clock() + min(DATABASE_INTERVAL, manager.settings.periodic_sync_interval)
            self._measure()
        return GAUGES_INTERVAL

    def _measure(self) -> None:
        manager, pool = self._manager, self._manager.pool.name
        servers = manager.members.servers
        for server in servers:
            self._show(pool, server, manager.storage.read(gauges.of_server, server.id, manager.storage.now()))
        for gone in self._labels - {server.label for server in servers}:
            metrics.forget_server(pool, gone, [state.value for state in ServerState], CHANNELS)
        self._labels = {server.label for server in servers}
        for status, count in manager.storage.read(gauges.unsettled, pool).items():
            metrics.DOMAINS.labels(pool, status.value).set(count)
        if self._clock() >= self._count_at:
            metrics.DOMAINS.labels(pool, Status.ACTIVE.value).set(manager.storage.read(gauges.active, pool))
            self._count_at = self._clock() + COUNT_INTERVAL
        intervals = {AuditKind.SERIALS: manager.settings.periodic_sync_interval,
                     AuditKind.CONTENTS: manager.settings.contents_audit_interval,
                     AuditKind.SIGNATURES: manager.settings.signature_audit_interval}
        for audit in manager.storage.read(sweeps.of_pool, pool):
            _show_audit(pool, audit, intervals[audit.kind])
        metrics.PLANS_PARKED.labels(pool).set(manager.storage.read(gauges.parked_plans, pool, manager.storage.now()))
        metrics.SIGNING_HELD.labels(pool).set(manager.storage.read(
            zone_signing.count_held, pool_store.id_of(pool), gauges.MOST))
        metrics.MEASURED_AT.labels(pool).set_to_current_time()

    def _show(self, pool: str, server: PoolServer, found: ServerMeasures) -> None:
        now = self._manager.storage.now()

        def seconds_since(moment: object) -> float:
            return max(0.0, (now - moment).total_seconds()) if moment is not None else 0.0  # type: ignore[operator]

        for gauge, value in ((metrics.ROWS_WAITING, found.waiting), (metrics.ROWS_DUE, found.due),
                             (metrics.ROWS_FAILING, found.failing), (metrics.ROWS_IN_HAND, found.in_hand),
                             (metrics.ROWS_DIVERGED, found.diverged),
                             (metrics.DUE_AGE, seconds_since(found.oldest_due)), (metrics.BEHIND, found.behind),
                             (metrics.LAG, seconds_since(found.behind_since))):
            gauge.labels(pool, server.label).set(value)
        for state in ServerState:
            metrics.SERVER_STATE.labels(pool, server.label, state.value).set(server.state is state)


def _show_audit(pool: str, audit: Audit, interval: float) -> None:
    """The present round of an audit, and the results of the last one."""
    metrics.AUDIT_INTERVAL.labels(pool, audit.kind.value).set(interval)
    metrics.AUDIT_STARTED_AT.labels(pool, audit.kind.value).set(audit.started_at.timestamp())
    if audit.last is None or audit.last_started_at is None or audit.last_seconds is None:
        return
    for gauge, value in ((metrics.AUDIT_SECONDS, audit.last_seconds),
                         (metrics.AUDIT_ENDED_AT, audit.last_started_at.timestamp() + audit.last_seconds),
                         (metrics.AUDIT_DOMAINS, audit.last.domains), (metrics.AUDIT_COVERAGE, audit.last.coverage),
                         (metrics.AUDIT_UNANSWERED, audit.last.unanswered),
                         (metrics.AUDIT_FINDINGS, audit.last.findings)):
        gauge.labels(pool, audit.kind.value).set(value)
