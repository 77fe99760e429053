"""Connections and transactions.

A piece of storage work is a function ``work(tx, ...)`` of a SQLAlchemy connection in a transaction.
:meth:`Storage.run` runs it and commits; it runs it again when the database lost the transaction for a reason that
passes (deadlock, lock wait, lost connection, a server that restarts).  So *work* does nothing but SQL, and must bear
being done twice: when the connection is lost during COMMIT nobody knows whether it was done.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool import errors, metrics
from designate_pool.backoff import Backoff
from designate_pool.storage.sql import retryable
from designate_pool.storage.sql.secrets import SecretCipher

T = TypeVar('T')
Tx = sa.Connection
Items: TypeAlias = Generator[T, None, None]

PATIENCE = 10.0
#: Seconds from a transaction that failed for the moment to the next.
_PAUSES = Backoff(0.01, cap=0.5, jitter=(0.5, 1.0))
#: Octets of a SQLite file that are looked at in place.
_MAPPED = 1 << 30
#: Octets that MariaDB may join to one value, of which it would cut off the rest.
_LONGEST_VALUE = 64 << 20
_DRIVERS = {
    'sqlite': 'sqlite',
    'mysql': 'mysql+pymysql', 'mysql+pymysql': 'mysql+pymysql',
    'mariadb': 'mysql+pymysql', 'mariadb+pymysql': 'mysql+pymysql',
    'postgresql': 'postgresql+psycopg2', 'postgresql+psycopg2': 'postgresql+psycopg2',
    'postgres': 'postgresql+psycopg2',
}


class _Meter:
    """Counts one kind of transactions; what *work* itself refuses is no matter of the database."""

    def __init__(self, kind: str) -> None:
        self._done = metrics.TRANSACTIONS.labels(kind, 'ok')
        self._seconds = metrics.TRANSACTION_SECONDS.labels(kind)
        self.failed = metrics.TRANSACTIONS.labels(kind, 'failed').inc

    def done(self, seconds: float) -> None:
        self._done.inc()
        self._seconds.observe(seconds)


_READS, _WRITES = _Meter('read'), _Meter('write')


class Storage:
    """One database.

    :param url: SQLAlchemy's form, ``sqlite:///file``, ``mysql://…`` (PyMySQL), ``postgresql://…`` (psycopg2)
    :param pool_size: connections kept; SQLite takes it as well, a connection serves one thread at a time
    :param max_overflow: connections beyond *pool_size*, closed after use
    :param patience: seconds after which a transient error is given to the caller; no single wait for a lock or a
        connection is longer
    :param secrets_keys: that secrets are encrypted with, see :class:`designate_pool.storage.sql.secrets.SecretCipher`
    :ivar connections: how many can be open at the same time
    :raises designate_pool.errors.BadInput: *url* is not of one of these databases
    """

    def __init__(self, url: str, pool_size: int = 20, max_overflow: int = 0, patience: float = PATIENCE,
                 secrets_keys: Sequence[str] = ()) -> None:
        self._patience = patience
        self.connections = pool_size + max_overflow
        # run and read end every transaction themselves: a ROLLBACK for each connection returned would be one too many.
        self.engine = make_engine(url, patience=patience, pool_size=pool_size, max_overflow=max_overflow,
                                  pool_timeout=patience, pool_recycle=3600, pool_reset_on_return=None,
                                  execution_options={'secrets': SecretCipher(secrets_keys)})
        self._read_only = self.engine.execution_options(read_only=True)
        # SQLite has one writer.  Those of this process queue here, because waiting inside SQLite is neither fair nor
        # green: it would block every green thread, the one that holds the write lock among them.
        self._writing: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if self.engine.dialect.name == 'sqlite':
            self._writing = threading.Lock()

    def run(self, work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """The result of ``work(tx, *args, **kwargs)``, committed.

        :raises sqlalchemy.exc.DBAPIError: what does not pass
        :raises designate_pool.errors.ServiceUnavailable: what would pass, but did not in time
        """
        def attempt() -> T:
            with self._writing, self.engine.begin() as tx:
                return work(tx, *args, **kwargs)

        return self._patiently(attempt, _WRITES)

    def read(self, work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """The result of ``work(tx, *args, **kwargs)``, which only reads: what it writes is rolled back.

        One statement sees one state of the database, two statements may see two.

        :raises sqlalchemy.exc.DBAPIError: what does not pass
        :raises designate_pool.errors.ServiceUnavailable: what would pass, but did not in time
        """
        def attempt() -> T:
            with self._read_only.connect() as tx:
                return work(tx, *args, **kwargs)

        return self._patiently(attempt, _READS)

    def stream(self, work: Callable[..., Items[T]], *args: Any) -> Items[T]:
        """What the generator ``work(tx, *args)`` yields, from one transaction that only reads, as it is taken.

        The transaction keeps its connection until all has been taken, or the generator is closed.  The first has been
        read when this returns; what happens after that is not tried again.

        :raises sqlalchemy.exc.DBAPIError: what does not pass, and what comes later
        :raises designate_pool.errors.ServiceUnavailable: what would pass, but did not in time
        """
        def attempt() -> Items[Any]:
            items = self._items(work, args)
            next(items)
            return items

        return self._patiently(attempt, _READS)

    def _items(self, work: Callable[..., Items[T]], args: tuple[Any, ...]) -> Items[Any]:
        with self._read_only.connect() as tx, contextlib.closing(work(tx, *args)) as found:
            first = list(itertools.islice(found, 1))
            yield None  # that far it may be tried again
            yield from first
            yield from found

    @contextlib.contextmanager
    def count_statements(self) -> Iterator[collections.Counter[str]]:
        """How often each statement is executed meanwhile, by any thread; ``.total()`` is their sum.

        A call of executemany counts once, or once per statement where SQLAlchemy makes several of it; BEGIN and COMMIT
        do not count.
        """
        counter: collections.Counter[str] = collections.Counter()
        lock = threading.Lock()

        def count(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
            if not statement.startswith('BEGIN'):
                with lock:
                    counter[statement] += 1

        sa.event.listen(self.engine, 'before_cursor_execute', count)
        try:
            yield counter
        finally:
            sa.event.remove(self.engine, 'before_cursor_execute', count)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self.engine.dispose()

    def _patiently(self, attempt: Callable[[], T], meter: _Meter) -> T:
        started = time.monotonic()
        end = started + self._patience
        pauses = _PAUSES.delays(random.random)
        while True:
            try:
                result = attempt()
            except exc.DBAPIError as error:
                left = end - time.monotonic()
                if not retryable.is_transient(error):
                    meter.failed()
                    raise
                if left <= 0:
                    meter.failed()
                    raise errors.ServiceUnavailable(service='the database', why=type(error).__name__) from error
            except exc.SQLAlchemyError:
                meter.failed()
                raise
            else:
                meter.done(time.monotonic() - started)
                return result
            metrics.TRANSACTION_RETRIES.inc()
            time.sleep(min(left, next(pauses)))


def make_engine(url: str, patience: float = PATIENCE, foreign_keys: bool = True, **options: Any) -> sa.Engine:
    """An engine whose transactions are READ COMMITTED, and on SQLite take the write lock as they begin.

    :param patience: seconds to wait for a lock or a connection
    :param foreign_keys: whether SQLite minds them; the others always do
    :param options: more of SQLAlchemy's
    :raises designate_pool.errors.BadInput: *url* is not of one of these databases
    """
    parsed = _parse(url)
    seconds = max(2, round(patience))  # libpq takes a connect_timeout of 1 for 2
    name = parsed.get_backend_name()
    if name == 'sqlite':
        engine = sa.create_engine(parsed, **options)
        sa.event.listen(engine, 'do_connect', _make_private)
        sa.event.listen(engine, 'connect', _prepare_sqlite(seconds, foreign_keys))
        sa.event.listen(engine, 'begin', _begin_sqlite)
    elif name == 'mysql':
        engine = sa.create_engine(_with_defaults(parsed, connect_timeout=seconds), **options)
        sa.event.listen(engine, 'do_connect', _connect_mysql)
        sa.event.listen(engine, 'connect', _prepare_mysql(seconds))
    else:
        parsed = _with_defaults(parsed, connect_timeout=seconds, keepalives_idle=30, keepalives_interval=10,
                                keepalives_count=3)
        engine = sa.create_engine(parsed, executemany_mode='values_plus_batch',
                                  **{'isolation_level': 'READ COMMITTED', **options})
        sa.event.listen(engine, 'connect', _prepare_postgresql(seconds))
    return engine


def sqlite_files(url: str) -> list[str]:
    """The files of the SQLite database at *url* that are there: its own, and its log; none for other databases."""
    path = _parse(url).database if url.startswith('sqlite:') else None
    return [] if path is None else [each for each in (path, f'{path}-wal') if os.path.exists(each)]


def _parse(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except (exc.ArgumentError, ValueError):
        # The text of either error may hold the password, so it is not passed on.
        raise errors.BadInput(why='the database URL cannot be read') from None
    if parsed.drivername not in _DRIVERS:
        known = ', '.join(_DRIVERS)
        raise errors.BadInput(why=f"the database URL begins with '{parsed.drivername}', known are {known}")
    if parsed.drivername == 'sqlite' and parsed.database in (None, '', ':memory:'):
        raise errors.BadInput(why='a SQLite database must be a file, since every connection opens it anew')
    return parsed.set(drivername=_DRIVERS[parsed.drivername])


def _with_defaults(url: sa.URL, **options: int) -> sa.URL:
    return url.update_query_dict({key: str(value) for key, value in options.items() if key not in url.query})


def _make_private(dialect: Any, record: Any, arguments: Any, options: Any) -> None:
    """Make the file before SQLite does, which would let everybody read it; it gives its log the same mode."""
    if not arguments[0].startswith('file:'):
        with contextlib.suppress(OSError):  # it is there, or SQLite will say what is wrong
            os.close(os.open(arguments[0], os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _prepare_sqlite(seconds: int, foreign_keys: bool) -> Callable[[Any, Any], None]:
    def prepare(connection: Any, record: Any) -> None:
        # The driver's own BEGIN is deferred; ours, in _begin_sqlite, takes the write lock at once.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f'PRAGMA busy_timeout={seconds * 1000}')
        _keep_log(cursor, seconds)
        # Large zones are read by many small looks into the file, each of which would else be a system call and a copy.
        for pragma in ('synchronous=FULL', f'mmap_size={_MAPPED}', f'foreign_keys={"ON" if foreign_keys else "OFF"}'):
            cursor.execute(f'PRAGMA {pragma}')
        cursor.close()

    return prepare


def _keep_log(cursor: sqlite3.Cursor, seconds: int) -> None:
    """Have the database keep a write-ahead log.  The first time, busy_timeout does not make it wait for others."""
    end = time.monotonic() + seconds
    while True:
        try:
            cursor.execute('PRAGMA journal_mode=WAL')
            return
        except sqlite3.OperationalError as error:
            if 'locked' not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.02)


def _begin_sqlite(connection: sa.Connection) -> None:
    read_only = connection.get_execution_options().get('read_only')
    connection.exec_driver_sql('BEGIN' if read_only else 'BEGIN IMMEDIATE')


def _connect_mysql(dialect: Any, record: Any, arguments: Any, options: Any) -> Any:
    return _mysql_connection()(*arguments, **options)


@functools.cache
def _mysql_connection() -> type[Any]:
    """PyMySQL's connection, with one TLS context for all that only prefer TLS.

    PyMySQL makes one for each and reads all certificates of the system into it, none of which it then checks: 50 ms of
    the processor and 0.8 MiB.  A connection that fails leaves its own to the garbage collector, which looks seldom, and
    while the database is away connections fail all the time.
    """
    from pymysql.connections import Connection

    class Preferring(Connection):
        shared: Any = None

        def _create_ssl_ctx(self, wanted: Any) -> Any:
            if wanted:  # files, which may be others by now
                return super()._create_ssl_ctx(wanted)
            if Preferring.shared is None:
                Preferring.shared = super()._create_ssl_ctx(wanted)
            return Preferring.shared

    return Preferring


def _prepare_mysql(seconds: int) -> Callable[[Any, Any], None]:
    def prepare(connection: Any, record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED')
        cursor.execute("SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,"
                       f"ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = {seconds}, "
                       f'group_concat_max_len = {_LONGEST_VALUE}')
        cursor.close()

    return prepare


def _prepare_postgresql(seconds: int) -> Callable[[Any, Any], None]:
    def prepare(connection: Any, record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{seconds}s'")
        connection.commit()

    return prepare
