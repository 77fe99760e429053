"""The audit of contents: whose page it is, and which domains are in it."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from designate_pool.concurrency import Runtime
from designate_pool.model import Audit, AuditKind, Server, Status, utcnow
from designate_pool.pool_manager.dispatch import zone_compare
from designate_pool.pool_manager.dispatch.zone_compare import Match, Ours, ZoneComparison
from designate_pool.pool_manager.periodic import contents_audit as contents_module
from designate_pool.pool_manager.periodic.contents_audit import ContentsAudit
from designate_pool.runtime import Threads
from designate_pool.storage.operations import sweeps
from designate_pool.storage.sql.schema import domains as domain_table
from tests.unit.pool_manager.conftest import SERVERS, Clock, ScriptedPool, all_needed


def begun(pool: ScriptedPool, name: str = 'one', runtime: Runtime | None = None) -> ContentsAudit:
    """The audit of a pool manager of its own; the round has begun."""
    manager = pool.new_manager(name)
    manager.reconciler.settings = dataclasses.replace(manager.settings, contents_audit_interval=3600)
    audit = ContentsAudit(manager, runtime or pool.runtime)
    if pool.storage.read(sweeps.get, 'default', AuditKind.CONTENTS) is None:
        pool.storage.run(sweeps.create, 'default', AuditKind.CONTENTS, utcnow())
    return audit


def present(pool: ScriptedPool) -> Audit:
    found = pool.storage.read(sweeps.get, 'default', AuditKind.CONTENTS)
    assert found is not None
    return found


@pytest.fixture
def compared(pool: ScriptedPool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the domains that are compared, as they are."""
    seen: list[str] = []
    monkeypatch.setattr(zone_compare, 'ours', lambda storage, domain_id, stage: seen.append(domain_id))
    return seen


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have *act* happen while a domain is compared."""
    monkeypatch.setattr(zone_compare, 'ours', lambda storage, domain_id, stage: act())


def die() -> None:
    raise SystemExit


def test_the_page_of_who_died_is_taken_when_the_claim_is_over(pool: ScriptedPool, clock: Clock,
                                                              compared: list[str],
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    domain = pool.create()
    dying = begun(pool)
    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        meanwhile(patched, die)
        dying.run()
    other = begun(pool, 'two')
    assert other.run() > 0 and not compared
    clock.offset += timedelta(seconds=pool.manager.settings.claim_seconds + 1)
    assert other.run() == 0 and compared == [domain.id]


def test_a_page_that_takes_long_is_kept(pool: ScriptedPool, clock: Clock, compared: list[str],
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    pool.create()
    slow = begun(pool)
    other = begun(pool, 'two')

    def hours_go_by() -> None:
        for _ in range(1000):
            slow.extend_claim()
            clock.offset += timedelta(seconds=slow._manager.extend_claims())
            assert other.run() > 0

    meanwhile(monkeypatch, hours_go_by)
    slow.run()
    assert present(pool).now.domains == 1


def test_a_page_that_was_taken_over_is_left(pool: ScriptedPool, clock: Clock, compared: list[str],
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ('a.example.com.', 'b.example.com.'):
        pool.create(name)
    monkeypatch.setattr(contents_module, 'PAGES', 1)
    slow = begun(pool)
    other = begun(pool, 'two')
    looked: list[int] = []

    def taken() -> None:
        looked.append(1)
        with monkeypatch.context() as patched:
            meanwhile(patched, lambda: None)
            clock.offset += timedelta(seconds=pool.manager.settings.claim_seconds + 1)
            assert other.run() == 0
        slow.extend_claim()

    meanwhile(monkeypatch, taken)
    slow.run()
    assert looked == [1] and present(pool).now.domains == 2


@pytest.mark.parametrize('count', [1, 2])
def test_an_audit_that_stops_at_the_first_domain_of_a_page_gives_the_page_back(
        pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    for number in range(count):
        pool.create(f'd{number}.example.com.')
    monkeypatch.setattr(contents_module, 'PAGES', 1)
    audit = begun(pool)
    meanwhile(monkeypatch, audit.stop)
    audit.run()
    assert (present(pool).now.domains, present(pool).last, present(pool).claimed_by) == (0, None, None)


@all_needed
def test_domains_in_error_are_compared_too(pool: ScriptedPool, clock: Clock, compared: list[str]) -> None:
    pool.servers[SERVERS[1]].refuses = True
    domain = pool.create()
    assert pool.get(domain).status is Status.ERROR
    begun(pool).run()
    assert compared == [domain.id]


def test_a_zone_that_cannot_be_made_holds_up_no_other(pool: ScriptedPool, clock: Clock,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    domains = [pool.create(name) for name in ('a.example.com.', 'b.example.com.')]
    monkeypatch.setattr(zone_compare, 'compare', lambda *arguments: ZoneComparison(Match.SAME))
    bad = min(domains, key=lambda domain: domain.id)
    pool.storage.run(lambda tx: tx.execute(domain_table.update().where(domain_table.c.id == bad.id).values(
        email='nobody')))  # as no Central would write it
    monkeypatch.setattr(contents_module, 'PAGES', 1)
    begun(pool).run()
    assert present(pool).now.domains == 2 and present(pool).now.asked == len(SERVERS)


def test_a_server_that_takes_long_holds_up_no_other(pool: ScriptedPool, clock: Clock,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ('a.example.com.', 'b.example.com.', 'c.example.com.'):
        pool.create(name)
    slow, go_on, seen = pool.manager.members.servers[0].id, threading.Event(), list[tuple[str, str]]()

    def compare(server: Server, mine: Ours, *rest: object) -> ZoneComparison:
        if server.id == slow:
            go_on.wait(30)
        seen.append((server.id, mine.name))
        return ZoneComparison(Match.SAME if server.id != slow else Match.OTHER, mine.serial, 'other contents')

    monkeypatch.setattr(zone_compare, 'compare', compare)
    monkeypatch.setattr(contents_module, 'PAGES', 1)
    monkeypatch.setattr(contents_module, 'LAG', 0.05)
    audit = begun(pool, runtime=Threads())
    audit.run()
    others = len(SERVERS) - 1
    assert len(seen) == 3 * others and present(pool).now.asked == 3 * others
    go_on.set()
    audit.close()
    assert len(seen) == 3 * others + 1
    clock.offset += timedelta(hours=1)
    audit.run()  # the last page of the round
    found = present(pool).last
    assert found is not None and (found.asked, found.findings) == (3 * others + 1, 1)
