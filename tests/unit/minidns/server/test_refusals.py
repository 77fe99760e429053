"""When a refusal is a line in the log."""

from __future__ import annotations

import dataclasses

import pytest

from designate_pool.minidns.access.acl import Refusal
from designate_pool.minidns.server import refusals
from designate_pool.minidns.server.refusals import RefusalLog

STRANGER = Refusal(b'', '203.0.113.9', '', 'unsigned', '203.0.113.9 is no server of the pool')
BADSIG = Refusal(b'', '192.0.2.2', 'pool-key.', 'BADSIG', '192.0.2.2 has another secret for the key pool-key. (BADSIG)')


class Log:
    """Complaints in a time of their own, and their lines."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.now = 1000.0
        self.refusal_log = RefusalLog(lambda: self.now)
        self._caplog = caplog

    def refused(self, refusal: Refusal, times: int = 1) -> None:
        for _ in range(times):
            self.refusal_log.refused(refusal)

    def lines(self) -> list[str]:
        """Those since the last look."""
        found = [record.getMessage() for record in self._caplog.records]
        self._caplog.clear()
        return found


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Log:
    return Log(caplog)


def test_the_same_is_said_once_and_counted_after_a_minute(log: Log) -> None:
    log.refused(STRANGER, 50)
    assert log.lines() == ['refused: 203.0.113.9 is no server of the pool']
    log.now += 59
    log.refused(STRANGER)
    assert log.lines() == []
    log.now += 1
    log.refused(STRANGER, 2)
    assert log.lines() == ['refused: 203.0.113.9 is no server of the pool (and 50 times more since the last such line)']


def test_each_kind_of_each_key_and_address_is_said(log: Log) -> None:
    other_kind = dataclasses.replace(BADSIG, kind='BADTIME', why='the clocks differ')
    for _ in range(3):
        for refusal in (STRANGER, BADSIG, other_kind, dataclasses.replace(BADSIG, address='192.0.2.3'),
                        dataclasses.replace(BADSIG, key='other-key.')):
            log.refused(refusal)
    assert len(log.lines()) == 5


def test_after_it_has_worked_a_refusal_is_news(log: Log) -> None:
    log.refused(BADSIG, 2)
    log.refusal_log.accepted('192.0.2.2', 'other-key.')
    log.refused(BADSIG)
    assert len(log.lines()) == 1
    log.refusal_log.accepted('192.0.2.2', 'pool-key.')
    log.refused(BADSIG, 2)
    assert len(log.lines()) == 1


def strangers(count: int, network: int = 0) -> list[Refusal]:
    return [dataclasses.replace(STRANGER, address=f'10.{network}.{number >> 8}.{number & 255}')
            for number in range(count)]


def test_ten_thousand_strangers_fill_neither_memory_nor_log(log: Log) -> None:
    for stranger in strangers(10000):
        log.refused(stranger)
    assert len(log.lines()) <= refusals.MAX_KINDS
    assert len(log.refusal_log._kinds_by_source) <= refusals.MAX_KINDS + 1
    log.now += 60
    for stranger in strangers(10000, network=1):
        log.refused(stranger)
    assert 0 < len(log.lines()) <= refusals.MAX_KINDS
    assert len(log.refusal_log._kinds_by_source) <= refusals.MAX_KINDS + 1


def test_what_works_and_fails_in_turn_does_not_fill_the_log(log: Log) -> None:
    for _ in range(1000):
        log.refused(BADSIG)
        log.refusal_log.accepted('192.0.2.2', 'pool-key.')
    assert len(log.lines()) == refusals.MAX_KINDS


def test_after_a_flood_a_server_with_a_wrong_key_is_heard_of_again(log: Log) -> None:
    for stranger in strangers(10000):
        log.refused(stranger)
    log.now += 60
    log.lines()
    log.refused(BADSIG)
    assert log.lines() == ['refused: ' + BADSIG.why]
