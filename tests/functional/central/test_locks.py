"""Locks of zones and recordsets: what requests may not change, and who may lift them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.central.service import Central
from designate_pool.model import Context, Domain, RecordChange, RecordSet
from tests.fixtures.central import WHO, contents, create, refused

RED, GUEST = Context(project_id='red'), Context(project_id='guest')
A = {'name': 'new.example.com.', 'type': 'A', 'records': ['192.0.2.7']}
#: What changes a zone, or its recordset www.
WRITES: dict[str, Callable[[Central, Domain, RecordSet], Any]] = {
    'set': lambda central, zone, www: central.update_domain(RED, zone.id, {'ttl': 77}),
    'create': lambda central, zone, www: central.create_recordset(RED, zone.id, A),
    'update': lambda central, zone, www: central.update_recordset(RED, zone.id, www.id, {'records': ['192.0.2.7']}),
    'describe': lambda central, zone, www: central.update_recordset(RED, zone.id, www.id, {'description': 'new'}),
    'ttl': lambda central, zone, www: central.update_recordset(RED, zone.id, www.id, {'ttl': 77}),
    'remove': lambda central, zone, www: central.delete_recordset(RED, zone.id, www.id),
    'changes': lambda central, zone, www: central.apply_changes(RED, zone.id, [
        RecordChange('new.example.com.', 'A', ('192.0.2.7',)), RecordChange('www.example.com.', 'A')]),
    'resource': lambda central, zone, www: central.set_resource_records(
        RED, {'plugin': 'nova', 'resource_type': 'instance', 'resource_id': '1'}, zone.id,
        [{'name': 'www.example.com.', 'type': 'A', 'data': '192.0.2.9'}]),
    'give': lambda central, zone, www: central.give_domain(Context(all_projects=True), zone.id, 'blue'),
    'transfer': lambda central, zone, www: central.create_transfer_request(RED, zone.id, {}),
    'move': lambda central, zone, www: central.move_domain(RED, zone.id),
    'abandon': lambda central, zone, www: central.abandon_domain(RED, zone.id),
    'delete': lambda central, zone, www: central.delete_domain(RED, zone.id),
}
#: Those that change a recordset that is there, or delete it with its zone.
OF_WWW = ('update', 'describe', 'ttl', 'remove', 'changes', 'resource', 'abandon', 'delete')


@pytest.fixture
def zone(central: Central) -> Domain:
    return create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']),
                  ('mail.example.com.', 'A', ['192.0.2.2']), who=RED)


def named(central: Central, zone: Domain, label: str) -> RecordSet:
    return next(each for each in central.find_recordsets(WHO, zone.id) if each.name == f'{label}.{zone.name}')


def test_nothing_of_a_locked_zone_is_changed(central: Central, zone: Domain) -> None:
    www, before = named(central, zone, 'www'), contents(central, zone)
    locked = central.set_lock(RED, zone.id, 'moving until Friday')
    assert (locked.lock_reason, locked.locked_by_admin, locked.serial) == ('moving until Friday', False, zone.serial)
    with pytest.raises(errors.Locked, match='example.com. is locked: moving until Friday; its owner may unlock it'):
        central.update_domain(RED, zone.id, {'ttl': 77})
    assert {name: refused(write, central, zone, www) for name, write in WRITES.items()} == dict.fromkeys(
        WRITES, 'locked')
    assert (contents(central, zone), central.get_domain(RED, zone.id)) == (before, locked)
    assert central.set_lock(RED, zone.id, None).lock_reason is None
    central.update_recordset(RED, zone.id, www.id, {'ttl': 77})


def test_a_locked_recordset_is_not_changed_and_the_others_are(central: Central, zone: Domain) -> None:
    www, mail, before = named(central, zone, 'www'), named(central, zone, 'mail'), contents(central, zone)
    central.set_recordset_lock(RED, zone.id, www.id, 'the front page')
    assert {name: refused(WRITES[name], central, zone, www) for name in OF_WWW} == dict.fromkeys(OF_WWW, 'locked')
    assert contents(central, zone) == before
    central.apply_changes(RED, zone.id, [RecordChange('www.example.com.', 'A', ('192.0.2.1',)),  # as it is
                                         RecordChange('mail.example.com.', 'A', ('192.0.2.3',))])
    central.set_recordset_lock(RED, zone.id, mail.id, 'that too')
    central.set_recordset_lock(RED, zone.id, mail.id, None)
    assert central.get_domain(RED, zone.id).locked_recordsets == 1
    assert central.set_recordset_lock(RED, zone.id, www.id, None).lock_reason is None
    central.delete_recordset(RED, zone.id, www.id)
    assert central.delete_domain(RED, zone.id).is_going


def test_the_ttl_of_a_locked_recordset_is_not_changed_by_that_of_its_zone(central: Central, zone: Domain) -> None:
    www, mail = named(central, zone, 'www'), named(central, zone, 'mail')
    central.update_recordset(RED, zone.id, mail.id, {'ttl': 60})
    central.set_recordset_lock(RED, zone.id, mail.id, 'asked for')
    assert central.update_domain(RED, zone.id, {'ttl': 77}).ttl == 77
    central.set_recordset_lock(RED, zone.id, www.id, 'the site')
    with pytest.raises(errors.Locked, match='The recordset www.example.com. A is locked: the site'):
        central.update_domain(RED, zone.id, {'ttl': 78})
    assert central.update_domain(RED, zone.id, {'ttl': 77, 'description': 'ours'}).description == 'ours'


def test_the_service_goes_on_in_a_locked_zone(central: Central, zone: Domain) -> None:
    central.set_recordset_lock(RED, zone.id, named(central, zone, 'www').id, 'the front page')
    central.set_lock(RED, zone.id, 'an incident')
    central.update_pool(WHO, {'id': zone.pool_id, 'name_servers': ['ns9.example.org.']})
    assert any('ns9.example.org.' in line for line in contents(central, zone))
    assert central.raise_serial_above(WHO, zone.id, zone.serial + 1000).serial > zone.serial + 1000


@pytest.mark.parametrize('what', ['zone', 'recordset'])
def test_what_an_administrator_locked_only_one_unlocks(central: Central, zone: Domain, what: str) -> None:
    www = named(central, zone, 'www')

    def lock(reason: str | None, is_admin: bool = False) -> Any:
        return central.set_lock(RED, zone.id, reason, is_admin) if what == 'zone' else \
            central.set_recordset_lock(RED, zone.id, www.id, reason, is_admin)

    lock('mine')
    assert lock('ours', True).locked_by_admin
    assert [refused(lock, reason) for reason in (None, 'mine again')] == ['forbidden'] * 2
    with pytest.raises(errors.Locked, match='ours; only an administrator may unlock it'):
        WRITES['remove'](central, zone, www)
    assert not lock(None, True).locked_by_admin
    WRITES['remove'](central, zone, www)


def test_a_guest_locks_what_it_made_alone(central: Central, zone: Domain) -> None:
    central.share_domain(RED, zone.id, {'target_project_id': 'guest'})
    own = central.create_recordset(GUEST, zone.id, A)
    assert refused(central.set_lock, GUEST, zone.id, 'no') == 'forbidden'
    assert refused(central.set_recordset_lock, GUEST, zone.id, named(central, zone, 'www').id, 'no') == 'forbidden'
    central.set_recordset_lock(GUEST, zone.id, own.id, 'mine')
    assert refused(central.delete_recordset, GUEST, zone.id, own.id) == 'locked'
    central.set_recordset_lock(RED, zone.id, own.id, 'ours', is_admin=True)
    assert refused(central.delete_domain, RED, zone.id, True) == 'locked'
    central.set_recordset_lock(RED, zone.id, own.id, None, is_admin=True)
    central.set_recordset_lock(GUEST, zone.id, own.id, 'mine')
    assert central.delete_domain(RED, zone.id, True).is_going


def test_what_the_pool_determines_has_no_lock(central: Central, zone: Domain) -> None:
    soa = next(each for each in central.find_recordsets(RED, zone.id) if each.type == 'SOA')
    assert refused(central.set_recordset_lock, RED, zone.id, soa.id, 'no') == 'bad_request'
    assert refused(central.set_recordset_lock, RED, zone.id, 'f' * 32, 'no') == 'recordset_not_found'
    assert refused(central.set_lock, RED, zone.id, 'x' * 256) == 'invalid_object'


def test_a_transfer_of_a_zone_that_was_locked_since(central: Central, zone: Domain) -> None:
    request = central.create_transfer_request(RED, zone.id, {})
    central.set_lock(RED, zone.id, 'not now')
    blue = Context(project_id='blue')
    assert refused(central.create_transfer_accept, blue, request.id, request.key) == 'locked'
    central.set_lock(RED, zone.id, None)
    central.create_transfer_accept(blue, request.id, request.key)
