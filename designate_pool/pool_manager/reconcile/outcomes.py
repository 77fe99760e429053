"""What the outcomes of calls and polls make of the rows of their domains."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Collection, Mapping, Sequence

from designate_pool.consensus import Members
from designate_pool.model import Action, Answer, Domain, Outcome, PollResult, Reason, Status
from designate_pool.pool_manager.dispatch.server_worker import CallOutcome, ServerOutcome, ServerWorker
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.pool_manager.reconcile.domain_state import DomainState, Step
from designate_pool.serial import at_least, newer
from designate_pool.settings import Tries


def had_other_settings(outcome: CallOutcome, workers: Mapping[str, ServerWorker]) -> bool:
    """Whether the call was made with former settings, or the server is gone: its outcome says nothing then."""
    if outcome.server is None:
        return False
    worker = workers.get(outcome.server.id)
    return worker is None or worker.server != outcome.server


def channel_of(outcome: ServerOutcome) -> tuple[str, bool]:
    """The server's id, and whether it was called over its control channel or polled over DNS."""
    return outcome.server_id, isinstance(outcome, CallOutcome)


def is_of_former_life(domain: Domain, outcome: CallOutcome) -> bool:
    """Whether the call was made before the domain was restored: its row is the leftover's then."""
    operation = outcome.operation
    return operation.domain.generation < domain.generation and (
        operation.row.action is Action.DELETE or not domain.is_going)


@dataclasses.dataclass(frozen=True, slots=True)
class OutcomeRules:
    """Changes rows of a *step* (with the live domains of deleted names) by what calls and polls have found; no I/O."""

    workers: Mapping[str, ServerWorker]
    members: Members
    tries: Tries
    step: Step

    def apply(self, outcomes: Sequence[ServerOutcome], recovered: Collection[tuple[str, bool]]) -> list[str]:
        """Change the rows that *outcomes* are about.

        :param recovered: channels, see :func:`channel_of`, whose failures do not count: they answer again
        :returns: ids of domains of which a change was scheduled that had been missed
        """
        for outcome in outcomes:
            state = self.step.states.get(outcome.domain_id)
            if state is None or isinstance(outcome, CallOutcome) and is_of_former_life(state.domain, outcome):
                continue
            # After a recovery failed operations are due again at once; a server out of service cannot fail.
            counts = outcome.status is Outcome.SUCCESS or (
                channel_of(outcome) not in recovered and outcome.server_id in self.workers
                and outcome.server_id in self.members.in_service)
            if isinstance(outcome, CallOutcome):
                if counts and not had_other_settings(outcome, self.workers):
                    self._after_call(state, outcome)
                else:
                    _abandon_call(state, outcome)
            elif counts and (domain := state.on(outcome.server_id)) is not None and not domain.is_going:
                self._after_poll(state, outcome, domain)
        missed = [key for key, state in self.step.states.items() if self._schedule_missed_change(state)]
        if self.step.live:
            self._recreate(outcomes)
        return missed

    def _after_call(self, state: DomainState, outcome: CallOutcome) -> None:
        operation = outcome.operation
        server, action = operation.row.server_id, operation.row.action
        domain = state.on(server) or state.domain
        row = state.rows.get((server, action))
        # If the claim was lost, the row is not this call's; a success still counts, unless the server has lost the
        # zone since.
        own = row is not None and row_transitions.is_same_claim(row, operation.row)
        if own:
            state.remove_claim(server, action)
        if domain.is_going and action is not Action.DELETE:
            self._after_late_call(state, outcome, own)
        elif row is not None and (own or outcome.result.ok and not operation.row.diverged
                                  and row.incarnation == operation.row.incarnation):
            if action is Action.UPDATE and outcome.result.ok:
                if not row_transitions.is_stuck(operation.row, self.tries):
                    self._after_sync(state, outcome)
                elif own:  # it was told to transfer, which is not to have transferred
                    state.change(row_transitions.refetched(row, self.step.now, self.tries))
            elif own and not outcome.result.ok and row.next_attempt_at != operation.row.next_attempt_at:
                state.change(row_transitions.release_claim(row))  # it was restarted meanwhile, and is due
            elif own and row.reason is Reason.UNCHECKED and outcome.result.reason is Reason.NO_RETRANSFER \
                    and outcome.serial is None:
                self._after_sync(state, outcome)  # nothing shows what it serves but the serial
            elif own and row.reason is Reason.UNCHECKED and outcome.result.reason in (Reason.DIVERGED, Reason.SIGNS):
                state.change(row_transitions.diverge(row, outcome.result.error or '', self.step.now))
            else:
                if own or row.status is not Outcome.SUCCESS:
                    after = row_transitions.after_call(row_transitions.observe(row, outcome.serial, self.step.now),
                                                       outcome.result, self.step.now, self.tries, random.random())
                    state.change(after)
                    if outcome.serial is not None and row_transitions.needs_higher_serial(after, outcome.serial,
                                                                                          state.domain):
                        state.serial_ahead = outcome.serial
                if action is Action.CREATE and outcome.result.ok:
                    self._after_create(state, outcome)
        if own:  # what had to wait for this call
            fed_by_records = self.workers[server].backend.capabilities.fed_by_records
            state.change(*(row_transitions.make_due(other, self.step.now) for (where, _), other in state.rows.items()
                           if where == server and other.next_attempt_at is not None and other.status is None
                           and not other.attempts and other.claimed_by is None
                           and row_transitions.needs_call(other, fed_by_records, self.tries)))

    def _after_late_call(self, state: DomainState, outcome: CallOutcome, own: bool) -> None:
        """The domain was deleted while its zone was being created: delete the zone, too."""
        server, action = outcome.operation.row.server_id, outcome.operation.row.action
        if own:
            state.change(row_transitions.cancel(state.rows[server, action]))
        makes = action is Action.CREATE or self.workers[server].backend.capabilities.fed_by_records
        if makes and outcome.result.ok:
            delete = state.rows.get((server, Action.DELETE))
            if delete is None:
                # The first to see the deletion schedules it everywhere, unless it was reported: then only here.
                servers = [server] if state.domain.status is Status.DELETED else self.members.tracked
                state.change(*state.schedule(servers, self.step.now))
            elif delete.status is Outcome.SUCCESS:
                state.change(row_transitions.restart(delete, state.domain, self.step.now))

    def _after_create(self, state: DomainState, outcome: CallOutcome) -> None:
        server = outcome.operation.row.server_id
        update, backend = state.rows.get((server, Action.UPDATE)), self.workers[server].backend
        if update is None:
            return
        if backend.capabilities.serves_on_create:
            self._after_sync(state, outcome)
        elif update.status is not Outcome.SUCCESS and update.next_attempt_at is None:
            state.change(row_transitions.make_due(update, self.step.now))
            if backend.capabilities.fetches_on_create:
                state.fetching.add(server)

    def _after_sync(self, state: DomainState, outcome: CallOutcome) -> None:
        """The server has the contents: the same as a successful poll."""
        operation = outcome.operation
        row = row_transitions.clear_divergence(state.rows[operation.row.server_id, Action.UPDATE])
        serial = operation.domain.serial if outcome.serial is None else outcome.serial
        served = PollResult(operation.domain.id, operation.row.server_id, Outcome.SUCCESS, Answer.SERIAL, serial)
        after = row_transitions.after_poll(row, served, self.step.now, self.tries, random.random())
        if not at_least(serial, row.expected_serial):
            after = row_transitions.make_due(after, self.step.now)  # there was a change meanwhile
        state.change(row_transitions.release_claim(row) if after is row else after)

    def _after_poll(self, state: DomainState, result: PollResult, domain: Domain) -> None:
        create = state.rows.get((result.server_id, Action.CREATE))
        update = state.rows.get((result.server_id, Action.UPDATE))
        if create is None or update is None:
            return
        if result.incarnation is not None and result.incarnation < update.incarnation:
            return  # the server has lost the zone since the poll was sent
        if (update.incarnation > 0 and not update.diverged and result.status is Outcome.SUCCESS
                and result.incarnation is None and result.expected_serial is None):
            # It is unsolicited, and may predate the loss of the zone.
            if (confirming := row_transitions.confirm(update, result, self.step.now)) is not update:
                state.change(confirming)
            return
        has_lost_zone = result.status is Outcome.ERROR and result.answer is Answer.NO_ZONE
        if (result.status is Outcome.ERROR and result.expected_serial is not None
                and newer(update.expected_serial, result.expected_serial)):
            counted = row_transitions.count_stale_failure(update, result, self.tries)
            if counted is update:
                return
            if counted.status is not Outcome.ERROR or not has_lost_zone:
                state.change(counted)
                return
        if result.serial_number is not None and newer(result.serial_number, state.domain.serial):
            # The domain was read after the server answered, so the pool never issued that serial.  A server that is of
            # a later stage since the configuration was changed may have one that is released to others.
            ahead = row_transitions.serial_ahead(update, result.serial_number, domain.serial, self.step.now)
            if create.status is Outcome.SUCCESS and ahead is not update:
                state.change(ahead)
            return
        if has_lost_zone:
            if create.status is Outcome.SUCCESS:
                state.change(*row_transitions.zone_lost(create, update, domain, result.error or '', self.step.now,
                                                        self.tries, random.random()))
            return
        after = update
        if not row_transitions.is_doubtful(update, result):
            after = row_transitions.after_poll(update, result, self.step.now, self.tries, random.random())
        elif result.status is Outcome.ERROR:
            after = row_transitions.after_poll(update, dataclasses.replace(result, serial_number=None), self.step.now,
                                               self.tries, random.random())
        elif at_least(result.serial_number or 0, update.expected_serial):
            after = row_transitions.doubt(update, result.serial_number, self.step.now)
        if after is not update:
            state.change(after)

    def _schedule_missed_change(self, state: DomainState) -> bool:
        """Schedule a change whose cast was lost, on the servers that are behind, once others serve it; whether it was.

        If these are enough, the domain becomes ACTIVE, and only an audit would find the others.
        """
        if state.domain.is_going or not any(
                row.action is Action.UPDATE and row.serial_number is not None
                and newer(row.serial_number, row.expected_serial) for row in state.changed.values()):
            return False
        behind = [server for server in self.members.tracked
                  if (row := state.rows.get((server, Action.UPDATE))) is not None
                  and (row.serial_number is None or newer(state.domain.serial, row.serial_number))]
        rows = state.schedule(behind, self.step.now)
        state.change(*rows)
        return bool(rows)

    def _recreate(self, outcomes: Sequence[ServerOutcome]) -> None:
        """Create zones again that a deletion of an older domain of the same name may have removed."""
        for outcome in outcomes:
            if not (isinstance(outcome, CallOutcome) and outcome.result.ok
                    and outcome.operation.row.action is Action.DELETE):
                continue
            domain = self.step.live.get(outcome.operation.domain.name)
            state = None if domain is None else self.step.states.get(domain.id)
            server = outcome.server_id
            if state is not None and (server, Action.CREATE) in state.rows:
                state.remove_claim(server, Action.CREATE)
                state.change(*row_transitions.provision(state.on(server) or state.domain, state.rows, server,
                                                        self.step.now, gone=True))


def _abandon_call(state: DomainState, outcome: CallOutcome) -> None:
    """Release the claim of *outcome*, so that its row is due again; cancel it if its domain was deleted."""
    server, action = outcome.operation.row.server_id, outcome.operation.row.action
    row = state.rows.get((server, action))
    if row is not None and row_transitions.is_same_claim(row, outcome.operation.row):
        state.remove_claim(server, action)
        is_over = state.domain.is_going and action is not Action.DELETE
        state.change(row_transitions.cancel(row) if is_over else row_transitions.release_claim(row))
