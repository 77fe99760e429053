"""Every value comes out of a message as it went in."""

from __future__ import annotations

import dataclasses
import json

import pytest

from designate_pool import model
from designate_pool.errors import InvalidField
from designate_pool.rpc.serializer import pack, unpack

NOW = model.utcnow()
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
