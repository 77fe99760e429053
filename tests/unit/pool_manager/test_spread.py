"""Which of several MiniDNS and pool managers get what."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from designate_pool.errors import ServiceUnavailable
from designate_pool.model import Action, Answer, Domain, Outcome, PollResult, Status
from designate_pool.pool_manager.dispatch.server_worker import LATELY
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from designate_pool.pool_manager.service import PoolManager
from designate_pool.rpc import pool_manager as contract
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.minidns import MiniDnsClient
from designate_pool.runtime import Threads
from testing.processes import wait_until
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, A, Clock, ScriptedPool, later, overtaken
from tests.unit.pool_manager.test_races import served, silence


def behind(domain: Domain, server: str) -> PollResult:
    return PollResult(domain.id, server, Outcome.ERROR, Answer.SERIAL, domain.serial - 1, 'older', domain.serial)


@pytest.mark.parametrize('failed', [silence, behind])
def test_a_change_is_polled_by_the_first_minidns_and_by_any_once_a_poll_has_failed(
        pool: ScriptedPool, clock: Clock, failed: Callable[[Domain, str], PollResult]) -> None:
    """The first MiniDNS may be the one that cannot reach the server."""
    domain = pool.create()
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    assert {each.server_id for each in pool.asked} == set(SERVERS) and pool.spread == []
    pool.asked.clear()
    pool.manager.queue_results([failed(changed, A), *(served(changed, each) for each in SERVERS[1:])])
    later(pool, clock, 60)
    assert {(each.server_id, each.probe) for each in pool.spread} == {(A, failed is silence)}


def test_a_server_that_has_been_silent_is_polled_by_any_for_a_while(pool: ScriptedPool, clock: Clock) -> None:
    domain = pool.create()
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    pool.manager.queue_results([silence(changed, A)])
    pool.manager.queue_results([served(changed, each) for each in SERVERS])
    for seconds, spread in ((LATELY - 1, {A}), (1, set())):
        clock.offset += timedelta(seconds=seconds)
        pool.spread.clear()
        other = pool.central.create_domain(CONTEXT, {'name': f'd{seconds:g}.example.com.', 'email': 'a@example.com'})
        pool.deliver()
        assert {each.server_id for each in pool.spread} == spread
        assert pool.get(other).status is Status.ACTIVE


def test_a_pool_manager_that_hears_no_more_of_a_silent_server_tries_it_again(
        pool: ScriptedPool, clock: Clock) -> None:
    """The first one was away for a moment, so that another one heard that the server is silent, but not the rest."""
    other, domain = pool.new_manager('two'), pool.create()
    pool.servers[A].dead = True
    pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    other.queue_results([silence(domain, A)])
    assert other.workers[A].dns.is_open
    pool.servers[A].dead, probes = False, PeriodicLoops(other, pool.registry, pool.runtime)
    for _ in range(120):
        clock.offset += timedelta(seconds=2)
        probes.run_probes()
        for request in pool.asked:
            pool.manager.queue_results([behind(domain, request.server_id)])  # one zone on it stays behind
        pool.asked.clear()
    assert not other.workers[A].dns.is_open
    pool.lose_casts = True
    pool.central.update_domain(CONTEXT, domain.id, {'ttl': 78})
    other.queue_changes([domain.id])
    assert A in {each.server_id for each in pool.asked}


def test_a_write_that_fails_after_the_servers_were_notified_is_made_up_for(
        pool: ScriptedPool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = pool.create()

    def fail() -> None:
        raise ServiceUnavailable(service='the database', why='the test says so')

    overtaken(pool, monkeypatch, fail)
    changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    assert len(pool.asked) == len(SERVERS) and pool.get(domain).status is Status.PENDING
    pool.deliver()
    later(pool, clock, 60)
    assert pool.get(domain).status is Status.ACTIVE
    assert {pool.rows(changed)[key, Action.UPDATE].serial_number for key in SERVERS} == {changed.serial}


def test_a_broker_that_hangs_holds_no_step_up(pool: ScriptedPool) -> None:
    first, second = pool.create(), pool.create('example.net.')
    works = threading.Event()

    class Hanging:
        def cast(self, topic: str, context: Any, method: str, **arguments: Any) -> None:
            works.wait(60)
            pool.caller.cast(topic, context, method, **arguments)

    pool.lose_casts = True
    manager = Manager(pool.pool, pool.servers, pool.storage, CentralClient(pool.caller),
                      MiniDnsClient(Hanging()),  # type: ignore[arg-type]
                      Threads(), pool.manager.settings)
    for domain in first, second:
        changed = pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
        manager.queue_changes([domain.id])
        wait_until(lambda: {pool.rows(domain)[key, Action.UPDATE].expected_serial
                            for key in SERVERS} == {changed.serial}, 'the rows are written')
    assert pool.asked == []
    works.set()
    wait_until(lambda: {each.domain_id for each in pool.asked} == {first.id, second.id}, 'MiniDNS is told')
    manager.stop()


def test_what_is_not_recent_is_polled_by_any(pool: ScriptedPool, clock: Clock) -> None:
    domain = pool.create()
    pool.lose_casts = True
    pool.central.update_domain(CONTEXT, domain.id, {'ttl': 77})
    pool.lose_casts = False
    clock.offset += timedelta(hours=1)
    pool.manager.queue_changes([domain.id])
    assert {each.server_id for each in pool.spread} == set(SERVERS)


class Broker:
    """Gives what is passed on to a pool manager that has nothing to do."""

    def __init__(self, other: Any, is_down: bool) -> None:
        self.other = other
        self.methods: list[str] = []
        self.is_down = is_down

    def cast(self, topic: str, context: Any, method: str, to_all: bool = False, **arguments: Any) -> None:
        assert topic == contract.topic('default', spread=True) and not to_all
        if self.is_down:
            raise ServiceUnavailable(service=topic, why='the broker is down')
        self.methods.append(method)
        getattr(self.other, method)(context, **arguments)


@pytest.mark.parametrize('is_down', [False, True])
def test_a_pool_manager_with_too_much_to_do_passes_on_what_comes(pool: ScriptedPool, is_down: bool) -> None:
    """One step takes long; what comes meanwhile waits, up to two batches, and then goes to another pool manager."""
    changed = [pool.central.update_domain(CONTEXT, pool.create(f'd{number}.example.com.').id, {'ttl': 77})
               for number in range(8)]
    broker = Broker(pool.endpoint, is_down)
    busy = Manager(pool.pool, pool.servers, pool.storage, CentralClient(pool.caller), MiniDnsClient(pool.caller),
                   Threads(), dataclasses.replace(pool.manager.settings, name='busy', batch_size=1))
    endpoint = PoolManager(busy, pool.registry, pool.runtime,
                           contract.PoolManagerClient(broker))  # type: ignore[arg-type]
    with busy.reconciler._lock:
        for domain in changed:
            endpoint.change_domains(CONTEXT, [domain])
            endpoint.update_statuses(CONTEXT, [served(domain, each) for each in SERVERS])
        passed_on = len(broker.methods)
        if is_down:
            assert busy.queues()['casts'] > 2
        else:
            assert 'change_domains' in broker.methods and 'update_statuses' in broker.methods
            assert busy.queues()['casts'] <= 2 and busy.queues()['outcomes'] <= 2 + len(SERVERS)
    wait_until(lambda: all(pool.get(each).status is Status.ACTIVE for each in changed), 'all are done')
    assert passed_on == len(broker.methods) and (passed_on == 0) == is_down
    busy.stop()


class ToAll:
    """Gives what is passed on to all pool managers."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self.results: list[PollResult] = []

    def cast(self, topic: str, context: Any, method: str, *, to_all: bool, results: list[PollResult],
             spread: bool) -> None:
        assert topic == contract.topic('default', spread=True) and to_all
        self.results += results
        for each in self.all:
            getattr(each, method)(context, results, spread)


def test_results_of_servers_that_only_others_have_are_passed_on(pool: ScriptedPool) -> None:
    """The first one's host has an older file, without server C and with another address of server B."""
    manager, broker = pool.new_manager('first'), ToAll()
    older = {key: worker for key, worker in manager.all_workers.items() if key != SERVERS[2]}
    older[SERVERS[1]] = manager.new_worker(dataclasses.replace(older[SERVERS[1]].server, host='192.0.2.77'),
                                           older[SERVERS[1]].backend)
    manager.reconciler.set_servers(manager.members, older)
    first = PoolManager(manager, pool.registry, pool.runtime,
                        contract.PoolManagerClient(broker))  # type: ignore[arg-type]
    broker.all = [first, pool.endpoint]
    domain = pool.central.update_domain(CONTEXT, pool.create().id, {'ttl': 77})
    labels = {key: pool.manager.all_workers[key].server.label for key in SERVERS}
    results = [dataclasses.replace(served(domain, key), label=label) for key, label in labels.items()]
    stale = [dataclasses.replace(each, label='fake:192.0.2.99:53') for each in results]
    first.update_statuses(CONTEXT, [*stale, *results])
    assert broker.results == results[1:], 'nobody has a server at the former address'
    assert {pool.rows(domain)[key, Action.UPDATE].serial_number for key in SERVERS} == {domain.serial}
