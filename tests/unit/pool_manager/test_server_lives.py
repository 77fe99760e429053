"""Servers join, rest, change and leave while the pool is at work.

As in ``test_manager`` nothing runs at the same time: each step of filling and draining is taken by the test.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from designate_pool import backends
from designate_pool.backends.base import Backend
from designate_pool.errors import BadConfiguration, DatabaseUnavailable, InvalidField, NotFound, WrongServerState
from designate_pool.model import (Action, Context, Domain, Endpoint, Outcome, PageRequest, PlanState, Pool, Server,
                                  ServerState, Status, StoredPlan, TsigKey, new_id, utcnow)
from designate_pool.pool_manager.dispatch.zone_compare import Match
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.periodic.join_and_drain import JoinAndDrain
from designate_pool.pool_manager.periodic.loops import BACKLOG, UNSETTLED_INTERVAL, PeriodicLoops
from designate_pool.pool_manager.server_registry import ServerRegistry, ServerSettingsCache
from designate_pool.pool_manager.verify import server_zones
from designate_pool.pool_manager.verify.server_compare import HIDDEN, THREADS, ServerCompare
from designate_pool.runtime import Threads
from designate_pool.storage.operations import pool_servers as server_store
from designate_pool.storage.reporting import audit_findings
from designate_pool.storage.zones import domains, plans as plan_store, pools as pool_store
from tests.unit.pool_manager.conftest import (CONTEXT, SERVERS, A, B, C, Clock, D, EditablePool, Listed, later,
                                              new_domain, some)


def test_what_others_need_of_the_configuration_is_published_at_the_start_and_at_each_reload(
        editable: EditablePool) -> None:
    def published() -> tuple[object, ...]:
        [found] = editable.storage.read(pool_store.find, PageRequest({'name': 'default'}))
        assert found.published_at is not None
        return (found.threshold_percentage, found.catalog_zone, found.count_joining_servers,
                [each.key_name for each in editable.roll])

    assert published() == (100, None, False, [None, None, None])
    editable.pool = dataclasses.replace(editable.pool, threshold_percentage=66, catalog_zone='catalog.example.',
                                        count_joining_servers=True)
    key = TsigKey('one.example.com.', 'hmac-sha256', 'c2VjcmV0')
    editable.change_section(A, tsig_key=key)
    assert published() == (66, 'catalog.example.', True, ['one.example.com.', None, None])


def test_a_server_of_a_pool_without_domains_has_nothing_to_wait_for(editable: EditablePool) -> None:
    editable.add(D)
    assert editable.registry.reload().joined == ('fake:192.0.2.9:53',)
    assert editable.states[D] == 'active'


def test_a_configuration_that_was_read_while_the_database_was_away_is_used_once_it_answers(
        editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    editable.add(D)
    with monkeypatch.context() as away:
        def fail(*_: object) -> None:
            raise DatabaseUnavailable(service='the database', why='no route')

        away.setattr(editable.manager.storage, 'run', fail)
        for attempt in (editable.registry.reload, editable.registry.refresh):
            with pytest.raises(DatabaseUnavailable):
                attempt()
        assert D not in editable.manager.all_workers
    editable.registry.refresh()
    assert editable.states[D] == 'active' and D in editable.manager.all_workers


def test_a_joining_server_counts_at_once_when_the_operator_wants_it(editable: EditablePool) -> None:
    some(editable)
    editable.manager.reconciler.settings = dataclasses.replace(editable.manager.settings, count_joining_servers=True)
    editable.begin_joining(D)
    assert editable.states[D] == 'joining'
    assert editable.manager.members.counting == (*SERVERS, D)


def test_a_new_section_joins_is_filled_and_then_counts(editable: EditablePool) -> None:
    domains = some(editable)
    editable.begin_joining(D)
    assert editable.states[D] == 'joining'
    assert editable.manager.members.uncounted == (D,)
    changed = editable.change(domains[0])
    assert editable.get(domains[0]).status is Status.ACTIVE
    assert editable.serial(D, domains[0].name) == changed.serial, 'a change reaches a server that is still joining'
    editable.settle()
    assert editable.states[D] == 'active'
    assert editable.manager.members.counting == (*SERVERS, D)
    assert editable.servers[D].zones.keys() == {domain.name for domain in domains}
    server = next(each for each in editable.roll if each.id == D)
    assert (server.filled, server.joined_at is not None) == (5, True)


def test_a_joining_server_is_given_no_more_domains_while_too_many_wait_for_it(
        editable: EditablePool, clock: Clock) -> None:
    editable.filling = JoinAndDrain(editable.manager, editable.registry, page_size=2, window=3)
    domains = some(editable, 9)
    editable.begin_joining(D)
    editable.servers[D].dead = True
    editable.step(20)
    begun = [domain for domain in domains if (D, Action.CREATE) in editable.rows(domain)]
    assert len(begun) == 4, 'two pages of two: three or more wait then'
    editable.servers[D].dead = False
    editable.manager.wake(D)
    later(editable, clock, 60)
    editable.settle()
    assert editable.servers[D].zones.keys() == {domain.name for domain in domains}


def test_filling_that_was_interrupted_goes_on_where_it_was(editable: EditablePool) -> None:
    domains = some(editable, 7)
    editable.begin_joining(D)
    editable.step(1)
    begun = {name for verb, name in editable.servers[D].calls if verb == 'create'}
    assert 0 < len(begun) < 7
    editable.start('one')
    editable.settle()
    assert editable.states[D] == 'active'
    assert editable.servers[D].zones.keys() == {domain.name for domain in domains}
    created = [name for verb, name in editable.servers[D].calls if verb == 'create']
    assert len(created) == len(set(created)) == 7, 'none is begun twice'


def test_a_section_that_is_gone_drains_and_its_rows_are_purged(editable: EditablePool, clock: Clock) -> None:
    domains = some(editable)
    editable.servers[C].dead = True
    stuck = editable.change(domains[0])
    assert editable.get(domains[0]).status is Status.ERROR
    assert editable.leave(C).draining == ('fake:192.0.2.1:55',)
    editable.settle()
    assert editable.states == {A: 'active', B: 'active', C: 'removed'}
    assert not any(server == C for domain in domains for server, _ in editable.rows(domain))
    clock.offset += timedelta(seconds=UNSETTLED_INTERVAL + 1)
    PeriodicLoops(editable.manager, editable.registry, editable.runtime).run_unsettled()
    assert editable.get(domains[0]).reported_serial == stuck.serial, 'the dead server holds nothing back any more'
    assert len(editable.servers[C].zones) == 5, 'nobody asked for the zones to be deleted'
    editable.registry.reload()
    assert editable.states == {A: 'active', B: 'active', C: 'removed'}, 'a manager may not have seen it yet'
    clock.offset += server_store.KEPT
    editable.registry.reload()
    assert editable.states == {A: 'active', B: 'active'}


def test_a_crash_in_the_middle_of_draining_is_resumed_with_the_kept_settings(editable: EditablePool) -> None:
    some(editable, 6)
    editable.deleting = True
    editable.start('one')
    editable.leave(C)
    editable.step(1)
    assert 0 < len(editable.machines[C, 'fake'].zones) < 6
    editable.start('one')
    editable.settle()
    assert editable.states[C] == 'removed'
    assert editable.machines[C, 'fake'].zones == {}


@pytest.mark.parametrize('other_driver', [False, True], ids=['section gone', 'another driver'])
def test_a_server_whose_former_driver_is_uninstalled_keeps_its_rows_and_holds_up_nobody(
        editable: EditablePool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
        other_driver: bool) -> None:
    installed = True

    def driver_class(driver: str) -> type[Backend]:
        if driver == 'extra' and not installed:
            raise InvalidField(field='driver', why="'extra' is unknown")
        return Listed

    def build(server: Server) -> Backend:
        driver_class(server.driver)
        return editable.build(server)

    monkeypatch.setattr(backends, 'driver_class', driver_class)
    monkeypatch.setattr(backends, 'build', build)
    editable.deleting = True
    domains = some(editable)
    editable.configured[C] = dataclasses.replace(editable.configured[C], driver='extra')
    editable.start('one')
    editable.settle()
    former = editable.machines[C, 'extra']
    assert len(former.zones) == len(domains)
    if other_driver:
        editable.configured[C] = dataclasses.replace(editable.configured[C], driver='fake')
    else:
        del editable.configured[C]
    installed = False
    editable.start('one')
    editable.step(20)
    [message] = [each for each in caplog.messages if 'cannot be deleted' in each]
    assert message.startswith(f'{former.server.label}: ') and "'extra' is unknown" in message
    assert editable.states[C] == ('joining' if other_driver else 'draining') and len(former.zones) == len(domains)
    changed = editable.change(domains[0])
    assert [editable.serial(key, changed.name) for key in (A, B)] == [changed.serial] * 2
    assert editable.get(domains[0]).status is Status.ACTIVE
    installed = True
    editable.start('one')
    editable.settle()
    assert former.zones == {}
    assert editable.states[C] == ('active' if other_driver else 'removed')


def test_a_section_that_comes_back_before_its_zones_are_deleted_keeps_them(editable: EditablePool) -> None:
    some(editable)
    editable.put(C, ServerState.DRAINING, delete_zones=True)
    section = editable.configured[C]
    assert editable.leave(C).draining == ()
    editable.step()
    kept = {**editable.servers[C].zones}
    assert 0 < len(kept) < 5
    editable.configured[C] = section
    editable.registry.reload()
    editable.step()
    assert kept.items() <= editable.servers[C].zones.items()
    editable.settle()
    assert editable.states[C] == 'active' and len(editable.servers[C].zones) == 5
    assert [verb for verb in verbs(editable, C) if verb == 'delete'] == ['delete'] * (5 - len(kept))


def test_kept_settings_are_for_their_owner_only(editable: EditablePool) -> None:
    assert (editable.folder / 'one.json').stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize('fault, note', [('dead', 'its zones were left on it: '),
                                         ('refuses', '5 zones could not be deleted and were left on it')])
def test_zones_are_left_on_a_server_that_does_not_delete_them(editable: EditablePool, fault: str, note: str) -> None:
    some(editable)
    editable.put(C, ServerState.DRAINING, dismissed=True, delete_zones=True)
    setattr(editable.servers[C], fault, True)
    editable.settle()
    removed = next(each for each in editable.roll if each.id == C)
    assert (removed.state, removed.delete_zones) == (ServerState.REMOVED, False)
    assert (removed.note or '').startswith(note)


def test_a_server_drained_by_command_stays_out_until_it_is_told_to_come_back(editable: EditablePool) -> None:
    some(editable)
    editable.put(C, ServerState.DRAINING, dismissed=True, delete_zones=True)
    editable.settle()
    editable.registry.reload()
    editable.start('one')
    editable.settle()
    assert editable.states[C] == 'removed'
    editable.put(C, ServerState.JOINING, dismissed=False, filled_to='', filled=0)
    editable.settle()
    assert editable.states[C] == 'active'
    assert len(editable.servers[C].zones) == 5


def test_a_changed_section_is_applied_to_every_domain(editable: EditablePool) -> None:
    domains = some(editable)
    before = len(editable.servers[B].calls)
    assert editable.change_section(B, primaries=(Endpoint('192.0.2.10', 5354),)).changed == ('fake:192.0.2.1:54',)
    assert editable.states[B] == 'active', 'it serves what it served'
    editable.settle()
    assert editable.servers[B].calls[before:] == [('create', key) for key in sorted(domain.id for domain in domains)]
    assert all(editable.get(domain).status is Status.ACTIVE for domain in domains)
    assert editable.registry.reload().changed == ()


def test_another_driver_takes_over_when_the_former_has_deleted_everything(editable: EditablePool) -> None:
    some(editable)
    former = editable.servers[B]
    editable.configured[B] = dataclasses.replace(editable.configured[B], driver='other')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backends, 'driver_class', lambda driver: Listed)
        editable.registry.reload()
        assert editable.states[B] == 'joining'
        editable.step(1)
        assert 0 < len(former.zones) < 5
        assert editable.machines[B, 'other'].zones == {}, 'a catalog would not take what is there from elsewhere'
        editable.start('one')
        editable.settle()
    assert former.zones == {}
    assert len(editable.machines[B, 'other'].zones) == 5
    assert editable.states[B] == 'active'
    assert next(each for each in editable.roll if each.id == B).catalog_epoch == 1


def test_a_server_at_another_address_counts_when_it_is_filled_there(editable: EditablePool) -> None:
    domains = some(editable)
    before = len(editable.servers[B].calls)
    editable.configured[B] = dataclasses.replace(editable.configured[B], host='192.0.2.77')
    editable.servers[B].zones.clear()
    editable.registry.reload()
    assert editable.states[B] == 'joining'
    editable.change(domains[0])
    assert editable.get(domains[0]).status is Status.ACTIVE
    editable.settle()
    assert editable.states[B] == 'active'
    assert len(editable.servers[B].zones) == 5
    assert not any(verb == 'delete' for verb, _ in editable.servers[B].calls[before:])


def test_a_wrong_configuration_changes_nothing(editable: EditablePool) -> None:
    some(editable)
    editable.wrong = 'no'
    with pytest.raises(BadConfiguration):
        editable.endpoint.reload_servers(CONTEXT)
    editable.endpoint.reload()
    assert editable.states == dict.fromkeys(SERVERS, 'active')
    editable.wrong = None
    editable.pool = dataclasses.replace(editable.pool, name='other')
    with pytest.raises(InvalidField, match='restart'):
        editable.registry.reload()
    assert editable.manager.pool.name == 'default'
    name = new_domain(editable, 'catalog.example.').name
    editable.pool = dataclasses.replace(editable.pool, name='default', catalog_zone=name)
    with pytest.raises(InvalidField, match='catalog_zone: the pool default has a zone catalog.example.: choose'):
        editable.registry.reload()
    assert editable.manager.pool.catalog_zone is None


def test_others_follow_when_the_mistakes_in_their_file_are_corrected(
        editable: EditablePool, caplog: pytest.LogCaptureFixture) -> None:
    mistakes = ''

    def read_pool() -> Pool:
        if mistakes:
            raise BadConfiguration(count=1, listing=mistakes)
        return editable.read_pool()

    elsewhere = ServerRegistry(manager := editable.new_manager('two'), editable.runtime, read_pool,
                               ServerSettingsCache(str(editable.folder / 'two')))
    elsewhere.start()
    mistakes = 'a typo'
    editable.begin_joining(D)
    for _ in range(2):
        elsewhere.refresh()
        assert D not in manager.workers
    assert sum('a typo' in record.message for record in caplog.records if record.levelname == 'ERROR') == 1
    mistakes = ''
    elsewhere.refresh()
    assert D in manager.workers


def test_others_follow_and_an_older_file_undoes_nothing(editable: EditablePool) -> None:
    some(editable)
    elsewhere = ServerRegistry(manager := editable.new_manager('two'), editable.runtime,
                               lambda: dataclasses.replace(editable.pool, servers=old),
                               ServerSettingsCache(str(editable.folder / 'two')))
    old = tuple(editable.configured.values())
    elsewhere.start()
    editable.begin_joining(D)
    elsewhere.refresh()
    assert D not in manager.workers
    assert manager.members.tracked == (*SERVERS, D), 'it owes the new server all the same'
    assert editable.states[D] == 'joining'
    old = tuple(editable.configured.values())
    stages = f'canary {old[0].label}; all'
    unstaged, editable.pool = editable.pool, dataclasses.replace(editable.pool, release_stages=stages)
    editable.registry.reload()
    editable.pool = unstaged
    elsewhere.refresh()
    assert D in manager.workers
    assert manager.pool.release_stages == stages, 'Central releases in these, whatever this host has'


def test_others_follow_when_the_database_answers_again(editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = ServerRegistry(manager := editable.new_manager('two'), editable.runtime, editable.read_pool,
                               ServerSettingsCache(str(editable.folder / 'two')))
    elsewhere.start()
    editable.add(D)
    editable.registry.reload()
    with monkeypatch.context() as away:
        def fail(*_: object) -> None:
            raise DatabaseUnavailable(service='the database', why='no route')

        away.setattr(pool_store, 'get', fail)
        with pytest.raises(DatabaseUnavailable):
            elsewhere.refresh()
    elsewhere.refresh()
    assert D in manager.workers


def test_settings_that_no_zone_is_made_with_replace_the_driver_and_refill_nothing(editable: EditablePool) -> None:
    some(editable)
    worker = editable.manager.workers[A]
    assert editable.change_section(A, call_timeout=3.0).changed == ()
    assert editable.manager.workers[A] is not worker
    assert editable.manager.workers[B].server is editable.configured[B]


def test_nothing_is_sent_in_maintenance_and_all_of_it_afterwards(editable: EditablePool) -> None:
    domains = some(editable)
    before = dict(editable.servers[C].zones)
    calls = len(editable.servers[C].calls)
    editable.put(C, ServerState.MAINTENANCE)
    changed, new, gone = editable.change(domains[0]), editable.create('new.example.com.'), editable.delete(domains[1])
    assert [editable.get(each).status for each in (changed, new, gone)] == [
        Status.ACTIVE, Status.ACTIVE, Status.DELETED]
    assert editable.servers[C].zones == before
    assert len(editable.servers[C].calls) == calls
    assert editable.rows(gone)[C, Action.DELETE].status is None, 'its deletion is not complete'
    assert not any(row.status is Outcome.ERROR for row in editable.rows(changed).values())
    editable.put(C, ServerState.ACTIVE)
    periodic = PeriodicLoops(editable.manager, editable.registry, editable.runtime)
    for _ in range(5):
        periodic.run_due()
        editable.deliver()
    assert editable.serial(C, changed.name) == changed.serial
    assert editable.serial(C, new.name) == new.serial
    assert gone.name not in editable.servers[C].zones
    assert editable.rows(gone) == {}


def test_nothing_more_is_begun_while_too_much_that_was_heard_waits(
        editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = some(editable, 1)[0]
    editable.put(C, ServerState.MAINTENANCE)
    changed = editable.change(domain)
    editable.put(C, ServerState.ACTIVE)
    periodic = PeriodicLoops(editable.manager, editable.registry, editable.runtime)
    monkeypatch.setattr(type(editable.manager), 'queues', lambda self: {'outcomes': BACKLOG + 1})
    assert 0 < periodic.run_due() < 1
    editable.deliver()
    assert editable.serial(C, changed.name) != changed.serial
    monkeypatch.undo()
    for _ in range(3):
        periodic.run_due()
        editable.deliver()
    assert editable.serial(C, changed.name) == changed.serial


def test_what_a_server_lacks_is_found_and_mended(editable: EditablePool, clock: Clock) -> None:
    domains = some(editable)
    editable.join(D)
    zones = editable.servers[D].zones
    del zones[domains[0].name]
    zones[domains[1].name] = 1
    zones[domains[2].name] = None
    zones['stranger.example.'] = 7
    clock.offset += timedelta(seconds=1)
    comparing = ServerCompare(editable.manager, editable.runtime)
    found = comparing.compare(D, fix=False, delete_extra=None)
    assert found.missing == (domains[0].name,)
    assert found.behind == ((domains[1].name, 1, domains[1].serial), (domains[2].name, None, domains[2].serial))
    assert found.extra == ('stranger.example.',)
    assert (found.total, found.mending, found.deleted) == (5, 0, 0)
    assert unrepaired(editable, domains) == [
        'the server does not have the zone', f'the server serves serial 1, not {domains[1].serial}',
        f'the server serves serial none, not {domains[2].serial}']
    with pytest.raises(WrongServerState, match='1 extra zones, not 2; none was deleted'):
        comparing.compare(D, fix=False, delete_extra=2)
    assert 'stranger.example.' in zones
    found = comparing.compare(D, fix=True, delete_extra=1)
    assert (found.mending, found.deleted) == (3, 1)
    assert unrepaired(editable, domains) == [], 'the rows say the rest'
    editable.deliver()
    found = comparing.compare(D, fix=True, delete_extra=0)
    assert (found.missing, found.behind, found.extra, found.mending) == ((), (), (), 0)


def unrepaired(pool: EditablePool, compared: Iterable[Domain]) -> list[str]:
    """What comparisons have found that is not repaired, without those that find it again."""
    return [finding.what for domain in compared
            for finding in pool.storage.read(audit_findings.of_domain, domain.id, 10) if not finding.mended]


def test_what_a_comparison_found_is_forgotten_when_it_is_right_again(
        editable: EditablePool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = names = filled(editable, 2)
    by_name = editable.storage.read(domains.live_by_name, names)
    zones, comparing = editable.servers[D].zones, ServerCompare(editable.manager, Threads())
    monkeypatch.setattr(ServerCompare, '_match', lambda *which: (Match.OTHER, 'has other contents'))
    zones[first] = 1
    clock.offset += timedelta(seconds=1)
    comparing.compare(D, fix=False, delete_extra=None, contents=True)
    assert len(unrepaired(editable, by_name.values())) == 2
    zones[first] = by_name[first].serial
    comparing.compare(D, fix=False, delete_extra=None)
    assert unrepaired(editable, by_name.values()) == ['has other contents'], 'contents were not compared again'
    editable.change(by_name[second])
    assert unrepaired(editable, by_name.values()) == [], 'it has transferred the change'


def test_plans_for_a_server_go_with_it(editable: EditablePool) -> None:
    [domain], now = some(editable, 1), utcnow()
    plans = [StoredPlan(new_id(), 'default', domain.name, key, PlanState.PARKED, domain.id, key,
                        expires_at=now + timedelta(days=1)) for key in (B, C)]
    for plan in plans:
        editable.storage.run(plan_store.put, plan, now)
    editable.put(C, ServerState.DRAINING, dismissed=True)
    editable.settle()
    ended = [editable.storage.read(plan_store.get, plan.id) for plan in plans]
    assert [(plan.state, plan.why) for plan in ended if plan] == [
        (PlanState.PARKED, None), (PlanState.DROPPED, 'fake:192.0.2.1:55 has left the pool')]


def test_a_server_that_cannot_be_compared(editable: EditablePool) -> None:
    with pytest.raises(NotFound):
        ServerCompare(editable.manager, editable.runtime).compare('e' * 32, fix=False, delete_extra=None)
    editable.begin_joining(D)
    editable.servers[D].dead = True
    with pytest.raises(WrongServerState, match='connection refused'):
        ServerCompare(editable.manager, editable.runtime).compare(D, fix=False, delete_extra=None)
    editable.leave(D)
    with pytest.raises(WrongServerState, match='draining: its section is not in the configuration'):
        ServerCompare(editable.manager, editable.runtime).compare(D, fix=False, delete_extra=None)


def test_a_zone_deleted_while_its_server_drains_is_taken_from_that_server_too(editable: EditablePool) -> None:
    domains = some(editable)
    editable.put(C, ServerState.DRAINING, dismissed=True, delete_zones=True)
    gone = editable.delete(domains[-1])
    assert editable.get(gone).status is Status.DELETED
    assert {server for server, _ in editable.rows(gone)} == {C}
    editable.settle()
    assert editable.states[C] == 'removed' and editable.servers[C].zones == {} and editable.rows(gone) == {}


def test_a_zone_deleted_by_a_manager_that_does_not_know_a_joining_server_yet_is_taken_from_it_too(
        editable: EditablePool) -> None:
    domains = some(editable)
    stranger = editable.new_manager('two')
    editable.join(D)
    assert len(editable.servers[D].zones) == len(domains)
    editable.lose_casts = True
    gone = editable.central.delete_domain(CONTEXT, domains[0].id)
    stranger.queue_changes([gone.id])
    assert editable.get(gone).status is Status.DELETED and gone.name in editable.servers[D].zones
    editable.sweep()
    assert gone.name not in editable.servers[D].zones and editable.rows(gone) == {}


def most_calls(editable: EditablePool, key: str, name: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many calls for *name* were under way on a server at the same time, at the most."""
    under_way, most = [0], [0]

    def counting(act: Callable[..., Any]) -> Callable[..., Any]:
        def counted(domains: Sequence[Domain]) -> Any:
            mine = any(domain.name == name for domain in domains)
            under_way[0] += mine
            most[0] = max(most[0], under_way[0])
            try:
                return act(domains)
            finally:
                under_way[0] -= mine
        return counted

    for (server, _), machine in editable.machines.items():
        if server == key:
            for verb in ('create_domains', 'delete_domains'):
                monkeypatch.setattr(machine, verb, counting(getattr(machine, verb)))
    return most


def due_later(editable: EditablePool, clock: Clock, *managers: Manager) -> None:
    for manager in managers:
        clock.offset += timedelta(seconds=3)
        PeriodicLoops(manager, editable.registry, editable.runtime).run_due()
        editable.deliver()


def test_a_domain_that_is_made_when_an_extra_zone_was_looked_up_for_the_last_time_waits_too(
        editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    some(editable)
    editable.join(D)
    machine, known = editable.servers[D], server_zones.explained
    comparing = ServerCompare(editable.manager, editable.runtime)
    machine.zones['stranger.example.'] = 7
    looks: list[set[str]] = []

    def created_when_looked(*arguments: Any) -> set[str]:
        found = known(*arguments)
        looks.append(found)
        if len(looks) == 2:  # the first one was for the list
            editable.central.create_domain(CONTEXT, {'name': 'stranger.example.', 'email': 'hostmaster@example.com'})
        return found

    monkeypatch.setattr(server_zones, 'explained', created_when_looked)
    calls = list(machine.calls)
    assert comparing.compare(D, fix=False, delete_extra=1).deleted == 1
    assert [verb for verb, _ in machine.calls[len(calls):]] == ['delete'], 'the creation waits for its turn'


def test_a_zone_that_others_are_at_work_on_is_left_to_them_by_who_empties_the_server(
        editable: EditablePool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = some(editable, 1)[0]
    stranger = editable.new_manager('two')
    most = most_calls(editable, C, domain.name, monkeypatch)
    editable.lose_casts = True

    def deleted_elsewhere() -> None:
        gone = editable.central.delete_domain(CONTEXT, domain.id)
        stranger.queue_changes([gone.id])

    editable.servers[C].before_return = deleted_elsewhere
    editable.put(C, ServerState.DRAINING, dismissed=True, delete_zones=True)
    editable.step()
    assert most == [1]
    for _ in range(3):
        due_later(editable, clock, stranger)
        editable.step()
    assert editable.states[C] == 'removed' and editable.servers[C].zones == {} and most == [1]


def create(editable: EditablePool, name: str = 'example.com.') -> Domain:
    return editable.central.create_domain(CONTEXT, {'name': name, 'email': 'hostmaster@example.com'})


def verbs(editable: EditablePool, server: str) -> list[str]:
    return [verb for verb, _ in editable.servers[server].calls]


def test_a_section_that_goes_during_a_call_costs_the_other_servers_nothing(editable: EditablePool) -> None:
    editable.servers[C].before_return = lambda: editable.leave(C)
    domain = create(editable)
    editable.deliver()
    assert editable.get(domain).status is Status.ACTIVE
    assert editable.rows(domain)[C, Action.CREATE].claimed_by is None
    editable.settle()
    assert editable.states[C] == 'removed'


@pytest.mark.parametrize('setting', [{'port': 5300}, {'primaries': (Endpoint('192.0.2.10', 5354),)}])
def test_a_call_that_was_made_with_former_settings_is_made_again_with_those_of_now(
        editable: EditablePool, clock: Clock, setting: dict[str, object]) -> None:
    def change() -> None:
        editable.change_section(C, **setting)
        editable.filling.run()

    editable.servers[C].before_return = change
    domain = create(editable)
    editable.deliver()
    later(editable, clock, 2)
    assert verbs(editable, C) == ['create', 'create']
    editable.settle()
    assert editable.get(domain).status is Status.ACTIVE


def test_a_deletion_at_the_former_address_is_made_at_the_present_one(editable: EditablePool, clock: Clock) -> None:
    domain, = some(editable, 1)
    editable.servers[C].before_return = lambda: editable.change_section(C, host='192.0.2.77')
    gone = editable.central.delete_domain(CONTEXT, domain.id)
    later(editable, clock, 2)
    assert verbs(editable, C) == ['create', 'delete', 'delete']
    assert editable.get(gone).status is Status.DELETED and editable.rows(gone) == {}


@pytest.mark.parametrize('leave', [lambda editable: editable.put(C, ServerState.MAINTENANCE),
                                   lambda editable: editable.leave(C)], ids=['rests', 'goes'])
def test_a_server_that_leaves_just_before_due_rows_are_claimed_holds_up_no_other(
        editable: EditablePool, clock: Clock, monkeypatch: pytest.MonkeyPatch,
        leave: Callable[[EditablePool], None]) -> None:
    create(editable)
    editable.asked.clear()  # as with a MiniDNS that died
    clock.offset += timedelta(seconds=13)
    queues = editable.manager.queues

    def left_meanwhile() -> dict[str, int]:
        monkeypatch.setattr(editable.manager, 'queues', queues)
        leave(editable)
        return queues()

    monkeypatch.setattr(editable.manager, 'queues', left_meanwhile)
    PeriodicLoops(editable.manager, editable.registry, editable.runtime).run_due()
    assert sorted(each.server_id for each in editable.asked) == [A, B]


def test_what_others_begin_on_a_server_that_has_just_left_goes_with_it(editable: EditablePool, clock: Clock) -> None:
    other = editable.new_manager('two')  # which has yet to see that it leaves
    editable.put(C, ServerState.DRAINING, dismissed=True)
    editable.settle()
    editable.lose_casts = True
    domain = create(editable)
    other.queue_changes([domain.id])
    editable.deliver()
    editable.registry.refresh()
    editable.settle()
    assert [key for key in editable.rows(domain) if key[0] == C] == []
    editable.lose_casts = False
    gone = editable.central.delete_domain(CONTEXT, domain.id)
    later(editable, clock, 2)
    assert editable.get(gone).status is Status.DELETED and editable.rows(gone) == {}


def test_a_server_is_forgotten_only_when_it_has_been_emptied(editable: EditablePool, clock: Clock) -> None:
    other = editable.new_manager('two')
    editable.leave(C)
    editable.settle()
    editable.lose_casts = True
    domain = create(editable)
    other.queue_changes([domain.id])
    clock.offset += server_store.KEPT
    editable.registry.reload()
    editable.settle()
    assert [key for key in editable.rows(domain) if key[0] == C] == []
    clock.offset += server_store.KEPT
    editable.registry.reload()
    assert C not in editable.states


def filled(editable: EditablePool, count: int) -> list[str]:
    """The names of so many domains that a server which can be asked for its zones has."""
    names = sorted(domain.name for domain in some(editable, count))
    editable.join(D)
    return names


def test_as_many_zones_are_compared_at_a_time_as_may(editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    names = filled(editable, 2 * THREADS)
    together = threading.Barrier(THREADS)

    def match(self, worker, domain, *rest):
        together.wait(30)  # until all the others are at one, too
        return (Match.OTHER, 'other ones') if domain.name == names[3] else (
            Match.SILENT, 'no answer') if domain.name in (names[1], names[0]) else (Match.SAME, '')

    monkeypatch.setattr(ServerCompare, '_match', match)
    found = ServerCompare(editable.manager, Threads()).compare(D, fix=False, delete_extra=None, contents=True)
    assert found.other == ((names[3], 'other ones'),)
    assert found.unchecked == ((names[0], 'no answer'), (names[1], 'no answer'))


def test_what_fails_ends_the_comparison(editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(editable, 50)
    begun = []

    def match(self, worker, domain, *rest):
        begun.append(domain.name)
        raise RuntimeError('the database is gone')

    monkeypatch.setattr(ServerCompare, '_match', match)
    with pytest.raises(RuntimeError, match='the database is gone'):
        ServerCompare(editable.manager, Threads()).compare(D, fix=False, delete_extra=None, contents=True)
    assert len(begun) <= THREADS


def test_when_the_time_is_over_the_rest_is_not_compared(editable: EditablePool) -> None:
    names = filled(editable, 3)
    comparing = ServerCompare(editable.manager, Threads(), seconds=0.0)
    found = comparing.compare(D, fix=False, delete_extra=None, contents=True)
    assert found.unchecked == tuple((name, '0 s were over') for name in names)


def test_zones_that_the_requester_may_not_see_are_counted_and_not_named(
        editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    names = filled(editable, 4)
    zones = editable.servers[D].zones
    del zones[names[0]]
    zones[names[1]], zones['stranger.example.'] = 1, 7
    monkeypatch.setattr(ServerCompare, '_match', lambda self, worker, domain, *rest: (
        Match.OTHER, f'e.g. www.{domain.name} A') if domain.name == names[2] else (Match.SILENT, 'no answer'))
    compare = functools.partial(ServerCompare(editable.manager, Threads()).compare, D, False, None, True)
    own = [domain for domain in editable.storage.read(domains.live_by_name, names).values() if domain.name == names[0]]
    editable.storage.run(domains.assign_project, own[0].id, 'mine', utcnow())
    everything, mine, nothing = (compare(context) for context in (
        Context(all_projects=True), Context(project_id='mine'), Context(project_id='other')))
    assert everything.extra == ('stranger.example.',) and everything.missing == (names[0],)
    assert mine == dataclasses.replace(
        everything, behind=((HIDDEN, *everything.behind[0][1:]),), extra=(HIDDEN,), other=((HIDDEN, HIDDEN),),
        unchecked=((HIDDEN, HIDDEN),))
    assert nothing == dataclasses.replace(mine, missing=(HIDDEN,))


def test_what_has_changed_since_it_was_compared_is_not_transferred_again(editable: EditablePool,
                                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = filled(editable, 2)
    by_name = editable.storage.read(domains.live_by_name, [first, second])

    def match(self, worker, domain, *rest):
        if domain.name == first:
            editable.change(domain)  # and the server has it already
        return Match.OTHER, 'other ones'

    monkeypatch.setattr(ServerCompare, '_match', match)
    found = ServerCompare(editable.manager, Threads()).compare(D, fix=True, delete_extra=None, contents=True)
    assert found.mending == 1
    rows = [editable.rows(by_name[name])[D, Action.UPDATE] for name in (first, second)]
    assert [row.diverged for row in rows] == [False, True]
