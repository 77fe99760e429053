"""``/v2/plans`` and ``/v2/zones/{id}/changes``."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta, timezone

import pytest

from designate_pool.model import PlanState, StoredPlan, utcnow
from designate_pool.storage.sql import schema
from designate_pool.storage.zones import plans
from tests.fixtures.observed_central import EVERYBODY, FIRST_SERIAL, SERVER_IDS

NOON = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
GOOD = {'zone_name': 'example.com.', 'target': 'ns1, ns2', 'document': {'parts': [{'zone': 'example.com.'}]}}


@pytest.fixture
def parked(central, zone):
    """A plan that waits on the second server."""
    plan = StoredPlan('abcdef01' * 4, 'default', 'example.com.', 'fake:192.0.2.2:53', PlanState.PARKED,
                      uuid.UUID(zone['id']).hex, SERVER_IDS[1], 'd' * 64, 'e' * 64, 1, 2, 3, 'too many deletes',
                      '{"changes": []}', expires_at=utcnow() + timedelta(hours=1))
    return central.storage.run(plans.put, plan, NOON)


def test_a_plan_is_shown_with_its_document(api, zone, parked):
    plan_id = str(uuid.UUID(parked.id))
    shown = api.simulate_get(f'/v2/plans/{plan_id}').json
    assert shown.pop('expires_at') == parked.expires_at.replace(tzinfo=None).isoformat(timespec='microseconds')
    base = 'http://falconframework.org/v2'
    assert shown == {
        'id': plan_id, 'pool_name': 'default', 'zone_name': 'example.com.', 'zone_id': zone['id'],
        'target': 'fake:192.0.2.2:53', 'server_id': str(uuid.UUID(SERVER_IDS[1])), 'state': 'PARKED', 'creates': 1,
        'updates': 2, 'deletes': 3, 'why': 'too many deletes', 'desired_digest': 'd' * 64, 'existing_digest': 'e' * 64,
        'asked_by': None, 'applied_at': None, 'created_at': '2026-05-01T12:00:00.000000',
        'updated_at': '2026-05-01T12:00:00.000000', 'document': {'changes': []},
        'links': {'self': f'{base}/plans/{plan_id}', 'zone': f'{base}/zones/{zone["id"]}',
                  'server': f'{base}/servers/{uuid.UUID(SERVER_IDS[1])}'}}


def test_by_its_first_digits(api, parked):
    for given in ('abcd', 'ABCDEF', 'abcdef01-abcd'):
        assert api.simulate_get(f'/v2/plans/{given}').json['id'] == str(uuid.UUID(parked.id))
    answer = api.simulate_get('/v2/plans/abc0')
    assert (answer.status_code, answer.json['type']) == (404, 'plan_not_found')
    for given in ('abc', 'xyzw', 'a' * 33):
        for ask, path in ((api.simulate_get, ''), (api.simulate_delete, ''), (api.simulate_post, '/approve')):
            answer = ask(f'/v2/plans/{given}{path}')
            assert (answer.status_code, answer.json['errors']['errors'][0]['path']) == (400, ['plan_id'])


def test_a_list_has_no_documents_and_leads_on(api, central, parked):
    for number in range(3):
        api.simulate_post('/v2/plans', json={**GOOD, 'zone_name': f'{number}.example.com.'})
    assert [each['state'] for each in api.simulate_get('/v2/plans?state=parked').json['plans']] == ['PARKED']
    assert len(api.simulate_get(f'/v2/plans?server={uuid.UUID(SERVER_IDS[1])}').json['plans']) == 1
    assert len(api.simulate_get('/v2/plans?zone=*.EXAMPLE.com.').json['plans']) == 3
    address, seen = '/v2/plans?limit=3', []
    while address:
        page = api.simulate_get(address).json
        seen += [(each['zone_name'], 'document' in each) for each in page['plans']]
        address = page['links'].get('next', '').replace('http://falconframework.org', '')
    assert sorted(seen) == [('0.example.com.', False), ('1.example.com.', False), ('2.example.com.', False),
                            ('example.com.', False)]


@pytest.mark.parametrize('field, body', [
    ('document', {'document': []}), ('id', {'id': 'abcd'}), ('why', {'why': 'bell\x07'}),
    ('state', {'state': 'APPLIED'}),
    ('expires_at', {'expires_at': 'tomorrow'}), ('expires_at', {'expires_at': '0001-01-01T00:00:00+14:00'}),
])
def test_a_wrong_plan(api, central, field, body):
    answer = api.simulate_post('/v2/plans', body=json.dumps({**GOOD, **body}),
                               headers={'Content-Type': 'application/json'})
    assert (answer.status_code, answer.json['errors']['errors'][0]['path']) == (400, [field])
    assert central.find_plans(EVERYBODY) == []


def test_on_which_server_of_a_zone_a_plan_waits(api, central, zone, parked):
    def plan_ids():
        servers = api.simulate_get(f'/v2/zones/{zone["id"]}/servers').json['servers']
        return [each['plan_id'] for each in servers]

    assert plan_ids() == [None, str(uuid.UUID(parked.id)), None]
    for values in ({'expires_at': utcnow() - timedelta(seconds=1)},
                   {'expires_at': parked.expires_at, 'state': PlanState.APPROVED}):
        central.storage.run(lambda tx: tx.execute(schema.plans.update().values(values)))
        assert plan_ids() == [None] * 3


@pytest.mark.parametrize('path, body', [
    ('changes', {}), ('changes.0', {'changes': ['x']}),
    ('changes.1.type', {'changes': [{'name': 'a.', 'type': 'A', 'records': []}, {'name': 'b.', 'records': []}]}),
    ('changes.0.records.1', {'changes': [{'name': 'a.', 'type': 'A', 'records': ['192.0.2.1', 7]}]}),
    ('changes.0.weight', {'changes': [{'name': 'a.', 'type': 'A', 'records': [], 'weight': 1}]}),
    ('serial', {'changes': [], 'serial': 2**32}),
])
def test_wrong_changes(api, central, zone, path, body):
    answer = api.simulate_post(f'/v2/zones/{zone["id"]}/changes', json=body)
    assert (answer.status_code, answer.json['errors']['errors'][0]['path']) == (400, path.split('.'))
    assert central.domain(uuid.UUID(zone['id']).hex).serial == FIRST_SERIAL


def test_what_holds_a_whole_zone_may_be_large(api, central, zone):
    """The API takes zone files of 1000 bytes here, other bodies of up to a mebibyte."""
    for path in ('/v2/zones', '/v2/plans', f'/v2/zones/{zone["id"]}/changes'):
        answer = api.simulate_post(path, body=b' ' * (1 << 20) + b'{}', headers={'Content-Type': 'application/json'})
        assert (answer.status_code, answer.json['type']) == (413, 'body_too_large')
        answer = api.simulate_post(path, body=b' ' * 900_000 + b'{}', headers={'Content-Type': 'application/json'})
        assert answer.status_code == 400
