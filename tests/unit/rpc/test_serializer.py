"""Every value comes out of a message as it went in."""

from __future__ import annotations

import dataclasses
import inspect
import json
from typing import Any

import pytest

from designate_pool import model
from designate_pool.central.service import Central
from designate_pool.errors import InvalidField
from designate_pool.minidns.service import MiniDns
from designate_pool.model import Answer, Context, Domain, Outcome, PollResult, utcnow
from designate_pool.pool_manager.service import PoolManager
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.minidns import MiniDnsClient
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.rpc.serializer import pack, unpack

NOW = utcnow()
VALUES = [
    model.Domain('a' * 32, 'example.com.', 'b' * 32, 'default', 'hostmaster@example.com', 3600, 4294967295,
                 model.Action.UPDATE, model.Status.ERROR, 3, 7, created_at=NOW),
    model.Pool('default', 'c' * 32, name_servers=('ns1.example.org.', 'ns2.example.org.'), updated_at=NOW),
    model.ServerStatus('s' * 32, 'd' * 32, model.Action.CREATE, 5, status=model.Outcome.ERROR, last_error='refused',
                       next_attempt_at=NOW),
    model.Report('d' * 32, model.Action.DELETE, 4, model.Outcome.SUCCESS, 9),
    model.PollRequest('d' * 32, 'example.com.', 9, 's' * 32, False),
    model.PollResult('d' * 32, 's' * 32, model.Outcome.SUCCESS, model.Answer.SERIAL, 9),
    model.PollResult('d' * 32, 's' * 32, model.Outcome.ERROR, model.Answer.BAD, reason=model.Reason.BAD_KEY),
]


@pytest.mark.parametrize('value', VALUES, ids=lambda value: type(value).__name__)
def test_round_trip(value: object) -> None:
    assert unpack(json.loads(json.dumps(pack(value)))) == value
    assert unpack(json.loads(json.dumps(pack([value, {'inside': value}])))) == [value, {'inside': value}]


def test_plain_values_in_lists_stay_as_they_are() -> None:
    domains = [('d' * 32, 'example.com.', 7), ('e' * 32, 'example.org.', None)]
    assert unpack(json.loads(json.dumps(pack({'domains': domains, 'at': NOW, 'mixed': [1, VALUES[4]]})))) == {
        'domains': [list(each) for each in domains], 'at': NOW, 'mixed': [1, VALUES[4]]}


def test_a_value_from_an_older_sender_takes_defaults() -> None:
    packed = pack(VALUES[4])
    packed['v'] = packed['v'][:4]
    assert unpack(packed) == dataclasses.replace(VALUES[4], notify=True)  # type: ignore[type-var]


def test_a_value_from_a_newer_sender_is_cut() -> None:
    packed = pack(VALUES[4])
    packed['v'].append('something new')
    assert unpack(packed) == VALUES[4]


def test_a_reason_that_only_a_newer_sender_knows_is_another() -> None:
    result = model.PollResult('d' * 32, 's' * 32, model.Outcome.ERROR, model.Answer.BAD, reason=model.Reason.BAD_KEY)
    packed = pack(result)
    place = [field.name for field in dataclasses.fields(result)].index('reason')
    packed['v'][place] = 'NEWER'
    assert unpack(packed) == dataclasses.replace(result, reason=model.Reason.OTHER)
    del packed['v'][place:]
    assert unpack(packed).reason is None


@pytest.mark.parametrize('packed', [
    {'!': 'Domain', 'v': ['too', 'short']}, {'!': 'Report', 'v': ['d', 'SING', 1, 'SUCCESS', 2]},
    {'!': 'Nothing', 'v': []},
    {'!': 'at', 'v': 'yesterday'}, {'!': 'Report'}])
def test_a_malformed_value_is_named(packed: dict[str, object]) -> None:
    with pytest.raises(InvalidField, match=str(packed['!'])):
        unpack(packed)


def test_a_server_and_its_secrets_are_not_sent() -> None:
    with pytest.raises(TypeError):
        pack(model.Server('s' * 32, 'bind9', '192.0.2.1'))
    with pytest.raises(TypeError):
        pack(model.Pool('default', servers=(model.Server('s' * 32, 'bind9', '192.0.2.1'),)))


CONTEXT = Context('req-1')
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
