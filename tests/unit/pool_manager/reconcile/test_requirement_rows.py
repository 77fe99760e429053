"""What the pool manager writes of each server, tells Central and asks of MiniDNS, step by step as it is specified."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from oslo_config import cfg

from designate_pool.backends.base import Capabilities
from designate_pool.cmd.compose import services
from designate_pool.config import load
from designate_pool.errors import InvalidField
from designate_pool.model import Action, Context, Outcome, Report, Status
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, Clock, ScriptedPool, all_needed, later, new_domain

A, B, C = SERVERS


@pytest.fixture
def told(pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Outcome, int]]:
    """What Central is told, as it comes."""
    found: list[tuple[Outcome, int]] = []
    update_statuses = pool.central.update_statuses

    def listen(context: Context, reports: Sequence[Report]) -> None:
        found.extend((each.status, each.serial_number) for each in reports)
        update_statuses(context, reports)

    monkeypatch.setattr(pool.central, 'update_statuses', listen)
    return found


def outcomes(pool: ScriptedPool, domain: Any, action: Action) -> dict[str, tuple[Outcome | None, int | None]]:
    """Status and serial of the rows of one action, by server."""
    return {server: (row.status, row.serial_number) for (server, of), row in pool.rows(domain).items() if of is action}


# create_domain

def test_what_was_created_is_not_yet_served(pool: ScriptedPool, told: list[tuple[Outcome, int]]) -> None:
    domain = new_domain(pool)
    assert outcomes(pool, domain, Action.CREATE) == dict.fromkeys(SERVERS, (Outcome.SUCCESS, None))
    assert outcomes(pool, domain, Action.UPDATE) == dict.fromkeys(SERVERS, (None, None))
    assert pool.get(domain).status is Status.PENDING and not told
    pool.deliver()
    assert all(row.status is Outcome.SUCCESS and row.next_attempt_at is None for row in pool.rows(domain).values())
    assert outcomes(pool, domain, Action.UPDATE) == dict.fromkeys(SERVERS, (Outcome.SUCCESS, domain.serial))
    assert pool.get(domain).status is Status.ACTIVE and told == [(Outcome.SUCCESS, domain.serial)]


@all_needed
def test_what_a_driver_puts_in_place_itself_needs_no_poll(pool: ScriptedPool,
                                                          told: list[tuple[Outcome, int]]) -> None:
    for server in pool.servers.values():
        server.capabilities = Capabilities(serves_on_create=True)
    domain = new_domain(pool)
    assert pool.get(domain).status is Status.ACTIVE and told == [(Outcome.SUCCESS, domain.serial)]
    assert not pool.asked


@all_needed
def test_a_create_that_fails_and_then_succeeds_is_told_with_its_serial(pool: ScriptedPool, clock: Clock,
                                                                       told: list[tuple[Outcome, int]]) -> None:
    pool.servers[A].refuses = True
    domain = pool.create()
    assert told == [(Outcome.ERROR, domain.serial)]
    pool.servers[A].refuses = False
    later(pool, clock, 10)
    assert told == [(Outcome.ERROR, domain.serial), (Outcome.SUCCESS, domain.serial)]


# delete_domain

@all_needed
def test_a_deletion_that_fails_is_tried_again_until_it_succeeds(pool: ScriptedPool, clock: Clock,
                                                                told: list[tuple[Outcome, int]]) -> None:
    domain = pool.create()
    told.clear()
    pool.servers[C].refuses = True
    gone = pool.delete(domain)
    assert {server: status for server, (status, _) in outcomes(pool, domain, Action.DELETE).items()} == {
        A: Outcome.SUCCESS, B: Outcome.SUCCESS, C: Outcome.ERROR}
    assert pool.get(domain).status is Status.ERROR and told == [(Outcome.ERROR, gone.serial)]
    later(pool, clock, 10)
    assert told == [(Outcome.ERROR, gone.serial)]
    pool.servers[C].refuses = False
    later(pool, clock, 30)
    assert pool.get(domain).status is Status.DELETED and pool.rows(domain) == {}
    assert told == [(Outcome.ERROR, gone.serial), (Outcome.SUCCESS, gone.serial)]
    assert [[verb for verb, _ in pool.servers[server].calls].count('delete') for server in SERVERS] == [1, 1, 3]


# update_domain

def test_a_change_has_every_server_notified_and_polled_and_tells_nothing_itself(
        pool: ScriptedPool, told: list[tuple[Outcome, int]]) -> None:
    domain = pool.create()
    told.clear()
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 60})
    assert sorted((each.server_id, each.domain_id, each.serial, each.notify) for each in pool.asked) == [
        (server, domain.id, changed.serial, True) for server in SERVERS]
    assert pool.get(domain).status is Status.PENDING and not told
    pool.endpoint.update_domain(CONTEXT, changed)
    assert len(pool.asked) == 3 and not told
    pool.deliver()
    assert told == [(Outcome.SUCCESS, changed.serial)]
    assert all(len(server.calls) == 1 for server in pool.servers.values())


def test_minidns_is_given_the_times_of_the_configuration(pool: ScriptedPool, tmp_path: pathlib.Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / 'pool.conf'
    path.write_text('[service:pool_manager]\npoll_timeout = 7.5\npoll_retry_interval = 3\npoll_max_retries = 5\n'
                    'periodic_sync_interval = 60\n')
    conf = cfg.ConfigOpts()
    load.load(conf, [f'--config-file={path}'], config_files=[])
    pool.manager.reconciler.settings = services.manager_settings(load.read_settings(conf))
    assert pool.manager.settings.periodic_sync_interval == 60
    given: list[dict[str, Any]] = []
    monkeypatch.setattr(pool, 'notify_and_poll', lambda context, **arguments: given.append(arguments))
    pool.create()
    assert {(each['timeout'], each['retry_interval'], each['max_retries']) for each in given} == {(7.5, 3, 5)}


# update_status

def test_a_status_or_server_that_is_none_is_refused_by_name(pool: ScriptedPool) -> None:
    domain = pool.create()
    before = pool.rows(domain)
    wrong: list[tuple[str, Any, str]] = [
        (A, 'PENDING', 'status'), (A, None, 'status'), ('192.0.2.1:9', Outcome.SUCCESS, 'name_server')]
    for server, status, field in wrong:
        with pytest.raises(InvalidField) as caught:
            pool.endpoint.update_status(CONTEXT, domain, server, status, domain.serial)
        assert caught.value.kwargs['field'] == field
    assert pool.rows(domain) == before


@all_needed
def test_only_a_newer_serial_moves_a_row_and_the_pool_with_it(pool: ScriptedPool,
                                                              told: list[tuple[Outcome, int]]) -> None:
    domain = pool.create()
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 60})
    told.clear()
    for server in (A, B, A):
        pool.endpoint.update_status(CONTEXT, changed, server, Outcome.SUCCESS, changed.serial)
    late = dataclasses.replace(changed, serial=domain.serial)
    pool.endpoint.update_status(CONTEXT, late, A, Outcome.SUCCESS, domain.serial)
    assert outcomes(pool, domain, Action.UPDATE) == {
        A: (Outcome.SUCCESS, changed.serial), B: (Outcome.SUCCESS, changed.serial), C: (None, domain.serial)}
    assert not told
    pool.endpoint.update_status(CONTEXT, changed, C, Outcome.SUCCESS, changed.serial)
    assert told == [(Outcome.SUCCESS, changed.serial)]


# One pool manager, one pool

def test_the_domains_of_another_pool_are_left_alone(pool: ScriptedPool, clock: Clock) -> None:
    pool.central.create_pool(CONTEXT, {'name': 'gold', 'name_servers': ['ns1.example.org.']})
    pool.lose_casts = True
    domain = pool.central.create_domain(CONTEXT, {'name': 'example.net.', 'email': 'hostmaster@example.com',
                                                  'pool_name': 'gold'})
    pool.endpoint.create_domain(CONTEXT, domain)
    clock.offset += timedelta(seconds=10)
    periodic = PeriodicLoops(pool.manager, pool.registry, pool.runtime)
    for _ in range(2):
        periodic.run_unsettled()
        pool.sweep()
        periodic.run_due()
    assert pool.rows(domain) == {} and not pool.asked
    assert [server.calls for server in pool.servers.values()] == [[], [], []]
