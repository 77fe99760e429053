"""What reaches the pool managers, and what a broker that is down does."""

from __future__ import annotations

import dataclasses
import logging
import threading
from typing import Any

import pytest

from designate_pool.central import cast_queue
from designate_pool.central.cast_queue import CastQueue
from designate_pool.errors import ServiceUnavailable
from designate_pool.model import Action, Context, Domain
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.runtime import Threads
from testing.inline import Inline
from testing.processes import wait_until

DOMAIN = Domain(id='d', name='example.com.', pool_id='p', pool_name='default', email='a@example.com', ttl=60, serial=5)


def domain(number: int, **values: Any) -> Domain:
    return dataclasses.replace(DOMAIN, id=f'd{number}', **values)


class Caller:
    """Keeps what is cast; can be down, and can hold a cast up."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Any]] = []
        self.down = False
        self.free = threading.Event()
        self.free.set()

    def call(self, topic: str, context: Context, method: str, **arguments: Any) -> Any:
        raise AssertionError('nothing is called')

    def cast(self, topic: str, context: Context, method: str, **arguments: Any) -> None:
        assert self.free.wait(10)
        if self.down:
            raise ServiceUnavailable(service=topic, why='no broker')
        (value,) = arguments.values()
        self.sent.append((topic, method, value))


@pytest.fixture
def caller() -> Caller:
    return Caller()


@pytest.mark.parametrize(('action', 'method'), [
    (Action.CREATE, 'create_domain'), (Action.UPDATE, 'update_domain'), (Action.DELETE, 'delete_domain')])
def test_one_alone_goes_at_once_by_its_own_method(caller: Caller, action: Action, method: str) -> None:
    changed = domain(1, action=action)
    CastQueue(PoolManagerClient(caller), Inline()).put(Context(), [changed])
    assert caller.sent == [('pool_manager.default', method, changed)]


def test_many_go_in_chunks_by_pool(caller: Caller) -> None:
    many = [domain(number) for number in range(cast_queue.MAX_BATCH + 1)]
    other = domain(9999, pool_name='other')
    CastQueue(PoolManagerClient(caller), Inline()).put(Context(), [*many, other])
    assert caller.sent == [('pool_manager.default', 'change_domains', many[:cast_queue.MAX_BATCH]),
                           ('pool_manager.default', 'create_domain', many[cast_queue.MAX_BATCH]),
                           ('pool_manager.other', 'create_domain', other)]


def test_what_comes_while_one_is_sent_goes_together_and_at_its_newest(caller: Caller) -> None:
    caller.free.clear()
    queue = CastQueue(PoolManagerClient(caller), Threads())
    queue.put(Context(), [domain(1)])
    wait_until(lambda: not queue._queue, 'the first is being sent')
    queue.put(Context(), [domain(2, serial=7), domain(3)])
    queue.put(Context(), [domain(2, serial=6), domain(3, generation=2, serial=4)])
    caller.free.set()
    queue.stop()
    assert caller.sent == [('pool_manager.default', 'create_domain', domain(1)),
                           ('pool_manager.default', 'change_domains',
                            [domain(2, serial=7), domain(3, generation=2, serial=4)])]


def test_an_outage_is_logged_once_and_ends(caller: Caller, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    queue = CastQueue(PoolManagerClient(caller), Inline())
    caller.down = True
    for number in range(3):
        queue.put(Context(), [domain(number)])
    caller.down = False
    for number in range(3, 5):
        queue.put(Context(), [domain(number)])
    assert [found.levelname for found in caplog.records] == ['WARNING', 'INFO']
    assert [value.id for _, _, value in caller.sent] == ['d3', 'd4']


def test_a_broker_that_hangs_neither_blocks_nor_fills_the_memory(caller: Caller) -> None:
    caller.free.clear()
    queue = CastQueue(PoolManagerClient(caller), Threads(), bound=10)
    queue.put(Context(), [domain(0)])
    wait_until(lambda: not queue._queue, 'the first is being sent')
    for number in range(1, 100):
        queue.put(Context(), [domain(number)])
    assert len(queue._queue) == 10
    queue.stop(seconds=0.05)
    assert not queue._queue
    caller.free.set()
