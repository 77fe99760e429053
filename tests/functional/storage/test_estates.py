"""What dead domains own on servers that are fed by records, on each database.

The rows are as versions left them that noted nothing as a domain was deleted.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool.central.purger import Purger, Retention
from designate_pool.model import utcnow
from designate_pool.storage.operations import rrset_ownership
from designate_pool.storage.sql import migrate, schema
from designate_pool.storage.sql.database import Storage, Tx
from testing.processes import wait_until
from tests.fixtures.central import Clock

POOL, OTHER_POOL, A, B, C = (letter * 32 for letter in 'fedab')
ONE, TWO = '1' * 32, '2' * 32
NS, MX, OLD, WWW = (f'{name}example.com.\t{rtype}' for name, rtype in (
    ('', 'NS'), ('', 'MX'), ('old.', 'A'), ('www.', 'A')))


@pytest.fixture
def older(empty_database_url: str) -> Iterator[Storage]:
    """A database of a version that noted nothing as a domain was deleted."""
    migrate.upgrade(empty_database_url, '0009')
    storage = Storage(empty_database_url)
    insert(storage, 'pools', {'id': POOL, 'name': 'older', **times()}, {'id': OTHER_POOL, 'name': 'other', **times()})
    yield storage
    storage.close()


def times() -> dict[str, Any]:
    now = utcnow().replace(tzinfo=None)
    return {'created_at': now, 'updated_at': now}


def insert(storage: Storage, table: str, *rows: dict[str, Any]) -> None:
    """Rows in a table as it is at the database's revision."""
    def work(tx: Tx) -> None:
        tx.execute(sa.Table(table, sa.MetaData(), autoload_with=tx, resolve_fks=False).insert(), list(rows))
    storage.run(work)


def domain(storage: Storage, key: str, generation: int, status: str, name: str = 'example.com.',
           pool: str = POOL) -> None:
    insert(storage, 'domains', {
        'id': key, 'pool_id': pool, 'name': name, 'email': 'hostmaster@example.com', 'ttl': 3600, 'refresh': 3600,
        'retry': 600, 'expire': 86400, 'minimum': 300, 'serial': generation, 'generation': generation,
        'action': 'NONE', 'status': status, 'deleted': key if status == 'DELETED' else '0', **times()})


def own(storage: Storage, server: str, domain: str, *keys: str) -> None:
    insert(storage, 'owned_rrsets', *({'server_id': server, 'domain_id': domain, 'name': name, 'type': rtype}
                                      for name, rtype in (key.split('\t') for key in keys)))


def upgraded(storage: Storage) -> Purger:
    migrate.upgrade(storage.engine.url.render_as_string(hide_password=False))
    return Purger(storage, Retention(1000), Clock())


def settled(storage: Storage) -> dict[tuple[str, str], set[str]]:
    """What is owned by server and domain after the upgrade."""
    upgraded(storage).reassign_ownership()
    found: dict[tuple[str, str], set[str]] = {}
    for server, key, name, rtype in storage.read(lambda tx: tx.execute(sa.select(schema.owned_rrsets)).all()):
        found.setdefault((server, key), set()).add(f'{name}\t{rtype}')
    return found


def test_a_server_that_was_not_told_of_the_deletion(older: Storage) -> None:
    """The heir made there only what was not there."""
    domain(older, C, 1, 'DELETED')
    domain(older, A, 2, 'DELETED')
    domain(older, B, 3, 'ACTIVE')
    own(older, ONE, C, NS, OLD)
    own(older, ONE, A, WWW)
    own(older, ONE, B, MX)
    assert settled(older) == {(ONE, B): {NS, OLD, WWW, MX}}


def test_a_server_where_all_was_deleted_meanwhile(older: Storage) -> None:
    """What the heir has not made anew is not there any more, and somebody else may have made it since."""
    domain(older, A, 1, 'DELETED')
    domain(older, B, 2, 'ACTIVE')
    own(older, ONE, A, NS, OLD, WWW)
    own(older, ONE, B, WWW)
    own(older, TWO, A, OLD, WWW)
    assert settled(older) == {(ONE, B): {NS, WWW}, (TWO, B): {OLD, WWW}}


def test_what_was_gone_before_the_last_but_one_is_not_taken_for_what_the_last_has(older: Storage) -> None:
    domain(older, A, 1, 'DELETED')
    domain(older, C, 2, 'DELETED')
    domain(older, B, 3, 'ERROR')
    own(older, ONE, A, OLD, WWW)
    own(older, ONE, C, WWW, MX)
    assert settled(older) == {(ONE, B): {WWW, MX}}


def test_a_name_that_was_not_made_anew(older: Storage) -> None:
    """The zone's own NS records outlast its deletion where others made the zone."""
    domain(older, A, 1, 'DELETED')
    own(older, ONE, A, NS, OLD)
    domain(older, B, 2, 'ACTIVE', pool=OTHER_POOL)
    own(older, TWO, B, MX)
    assert settled(older) == {(ONE, A): {NS}, (TWO, B): {MX}}


def test_a_deletion_that_is_not_confirmed_yet_needs_all_of_it(older: Storage) -> None:
    domain(older, A, 1, 'DELETED')
    own(older, ONE, A, NS, OLD)
    insert(older, 'pool_manager_status', {'id': C, 'server_id': ONE, 'domain_id': A, 'action': 'DELETE',
                                          'expected_serial': 1, **times()})
    assert settled(older) == {(ONE, A): {NS, OLD}}


@pytest.mark.parametrize('was_deleted', [False, True])
def test_many_are_settled_a_few_at_a_time(older: Storage, was_deleted: bool) -> None:
    """Interrupted after every transaction, it goes on as it began."""
    domain(older, A, 1, 'DELETED')
    domain(older, B, 2, 'ACTIVE')
    keys = [f'h{number}.example.com.\tA' for number in range(2000)]
    own(older, ONE, A, NS, *keys)
    own(older, ONE, B, MX, *keys[:700] if was_deleted else [])
    upgraded(older)
    while estates := older.read(rrset_ownership.leftovers, A):
        (estate,) = estates
        assert estate.was_deleted is was_deleted
        assert 0 < older.run(rrset_ownership.resolve, estate, 500) <= 500
    assert older.read(rrset_ownership.keys, ONE, A) == frozenset()
    assert older.read(rrset_ownership.keys, ONE, B) == {NS, MX, *(keys[:700] if was_deleted else keys)}


def test_central_does_so_as_it_starts(older: Storage) -> None:
    domain(older, A, 1, 'DELETED')
    domain(older, B, 2, 'ACTIVE')
    own(older, ONE, A, OLD)
    keeper = upgraded(older)
    running = threading.Thread(target=keeper.loop)
    running.start()
    try:
        wait_until(lambda: older.read(rrset_ownership.keys, ONE, B) == {OLD}, 'the heir owns it')
    finally:
        keeper.stop()
        running.join(30)
