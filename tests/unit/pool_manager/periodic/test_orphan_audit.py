"""Zones on servers that no domain explains: the pool's own are deleted, others are told of."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import pytest

from designate_pool.model import Action, AuditKind, Domain, Outcome, ServerStatus, Status
from designate_pool.pool_manager.periodic.orphan_audit import OrphanAudit
from designate_pool.pool_manager.verify.server_compare import ServerCompare
from designate_pool.storage.operations import server_statuses, sweeps
from designate_pool.storage.zones import domains
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, A, B, Clock, EditablePool, Listed, later, some


@pytest.fixture
def editable(editable: EditablePool) -> EditablePool:
    editable.manager.reconciler.settings = dataclasses.replace(editable.manager.settings, extra_zones_interval=3600.0)
    for key in SERVERS:
        worker = editable.manager.all_workers[key]
        machine = worker.backend = editable.servers[key] = Listed(worker.server)
        machine.zones = {}
    return editable


def look(editable: EditablePool) -> OrphanAudit:
    """One round over all servers."""
    extras = OrphanAudit(editable.manager)
    look_again(editable, extras)
    return extras


def look_again(editable: EditablePool, extras: OrphanAudit) -> None:
    editable.storage.run(lambda tx: tx.execute(sweeps.TABLE.update().values(next_at=None)))
    for _ in range(10):
        extras.run()
        audit = editable.storage.read(sweeps.get, 'default', AuditKind.EXTRA)
        if audit is not None and audit.next_at is not None and not audit.after_id:
            return
    raise AssertionError('the round does not come to its end')


def test_a_zone_that_was_made_after_its_domain_was_gone_is_deleted(
        editable: EditablePool, caplog: pytest.LogCaptureFixture) -> None:
    gone = some(editable, 1)[0]
    editable.delete(gone)
    assert editable.rows(gone) == {}
    # It never fetched anything, or has what the domain had last.
    editable.servers[A].zones[gone.name] = None
    editable.servers[B].zones[gone.name] = gone.serial
    with caplog.at_level(logging.WARNING):
        look(editable)
    assert gone.name not in editable.servers[A].zones and gone.name not in editable.servers[B].zones
    assert editable.rows(gone) == {}
    assert [f'deleting 1 zones that were deleted from the database before: {gone.name}' in line
            for line in caplog.messages].count(True) == 2


def test_a_server_that_fails_then_is_tried_again_as_with_any_deletion(editable: EditablePool) -> None:
    gone = some(editable, 1)[0]
    editable.delete(gone)
    editable.servers[A].zones[gone.name] = None
    editable.servers[A].refuses = True
    look(editable)
    row = editable.rows(gone)[A, Action.DELETE]
    assert (row.status, row.last_error) == (Outcome.ERROR, 'the key was refused') and row.next_attempt_at
    assert [*editable.rows(gone)] == [(A, Action.DELETE)]


def test_what_others_made_is_left_and_told_of_once(editable: EditablePool, caplog: pytest.LogCaptureFixture) -> None:
    gone = some(editable, 1)[0]
    editable.delete(gone)
    # A stranger's, and one that has gone on elsewhere since its domain was deleted here.
    editable.servers[A].zones |= {'theirs.example.': 5, gone.name: editable.get(gone).serial + 1}
    with caplog.at_level(logging.WARNING):
        extras = look(editable)
        look_again(editable, extras)
    assert editable.servers[A].zones == {'theirs.example.': 5, gone.name: editable.get(gone).serial + 1}
    told = [line for line in caplog.messages if 'not in the database' in line]
    assert len(told) == 1 and gone.name in told[0] and 'theirs.example.' in told[0]


@pytest.mark.parametrize('threshold', [66, 100])
def test_the_zones_of_domains_and_those_whose_deletion_is_under_way_are_no_extras(
        editable: EditablePool, caplog: pytest.LogCaptureFixture, threshold: int) -> None:
    editable.manager.reconciler.pool = dataclasses.replace(editable.manager.pool, threshold_percentage=threshold)
    first, second = some(editable, 2)
    editable.servers[A].dead = True
    editable.delete(first)
    editable.servers[A].dead = False
    assert first.name in editable.servers[A].zones
    assert (editable.get(first).status is Status.DELETED) is (threshold < 100)
    rows, calls = editable.rows(first), list(editable.servers[A].calls)
    caplog.clear()
    look(editable)
    assert editable.rows(first) == rows and editable.servers[A].calls == calls
    assert caplog.messages == [], 'nothing is found'
    assert second.name in editable.servers[A].zones


def test_a_zone_that_goes_while_it_is_looked_for_is_no_extra(
        editable: EditablePool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    gone = some(editable, 1)[0]
    list_zones = editable.servers[A].list_zones

    def listed(names: list[str]) -> object:
        found = list_zones(names)
        if gone.name in found.serials:
            editable.delete(gone)
        return found

    monkeypatch.setattr(editable.servers[A], 'list_zones', listed)
    with caplog.at_level(logging.WARNING):
        look(editable)
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING] and editable.rows(gone) == {}


def test_a_zone_of_a_name_that_a_deleted_pool_had_stays(editable: EditablePool) -> None:
    silver = editable.central.create_pool(CONTEXT, {'name': 'silver', 'name_servers': ['ns.silver.example.']})
    domain = editable.central.create_domain(CONTEXT, {'name': 'theirs.example.', 'email': 'a@example.com',
                                                      'pool_name': 'silver'})
    gone = editable.central.delete_domain(CONTEXT, domain.id)
    editable.central.update_status(CONTEXT, gone, Outcome.SUCCESS, gone.serial)
    editable.central.delete_pool(CONTEXT, silver.id)
    # This pool's servers were never given it: the zone is a stranger's.
    editable.servers[A].zones['theirs.example.'] = 1
    look(editable)
    assert editable.servers[A].zones == {'theirs.example.': 1}


def left_under_a_secondary_zone(editable: EditablePool) -> Domain:
    """A deleted domain whose zone is left on a server, and whose name a secondary zone has got."""
    gone = some(editable, 1)[0]
    editable.delete(gone)
    editable.servers[A].zones[gone.name] = gone.serial
    editable.create_secondary(gone.name)
    return gone


def test_a_secondary_zone_explains_none_before_its_first_transfer(
        editable: EditablePool, caplog: pytest.LogCaptureFixture) -> None:
    gone = left_under_a_secondary_zone(editable)
    found = ServerCompare(editable.manager, editable.runtime).compare(A, fix=False, delete_extra=None)
    assert found.extra == (gone.name,)
    look(editable)
    assert gone.name not in editable.servers[A].zones
    # That of a stranger, or of a secondary zone that Designate had.
    editable.servers[A].zones['theirs.example.'] = None
    editable.create_secondary('theirs.example.')
    caplog.clear()
    look(editable)
    assert 'theirs.example.' in editable.servers[A].zones and caplog.messages == []


def test_a_secondary_zone_that_is_transferred_meanwhile_is_not_deleted(
        editable: EditablePool, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = left_under_a_secondary_zone(editable)
    calls = editable.servers[A].calls
    calls.clear()
    deleted_by_name = domains.deleted_by_name

    def transferred_first(*arguments: Any) -> dict[str, Domain]:
        editable.transfer(7, gone.name)
        editable.deliver()
        return deleted_by_name(*arguments)

    monkeypatch.setattr(domains, 'deleted_by_name', transferred_first)
    look(editable)
    assert [verb for verb, _ in calls] == ['create'] and editable.servers[A].zones[gone.name] == 7
    assert editable.rows(gone) == {}
    monkeypatch.undo()
    look(editable)
    assert [verb for verb, _ in calls] == ['create']


def test_what_was_abandoned_stays_and_is_told_of(editable: EditablePool, clock: Clock,
                                                 caplog: pytest.LogCaptureFixture) -> None:
    first, second = some(editable, 2)
    calls = list(editable.servers[A].calls)
    editable.central.abandon_domain(CONTEXT, first.id)
    # What was on its way: a change, and a row that was written meanwhile.
    editable.endpoint.change_domains(CONTEXT, [first])
    editable.storage.run(server_statuses.write, [
        ServerStatus(A, first.id, Action.UPDATE, first.serial, next_attempt_at=clock())], clock())
    later(editable, clock, 600)
    with caplog.at_level(logging.WARNING):
        look(editable)
    assert [*editable.servers[A].zones] == [first.name, second.name] and editable.rows(first) == {}
    assert editable.servers[A].calls == calls
    assert any('not in the database' in line and first.name in line for line in caplog.messages)


def test_what_was_abandoned_while_it_was_being_created_stays(editable: EditablePool) -> None:
    made: list[Domain] = []

    def abandon() -> None:
        made.append(editable.central.find_domains(CONTEXT)[0])
        editable.central.abandon_domain(CONTEXT, made[0].id)

    editable.servers[A].before_return = abandon
    editable.create('late.example.com.')
    look(editable)
    assert 'late.example.com.' in editable.servers[A].zones and editable.rows(made[0]) == {}
