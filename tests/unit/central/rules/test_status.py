"""What reports make of a domain, in any order and however often."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool.central.rules.status import apply_report
from designate_pool.model import Action, Domain, Outcome, Report, Status
from designate_pool.serial import HALF, SPACE, at_least, distance

OWN = 1000
PENDING = Domain(id='0' * 32, name='example.com.', pool_id='1' * 32, pool_name='default', email='a@example.com', ttl=60,
                 serial=OWN, action=Action.CREATE, status=Status.PENDING, generation=1)


def report(status: Outcome, serial: int, action: Action = Action.CREATE, generation: int = 1) -> Report:
    return Report(PENDING.id, action, generation, status, serial)


def after(domain: Domain, *reports: Report) -> Domain:
    for each in reports:
        decision = apply_report(domain, each)
        if decision is not None:
            domain = decision.domain
    return domain


def success(serial: int) -> Report:
    return report(Outcome.SUCCESS, serial)


def error(serial: int) -> Report:
    return report(Outcome.ERROR, serial)


def test_success_at_the_domains_serial_makes_it_active() -> None:
    found = after(PENDING, success(OWN))
    assert (found.status, found.action, found.reported_serial) == (Status.ACTIVE, Action.NONE, OWN)


def test_success_of_an_older_serial_leaves_the_newer_change_pending_as_an_update() -> None:
    found = after(PENDING, success(OWN - 1))
    assert (found.status, found.action, found.reported_serial) == (Status.PENDING, Action.UPDATE, OWN - 1)


def test_success_of_a_serial_that_central_never_gave_says_nothing() -> None:
    assert apply_report(PENDING, success(OWN + 500)) is None


def test_success_exactly_half_the_circle_away_says_nothing() -> None:
    assert apply_report(PENDING, success((OWN + HALF) % SPACE)) is None


def test_reports_of_a_serial_before_the_domains_first_say_nothing() -> None:
    anew = dataclasses.replace(PENDING, first_serial=OWN - 2)
    assert apply_report(anew, success(OWN - 3)) is None
    assert apply_report(anew, error(OWN - 3)) is None
    assert after(anew, success(OWN - 2)).reported_serial == OWN - 2


def test_success_mends_an_error() -> None:
    assert after(PENDING, error(OWN), success(OWN)).status is Status.ACTIVE


def test_an_error_at_the_domains_serial() -> None:
    decision = apply_report(PENDING, error(OWN))
    assert decision is not None
    assert (decision.domain.status, decision.domain.reported_serial) == (Status.ERROR, None)
    assert decision.failed_serial == OWN
    assert apply_report(decision.domain, error(OWN)) is None


def test_a_late_error_after_success_is_ignored() -> None:
    assert apply_report(after(PENDING, success(OWN)), error(OWN)) is None
    assert apply_report(after(PENDING, success(OWN)), error(OWN - 7)) is None


def test_an_error_of_an_overtaken_serial_concerns_its_records_alone() -> None:
    decision = apply_report(PENDING, error(OWN - 1))
    assert decision is not None
    assert decision.domain == PENDING
    assert decision.failed_serial == OWN - 1


@pytest.mark.parametrize('status', list(Outcome))
def test_a_report_of_another_generation_is_void(status: Outcome) -> None:
    assert apply_report(PENDING, report(status, OWN, generation=2)) is None


@pytest.mark.parametrize(('going', 'action'), [(True, Action.CREATE), (True, Action.UPDATE), (False, Action.DELETE)])
def test_a_report_about_the_reverse_of_what_is_due_is_void(going: bool, action: Action) -> None:
    domain = dataclasses.replace(PENDING, action=Action.DELETE) if going else PENDING
    assert apply_report(domain, report(Outcome.SUCCESS, OWN, action)) is None


def test_a_deletion_that_succeeds_is_the_end() -> None:
    going = dataclasses.replace(PENDING, action=Action.DELETE)
    failed = after(going, report(Outcome.ERROR, OWN, Action.DELETE))
    assert (failed.action, failed.status) == (Action.DELETE, Status.ERROR)
    gone = after(failed, report(Outcome.SUCCESS, OWN, Action.DELETE))
    assert (gone.action, gone.status) == (Action.NONE, Status.DELETED)
    assert apply_report(gone, report(Outcome.ERROR, OWN, Action.DELETE)) is None


# Serials on both sides of the domain's own, near and far, wherever on the circle that is.
_steps = st.one_of(st.integers(-5, 5), st.integers(-HALF, HALF))
_reports = st.lists(st.tuples(st.sampled_from(Outcome), _steps, st.sampled_from(Action), st.integers(1, 2)), max_size=5)
_domains = st.tuples(st.integers(0, SPACE - 1), st.sampled_from([Action.CREATE, Action.UPDATE, Action.DELETE]),
                     st.sampled_from([Status.PENDING, Status.ERROR]), st.none() | st.integers(-HALF + 1, -1))


def _made(domain: tuple, reports: list[tuple]) -> tuple[Domain, list[Report]]:
    own, action, status, reported = domain
    start = dataclasses.replace(PENDING, serial=own, action=action, status=status,
                                reported_serial=None if reported is None else (own + reported) % SPACE)
    return start, [report(outcome, (own + step) % SPACE, action, generation)
                   for outcome, step, action, generation in reports]


@given(_domains, _reports)
def test_any_order_and_repetition_ends_the_same(domain: tuple, reports: list[tuple]) -> None:
    start, made = _made(domain, reports)
    ends = {after(start, *order, *order[:2], *order) for order in itertools.islice(itertools.permutations(made), 40)}
    ends.add(after(start, *made))
    assert len(ends) == 1


@given(_domains, _reports)
def test_the_reported_serial_never_goes_back_nor_past_the_domains_own(domain: tuple, reports: list[tuple]) -> None:
    now, made = _made(domain, reports)
    for each in made:
        then, now = now, after(now, each)
        if then.reported_serial is not None:
            assert now.reported_serial is not None
            assert at_least(now.reported_serial, then.reported_serial)
        if now.reported_serial is not None:
            assert distance(now.serial, now.reported_serial) <= 0


@given(_domains, _reports)
def test_active_means_that_the_domains_own_serial_was_reported(domain: tuple, reports: list[tuple]) -> None:
    start, made = _made(domain, reports)
    end = after(start, *made)
    assert (end.status is Status.ACTIVE) == (end.reported_serial == end.serial and end.status is not Status.DELETED)
    if end.status is Status.DELETED:
        assert any(each.action is Action.DELETE and each.status is Outcome.SUCCESS for each in made)


def test_a_serial_that_only_renews_signatures_changes_no_status() -> None:
    resigned = dataclasses.replace(PENDING, serial=OWN + 2, content_serial=OWN, first_serial=OWN - 9)
    assert after(resigned, success(OWN - 1)).status is Status.PENDING
    active = after(resigned, success(OWN))
    assert (active.status, active.action, active.reported_serial) == (Status.ACTIVE, Action.NONE, OWN)
    assert after(active, error(OWN + 2)) == active
    assert after(active, success(OWN + 2)) == dataclasses.replace(active, reported_serial=OWN + 2)
    assert after(resigned, error(OWN + 1)).status is Status.ERROR, 'it has the contents too'
    assert after(resigned, error(OWN - 1)).status is Status.PENDING
