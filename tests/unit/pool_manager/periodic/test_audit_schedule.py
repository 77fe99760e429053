"""The pace of a round over all domains, with a clock that stands still but for what the test says."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta, timezone

import pytest

from designate_pool.model import Audit, AuditKind, Counts
from designate_pool.pool_manager.periodic import audit_schedule

BEGAN = datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
FIRST = Audit('p' * 32, AuditKind.SERIALS, BEGAN)


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def rounds(audit: Audit, pages: int, work: float) -> tuple[Audit, list[float]]:
    """A round of *pages* pages that take *work* seconds each; the next one before its start, and the pauses."""
    now, pauses = audit.started_at, []
    for page in range(1, pages + 1):
        now += timedelta(seconds=work)
        due = audit_schedule.next_page_at(audit, 120, page < pages, now)
        pauses.append((due - now).total_seconds())
        audit = dataclasses.replace(audit, now=Counts(domains=page * audit_schedule.PAGE))
        now = due
    return dataclasses.replace(audit, started_at=now, now=Counts(), last=audit.now), pauses


@pytest.mark.parametrize('pages', [1, 2, 7])
def test_a_round_takes_the_interval_the_first_time_and_the_second(pages: int) -> None:
    second, _ = rounds(FIRST, pages, 0.5)
    assert second.started_at == at(120)
    assert rounds(second, pages, 0.5)[0].started_at == at(240)


def test_the_pages_of_the_second_round_are_spread_evenly() -> None:
    second, _ = rounds(FIRST, 4, 1)
    assert rounds(second, 4, 1)[1] == pytest.approx([29, 29, 29, 29])


def test_a_round_that_does_not_fit_goes_on_without_a_pause() -> None:
    second, _ = rounds(FIRST, 10, 20)
    third, pauses = rounds(second, 10, 20)
    assert pauses == [0] * 10 and third.started_at == second.started_at + timedelta(seconds=200)


def test_a_page_is_taken_when_it_is_due_and_nobody_is_at_it() -> None:
    assert audit_schedule.pause(FIRST, 'me', BEGAN) == 0
    due = dataclasses.replace(FIRST, next_at=at(3))
    assert audit_schedule.pause(due, 'me', BEGAN) == 3 and audit_schedule.pause(due, 'me', at(3)) == 0
    assert audit_schedule.pause(dataclasses.replace(FIRST, next_at=at(90)), 'me', BEGAN) == audit_schedule.LONGEST


def test_a_page_that_somebody_is_at_is_his_until_his_claim_runs_out() -> None:
    taken = dataclasses.replace(FIRST, claimed_by='other', claimed_until=at(30))
    assert audit_schedule.pause(taken, 'me', at(29)) > 0
    assert audit_schedule.pause(taken, 'other', at(29)) == 0
    assert audit_schedule.pause(taken, 'me', at(30)) == 0


def test_not_more_messages_are_on_their_way_than_servers_are_asked_for() -> None:
    crowded = dataclasses.replace(FIRST, after_id='a' * 32, sent=audit_schedule.MOST_SENT + 3, heard=3,
                                  updated_at=BEGAN)
    assert audit_schedule.pause(crowded, 'me', at(1)) > 0
    assert audit_schedule.pause(dataclasses.replace(crowded, heard=4), 'me', at(1)) == 0
    assert not audit_schedule.is_silent(crowded, at(1))


def test_a_round_begins_when_the_one_before_is_answered() -> None:
    ended = dataclasses.replace(FIRST, sent=5, heard=4, updated_at=BEGAN)
    assert audit_schedule.pause(ended, 'me', at(1)) > 0
    assert audit_schedule.pause(dataclasses.replace(ended, heard=5), 'me', at(1)) == 0
    assert audit_schedule.pause(ended, 'me', at(audit_schedule.PATIENCE)) == 0


def test_messages_that_nobody_answers_are_not_waited_for_for_ever() -> None:
    lost = dataclasses.replace(FIRST, sent=audit_schedule.MOST_SENT, updated_at=BEGAN)
    assert audit_schedule.is_silent(lost, at(audit_schedule.PATIENCE))
    assert audit_schedule.pause(lost, 'me', at(audit_schedule.PATIENCE)) == 0
    assert not audit_schedule.is_silent(dataclasses.replace(lost, heard=audit_schedule.MOST_SENT),
                                        at(audit_schedule.PATIENCE))
