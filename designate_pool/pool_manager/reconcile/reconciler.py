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
sees both.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import heapq
import logging
import math
import random
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from designate_pool import consensus, logs
from designate_pool.backoff import Backoff
from designate_pool.concurrency import Wakeable
from designate_pool.consensus import Members
from designate_pool.errors import LostRace, PoolError
from designate_pool.model import (CATALOG_ID, Action, AuditFinding, CallResult, Context, Domain, Outcome, PollRequest,
                                  Pool, Reason, Report, ServerStatus)
from designate_pool.outage_log import OutageLog
from designate_pool.pool_manager.dispatch.operation import Operation, is_recent
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.reconcile import domain_state, row_transitions
from designate_pool.pool_manager.reconcile.domain_state import DomainState, RecentStates, Step
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.minidns import MiniDnsClient
from designate_pool.serial import at_least
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
#: Seconds, on average, by which an operation is postponed while another call for the name is in flight.
BUSY = Backoff(1.0, factor=1.0, jitter=(0.5, 1.5))
#: Retry intervals within which a server that reads the catalog finds a new zone in it and fetches it.
CATALOG_PATIENCE = 5
#: Times after this are left to the regular interval.
HORIZON = timedelta(seconds=60)
#: How many more slots than have rows are kept in their heap.
_SPARE = 1000
#: Times are rounded up to multiples of one slot, so that rows written together are claimed together.
SLOTS_PER_SECOND = 100
#: Seconds after which an undecided domain is read and weighed again that waits for polls in flight.
PAUSE = 0.2
#: Seconds until the next look when no domain is undecided.
IDLE_INTERVAL = 30.0
#: Polls of one message at most, and those that may wait; the rows of further ones are due again after their round.
_POLLS_OF_A_MESSAGE, _MOST_POLLS = 1000, 100_000

#: A request for MiniDNS, with what tries, and whether it is for any MiniDNS instead of the first.
Poll = tuple[PollRequest, Tries, bool]


class Reconciler:
    """Runs the steps for one pool.

    :ivar members: which servers count and which are in service
    :ivar workers: of the servers in service, by server id
    :ivar all_workers: of all configured servers
    :ivar due_timer: when the next row written here is due
    :ivar undecided: domains to weigh again
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
        self._polls = runtime.work_queue(self._send_polls, _POLLS_OF_A_MESSAGE, name='polls', bound=_MOST_POLLS)
        self._undecided = runtime.work_queue(self.weigh_again, settings.batch_size, name='undecided')
        self._outage = OutageLog(
            LOG, 'results of %d zones were not reported to Central and are reported again later: %s',
            'results are reported to Central again', logging.WARNING)
        self.due_timer = DueTimer()
        self._recent = RecentStates()
        self.undecided = UndecidedDomains(self._undecided.put)
        self._catalog_rests_until = 0.0  # monotonic

    @contextlib.contextmanager
    def step(self, domain_ids: Iterable[str] = (), server_ids: Collection[str] = ()) -> Iterator[Step]:
        """Take one step: the body changes rows of these domains, without I/O, and then all the rest is done.

        :param server_ids: the servers whose rows are needed; empty for all
        """
        with self._lock:
            step = Step(self._storage.now(), bool(server_ids))
            self.load(step, domain_ids, server_ids)
            yield step
            step.supersede(self._reads_catalog)
            choose_due_rows(step, self.workers, self.settings)
            self.poll(step.polls, self.settings.tries)
            self.poll(step.spread_polls, self.settings.tries, spread=True)
            self.write(step)
            if step.conflicts or step.is_partial:
                self._recent.drop(step.states)
            else:
                self._recent.put(step.states.values(), step.now)
        self.make_calls(step)
        if step.conflicts:
            self._undecided.put(*step.states)  # some rows are not as decided here
        elif step.is_partial:
            self._undecided.put(*(key for key, state in step.states.items() if state.has_new_outcomes))
        else:
            self.weigh(step.states.values())

    def stop(self) -> None:
        """Handle what is queued, for a few seconds at most, and end."""
        for queue in (self._undecided, self.reports, self._polls):
            queue.stop()

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

    def load(self, step: Step, domain_ids: Iterable[str], server_ids: Collection[str] = ()) -> None:
        """Read these domains into *step*, with the live domains that have the names of those being deleted."""
        step.states.update(self.read(domain_ids, step.now, server_ids))
        if not server_ids:
            step.live = self.live_domains(state.domain.name for state in step.states.values() if state.domain.is_going)

    def read(self, domain_ids: Iterable[str], now: datetime,
             server_ids: Collection[str] = ()) -> dict[str, DomainState]:
        """The present states of these domains by id, on all servers unless some are named; unknown ones are absent."""
        states = domain_state.read(self._storage, self.pool.name, list(domain_ids), server_ids)
        for state in states.values():
            self._add_claims(state, now)
        return states

    def recall(self, domain_ids: Iterable[str], now: datetime) -> dict[str, DomainState]:
        """The states, by id, of those of these domains that were read or written here a moment ago."""
        states = {key: state for key in dict.fromkeys(domain_ids)
                  if (state := self._recent.get(key, now)) is not None and state.domain.is_of(self.pool.name)}
        for state in states.values():
            self._add_claims(state, now)
        return states

    def live_domains(self, names: Iterable[str]) -> dict[str, Domain]:
        """The pool's domains that exist, by name."""
        distinct = list(dict.fromkeys(names))
        domains = self._storage.read(domain_store.live_by_name, distinct) if distinct else {}
        return {name: domain for name, domain in domains.items() if domain.is_of(self.pool.name)}

    def write(self, step: Step) -> None:
        """Write the rows that changed."""
        if step.writes:
            step.conflicts = self._write_rows(step.writes, step.now)
            log_ended(step.writes, step.states, self.all_workers)

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
        self._recent.note_reports(weighed.reports)
        self._put_off(weighed, {state.domain.id for state in states if state.is_recalled}, self._storage.now())
        if weighed.finished:
            self._storage.run(server_statuses.purge_domains, weighed.finished, members.tracked, self._storage.now())

    def weigh_again(self, domain_ids: Sequence[str]) -> None:
        """Read these domains with all their rows and weigh them."""
        self.weigh(self.read(domain_ids, self._storage.now()).values())

    def poll(self, requests: Sequence[PollRequest], tries: Tries, spread: bool = False) -> None:
        """Have MiniDNS notify and poll.

        :param spread: not the first MiniDNS, but any of them
        """
        self._polls.put(*((request, tries, spread) for request in requests))

    def _send_reports(self, reports: Sequence[Report]) -> None:
        try:
            self._central.update_statuses(NOBODY, reports)
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
                self._minidns.notify_and_poll(NOBODY, self.pool.name, requests, tries.timeout, tries.retry_interval,
                                              tries.max_retries, spread)
            except PoolError as error:
                LOG.warning('%d polls were not sent; they are sent again later: %s', len(requests), error)

    def _put_off(self, weighed: Verdicts, recent: Collection[str], now: datetime) -> None:
        """Weigh undecided domains again: now, or a little later if polls for them are in flight.

        The results of these have the domain weighed as well, mostly without reading it.

        :param recent: ids of domains that were weighed without reading them
        """
        polled = {key for key in weighed.undecided
                  if key in recent and any(key in worker.polls for worker in self.workers.values())}
        self.undecided.discard(report.domain_id for report in weighed.reports)
        if polled:
            self.undecided.add(polled, now)
        self._undecided.put(*(key for key in weighed.undecided if key not in polled))

    def _add_claims(self, state: DomainState, now: datetime) -> None:
        for row in state.rows.values():
            if row.claimed_until is not None and row_transitions.is_claimed(row, now) and self._is_call(row):
                state.add_claim(row)

    def _is_call(self, row: ServerStatus) -> bool:
        """Whether *row* needs a driver call rather than a poll."""
        worker = self.all_workers.get(row.server_id)
        return row.action is not Action.UPDATE or worker is not None and row_transitions.needs_call(
            row, worker.backend.capabilities.fed_by_records, self.settings.tries)

    @property
    def fetch_patience(self) -> timedelta:
        """The longest time within which a server may fetch a new zone by itself."""
        delays = [fetch_delay(worker, self.settings.tries) for worker in self.workers.values()]
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

    def _yield_claims(self, step: Step) -> None:
        """Release the claims for names that somebody else has claimed on the same server.

        Both write their claims before either reads, so of two that claim at once at least one sees the other; a claim
        stays until its call has ended.  Calls without a valid claim, or whose domain was deleted meanwhile, are
        dropped.
        """
        if not step.calls:
            return
        now = self._storage.now()
        claimed: dict[tuple[str, str], list[server_statuses.Claimed]] = collections.defaultdict(list)
        for claim in self._storage.read(server_statuses.claimed_on_names,
                                        [operation.domain.name for operation in step.calls], now):
            claimed[claim.server_id, claim.name].append(claim)
        calls, step.calls, given_back, expired = step.calls, [], [], []
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
                serial = self._storage.run(_raise_catalog_serial, self.pool.name, self._storage.now())
                self._catalog_rests_until = time.monotonic() + self.fetch_patience.total_seconds()
            else:
                serial = self._storage.read(_catalog_serial, self.pool.name)
        except Exception as error:  # errors of the database vary; the servers refresh the catalog by themselves, later
            LOG.warning('the servers were not notified of the new catalog zone: %s', error)
            return
        readers = sorted({operation.row.server_id for operation in operations})
        self.poll([PollRequest(CATALOG_ID, self.pool.catalog_zone, serial, server) for server in readers],
                  self.settings.tries, spread=is_retry)


def choose_due_rows(step: Step, workers: Mapping[str, ServerWorker], settings: PoolManagerSettings) -> None:
    """Decide what *step* writes, calls and polls, after all other changes of its rows; no I/O.

    :param workers: of the servers in service, by server id
    """
    due = [(step.states[row.domain_id], row) for row in step.unchanged_claimed()]
    due += [(state, row) for state in step.states.values() for row in state.changed.values()
            if row_transitions.is_due(row, step.now) and row.server_id in workers]
    for state, row in due:
        worker = workers[row.server_id]
        is_call = row_transitions.needs_call(row, worker.backend.capabilities.fed_by_records, settings.tries)
        (_choose_call if is_call else _choose_poll)(step, state, row, worker, settings)
    step.writes = [row for state in step.states.values() for row in state.changed.values()]


def _choose_call(step: Step, state: DomainState, row: ServerStatus, worker: ServerWorker,
                 settings: PoolManagerSettings) -> None:
    recent = is_recent(state.domain, step.now)
    if state.is_busy(row.server_id):
        state.change(postpone(row, step.now))
    elif row_transitions.is_claimed(row, step.now):
        state.add_claim(row)
        step.calls.append(Operation(state.domain, row, recent))
    elif worker.room(recent) > step.slots_taken[row.server_id, recent]:
        step.slots_taken[row.server_id, recent] += 1
        row = row_transitions.claim(row, settings.name, step.now + timedelta(seconds=settings.claim_seconds))
        state.add_claim(row)
        state.change(row)
        step.calls.append(Operation(state.domain, state.rows[row.server_id, row.action], recent))
    else:
        state.change(row_transitions.release_claim(row))  # it stays due until there is room


def _choose_poll(step: Step, state: DomainState, row: ServerStatus, worker: ServerWorker,
                 settings: PoolManagerSettings) -> None:
    domain, tries, recent = state.domain, settings.tries, is_recent(state.domain, step.now)
    if worker.dns.is_open:
        no_answer = CallResult(error=f'{worker.server.label} has not answered DNS', unreachable=True,
                               reason=Reason.TIMEOUT)
        state.change(row_transitions.after_call(row, no_answer, step.now, tries, random.random()))
    elif not recent and not worker.polls.room:
        state.change(row_transitions.release_claim(row))
    else:
        worker.polls.add(domain.id)
        state.change(row_transitions.poll_sent(row, step.now, tries))
        delay = fetch_delay(worker, tries) if row.server_id in state.fetching else 0.0
        request = PollRequest(domain.id, domain.name, row.expected_serial, row.server_id, delay=delay,
                              seen=row.serial_number, incarnation=row.incarnation)
        is_spread = row.attempts or not recent or worker.dns.was_open_lately
        (step.spread_polls if is_spread else step.polls).append(request)


def fetch_delay(worker: ServerWorker, tries: Tries) -> float:
    """Seconds within which a server may fetch a new zone by itself before it is notified."""
    return tries.retry_interval * (CATALOG_PATIENCE if worker.backend.capabilities.reads_catalog else 1)


def postpone(row: ServerStatus, now: datetime) -> ServerStatus:
    """*row*, due again in a moment: another call for the name is in flight."""
    return row_transitions.postpone(row, now + timedelta(seconds=BUSY.delay(0, random.random())))


def _raise_catalog_serial(tx: Tx, pool_name: str, now: datetime) -> int:
    """Raise the catalog's serial; the new one."""
    head = catalog.head(tx, pool_name)
    raised = None if head is None else catalog.bump(tx, head.pool_id, now)
    return _catalog_serial(tx, pool_name) if raised is None else raised


def _catalog_serial(tx: Tx, pool_name: str) -> int:
    """The catalog's serial."""
    head = catalog.head(tx, pool_name)
    return catalog.FIRST_SERIAL if head is None else head.serial


@dataclasses.dataclass(slots=True)
class Verdicts:
    """The verdicts on several domains.

    :ivar reports: to send to Central
    :ivar finished: ids of domains whose deletion is complete, with nothing due and no call queued or in flight
    :ivar undecided: ids of domains with new outcomes and no report yet: others may have been written meanwhile
    """

    reports: list[Report] = dataclasses.field(default_factory=list)
    finished: list[str] = dataclasses.field(default_factory=list)
    undecided: list[str] = dataclasses.field(default_factory=list)


def evaluate(states: Iterable[DomainState], servers: Sequence[str], threshold_percentage: int,
             uncounted: Sequence[str]) -> Verdicts:
    """Weigh domains by their rows.

    :param servers: ids of those that count, as for :func:`consensus.weigh`
    """
    who = servers, threshold_percentage, uncounted
    weighed = Verdicts()
    for state in states:
        domain, rows = state.domain, tuple(state.rows.values())
        reports = consensus.reports(domain, rows, *who)
        weighed.reports.extend(reports)
        if domain.is_going and not reports and not consensus.weigh(domain, rows, *who).behind:
            if not state.call_claims and not _is_any_due(rows, (*servers, *uncounted)):
                weighed.finished.append(domain.id)
        elif state.has_new_outcomes and not _is_reported(domain, reports):
            weighed.undecided.append(domain.id)
    return weighed


def _is_any_due(rows: Iterable[ServerStatus], servers: Collection[str]) -> bool:
    """Whether any row of these servers is due, now or later."""
    return any(row.next_attempt_at is not None and row.server_id in servers for row in rows)


def _is_reported(domain: Domain, reports: Sequence[Report]) -> bool:
    """Whether the domain's own serial was reported to Central or is in *reports*; never for a deletion in progress."""
    if any(report.serial_number == domain.serial for report in reports):
        return True
    if domain.is_going or domain.reported_serial is None:
        return False
    return at_least(domain.reported_serial, domain.serial)


class DueTimer(Wakeable):
    """When to claim due rows next: rows that were written here need not wait for the next regular interval.

    It has one time in the near future for each row, at most; one that is sooner than all others wakes the loop.  Rows
    that others have written are left to them, and to the look of the loop *unsettled* if they end.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._slots: dict[int, set[Hashable]] = {}
        self._slot_of: dict[Hashable, int] = {}
        self._order: list[int] = []  # a heap of all slots, and of some that are empty by now

    def set(self, times: Mapping[Hashable, datetime | None], now: datetime, only_sooner: bool = False) -> None:
        """Replace the times of these rows; one that is not after *now* and before the horizon is no time.

        :param only_sooner: leave a row's time where the new one is later or none
        """
        with self._lock:
            before = self._first()
            for key, due_at in times.items():
                slot = None
                if due_at is not None and now < due_at < now + HORIZON:
                    slot = math.ceil(due_at.timestamp() * SLOTS_PER_SECOND)
                if not only_sooner or slot is not None and slot < self._slot_of.get(key, math.inf):
                    self._move(key, slot)
            is_sooner = self._first() < before
        if is_sooner:
            self.wake()

    def until_next(self, looked_at: datetime, now: datetime, most: float) -> float:
        """Seconds until the next time, *most* at most, none if it is over.

        :param looked_at: when due rows were looked for; times until then are dropped, those since then are not
        """
        with self._lock:
            while self._first() <= looked_at.timestamp() * SLOTS_PER_SECOND:
                for key in self._slots.pop(self._order[0]):
                    del self._slot_of[key]
            return max(0.0, min(most, self._first() / SLOTS_PER_SECOND - now.timestamp()))

    def _first(self) -> float:
        while self._order and self._order[0] not in self._slots:
            heapq.heappop(self._order)
        return self._order[0] if self._order else math.inf

    def _move(self, key: Hashable, slot: int | None) -> None:
        old = self._slot_of.pop(key, None)
        if old is not None:
            keys = self._slots[old]
            keys.discard(key)
            if not keys:
                del self._slots[old]
        if slot is not None:
            self._slot_of[key] = slot
            if slot not in self._slots:
                self._slots[slot] = set()
                heapq.heappush(self._order, slot)
                if len(self._order) > 2 * len(self._slots) + _SPARE:
                    self._order = sorted(self._slots)
            self._slots[slot].add(key)


class UndecidedDomains(Wakeable):
    """Domains with new outcomes and no report yet, which wait for the results of polls in flight.

    These results mostly decide them, and then nothing is read.  All other undecided domains go straight into the queue
    into which these go in the end; a queue has no times, and nothing is taken out of it.  The first domain that is
    added wakes the loop.

    :param weigh: is given the ids of those whose time has come
    """

    def __init__(self, weigh: Callable[..., object]) -> None:
        super().__init__()
        self._weigh = weigh
        self._lock = threading.Lock()
        self._times: dict[str, datetime] = {}

    def __bool__(self) -> bool:
        return bool(self._times)

    def add(self, domain_ids: Iterable[str], now: datetime) -> None:
        """Weigh these in a moment; those that are undecided already, when they would have been."""
        at = now + timedelta(seconds=PAUSE)
        with self._lock:
            was_idle = not self._times
            for domain_id in domain_ids:
                self._times.setdefault(domain_id, at)
            is_first = was_idle and bool(self._times)
        if is_first:
            self.wake()

    def discard(self, domain_ids: Iterable[str]) -> None:
        """Central is told of these."""
        with self._lock:
            for domain_id in domain_ids:
                self._times.pop(domain_id, None)

    def run(self, now: datetime) -> float:
        """Weigh those whose time has come; seconds until the next."""
        with self._lock:
            due = [key for key, at in self._times.items() if at <= now]
            for key in due:
                del self._times[key]
            wait = min(((at - now).total_seconds() for at in self._times.values()), default=IDLE_INTERVAL)
        self._weigh(*due)
        return wait


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
