"""One step of the pool manager: lock, read, decide, poll, write, call, weigh.

All state is in the database.  Whatever happens to rows happens in such a step, which

* reads domains and their rows, and may claim some of these;
* decides which rows change, with the transitions of :mod:`row_transitions`, then what those need that are due, both
  without I/O;
* has MiniDNS notify and poll, without waiting for the write: a poll changes nothing on a server, and a row that was not
  written is still due;
* writes all changed rows in one statement, and only then calls: if this process dies, they are due again;
* weighs the domains with :mod:`consensus` and reports what Central does not know yet.
"""

from __future__ import annotations

import collections
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from designate_pool import logs
from designate_pool.consensus import Members
from designate_pool.errors import LostRace, PoolError
from designate_pool.model import (CATALOG_ID, Action, AuditFinding, Context, Domain, Outcome, PollRequest, Pool, Report,
                                  ServerStatus, utcnow)
from designate_pool.pool_manager.dispatch.operation import Operation
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.reconcile import domain_state, due_rows, row_transitions, verdicts
from designate_pool.pool_manager.reconcile.domain_state import Decision, DomainState, Loaded, RecentStates
from designate_pool.pool_manager.reconcile.due_rows import DueRowRules, DueTimer
from designate_pool.pool_manager.reconcile.verdicts import UndecidedDomains
from designate_pool.rpc.minidns import MiniDnsClient
from designate_pool.settings import PoolManagerSettings, Tries
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.serving import catalog
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import domains as domain_store

LOG = logging.getLogger(__name__)
#: One line when an operation succeeds, one when it has failed; operators filter by this name.
OPERATION_LOG = logging.getLogger('designate_pool.pool_manager.operation_log')

#: The pool manager acts on behalf of no user.
NOBODY = Context(request_id='pool-manager', all_projects=True)
#: Seconds after which a due row is looked at again that could be neither called nor polled for.
RETRY_PAUSE = 0.5

#: Reads what a step is about, under the lock, at the time that it is given.
Load = Callable[[datetime], Loaded]
#: A request for MiniDNS, with what tries, and whether it is for any MiniDNS instead of the first.
Poll = tuple[PollRequest, Tries, bool]
#: Changes the rows of what was loaded; does no I/O.
ChangeRows = Callable[[Loaded, datetime], None]


class StepQueues(Protocol):
    """The queues for what follows from a step and is not waited for."""

    def queue_reports(self, reports: Iterable[Report]) -> None:
        """Have Central get these reports."""

    def queue_polls(self, polls: Iterable[Poll]) -> None:
        """Have :meth:`Reconciler.send_polls` called with these."""

    def queue_undecided(self, domain_ids: Iterable[str]) -> None:
        """Have :meth:`Reconciler.weigh_again` called with these ids of domains."""


class Reconciler:
    """Runs the steps for one pool.

    :ivar members: which servers count and which are in service
    :ivar workers: of the servers in service, by server id
    :ivar all_workers: of all configured servers
    :ivar due_timer: when the next row written here is due
    :ivar undecided: domains to weigh again
    """

    def __init__(self, pool: Pool, storage: Storage, minidns: MiniDnsClient, settings: PoolManagerSettings,
                 queues: StepQueues) -> None:
        self.pool = pool
        self.settings = settings
        self.members = Members.of(())
        self.all_workers: dict[str, ServerWorker] = {}
        self.workers: dict[str, ServerWorker] = {}
        self._storage = storage
        self._minidns = minidns
        self._queues = queues
        # Held from reading rows to writing them: a concurrent step here would only cause a conflict and a retry.
        self._lock = threading.RLock()
        self.due_timer = DueTimer()
        self._recent = RecentStates()
        self.undecided = UndecidedDomains(queues.queue_undecided)
        self._catalog_rests_until = 0.0  # monotonic

    def run(self, load: Load, change_rows: ChangeRows) -> Decision:
        """Take one step; what was decided and written in it."""
        with self._lock:
            now = utcnow()
            loaded = load(now)
            change_rows(loaded, now)
            loaded.supersede(self._reads_catalog)
            decision = DueRowRules(self.workers, self.settings, now).choose_due_rows(loaded)
            self.poll(decision.polls, self.settings.tries)
            self.poll(decision.spread_polls, self.settings.tries, spread=True)
            self.write(decision, now)
            if decision.conflicts or loaded.is_partial:
                self._recent.drop(loaded.states)
            else:
                self._recent.put(loaded.states.values(), now)
        self.make_calls(decision)
        if decision.conflicts:
            self._queues.queue_undecided(list(loaded.states))  # some rows are not as decided here
        elif loaded.is_partial:
            self._queues.queue_undecided([key for key, state in loaded.states.items() if state.has_new_outcomes])
        else:
            self.weigh(loaded.states.values())
        return decision

    def set_servers(self, members: Members, workers: Mapping[str, ServerWorker]) -> None:
        """Replace the servers and their workers."""
        with self._lock:
            if members == self.members and workers == self.all_workers:
                return
            self.members = members
            self.all_workers = dict(workers)
            self.workers = {key: worker for key, worker in workers.items() if key in members.in_service}
            self._recent.clear()
        self.due_timer.wake()

    def read(self, domain_ids: Iterable[str], now: datetime, server_ids: Collection[str] = ()) -> Loaded:
        """The present states of these domains, on all servers unless some are named; unknown ones are left out."""
        states = domain_state.read(self._storage, self.pool.name, list(domain_ids), server_ids)
        for state in states.values():
            self._add_claims(state, now)
        return Loaded(states, is_partial=bool(server_ids))

    def recall(self, domain_ids: Iterable[str], now: datetime) -> dict[str, DomainState]:
        """The states, by id, of those of these domains that were read or written here a moment ago."""
        states = {key: state for key in dict.fromkeys(domain_ids)
                  if (state := self._recent.get(key, now)) is not None and state.domain.is_of(self.pool.name)}
        for state in states.values():
            self._add_claims(state, now)
        return states

    def read_with_live(self, domain_ids: Iterable[str], now: datetime) -> Loaded:
        """As :meth:`read`, with the live domains that have the names of those being deleted."""
        loaded = self.read(domain_ids, now)
        loaded.live = self.live_domains(state.domain.name for state in loaded.states.values() if state.domain.is_going)
        return loaded

    def live_domains(self, names: Iterable[str]) -> dict[str, Domain]:
        """The pool's domains that exist, by name."""
        distinct = list(dict.fromkeys(names))
        domains = self._storage.read(domain_store.live_by_name, distinct) if distinct else {}
        return {name: domain for name, domain in domains.items() if domain.is_of(self.pool.name)}

    def write(self, decision: Decision, now: datetime) -> None:
        """Write the rows that changed."""
        if decision.writes:
            decision.conflicts = self._write_rows(decision.writes, now)
            log_ended(decision.writes, decision.states, self.all_workers)

    def make_calls(self, decision: Decision) -> None:
        """Queue the calls with the server workers."""
        self._yield_claims(decision)
        readers = [operation for operation in decision.calls if self._reads_catalog(operation.row.server_id)]
        self._enqueue(operation for operation in decision.calls if not self._reads_catalog(operation.row.server_id))
        # Last, since it may block: the other servers must not wait for it.
        if readers:
            self._announce_catalog(readers)
            self._enqueue(readers)

    def weigh(self, states: Iterable[DomainState]) -> None:
        """Report new verdicts to Central; delete the rows of complete deletions.

        Rows of servers that are not tracked here are kept: a draining server still needs them.  Of domains that were
        moved from here to another pool, that one reports.
        """
        members = self.members
        states = [state for state in states if state.domain.pool_name == self.pool.name]
        weighed = verdicts.evaluate(states, members.counting, self.pool.threshold_percentage, members.uncounted)
        self._queues.queue_reports(weighed.reports)
        self._recent.note_reports(weighed.reports)
        self._put_off(weighed, {state.domain.id for state in states if state.is_recalled}, utcnow())
        if weighed.finished:
            self._storage.run(server_statuses.purge_domains, weighed.finished, members.tracked, utcnow())

    def weigh_again(self, domain_ids: Sequence[str]) -> None:
        """Read these domains with all their rows and weigh them."""
        self.weigh(self.read(domain_ids, utcnow()).states.values())

    def poll(self, requests: Sequence[PollRequest], tries: Tries, spread: bool = False) -> None:
        """Have MiniDNS notify and poll.

        :param spread: not the first MiniDNS, but any of them
        """
        self._queues.queue_polls((request, tries, spread) for request in requests)

    def send_polls(self, polls: Iterable[Poll]) -> None:
        """Send these to MiniDNS; if the broker is down, the rows are due again later."""
        messages: dict[tuple[Tries, bool], list[PollRequest]] = {}
        for request, tries, spread in polls:
            messages.setdefault((tries, spread), []).append(request)
        for (tries, spread), requests in messages.items():
            try:
                self._minidns.notify_and_poll(NOBODY, self.pool.name, requests, tries.timeout, tries.retry_interval,
                                              tries.max_retries, spread)
            except PoolError as error:
                LOG.warning('%d polls were not sent; they are sent again later: %s', len(requests), error)

    def _put_off(self, weighed: verdicts.Verdicts, recent: Collection[str], now: datetime) -> None:
        """Weigh undecided domains again: now, or a little later if polls for them are in flight.

        The results of these have the domain weighed as well, mostly without reading it.

        :param recent: ids of domains that were weighed without reading them
        """
        polled = {key for key in weighed.undecided
                  if key in recent and any(key in worker.polls for worker in self.workers.values())}
        self.undecided.discard(report.domain_id for report in weighed.reports)
        if polled:
            self.undecided.add(polled, now)
        self._queues.queue_undecided([key for key in weighed.undecided if key not in polled])

    def _add_claims(self, state: DomainState, now: datetime) -> None:
        for row in state.rows.values():
            if row.claimed_until is not None and row_transitions.is_claimed(row, now) and self._is_call(row):
                state.add_claim(row)

    def _is_call(self, row: ServerStatus) -> bool:
        """Whether *row* needs a driver call rather than a poll."""
        worker = self.all_workers.get(row.server_id)
        return row.action is not Action.UPDATE or worker is not None and worker.handles(row)

    @property
    def fetch_patience(self) -> timedelta:
        """The longest time within which a server may fetch a new zone by itself."""
        delays = [due_rows.fetch_delay(worker, self.settings.tries) for worker in self.workers.values()]
        return timedelta(seconds=max(delays, default=0.0))

    def _write_rows(self, rows: Sequence[ServerStatus], now: datetime) -> int:
        """How many rows were not written, because another writer was first or their domain was purged."""
        try:
            conflicts = self._storage.run(server_statuses.write, rows, now)
        except LostRace:
            domains = self._storage.read(domain_store.get_many, {row.domain_id for row in rows})
            remaining = [row for row in rows if row.domain_id in domains]
            conflicts = len(rows) - len(remaining) + self._storage.run(server_statuses.write, remaining, now)
        later = now + timedelta(seconds=RETRY_PAUSE)
        self.due_timer.set({row_transitions.key_of(row): later if row.next_attempt_at and row.next_attempt_at <= now
                            else row.next_attempt_at for row in rows}, now, only_sooner=conflicts > 0)
        return conflicts

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
        for claim in self._storage.read(server_statuses.claimed_on_names,
                                        [operation.domain.name for operation in decision.calls], now):
            claimed[claim.server_id, claim.name].append(claim)
        calls, decision.calls, given_back, expired = decision.calls, [], [], []
        # Of several own claims of one name the first goes on.
        later = {row_transitions.key_of(operation.row) for operation in calls}
        for operation in calls:
            claims, key = claimed[operation.row.server_id, operation.domain.name], row_transitions.key_of(operation.row)
            later.remove(key)
            own = next((claim for claim in claims if claim.row is not None and row_transitions.key_of(claim.row) == key
                        and row_transitions.is_same_claim(claim.row, operation.row)), None)
            if own is None or own.row is None:
                expired.append(operation.row)
                continue
            others = [claim for claim in claims if claim is not own
                      and (claim.row is None
                           or self._is_call(claim.row) and row_transitions.key_of(claim.row) not in later)]
            if own.going and operation.row.action is not Action.DELETE:
                given_back.append(row_transitions.cancel(own.row))
            elif others:
                given_back.append(due_rows.postpone(own.row, now))
            else:
                decision.calls.append(operation)
                continue
            claims.remove(own)
        if given_back:
            self._write_rows(given_back, now)
        if expired:
            self._storage.run(server_statuses.release_claims, expired)
            self.due_timer.wake()
        self._recent.drop(row.domain_id for row in (*given_back, *expired))

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
        retry a member that they could not add only when the catalog has changed; but not while they may still be at
        work on the last one, or the retries of many zones would keep them at it without end.
        """
        assert self.pool.catalog_zone is not None
        is_retry = any(operation.row.attempts or not operation.recent for operation in operations)
        raises = is_retry and time.monotonic() > self._catalog_rests_until
        try:
            if raises:
                serial = self._storage.run(_raise_catalog_serial, self.pool.name)
                self._catalog_rests_until = time.monotonic() + self.fetch_patience.total_seconds()
            else:
                serial = self._storage.read(_catalog_serial, self.pool.name)
        except Exception as error:  # errors of the database vary; the servers refresh the catalog by themselves, later
            LOG.warning('the servers were not notified of the new catalog zone: %s', error)
            return
        readers = sorted({operation.row.server_id for operation in operations})
        self.poll([PollRequest(CATALOG_ID, self.pool.catalog_zone, serial, server) for server in readers],
                  self.settings.tries, spread=is_retry)


def _raise_catalog_serial(tx: Tx, pool_name: str) -> int:
    """Raise the catalog's serial; the new one."""
    head = catalog.head(tx, pool_name)
    raised = None if head is None else catalog.bump(tx, head.pool_id, utcnow())
    return _catalog_serial(tx, pool_name) if raised is None else raised


def _catalog_serial(tx: Tx, pool_name: str) -> int:
    """The catalog's serial."""
    head = catalog.head(tx, pool_name)
    return catalog.FIRST_SERIAL if head is None else head.serial


def log_ended(rows: Iterable[ServerStatus], states: Mapping[str, DomainState],
              workers: Mapping[str, ServerWorker]) -> None:
    """Log the end of operations.

    Failures on a server whose circuit is open are not logged, since there would be one for every domain.

    :param states: by domain id, of the rows
    :param workers: by server id
    """
    if not OPERATION_LOG.isEnabledFor(logging.INFO):
        return
    for row in rows:
        state, worker = states[row.domain_id], workers.get(row.server_id)
        # A row that is only retried keeps its outcome and has no former one.
        if row.status is None or row.status is state.former_outcomes.get((row.server_id, row.action), row.status):
            continue
        server = row.server_id if worker is None else worker.server.label
        about = {'domain': state.domain.name, 'server': server, 'action': row.action.value,
                 'request_id': _cause(row, state.domain.request_id)}
        if row.status is Outcome.SUCCESS:
            serial = row.serial_number if row.action is Action.UPDATE else row.expected_serial
            logs.transition(OPERATION_LOG, logging.INFO, '%s of %s at serial %s on %s: SUCCESS', row.action,
                            about['domain'], serial, server, serial=serial, status='SUCCESS', **about)
        elif row.diverged and not row.attempts:
            logs.transition(OPERATION_LOG, logging.WARNING, '%s on %s: DIVERGED: %s', about['domain'], server,
                            row.last_error, serial=row.serial_number, status='DIVERGED', error=row.last_error, **about)
        elif worker is None or not _is_silent(worker, row.action):
            logs.transition(OPERATION_LOG, logging.WARNING, '%s of %s at serial %s on %s: ERROR, tried %d times: %s',
                            row.action, about['domain'], row.expected_serial, server, row.attempts, row.last_error,
                            serial=row.expected_serial, status='ERROR', error=row.last_error, **about)


def _cause(row: ServerStatus, request_id: str) -> str:
    """The id of the audit finding that made the row due, or of the request that changed the domain."""
    if row.finding_id is None or row.action is Action.DELETE:
        return request_id
    return AuditFinding.request_id_of(row.finding_id)


def _is_silent(worker: ServerWorker, action: Action) -> bool:
    by_dns = action is Action.UPDATE and not worker.backend.capabilities.fed_by_records
    return (worker.dns if by_dns else worker.control).is_open
