"""What is asked of Central about plans and changes: as the client sends it, so Central takes it, over a message."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

from designate_pool.central.service import Central
from designate_pool.model import Context, PlanState, RecordChange, StoredPlan
from designate_pool.rpc.central import LONG, CentralClient
from designate_pool.rpc.serializer import pack, unpack

CONTEXT = Context('req-1')
PLAN = StoredPlan('p' * 32, 'default', '2 zones', 'ns1, ns2', PlanState.STORED, document='{"parts": []}')
CHANGES = [RecordChange('www.example.com.', 'A', ('192.0.2.1',), 60), RecordChange('a.example.com.', 'A')]
PAGE = {'criterion': {'state': 'PARKED'}, 'marker': 'm' * 32, 'limit': 5, 'sort_key': 'zone', 'sort_dir': 'desc'}
METHODS: list[tuple[str, dict[str, Any]]] = [
    ('apply_changes', {'domain_id': 'd' * 32, 'changes': CHANGES, 'serial': 7}),
    ('put_plan', {'plan': PLAN}),
    ('find_plans', PAGE),
    ('get_plan', {'plan_id': 'abcd'}),
    ('approve_plan', {'plan_id': 'abcd'}),
    ('drop_plan', {'plan_id': 'abcd'}),
    ('settle_plan', {'plan_id': 'abcd', 'state': PlanState.FAILED, 'why': 'refused'}),
]


class Noting:
    """Notes what is called, as it comes out of a message."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, dict[str, Any]]] = []
        self.patience: list[float | None] = []

    def call(self, topic: str, context: Context, method: str, *, patience: float | None = None,
             **arguments: Any) -> Any:
        self.sent.append((topic, method, unpack(json.loads(json.dumps(pack(arguments))))))
        self.patience.append(patience)
        return PLAN

    def cast(self, topic: str, context: Context, method: str, **arguments: Any) -> None:
        raise AssertionError('nothing is cast')


@pytest.mark.parametrize(('method', 'arguments'), METHODS, ids=[method for method, _ in METHODS])
def test_a_method_is_sent_and_taken(method: str, arguments: dict[str, Any]) -> None:
    caller = Noting()
    assert getattr(CentralClient(caller), method)(CONTEXT, *arguments.values()) is PLAN
    assert caller.sent == [('central', method, arguments)]
    taken = inspect.signature(getattr(Central, method)).parameters
    assert list(taken) == ['self', 'context', *arguments]
    sent = inspect.signature(getattr(CentralClient, method)).parameters
    assert [each.default for each in taken.values()] == [each.default for each in sent.values()]


def test_what_holds_a_whole_zone_may_take_long() -> None:
    caller = Noting()
    client = CentralClient(caller)
    client.apply_changes(CONTEXT, 'd' * 32, CHANGES)
    client.create_domain(CONTEXT, {'name': 'example.com.'}, [{'name': 'www.example.com.'}])
    client.create_domain(CONTEXT, {'name': 'example.com.'})
    assert caller.patience == [LONG, LONG, None]
