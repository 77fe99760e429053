"""``/v2/servers``."""

from __future__ import annotations

import uuid
from datetime import datetime, timezone

import pytest

from designate_pool.api.resources.servers import SERVER
from designate_pool.model import Comparison, PoolServer, Reason, ServerState
from tests.fixtures.observed_central import POOL_ID, SERVER_IDS

NOON = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
FIRST = f'/v2/servers/{SERVER_IDS[0]}'


def test_a_server_is_shown(api, central):
    central.put(SERVER_IDS[0], ServerState.JOINING, filled_to='a' * 32, filled=512, note='joins',
                reason=Reason.UNCHECKED, joined_at=NOON, silent_since=NOON,
                key_name='one.example.com.', verify='198.51.100.1:53,198.51.100.2:53',
                domains=1000, rows=600, waiting=7, failing=2, in_hand=3, oldest=NOON,
                failures=(('example.com.', 'CREATE', 'refused'),))
    answer = api.simulate_get(FIRST, headers={'Host': 'dns.example.net'})
    server_id = str(uuid.UUID(SERVER_IDS[0]))
    assert answer.json == {
        'id': server_id, 'name': 'fake:192.0.2.1:53', 'driver': 'fake', 'host': '192.0.2.1', 'port': 53,
        'pool_id': str(uuid.UUID(POOL_ID)), 'key_name': 'one.example.com.', 'state': 'joining',
        'verify': ['198.51.100.1:53', '198.51.100.2:53'],
        'state_since': '2026-05-01T11:48:00.000000', 'silent_since': '2026-05-01T12:00:00.000000',
        'joined_at': '2026-05-01T12:00:00.000000', 'filling': True, 'filled': 512, 'dismissed': False,
        'delete_zones': False, 'note': 'joins', 'reason': 'UNCHECKED', 'version': 1,
        'created_at': '2026-05-01T11:48:00.000000', 'updated_at': '2026-05-01T11:48:00.000000',
        'links': {'self': f'http://dns.example.net/v2/servers/{server_id}'},
        'zones': 1000, 'rows': 600, 'waiting': 7, 'failing': 2, 'in_hand': 3,
        'oldest_due_at': '2026-05-01T12:00:00.000000',
        'failures': [{'zone_name': 'example.com.', 'action': 'CREATE', 'error': 'refused'}]}
    listed = api.simulate_get('/v2/servers', headers={'Host': 'dns.example.net'}).json
    assert listed['servers'][0] == answer.json
    assert [each['host'] for each in listed['servers']] == ['192.0.2.1', '192.0.2.2', '192.0.2.3']
    assert listed['links'] == {'self': 'http://dns.example.net/v2/servers'}


@pytest.mark.parametrize('label, host', [('bind9:192.0.2.1:5300/inside', '192.0.2.1'), ('bind9:[::1]:5300/a-b', '::1'),
                                         ('bind9:ns1.example.com:5300', 'ns1.example.com')])
def test_a_server_s_address_is_told_whatever_its_view(label, host):
    shown = SERVER.show(PoolServer(SERVER_IDS[0], SERVER_IDS[0], label, 'bind9', ServerState.ACTIVE), '')
    assert (shown['name'], shown['host'], shown['port']) == (label, host, 5300)


def test_a_comparison(api, pool_manager):
    pool_manager.comparison = Comparison('', 3, ('a.example.',), (('b.example.', None, 7),), ('x.example.',),
                                         other=(('c.example.', 'more'),), unchecked=(('d.example.', 'no'),))
    answer = api.simulate_post(f'{FIRST}/resync', json={'contents': True})
    assert (answer.status_code, pool_manager.asked) == (200, [('default', SERVER_IDS[0], False, None, True)])
    shown = answer.json
    assert shown.pop('links')['server'].endswith(f'/v2/servers/{uuid.UUID(SERVER_IDS[0])}')
    assert shown == {
        'server_id': str(uuid.UUID(SERVER_IDS[0])), 'total': 3, 'missing': ['a.example.'],
        'behind': [{'zone_name': 'b.example.', 'serial': None, 'expected_serial': 7}], 'extra': ['x.example.'],
        'extra_complete': True, 'other': [{'zone_name': 'c.example.', 'why': 'more'}],
        'unchecked': [{'zone_name': 'd.example.', 'why': 'no'}], 'primary': None, 'mending': 0, 'deleted': 0}
