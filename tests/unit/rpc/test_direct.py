"""RPC inside one process."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from designate_pool.errors import DomainNotFound, ServiceUnavailable
from designate_pool.model import Context
from designate_pool.rpc.direct import Composed, Direct
from designate_pool.runtime import Inline, Threads
from testing.processes import wait_until


class Endpoint:
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def hear(self, context: Context, what: Any) -> Any:
        if what == 'bad':
            raise DomainNotFound(domain='x')
        if what == 'worse':
            raise RuntimeError('a surprise')
        self.heard.append(what)
        return what


def test_a_call_returns_and_raises_like_a_function() -> None:
    caller = Direct(Inline().workers(1, 'casts'))
    caller.serve('topic', Endpoint())
    assert caller.call('topic', Context(), 'hear', what=7) == 7
    with pytest.raises(DomainNotFound):
        caller.call('topic', Context(), 'hear', what='bad')


def test_casts_are_carried_out_and_their_errors_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caller, endpoint = Direct(Threads().workers(2, 'casts')), Endpoint()
    caller.serve('topic', endpoint)
    with caplog.at_level(logging.WARNING):
        for what in ('bad', 'worse', 'good'):
            caller.cast('topic', Context(), 'hear', what=what)
        wait_until(lambda: endpoint.heard == ['good'] and len(caplog.records) == 2, 'all three are carried out')
    caller.stop()


def test_stopping_finishes_what_was_cast() -> None:
    caller, endpoint = Direct(Threads().workers(1, 'casts')), Endpoint()
    caller.serve('topic', endpoint)
    for number in range(100):
        caller.cast('topic', Context(), 'hear', what=number)
    caller.stop()
    assert endpoint.heard == list(range(100))


def test_a_topic_that_nobody_serves_is_named() -> None:
    with pytest.raises(ServiceUnavailable, match='minidns'):
        Direct(Inline().workers(1, 'casts')).call('minidns', Context(), 'hear', what=1)


class Remote:
    """What is sent to others."""

    def __init__(self) -> None:
        self.served: dict[str, Any] = {}
        self.sent: list[tuple[str, str, str]] = []

    def serve(self, topic: str, endpoint: Any, rank: int | None = None) -> None:
        self.served[topic] = endpoint

    def call(self, topic: str, context: Context, method: str, **arguments: Any) -> Any:
        self.sent.append(('call', topic, method))

    def cast(self, topic: str, context: Context, method: str, *, to_all: bool = False,
             **arguments: Any) -> None:
        self.sent.append(('cast to all' if to_all else 'cast', topic, method))

    def stop_serving(self) -> None:
        return

    def stop(self) -> None:
        return


def test_what_is_served_here_is_called_without_a_message_and_served_to_others() -> None:
    remote, endpoint = Remote(), Endpoint()
    caller = Composed(remote)
    caller.serve('central', endpoint)
    assert caller.call('central', Context(), 'hear', what=7, patience=1.0) == 7
    with pytest.raises(DomainNotFound):
        caller.call('central', Context(), 'hear', what='bad')
    assert remote.served == {'central': endpoint} and remote.sent == []


def test_casts_and_what_is_not_served_here_are_sent() -> None:
    remote = Remote()
    caller = Composed(remote)
    caller.serve('central', Endpoint())
    caller.cast('central', Context(), 'hear', what=1)
    caller.call('pool_manager.default', Context(), 'hear', what=1)
    caller.cast('central', Context(), 'hear', to_all=True, what=1)
    assert remote.sent == [('cast', 'central', 'hear'), ('call', 'pool_manager.default', 'hear'),
                           ('cast to all', 'central', 'hear')]


def test_each_call_is_an_operation_of_its_own() -> None:
    class Naming:
        def name(self, context: Context) -> str:
            return context.operation_id

    caller = Composed(Remote())
    caller.serve('central', Naming())
    context = Context(operation_id='same')
    assert len({caller.call('central', context, 'name') for _ in range(3)} - {'', 'same'}) == 3
