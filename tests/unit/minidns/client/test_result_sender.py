"""How results of polls get from the client loop to the pool managers: put together by server, in few messages."""

from __future__ import annotations

from typing import Any

import pytest

from designate_pool.minidns.acl import AllowedPeer
from designate_pool.minidns.client.soa_poller import AddressedResult, ResultSender, ToCaller, ToPool
from designate_pool.model import Answer, Context, Domain, Outcome, PollResult
from designate_pool.rpc.pool_manager import PoolManagerClient

POOL = ToPool('default', Context())
ADDRESSES = tuple(AllowedPeer(f's1#{number}', 'bind9:192.0.2.1:53', (f'192.0.2.{number + 2}',), 53)
                  for number in range(2))


class Caller:
    """Keeps what is cast.

    :ivar sent: method, topic, how many results
    """

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, int]] = []
        self.results: list[PollResult] = []

    def cast(self, topic: str, context: Context, method: str, **arguments: Any) -> None:
        self.sent.append((method, topic, len(arguments.get('results', ['one']))))
        self.results += arguments.get('results', [])

    def call(self, topic: str, context: Context, method: str, **arguments: Any) -> None:
        raise AssertionError('nothing is called')


@pytest.fixture
def caller() -> Caller:
    return Caller()


@pytest.fixture
def sender(caller: Caller) -> ResultSender:
    return ResultSender(PoolManagerClient(caller), lambda: {'s1': ADDRESSES}, max_incomplete=2)


def served(number: int, serial: int, seen: int | None = None, incarnation: int | None = None) -> PollResult:
    return PollResult('d1', f's1#{number}', Outcome.SUCCESS, Answer.SERIAL, serial if seen is None else seen,
                      expected_serial=serial, incarnation=incarnation)


def failed(number: int, serial: int, seen: int | None = None) -> PollResult:
    return PollResult('d1', f's1#{number}', Outcome.ERROR, Answer.TIMEOUT, seen, 'no answer', serial)


def tell(sender: ResultSender, caller: Caller, *results: PollResult) -> list[tuple[Outcome, int | None]]:
    """What is reported when *results* come, one after the other."""
    caller.results.clear()
    for result in results:
        sender.send((POOL, result))
    assert all(result.server_id == 's1' for result in caller.results)
    return [(result.status, result.serial_number) for result in caller.results]


def test_the_last_address_decides(sender: ResultSender, caller: Caller) -> None:
    assert tell(sender, caller, served(0, 7)) == []
    assert tell(sender, caller, served(1, 7, seen=8)) == [(Outcome.SUCCESS, 7)]
    assert tell(sender, caller, served(1, 9)) == []
    assert tell(sender, caller, served(0, 9)) == [(Outcome.SUCCESS, 9)]


def test_a_failure_names_its_address_and_may_be_mended_alone(sender: ResultSender, caller: Caller) -> None:
    assert tell(sender, caller, served(0, 7), failed(1, 7)) == [(Outcome.ERROR, None)]
    assert caller.results[0].error == '192.0.2.3:53: no answer'
    assert tell(sender, caller, served(1, 7)) == [(Outcome.SUCCESS, 7)]


@pytest.mark.parametrize(('results', 'reported'), [
    ((served(0, 7), served(1, 8)), []),
    ((served(0, 7), served(1, 8), served(0, 8)), [(Outcome.SUCCESS, 8)]),
    ((served(0, 7, incarnation=1), served(1, 7, incarnation=2)), []),
    ((served(0, 7, incarnation=1), served(1, 7, incarnation=2), served(0, 7, incarnation=2)), [(Outcome.SUCCESS, 7)]),
    ((failed(0, 7, seen=5), failed(1, 7, seen=6)), [(Outcome.ERROR, 5)]),
    ((failed(0, 8), failed(1, 8, seen=6)), [(Outcome.ERROR, None)]),
    ((served(0, 2**32 - 1, seen=1), served(1, 2**32 - 1)), [(Outcome.SUCCESS, 2**32 - 1)]),
], ids=['an older serial does not count', 'both are new', 'from before the zone was lost', 'both from after that',
        'the worst failure stands for all', 'no serial is worst', 'a serial that wraps is newer'])
def test_results_of_addresses_are_put_together(sender: ResultSender, caller: Caller, results: tuple[PollResult, ...],
                                               reported: list[tuple[Outcome, int | None]]) -> None:
    assert tell(sender, caller, *results) == reported


def test_results_that_stay_alone_do_not_grow_without_limit(sender: ResultSender, caller: Caller) -> None:
    for number in range(5):
        sender.send((POOL, PollResult(f'd{number}', 's1#0', Outcome.SUCCESS, Answer.SERIAL, 7, expected_serial=7)))
    assert len(sender._parts) == 2
    sender.send((POOL, PollResult('d4', 's1#1', Outcome.SUCCESS, Answer.SERIAL, 7, expected_serial=7)))
    assert [result.domain_id for result in caller.results] == ['d4'] and len(sender._parts) == 1


def of_one_address(number: int, pool_name: str = 'default') -> AddressedResult:
    return ToPool(pool_name, Context()), PollResult(f'd{number}', 's', Outcome.SUCCESS, Answer.SERIAL, 7)


def test_there_is_one_message_for_each_pool_and_each_caller(sender: ResultSender, caller: Caller) -> None:
    domain = Domain('d', 'example.com.', 'p', 'default', 'hostmaster@example.com', 300, 7)
    sender.send(of_one_address(1), of_one_address(2, 'other'),
                (ToCaller(Context(), domain, '192.0.2.1'), of_one_address(3)[1]), of_one_address(4))
    assert sorted(caller.sent) == [
        ('update_status', 'pool_manager.default', 1), ('update_statuses', 'pool_manager.default', 2),
        ('update_statuses', 'pool_manager.other', 1)]
    assert [result.domain_id for result in caller.results] == ['d1', 'd4', 'd2']
