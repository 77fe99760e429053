"""What is done next for one domain on one server."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import timedelta

import pytest

from designate_pool import consensus
from designate_pool.model import (Action, Answer, CallResult, Domain, Outcome, PollResult, Reason, ServerStatus, Status,
                                  utcnow)
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.pool_manager.reconcile.domain_state import DomainState, Step
from designate_pool.settings import Tries

NOW = utcnow()
TRIES = Tries(timeout=1, retry_interval=2, max_retries=3, backoff_initial=5, backoff_maximum=300)
DOMAIN = Domain(id='d' * 32, name='example.com.', pool_id='p' * 32, pool_name='default',
                email='hostmaster@example.com', ttl=3600, serial=10)
SERVED = dataclasses.replace(DOMAIN, action=Action.NONE, status=Status.ACTIVE, reported_serial=10)
CHANGED = dataclasses.replace(SERVED, serial=11, action=Action.UPDATE, status=Status.PENDING)
CREATED = ServerStatus('a', DOMAIN.id, Action.CREATE, 10, status=Outcome.SUCCESS, version=3)
RIGHT = ServerStatus('a', DOMAIN.id, Action.UPDATE, 10, status=Outcome.SUCCESS, serial_number=10, version=3)
WHY = 'serves serial 10 with other contents than ours'
FOUND = row_transitions.diverge(RIGHT, WHY, NOW)
FAILURE = CallResult(error='connection refused', unreachable=True)
REFUSAL = CallResult(error='the key was refused', retryable=False)


def begun(domain: Domain = DOMAIN, rows: row_transitions.Rows | None = None) -> dict[tuple[str, Action], ServerStatus]:
    return by_key(row_transitions.schedule_change(domain, rows or {}, ['a'], NOW))


def by_key(rows: Sequence[ServerStatus]) -> dict[tuple[str, Action], ServerStatus]:
    return {(row.server_id, row.action): row for row in rows}


def call(row: ServerStatus, result: CallResult, times: int = 1) -> ServerStatus:
    for _ in range(times):
        row = row_transitions.after_call(row, result, NOW, TRIES, 0.5)
    return row


def poll(row: ServerStatus, status: Outcome, serial: int | None, answer: Answer = Answer.SERIAL) -> ServerStatus:
    return row_transitions.after_poll(row, PollResult(DOMAIN.id, 'a', status, answer, serial, 'why'), NOW, TRIES, 0.5)


def seconds(row: ServerStatus) -> float:
    assert row.next_attempt_at is not None
    return (row.next_attempt_at - NOW).total_seconds()


def test_a_new_domain_is_created_first_and_polled_for_after_that() -> None:
    rows = begun()
    assert rows['a', Action.CREATE].next_attempt_at == NOW
    assert rows['a', Action.UPDATE].next_attempt_at is None
    assert row_transitions.make_due(rows['a', Action.UPDATE], NOW).next_attempt_at == NOW


def test_the_same_cast_twice_begins_nothing() -> None:
    assert begun(rows=begun()) == {}


def test_a_change_renews_what_is_under_way() -> None:
    rows = begun()
    rows['a', Action.CREATE] = call(rows['a', Action.CREATE], CallResult())
    rows['a', Action.UPDATE] = poll(rows['a', Action.UPDATE], Outcome.SUCCESS, 10)
    after = begun(dataclasses.replace(DOMAIN, serial=11), rows)
    assert set(after) == {('a', Action.UPDATE)}
    update = after['a', Action.UPDATE]
    assert (update.status, update.expected_serial, update.serial_number, update.attempts) == (None, 11, 10, 0)
    assert update.version == rows['a', Action.UPDATE].version + 1


def test_a_change_gives_a_failed_create_a_new_round() -> None:
    rows = begun()
    rows['a', Action.CREATE] = call(rows['a', Action.CREATE], FAILURE, times=4)
    after = begun(dataclasses.replace(DOMAIN, serial=11), rows)
    assert after['a', Action.CREATE].status is None and after['a', Action.CREATE].next_attempt_at == NOW
    assert after['a', Action.UPDATE].next_attempt_at is None


def test_a_deletion_cancels_what_was_due() -> None:
    going = dataclasses.replace(DOMAIN, action=Action.DELETE, serial=11)
    after = begun(going, begun())
    assert after['a', Action.DELETE].next_attempt_at == NOW
    assert after['a', Action.CREATE].next_attempt_at is None
    assert begun(going, {**begun(), **after}) == {}


def test_a_domain_that_is_deleted_already_begins_nothing_but_its_deletion() -> None:
    gone = dataclasses.replace(DOMAIN, action=Action.NONE, status=Status.DELETED)
    assert set(begun(gone)) == {('a', Action.DELETE)}


def test_a_row_is_in_error_when_the_tries_of_the_round_are_used_up() -> None:
    row = begun()['a', Action.CREATE]
    for attempt in (1, 2, 3):
        row = call(row, FAILURE)
        assert (row.status, row.attempts, seconds(row)) == (None, attempt, 2)
    row = call(row, FAILURE)
    assert (row.status, row.attempts, row.last_error) == (Outcome.ERROR, 4, 'connection refused')


def test_the_pause_after_an_error_doubles_up_to_the_maximum() -> None:
    row = call(begun()['a', Action.CREATE], FAILURE, times=4)
    pauses = []
    for _ in range(8):
        pauses.append(seconds(row))
        row = call(row, FAILURE)
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300]


def test_what_no_retry_can_mend_is_in_error_at_once_and_still_tried_again() -> None:
    row = call(begun()['a', Action.CREATE], REFUSAL)
    assert (row.status, row.attempts, seconds(row)) == (Outcome.ERROR, 1, 5)
    assert seconds(call(row, REFUSAL)) == 10


def test_success_ends_a_row_and_keeps_no_error() -> None:
    row = call(call(begun()['a', Action.CREATE], FAILURE), CallResult())
    assert (row.status, row.last_error, row.next_attempt_at) == (Outcome.SUCCESS, None, None)


def test_a_row_keeps_why_its_last_try_has_failed() -> None:
    row = call(begun()['a', Action.CREATE], dataclasses.replace(FAILURE, reason=Reason.UNREACHABLE))
    assert row.reason is Reason.UNREACHABLE
    assert call(row, dataclasses.replace(REFUSAL, reason=Reason.BAD_KEY)).reason is Reason.BAD_KEY
    assert call(row, FAILURE).reason is Reason.OTHER, 'a driver that gives none'
    assert call(row, CallResult()).reason is None
    assert row_transitions.restart(row, DOMAIN, NOW).reason is None


@pytest.mark.parametrize(('answer', 'reason'), [
    (Answer.SERIAL, Reason.STALE), (Answer.NO_ZONE, Reason.NO_ZONE), (Answer.NOT_AUTH, Reason.NOT_AUTH),
    (Answer.TIMEOUT, Reason.TIMEOUT), (Answer.BAD, Reason.OTHER)])
def test_the_answer_is_the_reason_where_an_older_minidns_gives_no_other(answer: Answer, reason: Reason) -> None:
    row = begun()['a', Action.UPDATE]
    assert poll(row, Outcome.ERROR, 9, answer).reason is reason
    told = PollResult(DOMAIN.id, 'a', Outcome.ERROR, answer, 9, 'why', reason=Reason.BAD_TIME)
    after = row_transitions.after_poll(row, told, NOW, TRIES, 0.5)
    assert after.reason is Reason.BAD_TIME
    assert poll(after, Outcome.SUCCESS, 10).reason is None


def test_an_error_never_moves_a_serial() -> None:
    row = poll(poll(begun()['a', Action.UPDATE], Outcome.SUCCESS, 10), Outcome.ERROR, 7)
    assert (row.status, row.serial_number, row.last_error) == (Outcome.ERROR, 10, 'why')
    assert seconds(row) == 5
    assert poll(row, Outcome.ERROR, None, Answer.TIMEOUT).serial_number == 10


def test_an_older_serial_moves_the_row_forward_but_is_no_success() -> None:
    row = poll(begun()['a', Action.UPDATE], Outcome.SUCCESS, 9)
    assert (row.status, row.serial_number) == (None, 9)
    assert poll(row, Outcome.SUCCESS, 8) is row


def test_an_older_serial_that_nobody_asked_for_makes_a_row_that_is_polled_due() -> None:
    row = row_transitions.poll_sent(begun()['a', Action.UPDATE], NOW, TRIES)
    found = PollResult(DOMAIN.id, 'a', Outcome.SUCCESS, Answer.SERIAL, 9)
    after = row_transitions.after_poll(row, found, NOW, TRIES, 0.5)
    assert (after.status, after.serial_number, after.next_attempt_at) == (None, 9, NOW)
    # Once: after that it is no news any more.
    polled = row_transitions.poll_sent(after, NOW, TRIES)
    assert row_transitions.after_poll(polled, found, NOW, TRIES, 0.5) is polled
    # The MiniDNS that polls it knows what it has seen itself.
    answered = row_transitions.after_poll(row, dataclasses.replace(found, expected_serial=9), NOW, TRIES, 0.5)
    assert (answered.serial_number, answered.next_attempt_at) == (9, row.next_attempt_at)


def test_an_older_serial_does_not_end_the_pause_of_a_row_that_has_failed() -> None:
    failed = poll(begun()['a', Action.UPDATE], Outcome.ERROR, None, Answer.TIMEOUT)
    after = row_transitions.after_poll(failed, PollResult(DOMAIN.id, 'a', Outcome.SUCCESS, Answer.SERIAL, 9), NOW,
                                       TRIES, 0.5)
    assert after.serial_number == 9 and after.next_attempt_at == failed.next_attempt_at


def test_the_same_answer_twice_writes_nothing() -> None:
    row = poll(begun()['a', Action.UPDATE], Outcome.SUCCESS, 10)
    assert poll(row, Outcome.SUCCESS, 10) is row


def test_failures_for_older_serials_are_an_error_after_the_second_round() -> None:
    row = begun(dataclasses.replace(DOMAIN, serial=11))['a', Action.UPDATE]
    late = PollResult(DOMAIN.id, 'a', Outcome.ERROR, Answer.TIMEOUT, None, 'why', expected_serial=10)
    once = row_transitions.count_stale_failure(row, late, TRIES)
    assert (once.status, once.attempts) == (None, 4)
    twice = row_transitions.count_stale_failure(once, late, TRIES)
    assert (twice.status, twice.attempts, twice.last_error) == (Outcome.ERROR, 8, 'why')


def test_a_deletion_that_a_server_is_called_for_is_superseded_only_after_the_call() -> None:
    going = dataclasses.replace(DOMAIN, action=Action.DELETE)
    state = DomainState(going, by_key(row_transitions.schedule_change(going, {}, ['a', 'b'], NOW)))
    state.add_claim(row_transitions.claim(state.rows['a', Action.DELETE], 'one', NOW + timedelta(seconds=30)))
    successor = dataclasses.replace(DOMAIN, id='e' * 32, generation=going.generation + 1)
    step = Step(NOW, states={going.id: state}, live={successor.name: successor})
    step.supersede(lambda server: False)
    assert set(state.changed) == {('b', Action.DELETE)}
    state.remove_claim('a', Action.DELETE)
    step.supersede(lambda server: False)
    assert {row.status for row in state.rows.values()} == {Outcome.SUCCESS}


def test_nothing_is_written_of_a_deletion_whose_domain_was_restored_since_it_was_read() -> None:
    going = dataclasses.replace(DOMAIN, action=Action.DELETE)
    state = DomainState(going, {})
    state.change(*row_transitions.schedule_change(going, {}, ['a', 'b'], NOW))
    restored = dataclasses.replace(DOMAIN, generation=going.generation + 1)
    step = Step(NOW, states={going.id: state}, live={restored.name: restored})
    step.supersede(lambda server: False)
    assert step.states == {}


def test_a_poll_without_an_answer_is_due_again_when_its_round_must_be_over() -> None:
    row = row_transitions.poll_sent(begun()['a', Action.UPDATE], NOW, TRIES)
    assert row.next_attempt_at == NOW + timedelta(seconds=4 * 1 + 3 * 2 + 2) == row.deadline_at


def test_a_server_that_lost_the_zone_gets_it_again_at_once_and_then_with_growing_pauses() -> None:
    rows = begun()
    create = call(rows['a', Action.CREATE], CallResult())
    update = poll(rows['a', Action.UPDATE], Outcome.SUCCESS, 10)
    create, update = row_transitions.zone_lost(create, update, DOMAIN, 'no such zone', NOW, TRIES, 0.5)
    assert create.next_attempt_at == NOW and update.status is None and update.serial_number is None
    pauses = []
    for _ in range(3):
        create, update = call(create, CallResult()), row_transitions.make_due(update, NOW)
        create, update = row_transitions.zone_lost(create, update, DOMAIN, 'no such zone', NOW, TRIES, 0.5)
        assert update.status is Outcome.ERROR and update.next_attempt_at is None
        assert (create.status, create.last_error) == (Outcome.ERROR, 'no such zone')
        assert create.reason is update.reason is Reason.NO_ZONE
        pauses.append(seconds(create))
    assert pauses == [5, 10, 20]


def test_a_server_that_was_away_and_comes_back_without_the_zone_gets_it_at_once() -> None:
    rows = begun()
    create = call(rows['a', Action.CREATE], CallResult())
    update = poll(rows['a', Action.UPDATE], Outcome.SUCCESS, 10)
    for _ in range(3):
        update = poll(update, Outcome.ERROR, None, Answer.TIMEOUT)
    create, update = row_transitions.zone_lost(create, update, DOMAIN, 'no such zone', NOW, TRIES, 0.5)
    assert create.next_attempt_at == NOW and update.status is None and update.serial_number is None


def stale(row: ServerStatus) -> ServerStatus:
    """*row* after a round of polls that were answered with an older serial."""
    return poll(row, Outcome.ERROR, 5)


def test_a_server_that_keeps_an_older_serial_is_told_to_transfer_in_rounds_4_8_and_16() -> None:
    row = begun()['a', Action.UPDATE]
    told = []
    for number in range(1, 18):
        if row_transitions.is_stuck(row, TRIES):
            told.append(number - 1)
            row = row_transitions.refetched(row, NOW, TRIES)
            assert row.next_attempt_at == NOW and row.status is Outcome.ERROR and row.serial_number == 5
            assert not row_transitions.is_stuck(row, TRIES)
        else:
            row = stale(row)
    assert told == [4, 8, 16]


@pytest.mark.parametrize('answer', [Answer.TIMEOUT, Answer.NOT_AUTH, Answer.NO_ZONE, Answer.BAD])
def test_a_server_that_does_not_answer_with_a_serial_is_not_told_to_transfer(answer: Answer) -> None:
    row = begun()['a', Action.UPDATE]
    for _ in range(20):
        row = poll(row, Outcome.ERROR, None, answer)
        assert not row_transitions.is_stuck(row, TRIES)


def test_neither_a_diverged_row_nor_one_that_has_succeeded_is_stuck() -> None:
    row = begun()['a', Action.UPDATE]
    for _ in range(4):
        row = stale(row)
    assert row_transitions.is_stuck(row, TRIES)
    assert not row_transitions.is_stuck(dataclasses.replace(row, diverged=True), TRIES)
    assert not row_transitions.is_stuck(poll(row, Outcome.SUCCESS, DOMAIN.serial), TRIES)
    assert not row_transitions.is_stuck(dataclasses.replace(row, action=Action.CREATE), TRIES)


# Servers with other contents under the right serial

def test_what_is_found_is_an_error_and_due_at_once() -> None:
    assert (FOUND.status, FOUND.diverged, FOUND.last_error, FOUND.serial_number) == (Outcome.ERROR, True, WHY, 10)
    assert row_transitions.is_due(FOUND,
                                  NOW) and not row_transitions.is_at_rest(FOUND) and FOUND.version == RIGHT.version + 1


@pytest.mark.parametrize(('status', 'serial'), [(Outcome.SUCCESS, 10), (Outcome.SUCCESS, 9), (Outcome.ERROR, None)])
def test_no_poll_makes_it_right(status: Outcome, serial: int | None) -> None:
    assert poll(FOUND, status, serial) is FOUND


def test_a_newer_serial_is_seen_and_makes_nothing_right() -> None:
    claimed = row_transitions.claim(FOUND, 'me', NOW + timedelta(seconds=30))
    after = poll(claimed, Outcome.SUCCESS, 11)
    assert after == dataclasses.replace(claimed, serial_number=11, seen_at=NOW, version=claimed.version + 1)


def test_it_is_noted_when_the_newest_serial_was_seen() -> None:
    stale = poll(begun()['a', Action.UPDATE], Outcome.ERROR, 9)
    assert (stale.serial_number, stale.seen_at) == (9, NOW)
    earlier = dataclasses.replace(stale, seen_at=NOW - timedelta(hours=1))
    assert poll(earlier, Outcome.ERROR, 9).seen_at == NOW, 'it still serves that'
    assert poll(earlier, Outcome.ERROR, None).seen_at == poll(earlier, Outcome.ERROR, 8).seen_at == earlier.seen_at
    assert poll(earlier, Outcome.SUCCESS, 10).seen_at == NOW


def test_no_higher_serial_is_issued_for_a_server_that_signs() -> None:
    ahead = dataclasses.replace(row_transitions.serial_ahead(RIGHT, 500, 10, NOW), attempts=1)
    assert row_transitions.needs_higher_serial(ahead, 500, DOMAIN)
    assert not row_transitions.needs_higher_serial(dataclasses.replace(ahead, reason=Reason.SIGNS), 500, DOMAIN)


def test_a_change_renews_it_and_leaves_it_diverged() -> None:
    rows = {('a', Action.CREATE): CREATED, ('a', Action.UPDATE): FOUND}
    renewed, = row_transitions.schedule_change(CHANGED, rows, ['a'], NOW)
    assert (renewed.expected_serial, renewed.status, renewed.diverged) == (11, None, True)
    assert row_transitions.is_due(renewed, NOW) and poll(renewed, Outcome.SUCCESS, 11).status is None


def test_a_server_that_loses_the_zone_is_compared_when_it_has_it_again() -> None:
    create, update = row_transitions.zone_lost(CREATED, FOUND, DOMAIN, 'no such zone', NOW, TRIES, 0.5)
    assert row_transitions.is_due(create, NOW) and update.diverged
    assert row_transitions.make_due(update, NOW).diverged


def test_a_failed_mending_is_tried_again_with_growing_pauses() -> None:
    pauses, row = [], FOUND
    for _ in range(4):
        row = row_transitions.after_call(row, CallResult(error=WHY, retryable=False), NOW, TRIES, 0.5)
        assert row.next_attempt_at is not None and row.diverged and row.status is Outcome.ERROR
        pauses.append((row.next_attempt_at - NOW).total_seconds())
    assert pauses == [5, 10, 20, 40]


def test_contents_that_are_ours_again_end_it() -> None:
    after = poll(row_transitions.clear_divergence(FOUND), Outcome.SUCCESS, 10)
    assert row_transitions.is_at_rest(after) and not after.diverged and after.last_error is None
    # Mended at the serial before a change: what is due now is an ordinary update.
    rows = {('a', Action.CREATE): CREATED, ('a', Action.UPDATE): FOUND}
    renewed, = row_transitions.schedule_change(CHANGED, rows, ['a'], NOW)
    after = row_transitions.make_due(poll(row_transitions.clear_divergence(renewed), Outcome.SUCCESS, 10), NOW)
    assert (after.status, after.diverged, after.expected_serial) == (None, False, 11)


def test_it_does_not_count_and_what_was_reported_stays_reported() -> None:
    rows = [CREATED, FOUND, *(dataclasses.replace(row, server_id='b') for row in (CREATED, RIGHT))]
    found = consensus.weigh(SERVED, rows, ['a', 'b'], 100)
    assert (found.status, found.agreed, found.behind, found.failed) == (None, ('b',), ('a',), ('a',))
    assert consensus.reports(SERVED, rows, ['a', 'b'], 100) == ()
    half = consensus.weigh(SERVED, rows, ['a', 'b'], 50)
    assert (half.agreed, half.behind, half.needed) == (('b',), ('a',), 1)


def test_what_it_was_heard_to_serve_when_mending_failed_is_shown() -> None:
    failed = CallResult(error='serves serial 11 with other contents than ours', retryable=False)
    for serial, shown in ((11, 11), (10, 10), (9, 10), (None, 10)):
        after = row_transitions.after_call(row_transitions.observe(FOUND, serial, NOW), failed, NOW, TRIES, 0.5)
        assert (after.serial_number, after.status, after.diverged) == (shown, Outcome.ERROR, True)


def test_a_serial_ahead_of_the_domain_s_own_is_a_divergence_and_goes_back_when_mended() -> None:
    ahead = row_transitions.serial_ahead(RIGHT, 500, 10, NOW)
    assert (ahead.status, ahead.diverged, ahead.serial_number) == (Outcome.ERROR, True, 500)
    assert row_transitions.is_due(ahead, NOW) and ahead.last_error is not None and 'ahead of 10' in ahead.last_error
    assert row_transitions.serial_ahead(ahead, 500, 10, NOW) is ahead
    assert row_transitions.serial_ahead(ahead, 501, 10, NOW).serial_number == 501
    after = poll(row_transitions.clear_divergence(ahead), Outcome.SUCCESS, 10)
    assert (after.serial_number, after.status, after.diverged) == (10, Outcome.SUCCESS, False)


def test_the_domain_s_serial_does_not_chase_after_a_server_that_counts_by_itself() -> None:
    row, asked = row_transitions.serial_ahead(RIGHT, 500, 10, NOW), []
    for attempt in range(1, 17):
        row = row_transitions.after_call(row, CallResult(error=WHY, retryable=False), NOW, TRIES, 0.5)
        row = dataclasses.replace(row, serial_number=500 + attempt)
        if row_transitions.needs_higher_serial(row, 500 + attempt, DOMAIN):
            asked.append(attempt)
        rows = {('a', Action.CREATE): CREATED, ('a', Action.UPDATE): row}
        renewed = row_transitions.schedule_change(CHANGED, rows, ['a'], NOW)
        row = dataclasses.replace(renewed[0] if renewed else row, expected_serial=10)
    assert asked == [1, 2, 4, 8, 16]
    assert not row_transitions.needs_higher_serial(row, 10, DOMAIN)
