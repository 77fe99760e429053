"""Servers join, rest, change and leave while the pool is at work.

As in ``test_manager`` nothing runs at the same time: each step of filling and draining is taken by the test.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from designate_pool import backends
from designate_pool.config.server_settings_cache import ServerSettingsCache
from designate_pool.errors import BadConfiguration, InvalidField, ServerNotFound, WrongServerState
from designate_pool.model import (Action, Answer, Domain, Endpoint, Outcome, PollResult, ServerState, Status, TsigKey,
                                  utcnow)
from designate_pool.pool_manager.dispatch import zone_removal
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.periodic import join_and_drain
from designate_pool.pool_manager.periodic.join_and_drain import JoinAndDrain
from designate_pool.pool_manager.periodic.loops import BACKLOG, PeriodicLoops
from designate_pool.pool_manager.server_registry import ServerRegistry
from designate_pool.pool_manager.verify import zone_names
from designate_pool.pool_manager.verify.server_compare import ServerCompare
from designate_pool.storage.zones import pools as pool_store
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, A, B, C, Clock, D, Listed, Town, some


def test_the_first_servers_of_a_pool_are_active_at_once(town: Town) -> None:
    assert town.states == dict.fromkeys(SERVERS, 'active')
    assert town.manager.members.counting == SERVERS


def test_what_others_need_of_the_configuration_is_published_at_the_start_and_at_each_reload(town: Town) -> None:
    def published() -> tuple[object, ...]:
        [found] = town.storage.read(pool_store.find, {'name': 'default'}, None, None, None, None)
        assert found.published_at is not None
        return (found.threshold_percentage, found.catalog_zone, found.count_joining_servers,
                [each.key_name for each in town.roll])

    assert published() == (100, None, False, [None, None, None])
    town.pool = dataclasses.replace(town.pool, threshold_percentage=66, catalog_zone='catalog.example.',
                                    count_joining_servers=True)
    key = TsigKey('one.example.com.', 'hmac-sha256', 'c2VjcmV0')
    town.configured[A] = dataclasses.replace(town.configured[A], tsig_key=key)
    town.registry.reload()
    assert published() == (66, 'catalog.example.', True, ['one.example.com.', None, None])


def test_a_server_of_a_pool_without_domains_has_nothing_to_wait_for(town: Town) -> None:
    town.add(D)
    assert town.registry.reload().joined == ('fake:192.0.2.9:53',)
    assert town.states[D] == 'active'


def test_a_new_section_joins_is_filled_and_then_counts(town: Town) -> None:
    domains = some(town)
    town.add(D)
    town.registry.reload()
    assert town.states[D] == 'joining'
    assert town.manager.members.uncounted == (D,)
    changed = town.change(domains[0])
    assert town.get(domains[0]).status is Status.ACTIVE
    assert town.serial(D, domains[0].name) == changed.serial, 'a change reaches a server that is still joining'
    town.settle()
    assert town.states[D] == 'active'
    assert town.manager.members.counting == (*SERVERS, D)
    assert town.servers[D].zones.keys() == {domain.name for domain in domains}
    server = next(each for each in town.roll if each.id == D)
    assert (server.filled, server.joined_at is not None) == (5, True)


def test_a_joining_server_that_is_dead_stays_out_and_costs_nothing(town: Town) -> None:
    domains = some(town)
    town.add(D)
    town.registry.reload()
    town.servers[D].dead = True
    town.step(20)
    assert town.states[D] == 'joining'
    town.change(domains[0])
    assert town.get(domains[0]).status is Status.ACTIVE


def test_filling_that_was_interrupted_goes_on_where_it_was(town: Town) -> None:
    domains = some(town, 7)
    town.add(D)
    town.registry.reload()
    town.step(1)
    begun = {name for verb, name in town.servers[D].calls if verb == 'create'}
    assert 0 < len(begun) < 7
    town.start('one')
    town.settle()
    assert town.states[D] == 'active'
    assert town.servers[D].zones.keys() == {domain.name for domain in domains}
    created = [name for verb, name in town.servers[D].calls if verb == 'create']
    assert len(created) == len(set(created)) == 7, 'none is begun twice'


def test_another_pool_managers_claim_is_respected_until_it_runs_out(town: Town,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    some(town)
    town.add(D)
    town.registry.reload()
    town.step(1)
    filled = next(each for each in town.roll if each.id == D).filled
    town.start('two')
    town.step(3)
    assert next(each for each in town.roll if each.id == D).filled == filled
    monkeypatch.setattr(join_and_drain, 'utcnow', lambda: utcnow() + timedelta(seconds=31))
    town.settle()
    assert town.states[D] == 'active'


def test_counting_at_once_when_the_operator_wants_it(town: Town) -> None:
    some(town)
    town.manager.reconciler.settings = dataclasses.replace(town.manager.settings, count_joining_servers=True)
    town.add(D)
    town.registry.reload()
    assert town.states[D] == 'joining'
    assert town.manager.members.counting == (*SERVERS, D)


def test_a_section_that_is_gone_drains_and_its_rows_are_purged(town: Town) -> None:
    domains = some(town)
    town.servers[C].dead = True
    stuck = town.change(domains[0])
    assert town.get(domains[0]).status is Status.ERROR
    del town.configured[C]
    assert town.registry.reload().draining == ('fake:192.0.2.1:55',)
    town.settle()
    assert town.states == {A: 'active', B: 'active', C: 'removed'}
    assert not any(server == C for domain in domains for server, _ in town.rows(domain))
    PeriodicLoops(town.manager, town.registry, town.runtime).run_members()
    assert town.get(domains[0]).reported_serial == stuck.serial, 'the dead server holds nothing back any more'
    assert len(town.servers[C].zones) == 5, 'nobody asked for the zones to be deleted'
    town.registry.reload()
    assert town.states == {A: 'active', B: 'active'}


def test_zones_are_deleted_from_a_server_whose_section_is_gone(town: Town) -> None:
    some(town)
    town.manager.reconciler.settings = dataclasses.replace(town.manager.settings, delete_zones_of_removed_servers=True)
    del town.configured[C]
    town.registry.reload()
    town.settle()
    assert town.states[C] == 'removed'
    assert town.machines[C, 'fake'].zones == {}


def test_a_crash_in_the_middle_of_draining_is_resumed_with_the_kept_settings(town: Town) -> None:
    some(town, 6)
    town.deleting = True
    town.start('one')
    del town.configured[C]
    town.registry.reload()
    town.step(1)
    assert 0 < len(town.machines[C, 'fake'].zones) < 6
    town.start('one')
    town.settle()
    assert town.states[C] == 'removed'
    assert town.machines[C, 'fake'].zones == {}


def test_a_section_removed_while_nothing_ran_is_drained_at_the_start(town: Town) -> None:
    some(town)
    del town.configured[C]
    town.deleting = True
    town.start('one')
    town.settle()
    assert town.machines[C, 'fake'].zones == {}


def test_kept_settings_are_for_their_owner_only(town: Town) -> None:
    assert (town.folder / 'one.json').stat().st_mode & 0o777 == 0o600


def test_zones_are_left_on_a_server_that_does_not_answer(town: Town) -> None:
    some(town)
    town.put(C, ServerState.DRAINING, dismissed=True, delete_zones=True)
    town.servers[C].dead = True
    town.settle()
    removed = next(each for each in town.roll if each.id == C)
    assert removed.state is ServerState.REMOVED
    assert 'its zones were left on it' in (removed.note or '')


def test_a_server_drained_by_command_stays_out_until_it_is_told_to_come_back(town: Town) -> None:
    some(town)
    town.put(C, ServerState.DRAINING, dismissed=True, delete_zones=True)
    town.settle()
    town.registry.reload()
    town.start('one')
    town.settle()
    assert town.states[C] == 'removed'
    town.put(C, ServerState.JOINING, dismissed=False, filled_to='', filled=0)
    town.settle()
    assert town.states[C] == 'active'
    assert len(town.servers[C].zones) == 5


def test_a_section_that_comes_back_joins_again(town: Town) -> None:
    domains = some(town)
    section = town.configured.pop(C)
    town.registry.reload()
    town.settle()
    town.change(domains[0])
    town.configured[C] = section
    assert town.registry.reload().joined == (section.label,)
    assert town.states[C] == 'joining'
    town.settle()
    assert town.states[C] == 'active'


def test_a_changed_section_is_applied_to_every_domain(town: Town) -> None:
    domains = some(town)
    before = len(town.servers[B].calls)
    town.configured[B] = dataclasses.replace(town.configured[B], primaries=(Endpoint('192.0.2.10', 5354),))
    assert town.registry.reload().changed == ('fake:192.0.2.1:54',)
    assert town.states[B] == 'active', 'it serves what it served'
    town.settle()
    assert town.servers[B].calls[before:] == [('create', domain.id) for domain in sorted(domains, key=lambda d: d.id)]
    assert all(town.get(domain).status is Status.ACTIVE for domain in domains)
    assert town.registry.reload().changed == ()


def test_another_driver_takes_over_when_the_former_has_deleted_everything(town: Town) -> None:
    some(town)
    former = town.servers[B]
    town.configured[B] = dataclasses.replace(town.configured[B], driver='other')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backends, 'driver_class', lambda driver: Listed)
        town.registry.reload()
        assert town.states[B] == 'joining'
        town.step(1)
        assert 0 < len(former.zones) < 5
        assert town.machines[B, 'other'].zones == {}, 'a catalog would not take what is there from elsewhere'
        town.start('one')
        town.settle()
    assert former.zones == {}
    assert len(town.machines[B, 'other'].zones) == 5
    assert town.states[B] == 'active'
    assert next(each for each in town.roll if each.id == B).catalog_epoch == 1


def test_a_server_at_another_address_counts_when_it_is_filled_there(town: Town) -> None:
    domains = some(town)
    before = len(town.servers[B].calls)
    town.configured[B] = dataclasses.replace(town.configured[B], host='192.0.2.77')
    town.servers[B].zones.clear()
    town.registry.reload()
    assert town.states[B] == 'joining'
    town.change(domains[0])
    assert town.get(domains[0]).status is Status.ACTIVE
    town.settle()
    assert town.states[B] == 'active'
    assert len(town.servers[B].zones) == 5
    assert not any(verb == 'delete' for verb, _ in town.servers[B].calls[before:])


def test_what_was_heard_of_the_machine_at_the_former_address_says_nothing_of_the_new_one(town: Town) -> None:
    domain, = some(town, 1)
    former = town.servers[B].server.label
    town.configured[B] = dataclasses.replace(town.configured[B], host='192.0.2.77')
    town.registry.reload()
    town.filling.run()
    changed = town.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    heard = PollResult(domain.id, B, Outcome.SUCCESS, Answer.SERIAL, changed.serial, None, changed.serial, former)
    town.endpoint.update_statuses(CONTEXT, [heard])
    assert town.rows(domain)[B, Action.UPDATE].serial_number != changed.serial
    town.endpoint.update_statuses(CONTEXT, [dataclasses.replace(heard, label=town.servers[B].server.label)])
    assert town.rows(domain)[B, Action.UPDATE].serial_number == changed.serial


def test_a_wrong_configuration_changes_nothing(town: Town) -> None:
    some(town)
    town.wrong = 'no'
    with pytest.raises(BadConfiguration):
        town.endpoint.reload_servers(CONTEXT)
    town.endpoint.reload()
    assert town.states == dict.fromkeys(SERVERS, 'active')
    town.wrong = None
    town.pool = dataclasses.replace(town.pool, name='other')
    with pytest.raises(InvalidField, match='restart'):
        town.registry.reload()
    assert town.manager.pool.name == 'default'


def test_others_follow_and_an_older_file_undoes_nothing(town: Town) -> None:
    some(town)
    elsewhere = ServerRegistry(manager := town.new_manager('two'), town.runtime,
                               lambda: dataclasses.replace(town.pool, servers=old),
                               ServerSettingsCache(str(town.folder / 'two')))
    old = tuple(town.configured.values())
    elsewhere.start()
    town.add(D)
    town.registry.reload()
    elsewhere.refresh()
    assert D not in manager.workers
    assert manager.members.tracked == (*SERVERS, D), 'it owes the new server all the same'
    assert town.states[D] == 'joining'
    old = tuple(town.configured.values())
    town.registry.reload()
    elsewhere.refresh()
    assert D in manager.workers


def test_another_takes_over_the_draining_when_the_one_that_read_the_configuration_dies(town: Town) -> None:
    some(town)
    town.deleting = True
    town.start('one')
    other = ServerRegistry(manager := town.new_manager('two'), town.runtime, town.read_pool,
                           ServerSettingsCache(str(town.folder / 'two')))
    other.start()
    del town.configured[C]
    town.registry.reload()
    other.refresh()
    follower = JoinAndDrain(manager, other)
    for _ in range(10):
        follower.run()
    assert town.states[C] == 'removed'
    assert town.machines[C, 'fake'].zones == {}


def test_settings_that_no_zone_is_made_with_replace_the_driver_and_refill_nothing(town: Town) -> None:
    some(town)
    worker = town.manager.workers[A]
    town.configured[A] = dataclasses.replace(town.configured[A], call_timeout=3.0)
    assert town.registry.reload().changed == ()
    assert town.manager.workers[A] is not worker
    assert town.manager.workers[B].server is town.configured[B]


def test_nothing_is_sent_in_maintenance_and_all_of_it_afterwards(town: Town) -> None:
    domains = some(town)
    before = dict(town.servers[C].zones)
    calls = len(town.servers[C].calls)
    town.put(C, ServerState.MAINTENANCE)
    changed, new, gone = town.change(domains[0]), town.create('new.example.com.'), town.delete(domains[1])
    assert [town.get(each).status for each in (changed, new, gone)] == [Status.ACTIVE, Status.ACTIVE, Status.DELETED]
    assert town.servers[C].zones == before
    assert len(town.servers[C].calls) == calls
    assert town.rows(gone)[C, Action.DELETE].status is None, 'its deletion is not complete'
    assert not any(row.status is Outcome.ERROR for row in town.rows(changed).values())
    town.put(C, ServerState.ACTIVE)
    periodic = PeriodicLoops(town.manager, town.registry, town.runtime)
    for _ in range(5):
        periodic.run_due()
        town.deliver()
    assert town.serial(C, changed.name) == changed.serial
    assert town.serial(C, new.name) == new.serial
    assert gone.name not in town.servers[C].zones
    assert town.rows(gone) == {}


def test_nothing_more_is_begun_while_too_much_that_was_heard_waits(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = some(town, 1)[0]
    town.put(C, ServerState.MAINTENANCE)
    changed = town.change(domain)
    town.put(C, ServerState.ACTIVE)
    periodic = PeriodicLoops(town.manager, town.registry, town.runtime)
    monkeypatch.setattr(type(town.manager), 'queues', lambda self: {'outcomes': BACKLOG + 1})
    assert 0 < periodic.run_due() < 1
    town.deliver()
    assert town.serial(C, changed.name) != changed.serial
    monkeypatch.undo()
    for _ in range(3):
        periodic.run_due()
        town.deliver()
    assert town.serial(C, changed.name) == changed.serial


def test_a_failure_heard_in_maintenance_is_no_error(town: Town) -> None:
    domain = some(town, 1)[0]
    town.servers[C].dead = True
    town.central.update_domain(CONTEXT, domain.id, {'ttl': 7})
    town.put(C, ServerState.MAINTENANCE)
    town.deliver()
    assert town.rows(domain)[C, Action.UPDATE].status is not Outcome.ERROR
    assert town.get(domain).status is Status.ACTIVE


def test_a_pool_whose_servers_all_rest_agrees_on_nothing(town: Town) -> None:
    domain = some(town, 1)[0]
    for key in SERVERS:
        town.put(key, ServerState.MAINTENANCE)
    town.change(domain)
    assert town.get(domain).status is Status.PENDING
    town.put(A, ServerState.ACTIVE)
    PeriodicLoops(town.manager, town.registry, town.runtime).run_due()
    town.deliver()
    assert town.get(domain).status is Status.ACTIVE


def test_what_a_server_lacks_is_found_and_mended(town: Town) -> None:
    domains = some(town)
    town.add(D)
    town.registry.reload()
    town.settle()
    zones = town.servers[D].zones
    del zones[domains[0].name]
    zones[domains[1].name] = 1
    zones[domains[2].name] = None
    zones['stranger.example.'] = 7
    comparing = ServerCompare(town.manager, town.runtime)
    found = comparing.compare(D, fix=False, delete_extra=None)
    assert found.missing == (domains[0].name,)
    assert found.behind == ((domains[1].name, 1, domains[1].serial), (domains[2].name, None, domains[2].serial))
    assert found.extra == ('stranger.example.',)
    assert (found.total, found.mending, found.deleted) == (5, 0, 0)
    with pytest.raises(WrongServerState, match='1 extra zones, not 2; none was deleted'):
        comparing.compare(D, fix=False, delete_extra=2)
    assert 'stranger.example.' in zones
    found = comparing.compare(D, fix=True, delete_extra=1)
    assert (found.mending, found.deleted) == (3, 1)
    town.deliver()
    found = comparing.compare(D, fix=True, delete_extra=0)
    assert (found.missing, found.behind, found.extra, found.mending) == ((), (), (), 0)


def test_a_zone_whose_deletion_is_under_way_is_not_extra(town: Town) -> None:
    domains = some(town)
    town.add(D)
    town.registry.reload()
    town.settle()
    town.servers[D].refuses = True
    town.delete(domains[0])
    assert domains[0].name in town.servers[D].zones
    assert ServerCompare(town.manager, town.runtime).compare(D, fix=False, delete_extra=None).extra == ()


def test_a_server_that_cannot_be_compared(town: Town) -> None:
    with pytest.raises(ServerNotFound):
        ServerCompare(town.manager, town.runtime).compare('e' * 32, fix=False, delete_extra=None)
    town.add(D)
    town.registry.reload()
    town.servers[D].dead = True
    with pytest.raises(WrongServerState, match='connection refused'):
        ServerCompare(town.manager, town.runtime).compare(D, fix=False, delete_extra=None)


def test_a_zone_deleted_while_its_server_drains_is_taken_from_that_server_too(town: Town) -> None:
    domains = some(town)
    town.put(C, ServerState.DRAINING, dismissed=True, delete_zones=True)
    gone = town.delete(domains[-1])
    assert town.get(gone).status is Status.DELETED
    assert {server for server, _ in town.rows(gone)} == {C}
    town.settle()
    assert town.states[C] == 'removed' and town.servers[C].zones == {} and town.rows(gone) == {}


def test_a_zone_deleted_by_a_manager_that_does_not_know_a_joining_server_yet_is_taken_from_it_too(town: Town) -> None:
    domains = some(town)
    stranger = town.new_manager('two')
    town.add(D)
    town.registry.reload()
    town.settle()
    assert len(town.servers[D].zones) == len(domains)
    town.lose_casts = True
    gone = town.central.delete_domain(CONTEXT, domains[0].id)
    stranger.change([gone.id])
    assert town.get(gone).status is Status.DELETED and gone.name in town.servers[D].zones
    town.sweep()
    assert gone.name not in town.servers[D].zones and town.rows(gone) == {}


def most_calls(town: Town, key: str, name: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
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

    for (server, _), machine in town.machines.items():
        if server == key:
            for verb in ('create_domains', 'delete_domains'):
                monkeypatch.setattr(machine, verb, counting(getattr(machine, verb)))
    return most


def due_later(town: Town, clock: Clock, *managers: Manager) -> None:  # noqa: F811
    for manager in managers:
        clock.offset += timedelta(seconds=3)
        PeriodicLoops(manager, town.registry, town.runtime).run_due()
        town.deliver()


def test_a_domain_that_is_made_while_its_name_is_deleted_as_extra_is_created_after_that(
        town: Town, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    some(town)
    town.add(D)
    town.registry.reload()
    town.settle()
    machine = town.servers[D]
    machine.zones['stranger.example.'] = 7
    most = most_calls(town, D, 'stranger.example.', monkeypatch)
    machine.before_return = lambda: town.central.create_domain(
        CONTEXT, {'name': 'stranger.example.', 'email': 'hostmaster@example.com'})
    found = ServerCompare(town.manager, town.runtime).compare(D, fix=False, delete_extra=1)
    assert (found.deleted, most) == (1, [1])
    due_later(town, clock, town.manager)
    assert town.serial(D, 'stranger.example.') is not None and most == [1]


def test_a_domain_that_is_made_when_an_extra_zone_was_looked_up_for_the_last_time_waits_too(
        town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    some(town)
    town.add(D)
    town.registry.reload()
    town.settle()
    machine, comparing, known = town.servers[D], ServerCompare(town.manager, town.runtime), zone_names.explained
    machine.zones['stranger.example.'] = 7
    looks: list[set[str]] = []

    def created_when_looked(*arguments: Any) -> set[str]:
        found = known(*arguments)
        looks.append(found)
        if len(looks) == 2:  # the first one was for the list
            town.central.create_domain(CONTEXT, {'name': 'stranger.example.', 'email': 'hostmaster@example.com'})
        return found

    monkeypatch.setattr(zone_names, 'explained', created_when_looked)
    calls = list(machine.calls)
    assert comparing.compare(D, fix=False, delete_extra=1).deleted == 1
    assert [verb for verb, _ in machine.calls[len(calls):]] == ['delete'], 'the creation waits for its turn'


def test_a_zone_that_others_are_at_work_on_is_left_to_them_by_who_empties_the_server(
        town: Town, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    domain = some(town, 1)[0]
    stranger = town.new_manager('two')
    most = most_calls(town, C, domain.name, monkeypatch)
    town.lose_casts = True

    def deleted_elsewhere() -> None:
        gone = town.central.delete_domain(CONTEXT, domain.id)
        stranger.change([gone.id])

    town.servers[C].before_return = deleted_elsewhere
    town.put(C, ServerState.DRAINING, dismissed=True, delete_zones=True)
    town.step()
    assert most == [1]
    for _ in range(3):
        due_later(town, clock, stranger)
        town.step()
    assert town.states[C] == 'removed' and town.servers[C].zones == {} and most == [1]


def test_two_who_empty_a_server_do_not_call_it_for_one_name_at_once(
        town: Town, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    domain = some(town, 1)[0]
    most = most_calls(town, C, domain.name, monkeypatch)
    monkeypatch.setattr(join_and_drain, 'utcnow', clock)
    monkeypatch.setattr(zone_removal, 'utcnow', clock)
    other = JoinAndDrain(town.new_manager('two'), town.registry)

    def taken_over() -> None:
        clock.offset += timedelta(seconds=31)
        other._manager.reconciler.set_servers(town.manager.members, town.manager.all_workers)
        other.run()

    town.put(C, ServerState.DRAINING, dismissed=True, delete_zones=True)
    town.servers[C].before_return = taken_over
    for _ in range(5):
        town.step()
        clock.offset += timedelta(seconds=31)
    assert town.states[C] == 'removed' and town.servers[C].zones == {} and most == [1]


def test_a_former_driver_and_the_new_one_do_not_call_a_server_for_one_name_at_once(
        town: Town, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    domain = some(town, 1)[0]
    with monkeypatch.context() as patch:
        patch.setattr(backends, 'driver_class', lambda driver: Listed)
        town.configured[B] = dataclasses.replace(town.configured[B], driver='other')
        town.registry.reload()
    most = most_calls(town, B, domain.name, monkeypatch)
    town.machines[B, 'fake'].before_return = lambda: town.central.delete_domain(CONTEXT, domain.id)
    town.step()
    assert most == [1]
    due_later(town, clock, town.manager)
    town.settle()
    assert domain.name not in town.machines[B, 'fake'].zones | town.machines[B, 'other'].zones and most == [1]
