"""Transactions on real servers that deadlock, restart and cut connections; many threads; green threads."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
import sqlalchemy as sa
from prometheus_client import REGISTRY

from designate_pool import errors
from designate_pool.storage.sql.columns import Time
from designate_pool.storage.sql.database import Storage, Tx, see_one_state
from testing.databases import DatabaseServer, MariaDB
from testing.processes import binary, free_port, patience, wait_until
from testing.proxy import Proxy

TABLE = sa.Table('counters', sa.MetaData(), sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
                 sa.Column('n', sa.Integer, nullable=False))


@pytest.fixture(params=['mariadb', 'postgresql'])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    found: DatabaseServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def storage(server: DatabaseServer) -> Iterator[Storage]:
    storage = Storage(server.create_database())
    storage.run(prepare)
    yield storage
    storage.close()


def prepare(tx: Tx) -> None:
    TABLE.create(tx)
    tx.execute(TABLE.insert(), [{'id': 1, 'n': 0}, {'id': 2, 'n': 0}])


def add(tx: Tx, *ids: int, between: Callable[[], object] = int) -> None:
    for each in ids:
        tx.execute(TABLE.update().where(TABLE.c.id == each).values(n=TABLE.c.n + 1))
        between()


def values(tx: Tx) -> list[int]:
    return list(tx.execute(sa.select(TABLE.c.n).order_by(TABLE.c.id)).scalars())


@pytest.mark.parametrize('written', [
    datetime(2026, 1, 2, 3, 4, 5, 678901, timezone.utc), datetime(2026, 1, 2, 3, 4, 5, 600, timezone.utc),
    datetime(2026, 1, 2, tzinfo=timezone.utc), datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=-5))), None])
def test_times_are_kept_to_the_microsecond(storage: Storage, written: datetime | None) -> None:
    table = sa.Table('times', sa.MetaData(), sa.Column('at', Time()), sa.Column('name', sa.String(10)))
    storage.run(table.create)
    storage.run(lambda tx: tx.execute(table.insert().values(at=written, name='one')))
    storage.run(lambda tx: tx.execute(table.insert(), [{'at': written, 'name': name} for name in ('two', 'three')]))
    assert storage.read(lambda tx: tx.execute(sa.select(table.c.at)).scalars().all()) == [written] * 3
    matching = table.c.at.is_(None) if written is None else table.c.at == written
    assert storage.read(lambda tx: tx.execute(
        sa.select(sa.func.count()).select_from(table).where(matching)).scalar_one()) == 3


def test_each_statement_sees_what_was_committed_before_it(storage: Storage) -> None:
    def work(tx: Tx) -> list[list[int]]:
        before = values(tx)
        other.run(add, 1)
        return [before, values(tx)]

    other = Storage(storage.engine.url.render_as_string(hide_password=False))
    try:
        assert storage.run(work) == [[0, 0], [1, 0]]
        assert storage.read(work) == [[1, 0], [2, 0]]
    finally:
        other.close()


def test_what_is_read_of_one_state_sees_nothing_that_is_committed_meanwhile(storage: Storage) -> None:
    def work(tx: Tx) -> list[list[int]]:
        see_one_state(tx)
        before = values(tx)
        storage.run(add, 1)
        return [before, values(tx)]

    def fail(tx: Tx) -> None:
        work(tx)
        raise KeyError

    assert storage.read(work) == [[0, 0], [0, 0]]
    with pytest.raises(KeyError):
        storage.read(fail)
    # The connection is the same, and leaves no transaction open.
    assert storage.read(lambda tx: [values(tx), storage.run(add, 2), values(tx)]) == [[2, 0], None, [2, 1]]


def test_a_connection_that_is_cut_while_one_state_is_read(storage: Storage, server: DatabaseServer) -> None:
    restarts = iter([server.restart])

    def work(tx: Tx) -> list[int]:
        see_one_state(tx)
        next(restarts, int)()
        return values(tx)

    assert storage.read(work) == [0, 0]


def test_a_deadlock_costs_neither_of_the_two_its_transaction(storage: Storage) -> None:
    both_have_one = threading.Barrier(2)
    tries: list[int] = []

    def work(tx: Tx, first: int, second: int) -> None:
        tries.append(first)
        add(tx, first)
        if tries.count(first) == 1:
            both_have_one.wait(10)
        add(tx, second)

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(storage.run, work, 1, 2), pool.submit(storage.run, work, 2, 1)]:
            future.result(30)
    assert storage.read(values) == [2, 2]
    assert len(tries) == 3


def test_a_server_that_is_killed_in_mid_transaction(storage: Storage, server: DatabaseServer) -> None:
    def fail() -> None:
        server.kill()
        server.start()

    failures = iter([fail])
    storage.run(add, 1, 2, between=lambda: next(failures, int)())
    assert storage.read(values) == [1, 1]


def test_a_connection_that_was_cut_while_it_lay_in_the_pool(storage: Storage, server: DatabaseServer) -> None:
    storage.run(add, 1)
    server.restart()
    assert storage.read(values) == [1, 0]
    server.restart()
    storage.run(add, 1)
    assert storage.read(values) == [2, 0]


def test_a_connection_that_the_administrator_cuts_in_mid_transaction(storage: Storage, server: DatabaseServer) -> None:
    tries = []

    def work(tx: Tx) -> None:
        add(tx, 1)
        tries.append(1)
        if len(tries) == 1:
            number, cut = (('connection_id()', 'KILL {}') if isinstance(server, MariaDB) else
                           ('pg_backend_pid()', 'SELECT pg_terminate_backend({})'))
            server.execute(cut.format(tx.exec_driver_sql(f'SELECT {number}').scalar_one()))
        add(tx, 2)

    storage.run(work)
    assert len(tries) == 2
    assert storage.read(values) == [1, 1]


def test_a_server_that_is_away_for_a_while_is_waited_for(storage: Storage, server: DatabaseServer) -> None:
    server.stop()
    with ThreadPoolExecutor(2) as pool:
        reading, writing = pool.submit(storage.read, values), pool.submit(storage.run, add, 1)
        server.start()
        assert reading.result(30) in ([0, 0], [1, 0])
        writing.result(30)
    assert storage.read(values) == [1, 0]


def test_a_server_that_stays_away_is_an_error_when_patience_ends(storage: Storage, server: DatabaseServer) -> None:
    hasty = Storage(storage.engine.url.render_as_string(hide_password=False), patience=0.5)
    assert hasty.read(values) == [0, 0]
    server.stop()
    try:
        began = time.monotonic()
        with pytest.raises(errors.ServiceUnavailable):
            hasty.run(add, 1)
        assert 0.5 <= time.monotonic() - began < patience(5)
    finally:
        server.start()
    assert hasty.read(values) == [0, 0]
    hasty.close()


def test_a_lock_that_is_held_too_long_is_an_error_when_patience_ends(storage: Storage) -> None:
    hasty = Storage(storage.engine.url.render_as_string(hide_password=False), patience=1)
    with storage.engine.begin() as holder:
        add(holder, 1)
        began = time.monotonic()
        with pytest.raises(errors.ServiceUnavailable):
            hasty.run(add, 1)
        assert time.monotonic() - began < patience(8)
    hasty.run(add, 1)
    assert storage.read(values) == [2, 0]
    hasty.close()


def test_a_lock_of_a_client_that_has_fallen_silent_is_given_to_others(storage: Storage) -> None:
    """Its host has died, or is cut off: nothing tells the server."""
    url = storage.engine.url.render_as_string(hide_password=False)
    silent, waiting = Storage(url, patience=0.5), Storage(url, patience=60)

    def wait(tx: Tx) -> None:
        add(tx, 1)
        waiting.run(add, 1)
        add(tx, 1)

    with pytest.raises(errors.ServiceUnavailable):
        silent.run(wait)
    assert storage.read(values) == [1, 0]
    silent.run(add, 1)
    assert storage.read(values) == [2, 0]
    silent.close()
    waiting.close()


def test_a_reader_that_takes_its_time_keeps_its_transaction(postgresql: DatabaseServer) -> None:
    def timeout(tx: Tx) -> str:
        see_one_state(tx)
        return str(tx.exec_driver_sql('SHOW idle_in_transaction_session_timeout').scalar_one())

    with contextlib.closing(Storage(postgresql.create_database())) as storage:
        assert storage.read(timeout) == '0'


def test_postgresql_compiles_no_statement(postgresql: DatabaseServer) -> None:
    with contextlib.closing(Storage(postgresql.create_database())) as storage:
        for run in (storage.run, storage.read):
            assert run(lambda tx: tx.exec_driver_sql('SHOW jit').scalar_one()) == 'off'


def test_a_server_whose_host_falls_silent_is_given_up_after_twenty_seconds(storage: Storage) -> None:
    def socket_options(tx: Tx) -> list[int]:
        connection: Any = tx.connection.dbapi_connection
        number = connection.fileno() if storage.engine.dialect.name == 'postgresql' else connection._sock.fileno()
        with socket.socket(fileno=os.dup(number)) as kept:
            assert kept.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            return [kept.getsockopt(socket.IPPROTO_TCP, each) for each in (
                socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)]

    for verb in (storage.run, storage.read):
        assert verb(socket_options) == [10, 5, 2, 20000]


def contexts() -> int:
    """TLS contexts that are in memory, the garbage among them."""
    return sum(isinstance(each, ssl.SSLContext) for each in gc.get_objects())


def retries() -> int:
    return int(REGISTRY.get_sample_value('designate_pool_database_retries_total') or 0)


@pytest.fixture
def uncollected() -> Iterator[None]:
    """What is garbage from now on stays, as it does for long in a program that is let alone."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_connections_that_cannot_be_made_do_not_each_leave_the_system_s_certificates_in_memory(
        uncollected: None) -> None:
    """They are 0.8 MiB, and a program that has many connections to make tries hundreds of times a minute."""
    before, retries_before = contexts(), retries()
    with contextlib.closing(Storage(f'mysql://root@127.0.0.1:{free_port()}/none', patience=1)) as storage:
        with pytest.raises(errors.ServiceUnavailable):
            storage.read(values)
    assert retries() - retries_before > 2
    assert contexts() - before <= 1


class MariaDBWithTls(MariaDB):
    """One that speaks TLS, with a certificate that nobody has signed."""

    def _initialise(self) -> None:
        super()._initialise()
        self._run(binary('openssl'), 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                  '-subj', '/CN=localhost', '-keyout', self.data / 'tls.key', '-out', self.data / 'tls.pem')

    def _command(self) -> list[str]:
        return [*super()._command(), f'--ssl-cert={self.data}/tls.pem', f'--ssl-key={self.data}/tls.key']


def test_connections_speak_tls_where_the_server_does_and_share_what_they_need_for_it() -> None:
    with (MariaDBWithTls() as server, contextlib.closing(Storage(server.create_database())) as storage,
          contextlib.ExitStack() as end):
        connections: list[Any] = [end.enter_context(storage.engine.connect()) for _ in range(3)]
        assert {each.exec_driver_sql("SHOW STATUS LIKE 'Ssl_cipher'").one()[1] for each in connections} != {''}
        assert len({id(each.connection.dbapi_connection.ctx) for each in connections}) == 1


GREEN = '''
import sys
from designate_pool import runtime
runtime.patch()
import time
from designate_pool.storage.sql.database import Storage
from tests.functional.storage.test_sessions import add, prepare, values

storage = Storage(sys.argv[1], patience=20)
storage.run(prepare)
workers = runtime.Green().workers(20, 'test')

def work():
    for _ in range(5):
        storage.run(add, 1, 2, between=lambda: time.sleep(0))
        storage.read(values)

futures = [workers.submit(work) for _ in range(12)]
workers.stop()
[future.result() for future in futures]
print(storage.read(values))
'''


def test_green_threads_share_the_connections(empty_database_url: str) -> None:
    done = subprocess.run([sys.executable, '-c', GREEN, empty_database_url], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == '[60, 60]\n'


@pytest.mark.slow
def test_an_outage_is_one_line_when_it_begins_and_one_when_it_ends(server: DatabaseServer,
                                                                   caplog: pytest.LogCaptureFixture) -> None:
    url = sa.make_url(server.create_database())
    assert url.port is not None
    caplog.set_level(logging.INFO, 'designate_pool')
    proxy = Proxy(url.port)
    storage = Storage(url.set(port=proxy.port).render_as_string(hide_password=False), patience=2)

    failures = []

    def read() -> object:
        return storage.read(lambda tx: tx.execute(sa.select(1)).scalar())

    def fail(tx: sa.Connection | None = None) -> None:
        with pytest.raises(errors.DatabaseUnavailable) as failure:
            read()
        failures.append(failure.value)

    try:
        read()
        proxy.move(free_port())
        for _ in range(2):
            storage.read(fail)  # itself by a connection that was there before
        proxy.cut()
        for _ in range(2):
            fail()
        proxy.move(url.port)
        wait_until(lambda: read() and 'answers again' in caplog.text, 'it is logged')
    finally:
        storage.close()
        proxy.stop()
    assert all(failure.is_logged and failure.code == 503 for failure in failures) and len(failures) == 4
    begin, end = [record for record in caplog.records if record.name.startswith('designate_pool')]
    assert begin.getMessage().startswith(f'the database at 127.0.0.1:{proxy.port} does not answer: ')
    assert len(begin.getMessage().rpartition('does not answer: ')[2]) > 10, 'the cause'
    assert end.getMessage().startswith(f'the database at 127.0.0.1:{proxy.port} answers again (after ')
