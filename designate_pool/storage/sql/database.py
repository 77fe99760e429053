"""Connections and transactions.

A piece of storage work is a function ``work(tx, ...)`` of a SQLAlchemy connection in a transaction.
:meth:`Storage.run` runs and commits it, and runs it again after a transient error (deadlock, lock wait, lost
connection, a server that restarts).  So *work* does nothing but SQL, and is idempotent: when the connection is lost
during COMMIT, it is not known whether the transaction was committed.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import os
import random
import socket
import sqlite3
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from datetime import datetime, timezone
from typing import Any, TypeAlias, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool import errors, metrics
from designate_pool.backoff import Backoff
from designate_pool.logs import OutageLog
from designate_pool.storage.sql.secrets import SecretCipher

LOG = logging.getLogger(__name__)
T = TypeVar('T')
Tx = sa.Connection
Dialect = sa.Dialect
Items: TypeAlias = Generator[T, None, None]

PATIENCE = 10.0
#: Seconds without a connection after which the database is logged to be away: a new connection may do.
_AWAY_SECONDS = 1.0
#: Seconds for which no connection must have failed before an outage is logged to have ended.
_BACK_SECONDS = 2.0
#: Seconds from a transaction that failed for the moment to the next.
_PAUSES = Backoff(0.01, cap=0.5, jitter=(0.5, 1.0))
#: Octets of a SQLite file that are memory-mapped.
_MAPPED = 1 << 30
#: TCP keepalive: seconds of silence before the first probe, seconds between probes, and probes without an answer after
#: which a connection is closed.  A host that loses its power or its network does not end its connections, and without
#: this a statement would wait for hours.  Data that is sent and not acknowledged closes it after the same total time.
_IDLE, _INTERVAL, _COUNT = 10, 5, 2
_SILENCE = _IDLE + _INTERVAL * _COUNT
#: After how many times the patience the server ends a transaction of a client that sends nothing: its host may
#: have died or be cut off, which the server learns from TCP after hours, and until then nobody else gets the locks.
_IDLE_TIMES = 6
#: Seconds that :meth:`Storage.try_once` waits for a lock; MariaDB knows no part of a second.
_SHORT_WAIT = 1
#: Of Galera's ``wsrep_sync_wait``: before reads, before UPDATE and DELETE, before INSERT.
_SYNC_WAIT = 1 | 2 | 4
#: Seconds between two measurements of the database's clock on a connection that is kept.
CLOCK_INTERVAL = 60.0
#: Seconds by which a host's clock may differ from the database's before a program complains.
MOST_APART = 2.0
#: What reads the database's time, in UTC.
TIMES = {'postgresql': "SELECT clock_timestamp() AT TIME ZONE 'UTC'", 'mysql': 'SELECT UTC_TIMESTAMP(6)'}
#: Of PostgreSQL: serialization failure, deadlock, lock timeout, shutdown, crash, starting up, too many connections, and
#: connection exceptions.
_SQLSTATES = {'40001', '40P01', '55P03', '57P01', '57P02', '57P03', '53300', '08000', '08001', '08003', '08004',
              '08006'}
#: Of MySQL and MariaDB: too many connections, WSREP not ready, shutting down, aborted or network trouble, lock wait,
#: deadlock (a Galera node says so too of a transaction that another node's is in conflict with), row changed, killed;
#: and of the client: cannot connect, server gone, lost, out of order.
_MYSQL_CODES = {1040, 1047, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1205, 1213, 1020, 1317, 1927,
                2002, 2003, 2006, 2013, 2014, 2055, 4031}
#: What a node of a cluster says that does not take transactions, or no longer does, while another one may: of MariaDB
#: one without a majority, or one that is read-only; of PostgreSQL a standby.
_MYSQL_ELSEWHERE = {1047, 1290, 1836}
_SQLSTATE_ELSEWHERE = '25006'
#: What MariaDB says instead of the deadlock that has ended the whole transaction, when a savepoint is gone with it.
_NO_SAVEPOINT = 1305
#: Parts of messages with which PostgreSQL refuses a connection that it would accept later.
_PASSING_REFUSALS = ('starting up', 'shutting down', 'recovery', 'too many clients', 'connection slots',
                     'terminating connection')
_DRIVERS = {
    'sqlite': 'sqlite',
    'mysql': 'mysql+pymysql', 'mysql+pymysql': 'mysql+pymysql',
    'mariadb': 'mysql+pymysql', 'mariadb+pymysql': 'mysql+pymysql',
    'postgresql': 'postgresql+psycopg2', 'postgresql+psycopg2': 'postgresql+psycopg2',
    'postgres': 'postgresql+psycopg2',
}


class DatabaseClock:
    """The database's time: what it is ahead of the time since this host was started, as measured last.

    Nobody sets the time since the start, and it goes on while the host is suspended.  Until the first measurement, and
    for SQLite always, the time is that of the host's clock.

    :param wall: the host's clock, seconds since 1970
    :param uptime: seconds since the host was started
    """

    def __init__(self, wall: Callable[[], float] = time.time,
                 uptime: Callable[[], float] = functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME)) -> None:
        self._wall = wall
        self._uptime = uptime
        self._offset: float | None = None
        self._due_at = 0.0
        self._outage = OutageLog(
            LOG, "this host's clock is %.1f s %s the database's; serials and signed messages need clocks in step: keep "
            'all clocks in step with NTP', "this host's clock is in step with the database's again", logging.WARNING)

    @property
    def is_measured(self) -> bool:
        """Whether the database's clock was ever read."""
        return self._offset is not None

    @property
    def is_due(self) -> bool:
        """Whether the database's clock should be read again."""
        return self._offset is None or self._uptime() >= self._due_at

    @property
    def host_ahead(self) -> float:
        """Seconds, at least, that the host's clock is ahead of the database's."""
        return 0.0 if self._offset is None else self._wall() - self._uptime() - self._offset

    def measure(self, read: Callable[[], datetime]) -> None:
        """Correct the offset; *read* reads the database's clock, as UTC without a time zone."""
        before = self._uptime()
        seconds = read().replace(tzinfo=timezone.utc).timestamp()
        after = self._uptime()
        former = self._wall() - after if self._offset is None else self._offset
        # The database read its clock at some time between the two: the smallest correction that this demands.
        self._offset = min(max(former, seconds - after), seconds - before)
        self._due_at = after + CLOCK_INTERVAL
        ahead = self.host_ahead
        metrics.CLOCK_AHEAD.set(ahead)
        if abs(ahead) > MOST_APART:
            self._outage.failed(abs(ahead), 'ahead of' if ahead > 0 else 'behind')
        else:
            self._outage.ended()

    def now(self) -> datetime:
        """The database's time by the last measurement, aware and in UTC."""
        seconds = self._wall() if self._offset is None else self._uptime() + self._offset
        return datetime.fromtimestamp(seconds, timezone.utc)


class Storage:
    """One database.

    A transaction raises :class:`sqlalchemy.exc.DBAPIError` for an error that is not transient, and
    :class:`designate_pool.errors.ServiceUnavailable` when transient ones last longer than *patience*.

    :param url: SQLAlchemy's form, ``sqlite:///file``, ``mysql://…`` (PyMySQL), ``postgresql://…`` (psycopg2)
    :param pool_size: connections kept; SQLite takes it as well, a connection serves one thread at a time
    :param patience: seconds after which a transient error is raised; a single wait for a lock or a connection is no
        longer than this
    :param secrets_keys: keys for secrets, see :class:`designate_pool.storage.sql.secrets.SecretCipher`
    :param clock: measures the database's time
    :ivar connections: how many can be open at the same time, of those that read and of those that write
    :ivar engine: of transactions
    :ivar engines: that and, except for SQLite, the one of reads
    :ivar has_one_writer: whether a transaction that writes holds up all others
    :raises designate_pool.errors.BadInput: *url* is not of one of these databases
    """

    def __init__(self, url: str, pool_size: int = 20, patience: float = PATIENCE,
                 secrets_keys: Sequence[str] = (), clock: DatabaseClock | None = None) -> None:
        self._patience = patience
        parsed = _parse(url)
        self._address = f'{parsed.host}:{parsed.port}' if parsed.port else parsed.host or str(parsed.database)
        self._outage = OutageLog(LOG, 'the database at %s does not answer: %s', 'the database at %s answers again')
        self._away_at = float('-inf')
        self._waits_until = float('inf')
        self.clock = clock or DatabaseClock()
        self.connections = pool_size
        # Every transaction is ended here, so no ROLLBACK is needed when a connection is returned.
        make = functools.partial(make_engine, url, patience=patience, pool_size=pool_size, max_overflow=0,
                                 pool_timeout=patience, pool_recycle=3600, pool_reset_on_return=None)
        secrets = SecretCipher(secrets_keys)
        self.engine = make(execution_options={'secrets': secrets})
        self._read_only = self.engine.execution_options(read_only=True)
        # Reads outside of transactions save the ROLLBACK at their end, and with PostgreSQL the BEGIN.
        self._readers: sa.Engine = self._read_only
        if self.engine.dialect.name != 'sqlite':
            self._readers = make(isolation_level='AUTOCOMMIT', skip_autocommit_rollback=True,
                                 execution_options={'secrets': secrets, 'read_only': True, 'autocommits': True})
        self.engines = (self.engine,) if self._readers is self._read_only else (self.engine, self._readers)
        self._keeps_time = self.engine.dialect.name in TIMES
        # SQLite has one writer.  Writers of this process queue here: waiting inside SQLite is not fair, and blocks all
        # green threads, including the one that holds the write lock.
        self.has_one_writer = self.engine.dialect.name == 'sqlite'
        self._writing: contextlib.AbstractContextManager[Any] = (
            threading.Lock() if self.has_one_writer else contextlib.nullcontext())

    def now(self) -> datetime:
        """The database's time, with which everything is written and compared that processes of several hosts agree
        on: claims, heartbeats, and what is due.

        No statement is needed for it but at the first time, and once a minute in the next :meth:`run` or :meth:`read`.
        """
        if self._keeps_time and not self.clock.is_measured:
            self.read(lambda tx: None)
        return self.clock.now()

    def run(self, work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """The result of ``work(tx, *args, **kwargs)``, committed."""
        def attempt() -> T:
            with self._writing, self.engine.begin() as tx:
                self._measure_clock(tx)
                return work(tx, *args, **kwargs)

        return self._patiently(attempt, 'write')

    def try_once(self, work: Callable[..., T], *args: Any) -> T:
        """As :meth:`run`, for work that can be done in another way: it is not run again, and waits for a lock for a
        second at most."""
        def attempt() -> T:
            with self._writing, self.engine.begin() as tx, _short_waits(tx, self._patience):
                return work(tx, *args)

        return self._patiently(attempt, 'write', 0)

    def read(self, work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """The result of ``work(tx, *args, **kwargs)``, which only reads and takes no locks.

        Each statement sees one state of the database; two statements may see different ones, unless *work* begins with
        :func:`see_one_state`.
        """
        def attempt() -> T:
            with self._readers.connect() as tx:
                self._measure_clock(tx)
                try:
                    return work(tx, *args, **kwargs)
                finally:
                    _end_one_state(tx)

        return self._patiently(attempt, 'read')

    def stream(self, work: Callable[..., Items[T]], *args: Any) -> Items[T]:
        """What the generator ``work(tx, *args)`` yields, from one transaction that only reads.

        The transaction keeps its connection until the generator is exhausted or closed.  The first item has been read
        when this returns; errors after that are not retried.
        """
        def attempt() -> Items[Any]:
            items = self._items(work, args)
            next(items)
            return items

        return self._patiently(attempt, 'read')

    def _measure_clock(self, tx: Tx) -> None:
        if self._keeps_time and self.clock.is_due:
            self.clock.measure(lambda: tx.exec_driver_sql(TIMES[tx.dialect.name]).scalar_one())

    def _items(self, work: Callable[..., Items[T]], args: tuple[Any, ...]) -> Items[Any]:
        with self._read_only.connect() as tx, contextlib.closing(work(tx, *args)) as items:
            first = list(itertools.islice(items, 1))
            yield None  # up to here it may be retried
            yield from first
            yield from items

    def stop_waiting(self) -> None:
        """Wait no longer for a database that is away, but a second for one that comes back: the program ends."""
        self._waits_until = time.monotonic() + _AWAY_SECONDS

    def close(self) -> None:
        """Close the pooled connections."""
        for engine in self.engines:
            engine.dispose()

    def _patiently(self, attempt: Callable[[], T], kind: str, patience: float | None = None) -> T:
        """The result of *attempt*, made again after transient errors for *patience* (seconds) or the storage's.

        Metrics count errors by the *kind* of transaction, but for those that *work* raises by itself.
        """
        started = time.monotonic()
        end = started + (self._patience if patience is None else patience)
        pauses = _PAUSES.delays(random.random)
        while True:
            try:
                result = attempt()
            except exc.SQLAlchemyError as error:
                is_away = _is_away(error)
                remaining = (min(end, self._waits_until) if is_away else end) - time.monotonic()
                if is_away:
                    self._away_at = time.monotonic()
                if is_away and self._away_at - started > _AWAY_SECONDS:
                    self._outage.failed(self._address, str(getattr(error, 'orig', error)).strip().partition('\n')[0])
                passes, crowded = is_transient(error), isinstance(error, exc.TimeoutError)
                if not passes or remaining <= 0:
                    metrics.TRANSACTIONS.labels(kind, 'failed').inc()
                    if not passes and not crowded:
                        raise
                    why = 'all connections to it are in use' if crowded else type(error).__name__
                    unavailable = errors.DatabaseUnavailable if is_away and self._outage else errors.ServiceUnavailable
                    raise unavailable(service='the database', why=why) from error
            else:
                if time.monotonic() - self._away_at > _BACK_SECONDS:  # not only for a connection that was still there
                    self._outage.ended(self._address)
                metrics.TRANSACTIONS.labels(kind, 'ok').inc()
                metrics.TRANSACTION_SECONDS.labels(kind).observe(time.monotonic() - started)
                return result
            metrics.TRANSACTION_RETRIES.inc()
            time.sleep(min(remaining, next(pauses)))


def _is_away(error: exc.SQLAlchemyError) -> bool:
    """Whether there is no connection to the database."""
    return isinstance(error, exc.DBAPIError) and (error.connection_invalidated or error.statement is None)


def is_transient(error: exc.SQLAlchemyError) -> bool:
    """Whether the same transaction may succeed when run again."""
    if not isinstance(error, exc.DBAPIError):
        return False
    if error.connection_invalidated:
        return True
    cause: Any = error.orig
    driver = type(cause).__module__.partition('.')[0]
    if driver == 'sqlite3':
        return getattr(cause, 'sqlite_errorname', '').startswith(('SQLITE_BUSY', 'SQLITE_LOCKED'))
    if driver == 'pymysql':
        return bool(cause.args) and (cause.args[0] in _MYSQL_CODES
                                     or cause.args[0] == _NO_SAVEPOINT and 'SAVEPOINT' in str(cause))
    if driver != 'psycopg2':
        return False
    if cause.pgcode is not None:
        return cause.pgcode in _SQLSTATES
    return isinstance(error, exc.OperationalError) and _is_passing(cause)


def _is_passing(error: BaseException) -> bool:
    """Whether an error of PostgreSQL without a code may pass: it is of the connection, FATAL if the server refused it,
    otherwise of the network."""
    return 'FATAL' not in str(error) or any(words in str(error) for words in _PASSING_REFUSALS)


def is_elsewhere(error: BaseException | None) -> bool:
    """Whether the server takes no transactions, by the driver's error; a new connection may lead to one that does."""
    if error is None or getattr(error, 'pgcode', None) == _SQLSTATE_ELSEWHERE:
        return error is not None
    return type(error).__module__.startswith('pymysql.') and not _MYSQL_ELSEWHERE.isdisjoint(error.args[:1])


def make_engine(url: str, patience: float = PATIENCE, foreign_keys: bool = True, **options: Any) -> sa.Engine:
    """An engine whose transactions are READ COMMITTED; on SQLite they take the write lock when they begin.

    :param patience: seconds to wait for a lock or a connection
    :param foreign_keys: whether SQLite enforces them; other databases always do
    :raises designate_pool.errors.BadInput: *url* is not of one of these databases
    """
    parsed = _parse(url)
    seconds = max(2, round(patience))  # libpq treats a connect_timeout of 1 as 2
    idle = max(2, round(_IDLE_TIMES * patience))
    name = parsed.get_backend_name()
    # Of an error the log would have them all, secrets that are stored in clear text too.
    options['hide_parameters'] = True
    if name == 'sqlite':
        engine = sa.create_engine(parsed, **options)
        sa.event.listen(engine, 'do_connect', _make_private)
        sa.event.listen(engine, 'connect', _prepare_sqlite(seconds, foreign_keys))
        sa.event.listen(engine, 'begin', _begin_sqlite)
    elif name == 'mysql':
        # A server may be frozen, also after TCP's handshake.  A statement of a migration may take as long as it needs.
        silence = dict.fromkeys(('read_timeout', 'write_timeout'), idle) if foreign_keys else {}
        engine = sa.create_engine(_with_defaults(parsed, connect_timeout=seconds, **silence), **options)
        sa.event.listen(engine, 'do_connect', _connect_mysql)
        sa.event.listen(engine, 'connect', _prepare_mysql(seconds, idle, options.get('isolation_level')))
        sa.event.listen(engine, 'handle_error', _leave_node)
    else:
        parsed = _with_defaults(parsed, connect_timeout=seconds, keepalives_idle=_IDLE, keepalives_interval=_INTERVAL,
                                keepalives_count=_COUNT, tcp_user_timeout=_SILENCE * 1000)
        engine = sa.create_engine(parsed, executemany_mode='values_plus_batch',
                                  **{'isolation_level': 'READ COMMITTED', **options})
        sa.event.listen(engine, 'do_connect', _connect_postgresql)
        sa.event.listen(engine, 'connect', _prepare_postgresql(seconds, idle))
        sa.event.listen(engine, 'handle_error', _leave_node)
    return engine


@contextlib.contextmanager
def _short_waits(tx: Tx, seconds: float) -> Iterator[None]:
    """Have statements of the transaction wait for locks for :data:`_SHORT_WAIT` instead of *seconds*."""
    if tx.dialect.name == 'postgresql':
        tx.exec_driver_sql(f"SET LOCAL lock_timeout = '{_SHORT_WAIT}s'")
    elif tx.dialect.name == 'mysql':
        tx.exec_driver_sql(f'SET innodb_lock_wait_timeout = {_SHORT_WAIT}')
    try:
        yield
    finally:
        if tx.dialect.name == 'mysql' and not tx.invalidated:  # it is of the session
            try:
                tx.exec_driver_sql(f'SET innodb_lock_wait_timeout = {max(2, round(seconds))}')
            except exc.SQLAlchemyError:
                tx.invalidate()


def see_one_state(tx: Tx) -> None:
    """Have all statements of *tx* see the same state of the database.

    It must be the first call of a transaction: its isolation level can only be chosen at its start.
    """
    autocommits = tx.get_execution_options().get('autocommits')
    if autocommits:
        tx.execution_options(one_state=True)
    if tx.dialect.name == 'postgresql':
        if autocommits:
            tx.connection.driver_connection.autocommit = False  # type: ignore[union-attr]
        # It holds no locks, so it may wait for whoever reads what it yields.
        tx.exec_driver_sql('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;'
                           ' SET LOCAL idle_in_transaction_session_timeout = 0')
    elif autocommits:  # its sessions are REPEATABLE READ
        tx.exec_driver_sql('START TRANSACTION')
    elif tx.dialect.name != 'sqlite':  # there, a transaction sees one state anyway
        tx.exec_driver_sql('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')


def _end_one_state(tx: Tx) -> None:
    """End what :func:`see_one_state` began, if it did, on a connection that commits by itself."""
    if not tx.get_execution_options().get('one_state') or tx.closed or tx.invalidated:
        return
    connection: Any = tx.connection.driver_connection
    try:
        connection.rollback()
        if tx.dialect.name == 'postgresql':
            connection.autocommit = True
    except tx.dialect.loaded_dbapi.Error:  # what was read is right all the same
        tx.invalidate()


def sqlite_files(url: str) -> list[str]:
    """The existing files of the SQLite database at *url*: the database and its log; none for other databases."""
    path = _parse(url).database if url.startswith('sqlite:') else None
    return [] if path is None else [file for file in (path, f'{path}-wal') if os.path.exists(file)]


def _parse(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except (exc.ArgumentError, ValueError):
        # The text of either error may contain the password, so it is not shown.
        raise errors.BadInput(why='the database URL cannot be read') from None
    if parsed.drivername not in _DRIVERS:
        drivers = ', '.join(_DRIVERS)
        raise errors.BadInput(why=f"the database URL begins with '{parsed.drivername}', known are {drivers}")
    if parsed.drivername == 'sqlite' and parsed.database in (None, '', ':memory:'):
        raise errors.BadInput(why='a SQLite database must be a file, since every connection opens it anew')
    return parsed.set(drivername=_DRIVERS[parsed.drivername])


def _with_defaults(url: sa.URL, **options: int) -> sa.URL:
    return url.update_query_dict({key: str(value) for key, value in options.items() if key not in url.query})


def _make_private(dialect: Any, record: Any, arguments: Any, options: Any) -> None:
    """Create the file with mode 0600, since SQLite would make it readable by all; its log gets the same mode."""
    if not arguments[0].startswith('file:'):
        with contextlib.suppress(OSError):  # it exists, or SQLite reports the error
            os.close(os.open(arguments[0], os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _prepare_sqlite(seconds: int, foreign_keys: bool) -> Callable[[Any, Any], None]:
    def prepare(connection: Any, record: Any) -> None:
        # The driver's own BEGIN is deferred; ours, in _begin_sqlite, takes the write lock at once.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f'PRAGMA busy_timeout={seconds * 1000}')
        _keep_log(cursor, seconds)
        # Reading a large zone takes many small reads, each of which is a system call and a copy without mmap.
        for pragma in ('synchronous=FULL', f'mmap_size={_MAPPED}', f'foreign_keys={"ON" if foreign_keys else "OFF"}'):
            cursor.execute(f'PRAGMA {pragma}')
        cursor.close()

    return prepare


def _keep_log(cursor: sqlite3.Cursor, seconds: int) -> None:
    """Enable the write-ahead log.  busy_timeout does not apply when it is enabled for the first time."""
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


def _leave_node(context: Any) -> None:
    """Have connections made anew when the server that they lead to takes no transactions: another one may by now."""
    if is_elsewhere(context.original_exception):
        context.is_disconnect = True


def _connect_mysql(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> Any:
    """Connect by TLS if the server has it, as PyMySQL does without options for it.

    PyMySQL would load the system's certificates for each connection, though it does not check them then: 50 ms of
    processor time and 0.8 MiB, which remain until the garbage collector runs.
    """
    import pymysql

    options = {**options, 'conv': _mysql_conversions()}
    if any(name.startswith('ssl') for name in options):
        return _open_mysql(options)
    try:
        return _open_mysql({**options, 'ssl': _unchecked_tls()})
    except pymysql.err.OperationalError as error:
        if error.args[0] != pymysql.constants.CR.CR_SSL_CONNECTION_ERROR:
            raise
    return _open_mysql({**options, 'ssl_disabled': True})


def _open_mysql(options: dict[str, Any]) -> Any:
    """A connection over a socket that notices a peer that is gone."""
    import pymysql

    connection = pymysql.connect(**options, defer_connect=True)
    if connection.unix_socket:
        connection.connect()
        return connection
    try:
        peer = socket.create_connection((connection.host, connection.port), connection.connect_timeout)
    except OSError as error:
        why = f"Can't connect to MySQL server on {connection.host!r} ({error})"
        raise pymysql.err.OperationalError(pymysql.constants.CR.CR_CONN_HOST_ERROR, why) from error
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_NODELAY, 1), (socket.TCP_KEEPIDLE, _IDLE), (socket.TCP_KEEPINTVL, _INTERVAL),
                          (socket.TCP_KEEPCNT, _COUNT), (socket.TCP_USER_TIMEOUT, _SILENCE * 1000)):
        peer.setsockopt(socket.IPPROTO_TCP, option, value)
    connection.connect(peer)
    return connection


@functools.cache
def _unchecked_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@functools.cache
def _mysql_conversions() -> dict[Any, Any]:
    """PyMySQL reads a time with a regular expression, which takes 30 times as long as the standard library."""
    from pymysql import converters
    from pymysql.constants import FIELD_TYPE

    return {**converters.conversions, FIELD_TYPE.DATETIME: datetime.fromisoformat,
            datetime: lambda value, mapping=None: f"'{value.isoformat(' ')}'"}


def _prepare_mysql(seconds: int, idle: int, isolation_level: str | None) -> Callable[[Any, Any], None]:
    # Where statements commit by themselves, this is the level of transactions that are begun all the same.
    level = 'REPEATABLE READ' if isolation_level == 'AUTOCOMMIT' else 'READ COMMITTED'

    def prepare(connection: Any, record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute(f'SET SESSION TRANSACTION ISOLATION LEVEL {level}')
        cursor.execute("SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,"
                       f"ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = {seconds}")
        # A node of a Galera cluster shows what another one has committed a moment later.  With this a transaction first
        # waits for all that was committed before it began.
        cursor.execute("SHOW VARIABLES WHERE Variable_name IN ('wsrep_on', 'idle_transaction_timeout')")
        variables = dict(cursor.fetchall())
        if variables.get('wsrep_on') == 'ON':
            cursor.execute(f'SET SESSION wsrep_sync_wait = @@wsrep_sync_wait | {_SYNC_WAIT}')
        if 'idle_transaction_timeout' in variables:  # MySQL does not have it
            cursor.execute(f'SET SESSION idle_transaction_timeout = {idle}')
        cursor.close()

    return prepare


def _connect_postgresql(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> Any:
    """Connect to the first of the hosts that takes the connection, each asked by itself.

    libpq asks all hosts in one call, but where it may not block, one that accepts the connection and is silent ends the
    call.  Host names are looked up here, as libpq would stop all green threads until the resolver answers; it still
    checks certificates by the name.
    """
    *places, last = _postgresql_places(options)
    for place in places:
        try:
            return dialect.connect(*arguments, **{**options, **place})
        except dialect.loaded_dbapi.OperationalError as error:
            if not _is_passing(error):
                raise
    return dialect.connect(*arguments, **{**options, **last})


def _postgresql_places(options: dict[str, Any]) -> list[dict[str, Any]]:
    """The addresses to connect to in turn, as options of libpq; one without any where libpq shall choose."""
    hosts, ports = (str(options.get(name, '')).split(',') for name in ('host', 'port'))
    if 'hostaddr' in options or not all(hosts) or len(ports) not in (1, len(hosts)):
        return [{}]
    places = []
    for host, port in zip(hosts, ports if len(ports) > 1 else ports * len(hosts)):
        addresses: list[dict[str, Any]] = [{}]  # of a socket's folder, or of a name that libpq reports as unknown
        if not host.startswith('/'):
            with contextlib.suppress(OSError):
                resolved = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
                addresses = [{'hostaddr': text} for text in dict.fromkeys(address[4][0] for address in resolved)]
        places += [{'host': host, **({'port': port} if port else {}), **address} for address in addresses]
    return places


def _prepare_postgresql(seconds: int, idle: int) -> Callable[[Any, Any], None]:
    def prepare(connection: Any, record: Any) -> None:
        with connection.cursor() as cursor:
            # PostgreSQL would compile statements of large zones, which takes longer than it saves.
            cursor.execute(f"SET lock_timeout = '{seconds}s'; SET jit = off;"
                           f" SET idle_in_transaction_session_timeout = '{idle}s'")
        connection.commit()

    return prepare
