"""Every step ends with weighing: what it decides about a pool's servers reaches Central at once, on whichever way."""

from __future__ import annotations

import dataclasses
import logging
from datetime import timedelta
from typing import Any

import pytest

from designate_pool.backends.fake import Fake
from designate_pool.errors import ServiceUnavailable
from designate_pool.model import Action, Domain, Outcome, Server, ServerStatus, Status, utcnow
from designate_pool.pool_manager.dispatch.server_worker import CircuitBreaker, Operation, ServerWorker
from designate_pool.pool_manager.dispatch.zone_compare import Match
from designate_pool.pool_manager.reconcile import reconciler
from designate_pool.pool_manager.reconcile.domain_state import DomainState
from designate_pool.pool_manager.reconcile.reconciler import DueTimer
from designate_pool.pool_manager.verify.server_compare import ServerCompare
from designate_pool.storage.operations import pool_servers
from testing.inline import Inline
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, D, EditablePool, ScriptedPool, all_needed, some
from tests.unit.pool_manager.test_races import overtaken, served, silence


def served_by(pool: ScriptedPool, domain: Domain, server: str) -> Domain:
    """*domain* has changed, and only *server* has been heard to serve that."""
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    pool.servers[server].zones[domain.name] = changed.serial
    pool.manager.queue_results([served(changed, server)])
    assert pool.get(domain).status is Status.PENDING
    return changed


def fail_at_once(pool: ScriptedPool) -> None:
    """A row's first failure ends its round."""
    pool.manager.reconciler.settings = dataclasses.replace(pool.manager.settings, poll_max_retries=0)


def filled(editable: EditablePool) -> Domain:
    """A domain of which one server, which can list its zones, serves the newest serial, and the others not yet."""
    [domain] = some(editable, 1)
    editable.join(D)
    return served_by(editable, domain, D)


def test_a_server_that_a_comparison_finds_to_have_diverged(
        editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = filled(editable)
    held: list[Operation] = []
    monkeypatch.setattr(editable.manager.workers[D], 'put', lambda *operations: held.extend(operations))
    monkeypatch.setattr(ServerCompare, '_match', lambda *arguments: (Match.OTHER, 'other contents'))
    found = ServerCompare(editable.manager, editable.runtime).compare(D, fix=True, delete_extra=None, contents=True)
    assert found.mending == len(held) == 1
    assert editable.get(domain).status is Status.ERROR, 'all four are needed'


def test_a_server_that_is_to_fetch_again_and_does_not_answer_dns(editable: EditablePool) -> None:
    domain = filled(editable)
    editable.servers[D].zones[domain.name] = 1
    editable.manager.workers[D].dns.failed(3)
    fail_at_once(editable)
    assert ServerCompare(editable.manager, editable.runtime).compare(D, fix=True, delete_extra=None).mending == 1
    assert editable.rows(domain)[D, Action.UPDATE].status is Outcome.ERROR
    assert editable.get(domain).status is Status.ERROR


@all_needed
def test_a_server_that_does_not_answer_an_audit(pool: ScriptedPool) -> None:
    domain = served_by(pool, pool.create(), SERVERS[0])
    fail_at_once(pool)
    pool.manager.workers[SERVERS[0]].dns.failed(3)
    pool.endpoint.audited(CONTEXT, utcnow(), [(SERVERS[0], 0, 1)], [silence(domain, SERVERS[0])])
    assert pool.rows(domain)[SERVERS[0], Action.UPDATE].status is Outcome.ERROR
    assert pool.get(domain).status is Status.ERROR


def test_a_domain_that_is_begun_where_it_is_lacking(
        pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = pool.create()
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    pool.manager.queue_results([silence(changed, server) for server in SERVERS])
    assert pool.get(domain).status is Status.ERROR

    def unreachable(*arguments: Any, **named: Any) -> None:
        raise ServiceUnavailable(service='central', why='the broker is down')

    with monkeypatch.context() as patched:
        patched.setattr(pool.central, 'update_statuses', unreachable)
        pool.manager.queue_results([served(changed, server) for server in SERVERS])
    pool.storage.run(pool_servers.purge, SERVERS[2], [domain.id])
    monkeypatch.setattr(pool.manager.workers[SERVERS[2]], 'put', lambda operation: None)
    assert pool.get(domain).status is Status.ERROR
    pool.sweep(answered=False)
    assert pool.get(domain).status is Status.ACTIVE


@all_needed
def test_what_another_manager_wrote_first_is_weighed_and_not_what_was_decided_without_it(
        pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = pool.create()
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    reported: list[Outcome] = []
    update = pool.central.update_statuses
    monkeypatch.setattr(pool.central, 'update_statuses', lambda context, reports: (
        reported.extend(report.status for report in reports), update(context, reports)))
    overtaken(pool, monkeypatch, lambda: pool.new_manager('two').queue_results([served(changed, SERVERS[0])]))
    pool.manager.queue_results([silence(changed, SERVERS[0])])
    assert pool.rows(domain)[SERVERS[0], Action.UPDATE].status is Outcome.SUCCESS
    assert reported == [] and pool.get(domain).status is Status.PENDING


NOW = utcnow()


def after(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


@pytest.mark.parametrize('stored, written, wait', [
    (None, None, 60), (2, None, 2), (None, 3, 3), (2, 3, 2), (3, 2, 2), (90, 80, 60), (-1, None, 0), (2, -1, 0)])
def test_the_next_look_is_when_the_soonest_row_is_due(stored: float | None, written: float | None, wait: float) -> None:
    timer = DueTimer()
    timer.start_look()
    if written is not None:  # while rows are looked for, which does not end a wait
        timer.set(NOW + after(written))
    assert not timer._woken.is_set()
    assert timer.end_look(None if stored is None else NOW + after(stored), NOW, 60.0) == pytest.approx(wait, abs=0.02)


@pytest.mark.parametrize('written, wakes', [(1, True), (2, False), (3, False)])
def test_only_a_sooner_time_ends_a_wait(written: float, wakes: bool) -> None:
    timer = DueTimer()
    timer.end_look(NOW + after(2), NOW, 60.0)
    timer.set(NOW + after(written))
    assert timer._woken.is_set() is wakes
    timer.wait(0)
    timer.set(NOW + after(written))
    assert not timer._woken.is_set(), 'that is known'


SERVER = Server('a' * 32, 'fake', '192.0.2.1')
DOMAIN = Domain('1' * 32, 'example.com.', '2' * 32, 'default', 'hostmaster@example.com', 3600, 7, request_id='req-1')
UPDATE = ServerStatus(SERVER.id, DOMAIN.id, Action.UPDATE, 7, serial_number=6, version=1)


@pytest.fixture
def worker() -> ServerWorker:
    control, dns = CircuitBreaker(1, 1.0, lambda: 0.0), CircuitBreaker(1, 1.0, lambda: 0.0)
    return ServerWorker(SERVER, Fake(SERVER), control, dns, 10, Inline(), None, None)  # type: ignore[arg-type]


def told(worker: ServerWorker, caplog: pytest.LogCaptureFixture, row: ServerStatus, **values: Any) -> list[str]:
    """The lines when *row* becomes what *values* say."""
    state = DomainState(DOMAIN, {(row.server_id, row.action): row})
    state.change(dataclasses.replace(row, **values))
    caplog.clear()
    with caplog.at_level(logging.INFO):
        reconciler.log_ended(state.changed.values(), {DOMAIN.id: state}, {SERVER.id: worker})
    return [f'{record.levelname} {record.getMessage()}' for record in caplog.records]


ON = 'on fake:192.0.2.1:53'
DONE = 'INFO UPDATE of example.com. at serial 7 ' + ON + ': SUCCESS [req-1]'
SUCCEEDED: dict[str, Any] = {'status': Outcome.SUCCESS, 'serial_number': 7}
FAILED: dict[str, Any] = {'status': Outcome.ERROR, 'attempts': 4, 'last_error': 'refused'}
DIVERGED: dict[str, Any] = {
    'status': Outcome.ERROR, 'diverged': True, 'last_error': 'serves serial 7 with other contents'}


@pytest.mark.parametrize(('before', 'after', 'lines'), [
    ({}, SUCCEEDED, [DONE]), (SUCCEEDED, {'serial_number': 8}, []),
    ({}, {'attempts': 2, 'last_error': 'refused'}, []),
    ({}, FAILED, [f'WARNING UPDATE of example.com. at serial 7 {ON}: ERROR, tried 4 times: refused [req-1]']),
    (FAILED, {'attempts': 5}, []),
    (SUCCEEDED, DIVERGED, [f'WARNING example.com. {ON}: DIVERGED: serves serial 7 with other contents [req-1]']),
    (DIVERGED, {'attempts': 1, 'last_error': 'still'}, []),
    (DIVERGED, {**SUCCEEDED, 'diverged': False, 'last_error': None}, [DONE])],
    ids=['succeeds', 'has succeeded', 'is tried', 'fails', 'has failed', 'diverges', 'has diverged', 'is repaired'])
def test_the_end_of_an_operation_is_told_once(worker: ServerWorker, caplog: pytest.LogCaptureFixture,
                                              before: dict[str, Any], after: dict[str, Any], lines: list[str]) -> None:
    assert told(worker, caplog, dataclasses.replace(UPDATE, **before), **after) == lines


@pytest.mark.parametrize(('action', 'channel'), [(Action.UPDATE, 'dns'), (Action.CREATE, 'control'),
                                                 (Action.DELETE, 'control')])
def test_of_a_server_that_does_not_answer_no_domain_is_told(worker: ServerWorker, caplog: pytest.LogCaptureFixture,
                                                            action: Action, channel: str) -> None:
    row = dataclasses.replace(UPDATE, action=action)
    getattr(worker, 'control' if channel == 'dns' else 'dns').failed()
    assert len(told(worker, caplog, row, status=Outcome.ERROR)) == 1
    getattr(worker, channel).failed()
    assert told(worker, caplog, row, status=Outcome.ERROR) == []
    assert len(told(worker, caplog, row, status=Outcome.SUCCESS)) == 1
    assert caplog.records[0].extra == {  # type: ignore[attr-defined]
        'domain': 'example.com.', 'server': 'fake:192.0.2.1:53', 'action': action.value, 'status': 'SUCCESS',
        'serial': 6 if action is Action.UPDATE else 7, 'request_id': 'req-1'}
