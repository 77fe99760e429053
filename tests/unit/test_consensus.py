"""What a pool agrees on: never too early, never backwards, and an error exactly when success has become impossible."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from designate_pool import consensus
from designate_pool.api.services import wait_verdict
from designate_pool.api.services.wait_verdict import WaitTarget, ZoneState
from designate_pool.api.views import zone_servers
from designate_pool.model import (Action, Answer, CallResult, Domain, Outcome, PollResult, Pool, PoolServer,
                                  ServerState, ServerStatus, Status, utcnow)
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.serial import HALF, SPACE, at_least, newer
from designate_pool.settings import PoolManagerSettings

TRIES = PoolManagerSettings().tries


def domain(serial: int = 10, **values: object) -> Domain:
    made = Domain(id='d' * 32, name='example.com.', pool_id='p' * 32, pool_name='default',
                  email='hostmaster@example.com', ttl=3600, serial=serial, action=Action.UPDATE)
    return dataclasses.replace(made, **values)  # type: ignore[arg-type]


def row(server: str, serial: int | None = None, status: Outcome | None = None, expected: int = 10,
        action: Action = Action.UPDATE) -> ServerStatus:
    return ServerStatus(server, 'd' * 32, action, expected, serial_number=serial, status=status)


def done(server: str, serial: int = 10) -> ServerStatus:
    return row(server, serial, Outcome.SUCCESS, serial)


def failed(server: str, serial: int | None = None, action: Action = Action.UPDATE) -> ServerStatus:
    return row(server, serial, Outcome.ERROR, action=action)


@pytest.mark.parametrize(('total', 'threshold', 'k'), [
    (1, 100, 1), (1, 1, 1), (2, 100, 2), (2, 51, 2), (2, 50, 1), (3, 66, 2), (3, 67, 3), (3, 34, 2), (3, 33, 1),
    (4, 75, 3), (100, 1, 1)])
def test_needed_is_rounded_up_in_whole_numbers(total: int, threshold: int, k: int) -> None:
    assert consensus.needed(total, threshold) == k


def test_two_of_three_serve_the_change_and_two_are_enough() -> None:
    verdict = consensus.weigh(domain(), [done('a'), done('b'), failed('c', 9)], 'abc', 66)
    assert (verdict.status, verdict.serial) == (Outcome.SUCCESS, 10)
    assert verdict.agreed == ('a', 'b') and verdict.behind == ('c',) and verdict.failed == ('c',)


def test_two_of_three_serve_the_change_and_all_are_needed() -> None:
    verdict = consensus.weigh(domain(), [done('a'), done('b'), row('c', 9)], 'abc', 100)
    assert (verdict.status, verdict.consensus_serial) == (Outcome.SUCCESS, 9)


def test_one_failure_makes_success_impossible_when_all_are_needed() -> None:
    verdict = consensus.weigh(domain(reported_serial=9), [done('a'), done('b'), failed('c', 9)], 'abc', 100)
    assert (verdict.status, verdict.serial) == (Outcome.ERROR, 10)


def test_a_failed_create_counts_as_a_failure() -> None:
    rows = [done('a'), row('b'), failed('b', action=Action.CREATE)]
    assert consensus.weigh(domain(), rows, 'ab', 100).status is Outcome.ERROR


def test_a_failure_at_an_older_serial_is_not_one_now() -> None:
    rows = [done('a'), row('b', 8, Outcome.ERROR, expected=9)]
    assert consensus.weigh(domain(reported_serial=8), rows, 'ab', 100).status is None


def test_an_error_is_never_told_of_a_serial_that_was_reported() -> None:
    rows = [done('a'), failed('b', 10)]
    verdict = consensus.weigh(domain(reported_serial=10), rows, 'ab', 100)
    assert verdict.status is None and verdict.behind == ('b',)


def test_a_server_that_rests_neither_helps_nor_hurts() -> None:
    rows = [done('a'), failed('b', 9), done('c')]
    verdict = consensus.weigh(domain(), rows, 'ac', 100, resting=('b',))
    assert (verdict.status, verdict.total) == (Outcome.SUCCESS, 2)
    assert (verdict.behind, verdict.failed) == ((), ())
    assert consensus.weigh(domain(), [row('a'), done('b')], 'a', 100, resting=('b',)).status is None


def test_no_server_counts_so_nothing_is_agreed_on() -> None:
    verdict = consensus.weigh(domain(), [done('a'), failed('b')], '', 100, resting='ab')
    assert (verdict.status, verdict.consensus_serial, verdict.needed) == (None, None, 1)
    assert consensus.weigh(domain(action=Action.DELETE), [], '', 1, resting='ab').status is None


def test_a_deletion_is_complete_when_those_that_rest_have_confirmed_it_too() -> None:
    going = domain(action=Action.DELETE, status=Status.DELETED)
    gone = row('a', status=Outcome.SUCCESS, action=Action.DELETE)
    assert consensus.weigh(going, [gone, done('b')], 'a', 100, resting='bc').behind == ('b',)
    assert consensus.weigh(going, [gone, row('b', action=Action.DELETE)], 'a', 100, resting='bc').behind == ('b',)
    confirmed = row('b', status=Outcome.SUCCESS, action=Action.DELETE)
    assert consensus.weigh(going, [gone, done('b'), confirmed], 'a', 100, resting='bc').behind == ()


def test_rows_of_servers_that_have_left_do_not_count() -> None:
    assert consensus.weigh(domain(), [done('a'), done('gone')], 'ab', 100).status is None


def test_a_server_that_is_ahead_of_all_that_was_issued_does_not_count() -> None:
    rows = [done('a'), done('b'), row('c', 11, Outcome.SUCCESS), row('d', 500, Outcome.SUCCESS)]
    verdict = consensus.weigh(domain(), rows, 'abcd', 75)
    assert (verdict.status, verdict.consensus_serial, verdict.behind) == (None, None, ('c', 'd'))
    assert consensus.weigh(domain(), rows, 'abcd', 50).serial == 10


def test_a_serial_without_order_counts_as_never_seen() -> None:
    assert consensus.weigh(domain(), [done('a', 10 + HALF)], 'a', 100).status is None


def test_serials_wrap_around() -> None:
    new = 3
    rows = [done('a', new), done('b', new), row('c', SPACE - 2, expected=new)]
    current = domain(new, reported_serial=SPACE - 2)
    assert consensus.weigh(current, rows, 'abc', 66).serial == new
    assert consensus.weigh(current, rows, 'abc', 100).status is None


def test_what_is_older_than_the_domains_first_serial_is_a_former_domains() -> None:
    anew = domain(action=Action.CREATE, first_serial=8)
    rows = [done('a', 10), done('b', 10), row('c', 7)]
    assert consensus.weigh(anew, rows, 'abc', 100).status is None
    assert not consensus.serves(anew, {Action.UPDATE: row('c', 7)}, 7)
    assert consensus.weigh(anew, [*rows, row('c', 8)], 'abc', 100).serial == 8
    assert consensus.weigh(anew, rows, 'abc', 66).serial == 10
    assert consensus.weigh(domain(action=Action.CREATE), rows, 'abc', 100).serial == 7, 'nobody knows the first'


@pytest.mark.parametrize('first', [4, 10 + HALF, 11])
def test_a_domain_that_has_come_far_around_the_circle_counts_its_own_serial(first: int) -> None:
    assert consensus.weigh(domain(first_serial=first), [done('a', 10)], 'a', 100).serial == 10


def test_a_serial_that_was_issued_after_the_domain_was_read_counts() -> None:
    assert consensus.served(domain(first_serial=10), {Action.UPDATE: done('a', 11)}) == 11


def test_a_deletion_is_told_at_the_threshold_and_is_complete_at_all() -> None:
    rows = [row(server, status=Outcome.SUCCESS, action=Action.DELETE) for server in 'ab']
    verdict = consensus.weigh(domain(action=Action.DELETE), rows, 'abc', 66)
    assert (verdict.status, verdict.serial, verdict.behind) == (Outcome.SUCCESS, 10, ('c',))
    told = domain(action=Action.NONE, status=Status.DELETED)
    assert consensus.weigh(told, rows, 'abc', 66).status is None
    assert consensus.weigh(told, rows, 'ab', 100).behind == ()


def test_a_deletion_that_too_many_servers_refuse_is_an_error() -> None:
    rows = [row('a', status=Outcome.SUCCESS, action=Action.DELETE),
            row('b', status=Outcome.ERROR, action=Action.DELETE)]
    assert consensus.weigh(domain(action=Action.DELETE), rows, 'ab', 100).status is Outcome.ERROR
    assert consensus.weigh(domain(action=Action.DELETE), rows, 'ab', 50).status is Outcome.SUCCESS


def test_an_older_serial_is_reported_before_the_error_of_the_newer() -> None:
    rows = [done('a', 10), failed('b', 9)]
    found = consensus.reports(domain(reported_serial=8), rows, 'ab', 100)
    assert [(each.status, each.serial_number) for each in found] == [(Outcome.SUCCESS, 9), (Outcome.ERROR, 10)]


def test_an_error_is_told_once() -> None:
    assert consensus.reports(domain(status=Status.ERROR), [failed('a')], 'a', 100) == ()


def pools() -> st.SearchStrategy[tuple[str, int]]:
    return st.tuples(st.integers(1, 7).map(lambda count: 'abcdefg'[:count]), st.integers(1, 100))


@given(pools(), st.integers(0, SPACE - 1), st.data())
def test_success_takes_k_servers_and_never_goes_back(pool: tuple[str, int], serial: int, data: st.DataObject) -> None:
    servers, threshold = pool
    near = st.integers(-5, 5).map(lambda step: (serial + step) % SPACE)
    rows = [row(server, data.draw(st.none() | near), data.draw(st.sampled_from([None, *Outcome])), serial)
            for server in servers]
    reported = data.draw(st.none() | near.filter(lambda value: at_least(serial, value)))
    verdict = consensus.weigh(domain(serial, reported_serial=reported), rows, servers, threshold)
    k = consensus.needed(len(servers), threshold)
    if verdict.status is Outcome.SUCCESS:
        assert verdict.serial is not None
        serials = [each.serial_number for each in rows
                   if each.serial_number is not None and at_least(serial, each.serial_number)]
        assert sum(at_least(seen, verdict.serial) for seen in serials) >= k
        assert reported is None or newer(verdict.serial, reported)
        assert not newer(verdict.serial, serial)
    failures = sum(each.status is Outcome.ERROR for each in rows)
    if verdict.status is Outcome.ERROR:
        assert failures > len(servers) - k
    elif verdict.status is None and failures > len(servers) - k:
        assert reported is not None and at_least(reported, serial)


@given(st.lists(st.tuples(st.sampled_from('abc'), st.integers(0, 6), st.booleans()), max_size=12), st.randoms(),
       st.sampled_from([0, SPACE - 3]), st.sampled_from([34, 66, 67, 100]))
def test_any_order_and_repetition_of_answers_ends_in_the_same_consensus(
        answers: list[tuple[str, int, bool]], rng: random.Random, base: int, threshold: int) -> None:
    current = domain((base + 6) % SPACE)
    results = [PollResult(current.id, server, Outcome.SUCCESS, Answer.SERIAL, (base + step) % SPACE)
               for server, step, _ in answers]
    repeated = results + [result for result, (_, _, twice) in zip(results, answers) if twice]
    rng.shuffle(repeated)

    def end(order: list[PollResult]) -> tuple[int | None, Outcome | None]:
        rows = {server: row(server, expected=current.serial) for server in 'abc'}
        for result in order:
            rows[result.server_id] = row_transitions.after_poll(rows[result.server_id], result, utcnow(), TRIES, 0.5)
        verdict = consensus.weigh(current, rows.values(), 'abc', threshold)
        return verdict.consensus_serial, verdict.status

    assert end(results) == end(repeated)


def test_servers_that_lack_only_renewed_signatures_are_up_to_date() -> None:
    resigned = domain(12, content_serial=10, reported_serial=10, status=Status.ACTIVE, action=Action.NONE)
    rows = [done('a', 12), row('b', 10, expected=12), failed('c', 9)]
    verdict = consensus.weigh(resigned, rows, 'abc', 66)
    assert (verdict.agreed, verdict.behind) == (('a', 'b'), ('c',)) and verdict.status is None
    assert consensus.reports(resigned, [done('a', 12), done('b', 12), done('c', 12)], 'abc', 100)[0].serial_number == 12
    late = [dataclasses.replace(failed('c', 9), expected_serial=12), done('a', 12), done('b', 12)]
    assert consensus.weigh(resigned, late, 'abc', 100).failed == ('c',), 'it failed at the contents too'
    assert consensus.weigh(dataclasses.replace(resigned, reported_serial=9), late, 'abc', 100).status is Outcome.ERROR
    stays = dataclasses.replace(failed('b', 10), expected_serial=12)
    assert consensus.weigh(resigned, [done('a', 12), stays], 'ab', 100).behind == ()


NOW = utcnow()
DOMAIN = Domain(id='d' * 32, name='example.com.', pool_id='p' * 32, pool_name='default', email='hostmaster@example.com',
                ttl=3600, serial=10, action=Action.UPDATE, generation=1)
POOL = Pool(id='p' * 32, name='default', threshold_percentage=100, published_at=NOW)
CREATE, UPDATE = (ServerStatus('a' * 32, DOMAIN.id, action, 10, serial_number=serial, status=Outcome.SUCCESS)
                  for action, serial in ((Action.CREATE, None), (Action.UPDATE, 10)))
BOTH = {(row.server_id, row.action): row for row in (CREATE, UPDATE)}


def fetched_again() -> list[ServerStatus]:
    return [CREATE, *row_transitions.refetch(DOMAIN, BOTH, CREATE.server_id, NOW)]


def created_again_in_vain() -> list[ServerStatus]:
    create, = row_transitions.provision(DOMAIN, BOTH, CREATE.server_id, NOW)
    return [row_transitions.after_call(create, CallResult(error='refused', retryable=False), NOW,
                                       PoolManagerSettings().tries, 0.5), UPDATE]


SITUATIONS: dict[str, tuple[list[ServerStatus], bool]] = {
    'served': ([CREATE, UPDATE], True),
    'fetched again': (fetched_again(), True),
    'created again in vain': (created_again_in_vain(), False),
    'silent since': ([CREATE, dataclasses.replace(UPDATE, status=Outcome.ERROR)], False),
    'failing for an older serial': ([CREATE, dataclasses.replace(UPDATE, status=Outcome.ERROR, serial_number=9,
                                                                 expected_serial=9)], False),
    'other contents': ([CREATE, dataclasses.replace(UPDATE, diverged=True)], False),
    'ahead of all that was issued': ([CREATE, dataclasses.replace(UPDATE, serial_number=11)], False),
    'behind': ([CREATE, dataclasses.replace(UPDATE, serial_number=9, status=None)], False),
    'never seen': ([CREATE, dataclasses.replace(UPDATE, serial_number=None, status=None)], False),
    'not begun': ([], False),
}


def answers(rows: Sequence[ServerStatus], domain: Domain = DOMAIN) -> tuple[bool, bool, bool]:
    """What the pool, the page of a zone's servers, and a wait for its serial say of the one server."""
    servers = [PoolServer(CREATE.server_id, POOL.id, 'fake:192.0.2.1:53', 'fake', ServerState.ACTIVE, '')]
    shown = zone_servers.zone_servers(domain, servers, rows, POOL, '')
    wanted = WaitTarget(domain.id, domain.serial, deletion=domain.is_going)
    return (bool(consensus.weigh(domain, rows, [CREATE.server_id], 100).agreed), shown['servers'][0]['current'],
            bool(wait_verdict.current(wanted, ZoneState(domain, servers, rows, POOL))))


@pytest.mark.parametrize('situation', SITUATIONS)
def test_all_who_are_asked_say_the_same(situation: str) -> None:
    rows, serves = SITUATIONS[situation]
    assert answers(rows) == (serves, serves, serves)


@given(st.data())
def test_and_so_they_do_whatever_the_rows_say(data: st.DataObject) -> None:
    domain = dataclasses.replace(DOMAIN, action=data.draw(st.sampled_from(list(Action))))
    rows = [ServerStatus(CREATE.server_id, domain.id, action, data.draw(st.integers(8, 10)),
                         serial_number=data.draw(st.sampled_from([None, 8, 9, 10, 11])),
                         status=data.draw(st.sampled_from([None, Outcome.SUCCESS, Outcome.ERROR])),
                         diverged=data.draw(st.booleans()))
            for action in data.draw(st.sets(st.sampled_from([Action.CREATE, Action.UPDATE, Action.DELETE])))]
    pool, shown, waited = answers(rows, domain)
    assert pool == shown == waited
