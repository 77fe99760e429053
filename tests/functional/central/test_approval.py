"""Changes that wait for the approval of somebody else, at every door that a change comes through."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool.api.services.zone_task_store import ZoneTaskStore
from designate_pool.central.import_worker import SMALL
from designate_pool.central.purger import Purger
from designate_pool.central.rules import plans as rules
from designate_pool.central.service import Central
from designate_pool.errors import ChangeMoved, Forbidden, NotFound, PoolError, Refused, WaitsForApproval, WrongPlanState
from designate_pool.model import (Context, Domain, PageRequest, PlanState, Pool, PoolServer, RecordChange, RecordSet,
                                  ServerState, StoredPlan, ZoneTaskKind, ZoneTaskStatus, ZoneTransferIn, new_id)
from designate_pool.settings import CentralSettings
from designate_pool.sink.service import WHO as SINK
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.sql import schema
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import pools
from testing.databases import count_statements
from tests.fixtures.central import WHO, Clock, contents, create, refused

ASKER = Context(project_id='red', user='ann', address='198.51.100.7', client='curl')
APPROVER = Context(project_id='red', user='bob', may_approve=True)
OPERATOR = Context(all_projects=True, user='carol', may_approve=True)
NEW = {'name': 'new.example.com.', 'type': 'A', 'records': ['192.0.2.7']}
RESOURCE = {'plugin': 'nova', 'resource_type': 'instance', 'resource_id': '1'}
ADDRESS = {'region': 'one', 'id': '2f3e', 'address': '192.0.2.9'}
WAITING = PageRequest({'state': 'PARKED'})


@dataclasses.dataclass
class Place:
    """Zones of a pool that requires approval; *zone* had other records at *former_serial*."""

    central: Central
    former_serial: int
    zone: Domain
    www: RecordSet
    secondary: Domain
    deleted: Domain
    other_pool: Pool


@pytest.fixture
def place(central: Central, database: Storage) -> Place:
    former = create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.99']), who=ASKER)
    zone = central.apply_changes(ASKER, former.id, [RecordChange('www.example.com.', 'A', ('192.0.2.1',))])
    secondary = central.create_domain(ASKER, {'name': 'example.info.', 'masters': ['198.51.100.53']})
    deleted = create(central, 'example.edu.', who=ASKER)
    central.delete_domain(ASKER, deleted.id)
    central.share_domain(ASKER, zone.id, {'target_project_id': 'guest'})
    central.set_floating_ip(ASKER, {**ADDRESS, 'id': '1f3e', 'address': '192.0.2.8'}, {'ptrdname': 'one.example.com.'})
    other = central.create_pool(WHO, {'name': 'other', 'name_servers': ['ns1.example.org.']})
    database.run(pool_servers.register, 'other', [PoolServer(
        new_id(), '', 'fake:192.0.2.1:53', 'fake', ServerState.ACTIVE, 'f' * 64, 0)], False, True, database.now())
    www = next(each for each in central.find_recordsets(WHO, zone.id) if each.type == 'A')
    require(database)
    return Place(central, former.serial, zone, www, secondary, deleted, other)


def require(database: Storage, required: bool = True) -> None:
    database.run(pools.publish, Pool('default', requires_approval=required), database.now())


def everything(database: Storage) -> dict[str, list[Any]]:
    """All that is stored of zones, but for what waits."""
    tables = (schema.domains, schema.recordsets, schema.records, schema.managed_records, schema.zone_versions,
              schema.zone_transfer_requests)
    return database.read(lambda tx: {table.name: sorted(map(repr, tx.execute(sa.select(table)))) for table in tables})


def ask(change: Callable[[], Any]) -> tuple[str, Any]:
    """The id of a change that waits, and what it asks for."""
    with pytest.raises(WaitsForApproval) as waiting:
        change()
    return waiting.value.kwargs['plan'], waiting.value.kwargs['value']


def approve(place: Place, plan_id: str, who: Context) -> str:
    try:
        return place.central.changes.approve(who, plan_id).state
    except PoolError as error:
        return error.type


def create_new(place: Place, who: Context = ASKER, **values: Any) -> Any:
    return place.central.create_recordset(who, place.zone.id, {**NEW, **values})


#: What changes a zone or its contents, with who asks for it.
DOORS: dict[str, Callable[[Place, Context], Any]] = {
    'recordset create': lambda place, who: create_new(place, who),
    'recordset update': lambda place, who: place.central.update_recordset(
        who, place.zone.id, place.www.id, {'records': ['192.0.2.7'], 'ttl': 77}),
    'recordset description': lambda place, who: place.central.update_recordset(
        who, place.zone.id, place.www.id, {'description': 'new'}),
    'recordset delete': lambda place, who: place.central.delete_recordset(who, place.zone.id, place.www.id),
    'guest': lambda place, who: create_new(place, dataclasses.replace(who, project_id='guest')),
    'changes': lambda place, who: place.central.apply_changes(who, place.zone.id, [
        RecordChange('new.example.com.', 'A', ('192.0.2.7',)), RecordChange('www.example.com.', 'A')],
        place.zone.serial),
    'revert': lambda place, who: place.central.revert_domain(who, place.zone.id, place.central.plan_revert(
        who, place.zone.id, str(place.former_serial))),
    'zone update': lambda place, who: place.central.update_domain(who, place.zone.id, {'ttl': 77}),
    'masters': lambda place, who: place.central.update_domain(who, place.secondary.id, {'masters': ['203.0.113.53']}),
    'zone delete': lambda place, who: place.central.delete_domain(who, place.zone.id, True),
    'restore': lambda place, who: place.central.restore_domain(who, place.deleted.id),
    'abandon': lambda place, who: place.central.abandon_domain(who, place.zone.id, True),
    'move': lambda place, who: place.central.move_domain(who, place.zone.id, place.other_pool.id),
    'give': lambda place, who: place.central.give_domain(who, place.zone.id, 'blue'),
    'transfer': lambda place, who: place.central.create_transfer_request(who, place.zone.id, {}),
    'floating IP': lambda place, who: place.central.set_floating_ip(who, ADDRESS, {'ptrdname': 'two.example.com.'}),
    'no floating IP': lambda place, who: place.central.unset_floating_ip(who, 'one', '1f3e'),
    'sink': lambda place, who: place.central.set_resource_records(
        dataclasses.replace(SINK, may_approve=who.may_approve), RESOURCE, place.zone.id,
        [{'name': 'new.example.com.', 'type': 'A', 'data': '192.0.2.7'}], place.central._now()),
}


@pytest.mark.parametrize('door', DOORS)
def test_a_change_waits_at_every_door_and_is_made_when_somebody_else_approves_it(
        place: Place, database: Storage, door: str) -> None:
    before = everything(database)
    if door == 'sink':  # which nobody answers
        DOORS[door](place, ASKER)
    else:
        ask(lambda: DOORS[door](place, ASKER))
    assert everything(database) == before
    change, = place.central.changes.find(WHO, WAITING)
    assert (change.why, change.asked_by) == (
        'waits for approval', SINK.user if door == 'sink' else 'ann of guest' if door == 'guest' else 'ann of red')
    assert place.central.changes.approve(OPERATOR, change.id).state is PlanState.APPLIED
    assert everything(database) != before
    assert not place.central.changes.find(WHO, WAITING)


#: Doors to zones of others, whose owners approve.
OF_OTHERS = ('guest', 'floating IP', 'no floating IP')


@pytest.mark.parametrize('door', DOORS)
def test_who_may_approve_changes_zones_that_it_sees_at_once(place: Place, door: str) -> None:
    DOORS[door](place, dataclasses.replace(APPROVER, all_projects=door in OF_OTHERS))
    assert not place.central.changes.find(WHO)


@pytest.mark.parametrize('door', OF_OTHERS)
def test_who_may_approve_changes_of_its_own_zones_waits_for_the_owner_of_another(place: Place, door: str) -> None:
    ask(lambda: DOORS[door](place, APPROVER))
    change, = place.central.changes.find(WHO, WAITING)
    colleague = dataclasses.replace(APPROVER, project_id=change.asking_project_id, user='dora')
    assert refused(place.central.changes.approve, colleague, change.id) == 'forbidden'
    assert place.central.changes.approve(OPERATOR, change.id).state is PlanState.APPLIED


def test_a_reverse_zone_is_made_below_a_guarded_one_by_those_alone_who_see_it(place: Place) -> None:
    create(place.central, '51.198.in-addr.arpa.', who=Context(
        project_id=CentralSettings().managed_resource_tenant_id))
    ask = functools.partial(place.central.set_floating_ip, floating_ip={**ADDRESS, 'address': '198.51.100.9'},
                            ptr={'ptrdname': 'two.example.com.'})
    assert refused(ask, APPROVER) == 'forbidden'
    ask(OPERATOR)


def test_the_service_itself_waits_for_nobody(place: Place) -> None:
    central, zone = place.central, place.zone
    central.update_pool(WHO, {'id': zone.pool_id, 'name_servers': ['ns9.example.org.']})
    renewed = central.get_domain(WHO, zone.id)
    assert 'ns9.example.org.' in str(contents(central, zone))
    assert central.raise_serial_above(Context(), zone.id, renewed.serial + 10).serial > renewed.serial + 10
    task, = central.claim_refreshes(WHO, 'default', 60, 10)
    transfer = ZoneTransferIn(7, 'ns1.example.info. root.example.info. 7 3600 600 86400 300', 300, [
        ('example.info.', 'NS', 300, 'ns1.example.info.'), ('ns1.example.info.', 'A', 300, '192.0.2.1')])
    central.store_transfer(WHO, place.secondary.id, task.claim, '198.51.100.53:53', transfer)
    assert central.get_domain(WHO, place.secondary.id).serial == 7
    assert create(central, 'sub.example.biz.', who=ASKER)
    assert not central.changes.find(WHO)


@pytest.mark.all_databases
def test_two_approve_at_once_and_it_is_made_once(place: Place, database: Storage) -> None:
    plan_id, shown = ask(lambda: create_new(place))
    assert [record.data for record in shown.records] == ['192.0.2.7']
    approvers = [dataclasses.replace(APPROVER, user=f'bob{number}') for number in range(4)]
    with ThreadPoolExecutor(len(approvers)) as together:
        results = list(together.map(functools.partial(approve, place, plan_id), approvers))
    assert PlanState.APPLIED in results and set(results) <= {PlanState.APPLIED, 'change_ended'}
    new, = [each for each in place.central.find_recordsets(WHO, place.zone.id) if each.name == NEW['name']]
    newest, *_, created = place.central.find_versions(WHO, place.zone.id, 10)
    assert (newest.actor.user, newest.actor.project_id, newest.actor.address) == ('ann', 'red', '198.51.100.7')
    assert newest.actor.approved_by in {who.user for who in approvers} and not created.actor.approved_by
    plan = place.central.changes.get(WHO, plan_id)
    assert plan.why == f'approved by {newest.actor.approved_by}'
    with pytest.raises(Refused, match=f'^The change {plan_id} is APPLIED, and does not wait for approval.$'):
        place.central.changes.approve(APPROVER, plan_id)


def test_who_asked_approves_nothing_under_another_project_or_with_another_right(place: Place) -> None:
    plan_id, _ = ask(lambda: create_new(place))
    for same in (ASKER, dataclasses.replace(OPERATOR, user='ann'), dataclasses.replace(APPROVER, user='')):
        with pytest.raises(Forbidden, match='somebody else than who asked for it has to'):
            place.central.changes.approve(same, plan_id)
    with pytest.raises(NotFound, match=f'^There is no change {plan_id}.$'):
        place.central.changes.approve(dataclasses.replace(APPROVER, project_id='blue'), plan_id)
    assert not place.central.changes.find(Context(project_id='blue'))


def create_again(place: Place) -> None:
    """The recordset www, with the same contents under another id."""
    place.central.delete_recordset(APPROVER, place.zone.id, place.www.id)
    place.central.create_recordset(APPROVER, place.zone.id, {'name': place.www.name, 'type': 'A',
                                                             'records': ['192.0.2.1']})


#: What makes the deletion, or the change of www, stale.
MOVES: dict[str, tuple[str, Callable[[Place], Any]]] = {
    'the same': ('recordset update', lambda place: place.central.update_recordset(
        APPROVER, place.zone.id, place.www.id, {'records': ['192.0.2.99']})),
    'description': ('recordset delete', lambda place: place.central.update_recordset(
        APPROVER, place.zone.id, place.www.id, {'description': 'theirs'})),
    'in between': ('changes', lambda place: create_new(place, APPROVER)),
    'there by now': ('recordset create', lambda place: create_new(place, APPROVER)),
    'zone': ('zone delete', lambda place: create_new(place, APPROVER)),
    'again': ('recordset update', lambda place: create_again(place)),
    'TTL of the zone': ('recordset update', lambda place: place.central.update_domain(
        APPROVER, place.zone.id, {'ttl': 99})),
    'made meanwhile': ('zone update', lambda place: place.central.update_domain(APPROVER, place.zone.id, {'ttl': 77})),
}


@pytest.mark.parametrize('case', MOVES)
def test_a_change_of_what_has_changed_since_is_refused(place: Place, database: Storage, case: str) -> None:
    door, move = MOVES[case]
    plan_id, _ = ask(lambda: DOORS[door](place, ASKER))
    move(place)
    before = everything(database)
    with pytest.raises(ChangeMoved, match=f'^The change {plan_id} is not made: '):
        place.central.changes.approve(APPROVER, plan_id)
    assert everything(database) == before
    assert place.central.changes.get(WHO, plan_id).state is PlanState.DROPPED


def test_a_change_of_other_recordsets_does_not_matter(place: Place) -> None:
    plan_id, _ = ask(lambda: DOORS['changes'](place, ASKER))
    place.central.create_recordset(APPROVER, place.zone.id, {**NEW, 'name': 'other.example.com.'})
    assert place.central.changes.approve(APPROVER, plan_id).state is PlanState.APPLIED


def test_a_recordset_with_the_ttl_of_the_zone_of_its_own_is_the_same(place: Place) -> None:
    plan_id, _ = ask(lambda: DOORS['recordset delete'](place, ASKER))
    place.central.update_recordset(APPROVER, place.zone.id, place.www.id, {'ttl': place.zone.ttl})
    assert place.central.changes.approve(APPROVER, plan_id).state is PlanState.APPLIED


def test_who_asked_and_may_not_do_it_any_more_has_nothing_made(place: Place) -> None:
    """And it goes on waiting, as that may change."""
    plan_id, _ = ask(lambda: DOORS['guest'](place, ASKER))
    share, = place.central.find_shares(ASKER, place.zone.id)
    place.central.unshare_domain(ASKER, place.zone.id, share.id)
    with pytest.raises(Forbidden, match='who has asked for it may not make it any more: There is no zone'):
        place.central.changes.approve(APPROVER, plan_id)
    place.central.share_domain(ASKER, place.zone.id, {'target_project_id': 'guest'})
    assert place.central.changes.approve(APPROVER, plan_id).state is PlanState.APPLIED


@pytest.mark.parametrize('door, change', [
    ('recordset create', lambda place: place.central.set_quotas(OPERATOR, 'red', {'zone_recordsets': 1})),
    ('restore', lambda place: place.central.set_quotas(OPERATOR, 'red', {'zones': 1})),
    ('zone delete', lambda place: place.central.set_recordset_lock(APPROVER, place.zone.id, place.www.id, 'mine')),
    ('move', lambda place: place.central.delete_pool(OPERATOR, place.other_pool.id))])
def test_what_hinders_who_asked_hinders_it_when_it_is_approved(
        place: Place, door: str, change: Callable[[Place], Any]) -> None:
    plan_id, _ = ask(lambda: DOORS[door](place, ASKER))
    change(place)
    assert refused(place.central.changes.approve, APPROVER, plan_id) in {
        'over_quota', 'locked', 'invalid_object'}
    assert place.central.changes.get(APPROVER, plan_id).state is PlanState.PARKED


def test_rights_of_one_request_are_those_of_who_approves_it_too(place: Place) -> None:
    managed = place.central.find_managed_records(OPERATOR)[0]
    editor = dataclasses.replace(OPERATOR, user='ann', may_approve=False, may_edit_managed=True)
    plan_id, _ = ask(lambda: place.central.update_recordset(editor, managed.domain_id, managed.recordset_id,
                                                            {'records': ['other.example.com.']}))
    assert refused(place.central.changes.approve, OPERATOR, plan_id) == 'bad_request'
    approver = dataclasses.replace(OPERATOR, may_edit_managed=True)
    assert place.central.changes.approve(approver, plan_id).state is PlanState.APPLIED


def test_what_fails_when_it_is_approved_goes_on_waiting(place: Place) -> None:
    plan_id, _ = ask(lambda: create_new(place))
    place.central.set_lock(APPROVER, place.zone.id, 'until Friday')
    assert refused(place.central.changes.approve, APPROVER, plan_id) == 'locked'
    place.central.set_lock(APPROVER, place.zone.id, None)
    assert place.central.changes.approve(APPROVER, plan_id).state is PlanState.APPLIED


def test_a_deletion_shows_how_the_zone_is_deleted_and_each_way_is_asked_for_by_itself(place: Place) -> None:
    central, zone = place.central, place.zone
    share, = central.find_shares(ASKER, zone.id)
    central.unshare_domain(ASKER, zone.id, share.id)
    for method, delete in (('delete', central.delete_domain), ('abandon', central.abandon_domain)):
        for delete_shares in (False, True):
            plan_id, _ = ask(lambda: delete(ASKER, zone.id, delete_shares))
            shown, = rules.changes(central.changes.get(WHO, plan_id))
            assert shown['after'] == {'action': 'DELETE', 'method': method, 'delete_shares': delete_shares}
    assert len(central.changes.find(WHO, WAITING)) == 4


@pytest.mark.parametrize('way', ('give', 'transfer'))
def test_the_new_owner_of_a_zone_does_not_see_what_the_former_one_asked_for(place: Place, way: str) -> None:
    applied, refused_, plan_id = (ask(lambda: create_new(place, name=f'{name}.example.com.'))[0] for name in 'abc')
    place.central.changes.approve(APPROVER, applied)
    place.central.changes.refuse(ASKER, refused_)
    if way == 'give':
        place.central.give_domain(OPERATOR, place.zone.id, 'blue')
    else:
        request = place.central.create_transfer_request(APPROVER, place.zone.id, {})
        place.central.create_transfer_accept(Context(project_id='blue', user='dan'), request.id, request.key)
    owner = Context(project_id='blue', user='dan', may_approve=True)
    assert not place.central.changes.find(owner)
    for each in (applied, refused_, plan_id):
        assert refused(place.central.changes.get, owner, each) == 'change_not_found'
    change = place.central.changes.get(ASKER, plan_id)
    assert (change.state, change.why) == (PlanState.DROPPED, 'the zone was given to another project')
    assert len(place.central.changes.find(ASKER)) == 3


def test_a_deleted_zone_is_purged_by_who_may_approve(place: Place) -> None:
    with pytest.raises(Forbidden, match='its deletion needed approval'):
        place.central.purge_domain(ASKER, place.deleted.id)
    assert place.central.get_deleted_domain(ASKER, place.deleted.id)
    place.central.purge_domain(APPROVER, place.deleted.id)
    assert refused(place.central.get_deleted_domain, ASKER, place.deleted.id) == 'deleted_zone_not_found'


def test_a_wrong_request_is_refused_at_once(place: Place) -> None:
    wrong = {**NEW, 'name': place.www.name}
    assert refused(place.central.create_recordset, ASKER, place.zone.id, wrong) == 'duplicate_recordset'
    assert not place.central.changes.find(WHO)
    same = place.central.update_recordset(ASKER, place.zone.id, place.www.id, {'records': ['192.0.2.1']})
    assert same.etag == place.www.etag, 'what changes nothing waits for nobody'
    for delete in (place.central.delete_domain, place.central.abandon_domain):  # it is shared with guest
        assert refused(delete, ASKER, place.zone.id) == 'zone_is_shared'
    assert not place.central.changes.find(WHO)


def test_it_is_refused_by_who_may_or_withdrawn_by_who_asked(place: Place) -> None:
    guests, _ = ask(lambda: DOORS['guest'](place, ASKER))
    place.central.changes.refuse(dataclasses.replace(ASKER, project_id='guest'), guests)
    first, second = ask(lambda: create_new(place))[0], ask(lambda: DOORS['zone delete'](place, ASKER))[0]
    assert place.central.changes.refuse(APPROVER, first, 'not now').why == 'refused by bob of red: not now'
    assert place.central.changes.refuse(ASKER, second).why == 'refused by ann of red'
    assert place.central.changes.refuse(ASKER, second).state is PlanState.DROPPED
    third, fourth = ask(lambda: DOORS['zone delete'](place, ASKER))[0], ask(lambda: DOORS['guest'](place, ASKER))[0]
    for who, plan_id in ((dataclasses.replace(ASKER, user='eve'), third), (dataclasses.replace(ASKER, user=''), third),
                         (Context(project_id='guest', user='eve'), fourth),
                         (Context(project_id='guest', user='eve', may_approve=True), fourth)):
        with pytest.raises(Forbidden, match='who may approve it has to, or who has asked for it'):
            place.central.changes.refuse(who, plan_id)
    for plan_id in (first, second):
        with pytest.raises(Refused, match='does not wait for approval'):
            place.central.changes.approve(APPROVER, plan_id)


def test_it_expires_and_is_purged(place: Place, database: Storage, clock: Clock) -> None:
    plan_id, _ = ask(lambda: create_new(place))
    clock.now += CentralSettings().approval_lifetime + 1
    with pytest.raises(Refused, match='expired'):
        place.central.changes.approve(APPROVER, plan_id)
    again, _ = ask(lambda: create_new(place))
    assert again != plan_id, 'it is asked for anew'
    Purger(database, CentralSettings()).purge()
    assert [plan.id for plan in place.central.changes.find(WHO, WAITING)] == [again]
    assert place.central.changes.get(WHO, plan_id).why == 'nobody has approved it in time'
    clock.now += CentralSettings().deleted_retention + 1
    Purger(database, CentralSettings()).purge()
    assert refused(place.central.changes.get, WHO, plan_id) == 'change_not_found'


def test_guests_see_what_they_have_asked_for_and_approve_nothing(place: Place) -> None:
    ask(lambda: DOORS['zone delete'](place, ASKER))
    plan_id, _ = ask(lambda: DOORS['guest'](place, ASKER))
    guest = Context(project_id='guest', user='gus', may_approve=True)
    assert [each.id for each in place.central.changes.find(guest)] == [plan_id]
    assert place.central.changes.get(guest, plan_id[:8]).asked_by == 'ann of guest'
    with pytest.raises(Forbidden, match='somebody of the project that owns the zone has to'):
        place.central.changes.approve(guest, plan_id)
    assert len(place.central.changes.find(APPROVER)) == 2
    ask(lambda: create_new(place, guest, name='other.example.com.'))


@pytest.mark.all_databases
def test_as_many_wait_as_are_bounded_and_the_same_waits_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len({ask(lambda: create_new(place))[0] for _ in range(3)}) == 1
    ask(lambda: create_new(place, dataclasses.replace(ASKER, user='eve')))
    for bound in ('MOST_OF_DOMAIN', 'MOST_OF_PROJECT'):
        with monkeypatch.context() as patched:
            patched.setattr(rules, bound, 2)
            with pytest.raises(Refused, match='wait for approval'):
                DOORS['zone delete'](place, ASKER)
            plan_id, _ = ask(lambda: DOORS['guest'](place, ASKER))
            place.central.changes.refuse(APPROVER, plan_id)
    monkeypatch.setattr(rules, 'MOST_CHARACTERS', 600)
    with pytest.raises(Refused, match='make several smaller ones'):
        place.central.create_recordset(ASKER, place.zone.id, {**NEW, 'name': f'{"x" * 60}.{"y" * 60}.example.com.'})


def test_the_same_record_of_another_instance_is_another_change(place: Place) -> None:
    central, now = place.central, place.central._now()
    records = [{'name': 'vm.example.com.', 'type': 'A', 'data': '192.0.2.7'}]
    other = {**RESOURCE, 'resource_id': '2'}
    for second, resource, wanted in ((0, RESOURCE, records), (1, RESOURCE, ()), *[(2, other, records)] * 2):
        central.set_resource_records(SINK, resource, place.zone.id, wanted, now + timedelta(seconds=second))
    assert sorted(approve(place, change.id, OPERATOR) for change in central.changes.find(WHO, WAITING)) == [
        'APPLIED', 'change_moved']
    assert [row.resource_id for row in central.find_managed_records(WHO, {'plugin': 'nova'})] == ['2']


def test_later_events_of_a_resource_ask_for_the_same_change_at_their_time(place: Place) -> None:
    central, now = place.central, place.central._now()
    records = [{'name': 'vm.example.com.', 'type': 'A', 'data': '192.0.2.7'}]
    for second, wanted in enumerate((records, (), records, records)):  # it has been there and gone meanwhile
        central.set_resource_records(SINK, RESOURCE, place.zone.id, wanted, now + timedelta(seconds=second))
    change, = central.changes.find(WHO, WAITING)
    assert approve(place, change.id, OPERATOR) == 'APPLIED'
    assert [row.data for row in central.find_managed_records(WHO, {'plugin': 'nova'})] == ['192.0.2.7']


def test_a_zone_that_wants_approval_gets_it_and_leaves_that_by_approval_only(place: Place, database: Storage) -> None:
    require(database, False)
    place.central.update_domain(ASKER, place.zone.id, {'requires_approval': True})
    plan_id, value = ask(lambda: place.central.update_domain(ASKER, place.zone.id, {'requires_approval': False}))
    assert not value.requires_approval and place.central.get_domain(WHO, place.zone.id).requires_approval
    place.central.changes.approve(APPROVER, plan_id)
    assert create_new(place).records


def test_what_lies_below_a_zone_that_needs_approval_is_made_by_who_may_approve(place: Place, database: Storage) -> None:
    """It would take names of that zone."""
    require(database, False)
    central, zones = place.central, ('a.example.com.', 'b.c.example.com.')
    deleted = create(central, 'd.example.com.', who=ASKER)
    central.delete_domain(ASKER, deleted.id)
    central.update_domain(ASKER, place.zone.id, {'requires_approval': True})
    for attempt in (*(functools.partial(create, central, name, who=ASKER) for name in zones),
                    lambda: central.create_domain(ASKER, {'name': zones[0], 'masters': ['198.51.100.53']}),
                    lambda: central.restore_domain(ASKER, deleted.id)):
        with pytest.raises(Forbidden, match='it takes names from the zone example.com., whose changes need approval'):
            attempt()
    for name in zones:
        assert create(central, name, who=APPROVER)
    assert central.restore_domain(APPROVER, deleted.id)
    assert create(central, 'sub.example.biz.', who=ASKER)


def test_a_zone_that_needs_approval_itself_is_restored_below_one_by_approval(place: Place, database: Storage) -> None:
    deleted = create(place.central, 'd.example.com.', who=APPROVER)
    place.central.delete_domain(APPROVER, deleted.id)
    plan_id, _ = ask(lambda: place.central.restore_domain(ASKER, deleted.id))
    assert place.central.changes.approve(APPROVER, plan_id).state is PlanState.APPLIED


@pytest.mark.parametrize('may_approve', (False, True))
def test_an_import_below_is_of_who_may_approve(place: Place, database: Storage, may_approve: bool) -> None:
    store = ZoneTaskStore(database)
    who = dataclasses.replace(ASKER, may_approve=may_approve)
    tasks = [store.store_import(who, [f'$ORIGIN {name}.\n@ 300 SOA ns1.example.org. h 1 2 3 4 5\n'.encode()])
             for name in ('a.example.com', 'b.example.com', 'example.biz')]
    while place.central.imports.run_next(SMALL):
        pass
    ended = [store.get(ZoneTaskKind.IMPORT, ASKER, task.id) for task in tasks]
    assert [task.status for task in ended] == [
        *2 * [ZoneTaskStatus.COMPLETE if may_approve else ZoneTaskStatus.ERROR], ZoneTaskStatus.COMPLETE]
    assert may_approve or 'it takes names from the zone example.com., whose' in str(ended[0].message)


@pytest.mark.parametrize('of_pool', (False, True))
def test_a_transfer_that_was_requested_before_approval_was_required_is_not_accepted(
        place: Place, database: Storage, of_pool: bool) -> None:
    require(database, False)
    request = place.central.create_transfer_request(ASKER, place.zone.id, {})
    if of_pool:
        require(database)
    else:
        place.central.update_domain(ASKER, place.zone.id, {'requires_approval': True})
    blue = Context(project_id='blue', user='dan')
    with pytest.raises(Refused, match='changes of its zone need approval since'):
        place.central.create_transfer_accept(blue, request.id, request.key)
    place.central.delete_transfer_request(ASKER, request.id)
    plan_id, _ = ask(lambda: place.central.create_transfer_request(ASKER, place.zone.id, {}))
    place.central.changes.approve(APPROVER, plan_id)
    request, = place.central.find_transfer_requests(ASKER)
    assert place.central.create_transfer_accept(blue, request.id, request.key).project_id == 'blue'


def test_what_waits_where_no_approval_is_required_any_more_is_made_once(place: Place, database: Storage) -> None:
    plan_id, _ = ask(lambda: create_new(place))
    require(database, False)
    assert place.central.changes.approve(APPROVER, plan_id).state is PlanState.APPLIED


@pytest.mark.parametrize('required', (False, True))
def test_who_need_not_wait_pays_no_statement(place: Place, database: Storage, required: bool) -> None:
    require(database, required)
    with count_statements(database) as counter:
        create_new(place, APPROVER)
    assert not [statement for statement in counter if 'plans' in statement]


def test_a_plan_of_a_change_is_not_approved_as_one_of_a_pool_manager(place: Place) -> None:
    plan_id, _ = ask(lambda: create_new(place))
    with pytest.raises(WrongPlanState):
        place.central.approve_plan(OPERATOR, plan_id)
    with pytest.raises(WrongPlanState):
        place.central.settle_plan(OPERATOR, plan_id, PlanState.APPLIED)
    with pytest.raises(NotFound):
        mine = place.central.put_plan(OPERATOR, StoredPlan(new_id(), '', 'example.com.', 'ns1', PlanState.STORED,
                                                           document=json.dumps({'request': {}})))
        place.central.changes.approve(OPERATOR, mine.id)
