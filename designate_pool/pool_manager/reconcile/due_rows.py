"""What is done about rows that are due: a call, a poll, or nothing now."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from datetime import datetime, timedelta

from designate_pool.backoff import Backoff
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


@dataclasses.dataclass(frozen=True, slots=True)
class DueRowRules:
    """Decides on due rows, within the limits of the servers' workers; no I/O.

    :ivar workers: of the servers in service, by server id
    """

    workers: Mapping[str, ServerWorker]
    settings: PoolManagerSettings
    now: datetime

    def decide(self, loaded: Loaded) -> Decision:
        """What to write, call and poll, after all other changes of *loaded*."""
        decision, states = Decision(loaded.states), loaded.states
        due = [(states[row.domain_id], row) for row in loaded.to_do()]
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
