"""Every step ends with weighing: what it decides about a pool's servers reaches Central at once, on whichever way."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from designate_pool.errors import ServiceUnavailable
from designate_pool.model import Action, Domain, Outcome, Status, utcnow
from designate_pool.pool_manager.dispatch.server_worker import Operation
from designate_pool.pool_manager.dispatch.zone_compare import Match
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from designate_pool.pool_manager.verify.server_compare import ServerCompare
from designate_pool.storage.operations import pool_servers, server_statuses
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, Clock, D, EditablePool, ScriptedPool, all_needed, some
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
    settings = pool.manager.settings
    object.__setattr__(settings, 'poll_max_retries', 0)


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


def test_two_managers_that_each_give_up_on_a_server_find_that_too_many_have_failed(
        pool: ScriptedPool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = pool.create()
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    other = pool.new_manager('two')
    pool.manager.workers[SERVERS[0]].dns.failed(3)
    fail_at_once(pool)
    row = pool.rows(domain)[SERVERS[0], Action.UPDATE]
    pool.storage.run(server_statuses.write, [dataclasses.replace(
        row, next_attempt_at=clock(), deadline_at=None, version=row.version + 1)], utcnow())
    overtaken(pool, monkeypatch, lambda: other.queue_results([silence(changed, SERVERS[1])]))
    PeriodicLoops(pool.manager, pool.registry, pool.runtime).run_due()
    assert pool.get(domain).status is Status.ERROR
