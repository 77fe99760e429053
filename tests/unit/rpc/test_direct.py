"""RPC inside one process."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from designate_pool.errors import DomainNotFound, ServiceUnavailable
from designate_pool.model import Context
from designate_pool.rpc.direct import Direct
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
    caller.serve('topic', Endpoint, Endpoint())
    assert caller.call('topic', Context(), 'hear', what=7) == 7
    with pytest.raises(DomainNotFound):
        caller.call('topic', Context(), 'hear', what='bad')


def test_casts_are_carried_out_and_their_errors_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caller, endpoint = Direct(Threads().workers(2, 'casts')), Endpoint()
    caller.serve('topic', Endpoint, endpoint)
    with caplog.at_level(logging.WARNING):
        for what in ('bad', 'worse', 'good'):
            caller.cast('topic', Context(), 'hear', what=what)
        wait_until(lambda: endpoint.heard == ['good'] and len(caplog.records) == 2, 'all three are carried out')
    caller.stop()


def test_stopping_finishes_what_was_cast() -> None:
    caller, endpoint = Direct(Threads().workers(1, 'casts')), Endpoint()
    caller.serve('topic', Endpoint, endpoint)
    for number in range(100):
        caller.cast('topic', Context(), 'hear', what=number)
    caller.stop()
    assert endpoint.heard == list(range(100))


def test_a_topic_that_nobody_serves_is_named() -> None:
    with pytest.raises(ServiceUnavailable, match='minidns'):
        Direct(Inline().workers(1, 'casts')).call('minidns', Context(), 'hear', what=1)


def test_each_call_is_an_operation_of_its_own() -> None:
    class Naming:
        def name(self, context: Context) -> str:
            return context.operation_id

    caller = Direct(Inline().workers(1, 'casts'))
    caller.serve('central', Naming, Naming())
    context = Context(operation_id='same')
    assert len({caller.call('central', context, 'name') for _ in range(3)} - {'', 'same'}) == 3
