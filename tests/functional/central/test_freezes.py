"""Frozen pools: what MiniDNS, the catalog zone and pool managers have of changes that wait, and when these go out."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from designate_pool.central import domain_changes
from designate_pool.central.rules import pools
from designate_pool.central.service import Central
from designate_pool.errors import InvalidField, WaitsForApproval
from designate_pool.minidns.zones.loader import ZoneCache, ZoneLoader
from designate_pool.model import (Action, ChangeKind, Context, Domain, Freeze, Outcome, PlanState, Pool, PoolServer,
                                  RecordChange, ServerState, Status, ZoneTransferIn, new_id, utcnow)
from designate_pool.pool_manager.reconcile import domain_state
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.serving import catalog
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import domains, versions
from tests.fixtures.central import SERVERS, WHO, Caller, Clock, create, refused, started, succeed

ADMIN = Context(all_projects=True, user='admin')


class Served(NamedTuple):
    """What the servers of a pool may have: (serial, email, TTL, records) of each zone, and the catalog zone."""

    zones: dict[str, tuple[int, str, int, frozenset[tuple[str, str, int | None, bytes]]]]
    catalog_serial: int
    members: frozenset[tuple[str, int, str]]


class Frozen:
    """A pool with a catalog zone, as its servers see it."""

    def __init__(self, central: Central, database: Storage) -> None:
        self.central, self.database = central, database
        self.pool: Pool = central.find_pools(WHO)[0]
        database.run(catalog.establish, self.pool.id, database.now())

    def freeze(self, reason: str = 'an incident', until: str | None = None) -> Pool:
        return self.central.frozen_pools.freeze(ADMIN, self.pool.id, reason, until)

    def unfreeze(self) -> Pool:
        return self.central.frozen_pools.unfreeze(ADMIN, self.pool.id)

    def zone(self, name: str, address: str = '192.0.2.1') -> Domain:
        return create(self.central, name, (f'www.{name}', 'A', [address]))

    def put(self, domain: Domain, address: str, owner: str = 'www') -> Domain:
        return self.central.apply_changes(WHO, domain.id, [RecordChange(f'{owner}.{domain.name}', 'A', (address,))])

    def delete(self, domain: Domain) -> Domain:
        return self.central.delete_domain(WHO, domain.id)

    def gone(self, domain: Domain) -> None:
        """Deleted on all servers."""
        deleted = self.delete(domain)
        self.central.update_status(WHO, deleted, Outcome.SUCCESS, deleted.serial)

    def served(self, *names: str) -> Served:
        """As a MiniDNS that has been started just now serves it, and servers that are fed by records get it."""
        loader, zones = ZoneLoader(self.database, self.pool.name, ZoneCache(10 ** 6)), {}
        for name, head in loader.read_heads(set(names)).items():
            assert head is not None
            packed = loader.load_zone(head)
            with contextlib.closing(self.database.stream(versions.permitted_pages, head.domain_id)) as pages:
                records = frozenset(record for page_head, page in pages for record in page if page_head == head)
            assert packed is not None and (packed.serial, packed.records) == (head.serial, len(records) + 2)
            difference = loader.load_difference(head, head.serial - 1)
            assert difference is None or difference.serial == head.serial
            texts = self.database.read(versions.permitted_texts, head.domain_id)
            assert texts is not None and (texts[0], len(texts[1])) == (head, len(records))
            zones[name] = head.serial, head.email, head.ttl, records
        members = self.database.read(catalog.snapshot, self.pool.name, [], lambda reading: (
            reading.head.serial, frozenset(reading.members())))
        assert members is not None
        return Served(zones, *members)

    def due(self, *zones: Domain) -> dict[str, tuple[str, int]]:
        """What a pool manager works on: action and serial by name."""
        states = self.database.read(domain_state.read, self.pool, [zone.id for zone in zones], [])
        return {state.domain.name: (state.domain.action.value, state.domain.serial) for state in states.values()}


@pytest.fixture
def frozen(central: Central, database: Storage) -> Frozen:
    return Frozen(central, database)


@pytest.mark.all_databases
def test_servers_have_nothing_that_was_written_under_a_freeze(frozen: Frozen, clock: Clock, caller: Caller) -> None:
    central = frozen.central
    changed = succeed(central, frozen.zone('changed.example.'))
    behind = frozen.put(succeed(central, frozen.zone('behind.example.')), '192.0.2.2')  # a change goes out yet
    for round_ in range(2):
        names = [f'{name}{round_}.example.' for name in (
            'deleted', 'restored', 'again', 'gone', 'back', 'created', 'never')]
        deleted, restored, again, gone, back = (succeed(central, frozen.zone(name)) for name in names[:5])
        for zone in (gone, back):
            frozen.gone(zone)
        everything = ('changed.example.', 'behind.example.', *names)
        before = frozen.served(*everything)
        assert set(before.zones) == {changed.name, behind.name, deleted.name, restored.name, again.name}
        frozen.freeze()
        for number in range(4):
            clock.now += 10
            central.update_domain(WHO, changed.id, {'ttl': 100 + number, 'email': f'h{number}@example.com'})
            frozen.put(changed, f'192.0.2.{10 + number}', 'www' if number % 2 else 'mail')
        frozen.put(behind, '192.0.2.3')
        central.raise_serial_above(WHO, behind.id, central.get_domain(WHO, behind.id).serial + 9)
        central.renew_pool(WHO, frozen.pool.id)
        clock.now += 10
        frozen.delete(deleted)
        frozen.delete(frozen.put(restored, '192.0.2.9'))
        central.restore_domain(WHO, restored.id)
        frozen.delete(again)
        new_again = frozen.zone(again.name, '192.0.2.99')
        created = frozen.put(frozen.zone(f'created{round_}.example.'), '192.0.2.4')
        never = frozen.delete(frozen.zone(f'never{round_}.example.'))
        central.restore_domain(WHO, back.id)
        assert frozen.served(*everything) == before
        assert frozen.due(changed, behind, deleted, restored, again, new_again, created, never, back) == {
            zone.name: ('UPDATE', before.zones[zone.name][0]) for zone in (changed, behind)}
        caller.cast_domains.clear()
        assert frozen.unfreeze().freeze is None
        newest = {zone.name: zone for zone in (central.get_domain(WHO, zone.id) for zone in (
            changed, behind, restored, new_again, created, back))}
        after = frozen.served(*everything)
        assert {name: zone.serial for name, zone in newest.items()} == {
            name: serial for name, (serial, _, _, _) in after.zones.items()}
        assert after.members == {(zone.id, zone.generation, zone.name) for zone in newest.values()} | {
            member for member in before.members if member[2] in (f'restored{1 - round_}.example.',
                                                                 f'again{1 - round_}.example.',
                                                                 f'created{1 - round_}.example.',
                                                                 f'back{1 - round_}.example.')}
        assert after.catalog_serial > before.catalog_serial
        moments = [domain.changed_at for _, domain in caller.cast_domains]
        assert len(moments) >= 8 and moments == sorted(moments, key=str)
        assert frozen.due(deleted)[deleted.name][0] == 'DELETE'
        for zone in newest.values():
            assert succeed(central, zone).status is Status.ACTIVE


def test_a_report_of_the_version_before_counts_and_says_nothing_of_the_change(frozen: Frozen) -> None:
    central = frozen.central
    zone = frozen.put(succeed(central, frozen.zone('example.com.')), '192.0.2.2')
    frozen.freeze()
    newest = frozen.put(zone, '192.0.2.3')
    permitted = newest.permitted
    assert permitted is not None and permitted.serial == zone.serial != newest.serial
    assert succeed(central, permitted).status is Status.PENDING
    assert central.get_domain(WHO, zone.id).reported_serial == zone.serial


def test_a_freeze_ends_by_itself(frozen: Frozen, clock: Clock, caller: Caller,
                                 caplog: pytest.LogCaptureFixture) -> None:
    central = frozen.central
    zone = succeed(central, frozen.zone('example.com.'))
    frozen.freeze(until='2h')
    newest = frozen.put(zone, '192.0.2.2')
    clock.now += 7190
    central.frozen_pools.end_over()
    assert frozen.served(zone.name).zones[zone.name][0] == zone.serial
    caller.cast_domains.clear()
    clock.now += 10
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            central.frozen_pools.end_over()
    assert frozen.served(zone.name).zones[zone.name][0] == newest.serial
    assert [domain.id for _, domain in caller.cast_domains] == [zone.id]
    assert [record.getMessage() for record in caplog.records] == [
        'the pool default is not frozen any more; zones whose changes go out: 1']


def test_a_second_freeze_changes_the_reason_and_the_end_alone(frozen: Frozen, clock: Clock) -> None:
    central = frozen.central
    zone = succeed(central, frozen.zone('example.com.'))
    frozen.freeze()
    frozen.put(zone, '192.0.2.2')
    clock.now += 10
    frozen.freeze('still an incident', '1h')
    frozen.put(zone, '192.0.2.3')
    waits_for = central.get_domain(WHO, zone.id).waits_for
    assert waits_for is not None and (waits_for.reason, waits_for.user) == ('still an incident', 'admin')
    assert waits_for.until == clock.moment() + timedelta(hours=1)
    assert waits_for.since == clock.moment() - timedelta(seconds=10)
    assert frozen.served(zone.name).zones[zone.name][0] == zone.serial
    with pytest.raises(InvalidField, match='until: is not in the future'):
        frozen.freeze(until='2001-01-01')


def test_a_zone_is_served_though_its_pool_is_frozen(frozen: Frozen) -> None:
    """Its later changes wait again, and the history says who served it and why."""
    central = frozen.central
    zone, other = (succeed(central, frozen.zone(name)) for name in ('example.com.', 'other.example.'))
    frozen.freeze()
    assert refused(central.frozen_pools.release, ADMIN, zone.id, 'the fix') == 'nothing_waits'
    frozen.put(other, '192.0.2.2')
    fixed = frozen.put(frozen.put(zone, '192.0.2.2'), '192.0.2.3')
    new = frozen.zone('new.example.')
    before = frozen.served().catalog_serial
    for each in (fixed, new):
        assert central.frozen_pools.release(ADMIN, each.id, 'the fix').waits_for is None
    after = frozen.served(zone.name, other.name, new.name)
    assert {name: served[0] for name, served in after.zones.items()} == {
        zone.name: fixed.serial, other.name: other.serial, new.name: new.serial}
    assert after.catalog_serial > before and {name for _, _, name in after.members} == set(after.zones)
    version = central.find_versions(WHO, zone.id, 1)[0]
    assert (version.kind, version.serial, version.actor.user, version.reason) == (
        ChangeKind.RELEASE, fixed.serial, 'admin', 'the fix')
    frozen.put(zone, '192.0.2.4')
    assert frozen.served(zone.name).zones[zone.name][0] == fixed.serial
    gone = frozen.delete(other)
    assert refused(central.frozen_pools.release, ADMIN, gone.id, 'the fix') == 'domain_being_deleted'


def test_a_deletion_during_which_a_freeze_begins_gives_the_catalog_a_serial(
        frozen: Frozen, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts as made before, and so do the members without it; the next one waits."""
    zone, other = (succeed(frozen.central, frozen.zone(name)) for name in ('example.com.', 'other.example.'))
    check = domain_changes._check_deletion

    def frozen_then(tx: Tx, *about: Any) -> Any:
        pools.freeze(tx, frozen.pool.id, Freeze(new_id(), 'an incident', utcnow()), utcnow())
        return check(tx, *about)

    before = frozen.served()
    with monkeypatch.context() as patched:
        patched.setattr(domain_changes, '_check_deletion', frozen_then)
        frozen.delete(zone)
    after = frozen.served()
    assert {name for _, _, name in after.members} == {other.name}
    assert after.catalog_serial > before.catalog_serial
    frozen.delete(other)
    assert frozen.served() == after
    frozen.unfreeze()
    assert frozen.served().members == frozenset() and frozen.served().catalog_serial > after.catalog_serial


@pytest.mark.parametrize('of_zone', (False, True))
def test_a_change_that_is_approved_under_a_freeze_waits_for_its_end(frozen: Frozen, of_zone: bool) -> None:
    central = frozen.central
    zone = central.update_domain(ADMIN, succeed(central, frozen.zone('example.com.')).id, {'requires_approval': True})
    zone = succeed(central, zone)
    frozen.freeze()
    before = frozen.served(zone.name)
    asker = dataclasses.replace(ADMIN, user='ann')
    with pytest.raises(WaitsForApproval) as waiting:
        if of_zone:
            central.delete_domain(asker, zone.id)
        else:
            central.apply_changes(asker, zone.id, [RecordChange(f'www.{zone.name}', 'A', ('192.0.2.7',))])
    assert central.get_domain(ADMIN, zone.id).waits_for is None, 'nothing has changed yet'
    approver = dataclasses.replace(ADMIN, user='bob', may_approve=True)
    assert central.changes.approve(approver, waiting.value.kwargs['plan']).state is PlanState.APPLIED
    changed = frozen.database.read(domains.get_many, [zone.id])[zone.id]
    assert changed.waits_for is not None and frozen.served(zone.name) == before
    frozen.unfreeze()
    after = frozen.served(zone.name)
    assert after.members == frozenset() if of_zone else after.zones[zone.name][0] == changed.serial


def test_what_cannot_wait_is_refused(frozen: Frozen) -> None:
    central = frozen.central
    zone = succeed(central, frozen.zone('example.com.'))
    other = central.create_pool(WHO, {'name': 'other', 'name_servers': SERVERS})
    frozen.freeze()
    gone = frozen.delete(frozen.zone('gone.example.'))
    served = frozen.delete(zone)
    assert refused(central.move_domain, WHO, frozen.zone('new.example.').id, other.id) == 'pool_frozen'
    assert refused(central.update_pool, WHO, {'id': frozen.pool.id, 'name_servers': SERVERS[:1]}) == 'pool_frozen'
    assert {refused(central.purge_domain, WHO, each.id) for each in (gone, served)} == {'pool_frozen'}
    central.update_pool(WHO, {'id': frozen.pool.id, 'description': 'frozen'})


def test_a_zone_that_two_pools_have_is_not_changed_while_one_is_frozen(frozen: Frozen) -> None:
    central = frozen.central
    zone = succeed(central, frozen.zone('example.com.'))
    other = central.create_pool(WHO, {'name': 'other', 'name_servers': SERVERS})
    for name in ('default', 'other'):
        frozen.database.run(pool_servers.register, name, [
            PoolServer(new_id(), '', f'fake:{name}', 'fake', ServerState.ACTIVE)], False, True, utcnow())
    central.move_domain(WHO, zone.id, other.id)
    frozen.freeze()
    assert {refused(change, zone) for change in (
        lambda zone: frozen.put(zone, '192.0.2.2'), frozen.delete,
        lambda zone: central.update_domain(WHO, zone.id, {'ttl': 60}),
        lambda zone: central.abandon_domain(WHO, zone.id))} == {'pool_frozen'}
    frozen.unfreeze()
    assert frozen.put(zone, '192.0.2.2').status is Status.PENDING


def test_differences_that_servers_need_are_kept_whatever_their_size(database: Storage, caller: Caller,
                                                                    clock: Clock, monkeypatch: pytest.MonkeyPatch
                                                                    ) -> None:
    with started(database, caller, history_records=10) as central:
        frozen = Frozen(central, database)
        zone = succeed(central, frozen.zone('example.com.'))
        before = frozen.served(zone.name)
        frozen.freeze()
        for number in range(4):
            central.apply_changes(WHO, zone.id, [RecordChange(f'a{number}-{each}.example.com.', 'A', ('192.0.2.2',))
                                                 for each in range(9 + 3 * (number % 2))])
        assert frozen.served(zone.name).zones == before.zones
        monkeypatch.setattr('designate_pool.central.rules.journal._MOST_OCTETS', 1)
        assert refused(frozen.put, zone, '192.0.2.3') == 'too_large_to_wait'
        assert frozen.put(frozen.zone('new.example.'), '192.0.2.3').status is Status.PENDING
        clock.now += 400 * 86400
        central._purger.purge()
        assert frozen.served(zone.name).zones == before.zones
        frozen.unfreeze()
        assert central._purger.purge() > 0


def test_a_secondary_zone_waits_too(frozen: Frozen, clock: Clock) -> None:
    central = frozen.central

    def transfer(serial: int, *zones: Domain) -> Domain:
        for zone in zones:
            central.refresh_domain(WHO, zone.id)
        claims = {task.domain_id: task.claim for task in central.claim_refreshes(WHO, frozen.pool.name, 60, 10)}
        for zone in zones:
            ns = f'ns1.{zone.name}'
            central.store_transfer(WHO, zone.id, claims[zone.id], '192.0.2.53:53', ZoneTransferIn(
                serial, f'{ns} hostmaster.{zone.name} {serial} 3600 600 86400 300', 300,
                ((zone.name, 'NS', 300, ns), (f'a{serial}.{zone.name}', 'A', 300, '192.0.2.1'))))
        return central.get_domain(WHO, zones[0].id)

    def secondary(name: str) -> Domain:
        return central.create_domain(WHO, {'name': name, 'masters': ['192.0.2.53']})

    zone = transfer(5, secondary('example.com.'))
    waiting = secondary('waiting.example.')
    before = frozen.served(zone.name, waiting.name)
    frozen.freeze()
    for serial in (6, 7):
        transfer(serial, zone, waiting)
    assert frozen.served(zone.name, waiting.name) == before and frozen.due(waiting) == {}
    frozen.unfreeze()
    after = frozen.served(zone.name, waiting.name).zones
    assert {name: served[0] for name, served in after.items()} == {zone.name: 7, waiting.name: 7}


def test_other_pools_and_their_changes_do_not_wait(frozen: Frozen) -> None:
    central = frozen.central
    other = central.create_pool(WHO, {'name': 'other', 'name_servers': SERVERS})
    frozen.freeze()
    zone = central.create_domain(WHO, {'name': 'example.com.', 'email': 'h@example.com', 'pool_id': other.id})
    assert zone.waits_for is None and dataclasses.replace(zone, version=2) == dataclasses.replace(
        zone.permitted or zone, version=2)
    assert zone.action is Action.CREATE
