"""Rows of servers that serve other contents under the right serial."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from designate_pool import consensus
from designate_pool.model import Action, Answer, CallResult, Domain, Outcome, PollResult, ServerStatus, Status, utcnow
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.settings import Tries

NOW = utcnow()
TRIES = Tries(timeout=1, retry_interval=2, max_retries=3, backoff_initial=5, backoff_maximum=300)
DOMAIN = Domain('d' * 32, 'example.com.', 'p' * 32, 'default', 'hostmaster@example.com', 3600, 10, Action.NONE,
                Status.ACTIVE, reported_serial=10)
CHANGED = dataclasses.replace(DOMAIN, serial=11, action=Action.UPDATE, status=Status.PENDING)
CREATE = ServerStatus('a', DOMAIN.id, Action.CREATE, 10, status=Outcome.SUCCESS, version=3)
RIGHT = ServerStatus('a', DOMAIN.id, Action.UPDATE, 10, status=Outcome.SUCCESS, serial_number=10, version=3)
WHY = 'serves serial 10 with other contents than ours'
FOUND = row_transitions.diverge(RIGHT, WHY, NOW)


def poll(row: ServerStatus, status: Outcome, serial: int | None) -> ServerStatus:
    answer = Answer.SERIAL if serial is not None else Answer.TIMEOUT
    return row_transitions.after_poll(row, PollResult(DOMAIN.id, 'a', status, answer, serial, 'why'), NOW, TRIES, 0.5)


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
    assert after == dataclasses.replace(claimed, serial_number=11, version=claimed.version + 1)


def test_a_change_renews_it_and_leaves_it_diverged() -> None:
    rows = {('a', Action.CREATE): CREATE, ('a', Action.UPDATE): FOUND}
    renewed, = row_transitions.schedule_change(CHANGED, rows, ['a'], NOW)
    assert (renewed.expected_serial, renewed.status, renewed.diverged) == (11, None, True)
    assert row_transitions.is_due(renewed, NOW) and poll(renewed, Outcome.SUCCESS, 11).status is None


def test_a_server_that_loses_the_zone_is_compared_when_it_has_it_again() -> None:
    create, update = row_transitions.zone_lost(CREATE, FOUND, DOMAIN, 'no such zone', NOW, TRIES, 0.5)
    assert row_transitions.is_due(create, NOW) and update.diverged and row_transitions.schedule_poll(update,
                                                                                                     NOW).diverged


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
    rows = {('a', Action.CREATE): CREATE, ('a', Action.UPDATE): FOUND}
    renewed, = row_transitions.schedule_change(CHANGED, rows, ['a'], NOW)
    after = row_transitions.schedule_poll(poll(row_transitions.clear_divergence(renewed), Outcome.SUCCESS, 10), NOW)
    assert (after.status, after.diverged, after.expected_serial) == (None, False, 11)


def test_it_does_not_count_and_what_was_reported_stays_reported() -> None:
    rows = [CREATE, FOUND, *(dataclasses.replace(row, server_id='b') for row in (CREATE, RIGHT))]
    found = consensus.weigh(DOMAIN, rows, ['a', 'b'], 100)
    assert (found.status, found.agreed, found.behind, found.failed) == (None, ('b',), ('a',), ('a',))
    assert consensus.reports(DOMAIN, rows, ['a', 'b'], 100) == ()
    half = consensus.weigh(DOMAIN, rows, ['a', 'b'], 50)
    assert (half.agreed, half.behind, half.needed) == (('b',), ('a',), 1)


def test_what_it_was_heard_to_serve_when_mending_failed_is_shown() -> None:
    failed = CallResult(error='serves serial 11 with other contents than ours', retryable=False)
    for serial, shown in ((11, 11), (10, 10), (9, 10), (None, 10)):
        after = row_transitions.after_call(row_transitions.observe(FOUND, serial), failed, NOW, TRIES, 0.5)
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
        rows = {('a', Action.CREATE): CREATE, ('a', Action.UPDATE): row}
        renewed = row_transitions.schedule_change(CHANGED, rows, ['a'], NOW)
        row = dataclasses.replace(renewed[0] if renewed else row, expected_serial=10)
    assert asked == [1, 2, 4, 8, 16]
    assert not row_transitions.needs_higher_serial(row, 10, DOMAIN)
