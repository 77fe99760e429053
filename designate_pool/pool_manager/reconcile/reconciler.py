"""One step of the pool manager: lock, read, decide, poll, write, call, weigh.

All state is in the database.  Whatever happens to rows happens in such a step, which

* reads domains and their rows, and may claim some of these;
* decides which rows change, with the transitions of :mod:`row_transitions`, then what those need that are due, both
  without I/O;
* has MiniDNS notify and poll, without waiting for the write: a poll changes nothing on a server, and a row that was not
  written is still due;
* writes all changed rows in one statement, and only then calls: if this process dies, they are due again;
* weighs the domains with :mod:`consensus` and reports what Central does not know yet.

The invariant of the reports: the pool manager that writes the last outcome of a verdict sees all outcomes.  Two that
write one outcome each may both have read before the other wrote, so each reads again after writing; the later one then
sees both.  The next step for the domain, which mostly follows in a moment, reads it anyway.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import logging
import math
import random
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from designate_pool import consensus, logs
from designate_pool.backoff import Backoff
from designate_pool.concurrency import Wakeable
from designate_pool.consensus import Members
from designate_pool.errors import LostRace, PoolError
from designate_pool.logs import OutageLog
from designate_pool.model import (CATALOG_ID, Action, AuditFinding, CallResult, Context, Domain, Outcome, PollRequest,
                                  Pool, Reason, Report, ServerStatus)
from designate_pool.pool_manager.dispatch.server_worker import Operation, ServerWorker, has_recent_change
from designate_pool.pool_manager.reconcile import domain_state, row_transitions
from designate_pool.pool_manager.reconcile.domain_state import DomainState, Poll, Step
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.minidns import MiniDnsClient
from designate_pool.serial import newer
from designate_pool.settings import PoolManagerSettings, Tries
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.serving import catalog
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains as domain_store

LOG = logging.getLogger(__name__)
#: One line when an operation succeeds, one when it has failed; operators filter by this name.
OPERATION_LOG = logging.getLogger('designate_pool.pool_manager.operation_log')

#: The pool manager acts on behalf of no user.
WHO = Context(request_id='pool-manager', user='pool-manager', all_projects=True)
#: Seconds after which a due row is looked at again that could be neither called nor polled for.
RETRY_PAUSE = 0.5
#: Seconds, on average, by which an operation is postponed while another call for the name is in flight.
BUSY = Backoff(1.0, factor=1.0, jitter=(0.5, 1.5))
#: Retry intervals within which a server that reads the catalog finds a new zone in it and fetches it.
CATALOG_PATIENCE = 5
#: The resolution of the times at which due rows are looked for.
SLOTS_PER_SECOND = 100
#: Seconds until undecided domains are read again that no other step has read by then.
PAUSE = 0.1
#: Polls of one message at most, and those that may wait; the rows of further ones are due again after their round.
_POLLS_OF_A_MESSAGE, _MOST_POLLS = 1000, 100_000


class Reconciler:
    """Runs the steps for one pool.

    :ivar workers: of the servers in service, by server id; *all_workers*: of all configured servers
    :ivar polls: what MiniDNS is to notify and poll, a queue of :data:`~.domain_state.Poll`
    """

    def __init__(self, pool: Pool, storage: Storage, central: CentralClient, minidns: MiniDnsClient, runtime: Any,
                 settings: PoolManagerSettings) -> None:
        self.pool = pool
        self.settings = settings
        self.members = Members.of(())
        self.all_workers: dict[str, ServerWorker] = {}
        self.workers: dict[str, ServerWorker] = {}
        self._storage = storage
        self._central = central
        self._minidns = minidns
        # Held from reading rows to writing them: a concurrent step here would only cause a conflict and a retry.
        self._lock = threading.RLock()
        # What follows from a step is not waited for: neither a broker that hangs nor its confirmations hold one up.
        self.reports = runtime.work_queue(self._send_reports, settings.batch_size, name='reports')
        self.polls = runtime.work_queue(self._send_polls, _POLLS_OF_A_MESSAGE, name='polls', bound=_MOST_POLLS)
        self._to_weigh = runtime.work_queue(self.weigh_again, settings.batch_size, name='undecided', pause=PAUSE)
        self._outage = OutageLog(
            LOG, 'results of %d zones were not reported to Central and are reported again later: %s',
            'results are reported to Central again', logging.WARNING)
        self.due_timer = DueTimer()
        self._catalog_rests_until = 0.0  # monotonic

    @contextlib.contextmanager
    def step(self, domain_ids: Iterable[str] = (), server_ids: Collection[str] = (),
             deleted: Collection[str] = ()) -> Iterator[Step]:
        """Take one step: the body changes rows without I/O, and then the rest is done.  Parameters as :meth:`load`."""
        with self._lock:
            step = Step(self._storage.now(), bool(server_ids))
            self.load(step, domain_ids, server_ids, deleted)
            yield step
            if step.live:
                step.supersede(self._reads_catalog)
            choose_due_rows(step, self.workers, self.settings)
            self.polls.put(*step.polls)
            if step.writes:
                step.conflicts = self._write_rows(step.writes, step.now)
                log_ended(step.writes, step.states, self.all_workers)
        if step.calls:
            self.make_calls(step)
        if step.conflicts:
            self._to_weigh.put(*step.states)  # some rows are not as decided here
        elif step.is_partial:
            self._to_weigh.put(*(key for key, state in step.states.items() if state.has_new_outcomes))
        else:
            self.weigh(step.states.values())

    def stop(self) -> None:
        """Handle what is queued, for a few seconds at most, and end."""
        for queue in (self._to_weigh, self.reports, self.polls):
            queue.stop()

    def set_servers(self, members: Members, workers: Mapping[str, ServerWorker]) -> None:
        """Replace the servers and their workers."""
        with self._lock:
            if members == self.members and workers == self.all_workers:
                return
            self.members = members
            self.all_workers = dict(workers)
            self.workers = {key: worker for key, worker in workers.items() if key in members.in_service}
        self.due_timer.wake()

    def load(self, step: Step, domain_ids: Iterable[str], server_ids: Collection[str] = (),
             deleted: Collection[str] = ()) -> None:
        """Read these domains into *step*, with the live domains that have the names of those being deleted.

        :param server_ids: only the rows of these servers; empty for all
        :param deleted: names whose zones were deleted on a server: their live domains are read with their rows
        """
        step.states.update(self.read(domain_ids, step.now, server_ids))
        going = {state.domain.name for state in step.states.values() if state.domain.is_going}
        if not server_ids and (going or deleted):
            step.live = self.live_domains(going.union(deleted))
            successors = {domain.id for name, domain in step.live.items() if name in deleted}
            step.states.update(self.read(successors.difference(step.states), step.now))

    def read(self, domain_ids: Iterable[str], now: datetime,
             server_ids: Collection[str] = ()) -> dict[str, DomainState]:
        """The present states of these domains by id, on all servers unless some are named; unknown ones are absent."""
        ids = list(dict.fromkeys(domain_ids))
        states = self._storage.read(domain_state.read, self.pool, ids, server_ids) if ids else {}
        for state in states.values():
            for row in state.rows.values():
                if row.claimed_until is not None and row_transitions.is_claimed(row, now) and self._is_call(row):
                    state.add_claim(row)
        return states

    def live_domains(self, names: Collection[str]) -> dict[str, Domain]:
        """The pool's domains that exist and that servers may have, by name."""
        domains = self._storage.read(domain_store.live_by_name, sorted(names))
        return {name: domain for name, domain in domains.items()
                if domain.is_of(self.pool.name) and domain.permitted_at(0) is not None}

    def make_calls(self, step: Step) -> None:
        """Queue the calls with the server workers."""
        self._yield_claims(step)
        readers = [operation for operation in step.calls if self._reads_catalog(operation.row.server_id)]
        self._enqueue(operation for operation in step.calls if not self._reads_catalog(operation.row.server_id))
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
        weighed = evaluate(states, members.counting, self.pool.threshold_percentage, members.uncounted)
        self.reports.put(*weighed.reports)
        if self._to_weigh:
            self._to_weigh.withdraw({state.domain.id for state in states})
        self._to_weigh.put(*weighed.undecided)
        if weighed.finished:
            self._storage.run(server_statuses.purge_domains, weighed.finished, members.tracked, self._storage.now())

    def weigh_again(self, domain_ids: Sequence[str]) -> None:
        """Read these domains with all their rows and weigh them."""
        self.weigh(self.read(domain_ids, self._storage.now()).values())

    def _send_reports(self, reports: Sequence[Report]) -> None:
        try:
            self._central.update_statuses(WHO, reports)
        except PoolError as error:
            # The periodic loop finds unreported verdicts and reports them again.
            self._outage.failed(len(reports), error)
            return
        self._outage.ended()
        gone = [report.domain_id for report in reports
                if report.action is Action.DELETE and report.status is Outcome.SUCCESS]
        if gone:
            self.weigh_again(gone)

    def _send_polls(self, polls: Iterable[Poll]) -> None:
        """Send these to MiniDNS; if the broker is down, the rows are due again later."""
        messages: dict[tuple[Tries, bool], list[PollRequest]] = {}
        for request, tries, spread in polls:
            messages.setdefault((tries, spread), []).append(request)
        for (tries, spread), requests in messages.items():
            try:
                self._minidns.notify_and_poll(WHO, self.pool.name, requests, tries.timeout, tries.retry_interval,
                                              tries.max_retries, spread)
            except PoolError as error:
                LOG.warning('%d polls were not sent; they are sent again later: %s', len(requests), error)

    def _is_call(self, row: ServerStatus) -> bool:
        worker = self.all_workers.get(row.server_id)
        return row.action is not Action.UPDATE or worker is not None and row_transitions.needs_call(
            row, worker.backend.capabilities.fed_by_records, self.settings.tries)

    @property
    def fetch_patience(self) -> timedelta:
        """The longest time within which a server may fetch a new zone by itself."""
        return timedelta(seconds=max((fetch_delay(worker, self.settings.tries) for worker in self.workers.values()),
                                     default=0.0))

    def _write_rows(self, rows: Sequence[ServerStatus], now: datetime) -> int:
        """How many rows were not written, because another writer was first or their domain was purged."""
        try:
            conflicts = self._storage.run(server_statuses.write, rows, now)
        except LostRace:
            domains = self._storage.read(domain_store.get_many, {row.domain_id for row in rows})
            remaining = [row for row in rows if row.domain_id in domains]
            conflicts = len(rows) - len(remaining) + self._storage.run(server_statuses.write, remaining, now)
        times = [at for row in rows if (at := row.next_attempt_at) is not None]
        if times:
            # What is due and could be neither called nor polled for is left for a moment.
            self.due_timer.set(min(at if at > now else now + timedelta(seconds=RETRY_PAUSE) for at in times))
        return conflicts

    def _yield_claims(self, step: Step) -> None:
        """Release the claims for names that somebody else has claimed on the same server.

        Both write their claims before either reads, so of two that claim at once at least one sees the other; a claim
        stays until its call has ended.  Calls without a valid claim, or whose domain was deleted meanwhile, are
        dropped; so are deletions that were begun while their domain was restored, with their rows.
        """
        now = self._storage.now()
        claimed: dict[tuple[str, str], list[server_statuses.Claimed]] = collections.defaultdict(list)
        for claim in self._storage.read(server_statuses.claimed_on_names,
                                        [operation.domain.name for operation in step.calls], now):
            claimed[claim.server_id, claim.name].append(claim)
        calls, step.calls, given_back, expired, void = step.calls, [], [], [], []
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
            elif not own.going and operation.row.action is Action.DELETE:
                void.append(own.row)
            elif others:
                given_back.append(postpone(own.row, now))
            else:
                step.calls.append(operation)
                continue
            claims.remove(own)
        if given_back:
            self._write_rows(given_back, now)
        if expired:
            self._storage.run(server_statuses.release_claims, expired)
            self.due_timer.wake()
        if void:
            self._storage.run(server_statuses.remove, [row.id for row in void])

    def _enqueue(self, operations: Iterable[Operation]) -> None:
        for operation in operations:
            if (worker := self.workers.get(operation.row.server_id)) is not None:
                worker.put(operation)

    def _reads_catalog(self, server_id: str) -> bool:
        worker = self.workers.get(server_id)
        return self.pool.catalog_zone is not None and worker is not None and worker.backend.capabilities.reads_catalog

    def _announce_catalog(self, operations: Sequence[Operation]) -> None:
        """Notify the servers of these operations that the catalog zone has changed.

        For a retry its serial is raised, since some servers try a member again only when the catalog has changed; but
        not while they may still be at work on the last one, or the retries of many zones would keep them at it without
        end.
        """
        assert self.pool.catalog_zone is not None
        is_retry = any(operation.row.attempts or not operation.recent for operation in operations)
        raises = is_retry and time.monotonic() > self._catalog_rests_until
        try:
            head = self._storage.read(catalog.head, self.pool.name)
            serial = catalog.FIRST_SERIAL if head is None else head.serial
            if raises and head is not None:
                serial = self._storage.run(catalog.bump, head.pool_id, self._storage.now()) or serial
                self._catalog_rests_until = time.monotonic() + self.fetch_patience.total_seconds()
        except Exception as error:  # errors of the database vary; the servers refresh the catalog by themselves, later
            LOG.warning('the servers were not notified of the new catalog zone: %s', error)
            return
        for server_id in sorted({operation.row.server_id for operation in operations}):
            self.polls.put((PollRequest(CATALOG_ID, self.pool.catalog_zone, serial, server_id), self.settings.tries,
                            is_retry))


def choose_due_rows(step: Step, workers: Mapping[str, ServerWorker], settings: PoolManagerSettings) -> None:
    """Decide what *step* writes, calls and polls, after all other changes; no I/O.  *workers*: in service, by id."""
    due = [(step.states[row.domain_id], row) for row in step.unchanged_claimed()] if step.claimed else []
    due += [(state, row) for state in step.states.values() for row in state.changed.values()
            if row_transitions.is_due(row, step.now) and row.server_id in workers]
    for state, row in due:
        if state.on(row.server_id) is None:
            continue
        worker = workers[row.server_id]
        is_call = row_transitions.needs_call(row, worker.backend.capabilities.fed_by_records, settings.tries)
        (_choose_call if is_call else _choose_poll)(step, state, row, worker, settings)
    step.writes = [row for state in step.states.values() for row in state.changed.values()]


def _choose_call(step: Step, state: DomainState, row: ServerStatus, worker: ServerWorker,
                 settings: PoolManagerSettings) -> None:
    recent, domain = has_recent_change(state.domain, step.now), state.on(row.server_id) or state.domain
    if any(server_id == row.server_id for server_id, _ in state.call_claims):
        state.change(postpone(row, step.now))
    elif row_transitions.is_claimed(row, step.now):
        state.add_claim(row)
        step.calls.append(Operation(domain, row, recent))
    elif worker.room(recent) > step.slots_taken[row.server_id, recent]:
        step.slots_taken[row.server_id, recent] += 1
        row = row_transitions.claim(row, settings.name, step.now + timedelta(seconds=settings.claim_seconds))
        state.add_claim(row)
        state.change(row)
        step.calls.append(Operation(domain, state.rows[row.server_id, row.action], recent))
    else:
        state.change(row_transitions.release_claim(row))  # it stays due until there is room


def _choose_poll(step: Step, state: DomainState, row: ServerStatus, worker: ServerWorker,
                 settings: PoolManagerSettings) -> None:
    domain, tries, recent = state.domain, settings.tries, has_recent_change(state.domain, step.now)
    if worker.dns.is_open:
        no_answer = CallResult(error='it has not answered DNS', unreachable=True, reason=Reason.TIMEOUT)
        state.change(row_transitions.after_call(row, no_answer, step.now, tries, random.random()))
    elif not recent and not worker.polls.room(step.now):
        state.change(row_transitions.release_claim(row))
    else:
        sent = row_transitions.poll_sent(row, step.now, tries)
        assert sent.deadline_at is not None
        worker.polls.add(domain.id, sent.deadline_at, recent)
        state.change(sent)
        delay = fetch_delay(worker, tries) if row.server_id in state.fetching else 0.0
        request = PollRequest(domain.id, domain.name, row.expected_serial, row.server_id, delay=delay,
                              seen=row.serial_number, incarnation=row.incarnation)
        step.polls.append((request, tries, bool(row.attempts) or not recent or worker.dns.was_open_lately))


def fetch_delay(worker: ServerWorker, tries: Tries) -> float:
    """Seconds within which a server may fetch a new zone by itself before it is notified."""
    return tries.retry_interval * (CATALOG_PATIENCE if worker.backend.capabilities.reads_catalog else 1)


def postpone(row: ServerStatus, now: datetime) -> ServerStatus:
    """*row*, due again in a moment: another call for the name is in flight."""
    return row_transitions.make_due(row, now + timedelta(seconds=BUSY.delay(0, random.random())))


@dataclasses.dataclass(slots=True)
class Verdicts:
    """The verdicts on several domains.

    :ivar finished: ids of domains whose deletion is complete, with nothing due and no call queued or in flight
    :ivar undecided: ids of domains with new outcomes and no report yet: others may have been written meanwhile
    """

    reports: list[Report] = dataclasses.field(default_factory=list)
    finished: list[str] = dataclasses.field(default_factory=list)
    undecided: list[str] = dataclasses.field(default_factory=list)


def evaluate(states: Iterable[DomainState], servers: Sequence[str], threshold_percentage: int,
             uncounted: Sequence[str]) -> Verdicts:
    """Weigh domains by their rows; *servers* are the ids of those that count, as for :func:`consensus.weigh`."""
    who = servers, threshold_percentage, uncounted
    weighed = Verdicts()
    for state in states:
        domain, rows = state.domain, tuple(state.rows.values())
        if domain.release_state is not None:  # what all servers may have is weighed
            weighed.reports.extend(_of_release(state, who))
            continue
        reports = consensus.reports(domain, rows, *who)
        weighed.reports.extend(reports)
        if domain.is_going and not reports and not consensus.weigh(domain, rows, *who).behind:
            is_any_due = any(row.next_attempt_at is not None and row.server_id in (*servers, *uncounted)
                             for row in rows)
            if not state.call_claims and not is_any_due:
                weighed.finished.append(domain.id)
        elif state.has_new_outcomes and not any(report.serial_number == domain.serial for report in reports):
            # A deletion in progress was never reported.
            if domain.is_going or domain.reported_serial is None or newer(domain.serial, domain.reported_serial):
                weighed.undecided.append(domain.id)
    return weighed


def _of_release(state: DomainState, who: tuple[Sequence[str], int, Sequence[str]]) -> tuple[Report, ...]:
    """The reports of a domain that is released in stages: that its version before is served."""
    before, release = state.before, state.domain.release
    if before is None or before.is_going or release is None or release.held:
        return ()
    return consensus.reports(before, [
        dataclasses.replace(row, serial_number=before.serial) if row.serial_number is not None
        and newer(row.serial_number, before.serial) else row for row in state.rows.values()], *who)


class DueTimer(Wakeable):
    """When to claim due rows next: when the database says, or when a row is due sooner that is written meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        # In slots, rounded up so that rows that are due together are claimed together.
        self._soonest = math.inf  # of the rows written since the last look began
        self._wakes_at = -math.inf  # not while rows are being looked for

    def set(self, at: datetime) -> None:
        """Look for due rows *at* this time at the latest."""
        with self._lock:
            self._soonest = min(self._soonest, math.ceil(at.timestamp() * SLOTS_PER_SECOND))
            is_sooner = self._soonest < self._wakes_at
            if is_sooner:
                self._wakes_at = self._soonest
        if is_sooner:
            self.wake()

    def start_look(self) -> None:
        """Rows that are written from now on may be missed by the look for due rows."""
        with self._lock:
            self._soonest, self._wakes_at = math.inf, -math.inf

    def end_look(self, next_at: datetime | None, now: datetime, most: float) -> float:
        """Seconds until the next look, *most* at most; *next_at* is when the next row of the database is due."""
        with self._lock:
            times = [self._soonest, math.ceil((now.timestamp() + most) * SLOTS_PER_SECOND)]
            if next_at is not None:
                times.append(math.ceil(next_at.timestamp() * SLOTS_PER_SECOND))
            self._wakes_at = min(times)
            return min(most, max(0.0, self._wakes_at / SLOTS_PER_SECOND - now.timestamp()))


def log_ended(rows: Iterable[ServerStatus], states: Mapping[str, DomainState],
              workers: Mapping[str, ServerWorker]) -> None:
    """Log the ends of operations, but no failures on servers with open circuits: there is one for each domain."""
    if not OPERATION_LOG.isEnabledFor(logging.INFO):
        return
    for row in rows:
        state, worker = states[row.domain_id], workers.get(row.server_id)
        if row.status in (None, state.former_outcomes[row.server_id, row.action]):
            continue
        name, server = state.domain.name, row.server_id if worker is None else worker.server.label
        request_id = state.domain.request_id
        if row.finding_id is not None and row.action is not Action.DELETE:
            request_id = AuditFinding.request_id_of(row.finding_id)  # an audit made the row due
        log = functools.partial(logs.transition, OPERATION_LOG, domain=name, server=server, action=row.action.value,
                                request_id=request_id)
        if row.status is Outcome.SUCCESS:
            serial = row.serial_number if row.action is Action.UPDATE else row.expected_serial
            log(logging.INFO, '%s of %s at serial %s on %s: SUCCESS', row.action, name, serial, server,
                serial=serial, status='SUCCESS')
        elif row.diverged and not row.attempts:
            log(logging.WARNING, '%s on %s: DIVERGED: %s', name, server, row.last_error, serial=row.serial_number,
                status='DIVERGED', error=row.last_error)
        elif worker is None or not (
                worker.dns if row.action is Action.UPDATE and not worker.backend.capabilities.fed_by_records
                else worker.control).is_open:
            log(logging.WARNING, '%s of %s at serial %s on %s: ERROR, tried %d times: %s', row.action, name,
                row.expected_serial, server, row.attempts, row.last_error, serial=row.expected_serial,
                status='ERROR', error=row.last_error)
