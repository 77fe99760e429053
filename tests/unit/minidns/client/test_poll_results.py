"""Results of the addresses of one server, put together."""

from __future__ import annotations

import pytest

from designate_pool.minidns.acl import AllowedPeer
from designate_pool.minidns.client.poll_results import Verification
from designate_pool.minidns.client.soa_poller import AddressedResult, ToPool
from designate_pool.model import Answer, Context, Outcome, PollResult

POOL = ToPool('default', Context())
ADDRESSES = tuple(AllowedPeer(f's1#{number}', 'bind9:192.0.2.1:53', (f'192.0.2.{number + 2}',), 53)
                  for number in range(2))


@pytest.fixture
def told() -> list[AddressedResult]:
    return []


@pytest.fixture
def stage(told: list[AddressedResult]) -> Verification:
    return Verification(lambda: {'s1': ADDRESSES}, lambda *results: told.extend(results))


def served(number: int, serial: int, seen: int | None = None, incarnation: int | None = None) -> PollResult:
    return PollResult('d1', f's1#{number}', Outcome.SUCCESS, Answer.SERIAL, serial if seen is None else seen,
                      expected_serial=serial, incarnation=incarnation)


def failed(number: int, serial: int, seen: int | None = None) -> PollResult:
    return PollResult('d1', f's1#{number}', Outcome.ERROR, Answer.TIMEOUT, seen, 'no answer', serial)


def tell(stage: Verification, told: list[AddressedResult], *results: PollResult) -> list[tuple[Outcome, int | None]]:
    """What is reported when *results* come, one after the other."""
    told.clear()
    for each in results:
        stage.send((POOL, each))
    assert all(recipient is POOL and result.server_id == 's1' for recipient, result in told)
    return [(result.status, result.serial_number) for _, result in told]


def test_a_server_of_one_address_is_reported_as_it_is(stage: Verification, told: list[AddressedResult]) -> None:
    result = PollResult('d1', 's2', Outcome.ERROR, Answer.BAD, None, 'it refuses')
    stage.send((POOL, result))
    assert told == [(POOL, result)]


def test_the_last_address_decides(stage: Verification, told: list[AddressedResult]) -> None:
    assert tell(stage, told, served(0, 7)) == []
    assert tell(stage, told, served(1, 7, seen=8)) == [(Outcome.SUCCESS, 7)]
    assert tell(stage, told, served(1, 9)) == []
    assert tell(stage, told, served(0, 9)) == [(Outcome.SUCCESS, 9)]


def test_a_failure_names_its_address_and_may_be_mended_alone(stage: Verification, told: list[AddressedResult]) -> None:
    assert tell(stage, told, served(0, 7), failed(1, 7)) == [(Outcome.ERROR, None)]
    assert told[0][1].error == '192.0.2.3:53: no answer'
    assert tell(stage, told, served(1, 7)) == [(Outcome.SUCCESS, 7)]


def test_a_result_for_an_older_serial_does_not_count(stage: Verification, told: list[AddressedResult]) -> None:
    assert tell(stage, told, served(0, 7), served(1, 8)) == []
    assert tell(stage, told, served(0, 8)) == [(Outcome.SUCCESS, 8)]


def test_what_was_served_before_the_zone_was_lost_does_not_count(stage: Verification,
                                                                 told: list[AddressedResult]) -> None:
    assert tell(stage, told, served(0, 7, incarnation=1), served(1, 7, incarnation=2)) == []
    assert tell(stage, told, served(0, 7, incarnation=2)) == [(Outcome.SUCCESS, 7)]


def test_the_worst_failure_stands_for_all(stage: Verification, told: list[AddressedResult]) -> None:
    assert tell(stage, told, failed(0, 7, seen=5), failed(1, 7, seen=6)) == [(Outcome.ERROR, 5)]
    assert tell(stage, told, failed(0, 8), failed(1, 8, seen=6)) == [(Outcome.ERROR, None)]


def test_a_serial_that_wraps_is_newer(stage: Verification, told: list[AddressedResult]) -> None:
    assert tell(stage, told, served(0, 2**32 - 1, seen=1), served(1, 2**32 - 1)) == [(Outcome.SUCCESS, 2**32 - 1)]


def test_results_that_stay_alone_do_not_grow_without_limit(told: list[AddressedResult]) -> None:
    stage = Verification(lambda: {'s1': ADDRESSES}, lambda *results: told.extend(results), max_incomplete=2)
    for number in range(5):
        stage.send((POOL, PollResult(f'd{number}', 's1#0', Outcome.SUCCESS, Answer.SERIAL, 7, expected_serial=7)))
    assert len(stage._parts) == 2
    stage.send((POOL, PollResult('d4', 's1#1', Outcome.SUCCESS, Answer.SERIAL, 7, expected_serial=7)))
    assert [result.domain_id for _, result in told] == ['d4'] and len(stage._parts) == 1
