"""The servers of the pools, on each of the databases."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
import sqlalchemy as sa

from designate_pool.errors import InvalidField, UnknownPool
from designate_pool.model import Action, Outcome, Pool, PoolServer, Reloaded, ServerState, ServerStatus, new_id
from designate_pool.storage.operations import pool_servers, server_statuses
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import pools
from testing.rows import default_pool_id, insert_domains
from testing.zones import insert_zone

NOW = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
MINUTE = timedelta(minutes=1)
A, B, C = (letter * 32 for letter in 'abc')


def section(key: str, position: int = 0, fingerprint: str = 'f', driver: str = 'fake') -> PoolServer:
    return PoolServer(key, '', f'{driver}:{key[0]}', driver, ServerState.ACTIVE, fingerprint, position)


def register(storage: Storage, *sections: PoolServer, pool: str = 'default', delete_zones: bool = False,
             on_command: bool = False, now: datetime = NOW) -> Reloaded:
    return storage.run(pool_servers.register, pool, sections, delete_zones, on_command, now)


def roll(storage: Storage, pool: str = 'default') -> pool_servers.RegisteredServers:
    return storage.read(pool_servers.of_pool, pool)


def states(storage: Storage) -> dict[str, ServerState]:
    return {each.id: each.state for each in roll(storage).servers}


def change(storage: Storage, key: str, **values: object) -> None:
    server = storage.read(pool_servers.SERVERS.get, key)
    assert server is not None
    assert storage.run(pool_servers.save, dataclasses.replace(server, **values), NOW)  # type: ignore[arg-type]


def test_the_order_is_that_of_the_configuration(storage: Storage) -> None:
    assert register(storage, section(C, 0), section(A, 1), section(B, 2)).joined == ('fake:c', 'fake:a', 'fake:b')
    assert [each.id for each in roll(storage).servers] == [C, A, B]
    assert register(storage, section(A, 0), section(B, 1), section(C, 2)) == Reloaded()
    assert [each.id for each in roll(storage).servers] == [A, B, C]


def test_every_column_comes_back_as_it_was_written(storage: Storage) -> None:
    register(storage, section(A))
    full = PoolServer(A, storage.read(default_pool_id), 'ns1, näm', 'fake', ServerState.MAINTENANCE, 'f' * 64, 3,
                      'd' * 32, 17, NOW, NOW, True, True, 5, 'a note', 'manager', NOW, 1, NOW, NOW)
    assert storage.run(pool_servers.save, full, NOW)
    assert storage.read(pool_servers.SERVERS.get, A) == dataclasses.replace(full, version=2)


def test_only_a_command_has_everybody_read_the_configuration_again(storage: Storage) -> None:
    register(storage, section(A))
    seen = roll(storage).reloads
    register(storage, section(A))
    assert roll(storage).reloads == seen
    register(storage, section(A), on_command=True)
    assert roll(storage).reloads == seen + 1


def test_the_changes_of_a_dropped_server_are_not_made_up_for_by_others(storage: Storage) -> None:
    def changes() -> int:
        return storage.read(lambda tx: int(tx.execute(sa.select(pool_servers.changes('default'))).scalar_one()))

    def drop(key: str) -> range:
        """Drop a server; as many as its changes were."""
        change(storage, key, state=ServerState.REMOVED)
        seen.append(changes())
        server = storage.read(pool_servers.SERVERS.get, key)
        assert server is not None
        storage.run(pool_servers.forget, key)
        return range(server.version)

    register(storage, section(A), section(B), on_command=True)
    seen: list[int] = []
    for number in drop(A):
        change(storage, B, note=f'change {number}')
    seen.append(changes())
    for _ in drop(B):
        register(storage, on_command=True)
    seen.append(changes())
    assert len(set(seen)) == len(seen) == 4


def test_later_servers_of_a_pool_with_domains_join(storage: Storage) -> None:
    register(storage, section(A))
    storage.run(insert_domains, 1)
    register(storage, section(A), section(B))
    assert states(storage) == {A: ServerState.ACTIVE, B: ServerState.JOINING}
    assert [each.filled_to for each in roll(storage).servers] == [None, '']


def test_the_servers_of_a_pool_that_had_domains_before_it_had_rows_are_active(storage: Storage) -> None:
    storage.run(insert_domains, 1)
    register(storage, section(A), section(B))
    assert set(states(storage).values()) == {ServerState.ACTIVE}


def test_a_section_goes_drains_is_removed_and_comes_back(storage: Storage) -> None:
    storage.run(insert_domains, 1)
    register(storage, section(A), section(B))
    assert register(storage, section(A), delete_zones=True) == Reloaded(draining=('fake:b',))
    assert register(storage, section(A)) == Reloaded(), 'told once'
    assert storage.read(pool_servers.SERVERS.get, B).delete_zones  # type: ignore[union-attr]
    assert register(storage, section(A), section(B)) == Reloaded(joined=('fake:b',))
    assert not storage.read(pool_servers.SERVERS.get, B).delete_zones  # type: ignore[union-attr]
    register(storage, section(A))
    change(storage, B, state=ServerState.REMOVED, state_since=NOW)
    register(storage, section(A))
    assert states(storage)[B] is ServerState.REMOVED, 'a pool manager may not have seen it yet'
    register(storage, section(A), now=NOW + pool_servers.KEPT)
    assert states(storage) == {A: ServerState.ACTIVE}


def test_another_fingerprint_is_filled_anew(storage: Storage) -> None:
    storage.run(insert_domains, 1)
    register(storage, section(A))
    assert register(storage, section(A, fingerprint='g')) == Reloaded(changed=('fake:a',))
    server = storage.read(pool_servers.SERVERS.get, A)
    assert server is not None
    assert (server.state, server.filled_to) == (ServerState.ACTIVE, '')
    assert register(storage, section(A, fingerprint='g')) == Reloaded()


def test_a_server_at_another_place_joins_anew(storage: Storage) -> None:
    storage.run(insert_domains, 1)
    register(storage, section(A), section(B))
    change(storage, B, state=ServerState.MAINTENANCE)
    register(storage, section(A, fingerprint='g', driver='other'), section(B, fingerprint='g', driver='other'))
    assert states(storage) == {A: ServerState.JOINING, B: ServerState.MAINTENANCE}
    assert [(each.filled_to, each.joined_at) for each in roll(storage).servers] == [('', None)] * 2


def test_a_dismissed_server_stays_out_while_its_section_is_there(storage: Storage) -> None:
    register(storage, section(A), section(B))
    change(storage, B, state=ServerState.REMOVED, dismissed=True)
    assert register(storage, section(A), section(B, fingerprint='g')) == Reloaded()
    assert states(storage)[B] is ServerState.REMOVED
    register(storage, section(A))
    assert register(storage, section(A), section(B)) == Reloaded(joined=('fake:b',)), 'its section has come back'
    change(storage, B, state=ServerState.REMOVED, dismissed=True)
    register(storage, section(A), now=NOW + pool_servers.KEPT)
    assert B not in states(storage)


def test_a_server_of_another_pool_is_refused(storage: Storage) -> None:
    register(storage, section(A))
    storage.run(pools.insert, Pool('other', new_id()), NOW)
    with pytest.raises(InvalidField, match='it belongs to the pool default as fake:a'):
        register(storage, section(A), pool='other')
    assert roll(storage, 'other').servers == ()
    change(storage, A, state=ServerState.REMOVED, state_since=NOW)
    with pytest.raises(InvalidField):
        register(storage, section(A), pool='other')
    change(storage, A, dismissed=True)
    with pytest.raises(InvalidField):  # its section is still there
        register(storage, section(A), pool='other', now=NOW + pool_servers.KEPT)
    change(storage, A, dismissed=False)
    assert register(storage, section(A), pool='other', now=NOW + pool_servers.KEPT) == Reloaded(joined=('fake:a',))
    assert states(storage) == {}, 'it has left its former pool'


def test_a_pool_is_made_by_its_first_servers_in_a_database_that_was_not_used(storage: Storage) -> None:
    register(storage, section(B), pool='other')
    assert [each.id for each in roll(storage, 'other').servers] == [B]
    with pytest.raises(UnknownPool, match='pool_name is ohter: no such pool .there are: default, other.; correct it, '
                                          'or .designate-pool-manage pool create ohter'):
        register(storage, section(C), pool='ohter')
    assert roll(storage, 'ohter') == pool_servers.RegisteredServers()


def test_a_pool_is_not_made_where_there_are_domains(storage: Storage) -> None:
    storage.run(insert_zone)
    with pytest.raises(UnknownPool):
        register(storage, section(B), pool='other')


def test_registered_by_many_at_once_it_is_registered_once(storage: Storage) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: register(storage, section(A), section(B)), range(8)))
    assert sorted(len(each.joined) for each in done) == [0] * 7 + [2]


def test_of_two_writers_one_comes_too_late(storage: Storage) -> None:
    register(storage, section(A))
    server = storage.read(pool_servers.SERVERS.get, A)
    assert server is not None
    assert storage.run(pool_servers.save, dataclasses.replace(server, note='first'), NOW)
    assert not storage.run(pool_servers.save, dataclasses.replace(server, note='second'), NOW)
    assert storage.read(pool_servers.SERVERS.get, A).note == 'first'  # type: ignore[union-attr]


def test_one_at_a_time_fills_a_server(storage: Storage) -> None:
    register(storage, section(A))
    server = storage.read(pool_servers.SERVERS.get, A)
    assert server is not None
    mine = storage.run(pool_servers.claim, server, 'one', NOW, NOW + MINUTE)
    assert mine is not None
    assert storage.run(pool_servers.claim, mine, 'two', NOW, NOW + MINUTE) is None
    again = storage.run(pool_servers.claim, mine, 'one', NOW, NOW + MINUTE)
    assert again is not None
    assert storage.run(pool_servers.claim, again, 'two', NOW + MINUTE, NOW + 2 * MINUTE) is not None
    assert not storage.run(pool_servers.save, again, NOW), 'whoever lost its claim writes nothing'


def test_what_waits_on_a_server_is_counted_and_told(storage: Storage) -> None:
    register(storage, section(A), section(B))
    ids = storage.run(insert_domains, 5)
    rows = [ServerStatus(A, key, Action.CREATE, 1, version=1, next_attempt_at=NOW + number * MINUTE)
            for number, key in enumerate(ids)]
    rows[0] = dataclasses.replace(rows[0], next_attempt_at=None, status=Outcome.SUCCESS)
    rows[1] = dataclasses.replace(rows[1], status=Outcome.ERROR, last_error='no', claimed_until=NOW + MINUTE)
    rows[2] = dataclasses.replace(rows[2], deadline_at=NOW + MINUTE)
    rows[3] = dataclasses.replace(rows[3], deadline_at=NOW - MINUTE)
    storage.run(server_statuses.write, rows, NOW)
    assert storage.read(pool_servers.waiting, A) == 4
    assert storage.read(pool_servers.waiting, A, 3) == 3
    assert storage.read(pool_servers.waiting, B) == 0
    assert storage.read(pool_servers.any_claimed, A, ids, NOW)
    assert not storage.read(pool_servers.any_claimed, A, ids, NOW + MINUTE)
    assert not storage.read(pool_servers.any_claimed, A, [ids[0], *ids[2:]], NOW)
    assert not storage.read(pool_servers.any_claimed, B, ids, NOW)
    server = storage.read(pool_servers.SERVERS.get, A)
    assert server is not None
    report = storage.read(pool_servers.report, server, 5, NOW, True)
    assert (report.rows, report.waiting, report.failing, report.in_hand) == (5, 4, 1, 2)
    assert report.oldest == NOW + MINUTE
    assert report.failures == ((f'{ids[1]}.example.com.', 'CREATE', 'no'),)
    assert storage.read(pool_servers.report, server, 5, NOW).rows is None
    assert storage.read(pool_servers.count_domains, storage.read(default_pool_id)) == 5


def test_a_draining_servers_rows_go_page_by_page(storage: Storage) -> None:
    register(storage, section(A), section(B))
    ids = storage.run(insert_domains, 5)
    storage.run(server_statuses.write,
                [ServerStatus(key, domain, action, 1, version=1) for key in (A, B) for domain in ids
                 for action in (Action.CREATE, Action.UPDATE)], NOW)
    page = storage.read(pool_servers.domains_on, A, 3)
    assert page == ids[:3]
    assert storage.run(pool_servers.purge, A, page) == 6
    assert storage.read(pool_servers.domains_on, A, 3) == ids[3:]
    assert len(storage.read(pool_servers.domains_on, B, 10)) == 5
    name = f'{ids[4]}.example.com.'
    assert storage.read(pool_servers.names_on, A, [name, 'never.example.com.', f'{ids[0]}.example.com.']) == {name}
