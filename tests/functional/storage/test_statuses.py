"""The rows of pool_manager_status on each of the databases."""

from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool.errors import LostRace
from designate_pool.model import Action, Outcome, PoolServer, Reason, ServerState, ServerStatus, new_id
from designate_pool.storage.operations import pool_servers, server_statuses
from designate_pool.storage.sql import migrate, schema
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import name_claims, pool_manager_status
from designate_pool.storage.zones import domains
from testing.databases import count_statements
from testing.rows import default_pool_id, insert_domains as insert_live_domains

NOW = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
A, B, C = (letter * 32 for letter in 'abc')


def row(domain_id: str, server_id: str = A, action: Action = Action.UPDATE, **facts: Any) -> ServerStatus:
    return ServerStatus(server_id, domain_id, action, **{'expected_serial': 1, 'version': 1, **facts})


def written(storage: Storage, *rows: ServerStatus, now: datetime = NOW) -> None:
    storage.run(server_statuses.write, rows, now)


def stored(storage: Storage, domain_id: str) -> list[ServerStatus]:
    return storage.read(server_statuses.for_domains, [domain_id])[domain_id]


def claim(storage: Storage, rooms: dict[str, int], now: datetime = NOW, by: str = 'one') -> list[ServerStatus]:
    return storage.run(server_statuses.claim_due, rooms, now, by, now + MINUTE)


@pytest.fixture
def domain(storage: Storage) -> str:
    return storage.run(insert_domains, 1)[0]


def insert_domains(tx: Tx, number: int) -> list[str]:
    """Domains that are deleted: the rows of others are not purged."""
    ids = insert_live_domains(tx, number)
    tx.execute(schema.domains.update().values(deleted=schema.domains.c.id))
    return ids


def test_every_column_comes_back_as_it_was_written(storage: Storage, domain: str) -> None:
    full = ServerStatus(A, domain, Action.CREATE, 4294967295, id=new_id(), status=Outcome.ERROR,
                        serial_number=2147483648, last_error='näm, ελληνικά, 日本', attempts=3,
                        next_attempt_at=NOW + SECOND, deadline_at=NOW + MINUTE, claimed_by='manager-1',
                        claimed_until=NOW + 2 * SECOND, version=7, reason=Reason.BAD_KEY)
    written(storage, full)
    assert stored(storage, domain) == [dataclasses.replace(full, created_at=NOW, updated_at=NOW)]


def test_a_reason_that_a_newer_version_wrote_is_another(storage: Storage, domain: str) -> None:
    written(storage, row(domain, reason=Reason.TIMEOUT))
    storage.run(lambda tx: tx.execute(sa.text("UPDATE pool_manager_status SET reason = 'NEWER'")))
    assert stored(storage, domain)[0].reason is Reason.OTHER
    written(storage, row(domain, version=2))
    assert stored(storage, domain)[0].reason is None


def test_a_newer_version_replaces_all_but_id_and_created_at(storage: Storage, domain: str) -> None:
    first = row(domain, next_attempt_at=NOW, claimed_by='one', claimed_until=NOW + MINUTE, last_error='no answer')
    written(storage, first)
    second = row(domain, id=new_id(), version=2, status=Outcome.SUCCESS, serial_number=5, attempts=1, expected_serial=5)
    written(storage, second, now=NOW + SECOND)
    assert stored(storage, domain) == [dataclasses.replace(second, id=first.id, created_at=NOW,
                                                           updated_at=NOW + SECOND)]


@pytest.mark.parametrize('version', [4, 5])
def test_an_older_or_equal_version_is_dropped_whole(storage: Storage, domain: str, version: int) -> None:
    written(storage, row(domain, version=5, serial_number=10, status=Outcome.SUCCESS))
    before = stored(storage, domain)
    written(storage, row(domain, version=version, serial_number=9, status=Outcome.ERROR, last_error='late', attempts=9,
                         next_attempt_at=NOW, claimed_by='two', expected_serial=9), now=NOW + SECOND)
    assert stored(storage, domain) == before


def test_the_fence_judges_each_row_of_a_batch_by_itself(storage: Storage) -> None:
    ids = storage.run(insert_domains, 3)
    written(storage, row(ids[0], version=1), row(ids[1], version=3))
    with count_statements(storage) as statements:
        written(storage, *(row(each, version=2, attempts=8) for each in ids))
    found = storage.read(server_statuses.for_domains, ids)
    assert [(found[each][0].version, found[each][0].attempts) for each in ids] == [(2, 8), (3, 0), (2, 8)]
    # MariaDB is asked besides which of the rows that are new to the writer were there already.
    assert statements.total() == (2 if storage.engine.dialect.name == 'mysql' else 1)


def test_the_rows_of_some_servers_alone(storage: Storage) -> None:
    first, second = storage.run(insert_domains, 2)
    written(storage, *(row(first, server, action) for server in (A, B, C) for action in (Action.CREATE, Action.UPDATE)))
    found = storage.read(server_statuses.for_domains, [first, second], [C, A])
    assert [(each.server_id, each.action) for each in found[first]] == [
        (server, action) for server in (A, C) for action in (Action.CREATE, Action.UPDATE)]
    assert found[second] == []


@pytest.mark.parametrize('servers', [[], [C, A]])
def test_rows_and_their_domains_at_once_are_those_read_one_after_the_other(
        storage: Storage, servers: list[str]) -> None:
    ids = [*storage.run(insert_domains, 3), new_id()]
    written(storage, *(row(each, server, next_attempt_at=NOW) for each in ids[:2] for server in (C, B, A)))
    with count_statements(storage) as statements:
        rows, found = storage.read(server_statuses.with_domains, ids, servers)
    assert statements.total() == (1 if storage.engine.dialect.name == 'mysql' else 2)
    by_domain = storage.read(server_statuses.for_domains, ids, servers)
    assert [len(each) for each in by_domain.values()] == [len(servers) or 3] * 2 + [0] * 2
    assert {each: [status for status in rows if status.domain_id == each] for each in ids} == by_domain
    assert found == storage.read(domains.get_many, ids) and len(found) == 3


def test_a_writer_is_told_how_many_of_its_rows_somebody_else_wrote_first(storage: Storage) -> None:
    first, second, third = storage.run(insert_domains, 3)
    assert storage.run(server_statuses.write, [row(first), row(second)], NOW) == 0
    read = stored(storage, first) + stored(storage, second)
    mine = [dataclasses.replace(each, version=2, attempts=1) for each in read] + [row(third)]
    written(storage, dataclasses.replace(read[0], version=2, attempts=9))
    assert storage.run(server_statuses.write, mine, NOW + SECOND) == 1
    assert [stored(storage, each)[0].attempts for each in (first, second, third)] == [9, 1, 0]
    later = [dataclasses.replace(each, version=3) for each in stored(storage, first) + stored(storage, second)]
    assert storage.run(server_statuses.write, later, NOW + SECOND) == 0


def test_a_writer_is_told_that_somebody_else_has_begun_a_row_first(storage: Storage) -> None:
    first, second, third = storage.run(insert_domains, 3)
    written(storage, row(first, expected_serial=100), row(second))
    old = stored(storage, second)[0]
    mine = [row(first, expected_serial=101), row(third), dataclasses.replace(old, version=2, attempts=1)]
    assert storage.run(server_statuses.write, mine, NOW) == 1
    assert [stored(storage, each)[0].expected_serial for each in (first, third)] == [100, 1]
    assert stored(storage, second)[0].attempts == 1


def test_a_row_that_was_deleted_since_it_was_read_is_not_written(storage: Storage) -> None:
    first, second, third = storage.run(insert_domains, 3)
    written(storage, row(first), row(second))
    read = stored(storage, first) + stored(storage, second)
    storage.run(server_statuses.purge_domains, [first], [A], NOW)
    mine = [dataclasses.replace(each, version=2, attempts=1) for each in read] + [row(third)]
    assert storage.run(server_statuses.write, mine, NOW + SECOND) == 1
    assert [[each.attempts for each in stored(storage, key)] for key in (first, second, third)] == [[], [1], [0]]


def test_a_row_that_was_deleted_while_it_is_written_is_not_written(storage: Storage, domain: str) -> None:
    written(storage, row(domain))
    later = [dataclasses.replace(each, version=2) for each in stored(storage, domain)]
    with ThreadPoolExecutor(1) as pool:
        def purge(tx: Tx) -> Any:
            server_statuses.purge_domains(tx, [domain], [A], NOW)
            return pool.submit(storage.run, server_statuses.write, later, NOW)  # it waits for this transaction

        assert storage.run(purge).result() == 1
    assert stored(storage, domain) == []


def test_a_row_that_another_domain_was_given_since_it_was_read_is_not_written(storage: Storage) -> None:
    first, second = storage.run(insert_domains, 2)
    pool_id = storage.read(default_pool_id)
    server = PoolServer(A, pool_id, 'fake', 'fake', ServerState.ACTIVE)
    storage.run(pool_servers.register, 'default', [server], False, False, NOW)
    written(storage, row(first))
    mine = [dataclasses.replace(each, version=2, attempts=1) for each in stored(storage, first)]
    assert storage.run(server_statuses.hand_over, first, second, pool_id, NOW) == 1
    assert storage.run(server_statuses.write, mine, NOW + SECOND) == 1
    assert [[each.attempts for each in stored(storage, key)] for key in (first, second)] == [[], [0]]


def test_rows_that_are_due_or_claimed_stay(storage: Storage) -> None:
    ids = storage.run(insert_domains, 4)
    written(storage, row(ids[0]), row(ids[1], next_attempt_at=NOW + MINUTE),
            row(ids[2], claimed_by='one', claimed_until=NOW + SECOND),
            row(ids[3], claimed_by='one', claimed_until=NOW - SECOND))
    assert storage.run(server_statuses.purge_domains, ids, [A, B], NOW) == 2
    assert [len(stored(storage, each)) for each in ids] == [0, 1, 1, 0]


def test_a_row_that_becomes_due_while_it_is_deleted_stays(storage: Storage, domain: str) -> None:
    written(storage, row(domain), row(domain, B))
    later = [dataclasses.replace(each, version=2, next_attempt_at=NOW) for each in stored(storage, domain)[:1]]
    with ThreadPoolExecutor(1) as pool:
        def restart(tx: Tx) -> Any:
            server_statuses.write(tx, later, NOW)
            return pool.submit(storage.run, server_statuses.purge_domains, [domain], [A, B], NOW)  # it waits for this

        assert storage.run(restart).result() == 1
    assert [each.server_id for each in stored(storage, domain)] == [A]


def test_of_two_rows_of_one_key_in_a_batch_the_newer_counts(storage: Storage, domain: str) -> None:
    written(storage, row(domain, version=3, attempts=3), row(domain, version=2, attempts=2))
    assert [each.attempts for each in stored(storage, domain)] == [3]


def test_an_error_is_cut_to_what_the_column_holds(storage: Storage, domain: str) -> None:
    written(storage, row(domain, last_error='ä' * 5000))
    assert stored(storage, domain)[0].last_error == 'ä' * 1024


def test_a_serial_beyond_32_bits_is_refused(storage: Storage, domain: str) -> None:
    for column in ('serial_number', 'expected_serial'):
        for number in (-1, 4294967296):
            with pytest.raises((sa.exc.IntegrityError, sa.exc.OperationalError), match=f'manager_status_{column}'):
                written(storage, row(domain, **{column: number}))


@pytest.mark.parametrize('wrong', ['\0', '\ud800'], ids=['nul', 'surrogate'])
def test_whatever_a_server_says_can_be_stored(storage: Storage, wrong: str) -> None:
    """One row that cannot be written would keep all rows of its batch from being written, each time."""
    ids = storage.run(insert_domains, 2)
    written(storage, row(ids[0], last_error=f'no {wrong} \U0001f600'), row(ids[1], last_error='no'))
    assert [stored(storage, each)[0].last_error for each in ids] == ['no ? \U0001f600', 'no']


def test_a_domain_that_was_removed_is_told(storage: Storage, domain: str) -> None:
    with pytest.raises(LostRace):
        written(storage, row(domain), row('0' * 32))
    assert stored(storage, domain) == []


def test_thousands_of_rows_at_once(storage: Storage) -> None:
    ids = storage.run(insert_domains, 1300)
    written(storage, *(row(each, server, action, next_attempt_at=NOW) for each in ids for server in (A, B)
                       for action in (Action.CREATE, Action.UPDATE)))
    with count_statements(storage) as statements:
        assert len(claim(storage, {A: 9999, B: 9999})) == 5200
    assert statements.total() == 3
    found = storage.read(server_statuses.for_domains, ids)
    assert {(each.claimed_by, each.version) for rows in found.values() for each in rows} == {('one', 2)}
    at_rest = [dataclasses.replace(each, version=3, next_attempt_at=None, claimed_by=None, claimed_until=None)
               for rows in found.values() for each in rows]
    written(storage, *at_rest)
    assert storage.run(server_statuses.purge_domains, ids, [A], NOW) == 2600
    assert storage.run(server_statuses.purge_domains, ids, [A, B], NOW) == 2600
    assert storage.run(server_statuses.purge_domains, ids, [A, B], NOW) == 0


def test_claiming_takes_the_oldest_first_up_to_the_room_of_each_server(storage: Storage) -> None:
    ids = storage.run(insert_domains, 5)
    written(storage, *(row(each, server, next_attempt_at=NOW - number * SECOND)
                       for number, each in enumerate(ids) for server in (A, B, C)))
    taken = claim(storage, {A: 2, B: 10, C: 0})
    assert [each.domain_id for each in taken if each.server_id == A] == [ids[4], ids[3]]
    assert [each.domain_id for each in taken if each.server_id == B] == ids[::-1]
    assert [each for each in taken if each.server_id == C] == []
    assert [each.next_attempt_at for each in taken] == sorted(each.next_attempt_at for each in taken)


def test_claimed_rows_are_returned_as_they_then_are(storage: Storage, domain: str) -> None:
    written(storage, row(domain, next_attempt_at=NOW, attempts=2), now=NOW - MINUTE)
    taken = claim(storage, {A: 1})
    assert taken == stored(storage, domain)
    assert (taken[0].claimed_by, taken[0].claimed_until, taken[0].version) == ('one', NOW + MINUTE, 2)
    assert (taken[0].created_at, taken[0].updated_at, taken[0].attempts) == (NOW - MINUTE, NOW, 2)


def test_what_is_not_due_is_not_claimed(storage: Storage) -> None:
    never, later = storage.run(insert_domains, 2)
    written(storage, row(never), row(later, next_attempt_at=NOW + SECOND))
    with count_statements(storage) as statements:
        assert claim(storage, {A: 10, B: 10}) == []
    assert statements.total() == 1
    assert claim(storage, {}) == []
    assert [each.domain_id for each in claim(storage, {A: 10}, now=NOW + SECOND)] == [later]


def test_a_claim_ends_by_itself(storage: Storage, domain: str) -> None:
    written(storage, row(domain, next_attempt_at=NOW))
    claim(storage, {A: 1}, by='one')
    assert claim(storage, {A: 1}, now=NOW + MINUTE, by='two') == []
    taken = claim(storage, {A: 1}, now=NOW + MINUTE + SECOND, by='two')
    assert [(each.claimed_by, each.version) for each in taken] == [('two', 3)]


def unclaimed(tx: Tx) -> int:
    """How many rows nobody has taken."""
    return int(tx.execute(sa.select(sa.func.count()).where(pool_manager_status.c.claimed_by.is_(None))).scalar_one())


def test_two_claimers_at_once_never_share_a_row(storage: Storage) -> None:
    ids = storage.run(insert_domains, 300)
    written(storage, *(row(each, server, next_attempt_at=NOW) for each in ids for server in (A, B)))
    start = threading.Barrier(4)

    def work(name: str) -> list[str]:
        start.wait(30)
        mine: list[str] = []
        for _ in range(600):
            taken = claim(storage, {A: 7, B: 7}, by=name)
            mine += [each.id for each in taken]
            if not taken and storage.read(unclaimed) == 0:
                break
        return mine

    with ThreadPoolExecutor(4) as pool:
        taken = [each for mine in pool.map(work, ['one', 'two', 'three', 'four']) for each in mine]
    assert len(taken) == len(set(taken)) == 600


@pytest.mark.parametrize('server', ['mariadb', 'postgresql'])
def test_a_row_that_is_being_claimed_is_passed_over_at_once(request: pytest.FixtureRequest, server: str) -> None:
    url = request.getfixturevalue(server).create_database()
    migrate.upgrade(url)
    storage = Storage(url)
    ids = storage.run(insert_domains, 4)
    written(storage, *(row(each, next_attempt_at=NOW + number * SECOND / 10) for number, each in enumerate(ids)))
    with storage.engine.begin() as first, storage.engine.begin() as second:
        mine = server_statuses.claim_due(first, {A: 2}, NOW + SECOND, 'one', NOW + MINUTE)
        others = server_statuses.claim_due(second, {A: 2}, NOW + SECOND, 'two', NOW + MINUTE)
    storage.close()
    assert [each.domain_id for each in mine] == ids[:2]
    assert [each.domain_id for each in others] == ids[2:]


def test_a_server_that_answers_again_has_its_rows_due_now(storage: Storage) -> None:
    waiting, done, claimed, expired = storage.run(insert_domains, 4)
    written(storage, row(done), row(waiting, next_attempt_at=NOW + MINUTE),
            row(waiting, B, next_attempt_at=NOW + MINUTE),
            row(claimed, next_attempt_at=NOW + MINUTE, claimed_by='one', claimed_until=NOW + MINUTE),
            row(expired, next_attempt_at=NOW + MINUTE, claimed_by='one', claimed_until=NOW - SECOND))
    assert storage.run(server_statuses.wake, A, NOW) == 2
    assert storage.run(server_statuses.wake, A, NOW) == 0
    assert {each.domain_id for each in claim(storage, {A: 10, B: 10})} == {waiting, expired}
    assert [each.next_attempt_at for each in stored(storage, waiting)] == [NOW, NOW + MINUTE]


def test_waking_outdates_what_was_read_before(storage: Storage, domain: str) -> None:
    written(storage, row(domain, next_attempt_at=NOW + MINUTE))
    read = stored(storage, domain)[0]
    storage.run(server_statuses.wake, A, NOW)
    written(storage, dataclasses.replace(read, version=read.version + 1, next_attempt_at=NOW + 2 * MINUTE))
    assert stored(storage, domain)[0].next_attempt_at == NOW


def test_where_more_is_due_than_there_is_room_for_some_of_the_newest_is_claimed(storage: Storage) -> None:
    ids = storage.run(insert_domains, 8)
    written(storage, *(row(each, next_attempt_at=NOW - MINUTE + number * SECOND) for number, each in enumerate(ids)))
    assert [each.domain_id for each in claim(storage, {A: 4}, by='one')] == [*ids[:3], ids[7]]
    assert [each.domain_id for each in claim(storage, {A: 100}, by='two')] == ids[3:7], 'each of them once'


def test_claims_are_renewed_by_who_has_them_and_not_once_they_ran_out(storage: Storage) -> None:
    ids = storage.run(insert_domains, 3)
    written(storage, *(row(each, next_attempt_at=NOW) for each in ids))
    mine = sorted(claim(storage, {A: 2}), key=lambda each: each.domain_id)
    claim(storage, {A: 1}, by='two')
    rows = [stored(storage, each)[0] for each in ids]
    kept = storage.run(server_statuses.renew_claims, rows, 'one', NOW + SECOND, NOW + 2 * MINUTE)
    assert {each.domain_id for each in kept} == {each.domain_id for each in mine}
    assert kept == [stored(storage, each.domain_id)[0] for each in kept]
    assert {(each.claimed_until, each.version) for each in kept} == {(NOW + 2 * MINUTE, 3)}
    assert storage.run(server_statuses.renew_claims, rows, 'one', NOW + 3 * MINUTE, NOW + 4 * MINUTE) == []


def test_names_are_claimed_with_rows_and_without(storage: Storage, domain: str) -> None:
    name, stranger = f'{domain}.example.com.', 'stranger.example.'
    held = row(domain, claimed_by='two', claimed_until=NOW + MINUTE)
    written(storage, held, row(domain, B))
    assert storage.run(server_statuses.claim_names, A, [stranger, name], 'one', NOW, NOW + SECOND) == {stranger, name}
    assert storage.run(server_statuses.claim_names, A, [stranger], 'two', NOW, NOW + MINUTE) == set()
    assert storage.run(server_statuses.claim_names, B, [stranger], 'one', NOW, NOW + MINUTE) == {stranger}
    found = storage.read(server_statuses.claimed_on_names, [name, stranger, 'another.example.'], NOW)
    assert {(each.name, each.server_id, each.going, each.row and each.row.id) for each in found} == {
        (name, A, False, held.id), (name, A, False, None), (stranger, A, False, None), (stranger, B, False, None)}
    storage.run(server_statuses.release_names, A, [name], 'two', NOW + SECOND)
    storage.run(server_statuses.release_names, A, [name], 'one', NOW + MINUTE)
    assert storage.read(server_statuses.claimed_on_names, [name], NOW) == [each for each in found if each.name == name]
    storage.run(server_statuses.release_names, A, [name], 'one', NOW + SECOND)
    assert [each.row and each.row.id
            for each in storage.read(server_statuses.claimed_on_names, [name], NOW)] == [held.id]


def test_a_claim_on_a_name_ends_by_itself(storage: Storage) -> None:
    storage.run(server_statuses.claim_names, A, ['a.example.', 'b.example.'], 'one', NOW, NOW + SECOND)
    assert storage.read(server_statuses.claimed_on_names, ['a.example.'], NOW + SECOND) == []
    claimed = storage.run(server_statuses.claim_names, A, ['a.example.'], 'two', NOW + SECOND, NOW + MINUTE)
    assert claimed == {'a.example.'}
    assert storage.read(lambda tx: tx.execute(sa.select(name_claims.c.name)).scalars().all()) == ['a.example.']


def test_of_two_who_claim_a_name_at_once_one_does(storage: Storage) -> None:
    def claimed(by: str) -> set[str]:
        try:
            return storage.run(server_statuses.claim_names, A, ['a.example.'], by, NOW, NOW + MINUTE)
        except LostRace:
            return set()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(claimed, map(str, range(8))))
    assert sorted(map(len, found)) == [0] * 7 + [1]


def test_who_is_being_polled_for_is_known(storage: Storage) -> None:
    ids = storage.run(insert_domains, 4)
    written(storage, row(ids[0], deadline_at=NOW + MINUTE), row(ids[1], deadline_at=NOW - MINUTE), row(ids[2]),
            row(ids[3], B, deadline_at=NOW + MINUTE))
    assert storage.read(server_statuses.being_polled, A, ids, NOW) == {ids[0]}


def test_when_the_next_row_is_due_is_known(storage: Storage) -> None:
    ids = storage.run(insert_domains, 4)
    assert storage.read(server_statuses.next_due, [A, B], NOW) is None
    written(storage, row(ids[0], next_attempt_at=NOW), row(ids[1], next_attempt_at=NOW + MINUTE), row(ids[2]),
            row(ids[3], B, next_attempt_at=NOW + SECOND))
    assert storage.read(server_statuses.next_due, [A, B], NOW) == NOW + SECOND
    assert storage.read(server_statuses.next_due, [A], NOW) == NOW + MINUTE


def test_a_manager_that_stops_gives_back_what_it_claimed(storage: Storage) -> None:
    ids = storage.run(insert_domains, 3)
    written(storage, *(row(each, next_attempt_at=NOW - MINUTE + number * SECOND) for number, each in enumerate(ids)))
    claim(storage, {A: 2}, by='one')
    claim(storage, {A: 1}, by='two')
    assert storage.run(server_statuses.release, 'one', (A, B)) == 2
    assert storage.run(server_statuses.release, 'one', (A, B)) == 0
    assert [each.domain_id for each in claim(storage, {A: 10}, by='three')] == ids[:2]


def test_claims_are_released_row_by_row_and_only_while_they_are_the_same(storage: Storage) -> None:
    ids = storage.run(insert_domains, 4)
    written(storage, *(row(each, next_attempt_at=NOW - MINUTE + number * SECOND) for number, each in enumerate(ids)))
    mine = claim(storage, {A: 3}, by='one')
    renewed = storage.run(server_statuses.renew_claims, mine[2:], 'one', NOW, NOW + 2 * MINUTE)
    storage.run(server_statuses.wake_domain, A, ids[1], NOW - 2 * MINUTE)  # a newer version, and the same claim
    assert storage.run(server_statuses.release_claims, mine) == 2
    assert storage.run(server_statuses.release_claims, mine) == 0
    assert {each.domain_id for each in claim(storage, {A: 10}, by='two')} == {ids[0], ids[1], ids[3]}
    assert storage.run(server_statuses.release_claims, renewed) == 1
