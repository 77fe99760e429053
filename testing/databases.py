"""Real database servers for tests and benchmarks::

    with MariaDB() as server:
        url = server.create_database()

Each server has a temporary folder and a free port of 127.0.0.1, where nothing else is said, and keeps them when it is
started again.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Self

import psycopg2
import pymysql
import sqlalchemy as sa

from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import TIMES, Storage
from testing.processes import Process, ProcessServer, binary, free_port, wait_until

#: Connections that a server accepts: of two of each service, each of which may open twice ``pool_size``, and of others.
MAX_CONNECTIONS = 400


class DatabaseServer(ProcessServer):
    """What the servers have in common.

    :param durable: whether a commit waits for the disk.  Without, it survives :meth:`kill` but not a power failure
    :param host: its address
    :param prefix: what is put before its command, such as words that enter a network namespace; they must exec the rest
    :param folder: an empty one of its own, in place of a temporary one; other users must be able to enter it
    """

    user: str
    port: int
    _stop_signal = signal.SIGTERM
    _kill_signal = signal.SIGKILL

    def __init__(self, durable: bool = False, host: str = '127.0.0.1', prefix: Sequence[str] = (),
                 folder: pathlib.Path | None = None) -> None:
        self.durable = durable
        self.host = host
        self._prefix = prefix
        self._temporary = folder is None
        self.port = 0
        self._numbers = itertools.count(1)
        # Not pytest's folder: that is closed to every user but ours, and as root these servers run as another.
        self.folder = folder or pathlib.Path(tempfile.mkdtemp(prefix='designate-pool-db-'))
        self.folder.chmod(0o755)
        self.data = self.folder / 'data'
        self.data.mkdir(mode=0o700)
        self._as_user: list[str] = []
        if os.geteuid() == 0:
            shutil.chown(self.data, self.user, self.user)
            self._as_user = [binary('setpriv'), f'--reuid={self.user}', f'--regid={self.user}', '--clear-groups', '--']

    def __enter__(self) -> Self:
        try:
            self._initialise()
            self._start_on_a_free_port()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *details: object) -> None:
        self.kill()  # the folder goes anyway, so nothing need be written back
        self._remove()

    def start(self) -> Self:
        """Start it on the port that it had; returns when it takes connections."""
        self._process = process = Process(
            [*self._prefix, *self._as_user, *self._command()], self.folder / 'log', cwd=self.folder).start()
        try:
            wait_until(lambda: process.running() and self._answers(), f'{type(self).__name__} is ready', 60)
        except BaseException:
            process.kill()
            raise
        return self

    def stop(self) -> None:
        """End it in good order; clients lose their connections."""
        if self._process is not None:
            self._process.stop(self._stop_signal, 30)
            self._process = None

    def kill(self) -> None:
        """End it at once, as a crash does, also when it is paused."""
        if self._process is not None:
            self._process.signal(self._kill_signal)
            self._process.resume()
            self._process.wait(30)
            self._process = None

    def pause(self) -> None:
        """Stop its clock: connections stay open and nothing answers, until :meth:`resume`."""
        assert self._process is not None
        self._process.pause()

    def resume(self) -> None:
        """Let it go on, if it runs."""
        if self._process is not None:
            self._process.resume()

    def create_database(self) -> str:
        """The URL of a new, empty database."""
        name = f'test_{next(self._numbers)}'
        self._create(name)
        return self.url(name)

    def url(self, database: str) -> str:
        raise NotImplementedError

    def execute(self, statement: str) -> None:
        """Run one statement as the administrator, outside the databases of :meth:`create_database`."""
        raise NotImplementedError

    def _create(self, name: str) -> None:
        raise NotImplementedError

    def _initialise(self) -> None:
        raise NotImplementedError

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _answers(self) -> bool:
        try:
            self.execute('SELECT 1')
        except (psycopg2.OperationalError, pymysql.OperationalError):
            return False
        return True

    def _start_on_a_free_port(self) -> None:
        # Another process may take the port between our looking and the server's binding.
        for _ in range(2):
            self.port = free_port(self.host)
            with contextlib.suppress(AssertionError):
                self.start()
                return
        self.port = free_port(self.host)
        self.start()

    def _run(self, *command: str | pathlib.Path) -> None:
        done = subprocess.run([*self._prefix, *self._as_user, *map(str, command)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                              cwd=self.folder)
        assert done.returncode == 0, f'{command[0]} ended with {done.returncode}:\n{done.stdout[-4000:]}'

    def _remove(self) -> None:
        if self._temporary:
            shutil.rmtree(self.folder)


class MariaDB(DatabaseServer):
    """A MariaDB with one administrator, root, without a password."""

    user = 'mysql'

    def url(self, database: str) -> str:
        return f'mysql+pymysql://root@{self.host}:{self.port}/{database}'

    def execute(self, statement: str) -> None:
        with contextlib.closing(pymysql.connect(host=self.host, port=self.port, user='root')) as connection, \
                connection.cursor() as cursor:
            cursor.execute(statement)

    def _create(self, name: str) -> None:
        self.execute(f'CREATE DATABASE {name} CHARACTER SET utf8mb4')

    def _initialise(self) -> None:
        # A mariadbd that starts removes all temporary tables that it finds in tmpdir, those of others in /tmp too.
        self._run(binary('mariadb-install-db'), '--no-defaults', f'--datadir={self.data}', f'--tmpdir={self.data}',
                  '--skip-test-db', '--skip-name-resolve', '--auth-root-authentication-method=normal',
                  '--innodb-log-file-size=32M')

    def _command(self) -> list[str]:
        return [binary('mariadbd'), '--no-defaults', f'--datadir={self.data}', f'--tmpdir={self.data}',
                f'--port={self.port}', f'--bind-address={self.host}', f'--socket={self.data}/socket',
                f'--pid-file={self.data}/pid', '--skip-name-resolve', f'--max-connections={MAX_CONNECTIONS}',
                '--innodb-log-file-size=32M',
                '--innodb-buffer-pool-size=128M', f'--innodb-flush-log-at-trx-commit={1 if self.durable else 2}',
                # Its administrator may come from its own host alone.
                *(['--skip-grant-tables'] if self.host != '127.0.0.1' else [])]


class PostgreSQL(DatabaseServer):
    """A PostgreSQL with one administrator, postgres, without a password."""

    user = 'postgres'
    _stop_signal = signal.SIGINT  # SIGTERM would wait until the clients have gone
    _kill_signal = signal.SIGQUIT  # no more is written, and unlike SIGKILL it takes the server's children along

    def url(self, database: str) -> str:
        return f'postgresql+psycopg2://postgres@{self.host}:{self.port}/{database}'

    def execute(self, statement: str) -> None:
        with contextlib.closing(psycopg2.connect(host=self.host, port=self.port, user='postgres',
                                                 dbname='postgres')) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement)

    def _create(self, name: str) -> None:
        self.execute(f'CREATE DATABASE {name}')

    def _initialise(self) -> None:
        self._run(postgresql_binary('initdb'), '-D', self.data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8',
                  '--locale=C.UTF-8', '--no-sync')
        if self.host != '127.0.0.1':
            with (self.data / 'pg_hba.conf').open('a') as access:
                access.write('host all all 0.0.0.0/0 trust\n')

    def _command(self) -> list[str]:
        command = [postgresql_binary('postgres'), '-D', str(self.data), '-p', str(self.port), '-k', str(self.data),
                   '-c', f'listen_addresses={self.host}', '-c', f'max_connections={MAX_CONNECTIONS}']
        return command if self.durable else [*command, '-c', 'fsync=off']


def postgresql_binary(name: str) -> str:
    versions = pathlib.Path('/usr/lib/postgresql').glob('*/bin')
    return binary(name, *map(str, sorted(versions, key=lambda path: float(path.parent.name), reverse=True)))


@contextlib.contextmanager
def count_statements(storage: Storage) -> Iterator[collections.Counter[str]]:
    """Counts how often each statement is executed in the context, by any thread; ``.total()`` is the sum.

    A call of executemany counts once, or once per statement if SQLAlchemy splits it; BEGIN and COMMIT do not count,
    nor does the reading of the clock.
    """
    counter: collections.Counter[str] = collections.Counter()
    lock = threading.Lock()

    def count(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if not statement.startswith('BEGIN') and statement not in TIMES.values():
            with lock:
                counter[statement] += 1

    with contextlib.ExitStack() as end:
        for engine in storage.engines:
            sa.event.listen(engine, 'before_cursor_execute', count)
            end.callback(sa.event.remove, engine, 'before_cursor_execute', count)
        yield counter


def upgraded_sqlite(path: pathlib.Path) -> str:
    """The URL of a new SQLite database with all tables and the pool 'default'."""
    shutil.copy(_sqlite_template(), path)
    return f'sqlite:///{path}'


def quick_sqlite(path: pathlib.Path) -> Storage:
    """The storage of :func:`upgraded_sqlite`, whose commits do not wait for the disk."""
    storage = Storage(upgraded_sqlite(path))
    for engine in storage.engines:
        sa.event.listen(engine, 'connect', lambda connection, record: connection.execute('PRAGMA synchronous=OFF'))
    return storage


@functools.cache
def _sqlite_template() -> pathlib.Path:
    folder = pathlib.Path(tempfile.mkdtemp(prefix='designate-pool-template-'))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / 'database.sqlite'
    migrate.upgrade(f'sqlite:///{path}')
    assert [each.name for each in folder.iterdir()] == [path.name], 'not all of it is in the one file'
    return path
