"""What becomes of the zones of a pool as they are made, changed and deleted, with servers that fail and come back."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from designate_pool.backends.base import Capabilities
from designate_pool.errors import InvalidField, ServiceUnavailable
from designate_pool.minidns.servers import HostAddresses, make_server_table
from designate_pool.model import (Action, Answer, CallResult, Domain, Outcome, PollRequest, PollResult, PoolServer,
                                  Reason, Server, ServerState, Status, new_id, utcnow)
from designate_pool.pool_manager.dispatch.server_worker import CallOutcome
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from designate_pool.pool_manager.verify.server_compare import ServerCompare
from designate_pool.storage.operations import pool_servers
from tests.unit.pool_manager.conftest import (CONTEXT, SERVERS, A, C, Clock, D, EditablePool, ScriptedPool, all_needed,
                                              held_up, later, new_domain, some)


@all_needed
def test_changes_that_keep_coming_do_not_hide_that_a_server_is_dead(pool: ScriptedPool, clock: Clock) -> None:
    domain = pool.create()
    pool.servers[SERVERS[2]].dead = True
    changed = pool.change(domain)
    assert pool.manager.workers[SERVERS[2]].dns.is_open
    for _ in range(4):
        later(pool, clock, 5)
        changed = pool.change(domain)
        assert pool.get(domain).status is Status.ERROR, 'its tries are used up, whatever the serial'
    pool.servers[SERVERS[2]].dead = False
    later(pool, clock, 400)
    assert pool.get(domain).status is Status.ACTIVE and pool.serial(SERVERS[2]) == changed.serial


@all_needed
def test_a_server_that_was_right_has_all_its_tries_when_a_change_fails(pool: ScriptedPool, clock: Clock) -> None:
    domain = pool.create()
    pool.servers[SERVERS[2]].dead = True
    pool.manager.workers[SERVERS[2]].dns.failed(3)
    pool.change(domain)
    for seconds in (2, 2, 1.9):
        clock.offset += timedelta(seconds=seconds)
        PeriodicLoops(pool.manager, pool.registry, pool.runtime).run_due()
        assert pool.get(domain).status is Status.PENDING
        pool.change(domain)
    clock.offset += timedelta(seconds=0.2)
    PeriodicLoops(pool.manager, pool.registry, pool.runtime).run_due()
    assert pool.get(domain).status is Status.ERROR


def test_polls_are_repeated_but_for_those_of_a_server_that_may_be_fetching(pool: ScriptedPool, clock: Clock) -> None:
    domain = pool.create()
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 60})
    assert len(pool.asked) == 3
    pool.asked.clear()
    pool.manager.repeat_polls()
    later(pool, clock, 0)
    assert pool.asked == []
    later(pool, clock, 2)
    assert pool.get(domain).reported_serial == changed.serial
    assert not any(row.next_attempt_at for row in pool.rows(domain).values())


WHERE = ('192.0.2.53', '192.0.2.54:5300')


def told(pool: ScriptedPool) -> list[PollRequest]:
    """What they were notified of since this was asked last."""
    found, pool.notified = pool.notified, []
    return found


def test_every_change_is_told_once_but_no_deletion(pool: ScriptedPool) -> None:
    pool.registry.start()
    pool_id = pool.central.find_pools(CONTEXT)[0].id
    pool.central.update_pool(CONTEXT, {'id': pool_id, 'also_notifies': WHERE})
    pool.registry.refresh()
    domain = pool.central.create_domain(CONTEXT, {'name': 'example.com.', 'email': 'hostmaster@example.com'})
    assert [(each.server_id, each.serial, each.name) for each in told(pool)] == [
        (where, domain.serial, 'example.com.') for where in WHERE]
    pool.deliver()
    assert pool.get(domain).status is Status.ACTIVE and not told(pool)
    changed = pool.change(domain)
    assert [(each.server_id, each.serial) for each in told(pool)] == [(where, changed.serial) for where in WHERE]
    pool.endpoint.update_domain(CONTEXT, changed)
    assert not told(pool), 'the same cast once more'
    pool.central.update_pool(CONTEXT, {'id': pool_id, 'also_notifies': WHERE[:1]})
    pool.registry.refresh()
    changed = pool.change(domain)
    assert [each.server_id for each in told(pool)] == [WHERE[0]]
    pool.central.delete_domain(CONTEXT, domain.id)
    assert not told(pool)


def test_without_its_database_it_ends_all_the_same(
        pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*arguments: Any) -> None:
        raise OperationalError('UPDATE', {}, Exception('the server has gone away'))

    pool.create()
    monkeypatch.setattr(pool.storage, 'run', fail)
    pool.manager.stop()
    assert 'the server has gone away' in caplog.text


#: Another server that joins.
E = 'e' * 32


def test_the_audit_finds_a_change_of_a_kept_zone_whose_cast_was_lost(pool: ScriptedPool) -> None:
    silver = pool.central.create_pool(CONTEXT, {'name': 'silver', 'name_servers': ['ns.silver.example.']})
    for name, keys in (('default', SERVERS), ('silver', (D,))):
        servers = [PoolServer(key, '', f'fake:{key}', 'fake', ServerState.ACTIVE) for key in keys]
        pool.storage.run(pool_servers.register, name, servers, False, True, utcnow())
    domain = pool.create()
    moved = pool.central.move_domain(CONTEXT, domain.id, silver.id)
    pool.deliver()
    pool.lose_casts = True
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    pool.lose_casts = False
    assert {pool.serial(key) for key in SERVERS} == {moved.serial} != {changed.serial}
    pool.sweep()
    pool.deliver()
    assert {pool.serial(key) for key in SERVERS} == {changed.serial}
    assert {pool.rows(domain)[key, Action.UPDATE].serial_number for key in SERVERS} == {changed.serial}


def test_a_server_that_joins_gets_the_kept_zones_too(editable: EditablePool) -> None:
    silver = editable.central.create_pool(CONTEXT, {'name': 'silver', 'name_servers': ['ns.silver.example.']})
    servers = [PoolServer(new_id(), '', 'fake:silver', 'fake', ServerState.ACTIVE)]
    editable.storage.run(pool_servers.register, 'silver', servers, False, True, utcnow())
    domains = some(editable)
    moved = editable.central.move_domain(CONTEXT, domains[1].id, silver.id)
    editable.join(D)
    assert editable.servers[D].zones.keys() == {domain.name for domain in domains}
    assert editable.serial(D, moved.name) == moved.serial
    found = ServerCompare(editable.manager, editable.runtime).compare(D, fix=False, delete_extra=None)
    assert (found.total, found.missing, found.behind, found.extra) == (5, (), (), ())
    # Those that are kept are all that the pool has.
    for domain in (domains[0], *domains[2:]):
        editable.delete(domain)
    editable.begin_joining(E)
    assert editable.states[E] == 'joining'
    editable.settle()
    assert editable.servers[E].zones.keys() == {moved.name}


NAME = 'example.com.'


def deleted_but_on_one(pool: ScriptedPool) -> Domain:
    """A domain that is deleted everywhere but on a server that is down."""
    domain = pool.create()
    pool.servers[C].dead = True
    gone = pool.delete(domain)
    assert NAME in pool.servers[C].zones and pool.rows(gone)[C, Action.DELETE].status is not Outcome.SUCCESS
    pool.servers[C].calls.clear()
    return gone


def test_the_former_zone_is_deleted_while_the_new_one_waits_for_its_first_transfer(
        pool: ScriptedPool, clock: Clock) -> None:
    gone = deleted_but_on_one(pool)
    second = pool.create_secondary()
    pool.servers[C].dead = False
    later(pool, clock, 10)
    assert NAME not in pool.servers[C].zones and pool.servers[C].calls == [('delete', gone.id)]
    assert pool.get(gone).status is Status.DELETED and pool.rows(gone) == {}
    pool.transfer(7)
    pool.deliver()
    assert pool.get(second).status is Status.ACTIVE and pool.serial(C) == 7


def test_the_former_zone_is_replaced_once_the_new_one_was_transferred(pool: ScriptedPool, clock: Clock) -> None:
    gone = deleted_but_on_one(pool)
    second = pool.create_secondary()
    pool.transfer(7)
    pool.deliver()
    pool.servers[C].dead = False
    pool.servers[C].calls.clear()
    later(pool, clock, 10)
    assert pool.servers[C].calls == [('create', second.id)]
    assert pool.serial(C) == 7 and pool.rows(gone) == {}


@all_needed
def test_a_zone_that_is_transferred_while_the_former_one_is_being_deleted_is_created_after_that(
        pool: ScriptedPool, clock: Clock) -> None:
    gone = deleted_but_on_one(pool)
    second = pool.create_secondary()
    pool.servers[C].dead = False
    pool.servers[C].before_return = lambda: pool.transfer(7)
    later(pool, clock, 10)
    assert pool.servers[C].calls == [('delete', gone.id), ('create', second.id)]
    assert pool.get(second).status is Status.ACTIVE and pool.serial(C) == 7


def test_a_server_that_reads_the_catalog_has_replaced_the_former_zone_already(
        pool: ScriptedPool, clock: Clock) -> None:
    pool.pool = pool.manager.reconciler.pool = dataclasses.replace(pool.pool, catalog_zone='catalog.example.')
    pool.servers[C].capabilities = Capabilities(reads_catalog=True)
    gone = deleted_but_on_one(pool)
    pool.create_secondary()
    later(pool, clock, 10)
    assert pool.servers[C].calls == [] and pool.rows(gone) == {}


UNREACHABLE = CallResult(error='connection refused', unreachable=True, reason=Reason.UNREACHABLE)


def test_a_call_that_failed_before_its_server_answered_again_is_made_again_at_once(pool: ScriptedPool) -> None:
    worker = pool.manager.workers[A]
    with held_up(pool.manager, A) as operations:
        first, second = new_domain(pool, 'one.example.com.'), new_domain(pool, 'two.example.com.')
        worker.control.failed(99)
        (failed, succeeded), operations[:] = operations[:], []
    pool.manager._outcomes.put(CallOutcome(failed, UNREACHABLE), CallOutcome(succeeded, CallResult()))
    assert not worker.control.is_open
    assert pool.servers[A].calls == [('create', first.id)]
    row = pool.rows(first)[A, Action.CREATE]
    assert (row.status, row.attempts, row.claimed_by) == (Outcome.SUCCESS, 1, None)
    assert pool.rows(second)[A, Action.CREATE].status is Outcome.SUCCESS


def test_a_call_fails_although_its_server_answers_dns_again(pool: ScriptedPool) -> None:
    served = pool.create('served.example.com.')
    worker = pool.manager.workers[A]
    with held_up(pool.manager, A) as operations:
        domain = new_domain(pool, 'one.example.com.')
        worker.dns.failed(99)
        failed = operations.pop()
    pool.manager._outcomes.put(CallOutcome(failed, UNREACHABLE), PollResult(
        served.id, A, Outcome.SUCCESS, Answer.SERIAL, served.serial))
    assert not worker.dns.is_open
    row = pool.rows(domain)[A, Action.CREATE]
    assert (row.last_error, row.attempts, row.claimed_by) == ('connection refused', 1, None)


def test_a_poll_fails_although_its_server_accepts_calls_again(pool: ScriptedPool) -> None:
    domain = pool.create('served.example.com.')
    worker = pool.manager.workers[A]
    with held_up(pool.manager, A) as operations:
        new_domain(pool, 'one.example.com.')
        worker.control.failed(99)
        succeeded = operations.pop()
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    pool.manager._outcomes.put(CallOutcome(succeeded, CallResult()), PollResult(
        domain.id, A, Outcome.ERROR, Answer.SERIAL, domain.serial, 'an older serial', changed.serial))
    assert not worker.control.is_open
    assert pool.rows(domain)[A, Action.UPDATE].last_error == 'an older serial'


@pytest.mark.parametrize('deleted', [False, True])
def test_a_call_that_fails_when_its_server_rests_leaves_no_claim(editable: EditablePool, clock: Clock,
                                                                 deleted: bool) -> None:
    with held_up(editable.manager, C) as operations:
        domain = new_domain(editable)
        if deleted:
            editable.central.delete_domain(CONTEXT, domain.id)
        editable.put(C, ServerState.MAINTENANCE)
        failed = operations.pop(0)
    editable.manager._outcomes.put(CallOutcome(failed, UNREACHABLE))
    row = editable.rows(domain)[C, Action.CREATE]
    assert (row.status, row.attempts, row.claimed_by) == (None, 0, None)
    assert (row.next_attempt_at is None) is deleted
    editable.put(C, ServerState.ACTIVE)
    later(editable, clock, 2)
    assert editable.get(domain).status is (Status.DELETED if deleted else Status.ACTIVE)
    assert [verb for verb, _ in editable.servers[C].calls] == ['delete' if deleted else 'create']


V4, OTHER_PORT, V6, NAMED = (Server(letter * 32, 'fake', host, port) for letter, host, port in (
    ('1', '192.0.2.1', 53), ('2', '192.0.2.1', 5300), ('3', '2001:db8::1', 53), ('4', 'localhost', 5301)))


@pytest.mark.parametrize(('destination', 'server'), [
    ('192.0.2.1', V4), ('192.0.2.1:53', V4), ('[192.0.2.1]', V4), ('[192.0.2.1]:53', V4), ('192.0.2.1:0053', V4),
    ('192.0.2.1:5300', OTHER_PORT), ('[192.0.2.1]:5300', OTHER_PORT),
    ('2001:db8::1', V6), ('[2001:db8::1]', V6), ('[2001:DB8:0::1]:53', V6),
    ('localhost:5301', NAMED), ('127.0.0.1:5301', NAMED),
])
def test_a_result_is_the_server_s_that_was_asked(pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch,
                                                 destination: str, server: Server) -> None:
    heard: list[PollResult] = []
    domain = have(pool, monkeypatch, heard)
    asked = make_server_table(pool.manager.pool, HostAddresses()).find_peer(destination)
    assert asked.id == server.id
    pool.endpoint.update_status(CONTEXT, domain, destination, Outcome.SUCCESS, domain.serial)
    assert [each.server_id for each in heard] == [server.id]


@pytest.mark.parametrize('destination', ['', 'nowhere', '192.0.2.1:', '192.0.2.1:0', '192.0.2.1:65536', '[192.0.2.1',
                                         '192.0.2.1:x', '192.0.2.1:٣', '2001:db8::1:::'])
def test_what_one_end_refuses_the_other_refuses(pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch,
                                                destination: str) -> None:
    heard: list[PollResult] = []
    domain = have(pool, monkeypatch, heard)
    with pytest.raises(InvalidField):
        make_server_table(pool.manager.pool, HostAddresses()).find_peer(destination)
    with pytest.raises(InvalidField):
        pool.endpoint.update_status(CONTEXT, domain, destination, Outcome.SUCCESS, domain.serial)
    assert heard == []


def have(pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch, heard: list[PollResult]) -> Domain:
    """A domain of a pool that has these servers; what its pool manager hears goes to *heard*."""
    domain = pool.create()
    manager = pool.manager
    backend = next(iter(pool.servers.values()))
    servers = (V4, OTHER_PORT, V6, NAMED)
    manager.reconciler.pool = dataclasses.replace(manager.pool, servers=servers)
    manager.reconciler.set_servers(manager.members, {each.id: manager.new_worker(each, backend) for each in servers})
    monkeypatch.setattr(manager, 'queue_results', heard.extend)
    return domain


@all_needed
def test_a_server_that_is_always_one_change_behind_has_not_failed(pool: ScriptedPool) -> None:
    domain = pool.create()
    for ttl in range(100, 108):
        seen = pool.get(domain).serial
        changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': ttl})
        pool.manager.queue_results([PollResult(domain.id, C, Outcome.ERROR, Answer.SERIAL, seen, 'not yet', seen)])
        pool.manager.queue_results([PollResult(domain.id, C, Outcome.SUCCESS, Answer.SERIAL, seen)])
        assert pool.get(changed).status is Status.PENDING


def test_a_server_that_lost_the_zone_gets_it_again_though_changes_come_faster_than_polls_end(
        pool: ScriptedPool) -> None:
    domain = pool.create()
    pool.servers[C].calls.clear()
    for ttl in range(100, 103):
        asked = pool.get(domain).serial
        pool.central.update_domain(CONTEXT, domain.id, {'ttl': ttl})
        pool.manager.queue_results([PollResult(domain.id, C, Outcome.ERROR, Answer.NO_ZONE, None, 'REFUSED', asked)])
    assert pool.servers[C].calls == [('create', domain.id)]


def test_since_when_a_server_answers_nobody_is_stored_after_its_first_try_and_until_it_answers(
        editable: EditablePool, clock: Clock) -> None:
    def silent() -> dict[str, object]:
        return {each.id: each.silent_since for each in editable.roll}

    domain = editable.create()
    assert set(silent().values()) == {None}
    clock.offset += timedelta(seconds=30)
    began = editable.storage.now()
    first = PollResult(domain.id, SERVERS[1], Outcome.ERROR, Answer.TIMEOUT, error='no answer within 30 s')
    before = editable.rows(domain)
    editable.endpoint.update_statuses(CONTEXT, [first])
    assert silent()[SERVERS[1]] == began and editable.rows(domain) == before, 'the round goes on'
    assert not editable.manager.workers[SERVERS[1]].dns.is_open
    clock.offset += timedelta(seconds=30)
    editable.servers[SERVERS[1]].dead = True
    editable.change(domain)
    assert silent()[SERVERS[1]] == began, 'it was known'
    editable.start('two')  # and it is known to the next pool manager
    editable.servers[SERVERS[1]].dead = False
    editable.change(domain)
    assert set(silent().values()) == {None}


def test_an_answer_to_the_manager_that_had_not_heard_of_the_silence_ends_it(editable: EditablePool,
                                                                            clock: Clock) -> None:
    domain = editable.create()
    timeout = PollResult(domain.id, SERVERS[1], Outcome.ERROR, Answer.TIMEOUT, error='no answer within 30 s')
    answer = PollResult(domain.id, SERVERS[1], Outcome.SUCCESS, Answer.SERIAL, editable.get(domain).serial)
    first, second = editable.manager, editable.new_manager('two')

    def refresh(manager: Manager) -> bool:
        manager.read_silence(manager.workers[SERVERS[1]], editable.roll[1].silent_since)
        return manager.workers[SERVERS[1]].is_silent

    for number, manager in enumerate((second, first, second)):
        clock.offset += timedelta(seconds=1)
        manager.queue_results([timeout if number == 1 else answer])
    assert editable.roll[1].silent_since is not None, 'the second one had not heard of it'
    assert not refresh(second) and editable.roll[1].silent_since is None
    assert not refresh(first)
    clock.offset += timedelta(seconds=1)
    first.queue_results([timeout])
    assert refresh(second) and editable.roll[1].silent_since is not None, 'it has not answered since'


def test_a_silence_that_cannot_be_written_is_counted_once_and_written_the_next_time(
        editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    domain, worker = editable.create(), editable.manager.workers[SERVERS[1]]
    timeout = PollResult(domain.id, SERVERS[1], Outcome.ERROR, Answer.TIMEOUT, error='no answer within 30 s')

    def fail(*arguments: object) -> None:
        raise ServiceUnavailable(service='the database', why='it is away')

    with monkeypatch.context() as patch:
        patch.setattr(pool_servers, 'set_silent', fail)
        for count in range(1, editable.manager.settings.circuit_failures):
            editable.manager.queue_results([timeout])
            assert not worker.dns.is_open, count
    assert editable.roll[1].silent_since is None
    editable.manager.queue_results([timeout])
    assert worker.dns.is_open and editable.roll[1].silent_since is not None


@pytest.mark.parametrize(('counts', 'fed', 'is_silent'), [((0, 5), False, True), ((1, 5), False, False),
                                                          ((0, 5), True, False)],
                         ids=['none answered', 'some', 'none of a server that its API tells of'])
def test_an_audit_tells_that_a_server_answers_nobody(
        editable: EditablePool, clock: Clock, monkeypatch: pytest.MonkeyPatch, counts: tuple[int, int], fed: bool,
        is_silent: bool) -> None:
    backend = editable.manager.workers[SERVERS[0]].backend
    monkeypatch.setattr(backend, 'capabilities', dataclasses.replace(backend.capabilities, fed_by_records=fed))
    editable.endpoint.audited(CONTEXT, clock(), [(SERVERS[0], *counts)], [])
    assert (editable.roll[0].silent_since is not None) is is_silent
