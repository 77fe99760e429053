"""Whether the servers of a stage have what is released: what their rows say."""

from __future__ import annotations

import concurrent.futures
import dataclasses
from datetime import datetime, timedelta, timezone
from typing import Any

import dns.message
import pytest
import sqlalchemy as sa
from prometheus_client import REGISTRY

from designate_pool.api.views.zone_servers import zone_servers
from designate_pool.backends.base import Backend
from designate_pool.errors import BackendUnreachable, ServiceUnavailable
from designate_pool.model import (Action, Answer, CallResult, Domain, Outcome, PollResult, Release, ServerState,
                                  ServerStatus, Status)
from designate_pool.pool_manager.dispatch.zone_compare import Match, ZoneComparison
from designate_pool.pool_manager.periodic import releases as releases_module
from designate_pool.pool_manager.periodic.releases import Releases, stage_outcome
from designate_pool.pool_manager.reconcile.domain_state import DomainState
from designate_pool.pool_manager.reconcile.reconciler import evaluate
from designate_pool.protocol.tcp_client import TcpPeer
from designate_pool.storage.sql.schema import pools
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, A, B, C, Clock, EditablePool, later

NOW = datetime(2030, 1, 31, 12, tzinfo=timezone.utc)
ZONE = Domain('d' * 32, 'example.com.', 'p' * 32, 'default', 'h@example.com', 300, 8, Action.UPDATE, changed_at=NOW,
              release_state=Release().text)
GOING = dataclasses.replace(ZONE, action=Action.DELETE, generation=2)
LABELS = {'a': 'bind9:192.0.2.1:53', 'b': 'knot:192.0.2.2:53'}
BAKE = timedelta(seconds=60)
Rows = dict[tuple[str, Action], ServerStatus]


def serving(server: str, seconds: float = 0, serial: int | None = 8, **values: Any) -> Rows:
    """Rows of a server that was seen to serve a serial some seconds after NOW."""
    at = NOW + timedelta(seconds=seconds)
    update = ServerStatus(server, ZONE.id, Action.UPDATE, **{
        'expected_serial': 8,
        'status': Outcome.SUCCESS, 'serial_number': serial, 'seen_at': at, 'updated_at': at, **values})
    return {(server, Action.CREATE): ServerStatus(server, ZONE.id, Action.CREATE, 7, status=Outcome.SUCCESS),
            (server, Action.UPDATE): update}


def deleting(server: str, seconds: float, status: Outcome | None, **values: Any) -> Rows:
    return {(server, Action.DELETE): ServerStatus(server, ZONE.id, Action.DELETE, 8, status=status,
                                                  updated_at=NOW + timedelta(seconds=seconds), **values)}


FAILED = {'status': Outcome.ERROR, 'serial_number': 7, 'last_error': 'it died'}


@pytest.mark.parametrize(('domain', 'rows', 'expected'), [
    (ZONE, {}, (None, '')),
    (ZONE, {**serving('a'), **serving('b', 1)}, (Outcome.SUCCESS, '')),
    (ZONE, {**serving('a'), **serving('b', 31)}, (None, '')),
    (ZONE, serving('a'), (None, '')),
    (ZONE, {**serving('a'), **serving('b', 1, 7, status=None)}, (None, '')),
    (ZONE, {**serving('a'), **serving('b', 1, **FAILED)}, (Outcome.ERROR, 'knot:192.0.2.2:53: it died')),
    (ZONE, serving('a', 1, None, diverged=True, last_error='other contents'), (
        Outcome.ERROR, 'bind9:192.0.2.1:53: other contents')),
    (ZONE, {**serving('a'), **serving('b', 1, **FAILED, expected_serial=7)}, (None, '')),
    (ZONE, {**serving('a'), **serving('b'), **serving('c', **FAILED)}, (Outcome.SUCCESS, '')),
    (GOING, {**deleting('a', 1, Outcome.SUCCESS), **deleting('b', 2, Outcome.SUCCESS)}, (Outcome.SUCCESS, '')),
    (GOING, {**deleting('a', 1, Outcome.SUCCESS), **deleting('b', 2, None)}, (None, '')),
    (GOING, {**deleting('a', 1, Outcome.SUCCESS), **deleting('b', 2, Outcome.ERROR, last_error='it died')}, (
        Outcome.ERROR, 'knot:192.0.2.2:53: it died')),
    (GOING, {**deleting('a', 1, Outcome.SUCCESS), **deleting('b', -1, Outcome.ERROR)}, (None, '')),
], ids=['nothing has begun', 'long enough', 'too short', 'one knows nothing yet', 'one is behind', 'one has failed',
        'one has diverged', 'failed at a former serial', 'failed where it does not matter', 'deleted', 'being deleted',
        'cannot be deleted', 'could not be deleted before'])
def test_a_stage_is_passed_when_all_its_servers_have_the_change_for_long_enough(
        domain: Domain, rows: Rows, expected: tuple[Outcome | None, str]) -> None:
    assert stage_outcome(DomainState(domain, rows), ['a', 'b'], LABELS, BAKE, NOW + timedelta(seconds=90)) == expected


def test_without_servers_nothing_is_passed() -> None:
    assert stage_outcome(DomainState(ZONE, {}), [], {}, BAKE, NOW) == (None, '')


def test_a_server_that_a_configuration_moved_to_a_later_stage_is_looked_at_at_its_own_version() -> None:
    before = dataclasses.replace(ZONE, serial=7, release_state=None)
    state = DomainState(ZONE, {**serving('a'), **serving('b')}, before=before, released={'a'})
    own, later = state.views
    assert (own.domain, later.domain) == (ZONE, before)
    assert (state.on('a'), state.on('b')) == (ZONE, None), 'it is neither polled nor given the former records'
    assert DomainState(ZONE, serving('b', serial=7), before=before, released={'a'}).on('b') is before
    assert ({server for server, _ in own.rows}, {server for server, _ in later.rows}) == ({'a'}, {'b'})
    assert DomainState(ZONE, {}).views[0].domain is ZONE


def moved_to_a_later_stage(pool: EditablePool, domain: Domain, monkeypatch: pytest.MonkeyPatch) -> Releases:
    """The canary A has been told of a change, and gets the version before from MiniDNS: the new canary is B."""
    staged(pool, monkeypatch, A).close()
    pool.central.update_domain(CONTEXT, domain.id, {'ttl': 60})
    assert [request.server_id for request in pool.asked] == [A]
    pool.asked.clear()
    releases = staged(pool, monkeypatch, B, then='50 %; all')
    pool.manager.queue_changes([domain.id])
    return releases


def test_a_canary_that_was_moved_before_it_had_a_change_holds_no_release(
        editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = editable.create()
    releases = moved_to_a_later_stage(editable, domain, monkeypatch)
    stale = PollResult(domain.id, A, Outcome.ERROR, Answer.SERIAL, domain.serial, 'it is behind',
                       editable.get(domain).serial)
    editable.endpoint.update_statuses(CONTEXT, [stale])
    editable.deliver()
    releases.run()
    assert editable.get(domain).release == Release(stage=2), 'B has it'
    releases.run()
    assert editable.get(domain).release == Release(stage=2), 'A has not said that it has it'
    for _ in range(2):
        editable.deliver()
        releases.run()
    releases.close()
    assert editable.get(domain).release is None and editable.get(domain).status is Status.ACTIVE


def test_a_canary_that_was_moved_after_it_had_a_change_keeps_it(editable: EditablePool, clock: Clock,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    domain = editable.create()
    releases = moved_to_a_later_stage(editable, domain, monkeypatch)
    releases.close()
    newest = editable.get(domain).serial
    late = PollResult(domain.id, A, Outcome.SUCCESS, Answer.SERIAL, newest, None, newest)
    editable.endpoint.update_statuses(CONTEXT, [late])
    row = editable.rows(domain)[A, Action.UPDATE]
    assert (row.status, row.serial_number, row.next_attempt_at) == (Outcome.SUCCESS, newest, None)
    shown = zone_servers(editable.get(domain), editable.manager.members.servers, editable.rows(domain).values(),
                         editable.manager.pool, '')['servers']
    assert [server['current'] for server in shown] == [True, False, True], 'B alone lacks what it should have'
    state = editable.manager.reconciler.read([domain.id], clock())[domain.id]
    assert state.on(A) is None and state.before is not None
    state.before = dataclasses.replace(state.before, reported_serial=None)
    report, = evaluate([state], SERVERS, 100, ()).reports
    assert (report.status, report.serial_number) == (Outcome.SUCCESS, domain.serial), 'it counts for what others have'


def test_a_canary_that_was_moved_is_given_the_records_before_once(
        editable: EditablePool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    domain, worker, given = editable.create(), editable.manager.workers[A], list[int]()

    def sync(backend: Backend, fed: Domain) -> tuple[CallResult, int | None]:
        given.append(fed.serial)
        return (CallResult(error='refused'), None) if len(given) == 1 else (CallResult(), fed.serial)

    monkeypatch.setattr(worker.backend, 'capabilities', dataclasses.replace(worker.backend.capabilities,
                                                                            fed_by_records=True))
    monkeypatch.setattr(worker, '_callbacks', dataclasses.replace(worker._callbacks, sync_records=sync))
    staged(editable, monkeypatch, A).close()
    editable.central.update_domain(CONTEXT, domain.id, {'ttl': 60})
    staged(editable, monkeypatch, B).close()
    later(editable, clock, 600)
    assert given == [editable.get(domain).serial, domain.serial]


def test_stages_that_a_pool_gets_are_seen_at_the_next_look(editable: EditablePool) -> None:
    releases, manager = Releases(editable.manager, editable.runtime), editable.manager
    assert releases.run() <= 1
    text = f'canary {manager.pool.servers[0].label}; all'
    manager.storage.run(lambda tx: tx.execute(sa.update(pools).values(release_stages=text)) and None)
    domain = editable.central.create_domain(CONTEXT, {'name': 'example.com.', 'email': 'hostmaster@example.com'})
    Releases(editable.manager, editable.runtime).run()
    assert editable.get(domain).release == Release(), 'the stages are those of Central, not of an older file'
    manager.reconciler.pool = dataclasses.replace(manager.pool, release_stages=text)
    releases.run()
    assert REGISTRY.get_sample_value('designate_pool_releases', {'pool': manager.pool.name, 'state': 'running'}) == 1
    releases.close()


def staged(pool: EditablePool, monkeypatch: pytest.MonkeyPatch, *canaries: str, then: str = 'all') -> Releases:
    """The pool with these of its servers as canaries, which answer as they should."""
    text = f'canary {", ".join(server.label for server in pool.pool.servers if server.id in canaries)}; {then}'
    pool.storage.run(lambda tx: tx.execute(sa.update(pools).values(release_stages=text)) and None)
    pool.manager.reconciler.pool = dataclasses.replace(pool.manager.pool, release_stages=text)
    pool.manager.reconciler.settings = dataclasses.replace(pool.manager.settings, release_bake=0.0)
    monkeypatch.setattr(TcpPeer, 'ask', lambda peer, question, seconds: dns.message.make_response(question))
    monkeypatch.setattr(releases_module, 'compare_domain', lambda *_: ZoneComparison(Match.SAME))
    return Releases(pool.manager, pool.runtime)


def test_a_release_waits_while_its_only_canary_is_in_maintenance_and_can_be_continued(
        editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    releases, (domain, other) = staged(editable, monkeypatch, A), (editable.create(), editable.create('other.example.'))
    editable.put(A, ServerState.MAINTENANCE)
    releases.run()
    assert editable.get(domain).release == Release() and editable.get(domain).status is Status.PENDING
    editable.central.frozen_pools.continue_release(CONTEXT, domain.id)
    assert editable.get(domain).release is None
    editable.put(A, ServerState.ACTIVE)
    releases.run()
    assert editable.get(other).release is None, 'it goes on by itself when the canary is back'
    releases.close()


def test_a_canary_in_maintenance_does_not_count_beside_another_one(editable: EditablePool,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    releases = staged(editable, monkeypatch, A, B)
    editable.put(A, ServerState.MAINTENANCE)
    domain = editable.create()
    releases.run()
    assert editable.get(domain).release is None
    releases.close()


def test_a_server_that_this_pool_manager_does_not_know_is_no_canary(editable: EditablePool,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    releases, manager = staged(editable, monkeypatch, A), editable.manager
    editable.put(A, ServerState.MAINTENANCE)
    manager.reconciler.pool = dataclasses.replace(manager.pool, servers=tuple(
        server for server in manager.pool.servers if server.id != C))
    domain = editable.create()
    state = manager.reconciler.read([domain.id], manager.storage.now())[domain.id]
    assert [state.is_later(server) for server in (A, B, C)] == [False, True, True]
    assert (C, Action.UPDATE) not in state.rows, 'nothing is to be done there yet'
    releases.run()
    assert editable.get(domain).release == Release()
    releases.close()


def test_a_server_that_closes_a_connection_as_it_reloads_does_not_hold_a_release(
        editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    releases, closes = staged(editable, monkeypatch, A), True

    def ask(_: TcpPeer, question: dns.message.Message, seconds: float) -> dns.message.Message:
        if closes:
            raise BackendUnreachable(why='the server closed the connection before it had answered')
        return dns.message.make_response(question)

    monkeypatch.setattr(TcpPeer, 'ask', ask)
    tries = editable.manager.settings.tries.max_retries
    domain = editable.create()
    for _ in range(tries):
        releases.run()
    assert editable.get(domain).release == Release()
    closes = False
    releases.run()
    assert editable.get(domain).release is None
    closes, other = True, editable.create('other.example.')
    for _ in range(tries + 1):
        releases.run()
    release = editable.get(other).release
    assert release is not None and 'closed the connection' in (release.held or ''), 'not one that never answers'
    releases.close()


class Unfinished:
    """Workers of which a test says how the work ends."""

    def __init__(self) -> None:
        self.futures: list[concurrent.futures.Future[Any]] = []

    def submit(self, work: Any) -> concurrent.futures.Future[Any]:
        self.futures.append(concurrent.futures.Future())
        return self.futures[-1]


def test_an_unforeseen_error_of_one_verification_does_not_end_all_later_ones(
        editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    releases, workers = staged(editable, monkeypatch, A), Unfinished()
    monkeypatch.setattr(releases, '_threads', workers)
    domain = editable.create()
    releases.run()
    workers.futures[0].set_exception(RuntimeError('as the test says'))
    with pytest.raises(RuntimeError):
        releases.run()
    releases.run()
    workers.futures[1].set_result('')
    releases.run()
    assert editable.get(domain).release is None


def test_a_database_that_is_away_is_no_fault_of_a_server(editable: EditablePool,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    releases, is_away = staged(editable, monkeypatch, A), True

    def compare(*_: Any) -> ZoneComparison:
        if is_away:
            raise ServiceUnavailable(service='the database', why='it is restarted')
        return ZoneComparison(Match.SAME)

    monkeypatch.setattr(releases_module, 'compare_domain', compare)
    domain = editable.create()
    releases.run()
    assert editable.get(domain).release == Release()
    is_away = False
    releases.run()
    assert editable.get(domain).release is None
    releases.close()
