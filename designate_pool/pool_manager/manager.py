"""The pool manager: starts operations, applies their outcomes, and reports to Central.

A cast, a call's outcome and a poll's result only say which domains to process; a step of the
:class:`~designate_pool.pool_manager.reconcile.reconciler.Reconciler` does the rest.  All queued domains are one batch.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from designate_pool import logs
from designate_pool.backends.base import Backend
from designate_pool.consensus import Members
from designate_pool.errors import PoolError, ServiceUnavailable
from designate_pool.model import (Action, Answer, Outcome, PollRequest, PollResult, Pool, PoolServer, Server,
                                  ServerState, ServerStatus)
from designate_pool.pool_manager.dispatch.record_sync import RecordSync
from designate_pool.pool_manager.dispatch.server_worker import (CallOutcome, CircuitBreaker, ServerOutcome,
                                                                ServerWorker, WorkerCallbacks)
from designate_pool.pool_manager.dispatch.zone_compare import retransfer
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.pool_manager.reconcile.outcomes import (OutcomeRules, channel_of, had_other_settings,
                                                            is_of_former_life)
from designate_pool.pool_manager.reconcile.reconciler import WHO, Reconciler
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.minidns import MiniDnsClient
from designate_pool.settings import PoolManagerSettings
from designate_pool.storage.operations import pool_servers as server_store, server_statuses
from designate_pool.storage.sql.database import Storage

LOG = logging.getLogger(__name__)


class Manager:
    """One pool's servers, with a driver for each, kept in step with the database.

    Until the registry has read the database every server of *pool* is active.

    :ivar also_notifies: other destinations of a NOTIFY for each change
    """

    def __init__(self, pool: Pool, backends: Mapping[str, Backend], storage: Storage, central: CentralClient,
                 minidns: MiniDnsClient, runtime: Any, settings: PoolManagerSettings) -> None:
        self.reconciler = Reconciler(pool, storage, central, minidns, runtime, settings)
        self.storage = storage
        self._runtime = runtime
        self.central = central
        self.minidns = minidns
        self._casts = runtime.work_queue(self._schedule_changes, settings.batch_size, name='casts')
        # When a server gets all its zones again, outcomes arrive faster than they are handled.
        self._outcomes = runtime.work_queue(self._apply_results, settings.batch_size, name='outcomes',
                                            priority=self._goes_first)
        self._serials_ahead = runtime.work_queue(self._issue_serials, settings.batch_size, name='serials')
        self.record_sync = RecordSync(storage, pool, settings)
        self._worker_callbacks = WorkerCallbacks(
            self.record_sync.sync, functools.partial(retransfer, storage, settings.tries),
            lambda outcomes: self._outcomes.put(*outcomes), self._renew_claims,
            lambda rows: self._release(server_statuses.release_claims, rows))
        self.also_notifies: tuple[str, ...] = ()
        self.reconciler.set_servers(
            Members.of(PoolServer(server.id, pool.id, server.label, server.driver, ServerState.ACTIVE)
                       for server in pool.servers),
            {server.id: self.new_worker(server, backends[server.id]) for server in pool.servers})

    def new_worker(self, server: Server, backend: Backend) -> ServerWorker:
        """A worker for *server*, with closed circuits."""
        control, dns = (CircuitBreaker(self.settings.circuit_failures, self.settings.circuit_probe_interval, monotonic)
                        for _ in range(2))
        return ServerWorker(server, backend, control, dns, 2 * self.settings.batch_size, self._runtime,
                            self._worker_callbacks, self.storage.now)

    @property
    def pool(self) -> Pool:
        """The pool with its present servers."""
        return self.reconciler.pool

    @property
    def settings(self) -> PoolManagerSettings:
        """The settings of this pool manager."""
        return self.reconciler.settings

    @property
    def members(self) -> Members:
        """Which servers count and which are in service."""
        return self.reconciler.members

    @property
    def workers(self) -> dict[str, ServerWorker]:
        """The workers of the servers in service, by server id."""
        return self.reconciler.workers

    @property
    def all_workers(self) -> dict[str, ServerWorker]:
        """The workers of all configured servers, by server id."""
        return self.reconciler.all_workers

    def queue_changes(self, domain_ids: Iterable[str]) -> None:
        """Queue these domains, for which something may be due."""
        self._casts.put(*domain_ids)

    def queue_results(self, results: Iterable[PollResult]) -> None:
        """Queue the results of polls."""
        self._outcomes.put(*self.relevant(results))

    def relevant(self, results: Iterable[PollResult]) -> list[PollResult]:
        """Those of *results* whose server has our serials, and was polled at this address and with this driver."""
        return [result for result in results if (worker := self.workers.get(result.server_id)) is not None
                and result.label in (None, worker.server.label) and worker.backend.capabilities.keeps_serial]

    def of_others(self, results: Iterable[PollResult]) -> list[PollResult]:
        """Those of *results* whose servers are in service, but not as configured here, where the file may be older."""
        here = {server_id: (None, worker.server.label) for server_id, worker in self.workers.items()}
        elsewhere = {server.id: (None, server.label) for server in self.members.servers
                     if server.id in self.members.in_service}
        return [result for result in results if result.label not in here.get(result.server_id, ())
                and result.label in elsewhere.get(result.server_id, ())]

    def stop(self) -> None:
        """Finish the calls in flight and release the other claims."""
        self._casts.stop()
        for worker in self.all_workers.values():
            worker.stop()
        self._outcomes.stop()
        self.reconciler.stop()
        self._serials_ahead.stop()
        self._release(server_statuses.release, self.settings.name, list(self.all_workers))

    def _schedule_changes(self, domain_ids: Sequence[str]) -> None:
        fed = [key for key, worker in self.all_workers.items() if worker.backend.capabilities.fed_by_records]
        with self.reconciler.step(domain_ids) as step:
            for state in step.states.values():
                # Central makes rows due when a plan was approved.
                if any(row_transitions.is_due(row, step.now) for row in state.rows.values()):
                    self.reconciler.due_timer.wake()
                state.change(*state.schedule(self.members.tracked, step.now, fed))
        # MiniDNS notifies the destinations that are no servers of the pool; they are not polled.
        self.reconciler.polls.put(*(
            (PollRequest(state.domain.id, state.domain.name, state.domain.serial, destination, poll=False),
             self.settings.tries, False)
            for state in step.states.values() if state.changed and not state.domain.is_going
            for destination in self.also_notifies))
        if step.conflicts:
            self._casts.put(*step.states)

    def _apply_results(self, outcomes: Sequence[ServerOutcome]) -> None:
        recovered = {channel_of(outcome) for outcome in outcomes if self._count_outcome(outcome)}
        outcomes = [outcome for outcome in outcomes
                    if isinstance(outcome, CallOutcome) or not outcome.is_first_silence]
        deleted = {outcome.operation.domain.name for outcome in outcomes if isinstance(outcome, CallOutcome)
                   and outcome.result.ok and outcome.operation.row.action is Action.DELETE}
        with self.reconciler.step((outcome.domain_id for outcome in outcomes), deleted=deleted) as step:
            missed = OutcomeRules(self.all_workers, self.members, self.settings.tries, step).apply(outcomes, recovered)
        former = [outcome.operation.row for outcome in outcomes if isinstance(outcome, CallOutcome) and (
            (state := step.states.get(outcome.domain_id)) is None or is_of_former_life(state.domain, outcome))]
        if former:
            self._release(server_statuses.release_claims, former)
        self._serials_ahead.put(*((key, state.serial_ahead) for key, state in step.states.items()
                                  if state.serial_ahead is not None))
        if step.conflicts:
            # A success may be applied twice; a lost failure is due again when its round must have ended.
            self._outcomes.put(*(outcome for outcome in outcomes if outcome.status is Outcome.SUCCESS))
            self._casts.put(*missed)  # the rows that were written do not show any more that others are behind

    def _goes_first(self, outcome: ServerOutcome) -> bool:
        """Whether it is that of a recent change, which does not wait behind a backlog."""
        if isinstance(outcome, CallOutcome):
            return outcome.operation.recent
        worker = self.workers.get(outcome.server_id)
        return worker is not None and worker.polls.is_for_recent_change(outcome.domain_id)

    def wake(self, server_id: str) -> None:
        """The server answers again: make all its unfinished rows due now."""
        woken = self.storage.run(server_statuses.wake, server_id, self.storage.now())
        label = self.all_workers[server_id].server.label
        self.reconciler.due_timer.wake()
        logs.transition(LOG, logging.INFO, '%s answers again; %d operations are due', label, woken, server=label)

    def repeat_polls(self) -> None:
        """Poll again for all that is being polled for: who polled, or had the results, may have been killed."""
        polled = self.storage.run(server_statuses.wake_polled, list(self.workers), self.storage.now(),
                                  self.reconciler.fetch_patience)
        self.reconciler.due_timer.wake()
        if polled:
            LOG.info('%d polls are repeated, since a service of the pool has started', polled)

    def queues(self) -> dict[str, int]:
        """Length of each queue."""
        return {'casts': len(self._casts), 'outcomes': len(self._outcomes), 'reports': len(self.reconciler.reports),
                'calls': sum(worker.waiting for worker in list(self.all_workers.values()))}

    def extend_claims(self) -> float:
        """Renew the claims of operations queued or in flight; seconds until the next time."""
        before = self.storage.now() + timedelta(seconds=self.settings.claim_seconds * 2 / 3)
        for worker in list(self.all_workers.values()):
            worker.extend_claims(before)
        return self.settings.claim_seconds / 6

    def _renew_claims(self, rows: Sequence[ServerStatus]) -> Sequence[ServerStatus]:
        now = self.storage.now()
        until = now + timedelta(seconds=self.settings.claim_seconds)
        return self.storage.run(server_statuses.renew_claims, rows, self.settings.name, now, until)

    def _release(self, release: Callable[..., int], *what: Any) -> None:
        try:
            self.storage.run(release, *what)
            self.reconciler.due_timer.wake()
        except Exception as error:  # stopping must go on without a database, too
            LOG.warning('claims were not released; they end after %g s: %s', self.settings.claim_seconds, error)

    def _count_outcome(self, outcome: ServerOutcome) -> bool:
        """Count a failure or an answer; whether this closed the circuit of its channel."""
        worker = self.workers.get(outcome.server_id)
        if worker is None or isinstance(outcome, CallOutcome) and (
                not outcome.is_first or had_other_settings(outcome, self.all_workers)):
            return False  # out of service or gone; and one call counts once
        if isinstance(outcome, CallOutcome):
            return self.update_circuit(worker, worker.control, int(outcome.result.unreachable), outcome.result.error)
        if not outcome.is_first_silence:
            worker.polls.discard(outcome.domain_id)
        # A timeout is reported after the first try, and after all tries of a round.
        tries = 1 if outcome.is_first_silence else 1 + self.settings.tries.max_retries
        return self.update_circuit(worker, worker.dns, tries * (outcome.answer is Answer.TIMEOUT), outcome.error)

    def update_circuit(self, worker: ServerWorker, circuit: CircuitBreaker, failures: int, why: str | None) -> bool:
        """Count *failures* of a server to answer, or an answer if there are none; whether this closed the circuit.

        Its silence, or the end of it, is written where that is news, of the channel that it gets zones by.
        """
        if circuit is (worker.control if worker.backend.capabilities.fed_by_records else worker.dns):
            worker.answered_at = worker.answered_at if failures else self.storage.now()
            if worker.is_silent is not bool(failures):
                self._write_silence(worker, self.storage.now() if failures else None)
        if failures and circuit.failed(failures):
            logs.transition(LOG, logging.WARNING, '%s does not answer %s: %s', worker.server.label,
                            'DNS' if circuit is worker.dns else 'its control channel', why, server=worker.server.label)
        elif not failures and circuit.answered():
            self.wake(worker.server.id)
            return True
        return False

    def read_silence(self, worker: ServerWorker, since: datetime | None) -> None:
        """The database says that a server answers nobody *since* then; None if it answers."""
        worker.is_silent = since is not None
        if since is not None and worker.answered_at is not None and worker.answered_at > since:
            self._write_silence(worker, None)  # it was here that it answered, when that was no news yet

    def _write_silence(self, worker: ServerWorker, since: datetime | None) -> None:
        with contextlib.suppress(ServiceUnavailable):  # the next result tells it again
            self.storage.run(server_store.set_silent, worker.server.id, since)
            worker.is_silent = since is not None

    def _issue_serials(self, ahead: Sequence[tuple[str, int]]) -> None:
        """Have Central issue serials above those that servers still serve after a retransfer: (domain id, serial)."""
        for domain_id, serial in ahead:
            try:
                self.central.raise_serial_above(WHO, domain_id, serial)
            except PoolError as error:
                LOG.warning('no serial above %d was issued for the zone %s: %s', serial, domain_id, error)
