"""When a failure that repeats is a line in the log."""

from __future__ import annotations

import logging

import pytest

from designate_pool import logs
from designate_pool.errors import DatabaseUnavailable, ServiceUnavailable
from designate_pool.logs import MOST, OutageLog, RateLimitedLog

LOG = logging.getLogger(__name__)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lines(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[str]:
    """Those since the last look."""
    found = [f'{record.levelname} {record.getMessage()}' for record in caplog.records if record.levelno >= level]
    caplog.clear()
    return found


def test_an_outage_is_logged_when_it_begins_and_when_it_ends(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    outage = OutageLog(LOG, 'not read: %s', 'read again', clock=clock)
    outage.ended()
    assert (bool(outage), lines(caplog)) == (False, [])
    for number in range(3):
        outage.failed(number)
        clock.now += 2
    assert bool(outage)
    assert lines(caplog, logging.DEBUG) == ['ERROR not read: 0', 'DEBUG not read: 1', 'DEBUG not read: 2']
    outage.ended()
    outage.ended()
    assert (bool(outage), lines(caplog)) == (False, ['INFO read again (after 6 s and 3 failures)'])
    outage.failed('anew')
    assert lines(caplog) == ['ERROR not read: anew']


def test_outages_of_several_keys_are_apart(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    outage = OutageLog(LOG, '%s is away', '%s is back', logging.WARNING, clock)
    for name in ('a', 'b', 'a'):
        outage.failed(name, key=name)
    assert lines(caplog) == ['WARNING a is away', 'WARNING b is away']
    outage.forget('a')
    outage.ended('a', key='a')
    outage.ended('b', key='b')
    assert lines(caplog) == ['INFO b is back (after 0 s and 1 failures)']


def test_an_outage_is_logged_with_its_stack_where_that_is_wanted(caplog: pytest.LogCaptureFixture) -> None:
    outage = OutageLog(LOG, 'failed', 'works')
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        outage.failed(exc_info=True)
    assert caplog.records[0].exc_info


def test_the_same_is_said_once_and_counted_after_a_minute(clock: Clock) -> None:
    limit = RateLimitedLog(clock)
    assert [limit.admit('unsigned') for _ in range(50)] == [''] + [None] * 49
    clock.now += 59
    assert limit.admit('unsigned') is None
    clock.now += 1
    assert limit.admit('unsigned') == ' (and 50 times more since the last such line)'
    assert limit.admit('unsigned') is None


def test_each_kind_of_each_source_is_admitted(clock: Clock) -> None:
    limit = RateLimitedLog(clock)
    for expected in ('', None, None):
        for kind, source in (('unsigned', 'a'), ('BADSIG', 'a'), ('BADSIG', 'b'), ('BADTIME', None)):
            assert limit.admit(kind, source) == expected


def test_after_it_has_worked_a_failure_is_news(clock: Clock) -> None:
    limit = RateLimitedLog(clock)
    assert [limit.admit('BADSIG', 'a') for _ in range(2)] == ['', None]
    limit.reset('b')
    assert limit.admit('BADSIG', 'a') is None
    limit.reset('a')
    assert limit.admit('BADSIG', 'a') == ''


def test_ten_thousand_sources_fill_neither_memory_nor_log(clock: Clock) -> None:
    limit = RateLimitedLog(clock)
    for network in range(2):
        admitted = [limit.admit('unsigned', (network, number)) for number in range(10000)]
        assert 0 < sum(each is not None for each in admitted) <= MOST
        assert len(limit._last) <= MOST + 1
        clock.now += 60


def test_those_beyond_the_sources_told_apart_are_counted_together(clock: Clock) -> None:
    limit = RateLimitedLog(clock)
    for number in range(MOST):
        limit.admit('unsigned', number)
    limit.admit('unsigned', 'beyond')
    clock.now += logs.EVERY / 2
    for number in range(MOST):  # the sources that are known are still in their minute
        assert limit.admit('unsigned', number) is None
    clock.now += logs.EVERY / 2
    for number in range(MOST - 1):
        limit.admit('unsigned', number)
    assert limit.admit('unsigned', 'beyond') is not None


def test_what_works_and_fails_in_turn_does_not_fill_the_log(clock: Clock) -> None:
    limit = RateLimitedLog(clock)
    admitted = 0
    for _ in range(1000):
        admitted += limit.admit('BADSIG', 'a') is not None
        limit.reset('a')
    assert admitted == MOST


def test_after_a_flood_a_source_is_heard_of_again(clock: Clock) -> None:
    limit = RateLimitedLog(clock)
    for number in range(10000):
        limit.admit('unsigned', number)
    clock.now += 60
    assert limit.admit('BADSIG', 'a') == ''


@pytest.mark.parametrize(('error', 'told'), [
    (DatabaseUnavailable(service='the database', why='none'), []),
    (ServiceUnavailable(service='central', why='none'), [
        'ERROR it failed once', 'ERROR not read: central does not answer: none.', 'INFO read again (after 0 s and 2 '
        'failures)']),
], ids=['an outage that was logged where it was noticed', 'another failure'])
def test_what_follows_from_a_logged_outage_is_not_logged_again(
        error: ServiceUnavailable, told: list[str], clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    outage = OutageLog(LOG, 'not read: %s', 'read again', clock=clock)
    caplog.set_level(logging.DEBUG)
    logs.failure(LOG, error, 'it failed %s', 'once')
    outage.failed(error)
    outage.failed(error)
    outage.ended()
    assert lines(caplog) == told


def test_an_outage_that_goes_on_for_another_reason_is_logged(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    outage = OutageLog(LOG, 'not read: %s', 'read again', clock=clock)
    outage.failed(DatabaseUnavailable(service='the database', why='none'))
    outage.failed('no such table')
    assert lines(caplog) == ['ERROR not read: no such table']
