"""Staged releases: what the servers of each stage may have, and which versions are kept for that."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from datetime import timedelta

import pytest
import sqlalchemy as sa

from designate_pool.central.rules import domains as rules
from designate_pool.central.service import Central
from designate_pool.errors import WaitsForApproval
from designate_pool.model import (Action, Context, Domain, Outcome, PoolServer, RecordChange, Report, ServerState,
                                  ServerStatus, Status, freezes, new_id, utcnow)
from designate_pool.pool_manager.periodic.releases import stage_outcome
from designate_pool.pool_manager.reconcile import domain_state
from designate_pool.pool_manager.reconcile.domain_state import DomainState
from designate_pool.serial import newer
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.serving import catalog, zone_snapshot
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import pools
from designate_pool.storage.zones import domains, versions
from tests.fixtures.central import WHO, Caller, Clock, create, refused, started, succeed
from tests.fixtures.notifications import Recorder

ADMIN = Context(all_projects=True, user='admin')
LAST = 3
#: Serial and addresses of a zone, and whether it is in the catalog zone, for the servers of a stage.
Seen = tuple[int | None, frozenset[str], bool]


class Staged:
    """A pool with a catalog zone that releases changes in three stages, as the servers of each see it."""

    def __init__(self, central: Central, database: Storage) -> None:
        self.central, self.database = central, database
        self.pool = central.find_pools(WHO)[0]
        database.run(catalog.establish, self.pool.id, database.now())
        self.stage('canary one; 50 %; all')

    def stage(self, text: str | None) -> None:
        self.database.run(lambda tx: tx.execute(sa.update(pools).values(release_stages=text)) and None)

    def get(self, domain: Domain) -> Domain:
        return self.central.get_domain(ADMIN, domain.id)

    def put(self, domain: Domain, *addresses: str) -> Domain:
        return self.central.apply_changes(WHO, domain.id, [RecordChange(f'www.{domain.name}', 'A', addresses)])

    def seen(self, domain: Domain, stage: int) -> Seen:
        serial, addresses = None, set[str]()
        with contextlib.closing(self.database.stream(versions.permitted_pages, domain.id, iter, stage)) as pages:
            for head, page in pages:
                serial = head.serial
                addresses |= {'.'.join(map(str, wire)) for _, rtype, _, wire in page if rtype == 'A'}
        members = self.database.read(catalog.snapshot, self.pool.name, [], lambda reading: {
            name for _, _, name in reading.members(stage=stage)})
        assert members is not None
        return serial, frozenset(addresses), domain.name in members

    def all_seen(self, domain: Domain) -> list[Seen]:
        return [self.seen(domain, stage) for stage in range(1, LAST + 1)]

    def catalog_serial(self) -> int:
        head = self.database.read(catalog.head, self.pool.name)
        assert head is not None
        return head.serial

    def report(self, domain: Domain, outcome: Outcome = Outcome.SUCCESS, why: str = '') -> Domain:
        """Its stage is done, or has failed."""
        newest = domain if domain.is_going else self.get(domain)
        state = self.database.read(domain_state.read, self.pool, [domain.id], [])[domain.id].domain
        release = state.release
        assert release is not None
        self.central.update_statuses(ADMIN, [Report(domain.id, newest.action, newest.generation, outcome, state.serial,
                                                    self.pool.name, release.stage, why)])
        return newest

    def go_through(self, domain: Domain, clock: Clock, new: Seen, former: Seen) -> None:
        """Through all stages but the last: servers see *new* stage by stage, and the catalog zone changes with each
        member that comes or goes.
        """
        for stage in range(1, LAST):
            assert self.all_seen(domain) == [new] * stage + [former] * (LAST - stage)
            before = self.catalog_serial()
            clock.now += 1
            self.report(domain)
            after = self.catalog_serial()
            assert newer(after, before) if new[2] is not former[2] else after == before

    def finish(self, domain: Domain) -> None:
        """Through all stages, and served."""
        for _ in range(LAST - 1):
            self.report(domain)
        newest = self.get(domain)
        self.central.update_status(ADMIN, newest, Outcome.SUCCESS, newest.serial)


@pytest.fixture
def staged(central: Central, database: Storage) -> Staged:
    return Staged(central, database)


def test_a_zone_is_created_changed_and_deleted_for_the_servers_of_one_stage_after_the_other(
        staged: Staged, clock: Clock) -> None:
    zone = create(staged.central, 'staged.example.', ('www.staged.example.', 'A', ['192.0.2.1']))
    none: Seen = None, frozenset(), False
    first: Seen = zone.serial, frozenset({'192.0.2.1'}), True
    staged.go_through(zone, clock, first, none)
    assert staged.all_seen(zone) == [first] * LAST
    staged.central.update_status(ADMIN, staged.get(zone), Outcome.SUCCESS, zone.serial)
    assert staged.get(zone).status is Status.ACTIVE and staged.get(zone).release_state is None
    changed = staged.put(zone, '192.0.2.2')
    waiting = staged.put(zone, '192.0.2.3')
    second: Seen = changed.serial, frozenset({'192.0.2.2'}), True
    staged.go_through(zone, clock, second, first)
    third: Seen = waiting.serial, frozenset({'192.0.2.3'}), True
    assert staged.all_seen(zone) == [third, second, second]
    staged.finish(zone)
    going = staged.central.delete_domain(WHO, zone.id)
    assert refused(staged.central.purge_domain, WHO, zone.id) == 'being_released', 'its records are still served'
    staged.go_through(going, clock, none, third)
    assert staged.all_seen(zone) == [none] * LAST


def test_changes_of_a_held_release_wait_for_it_to_go_on(staged: Staged) -> None:
    zone = create(staged.central, 'held.example.', ('www.held.example.', 'A', ['192.0.2.1']))
    staged.finish(zone)
    former = staged.seen(zone, LAST)
    staged.put(zone, '192.0.2.66')
    staged.report(zone)
    staged.report(zone, Outcome.ERROR, 'it died')
    turned = staged.get(zone)
    assert (turned.status, turned.release and turned.release.held) == (Status.ERROR, 'it died')
    back: Seen = turned.serial, *former[1:]
    assert staged.all_seen(zone) == [back, back, former]
    changed = staged.put(zone, '192.0.2.3')
    assert changed.status is Status.ERROR and staged.all_seen(zone) == [back, back, former]
    renewed = staged.central.frozen_pools.continue_release(ADMIN, zone.id)
    newest: Seen = renewed.serial, frozenset({'192.0.2.3'}), True
    assert renewed.status is Status.PENDING and staged.all_seen(zone) == [newest, former, former]
    staged.finish(zone)
    assert staged.get(zone).status is Status.ACTIVE and staged.all_seen(zone) == [newest] * LAST


@pytest.mark.parametrize('is_new', [True, False], ids=['of a creation', 'of a change'])
def test_a_deletion_under_a_freeze_reaches_no_server_whose_release_had_begun(staged: Staged, is_new: bool) -> None:
    zone = create(staged.central, 'frozen.example.', ('www.frozen.example.', 'A', ['192.0.2.1']))
    if not is_new:
        staged.finish(zone)
        staged.put(zone, '192.0.2.2')
    before = staged.all_seen(zone)
    assert before[0][0] is not None and before[0] != before[1]
    staged.central.frozen_pools.freeze(ADMIN, staged.pool.id, 'an incident')
    going = staged.central.delete_domain(WHO, zone.id)
    assert staged.all_seen(zone) == before
    assert staged.database.read(domain_state.read, staged.pool, [zone.id], []) == {}
    assert refused(staged.central.frozen_pools.continue_release, ADMIN, zone.id) == 'pool_frozen'
    staged.central.frozen_pools.unfreeze(ADMIN, staged.pool.id)
    state = staged.database.read(domain_state.read, staged.pool, [zone.id], [])[zone.id]
    assert state.domain.action is Action.DELETE
    assert staged.all_seen(zone) == [(None, frozenset(), False), *before[1:]]
    for _ in range(LAST - 1):
        staged.report(going)
    assert staged.all_seen(zone) == [(None, frozenset(), False)] * LAST


def test_a_deletion_under_a_freeze_goes_on_though_there_are_no_stages_any_more(staged: Staged) -> None:
    zone = create(staged.central, 'unstaged.example.')
    staged.central.frozen_pools.freeze(ADMIN, staged.pool.id, 'an incident')
    staged.central.delete_domain(WHO, zone.id)
    staged.stage(None)
    staged.central.frozen_pools.unfreeze(ADMIN, staged.pool.id)
    state = staged.database.read(domain_state.read, staged.pool, [zone.id], [])[zone.id]
    assert (state.domain.action, state.domain.release_state, state.released) == (Action.DELETE, None, None)


@pytest.mark.all_databases
@pytest.mark.parametrize('verb', ['deletion', 'change'])
@pytest.mark.parametrize('what', ['created', 'released', 'served'])
def test_what_is_written_while_a_freeze_ends_is_released(staged: Staged, monkeypatch: pytest.MonkeyPatch, what: str,
                                                         verb: str) -> None:
    """The freeze ends between the reading of the zone and the writing of it, as far as the database lets it."""
    zone = create(staged.central, 'raced.example.', ('www.raced.example.', 'A', ['192.0.2.1']))
    if what != 'created':
        staged.finish(zone)
    if what == 'released':
        zone = staged.put(zone, '192.0.2.2')
    before = staged.all_seen(zone)
    staged.central.frozen_pools.freeze(ADMIN, staged.pool.id, 'an incident')
    unfreezing = threading.Thread(target=staged.central.frozen_pools.unfreeze, args=(ADMIN, staged.pool.id))
    hold = freezes.hold

    def hold_late(domain: Domain) -> dict[str, object]:
        if unfreezing.ident is None:
            unfreezing.start()
            unfreezing.join(0.5)  # some databases have it wait for the end of this transaction
        return hold(domain)

    monkeypatch.setattr(rules, 'hold', hold_late)
    if verb == 'deletion':
        going = staged.central.delete_domain(WHO, zone.id)
    else:
        zone = staged.put(zone, '192.0.2.3')
    unfreezing.join()
    newest: Seen = (None, frozenset(), False) if verb == 'deletion' else (zone.serial, frozenset({'192.0.2.3'}), True)
    if what == 'created' and verb == 'deletion' and staged.seen(zone, 1) == newest:
        pass  # it was tried again after the freeze, when the canary alone had the zone: that is not released
    elif what == 'served' or verb == 'deletion':
        for stage in range(1, LAST):
            assert staged.all_seen(zone) == [newest] * stage + before[stage:]
            staged.report(going if verb == 'deletion' else zone)
    else:
        assert staged.all_seen(zone) == before
        staged.report(zone)
        staged.report(zone)
        assert staged.seen(zone, 1) == newest and staged.seen(zone, 2) == before[0]
        staged.finish(zone)
    assert staged.all_seen(zone) == [newest] * LAST


def test_a_deletion_that_is_held_is_tried_again(staged: Staged, clock: Clock) -> None:
    zone = create(staged.central, 'stays.example.')
    staged.finish(zone)
    going = staged.central.delete_domain(WHO, zone.id)
    row = ServerStatus('server', zone.id, Action.DELETE, going.serial, status=Outcome.ERROR, id=new_id(),
                       updated_at=clock.moment())
    clock.now += 1
    staged.report(going, Outcome.ERROR, 'it refuses')
    assert staged.get(zone).status is Status.ERROR
    staged.central.frozen_pools.continue_release(ADMIN, zone.id)
    state = staged.database.read(domain_state.read, staged.pool, [zone.id], [])[zone.id]
    rows = {('server', Action.DELETE): row}
    assert stage_outcome(DomainState(going, rows), ['server'], {'server': 'one'}, timedelta(0), clock.moment())[0] is (
        Outcome.ERROR)
    assert stage_outcome(DomainState(state.domain, rows), ['server'], {'server': 'one'}, timedelta(0),
                         clock.moment()) == (None, '')
    again, = DomainState(state.domain, rows).schedule(['server'], clock.moment())
    assert (again.status, again.attempts, again.next_attempt_at) == (None, 0, clock.moment())
    for _ in range(LAST - 1):
        staged.report(going)
    assert staged.get(zone).release_state is None


@pytest.mark.parametrize('what', ['a creation', 'a deletion'])
def test_what_is_deleted_while_it_is_released_is_not_restored_under_a_freeze(staged: Staged, what: str) -> None:
    zone = create(staged.central, 'back.example.', ('www.back.example.', 'A', ['192.0.2.1']))
    if what == 'a deletion':
        staged.finish(zone)
        staged.central.delete_domain(WHO, zone.id)
    before = staged.all_seen(zone)
    staged.central.frozen_pools.freeze(ADMIN, staged.pool.id, 'an incident')
    if what == 'a creation':
        staged.central.delete_domain(WHO, zone.id)
    assert refused(staged.central.restore_domain, WHO, zone.id) == 'pool_frozen'
    assert staged.all_seen(zone) == before, 'not even the canary sees it come or go'
    staged.central.frozen_pools.unfreeze(ADMIN, staged.pool.id)
    assert staged.seen(zone, 1)[0] is None
    staged.central.restore_domain(WHO, zone.id)
    assert staged.seen(zone, 1)[0] == staged.get(zone).serial


@pytest.mark.parametrize('verb', ['continue', 'hold'])
def test_a_zone_whose_deletion_is_held_or_goes_on_by_command_is_still_served_by_later_stages(staged: Staged,
                                                                                             verb: str) -> None:
    zone = create(staged.central, 'going.example.', ('www.going.example.', 'A', ['192.0.2.1']))
    staged.finish(zone)
    former = staged.seen(zone, LAST)
    going = staged.central.delete_domain(WHO, zone.id)
    if verb == 'hold':
        staged.report(going, Outcome.ERROR, 'it refuses')
    else:
        staged.central.frozen_pools.continue_release(ADMIN, zone.id)
    assert staged.seen(zone, LAST) == former
    staged.central.abort_release(ADMIN, zone.id)
    head, rows = staged.database.read(lambda tx: (lambda found: (found[0], list(found[1])))(
        versions.rows_at(tx, zone.id, former[0] or 0)))
    assert head.serial == former[0] and ('www.going.example.', 'A', None, '192.0.2.1') in rows, 'history goes on'


def test_an_aborted_release_leads_back_what_guests_changed_and_leaves_it_to_them(staged: Staged) -> None:
    central, red, blue = staged.central, Context(project_id='red'), Context(project_id='blue')
    staged.stage(None)
    zone = create(central, 'shared.example.', who=red)
    central.share_domain(red, zone.id, {'target_project_id': 'blue'})
    guest, _ = (central.create_recordset(blue, zone.id, {
        'name': f'{label}.shared.example.', 'type': 'A', 'records': ['192.0.2.7']}) for label in ('guest', 'other'))
    newest = staged.get(zone)
    central.update_status(ADMIN, newest, Outcome.SUCCESS, newest.serial)
    staged.stage('canary one; 50 %; all')
    former = staged.seen(zone, LAST)
    central.update_recordset(blue, zone.id, guest.id, {'records': ['192.0.2.66']})
    central.create_recordset(blue, zone.id, {'name': 'new.shared.example.', 'type': 'A', 'records': ['192.0.2.66']})
    staged.report(zone, Outcome.ERROR, 'it died')
    central.abort_release(ADMIN, zone.id)
    assert {seen[1:] for seen in staged.all_seen(zone)} == {former[1:]} == {(frozenset({'192.0.2.7'}), True)}
    central.delete_recordset(blue, zone.id, guest.id)


def test_no_lock_and_no_quota_refuses_the_abort_of_changes(staged: Staged) -> None:
    """Or signatures that servers have might end."""
    central, red = staged.central, Context(project_id='red')
    zone = create(central, 'locked.example.', ('www.locked.example.', 'A', ['192.0.2.1']),
                  ('gone.locked.example.', 'A', ['192.0.2.1']), who=red)
    staged.finish(zone)
    former = staged.seen(zone, LAST)
    staged.put(zone, '192.0.2.66')
    gone, = (each for each in central.find_recordsets(red, zone.id) if each.name == 'gone.locked.example.')
    central.delete_recordset(red, zone.id, gone.id)
    central.create_recordset(red, zone.id, {'name': 'new.locked.example.', 'type': 'A', 'records': ['192.0.2.66']})
    for each in central.find_recordsets(red, zone.id):
        if each.type == 'A':
            central.set_recordset_lock(red, zone.id, each.id, 'an incident')
    central.set_lock(ADMIN, zone.id, 'an incident', True)
    central.set_quotas(ADMIN, 'red', {'zone_records': 0, 'zone_deletes_per_hour': 0, 'deletes_per_hour': 0})
    staged.report(zone, Outcome.ERROR, 'it died')
    central.abort_release(ADMIN, zone.id)
    newest = staged.get(zone)
    assert staged.all_seen(zone) == [(newest.serial, *former[1:])] * LAST
    assert newest.lock_reason == 'an incident' and newest.locked_recordsets == 1
    assert {each.name: each.lock_reason for each in central.find_recordsets(red, zone.id) if each.type == 'A'} == {
        'www.locked.example.': 'an incident', 'gone.locked.example.': None}


def test_the_release_of_what_was_deleted_and_restored_under_a_freeze_deletes_nothing(
        staged: Staged, clock: Clock) -> None:
    zone = create(staged.central, 'again.example.', ('www.again.example.', 'A', ['192.0.2.1']))
    staged.finish(zone)
    former = staged.seen(zone, LAST)
    assert former[0] is not None
    staged.central.frozen_pools.freeze(ADMIN, staged.pool.id, 'an incident')
    staged.central.delete_domain(WHO, zone.id)
    staged.central.restore_domain(WHO, zone.id)
    staged.central.frozen_pools.unfreeze(ADMIN, staged.pool.id)
    clock.now += 1
    before = staged.catalog_serial()
    staged.report(zone)
    assert newer(staged.catalog_serial(), before), 'it is another member for the servers of the stage'
    staged.put(zone, '192.0.2.66')
    staged.report(zone, Outcome.ERROR, 'it died')
    assert refused(staged.central.abort_release, ADMIN, zone.id) == 'not_revertible'
    staged.central.revert_domain(WHO, zone.id, staged.central.plan_revert(WHO, zone.id, str(former[0])))
    staged.central.frozen_pools.continue_release(ADMIN, zone.id)
    assert staged.all_seen(zone) == [(staged.get(zone).serial, *former[1:]), former, former]


def test_a_zone_that_moves_to_another_pool_is_changed_for_all_servers_at_once(staged: Staged) -> None:
    silver = staged.central.create_pool(WHO, {'name': 'silver', 'name_servers': ['ns.silver.example.']})
    staged.database.run(pool_servers.register, 'silver', [PoolServer(
        new_id(), '', 'fake:192.0.2.1:53', 'fake', ServerState.ACTIVE)], False, True, utcnow())
    zone = create(staged.central, 'moves.example.', ('www.moves.example.', 'A', ['192.0.2.1']))
    staged.finish(zone)
    moved = staged.central.move_domain(WHO, zone.id, silver.id)
    assert [serial for serial, _, _ in staged.all_seen(zone)] == [moved.serial] * LAST
    assert staged.get(zone).release_state is None


def test_a_name_that_is_created_again_while_its_deletion_is_held_is_the_new_zone(staged: Staged) -> None:
    for number in range(6):  # whichever id is the lesser
        zone = create(staged.central, f'again{number}.example.')
        staged.finish(zone)
        staged.report(staged.central.delete_domain(WHO, zone.id), Outcome.ERROR, 'it refuses')
        again = create(staged.central, zone.name)
        released = staged.database.read(domains.released, staged.pool.name)
        assert zone.id in released and again.id not in released, 'it waits for the former one'
        staged.report(again)
        head = staged.database.read(zone_snapshot.heads, [zone.name], staged.pool.name)[zone.name]
        seen = [head.at(stage) for stage in range(1, LAST + 1)]
        assert [each and each.domain_id for each in seen] == [again.id, again.id, zone.id]
    assert refused(staged.central.frozen_pools.continue_release, ADMIN, again.id) == 'former_released'
    staged.central.frozen_pools.continue_release(ADMIN, zone.id)
    staged.finish(zone)
    assert again.id in staged.database.read(domains.released, staged.pool.name)


def test_what_is_not_released_in_stages_does_not_come_beside_a_former_zone_of_its_name(staged: Staged) -> None:
    """The catalog zone of later stages would have the name twice (RFC 9432)."""
    central, masters = staged.central, ['192.0.2.53']
    silver = central.create_pool(WHO, {'name': 'silver', 'name_servers': ['ns.silver.example.']})
    for pool in (silver, staged.pool):
        staged.database.run(pool_servers.register, pool.name, [PoolServer(
            new_id(), '', f'fake:{pool.name}', 'fake', ServerState.ACTIVE)], False, True, utcnow())
    gone = central.create_domain(WHO, {'name': 'twice.example.', 'masters': masters})
    gone = central.delete_domain(WHO, gone.id)
    central.update_status(ADMIN, gone, Outcome.SUCCESS, gone.serial)
    zone = create(central, gone.name)
    staged.finish(zone)
    central.delete_domain(WHO, zone.id)
    assert refused(central.create_domain, WHO, {'name': zone.name, 'masters': masters}) == 'former_released'
    assert refused(central.restore_domain, WHO, gone.id) == 'former_released'
    elsewhere = central.create_domain(WHO, {'name': zone.name, 'email': 'a@example.com', 'pool_id': silver.id})
    succeed(central, elsewhere)
    assert refused(central.move_domain, WHO, elsewhere.id, staged.pool.id) == 'former_released'
    staged.finish(zone)
    assert central.move_domain(WHO, elsewhere.id, staged.pool.id).pool_id == staged.pool.id


def test_a_release_that_has_ended_meanwhile_is_not_aborted(staged: Staged) -> None:
    zone = create(staged.central, 'ended.example.')
    staged.finish(zone)
    assert refused(staged.central.abort_release, ADMIN, zone.id) == 'not_released'
    assert not staged.get(zone).is_going, 'its creation was to be aborted, and is done'


def test_what_became_of_a_zone_by_an_abort_is_notified(database: Storage, caller: Caller) -> None:
    told = Recorder()
    with started(database, caller, notifications=told) as central:
        staged = Staged(central, database)
        created = create(central, 'created.example.')
        staged.stage(None)
        changed, deleted = create(central, 'changed.example.'), create(central, 'deleted.example.')
        central.update_status(ADMIN, deleted, Outcome.SUCCESS, deleted.serial)
        staged.stage('canary one; all')
        staged.put(changed, '192.0.2.66')
        central.delete_domain(ADMIN, deleted.id)
        told.told.clear()
        for zone in (created, changed, deleted):
            central.abort_release(ADMIN, zone.id)
    assert [(event, payload['name']) for event, payload in told.told] == [
        ('dns.zone.delete', 'created.example.'), ('dns.zone.update', 'changed.example.'),
        ('dns.zone.create', 'deleted.example.')]


def test_an_abort_waits_for_approval_where_changes_do(staged: Staged) -> None:
    zone = create(staged.central, 'guarded.example.', ('www.guarded.example.', 'A', ['192.0.2.1']))
    staged.finish(zone)
    former = staged.seen(zone, LAST)
    staged.put(zone, '192.0.2.66')
    staged.database.run(lambda tx: tx.execute(sa.update(pools).values(requires_approval=True)) and None)
    with pytest.raises(WaitsForApproval) as waits:
        staged.central.abort_release(ADMIN, zone.id)
    assert staged.get(zone).release is not None
    staged.central.changes.approve(dataclasses.replace(ADMIN, user='another', may_approve=True),
                                   waits.value.kwargs['plan'])
    assert staged.all_seen(zone) == [(staged.get(zone).serial, *former[1:])] * LAST


@pytest.mark.all_databases
def test_the_history_of_a_zone_that_is_always_released_is_cut(database: Storage, caller: Caller) -> None:
    with started(database, caller, history_records=10) as central:
        staged = Staged(central, database)
        zone = create(central, 'busy.example.', ('www.busy.example.', 'A', ['192.0.2.1']))
        staged.finish(zone)
        for number in range(20):
            staged.put(zone, f'192.0.2.{number % 2 + 2}')
            staged.report(zone)  # never done before there is another change
            assert len({addresses for _, addresses, _ in staged.all_seen(zone)}) >= 1
        assert staged.get(zone).history_records <= 10 + 2 * 2 * (LAST + 1)
        seen = staged.all_seen(zone)
        assert all(len(addresses) == 1 for _, addresses, _ in seen)
