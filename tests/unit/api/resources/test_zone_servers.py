"""Where a zone stands on each server: one test per situation."""

from __future__ import annotations

import dataclasses
import uuid
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from designate_pool.api.resources.zone_servers import _changed_by
from designate_pool.api.views import zone_servers
from designate_pool.model import Action, Actor, ChangeKind, Context, Domain, Outcome, ServerState, ServerStatus, Version
from designate_pool.storage.operations import server_statuses
from tests.fixtures.observed_central import FIRST_SERIAL, POOL, SERVER_IDS, SERVERS

NOON = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
CREATE, UPDATE, DELETE = Action.CREATE, Action.UPDATE, Action.DELETE
SUCCESS, ERROR = Outcome.SUCCESS, Outcome.ERROR


@pytest.fixture
def seen(api, central, zone):
    """Writes rows as ``server, action, status, serial`` and gives what the API shows of them."""
    domain_id = uuid.UUID(zone['id']).hex

    def show(*rows):
        for row in rows:
            central.row(domain_id, *row)
        answer = api.simulate_get(f'/v2/zones/{zone["id"]}/servers')
        assert answer.status_code == 200
        return answer.json

    return show


def words(shown):
    return [(each['action'], each['status'], each['current']) for each in shown['servers']]


def test_nothing_has_begun(seen, zone):
    shown = seen()
    assert (shown['zone_id'], shown['zone_name'], shown['serial']) == (zone['id'], 'example.com.', FIRST_SERIAL)
    assert (shown['status'], shown['action'], shown['current']) == ('PENDING', 'CREATE', 0)
    assert (shown['threshold_percentage'], shown['needed'], shown['total']) == (66, 2, 3)
    assert words(shown) == [('CREATE', 'PENDING', False)] * 3
    assert shown['resting'] == []
    assert shown['servers'][0] == {
        'id': str(uuid.UUID(SERVER_IDS[0])), 'name': 'fake:192.0.2.1:53', 'driver': 'fake', 'host': '192.0.2.1',
        'port': 53, 'state': 'active', 'state_since': '2026-05-01T11:48:00.000000', 'silent_since': None,
        'counts': True, 'action': 'CREATE', 'status': 'PENDING', 'current': False, 'serial': None,
        'expected_serial': FIRST_SERIAL, 'last_error': None, 'reason': None, 'attempts': 0, 'next_attempt_at': None,
        'deadline_at': None, 'plan_id': None, 'diverged': False, 'seen_at': None, 'signs': False, 'released': True,
        'created_at': None, 'updated_at': None}


def test_create_is_what_matters_until_it_has_succeeded(seen):
    shown = seen((0, CREATE, SUCCESS, None), (0, UPDATE, None, None), (1, CREATE, SUCCESS, None),
                 (2, CREATE, ERROR, None), (2, UPDATE, SUCCESS, FIRST_SERIAL))
    assert words(shown) == [('UPDATE', 'PENDING', False), ('CREATE', 'SUCCESS', False), ('CREATE', 'ERROR', False)]


def test_a_row_that_succeeded_for_an_older_serial_is_behind(api, seen, zone):
    assert words(seen((0, UPDATE, SUCCESS, FIRST_SERIAL)))[0] == ('UPDATE', 'SUCCESS', True)
    api.simulate_patch(f'/v2/zones/{zone["id"]}', json={'ttl': 60})
    shown = seen()
    assert words(shown)[0] == ('UPDATE', 'SUCCESS', False)
    assert shown['current'] == 0


def test_while_a_zone_goes_only_the_delete_rows_count(api, seen, zone):
    api.simulate_delete(f'/v2/zones/{zone["id"]}')
    shown = seen((0, UPDATE, SUCCESS, FIRST_SERIAL), (1, DELETE, SUCCESS, None), (2, DELETE, ERROR, FIRST_SERIAL))
    assert words(shown) == [('DELETE', 'PENDING', False), ('DELETE', 'SUCCESS', True), ('DELETE', 'ERROR', False)]
    assert shown['current'] == 1


def test_a_row_of_a_server_that_left_the_pool_is_not_shown(central, zone, seen):
    row = ServerStatus('f' * 32, uuid.UUID(zone['id']).hex, UPDATE, FIRST_SERIAL, status=SUCCESS)
    central.storage.run(server_statuses.write, [row], NOON)
    central.put(SERVER_IDS[2], ServerState.REMOVED)
    assert [each['name'] for each in seen((2, UPDATE, SUCCESS, FIRST_SERIAL))['servers']] == [
        'fake:192.0.2.1:53', 'fake:192.0.2.2:53']


@pytest.mark.parametrize('state, resting', [('maintenance', True), ('joining', True), ('draining', False)])
def test_a_server_that_does_not_count_is_shown_and_not_lacking(central, seen, state, resting):
    central.put(SERVER_IDS[1], ServerState(state))
    shown = seen((0, UPDATE, SUCCESS, FIRST_SERIAL), (1, UPDATE, SUCCESS, FIRST_SERIAL), (2, UPDATE, SUCCESS, 1))
    assert [(each['state'], each['counts'], each['current']) for each in shown['servers']] == [
        ('active', True, True), (state, False, True), ('active', True, False)]
    assert (shown['needed'], shown['total'], shown['current']) == (2, 2, 1)
    assert shown['resting'] == ([str(uuid.UUID(SERVER_IDS[1]))] if resting else [])


def test_a_server_that_joins_counts_where_it_was_asked_for():
    domain = Domain('a' * 32, 'example.com.', 'b' * 32, 'default', 'a@example.com', 60, 1)
    joining = [dataclasses.replace(each, state=ServerState.JOINING) for each in SERVERS]
    shown = zone_servers.zone_servers(domain, joining, [], dataclasses.replace(POOL, count_joining_servers=True), '')
    assert (shown['needed'], shown['total'], shown['resting']) == (2, 3, [])
    shown = zone_servers.zone_servers(domain, joining, [], POOL, '')
    assert (shown['total'], len(shown['resting'])) == (0, 3)


@pytest.mark.parametrize('state', ['maintenance', 'joining', 'draining'])
def test_a_zone_that_goes_is_shown_on_what_does_not_count_while_it_has_rows_there(api, central, zone, seen, state):
    api.simulate_delete(f'/v2/zones/{zone["id"]}')
    for each in SERVER_IDS[1:]:
        central.put(each, ServerState(state))
    shown = seen((0, DELETE, SUCCESS, None), (2, UPDATE, SUCCESS, FIRST_SERIAL))
    assert [(each['host'], each['current']) for each in shown['servers']] == [('192.0.2.1', True), ('192.0.2.3', False)]
    assert (shown['needed'], shown['total'], shown['current']) == (1, 1, 1)


def test_a_zone_of_a_pool_whose_threshold_was_never_published_shows_its_servers_without_a_count():
    domain = Domain('a' * 32, 'example.com.', 'b' * 32, 'default', 'a@example.com', 60, FIRST_SERIAL)
    row = ServerStatus(SERVER_IDS[0], domain.id, UPDATE, FIRST_SERIAL, status=SUCCESS, serial_number=FIRST_SERIAL)
    shown = zone_servers.zone_servers(domain, SERVERS[:1], [row], dataclasses.replace(POOL, published_at=None), '')
    assert (shown['needed'], shown['total'], shown['threshold_percentage']) == (None, None, None)
    assert [(each['name'], each['current']) for each in shown['servers']] == [('fake:192.0.2.1:53', True)]


@pytest.mark.parametrize('later', [ChangeKind.SIGNING, ChangeKind.RELEASE])
def test_who_changed_it_is_not_the_signer_nor_who_ended_a_wait(later):
    versions = [Version('a' * 32, 3, 9, 8 if later is ChangeKind.SIGNING else 9, later, Actor('somebody else')),
                Version('a' * 32, 2, 8, 7, ChangeKind.API, Actor('alice'))]
    api = SimpleNamespace(central=SimpleNamespace(find_versions=lambda *_: versions))
    assert _changed_by(api, Context(), Domain('a' * 32, 'example.com.', 'b' * 32, 'default', 'a@example.com', 60, 9)) \
        == 'alice'
