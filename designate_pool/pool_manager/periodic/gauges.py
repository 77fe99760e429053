"""The loop that sets the pool manager's gauges, so that reading the metrics does not read the database."""

from __future__ import annotations

import time
from collections.abc import Callable

from designate_pool import metrics
from designate_pool.model import Audit, AuditKind, PoolServer, ServerState, Status
from designate_pool.pool_manager.manager import Manager
from designate_pool.storage.operations import sweeps
from designate_pool.storage.reporting import gauges
from designate_pool.storage.reporting.gauges import ServerMeasures

#: Seconds between two updates of: gauges from memory, those from the database (at most), the number of ACTIVE domains.
INTERVAL, DATABASE_INTERVAL, COUNT_INTERVAL = 1.0, 15.0, 300.0

CHANNELS = ('control', 'dns')


class Gauges:
    """Sets the gauges of one pool manager.

    :param clock: monotonic seconds
    """

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
        self._show_circuits()
        if manager.settings.measured and self._clock() >= self._measure_at:
            self._measure_at = self._clock() + min(DATABASE_INTERVAL, manager.settings.periodic_sync_interval)
            self._measure()
        return INTERVAL

    def _show_circuits(self) -> None:
        manager = self._manager
        for worker in list(manager.all_workers.values()):
            for channel, circuit in zip(CHANNELS, (worker.control, worker.dns)):
                metrics.CIRCUIT_OPEN.labels(manager.pool.name, worker.server.label, channel).set(circuit.is_open)

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
                     AuditKind.CONTENTS: manager.settings.contents_audit_interval}
        for audit in manager.storage.read(sweeps.of_pool, pool):
            _show_audit(pool, audit, intervals[audit.kind])
        metrics.PLANS_PARKED.labels(pool).set(manager.storage.read(gauges.parked_plans, pool, manager.storage.now()))
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
