"""The audit of serials: rounds that pool managers share, what they find, and what is shown of them."""

from __future__ import annotations

import dataclasses
import itertools
import logging
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from prometheus_client import REGISTRY

from designate_pool.consensus import Members
from designate_pool.errors import ServiceUnavailable
from designate_pool.model import Action, Audit, AuditKind, Counts, Outcome, PoolServer, ServerState, Status, new_id
from designate_pool.pool_manager.periodic import audit_schedule, loops
from designate_pool.pool_manager.periodic.loops import Gauges, PeriodicLoops
from designate_pool.pool_manager.periodic.serial_audit import SerialAudit
from designate_pool.pool_manager.service import PoolManager
from designate_pool.storage.operations import sweeps
from designate_pool.storage.reporting import audit_findings
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, Clock, ScriptedPool, all_needed, overtaken

NAMES = [f'{letter}.example.com.' for letter in 'abcde']


@pytest.fixture
def domains(pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Five domains, in the order of their ids; a page has two."""
    monkeypatch.setattr(audit_schedule, 'PAGE', 2)
    return sorted(pool.create(name).id for name in NAMES)


def present(pool: ScriptedPool) -> Audit:
    found = pool.storage.read(sweeps.get, 'default', AuditKind.SERIALS)
    assert found is not None
    return found


def turns(auditing: SerialAudit, clock: Clock, count: int) -> None:
    """So many times it is time for something."""
    for _ in range(count):
        clock.offset += timedelta(seconds=auditing.run())


def die(*arguments: object) -> None:
    raise SystemExit


def asked(pool: ScriptedPool) -> list[str]:
    """The ids of the domains that were asked for."""
    return [key for _, _, page in pool.pages for key, _, _ in page]


def test_a_round_counts_what_it_asked_and_found(pool: ScriptedPool, clock: Clock, domains: list[str]) -> None:
    del pool.servers[SERVERS[0]].zones['b.example.com.']
    pool.servers[SERVERS[1]].zones['c.example.com.'] = 1
    pool.sweep()
    audit = present(pool)
    assert audit.last == Counts(domains=5, pairs=15, asked=15, unanswered=0, findings=2)
    assert audit.now == Counts() and audit.last.coverage == 1.0
    assert {(request.name, request.server_id) for request in pool.asked} == {
        ('b.example.com.', SERVERS[0]), ('c.example.com.', SERVERS[1])}
    pool.deliver()
    for name in NAMES:
        assert len({pool.serial(server, name) for server in SERVERS} - {None}) == 1

    pool.sweep()
    assert not pool.asked
    assert present(pool).last == Counts(domains=5, pairs=15, asked=15)


def test_two_pool_managers_share_one_round(pool: ScriptedPool, clock: Clock, domains: list[str]) -> None:
    first, second = (SerialAudit(each, pool.runtime) for each in (pool.manager, pool.new_manager('two')))
    for _ in range(40):
        first.run()
        clock.offset += timedelta(seconds=second.run())
    assert asked(pool)[:5] == domains
    assert len({started_at for started_at, _, _ in pool.pages[:3]}) == 1
    assert len(asked(pool)) == len({(started_at, key) for started_at, _, page in pool.pages for key, _, _ in page})


def test_one_of_two_pool_managers_looks_again_at_what_has_not_come_to_rest(pool: ScriptedPool, clock: Clock,
                                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    monkeypatch.setattr(loops, 'PAGE', 2)
    pool.lose_casts = True
    made = sorted(pool.create(name).id for name in NAMES)
    both = [PeriodicLoops(each, pool.registry, pool.runtime) for each in (pool.manager, pool.new_manager('two'))]
    for each in (pool.manager, both[1]._manager):
        monkeypatch.setattr(each, 'queue_changes', lambda ids: looked.extend(ids))
    for _ in range(3):  # the pages of a round
        clock.offset += timedelta(seconds=loops.UNSETTLED_INTERVAL + 1)
        assert [each.run_unsettled() > 0 for each in both] == [True, True]
    assert looked == made
    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(pool.manager, 'queue_changes', die)
        clock.offset += timedelta(seconds=loops.UNSETTLED_INTERVAL + 1)
        both[0].run_unsettled()
    both[1].run_unsettled()
    assert looked == made
    clock.offset += timedelta(seconds=pool.manager.settings.claim_seconds)
    both[1].run_unsettled()
    assert looked == made + made[:2]


def test_the_page_of_a_pool_manager_that_died_is_taken_by_another(
        pool: ScriptedPool, clock: Clock, domains: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (SerialAudit(each, pool.runtime) for each in (pool.manager, pool.new_manager('two')))
    turns(first, clock, 2)
    assert asked(pool) == domains[:2]
    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(sweeps, 'page', die)
        turns(first, clock, 99)
    turns(second, clock, 400)
    assert asked(pool)[:5] == domains
    assert present(pool).last is not None


def test_a_page_that_was_taken_over_is_not_written_by_who_was_late(pool: ScriptedPool, clock: Clock,
                                                                   domains: list[str]) -> None:
    auditing = SerialAudit(pool.manager, pool.runtime)
    pool.storage.run(sweeps.create, 'default', AuditKind.SERIALS, clock())
    read = present(pool)
    late = pool.storage.run(sweeps.claim, read, 'late', clock(), clock() + timedelta(seconds=30))
    assert late is not None
    assert pool.storage.run(sweeps.claim, read, 'other', clock(), clock()) is None
    clock.offset += timedelta(seconds=31)
    auditing.run()
    where = present(pool)
    assert not pool.storage.run(sweeps.advance, late, domains[3], Counts(2, 6), 1, clock(), clock())
    assert present(pool) == where and where.after_id == domains[1]


def test_answers_count_for_their_round_and_later_ones_for_none(pool: ScriptedPool, clock: Clock,
                                                               domains: list[str]) -> None:
    pool.sweep(answered=False)
    started_at = present(pool).last_started_at
    assert started_at is not None and present(pool).last == Counts(domains=5, pairs=15)
    clock.offset += timedelta(seconds=7)
    pool.endpoint.audited(CONTEXT, started_at, [(SERVERS[0], 4, 1)], [])
    ended = present(pool)
    assert (ended.last, ended.last_seconds) == (Counts(5, 15, 5, 1, 0), 7.0)
    pool.endpoint.audited(CONTEXT, started_at - timedelta(seconds=120), [(SERVERS[0], 4, 1)], [])
    assert present(pool).last == ended.last and present(pool).now == Counts()


def test_a_finding_about_a_pair_that_is_not_at_rest_is_none(pool: ScriptedPool, clock: Clock) -> None:
    domain = pool.create()
    pool.sweep(answered=False)
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 60})
    pool.asked.clear()
    pool.servers[SERVERS[0]].zones['example.com.'] = 1
    pool.sweep()
    assert not pool.asked
    assert pool.rows(domain)[SERVERS[0], Action.UPDATE].expected_serial == changed.serial
    audit = present(pool)
    assert audit.last is not None and audit.last.findings == 0


@all_needed
def test_a_dead_server_is_left_out_once_that_is_known_and_its_rows_tell(
        pool: ScriptedPool, clock: Clock) -> None:
    domain = pool.create()
    pool.servers[SERVERS[2]].dead = True
    pool.sweep()
    row = pool.rows(domain)[SERVERS[2], Action.UPDATE]
    assert row.status is Outcome.SUCCESS, 'the poll has its tries'
    pool.deliver()
    row = pool.rows(domain)[SERVERS[2], Action.UPDATE]
    assert (row.status, row.last_error) == (Outcome.ERROR, 'no answer')
    assert pool.get(domain).status is Status.ACTIVE
    pool.sweep(answered=False)
    assert [server_ids for _, server_ids, _ in pool.pages] == [[SERVERS[0], SERVERS[1]]]
    audit = present(pool)
    assert audit.last is not None and audit.last.pairs == 3


def test_three_pages_without_an_answer_open_the_circuit_and_one_answer_closes_it(
        pool: ScriptedPool, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    pool.create()
    worker = pool.manager.workers[SERVERS[0]]
    for times in range(3):
        assert not worker.dns.is_open
        pool.endpoint.audited(CONTEXT, clock(), [(SERVERS[0], 0, 100), (SERVERS[1], 99, 1)], [])
    assert worker.dns.is_open and not pool.manager.workers[SERVERS[1]].dns.is_open
    assert 'does not answer DNS' in caplog.text
    pool.endpoint.audited(CONTEXT, clock(), [(SERVERS[0], 1, 99)], [])
    assert not worker.dns.is_open


def test_without_a_broker_it_is_said_once_and_the_round_goes_on(
        pool: ScriptedPool, clock: Clock, domains: list[str], caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise ServiceUnavailable(service='minidns', why='the broker is down')

    monkeypatch.setattr(pool.manager.minidns, 'audit_serials', fail)
    pool.sweep()
    audit = present(pool)
    assert audit.last == Counts(domains=5, pairs=15) and audit.last.coverage == 0.0
    assert caplog.text.count('could not ask the servers for their serials') == 1


def test_what_nobody_answers_is_written_off(pool: ScriptedPool, clock: Clock, domains: list[str],
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_schedule, 'MOST_SENT', 1)
    auditing = SerialAudit(pool.manager, pool.runtime)
    turns(auditing, clock, 2)
    clock.offset += timedelta(seconds=65)
    assert present(pool).sent - present(pool).heard == 1
    turns(auditing, clock, 3)
    assert asked(pool) == domains[:4]


def test_a_round_that_does_not_fit_is_told_once(pool: ScriptedPool, clock: Clock, domains: list[str],
                                                caplog: pytest.LogCaptureFixture) -> None:
    auditing = SerialAudit(pool.manager, pool.runtime)

    def slow_round() -> None:
        started: datetime | None = present(pool).last_started_at
        while present(pool).last_started_at == started:
            pause = auditing.run()
            clock.offset += timedelta(seconds=max(pause, 70.0))
            pool.answer_pages()

    auditing.run()
    for _ in range(2):
        slow_round()
    assert [record.levelno for record in caplog.records if 'periodic_sync_interval' in record.message] == [
        logging.WARNING]


def test_the_last_round_is_among_the_metrics(pool: ScriptedPool, clock: Clock, domains: list[str]) -> None:
    del pool.servers[SERVERS[0]].zones['b.example.com.']
    pool.sweep()
    object.__setattr__(pool.manager.settings, 'measured', True)
    Gauges(pool.manager).run()
    labels = {'pool': 'default', 'kind': 'SERIALS'}
    read = REGISTRY.get_sample_value
    assert {name: read(f'designate_pool_audit_{name}', labels) for name in (
        'domains', 'coverage', 'findings', 'unanswered')} == {
            'domains': 5, 'coverage': 1.0, 'findings': 1, 'unanswered': 0}
    assert read('designate_pool_audit_interval_seconds', labels) == pool.manager.settings.periodic_sync_interval
    assert read('designate_pool_audit_started_timestamp_seconds', labels) == present(pool).started_at.timestamp()


def test_a_server_that_was_never_worked_on_here_is_forgotten(pool: ScriptedPool) -> None:
    object.__setattr__(pool.manager.settings, 'measured', True)
    gauges, members = Gauges(pool.manager, itertools.count(0, 100).__next__), pool.manager.members
    removed = PoolServer(new_id(), 'x', 'fake:192.0.2.99:53', 'fake', ServerState.REMOVED)
    pool.manager.reconciler.members = Members.of((*members.servers, removed))
    gauges.run()
    pool.manager.reconciler.members = members
    gauges.run()
    assert REGISTRY.get_sample_value('designate_pool_rows_due', {
        'pool': 'default', 'server': removed.label}) is None


def test_what_is_found_is_kept_and_told_with_an_id_of_its_own(pool: ScriptedPool, clock: Clock,
                                                              caplog: pytest.LogCaptureFixture) -> None:
    domain = pool.create()
    request_id = pool.get(domain).request_id
    del pool.servers[SERVERS[0]].zones[domain.name]
    caplog.clear()
    with caplog.at_level(logging.INFO):
        pool.sweep()
        found, = pool.storage.read(audit_findings.of_pool, 'default', 10)
        assert (found.name, found.server_id, found.kind, found.mended) == (
            domain.name, SERVERS[0], AuditKind.SERIALS, False)
        pool.deliver()
    mended, = pool.storage.read(audit_findings.of_domain, domain.id, 10)
    assert mended == dataclasses.replace(found, mended=True)
    pool.servers[SERVERS[0]].dead = True
    pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    assert pool.storage.read(audit_findings.of_domain, domain.id, 10) == [mended], 'a later change is not about it'
    pool.deliver()
    assert pool.rows(domain)[SERVERS[0], Action.UPDATE].status is Outcome.ERROR
    assert pool.storage.read(audit_findings.of_domain, domain.id, 10) == [mended], 'nor is its failure'
    told = [record.getMessage() for record in caplog.records]
    label = pool.servers[SERVERS[0]].server.label
    assert told[0] == (f'{domain.name} on {label}: the audit of serials found that another; '
                       f'{audit_schedule.RECREATED} [{found.request_id}]')
    created = [each for each in told if each.startswith('CREATE of')]
    assert len(created) == 1 and created[0].endswith(f'[{found.request_id}]') and found.request_id != request_id
    # What comes of a change is told with the request's own id again.
    pool.change(domain)
    assert all(row.finding_id is None for (server, action), row in pool.rows(domain).items()
               if action is Action.UPDATE)


def test_a_server_that_loses_all_its_zones_fills_neither_log_nor_list(
        pool: ScriptedPool, domains: list[str], monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(audit_schedule, 'MAX_RECORDED', 1)
    pool.servers[SERVERS[0]].zones.clear()
    pool.sweep()
    assert len(pool.storage.read(audit_findings.of_pool, 'default', 100)) == 3  # one of each page
    assert 'the audit of serials found 1 more on' in caplog.text
    assert present(pool).last == Counts(domains=5, pairs=15, asked=15, findings=5)


def test_old_findings_are_forgotten(pool: ScriptedPool, clock: Clock) -> None:
    domain = pool.create()
    del pool.servers[SERVERS[0]].zones[domain.name]
    pool.sweep()
    pool.deliver()
    clock.offset += audit_schedule.KEPT + timedelta(seconds=1)
    pool.sweep()
    assert pool.storage.read(audit_findings.of_domain, domain.id, 10) == []


def test_what_two_managers_find_at_once_is_recorded_once(pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = pool.create()
    del pool.servers[SERVERS[0]].zones[domain.name]
    other = PoolManager(pool.new_manager('two'), pool.registry, pool.runtime)
    pool.sweep(answered=False)
    [(started_at, server_ids, asked)] = pool.pages
    told = pool._answers(server_ids, asked)
    overtaken(pool, monkeypatch, lambda: other.audited(CONTEXT, started_at, *told))
    pool.endpoint.audited(CONTEXT, started_at, *told)
    assert len(pool.storage.read(audit_findings.of_domain, domain.id, 10)) == 1


BEGAN = datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
FIRST = Audit('p' * 32, AuditKind.SERIALS, BEGAN)


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def rounds(audit: Audit, pages: int, work: float) -> tuple[Audit, list[float]]:
    """A round of *pages* pages that take *work* seconds each; the next one before its start, and the pauses."""
    now, pauses = audit.started_at, []
    for page in range(1, pages + 1):
        now += timedelta(seconds=work)
        due = audit_schedule.next_page_at(audit, 120, page < pages, now)
        pauses.append((due - now).total_seconds())
        audit = dataclasses.replace(audit, now=Counts(domains=page * audit_schedule.PAGE))
        now = due
    return dataclasses.replace(audit, started_at=now, now=Counts(), last=audit.now), pauses


@pytest.mark.parametrize('pages', [1, 2, 7])
def test_a_round_takes_the_interval_the_first_time_and_the_second(pages: int) -> None:
    second, _ = rounds(FIRST, pages, 0.5)
    assert second.started_at == at(120)
    assert rounds(second, pages, 0.5)[0].started_at == at(240)


def test_the_pages_of_the_second_round_are_spread_evenly() -> None:
    second, _ = rounds(FIRST, 4, 1)
    assert rounds(second, 4, 1)[1] == pytest.approx([29, 29, 29, 29])


def test_a_round_that_does_not_fit_goes_on_without_a_pause() -> None:
    second, _ = rounds(FIRST, 10, 20)
    third, pauses = rounds(second, 10, 20)
    assert pauses == [0] * 10 and third.started_at == second.started_at + timedelta(seconds=200)


CROWD = audit_schedule.MOST_SENT


@pytest.mark.parametrize(('audit', 'seconds', 'pause'), [
    ({}, 0, 0), ({'next_at': at(3)}, 0, 3), ({'next_at': at(3)}, 3, 0),
    ({'next_at': at(90)}, 0, audit_schedule.LONGEST),
    ({'claimed_by': 'other', 'claimed_until': at(30)}, 29, audit_schedule.BUSY),
    ({'claimed_by': 'other', 'claimed_until': at(30)}, 30, 0), ({'claimed_by': 'me', 'claimed_until': at(30)}, 29, 0),
    ({'after_id': 'a' * 32, 'sent': CROWD + 3, 'heard': 3}, 1, audit_schedule.CROWDED),
    ({'after_id': 'a' * 32, 'sent': CROWD + 3, 'heard': 4}, 1, 0),
    ({'sent': 5, 'heard': 4}, 1, audit_schedule.CROWDED), ({'sent': 5, 'heard': 5}, 1, 0),
    ({'sent': CROWD}, audit_schedule.PATIENCE, 0)],
    ids=['first', 'not yet due', 'due', 'far away', 'of another', 'claim over', 'ours', 'crowded', 'room',
         'the last round is unanswered', 'the last round is answered', 'answers are lost'])
def test_when_a_page_is_taken(audit: dict[str, Any], seconds: float, pause: float) -> None:
    assert audit_schedule.pause(dataclasses.replace(FIRST, updated_at=BEGAN, **audit), 'me', at(seconds)) == pause
