"""The pool manager's main loop: begin operations, have the servers execute them, apply the results, report to Central.

All state is in the database.  A cast, a call's outcome and a poll's result only say which domains to look at; each step
reads the domains and their rows, decides with :mod:`row_transitions` and :mod:`consensus`, writes all rows in one
statement, and only then acts.  Whatever is queued is handled as one batch.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import random
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from designate_pool import logs
from designate_pool.backends.base import Backend
from designate_pool.backoff import Backoff
from designate_pool.errors import PoolError
from designate_pool.model import (Action, Answer, CallResult, Context, Domain, Outcome, PollRequest, PollResult, Pool,
                                  PoolServer, Reason, Report, Server, ServerState, ServerStatus, Status, utcnow)
from designate_pool.outage_log import OutageLog
from designate_pool.pool_manager import operation_log
from designate_pool.pool_manager.dispatch.circuit_breaker import CircuitBreaker
from designate_pool.pool_manager.dispatch.record_sync import RecordSync
from designate_pool.pool_manager.dispatch.results import OutcomeQueue, domain_of, is_success, server_of
from designate_pool.pool_manager.dispatch.server_worker import CallOutcome, ServerWorker
from designate_pool.pool_manager.dispatch.work_queue import Operation, is_current
from designate_pool.pool_manager.periodic.due_timer import DueTimer
from designate_pool.pool_manager.reconcile import domain_state, row_transitions, verdicts
from designate_pool.pool_manager.reconcile.domain_state import Decision, DomainState
from designate_pool.pool_manager.reconcile.membership import Members
from designate_pool.pool_manager.settings import ManagerSettings
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.minidns import MiniDnsClient
from designate_pool.serial import at_least, newer
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.serving import catalog
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import domains as domain_store

LOG = logging.getLogger(__name__)

#: The pool manager acts on behalf of no user.
NOBODY = Context(request_id='pool-manager', all_projects=True)
#: The domain id of polls for the catalog zone.
CATALOG = 'catalog'
#: Seconds, on average, by which an operation is postponed while another call for the name is in flight.
BUSY = Backoff(1.0, factor=1.0, jitter=(0.5, 1.5))
#: Retry intervals within which a server that reads the catalog finds a new zone in it and fetches it.
CATALOG_PATIENCE = 5


class Manager:
    """One pool's servers, kept in step with the database.

    Until :meth:`set_servers` is called every server of *pool* is active.

    :param pool: with its servers and threshold
    :param backends: a driver for each server, by server id
    :ivar members: which servers count and which are in service
    :ivar workers: of the servers in service, by server id
    :ivar all_workers: of all configured servers
    :ivar also_notifies: other destinations of a NOTIFY for each change
    :ivar record_sync: for servers that are fed by records
    """

    def __init__(self, pool: Pool, backends: Mapping[str, Backend], storage: Storage, central: CentralClient,
                 minidns: MiniDnsClient, runtime: Any, settings: ManagerSettings) -> None:
        self.pool = pool
        self.settings = settings
        self.storage = storage
        self._runtime = runtime
        self._central = central
        self.minidns = minidns
        self._casts = runtime.batches(self._begin, settings.batch_size, name='casts')
        self._outcomes = OutcomeQueue(runtime, self._apply_results, settings.batch_size)
        self._undecided = runtime.batches(self._reevaluate, settings.batch_size, name='open')
        self._reports = runtime.batches(self._send_reports, settings.batch_size, name='reports')
        self._serials_ahead = runtime.batches(self._issue_serials, settings.batch_size, name='outrun')
        self._outage = OutageLog(
            LOG, 'results of %d zones were not reported to Central and are reported again later: %s',
            'results are reported to Central again', logging.WARNING)
        # Held from reading rows to writing them: a concurrent decision here would only cause a conflict and a retry.
        self.decision_lock = threading.RLock()
        self._due_timer = DueTimer()
        self.record_sync = RecordSync(storage, pool, settings)
        self.also_notifies: tuple[str, ...] = ()
        self.all_workers: dict[str, ServerWorker] = {}
        self.workers: dict[str, ServerWorker] = {}
        self.set_servers(Members.of(PoolServer(each.id, pool.id, each.label, each.driver, ServerState.ACTIVE)
                                    for each in pool.servers),
                         {each.id: self.new_worker(each, backends[each.id]) for each in pool.servers})

    def new_worker(self, server: Server, backend: Backend) -> ServerWorker:
        return ServerWorker(server, backend, self._circuit(), self._circuit(), 2 * self.settings.batch_size,
                            self._runtime,
                            self.record_sync.sync, self.record_sync.retransfer,
                            lambda outcomes: self._outcomes.put(*outcomes), utcnow, self._renew_claims)

    def set_servers(self, members: Members, workers: Mapping[str, ServerWorker]) -> None:
        """Replace the servers and their workers."""
        with self.decision_lock:
            self.members = members
            self.all_workers = dict(workers)
            self.workers = {key: worker for key, worker in workers.items() if key in members.in_service}

    def change(self, domain_ids: Iterable[str]) -> None:
        """Look at these domains: something may be due."""
        self._casts.put(*domain_ids)

    def handle_results(self, results: Iterable[PollResult]) -> None:
        """Queue the results of polls."""
        self._outcomes.put(*self.relevant(results))

    def relevant(self, results: Iterable[PollResult]) -> list[PollResult]:
        """Those of *results* that can be used.

        A result is dropped if the server has serials of its own, or was polled at another address or with another
        driver: that may be another machine.
        """
        return [result for result in results if (worker := self.workers.get(result.server_id)) is not None
                and worker.backend.capabilities.keeps_serial and result.label in (None, worker.server.label)]

    def stop(self) -> None:
        """Finish the calls in flight and release the other claims."""
        self._casts.stop()
        for worker in self.all_workers.values():
            worker.stop()
        for queue in (self._outcomes, self._undecided, self._reports, self._serials_ahead):
            queue.stop()
        try:
            self.storage.run(server_statuses.release, self.settings.name, list(self.all_workers))
        except Exception as error:  # the program must stop in good order without its database, too
            LOG.warning('claims could not be given back; other pool managers take them over after %g s: %s',
                        self.settings.claim_seconds, error)

    def _begin(self, domain_ids: Sequence[str]) -> None:
        now = utcnow()
        self._outcomes.mark_fresh(domain_ids)
        fed = [key for key, worker in self.all_workers.items() if worker.backend.capabilities.fed_by_records]
        with self.decision_lock:
            found = self.read_states(domain_ids)
            for state in found.values():
                state.change(*row_transitions.begin(state.domain, state.rows, self.members.tracked, now,
                                                    fed))
            self._supersede(found.values(), now)
            decision = self.write(found.values(), now)
        self.carry_out(decision)
        self._also_notify(state.domain for state in found.values() if state.changed)
        self.evaluate(found.values())
        if decision.conflicts:
            self._casts.put(*found)

    def _apply_results(self, outcomes: Sequence[CallOutcome | PollResult]) -> None:
        now = utcnow()
        recovered = {server for outcome in outcomes if (server := self._update_circuit(outcome))}
        with self.decision_lock:
            found = self.read_states([domain_of(outcome) for outcome in outcomes])
            for outcome in outcomes:
                state = found.get(domain_of(outcome))
                if state is not None and isinstance(outcome, CallOutcome) and self._had_other_settings(outcome):
                    _abandon_call(state, outcome)
                    continue
                # After a recovery failed operations are due again already; a server out of service cannot fail.
                excused = server_of(outcome) in recovered or server_of(outcome) not in self.workers
                if state is None or (excused and not is_success(outcome)):
                    continue
                if isinstance(outcome, CallOutcome):
                    self._after_call(state, outcome, now)
                elif not state.domain.is_going:
                    self._after_poll(state, outcome, now)
            self._recreate(found, outcomes, now)
            self._supersede([each for each in found.values() if each.has_new_deletion], now)
            decision = self.write(found.values(), now)
        self._outcomes.mark_fresh(key for key, state in found.items() if is_current(state.domain, now))
        self.carry_out(decision)
        self.evaluate(found.values())
        self._serials_ahead.put(*((key, each.serial_ahead) for key, each in found.items()
                                  if each.serial_ahead is not None))
        if decision.conflicts:
            # A success may be applied twice; a lost failure is due again when its round must have ended.
            self._outcomes.put(*(outcome for outcome in outcomes if is_success(outcome)))

    def read_states(self, domain_ids: Iterable[str], server_ids: Collection[str] = ()) -> dict[str, DomainState]:
        """The present states of these domains, on all servers unless some are named; unknown ones are left out."""
        now = utcnow()
        return domain_state.read(self.storage, self.pool.name, list(domain_ids), server_ids,
                                 lambda row: row_transitions.is_claimed(row, now) and self._is_call(row))

    def write(self, changed: Iterable[DomainState], now: datetime, claimed: Sequence[Operation] = ()) -> Decision:
        """Write the changed rows; the decision for :meth:`carry_out`.

        :param claimed: operations whose rows were claimed before
        """
        decision = Decision()
        by_id = {state.domain.id: state for state in changed}
        for operation in claimed:
            by_id[operation.domain.id].remove_claim(operation.row.server_id, operation.row.action)
        for operation in claimed:
            state = by_id[operation.domain.id]
            if not self.all_workers[operation.row.server_id].handles(operation.row):
                self._decide_row(decision, state, operation.row, 0.0, now)
            elif state.is_busy(operation.row.server_id):
                decision.writes.append(self._postpone(operation.row, now))
            else:
                state.add_claim(operation.row)
                decision.calls.append(operation)
        for state in by_id.values():
            for row in state.changed.values():
                if row_transitions.is_due(row, now) and row.server_id in self.workers:
                    delay = self._fetch_delay(row.server_id) if row.server_id in state.fetching else 0.0
                    # Its version as read: the claim or poll counts as its one change.
                    read = dataclasses.replace(row, version=row.version - 1)
                    self._decide_row(decision, state, read, delay, now)
                else:
                    decision.writes.append(row)
        if decision.writes:
            decision.conflicts = self.storage.run(server_statuses.write, decision.writes, now)
            self._due_timer.set((row.next_attempt_at for row in decision.writes), now)
            operation_log.log_ended(decision.writes, by_id, self.all_workers)
        return decision

    def until_next(self, now: datetime, most: float) -> float:
        """Seconds until the next row written here is due, *most* at most."""
        return self._due_timer.until_next(now, most)

    def carry_out(self, decision: Decision) -> None:
        """Queue the calls with the server workers and send the polls to MiniDNS."""
        self._yield_claims(decision)
        if decision.polls:
            self.poll(decision.polls, self.settings.tries)
        readers = [operation for operation in decision.calls if self._reads_catalog(operation.row.server_id)]
        self._enqueue(operation for operation in decision.calls if not self._reads_catalog(operation.row.server_id))
        # Last, since it may block: the other servers must not wait for it.
        if readers:
            self._announce_catalog(readers)
            self._enqueue(readers)

    def evaluate(self, changed: Iterable[DomainState]) -> None:
        """Report new verdicts to Central; delete the rows of complete deletions.

        Rows of servers that are not tracked here are kept: a draining server still needs them.
        """
        members = self.members
        found = verdicts.evaluate(changed, members.counting, self.pool.threshold_percentage, members.uncounted)
        self._reports.put(*found.reports)
        self._undecided.put(*found.undecided)
        if found.finished:
            self.storage.run(server_statuses.purge_domains, found.finished, members.tracked)

    def _supersede(self, found: Iterable[DomainState], now: datetime) -> None:
        """End deletions of zones whose names belong to newer domains now."""
        for state, generation in self.superseded(found):
            state.change(*(row_transitions.supersede(row, generation) for row in state.rows.values()
                           if row.action is Action.DELETE and row.status is not Outcome.SUCCESS
                           and not row_transitions.is_claimed(row, now)))

    def superseded(self, found: Iterable[DomainState]) -> list[tuple[DomainState, int]]:
        """The domains being deleted whose name exists again, with the newer generation.

        Their zones must not be deleted: the newer domain's contents replace them.
        """
        going = [each for each in found if each.domain.is_going]
        live = self._live_domains(each.domain.name for each in going)
        return [(each, newer.generation) for each in going if (newer := live.get(each.domain.name)) is not None
                and newer.generation > each.domain.generation]

    def poll(self, requests: Sequence[PollRequest], tries: row_transitions.Tries) -> None:
        """Have MiniDNS notify and poll; if the broker is down, the rows are due again later."""
        try:
            self.minidns.notify_and_poll(NOBODY, self.pool.name, requests, tries.timeout, tries.retry_interval,
                                         tries.max_retries)
        except PoolError as error:
            LOG.warning('%d polls were not sent; they are sent again later: %s', len(requests), error)

    def wake(self, server_id: str) -> None:
        """The server answers again: make all its unfinished rows due now."""
        woken = self.storage.run(server_statuses.wake, server_id, utcnow())
        label = self.all_workers[server_id].server.label
        logs.transition(LOG, logging.INFO, '%s answers again; %d operations are due', label, woken, server=label)

    def queues(self) -> dict[str, int]:
        """Length of each queue."""
        return {'casts': len(self._casts), 'outcomes': len(self._outcomes), 'reports': len(self._reports),
                'calls': sum(worker.waiting for worker in list(self.all_workers.values()))}

    def extend_claims(self) -> float:
        """Renew the claims of operations queued or in flight; seconds until the next time."""
        before = utcnow() + timedelta(seconds=self.settings.claim_seconds * 2 / 3)
        for worker in list(self.all_workers.values()):
            worker.extend_claims(before)
        return self.settings.claim_seconds / 6

    def _renew_claims(self, rows: Sequence[ServerStatus]) -> Sequence[ServerStatus]:
        now = utcnow()
        until = now + timedelta(seconds=self.settings.claim_seconds)
        return self.storage.run(server_statuses.renew_claims, rows, self.settings.name, now, until)

    def _is_call(self, row: ServerStatus) -> bool:
        """Whether *row* needs a driver call rather than a poll."""
        worker = self.all_workers.get(row.server_id)
        return row.action is not Action.UPDATE or worker is not None and worker.handles(row)

    def _yield_claims(self, decision: Decision) -> None:
        """Release the claims for names that somebody else has claimed on the same server.

        Both write their claims before either reads, so of two that claim at once at least one sees the other; a claim
        stays until its call has ended.  Calls without a valid claim, or whose domain was deleted meanwhile, are
        dropped.
        """
        if not decision.calls:
            return
        now = utcnow()
        claimed: dict[tuple[str, str], list[server_statuses.Claimed]] = collections.defaultdict(list)
        for each in self.storage.read(server_statuses.claimed_on_names,
                                      [operation.domain.name for operation in decision.calls], now):
            claimed[each.server_id, each.name].append(each)
        calls, decision.calls, given_back = decision.calls, [], []
        # Of several own claims of one name the first goes on.
        later = {_key_of(operation.row) for operation in calls}
        for operation in calls:
            claims = claimed[operation.row.server_id, operation.domain.name]
            later.remove(_key_of(operation.row))
            own = next((each for each in claims if each.row is not None and _key_of(each.row) == _key_of(operation.row)
                        and _is_claim_of(each.row, operation.row)), None)
            if own is None or own.row is None:
                continue
            others = [each for each in claims if each is not own
                      and (each.row is None or self._is_call(each.row) and _key_of(each.row) not in later)]
            if own.going and operation.row.action is not Action.DELETE:
                given_back.append(row_transitions.cancel(own.row))
            elif others:
                given_back.append(self._postpone(own.row, now))
            else:
                decision.calls.append(operation)
                continue
            claims.remove(own)
        if given_back:
            self.storage.run(server_statuses.write, given_back, now)
            self._due_timer.set((row.next_attempt_at for row in given_back), now)

    def _postpone(self, row: ServerStatus, now: datetime) -> ServerStatus:
        return row_transitions.postpone(row, now + timedelta(seconds=BUSY.delay(0, random.random())))

    def _circuit(self) -> CircuitBreaker:
        return CircuitBreaker(self.settings.circuit_failures, self.settings.circuit_probe_interval, monotonic)

    def _also_notify(self, changed: Iterable[Domain]) -> None:
        """Have MiniDNS notify the destinations that are no servers of the pool; they are not polled."""
        requests = [PollRequest(domain.id, domain.name, domain.serial, where, poll=False)
                    for domain in changed if not domain.is_going for where in self.also_notifies]
        if requests:
            self.poll(requests, self.settings.tries)

    def _enqueue(self, operations: Iterable[Operation]) -> None:
        for operation in operations:
            if (worker := self.workers.get(operation.row.server_id)) is not None:
                worker.put(operation)

    def _reads_catalog(self, server_id: str) -> bool:
        """Whether the server finds its zones in the pool's catalog zone."""
        worker = self.workers.get(server_id)
        return self.pool.catalog_zone is not None and worker is not None and worker.backend.capabilities.reads_catalog

    def _announce_catalog(self, operations: Sequence[Operation]) -> None:
        """Notify the servers of these operations that the catalog zone has changed.

        A new operation is in the catalog at its present serial.  For a retry the serial is raised, since some servers
        retry a member that they could not add only when the catalog has changed.
        """
        assert self.pool.catalog_zone is not None
        again = any(operation.row.attempts or not operation.current for operation in operations)
        try:
            serial = self.storage.run(_raise_catalog_serial,
                                      self.pool.name) if again else self.storage.ask(_catalog_serial, self.pool.name)
        except Exception as error:  # errors of the database vary; the servers refresh the catalog by themselves, later
            LOG.warning('the servers were not notified of the new catalog zone: %s', error)
            return
        readers = sorted({operation.row.server_id for operation in operations})
        self.poll([PollRequest(CATALOG, self.pool.catalog_zone, serial, server) for server in readers],
                  self.settings.tries)

    def _fetch_delay(self, server_id: str) -> float:
        """Seconds within which a server may fetch a new zone by itself before it is notified."""
        patience = CATALOG_PATIENCE if self.workers[server_id].backend.capabilities.reads_catalog else 1
        return self.settings.tries.retry_interval * patience

    def _decide_row(self, decision: Decision, state: DomainState, row: ServerStatus, delay: float,
                    now: datetime) -> None:
        """Decide on a due row: a call, a poll, or nothing now.

        :param delay: seconds within which the server may fetch the zone by itself
        """
        domain, worker, tries = state.domain, self.workers[row.server_id], self.settings.tries
        current = is_current(domain, now)
        if worker.handles(row):
            if state.is_busy(row.server_id):
                row = self._postpone(row, now)
            elif worker.room(current) > decision.slots_taken[row.server_id, current]:
                decision.slots_taken[row.server_id, current] += 1
                row = row_transitions.claim(row, self.settings.name,
                                            now + timedelta(seconds=self.settings.claim_seconds))
                state.add_claim(row)
                decision.calls.append(Operation(domain, row, current))
            else:
                row = row_transitions.release_claim(row)  # it stays due until there is room
            decision.writes.append(row)
        elif worker.dns.is_open:
            no_answer = CallResult(error=f'{worker.server.label} has not answered DNS', unreachable=True,
                                   reason=Reason.TIMEOUT)
            row = row_transitions.after_call(row, no_answer, now, tries, random.random())
            state.rows[row.server_id, row.action] = row
            decision.writes.append(row)
        elif not current and not worker.polls.room:
            decision.writes.append(row_transitions.release_claim(row))
        else:
            worker.polls.add(domain.id)
            decision.writes.append(row_transitions.poll_sent(row, now, tries))
            decision.polls.append(PollRequest(domain.id, domain.name, row.expected_serial, row.server_id, delay=delay,
                                              seen=row.serial_number, incarnation=row.incarnation))

    def _had_other_settings(self, outcome: CallOutcome) -> bool:
        """Whether the call was made with former settings, or the server is gone: its outcome says nothing then."""
        if outcome.server is None:
            return False
        worker = self.all_workers.get(outcome.server.id)
        return worker is None or worker.server != outcome.server

    def _after_call(self, state: DomainState, outcome: CallOutcome, now: datetime) -> None:
        operation, domain = outcome.operation, state.domain
        server, action = operation.row.server_id, operation.row.action
        row = state.rows.get((server, action))
        # If the claim was lost, the row is not this call's; a success still counts, unless the server has lost the
        # zone since.
        own = row is not None and _is_claim_of(row, operation.row)
        if own:
            state.remove_claim(server, action)
        if domain.is_going and action is not Action.DELETE:
            self._after_late_call(state, outcome, own, now)
        elif row is not None and (own or outcome.result.ok and not operation.row.diverged
                                  and row.incarnation == operation.row.incarnation):
            if action is Action.UPDATE and outcome.result.ok:
                self._after_sync(state, outcome, now)
            elif own and not outcome.result.ok and row.next_attempt_at != operation.row.next_attempt_at:
                state.change(row_transitions.release_claim(row))  # it was restarted meanwhile, and is due
            else:
                if own or row.status is not Outcome.SUCCESS:
                    after = row_transitions.after_call(row_transitions.observe(row, outcome.serial), outcome.result,
                                                       now, self.settings.tries,
                                                       random.random())
                    state.change(after)
                    if outcome.serial is not None and row_transitions.needs_higher_serial(after, outcome.serial,
                                                                                          domain):
                        state.serial_ahead = outcome.serial
                if action is Action.CREATE and outcome.result.ok:
                    self._after_create(state, outcome, now)
        if own:
            state.change(*(row_transitions.schedule_poll(each, now)
                           for each in row_transitions.untried(state.rows, server)
                           if self.all_workers[server].handles(each)))

    def _after_late_call(self, state: DomainState, outcome: CallOutcome, own: bool, now: datetime) -> None:
        """The domain was deleted while its zone was being created: delete the zone, too."""
        server, action = outcome.operation.row.server_id, outcome.operation.row.action
        if own:
            state.change(row_transitions.cancel(state.rows[server, action]))
        makes = action is Action.CREATE or self.all_workers[server].backend.capabilities.fed_by_records
        if makes and outcome.result.ok:
            delete = state.rows.get((server, Action.DELETE))
            if delete is None:
                # The first to see the deletion begins it everywhere, unless it was reported: then only here.
                is_told = state.domain.status is Status.DELETED
                state.change(*row_transitions.begin(state.domain, state.rows,
                                                    [server] if is_told else self.members.tracked, now))
            elif delete.status is Outcome.SUCCESS:
                state.change(row_transitions.restart(delete, state.domain, now))

    def _after_create(self, state: DomainState, outcome: CallOutcome, now: datetime) -> None:
        server = outcome.operation.row.server_id
        update, backend = state.rows.get((server, Action.UPDATE)), self.all_workers[server].backend
        if update is None:
            return
        if backend.capabilities.serves_on_create:
            self._after_sync(state, outcome, now)
        elif update.status is not Outcome.SUCCESS and update.next_attempt_at is None:
            state.change(row_transitions.schedule_poll(update, now))
            if backend.capabilities.fetches_on_create:
                state.fetching.add(server)

    def _after_sync(self, state: DomainState, outcome: CallOutcome, now: datetime) -> None:
        """The server has the contents: the same as a successful poll."""
        operation = outcome.operation
        row = row_transitions.clear_divergence(state.rows[operation.row.server_id, Action.UPDATE])
        serial = operation.domain.serial if outcome.serial is None else outcome.serial
        served = PollResult(operation.domain.id, operation.row.server_id, Outcome.SUCCESS, Answer.SERIAL, serial)
        after = row_transitions.after_poll(row, served, now, self.settings.tries, random.random())
        if not at_least(serial, row.expected_serial):
            after = row_transitions.schedule_poll(after, now)  # there was a change meanwhile
        state.change(row_transitions.release_claim(row) if after is row else after)

    def _after_poll(self, state: DomainState, result: PollResult, now: datetime) -> None:
        create = state.rows.get((result.server_id, Action.CREATE))
        update = state.rows.get((result.server_id, Action.UPDATE))
        if create is None or update is None or row_transitions.is_of_former_incarnation(update, result):
            return
        if row_transitions.needs_confirmation(update, result):
            if (confirming := row_transitions.confirm(update, result, now)) is not update:
                state.change(confirming)
            return
        if row_transitions.is_stale(update, result):
            counted = row_transitions.count_stale_failure(update, result, self.settings.tries)
            if counted is update:
                return
            if counted.status is not Outcome.ERROR or not row_transitions.has_lost_zone(result):
                state.change(counted)
                return
        if result.serial_number is not None and newer(result.serial_number, state.domain.serial):
            # The domain was read after the server answered, so the pool never issued that serial.
            ahead = row_transitions.serial_ahead(update, result.serial_number, state.domain.serial, now)
            if create.status is Outcome.SUCCESS and ahead is not update:
                state.change(ahead)
            return
        if row_transitions.has_lost_zone(result):
            if create.status is Outcome.SUCCESS:
                state.change(*row_transitions.zone_lost(create, update, state.domain, result.error or '', now,
                                                        self.settings.tries, random.random()))
            return
        after = row_transitions.after_poll(update, result, now, self.settings.tries, random.random())
        if after is not update:
            state.change(after)

    def _recreate(self, found: dict[str, DomainState], outcomes: Sequence[CallOutcome | PollResult],
                  now: datetime) -> None:
        """Create zones again that a deletion of an older domain of the same name may have removed."""
        deleted = [each.operation for each in outcomes if isinstance(each, CallOutcome) and each.result.ok
                   and each.operation.row.action is Action.DELETE]
        if not deleted:
            return
        live = self._live_domains(operation.domain.name for operation in deleted)
        missing = [domain.id for domain in live.values() if domain.id not in found]
        found.update(self.read_states(missing) if missing else {})
        for operation in deleted:
            newer = live.get(operation.domain.name)
            if newer is None or newer.id not in found:
                continue
            state = found[newer.id]
            server = operation.row.server_id
            if (server, Action.CREATE) in state.rows:
                state.remove_claim(server, Action.CREATE)
                state.change(*row_transitions.provision(newer, state.rows, server, now, gone=True))

    def _live_domains(self, names: Iterable[str]) -> dict[str, Domain]:
        wanted = list(dict.fromkeys(names))
        found = self.storage.read(domain_store.live_by_name, wanted) if wanted else {}
        return {name: domain for name, domain in found.items() if domain.pool_name == self.pool.name}

    def _update_circuit(self, outcome: CallOutcome | PollResult) -> str | None:
        """Count a failure or an answer; the server's id if this closed its circuit."""
        worker = self.workers.get(server_of(outcome))
        # Out of service or gone; and one call counts once.
        if worker is None or isinstance(outcome,
                                        CallOutcome) and (not outcome.is_first or self._had_other_settings(outcome)):
            return None
        if isinstance(outcome, CallOutcome):
            circuit, what, why = worker.control, 'its control channel', outcome.result.error
            failures = 1 if outcome.result.unreachable else 0
        else:
            circuit, what, why = worker.dns, 'DNS', outcome.error
            worker.polls.discard(domain_of(outcome))
            # A timeout is reported after all tries of a round.
            failures = 1 + self.settings.tries.max_retries if outcome.answer is Answer.TIMEOUT else 0
        if failures and circuit.failed(failures):
            logs.transition(LOG, logging.WARNING, '%s does not answer %s: %s', worker.server.label, what, why,
                            server=worker.server.label)
        elif not failures and circuit.answered():
            self.wake(worker.server.id)
            return worker.server.id
        return None

    def _send_reports(self, reports: Sequence[Report]) -> None:
        try:
            self._central.update_statuses(NOBODY, reports)
        except PoolError as error:
            # The periodic loop finds unreported verdicts and reports them again.
            self._outage.failed(len(reports), error)
            return
        self._outage.ended()
        gone = [each.domain_id for each in reports if each.action is Action.DELETE and each.status is Outcome.SUCCESS]
        if gone:
            self._reevaluate(gone)

    def _issue_serials(self, ahead: Sequence[tuple[str, int]]) -> None:
        """Have Central issue serials above those that servers still serve after a retransfer: (domain id, serial)."""
        for domain_id, serial in ahead:
            try:
                self._central.outrun_serial(NOBODY, domain_id, serial)
            except PoolError as error:
                LOG.warning('no serial above %d was issued for the zone %s: %s', serial, domain_id, error)

    def _reevaluate(self, domain_ids: Sequence[str]) -> None:
        self.evaluate(self.read_states(domain_ids).values())


def _key_of(row: ServerStatus) -> tuple[str, str, Action]:
    return row.server_id, row.domain_id, row.action


def _is_claim_of(row: ServerStatus, claimed: ServerStatus) -> bool:
    """Whether *row* still has the claim of *claimed*, which may have been renewed since."""
    return (row.claimed_by == claimed.claimed_by and row.claimed_until is not None
            and claimed.claimed_until is not None and row.claimed_until >= claimed.claimed_until)


def _abandon_call(state: DomainState, outcome: CallOutcome) -> None:
    """Release the claim of *outcome*, so that its row is due again; cancel it if its domain was deleted."""
    server, action = outcome.operation.row.server_id, outcome.operation.row.action
    row = state.rows.get((server, action))
    if row is not None and _is_claim_of(row, outcome.operation.row):
        state.remove_claim(server, action)
        is_over = state.domain.is_going and action is not Action.DELETE
        state.change(row_transitions.cancel(row) if is_over else row_transitions.release_claim(row))


def _raise_catalog_serial(tx: Tx, pool_name: str) -> int:
    """Raise the catalog's serial; the new one."""
    found = catalog.head(tx, pool_name)
    raised = None if found is None else catalog.bump(tx, found.pool_id, utcnow())
    return _catalog_serial(tx, pool_name) if raised is None else raised


def _catalog_serial(tx: Tx, pool_name: str) -> int:
    """The catalog's serial."""
    found = catalog.head(tx, pool_name)
    return catalog.FIRST_SERIAL if found is None else found.serial
