"""What is done about rows that are due (a call, a poll, or nothing now), and when to claim due rows next."""

from __future__ import annotations

import dataclasses
import heapq
import math
import random
import threading
from collections.abc import Hashable, Mapping
from datetime import datetime, timedelta

from designate_pool.backoff import Backoff
from designate_pool.concurrency import Wakeable
from designate_pool.model import CallResult, PollRequest, Reason, ServerStatus
from designate_pool.pool_manager.dispatch.operation import Operation, is_recent
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.pool_manager.reconcile.domain_state import Decision, DomainState, Loaded
from designate_pool.settings import PoolManagerSettings, Tries

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


@dataclasses.dataclass(frozen=True, slots=True)
class DueRowRules:
    """Decides on due rows, within the limits of the servers' workers; no I/O.

    :ivar workers: of the servers in service, by server id
    """

    workers: Mapping[str, ServerWorker]
    settings: PoolManagerSettings
    now: datetime

    def choose_due_rows(self, loaded: Loaded) -> Decision:
        """What to write, call and poll, after all other changes of *loaded*."""
        decision, states = Decision(loaded.states), loaded.states
        due = [(states[row.domain_id], row) for row in loaded.unchanged_claimed()]
        due += [(state, row) for state in states.values() for row in state.changed.values()
                if row_transitions.is_due(row, self.now) and row.server_id in self.workers]
        for state, row in due:
            worker = self.workers[row.server_id]
            (self._call if worker.handles(row) else self._poll)(decision, state, row, worker)
        decision.writes = [row for state in states.values() for row in state.changed.values()]
        return decision

    def _call(self, decision: Decision, state: DomainState, row: ServerStatus, worker: ServerWorker) -> None:
        recent = is_recent(state.domain, self.now)
        if state.is_busy(row.server_id):
            state.change(postpone(row, self.now))
        elif row_transitions.is_claimed(row, self.now):
            state.add_claim(row)
            decision.calls.append(Operation(state.domain, row, recent))
        elif worker.room(recent) > decision.slots_taken[row.server_id, recent]:
            decision.slots_taken[row.server_id, recent] += 1
            until = self.now + timedelta(seconds=self.settings.claim_seconds)
            row = row_transitions.claim(row, self.settings.name, until)
            state.add_claim(row)
            state.change(row)
            decision.calls.append(Operation(state.domain, state.rows[row.server_id, row.action], recent))
        else:
            state.change(row_transitions.release_claim(row))  # it stays due until there is room

    def _poll(self, decision: Decision, state: DomainState, row: ServerStatus, worker: ServerWorker) -> None:
        domain, tries, recent = state.domain, self.settings.tries, is_recent(state.domain, self.now)
        if worker.dns.is_open:
            no_answer = CallResult(error=f'{worker.server.label} has not answered DNS', unreachable=True,
                                   reason=Reason.TIMEOUT)
            state.change(row_transitions.after_call(row, no_answer, self.now, tries, random.random()))
        elif not recent and not worker.polls.room:
            state.change(row_transitions.release_claim(row))
        else:
            worker.polls.add(domain.id)
            state.change(row_transitions.poll_sent(row, self.now, tries))
            delay = fetch_delay(worker, tries) if row.server_id in state.fetching else 0.0
            request = PollRequest(domain.id, domain.name, row.expected_serial, row.server_id, delay=delay,
                                  seen=row.serial_number, incarnation=row.incarnation)
            is_spread = row.attempts or not recent or worker.dns.was_open_lately
            (decision.spread_polls if is_spread else decision.polls).append(request)


def fetch_delay(worker: ServerWorker, tries: Tries) -> float:
    """Seconds within which a server may fetch a new zone by itself before it is notified."""
    return tries.retry_interval * (CATALOG_PATIENCE if worker.backend.capabilities.reads_catalog else 1)


def postpone(row: ServerStatus, now: datetime) -> ServerStatus:
    """*row*, due again in a moment: another call for the name is in flight."""
    return row_transitions.postpone(row, now + timedelta(seconds=BUSY.delay(0, random.random())))


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
            for key, time in times.items():
                slot = None
                if time is not None and now < time < now + HORIZON:
                    slot = math.ceil(time.timestamp() * SLOTS_PER_SECOND)
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
