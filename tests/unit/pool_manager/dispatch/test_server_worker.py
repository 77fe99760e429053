"""What waits for a server goes to its driver together; the catalog zone is announced before its readers are asked."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from designate_pool.backends.base import Backend, Capabilities, Outcomes
from designate_pool.deadline import Deadline
from designate_pool.errors import ServiceUnavailable
from designate_pool.model import Action, CallResult, Domain, PollRequest, Reason, Server, ServerStatus, utcnow
from designate_pool.pool_manager.dispatch import server_worker, server_worker as lane_module, zone_compare
from designate_pool.pool_manager.dispatch.server_worker import (RECENT, CallOutcome, CircuitBreaker, Operation,
                                                                PollsInFlight, ServerWorker, WorkerCallbacks,
                                                                has_recent_change)
from designate_pool.pool_manager.dispatch.zone_compare import Match, ZoneComparison
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from designate_pool.runtime import Threads
from designate_pool.settings import Tries
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.serving import catalog
from designate_pool.testing import a_domain
from testing.processes import wait_until
from testing.rows import default_pool_id
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, Clock, ScriptedPool, new_domain

KEY = 'a' * 32


class Bulky(Backend):
    """Takes three domains in one call; after one named "short" it says nothing of the others."""

    capabilities = Capabilities(batch_size=3, most_in_flight=1)

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.calls: list[tuple[str, list[str]]] = []
        self.before: Callable[[], object] = bool

    def _create_many(self, domains: Sequence[Domain], deadline: Deadline) -> Outcomes:
        return self._act('create', domains)

    def _delete_many(self, domains: Sequence[Domain], deadline: Deadline) -> Outcomes:
        return self._act('delete', domains)

    def _act(self, verb: str, domains: Sequence[Domain]) -> Outcomes:
        self.before()
        self.calls.append((verb, [domain.name for domain in domains]))
        return [] if domains[0].name.startswith('short') else [None] * len(domains)


@pytest.fixture
def backend() -> Bulky:
    return Bulky(Server(KEY, 'bulky', '192.0.2.1', max_in_flight=4))


def work(name: str, action: Action = Action.CREATE, seconds: float = 30) -> Operation:
    until = utcnow() + timedelta(seconds=seconds)
    domain = a_domain(name)
    return Operation(domain, ServerStatus(KEY, domain.id, action, 1, claimed_by='one', claimed_until=until))


def never(*arguments: object) -> Any:
    raise AssertionError('this server is neither fed by records nor mended')


def a_worker(backend: Backend, callbacks: WorkerCallbacks, depth: int = 100, control: CircuitBreaker | None = None,
             **seconds: float) -> ServerWorker:
    closed = CircuitBreaker(3, 60, lambda: 0.0)
    return ServerWorker(backend.server, backend, control or closed, closed, depth, Threads(), callbacks, utcnow,
                        **seconds)


def called(backend: Backend, operations: Sequence[Operation],
           control: CircuitBreaker | None = None) -> list[CallOutcome]:
    """How *operations* end that wait together."""
    done: list[CallOutcome] = []
    worker = a_worker(backend, WorkerCallbacks(never, never, done.extend), control=control)
    worker.put(*operations)
    wait_until(lambda: not worker._queues[0], 'all are taken')
    worker.stop()
    return done


def test_what_waits_goes_together_in_its_order_and_no_more_than_fit(backend: Bulky) -> None:
    operations = [work('a.'), work('b.'), work('c.'), work('d.'), work('e.', Action.DELETE), work('f.')]
    done = called(backend, operations)
    assert backend.calls == [('create', ['a.', 'b.', 'c.']), ('create', ['d.']), ('delete', ['e.']), ('create', ['f.'])]
    assert [each.operation for each in done] == operations and all(each.result.ok for each in done)
    assert [each.is_first for each in done] == [True, False, False, True, True, True], 'a call counts once'


def test_no_more_zones_are_created_and_deleted_in_a_second_than_the_server_takes(
        backend: Bulky, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, 'capabilities', Capabilities(batch_size=9, most_in_flight=1, changes_per_second=2))
    worker = a_worker(backend, WorkerCallbacks(never, never, list))
    pauses: list[float] = []
    monkeypatch.setattr(worker._stopping, 'wait', pauses.append)
    worker.put(*map(work, ('a.', 'b.', 'c.')), *(work(f'{name}.', Action.DELETE) for name in 'def'), work('g.'))
    wait_until(lambda: not worker._queues[0], 'all are taken')
    worker.stop()
    assert [(kind, len(names)) for kind, names in backend.calls if len(names) == 2] == [('create', 2), ('delete', 2)]
    assert sum(pauses) == sum(len(names) for _, names in backend.calls) / 2 == 3.5
    assert max(pauses) == 1


def test_a_server_that_answers_questions_and_fails_at_work_is_asked_less_and_less() -> None:
    now = [0.0]
    circuit = CircuitBreaker(1, 2.0, lambda: now[0])

    def waits() -> float:
        """Fail, and wait for the probe that closes the circuit again."""
        assert circuit.failed()
        began = now[0]
        while not circuit.probe_due():
            now[0] += 0.5
        circuit.answered(probe=True)
        return now[0] - began

    assert [waits() for _ in range(6)] == [2, 4, 8, 16, 32, 32]
    circuit.answered()
    assert waits() == 2


def test_a_circuit_closes_when_nothing_is_heard_of_probes_for_longer_than_a_result_takes() -> None:
    now = [0.0]
    circuit = CircuitBreaker(1, 2.0, lambda: now[0])
    assert not circuit.close_unheard(100), 'it is closed'
    assert circuit.failed()
    for now[0] in (160.0, 320.0):
        assert not circuit.close_unheard(100)
        circuit.failed()
    now[0] += 165
    assert circuit.close_unheard(100) and not circuit.is_open and circuit.was_open_lately


def test_a_driver_that_breaks_its_contract_fails_for_all_of_the_call(
        backend: Bulky, caplog: pytest.LogCaptureFixture) -> None:
    done = called(backend, [work('short.'), work('b.'), work('c.'), work('d.')])
    assert [each.operation.domain.name for each in done] == ['short.', 'b.', 'c.', 'd.']
    assert [str(each.result.error).partition(' (')[0].partition(': zip')[0] for each in done] == [
        *['the driver failed: ValueError'] * 3, 'None']
    assert sum('a call for 3 zones failed' in line for line in caplog.messages) == 1


def test_what_is_not_called_when_the_database_fails_is_released(backend: Bulky) -> None:
    operations = [work('a.', seconds=9), work('b.', Action.DELETE)]
    released: list[ServerStatus] = []
    done: list[CallOutcome] = []

    def renew(rows: Sequence[ServerStatus]) -> list[ServerStatus]:
        raise ServiceUnavailable(service='the database', why='no answer')

    worker = a_worker(backend, WorkerCallbacks(never, never, done.extend, renew, released.extend))
    worker.put(*operations)
    wait_until(lambda: released, 'they are released')
    worker.put(third := work('c.'))
    wait_until(lambda: done, 'it goes on')
    worker.stop()
    assert released == [each.row for each in operations]
    assert [each.operation for each in done] == [third] and backend.calls == [('create', ['c.'])]


def longer(operations: Sequence[Operation], seconds: float) -> list[ServerStatus]:
    return [dataclasses.replace(work.row, claimed_until=utcnow() + timedelta(seconds=seconds)) for work in operations]


def test_a_call_begins_only_when_its_claim_outlasts_it(backend: Bulky) -> None:
    operations = [work('a.', seconds=9), work('b.', seconds=9), work('c.', seconds=30)]
    done: list[CallOutcome] = []
    released: list[ServerStatus] = []
    renewed = longer(operations[:1], 60)
    worker = a_worker(backend, WorkerCallbacks(
        never, never, done.extend,
        lambda rows: [row for row in renewed if row.domain_id in {each.domain_id for each in rows}], released.extend))
    assert backend.server.call_timeout == 10
    worker.put(*operations)
    wait_until(lambda: done, 'a call is made')
    worker.stop()
    assert backend.calls == [('create', ['a.', 'c.'])], 'b. may be taken by somebody else before the call ends'
    assert [each.operation.row for each in done] == [renewed[0], operations[2].row]
    assert released == [operations[1].row]


def test_what_is_behind_a_call_that_is_stuck_is_left_to_others(backend: Bulky) -> None:
    begun, go_on = threading.Event(), threading.Event()
    backend.before = lambda: (begun.set(), go_on.wait(30))
    worker = a_worker(backend, WorkerCallbacks(never, never, bool, never), longest_call=0.0)
    worker.put(work('a.'), work('b.'))
    assert begun.wait(30)
    worker.extend_claims(utcnow() + timedelta(seconds=600))
    go_on.set()
    worker.stop()


def test_what_waits_when_it_stops_is_released(backend: Bulky) -> None:
    under_way, may_end = threading.Event(), threading.Event()
    backend.before = lambda: (under_way.set(), may_end.wait(10))
    released: list[ServerStatus] = []
    worker = a_worker(backend, WorkerCallbacks(never, never, bool, release=released.extend))
    worker.put(first := work('first.'))
    assert under_way.wait(10)
    worker.put(*(waiting := [work('second.'), work('third.')]))
    ends = threading.Thread(target=worker.stop)
    ends.start()
    may_end.set()
    ends.join(10)
    assert released == [each.row for each in waiting] and backend.calls == [('create', [first.domain.name])]


def test_few_are_mended_at_a_time(backend: Bulky, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, 'capabilities', Capabilities(batch_size=1000, most_in_flight=1))
    most, together, done = lane_module.MAX_RETRANSFERS, list[int](), list[CallOutcome]()

    def mend(backend: Backend, domains: Sequence[Domain]) -> list[tuple[CallResult, int | None]]:
        together.append(len(domains))
        return [(CallResult(), 1)] * len(domains)

    operations = [dataclasses.replace(each, row=dataclasses.replace(each.row, action=Action.UPDATE, diverged=True))
                  for each in (work(f'd{number}.') for number in range(2 * most + 1))]
    worker = a_worker(backend, WorkerCallbacks(never, mend, done.extend))
    worker.put(*operations)
    wait_until(lambda: len(done) == len(operations), 'all are mended')
    worker.stop()
    assert sum(together) == len(operations) and max(together) <= most


def test_nothing_is_sent_while_the_circuit_is_open(backend: Bulky) -> None:
    control = CircuitBreaker(1, 60, lambda: 0.0)
    control.failed()
    done = called(backend, [work('a.'), work('b.')], control)
    assert backend.calls == [] and all(each.result.unreachable for each in done)


def test_a_change_of_now_has_room_and_goes_before_all_that_waits(backend: Bulky) -> None:
    begun, go_on = threading.Event(), threading.Event()
    done: list[CallOutcome] = []
    worker = a_worker(backend, WorkerCallbacks(never, never, done.extend), 6)
    backend.before = lambda: (begun.set(), go_on.wait(10))
    worker.put(work('a.'), work('b.'), work('c.'))
    assert begun.wait(10)
    worker.put(*(work(f'p{number}.') for number in range(6)))
    assert (worker.room(recent=False), worker.room(recent=True), worker.waiting) == (0, 6, 6)
    worker.put(dataclasses.replace(work('new.'), recent=True))
    assert (worker.room(recent=False), worker.room(recent=True), worker.waiting) == (0, 5, 7)
    go_on.set()
    wait_until(lambda: len(done) == 10, 'all is done')
    worker.stop()
    assert [names for _, names in backend.calls] == [
        ['a.', 'b.', 'c.'], ['new.'], ['p0.', 'p1.', 'p2.'], ['p3.', 'p4.', 'p5.']]


class TestWhereCallsAreDear:
    @pytest.fixture
    def backend(self, backend: Bulky, monkeypatch: pytest.MonkeyPatch) -> Bulky:
        monkeypatch.setattr(backend, 'capabilities', dataclasses.replace(backend.capabilities, gathers_below=3))
        return backend

    def test_more_gathers_after_a_call_for_several(self, backend: Bulky) -> None:
        worker, done = self.worker(backend, 1.0)
        worker.put(work('a.'), work('b.'))
        wait_until(lambda: len(done) == 2, 'the first two are done')
        worker.put(work('c.'))
        worker.put(work('d.'))
        wait_until(lambda: len(done) == 4, 'all are done')
        worker.stop()
        assert [names for _, names in backend.calls] == [['a.', 'b.'], ['c.', 'd.']]

    @pytest.mark.parametrize('first', [['a.'], ['a.', 'b.', 'c.']], ids=['one alone', 'many'])
    def test_after_others_nothing_is_waited_for(self, backend: Bulky, first: list[str]) -> None:
        worker, done = self.worker(backend, 600.0)
        worker.put(*map(work, first))
        wait_until(lambda: len(done) == len(first), 'the first are done')
        worker.put(work('z.'))
        wait_until(lambda: len(done) == len(first) + 1, 'all are done')
        worker.stop()

    def test_nothing_is_waited_for_where_enough_waits(self, backend: Bulky) -> None:
        worker, done = self.worker(backend, 600.0)
        worker.put(*(dataclasses.replace(work(name), recent=True) for name in ('a.', 'b.')), *map(work, 'xyz'))
        wait_until(lambda: len(done) == 5, 'all are done')
        worker.stop()
        assert [names for _, names in backend.calls] == [['a.', 'b.'], ['x', 'y', 'z']]

    def test_it_stops_at_once(self, backend: Bulky) -> None:
        worker, done = self.worker(backend, 600.0)
        worker.put(work('a.'), work('b.'))
        wait_until(lambda: len(done) == 2, 'the first two are done')
        worker.stop()
        assert not worker._queues[0]._task.is_alive()

    @staticmethod
    def worker(backend: Bulky, longest_rest: float) -> tuple[ServerWorker, list[CallOutcome]]:
        done: list[CallOutcome] = []
        return a_worker(backend, WorkerCallbacks(never, never, done.extend), rest=1e9, longest_rest=longest_rest), done


def test_readers_of_the_catalog_are_told_of_a_new_serial_of_it(pool: ScriptedPool) -> None:
    read_catalog(pool, SERVERS[1])
    serials = []
    for name in ('one.example.com.', 'two.example.com.'):
        pool.central.create_domain(CONTEXT, {'name': name, 'email': 'hostmaster@example.com'})
        announced = catalog_polls(pool)
        assert [each.server_id for each in announced] == [SERVERS[1]] and announced[0].notify
        asked = [each for each in pool.asked if each.server_id == SERVERS[1]]
        assert asked.index(announced[0]) == 0, 'before the members are asked for'
        serials.append(announced[0].serial)
        pool.asked.clear()
    assert serials[1] > serials[0]


def test_what_is_tried_again_has_a_new_serial_of_the_catalog_but_while_a_server_may_be_at_work_on_the_last(
        pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch) -> None:
    read_catalog(pool, SERVERS[1])
    reconciler, now = pool.manager.reconciler, time.monotonic()
    patience = reconciler.fetch_patience.total_seconds()
    monkeypatch.setattr(time, 'monotonic', lambda: now)
    new, first, again = [announced_for(pool, attempts)[0].serial for attempts in (0, 1, 1)]
    assert new < first == again, 'what is new is in it already, and it is announced all the same'
    now += patience + 0.1
    assert announced_for(pool, 1)[0].serial > again


def test_a_catalog_that_cannot_be_announced_holds_nothing_back(pool: ScriptedPool,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    read_catalog(pool, SERVERS[1])

    def fail(*_: object) -> None:
        raise ServiceUnavailable(service='the database', why='a lock')

    monkeypatch.setattr(catalog, 'head', fail)
    domain = pool.central.create_domain(CONTEXT, {'name': 'one.example.com.', 'email': 'hostmaster@example.com'})
    assert not catalog_polls(pool)
    assert [server.calls for server in pool.servers.values()] == [[('create', domain.id)]] * 3


def read_catalog(pool: ScriptedPool, server_id: str) -> None:
    pool.manager.reconciler.pool = dataclasses.replace(pool.pool, catalog_zone='catalog.example.')
    pool.servers[server_id].capabilities = Capabilities(reads_catalog=True)
    pool.storage.run(lambda tx: catalog.establish(tx, default_pool_id(tx), utcnow()))


def catalog_polls(pool: ScriptedPool) -> list[PollRequest]:
    return [each for each in pool.asked if each.name == 'catalog.example.']


def announced_for(pool: ScriptedPool, attempts: int) -> list[PollRequest]:
    """What goes to MiniDNS for a create that has failed so often."""
    pool.asked.clear()
    domain = a_domain('again.example.com.')
    row = ServerStatus(SERVERS[1], domain.id, Action.CREATE, domain.serial, attempts=attempts)
    pool.manager.reconciler._announce_catalog([Operation(domain, row, recent=True)])
    return catalog_polls(pool)


NOW = utcnow()


@pytest.mark.parametrize('age, wanted', [(timedelta(0), True), (RECENT - timedelta(seconds=1), True), (RECENT, False)])
def test_a_change_is_of_now_for_a_while(age: timedelta, wanted: bool) -> None:
    assert has_recent_change(dataclasses.replace(a_domain('a.'), changed_at=NOW - age), NOW) is wanted
    assert not has_recent_change(dataclasses.replace(a_domain('a.'), changed_at=None), NOW)


def test_polls_whose_round_has_ended_are_forgotten() -> None:
    polls = PollsInFlight()
    for seconds, name in enumerate(('one', 'two', 'three'), 1):
        polls.add(name, NOW + timedelta(seconds=seconds), recent=name == 'two')
    polls.add('one', NOW + timedelta(seconds=4), recent=False)
    assert [polls.is_for_recent_change(name) for name in ('one', 'two', 'four')] == [False, True, False]
    polls.discard('three')
    polls.discard('three')
    assert polls.room(NOW) == server_worker.MOST_POLLS - 2
    assert polls.room(NOW + timedelta(seconds=2)) == server_worker.MOST_POLLS - 1
    assert not polls.is_for_recent_change('two'), 'its time is over'


def test_polls_of_the_past_are_bounded_and_those_of_now_go_at_once(
        pool: ScriptedPool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    old = domains_of_the_past(pool, clock, 12)
    monkeypatch.setattr(server_worker, 'MOST_POLLS', 5)
    due_on(SERVERS[0], old, pool, clock)
    periodic = PeriodicLoops(pool.manager, pool.registry, pool.runtime)
    assert periodic.run_due() == 0
    assert periodic.run_due() > 0, 'there is no room for more'
    first = [request.name for request in pool.asked]
    assert len(first) == 5 and set(first) <= {domain.name for domain in old}
    new_domain(pool, 'new.example.com.')
    assert [request.name for request in pool.asked[5:]] == ['new.example.com.'] * len(SERVERS)
    asked = []
    for _ in range(4):
        asked += [request.name for request in pool.asked if request.name != 'new.example.com.']
        pool.deliver()
        periodic.run_due()
    assert sorted(asked) == [domain.name for domain in old], 'each of them once'


def test_polls_that_another_pool_manager_hears_of_make_room(
        pool: ScriptedPool, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.registry.start()
    old = domains_of_the_past(pool, clock, 8)
    monkeypatch.setattr(server_worker, 'MOST_POLLS', 5)
    due_on(SERVERS[0], old, pool, clock)
    periodic = PeriodicLoops(pool.manager, pool.registry, pool.runtime)
    periodic.run_due()
    polls = pool.manager.workers[SERVERS[0]].polls
    pool.new_manager('two').queue_results(pool.poll(request) for request in pool.asked[:3])
    assert polls.room(clock()) == 0
    periodic.run_polls()
    assert polls.room(clock()) == 3


def test_outcomes_of_recent_changes_are_handled_first(pool: ScriptedPool, clock: Clock) -> None:
    old, = domains_of_the_past(pool, clock, 1)
    due_on(SERVERS[0], [old], pool, clock)
    PeriodicLoops(pool.manager, pool.registry, pool.runtime).run_due()
    new_domain(pool, 'new.example.com.')
    first = {request.name: pool.manager._goes_first(pool.poll(request)) for request in pool.asked}
    assert first == {old.name: False, 'new.example.com.': True}


def domains_of_the_past(pool: ScriptedPool, clock: Clock, count: int) -> list[Domain]:
    made = [new_domain(pool, f'd{number:03}.example.com.') for number in range(count)]
    pool.deliver()
    clock.offset += 2 * RECENT
    return made


def due_on(server: str, due: list[Domain], pool: ScriptedPool, clock: Clock) -> None:
    for domain in due:
        pool.storage.run(server_statuses.wake_domain, server, domain.id, clock())


TRIES = Tries(timeout=1, retry_interval=0.2, max_retries=2, backoff_initial=1, backoff_maximum=1)
SAME, OTHER, BEHIND, SILENT = Match.SAME, Match.OTHER, Match.ELSEWHERE, Match.SILENT


@pytest.mark.parametrize(('matches', 'is_told', 'reason'), [
    ([SAME], False, None),
    ([BEHIND, BEHIND, SAME], False, None),
    ([BEHIND, OTHER, 'told', SAME], True, None),
    ([OTHER, 'told', BEHIND, SAME], True, None),
    ([SILENT, 'told', SAME], True, None),
    ([BEHIND, 'told', BEHIND], True, Reason.UNCHECKED),
], ids=lambda given: ' '.join(getattr(each, 'name', each) for each in given) if isinstance(given, list) else None)
def test_a_server_is_told_unless_it_is_only_transferring_a_change(
        monkeypatch: pytest.MonkeyPatch, matches: list[Any], is_told: bool, reason: Reason | None) -> None:
    """*matches*: what comparisons find, the last one from then on; 'told' for what they find once it is told."""
    remaining, told = list(matches), []

    def compare(*_: object) -> ZoneComparison:
        while remaining[0] == 'told' and told:
            remaining.pop(0)
        if len(remaining) > 1 and remaining[1] != 'told':
            return ZoneComparison(remaining.pop(0), 7)
        return ZoneComparison(remaining[0], 7)

    def refetch(domains: Sequence[Any]) -> list[CallResult]:
        told.append(len(domains))
        del remaining[:remaining.index('told') if 'told' in remaining else 0]
        return [CallResult() for _ in domains]

    monkeypatch.setattr(zone_compare, 'compare_domain', compare)
    backend: Any = SimpleNamespace(server=SimpleNamespace(label='one'), refetch_domains=refetch)
    storage: Any = None
    (result, serial), = zone_compare.retransfer(storage, TRIES, backend, [a_domain()])
    assert (bool(told), result.reason, serial) == (is_told, reason, 7)
