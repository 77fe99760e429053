"""Transactions on SQLite, and which errors pass."""

from __future__ import annotations

import pathlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg2
import pymysql
import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool import errors
from designate_pool.storage.sql import entities
from designate_pool.storage.sql.database import Storage, Tx, is_elsewhere, is_transient, make_engine


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    return f'sqlite:///{tmp_path}/database.sqlite'


@pytest.fixture
def storage(url: str) -> Iterator[Storage]:
    storage = Storage(url, patience=5)
    storage.run(lambda tx: tx.exec_driver_sql('CREATE TABLE t (n INTEGER PRIMARY KEY)').close())
    yield storage
    storage.close()


def add(tx: Tx, number: int) -> int:
    tx.execute(sa.text('INSERT INTO t VALUES (:n)'), {'n': number})
    return number


def numbers(tx: Tx) -> list[int]:
    return list(tx.execute(sa.text('SELECT n FROM t ORDER BY n')).scalars())


def test_a_transaction_that_fails_leaves_nothing(storage: Storage) -> None:
    def work(tx: Tx) -> None:
        add(tx, 1)
        raise KeyError('no')

    with pytest.raises(KeyError):
        storage.run(work)
    assert storage.read(numbers) == []


def test_what_a_read_writes_is_rolled_back(storage: Storage) -> None:
    storage.read(add, 1)
    assert storage.read(numbers) == []


def test_the_pragmas_hold_on_every_connection(storage: Storage) -> None:
    def pragmas(tx: Tx) -> list[Any]:
        return [tx.exec_driver_sql(f'PRAGMA {name}').scalar_one()
                for name in ('journal_mode', 'synchronous', 'foreign_keys', 'busy_timeout')]

    def nested(tx: Tx) -> list[list[Any]]:
        return [pragmas(tx), storage.read(pragmas)]

    assert storage.read(nested) == [['wal', 2, 1, 5000]] * 2


def test_reading_goes_on_while_another_process_writes(storage: Storage, url: str) -> None:
    other = Storage(url)
    storage.run(add, 1)
    with other.engine.begin() as writer:
        add(writer, 2)
        began = time.monotonic()
        assert storage.read(numbers) == [1]
        assert time.monotonic() - began < 4, 'it has waited for the lock, which SQLite does for five seconds'
    assert storage.read(numbers) == [1, 2]
    other.close()


def test_a_write_transaction_has_the_write_lock_from_its_beginning(storage: Storage, url: str) -> None:
    other = Storage(url, patience=0.1)
    sa.event.listen(other.engine, 'connect', lambda connection, record: connection.execute('PRAGMA busy_timeout=10'))
    with storage.engine.begin():
        with pytest.raises(errors.ServiceUnavailable):
            other.run(numbers)
    assert other.run(numbers) == []
    other.close()


@pytest.mark.all_databases
def test_a_writer_waits_for_the_one_of_another_process(storage: Storage, url: str) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        other = Storage(url)

        def work(tx: Tx) -> None:
            entered.set()
            assert leave.wait(10)
            add(tx, 1)

        other.run(work)
        other.close()

    with ThreadPoolExecutor(2) as pool:
        holder = pool.submit(hold)
        assert entered.wait(10)
        waiter = pool.submit(storage.run, add, 2)
        assert not waiter.done()
        leave.set()
        holder.result(10)
        assert waiter.result(10) == 2
    assert storage.read(numbers) == [1, 2]


@pytest.mark.all_databases
def test_many_threads_write_and_read(storage: Storage) -> None:
    def work(thread: int) -> int:
        for number in range(20):
            storage.run(add, thread * 100 + number)
        return len(storage.read(numbers))

    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(work, range(8))) == 160


def test_a_transaction_is_run_again_after_an_error_that_passes(storage: Storage) -> None:
    tries = []

    def work(tx: Tx) -> list[int]:
        add(tx, len(tries))
        tries.append(1)
        if len(tries) < 3:
            raise exc.OperationalError('INSERT', {}, busy())
        return numbers(tx)

    assert storage.run(work) == [2]


@pytest.mark.parametrize('verb', ['run', 'read'])
def test_patience_ends(url: str, verb: str) -> None:
    storage = Storage(url, patience=0.3)
    tries = []

    def work(tx: Tx) -> None:
        tries.append(time.monotonic())
        raise exc.OperationalError('SELECT', {}, busy())

    began = time.monotonic()
    with pytest.raises(errors.ServiceUnavailable):
        getattr(storage, verb)(work)
    assert time.monotonic() - began < 8, 'it has waited for longer, as it does by itself'
    assert len(tries) > 2
    storage.close()


@pytest.mark.parametrize('verb', ['run', 'try_once', 'read', 'stream'])
def test_connections_that_are_all_in_use_are_a_database_that_does_not_answer(url: str, verb: str) -> None:
    storage = Storage(url, pool_size=1, patience=0.2)
    storage.run(lambda tx: tx.exec_driver_sql('CREATE TABLE t (n INTEGER PRIMARY KEY)').close())
    with storage.engine.connect(), pytest.raises(errors.ServiceUnavailable, match='all connections'):
        getattr(storage, verb)(numbers)
    assert storage.run(add, 1) == 1
    storage.close()


@pytest.mark.all_databases
def test_an_error_that_stays_is_raised_at_once(storage: Storage) -> None:
    tries = []

    def work(tx: Tx) -> None:
        tries.append(1)
        add(tx, 1)
        add(tx, 1)

    with pytest.raises(exc.IntegrityError):
        storage.run(work)
    assert len(tries) == 1


def busy() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError('database is locked')
    error.sqlite_errorname = 'SQLITE_BUSY'
    return error


@pytest.mark.parametrize('given, driver', [
    ('mysql://u:p@192.0.2.1/n', 'mysql+pymysql'), ('mysql+pymysql://u:p@192.0.2.1/n', 'mysql+pymysql'),
    ('mariadb://u:p@192.0.2.1/n', 'mysql+pymysql'), ('postgresql://u:p@192.0.2.1/n', 'postgresql+psycopg2'),
    ('postgres://u:p@192.0.2.1/n', 'postgresql+psycopg2'), ('sqlite:///file', 'sqlite')])
def test_the_usual_spellings_of_a_url(given: str, driver: str) -> None:
    assert make_engine(given).url.drivername == driver


@pytest.mark.parametrize('given, why', [
    ('', 'cannot be read'), ('not a url', 'cannot be read'), ('mysql://u:secret@192.0.2.1:port/n', 'cannot be read'),
    ('oracle://u:secret@192.0.2.1/n', "begins with 'oracle', known are sqlite, mysql"),
    ('sqlite://', 'must be a file'), ('sqlite:///:memory:', 'must be a file')])
def test_a_url_of_no_known_database_is_refused_without_its_password(given: str, why: str) -> None:
    with pytest.raises(errors.BadInput, match=why) as caught:
        Storage(given)
    assert 'secret' not in str(caught.value)


def wrapped(original: Exception, lost: bool = False,
            kind: type[exc.DBAPIError] = exc.OperationalError) -> exc.DBAPIError:
    return kind('SELECT 1', {}, original, connection_invalidated=lost)


@pytest.mark.parametrize('error', [
    wrapped(Exception('anything'), lost=True),
    wrapped(busy()),
    wrapped(pymysql.OperationalError(1213, 'Deadlock found when trying to get lock')),
    wrapped(pymysql.OperationalError(1205, 'Lock wait timeout exceeded')),
    wrapped(pymysql.OperationalError(2003, "Can't connect to MySQL server")),
    wrapped(pymysql.OperationalError(2006, 'MySQL server has gone away')),
    wrapped(pymysql.OperationalError(1053, 'Server shutdown in progress')),
    wrapped(pymysql.OperationalError(1305, 'SAVEPOINT sa_savepoint_1 does not exist')),
    wrapped(psycopg2.OperationalError('connection to server at "192.0.2.1", port 5432 failed: session is read-only')),
    wrapped(psycopg2.OperationalError('connection to server at "192.0.2.1", port 5432 failed: Connection refused')),
    wrapped(psycopg2.OperationalError('server closed the connection unexpectedly')),
    wrapped(psycopg2.OperationalError('FATAL:  the database system is starting up')),
    wrapped(psycopg2.OperationalError('FATAL:  sorry, too many clients already')),
], ids=lambda error: str(error.orig))
def test_errors_that_pass(error: exc.DBAPIError) -> None:
    assert is_transient(error)


@pytest.mark.parametrize('error', [
    wrapped(sqlite3.OperationalError('no such table: t')),
    wrapped(pymysql.OperationalError(1045, 'Access denied for user')),
    wrapped(pymysql.OperationalError(1305, 'FUNCTION n.f does not exist')),
    wrapped(pymysql.ProgrammingError(1146, "Table 't' doesn't exist"), kind=exc.ProgrammingError),
    wrapped(psycopg2.OperationalError('FATAL:  password authentication failed for user "u"')),
    wrapped(psycopg2.OperationalError('FATAL:  database "n" does not exist')),
    wrapped(psycopg2.ProgrammingError('the connection cannot be re-entered recursively'), kind=exc.ProgrammingError),
], ids=lambda error: str(error.orig))
def test_errors_that_stay(error: exc.DBAPIError) -> None:
    assert not is_transient(error)


@pytest.mark.parametrize(('code', 'expected'), [(1047, True), (1290, True), (1836, True), (1213, False)])
def test_a_node_that_takes_no_transactions_is_told_by_its_code(code: int, expected: bool) -> None:
    assert is_elsewhere(pymysql.OperationalError(code, 'text')) is expected


def test_errors_of_other_drivers_are_not_taken_for_those_of_mariadb() -> None:
    assert not is_elsewhere(OSError(1047, 'text')) and not is_elsewhere(None)


def test_others_get_a_turn_between_two_parts_and_not_after_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[list[int]] = []
    turns: list[int] = []
    monkeypatch.setattr(entities.Turns, 'give', lambda turn: turns.append(len(parts)))
    for part in entities.chunks(range(5), 2):
        parts.append(part)
    assert (parts, turns) == ([[0, 1], [2, 3], [4]], [1, 2])
