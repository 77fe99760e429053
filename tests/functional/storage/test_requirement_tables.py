"""The tables of the specifications as each database has them: columns, what may be NULL, defaults, words, keys."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool.model import new_id
from designate_pool.storage.sql.database import Storage, make_engine
from tests.functional.storage.test_migrations import (LIVE, LIVE_SET, POOL, THEN, Database, insert_domain,
                                                      insert_recordset, with_pool)

REFUSED = (sa.exc.IntegrityError, sa.exc.OperationalError, sa.exc.DataError)


def text(length: int) -> Callable[[Any], bool]:
    return lambda kind: isinstance(kind, sa.String) and kind.length == length


def word(kind: Any) -> bool:
    """One of a few; which, the tests below say."""
    return isinstance(kind, sa.String)


def time(kind: Any) -> bool:
    return isinstance(kind, sa.DateTime)


def number(kind: Any) -> bool:
    return isinstance(kind, sa.Integer)


def serial(kind: Any) -> bool:
    """All 32 bits of it, for which a signed INT is too small."""
    return isinstance(kind, sa.BigInteger)


#: Of each column: its type, whether it may be NULL, its default.
COLUMNS: dict[str, dict[str, tuple[Callable[[Any], bool], bool, str | None]]] = {
    'pool_manager_status': {
        'id': (text(32), False, None), 'created_at': (time, False, None), 'updated_at': (time, False, None),
        'server_id': (text(32), False, None), 'domain_id': (text(32), False, None), 'action': (word, False, None),
        'status': (word, True, None), 'serial_number': (serial, True, None)},
    'domains': {
        'pool_id': (text(32), False, None), 'status': (word, False, 'PENDING'), 'action': (word, False, 'CREATE'),
        'serial': (serial, False, None)},
    'records': {
        'serial_number': (serial, False, None), 'task': (word, False, 'ADD'), 'status': (word, False, 'PENDING')},
    'pools': {
        'id': (text(32), False, None), 'created_at': (time, False, None), 'updated_at': (time, False, None),
        'version': (number, False, '1'), 'name': (text(50), False, None), 'description': (text(255), True, None),
        'project_id': (text(36), True, None), 'provisioner': (word, False, 'unmanaged')},
    'pool_attributes': {
        'id': (text(32), False, None), 'key': (text(255), False, None), 'value': (text(255), False, None),
        'pool_id': (text(32), False, None)},
}


@pytest.fixture
def database(emptied_database: Storage) -> Iterator[Database]:
    """With a pool, a domain and a recordset."""
    with with_pool(emptied_database) as database:
        insert_domain(database, LIVE, 'example.com.')
        insert_recordset(database, LIVE_SET, LIVE)
        yield database


def insert_status(database: Database, **values: Any) -> None:
    database.insert('pool_manager_status', **{
        'id': new_id(), 'created_at': THEN, 'updated_at': THEN, 'server_id': new_id(), 'domain_id': LIVE,
        'action': 'CREATE', 'expected_serial': 1, **values})


def taken(insert: Callable[[Any], None], values: Iterable[Any]) -> list[Any]:
    """Those of *values* that the database takes."""
    found = []
    for value in values:
        try:
            insert(value)
        except REFUSED:
            continue
        found.append(value)
    return found


def test_the_columns_are_there(database: Database) -> None:
    engine = make_engine(database.url)
    inspector = sa.inspect(engine)
    for table, columns in COLUMNS.items():
        found = {column['name']: column for column in inspector.get_columns(table)}
        for name, (kind, nullable, default) in columns.items():
            column = found[name]
            assert kind(column['type']) and column['nullable'] is nullable, (table, name, column)
            said = str(column['default']).partition('::')[0].strip("'")
            assert said == str(default) or default is None and said == 'NULL', (table, name, column)
        assert inspector.get_pk_constraint(table)['constrained_columns'] == ['id'], table
    engine.dispose()


def test_the_words_of_a_row_of_pool_manager_status(database: Database) -> None:
    words = ['CREATE', 'UPDATE', 'DELETE', 'NONE', 'ADD', '', None]
    assert taken(lambda each: insert_status(database, action=each), words) == ['CREATE', 'UPDATE', 'DELETE']
    words = ['SUCCESS', 'ERROR', None, 'PENDING', 'ACTIVE', '']
    assert taken(lambda each: insert_status(database, status=each), words) == ['SUCCESS', 'ERROR', None]


def test_a_row_of_pool_manager_status_is_of_a_domain_and_there_once(database: Database) -> None:
    key, server = new_id(), new_id()
    insert_status(database, id=key, server_id=server)
    insert_status(database, server_id=server, action='UPDATE')
    for again in ({'id': key}, {'server_id': server}, {'domain_id': '0' * 32}, {'updated_at': None}):
        with pytest.raises(REFUSED):
            insert_status(database, **again)
    assert len(database.rows('pool_manager_status', 'id')) == 2


def test_the_words_of_a_domain(database: Database) -> None:
    numbers = itertools.count()

    def insert(status: str | None) -> None:
        insert_domain(database, new_id(), f'd{next(numbers)}.example.', status=status)

    words = ['ACTIVE', 'PENDING', 'DELETED', 'ERROR', 'SUCCESS', 'DELETE_PENDING', '', None]
    assert taken(insert, words) == ['ACTIVE', 'PENDING', 'DELETED', 'ERROR']


def test_a_domain_is_in_one_pool_and_a_pool_has_many_domains(database: Database) -> None:
    insert_domain(database, new_id(), 'example.org.')
    assert database.rows('domains', 'pool_id') == [(POOL,), (POOL,)]
    for pool_id in ('0' * 32, None):
        with pytest.raises(REFUSED):
            insert_domain(database, new_id(), 'example.net.', pool_id=pool_id)


def test_a_pool_has_a_name_of_its_own_and_is_provisioned_by_hand(database: Database) -> None:
    def insert(**values: Any) -> None:
        database.insert('pools', **{'id': new_id(), 'created_at': THEN, 'updated_at': THEN, **values})

    assert taken(lambda each: insert(name=f'as {each}', provisioner=each),
                 ['unmanaged', 'managed', 'puppet', None]) == ['unmanaged']
    assert taken(lambda each: insert(name=each), ['second', 'third', 'third']) == ['third']


def test_an_attribute_is_of_a_pool(database: Database) -> None:
    def insert(pool_id: str | None) -> None:
        database.insert('pool_attributes', id=new_id(), created_at=THEN, updated_at=THEN, key='name_server',
                        value='ns1.example.net.', pool_id=pool_id)

    assert taken(insert, [POOL, POOL, '0' * 32, None]) == [POOL, POOL]
