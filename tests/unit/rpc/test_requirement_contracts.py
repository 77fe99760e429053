"""The methods that the specifications name: their arguments, whether they are cast or called, and who takes them."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from designate_pool.central.service import Central
from designate_pool.minidns.service import MiniDns
from designate_pool.model import Answer, Context, Domain, Outcome, PollResult, utcnow
from designate_pool.pool_manager.service import PoolManager
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.minidns import MiniDnsClient
from designate_pool.rpc.pool_manager import PoolManagerClient

CONTEXT = Context('req-1')
NOW = utcnow()
DOMAIN = Domain('d' * 32, 'example.com.', 'p' * 32, 'gold', 'hostmaster@example.com', 300, 7)
TRIES = {'timeout': 30.0, 'retry_interval': 2.0, 'max_retries': 3}
ASKED = {'domain': DOMAIN, 'destination': '192.0.2.1:53', **TRIES}
PAGE = {'criterion': {'name': 'g*'}, 'marker': 'm' * 32, 'limit': 5, 'sort_key': 'name', 'sort_dir': 'desc'}

#: Of each topic: who calls, and who answers.
ENDS: dict[str, tuple[Any, Any]] = {
    'pool_manager.gold': (PoolManagerClient, PoolManager),
    'central': (CentralClient, Central),
    'minidns.gold': (MiniDnsClient, MiniDns),
}
METHODS: list[tuple[str, str, str, dict[str, Any]]] = [
    ('pool_manager.gold', 'cast', 'create_domain', {'domain': DOMAIN}),
    ('pool_manager.gold', 'cast', 'update_domain', {'domain': DOMAIN}),
    ('pool_manager.gold', 'cast', 'delete_domain', {'domain': DOMAIN}),
    ('pool_manager.gold', 'cast', 'update_status', {
        'domain': DOMAIN, 'name_server': 's' * 32, 'status': Outcome.ERROR, 'serial_number': None}),
    ('central', 'call', 'update_status', {'domain': DOMAIN, 'status': Outcome.SUCCESS, 'serial_number': 7}),
    ('central', 'call', 'create_pool', {'pool': {'name': 'gold'}}),
    ('central', 'call', 'find_pools', PAGE),
    ('central', 'call', 'get_pool', {'pool_id': 'p' * 32}),
    ('central', 'call', 'update_pool', {'pool': {'id': 'p' * 32, 'name': 'silver'}}),
    ('central', 'call', 'delete_pool', {'pool_id': 'p' * 32}),
    ('minidns.gold', 'cast', 'notify_zone_changed', ASKED),
    ('minidns.gold', 'cast', 'poll_for_serial_number', ASKED),
    ('minidns.gold', 'cast', 'notify_and_poll', {'pool_name': 'gold', 'requests': [], **TRIES}),
    ('minidns.gold', 'cast', 'audit_serials', {'pool_name': 'gold', 'started_at': NOW, 'server_ids': ['s' * 32],
                                               'domains': [(DOMAIN.id, DOMAIN.name, DOMAIN.serial)]}),
]
WITHOUT_RETURN = {'update_status', 'delete_pool'}


class Noting:
    """Notes what is sent; a call is answered with a word."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Context, str, dict[str, Any]]] = []

    def call(self, topic: str, context: Context, method: str, *, patience: float | None = None,
             **arguments: Any) -> Any:
        self.sent.append(('call', topic, context, method, arguments))
        return 'the answer'

    def cast(self, topic: str, context: Context, method: str, **arguments: Any) -> None:
        self.sent.append(('cast', topic, context, method, arguments))


@pytest.mark.parametrize(('topic', 'kind', 'method', 'arguments'), METHODS,
                         ids=[f'{topic} {method}' for topic, _, method, _ in METHODS])
def test_a_method_is_sent_as_specified_and_taken_so(topic: str, kind: str, method: str,
                                                    arguments: dict[str, Any]) -> None:
    client, endpoint = ENDS[topic]
    caller = Noting()
    returned = getattr(client(caller), method)(CONTEXT, *arguments.values())
    assert caller.sent == [(kind, topic, CONTEXT, method, arguments)]
    assert returned == (None if kind == 'cast' or method in WITHOUT_RETURN else 'the answer')
    assert list(inspect.signature(getattr(endpoint, method)).parameters) == ['self', 'context', *arguments]


def test_what_came_of_an_audit_is_sent_to_the_pool_s_managers() -> None:
    caller = Noting()
    found = PollResult(DOMAIN.id, 's' * 32, Outcome.ERROR, Answer.NO_ZONE, expected_serial=7)
    PoolManagerClient(caller).audited(CONTEXT, 'gold', NOW, [('s' * 32, 999, 1)], [found])
    arguments = {'started_at': NOW, 'counts': [('s' * 32, 999, 1)], 'findings': [found]}
    assert caller.sent == [('cast', 'pool_manager.gold', CONTEXT, 'audited', arguments)]
    assert list(inspect.signature(PoolManager.audited).parameters) == ['self', 'context', *arguments]
