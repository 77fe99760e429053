"""What is told of domains: to the log and to whoever is notified."""

from __future__ import annotations

import dataclasses
import logging
from datetime import timedelta

import pytest
from prometheus_client import REGISTRY

from designate_pool.central.events import (CREATE, DELETE, SHARE, UPDATE, DomainTransition, EventSender,
                                           changed_by_another_request)
from designate_pool.model import (Action, Actor, Context, Domain, KeyScope, Pool, Record, RecordSet, Status,
                                  StoredTsigKey, Tld, TransferStatus, ZoneShare, ZoneTransferAccept,
                                  ZoneTransferRequest, utcnow)
from tests.fixtures.notifications import Recorder

NOW = utcnow()
DOMAIN = Domain('1' * 32, 'example.com.', '2' * 32, 'told', 'hostmaster@example.com', 3600, 7, request_id='req-1',
                project_id='p', changed_at=NOW - timedelta(seconds=3))
ACTIVE = dataclasses.replace(DOMAIN, action=Action.NONE, status=Status.ACTIVE, reported_serial=7, converged_at=NOW)
FAILED = dataclasses.replace(DOMAIN, status=Status.ERROR)
ACTOR = Actor('alice', 'red', '192.0.2.7', 'curl/8')
SHOWN = {'user': 'alice', 'project_id': 'red', 'address': '192.0.2.7', 'client': 'curl/8', 'approved_by': ''}
CONTEXT = Context('req-1', 'red', user='alice', address='192.0.2.7', client='curl/8')


@pytest.fixture
def kept() -> Recorder:
    return Recorder()


def test_a_transition_is_one_line_with_all_that_belongs_to_it(kept: Recorder, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        EventSender(kept).transitions(ACTOR, [DomainTransition(DOMAIN, ACTIVE), DomainTransition(DOMAIN, FAILED)])
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ('INFO', 'CREATE of example.com. at serial 7: ACTIVE, was PENDING [req-1]'),
        ('WARNING', 'CREATE of example.com. at serial 7: ERROR, was PENDING [req-1]')]
    assert caplog.records[0].extra == {  # type: ignore[attr-defined]
        'domain': 'example.com.', 'server': None, 'action': 'CREATE', 'serial': 7, 'status': 'ACTIVE',
        'request_id': 'req-1'}


def test_a_transition_is_notified(kept: Recorder) -> None:
    EventSender(kept).transitions(ACTOR, [DomainTransition(DOMAIN, ACTIVE), DomainTransition(DOMAIN, FAILED)])
    assert [event for event, _ in kept.told] == ['dns.zone.active', 'dns.zone.error']
    assert kept.told[0][1] == {
        'id': '11111111-1111-1111-1111-111111111111', 'name': 'example.com.', 'serial': 7, 'status': 'ACTIVE',
        'action': 'NONE', 'ttl': 3600, 'project_id': 'p', 'pool_id': '22222222-2222-2222-2222-222222222222',
        'pool_name': 'told', 'request_id': 'req-1', 'former_status': 'PENDING', 'former_action': 'CREATE',
        'actor': SHOWN}


def test_an_entry_of_a_list_of_names_is_notified(kept: Recorder) -> None:
    EventSender(kept).value(CREATE, CONTEXT, Tld('1' * 32, 'com', created_at=NOW, updated_at=NOW))
    assert kept.told == [('dns.tld.create', {
        'id': '11111111-1111-1111-1111-111111111111', 'name': 'com', 'description': None, 'version': 1,
        'request_id': 'req-1', 'actor': SHOWN})]


def test_a_tsig_key_is_notified_without_its_secret(kept: Recorder) -> None:
    key = StoredTsigKey('1' * 32, 'transfer.', 'hmac-sha256', KeyScope.POOL, '2' * 32, created_at=NOW, updated_at=NOW)
    assert EventSender(kept).value(DELETE, CONTEXT, key) is key
    assert kept.told == [('dns.tsigkey.delete', {
        'id': '11111111-1111-1111-1111-111111111111', 'name': 'transfer.', 'algorithm': 'hmac-sha256', 'scope': 'POOL',
        'resource_id': '22222222-2222-2222-2222-222222222222', 'version': 1, 'request_id': 'req-1', 'actor': SHOWN})]


def test_a_share_is_notified(kept: Recorder) -> None:
    EventSender(kept).value(SHARE, CONTEXT, ZoneShare('1' * 32, '2' * 32, 'red', 'blue'))
    share, zone = (f'{digit * 8}-{digit * 4}-{digit * 4}-{digit * 4}-{digit * 12}' for digit in '12')
    assert kept.told == [('dns.zone.share', {'id': share, 'zone_id': zone, 'project_id': 'red',
                                             'target_project_id': 'blue', 'request_id': 'req-1', 'actor': SHOWN})]


def test_a_transfer_is_notified_without_its_key(kept: Recorder) -> None:
    sender, context = EventSender(kept), CONTEXT
    sender.value(CREATE, context, ZoneTransferRequest('1' * 32, '2' * 32, 'example.com.', key='secret',
                                                      project_id='red', target_project_id='blue'))
    sender.value(CREATE, context, ZoneTransferAccept('3' * 32, '1' * 32, '2' * 32, 'blue', TransferStatus.COMPLETE))
    request, zone, accept = (f'{digit * 8}-{digit * 4}-{digit * 4}-{digit * 4}-{digit * 12}' for digit in '123')
    assert kept.told == [
        ('dns.zone_transfer_request.create', {
            'id': request, 'zone_id': zone, 'status': 'ACTIVE', 'project_id': 'red', 'version': 1,
            'zone_name': 'example.com.', 'target_project_id': 'blue', 'description': None, 'request_id': 'req-1',
            'actor': SHOWN}),
        ('dns.zone_transfer_accept.create', {
            'id': accept, 'zone_id': zone, 'status': 'COMPLETE', 'project_id': 'blue', 'version': 1,
            'zone_transfer_request_id': request, 'request_id': 'req-1', 'actor': SHOWN})]


def test_only_what_converged_counts_as_converged(kept: Recorder) -> None:
    def observed(what: str) -> float:
        return REGISTRY.get_sample_value(f'designate_pool_convergence_seconds_{what}',
                                         {'pool': 'told', 'action': 'create'}) or 0.0

    before = observed('count'), observed('sum')
    EventSender(kept).transitions(ACTOR, [DomainTransition(DOMAIN, ACTIVE), DomainTransition(DOMAIN, FAILED)])
    assert (observed('count') - before[0], observed('sum') - before[1]) == (1, 3)


def test_a_recordset_is_notified_with_its_zone(kept: Recorder) -> None:
    recordset = RecordSet('www.example.com.', 'A', (Record('192.0.2.1'),), id='3' * 32, ttl=60)
    EventSender(kept).zone(DELETE, ACTOR, DOMAIN, recordset=recordset)
    ((event, payload),) = kept.told
    assert event == 'dns.recordset.delete'
    assert (payload['zone_id'], payload['zone_name'], payload['serial'], payload['records']) == (
        '11111111-1111-1111-1111-111111111111', 'example.com.', 7, ['192.0.2.1'])


def test_a_change_of_a_pool_is_notified(kept: Recorder) -> None:
    pool = Pool('silver', '3' * 32, name_servers=('ns1.example.com.', 'ns2.example.com.'), priorities=(1, 10),
                attributes='{"service_tier": "silver"}')
    EventSender(kept).value(CREATE, CONTEXT, pool)
    ((event, payload),) = kept.told
    assert event == 'dns.pool.create'
    assert (payload['id'], payload['name'], payload['attributes'], payload['request_id']) == (
        '33333333-3333-3333-3333-333333333333', 'silver', {'service_tier': 'silver'}, 'req-1')
    assert payload['ns_records'] == [{'hostname': 'ns1.example.com.', 'priority': 1},
                                     {'hostname': 'ns2.example.com.', 'priority': 10}]


def test_a_change_without_a_new_serial_is_no_transition(kept: Recorder, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        EventSender(kept).zone(UPDATE, ACTOR, ACTIVE, changed=False)
    assert [event for event, _ in kept.told] == ['dns.zone.update'] and not caplog.records


def test_what_another_request_has_done_was_said_before() -> None:
    assert changed_by_another_request(Context(request_id='req-2'), DOMAIN)
    assert not changed_by_another_request(CONTEXT, DOMAIN)
    assert not changed_by_another_request(Context(), DOMAIN)
