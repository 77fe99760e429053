"""How results of polls get from the client loop to the pool managers: in few messages."""

from __future__ import annotations

from typing import Any

from designate_pool.minidns.client.event_loop import ClientLoop
from designate_pool.minidns.client.poll_results import ResultSender
from designate_pool.minidns.client.soa_poller import AddressedResult, ToCaller, ToPool
from designate_pool.model import Answer, Context, Domain, Outcome, PollResult
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.runtime import Threads
from testing.processes import wait_until


class Caller:
    """Keeps what is cast: method, topic, how many results."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, int]] = []

    def cast(self, topic: str, context: Context, method: str, **arguments: Any) -> None:
        self.sent.append((method, topic, len(arguments.get('results', ['one']))))

    def call(self, topic: str, context: Context, method: str, **arguments: Any) -> None:
        raise AssertionError('nothing is called')


def result(number: int, pool_name: str = 'default') -> AddressedResult:
    return ToPool(pool_name, Context()), PollResult(f'd{number}', 's', Outcome.SUCCESS, Answer.SERIAL, 7)


def test_there_is_one_message_for_each_pool_and_each_caller() -> None:
    caller = Caller()
    domain = Domain('d', 'example.com.', 'p', 'default', 'hostmaster@example.com', 300, 7)
    ResultSender(PoolManagerClient(caller)).send(
        result(1), result(2, 'other'), (ToCaller(Context(), domain, '192.0.2.1'), result(3)[1]), result(4))
    assert caller.sent == [('update_statuses', 'pool_manager.default', 2), ('update_statuses', 'pool_manager.other', 1),
                           ('update_status', 'pool_manager.default', 1)]


def test_results_between_other_posts_of_the_loop_go_in_one_message() -> None:
    caller = Caller()
    sender = ResultSender(PoolManagerClient(caller))
    logged: list[str] = []
    loop = ClientLoop()

    def send(found: list[AddressedResult]) -> None:
        sender.send(*found)

    def post() -> None:
        for number in range(100):
            loop.post(send, result(number))
            loop.post(logged.extend, f'line {number}')

    loop.start(Threads())
    loop.submit(post)
    wait_until(lambda: len(logged) == 100, 'all is handled')
    loop.stop()
    assert caller.sent == [('update_statuses', 'pool_manager.default', 100)]
    assert logged == [f'line {number}' for number in range(100)]
