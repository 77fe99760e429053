"""Processes on hosts whose clocks differ by an hour claim, and take over, as if they were in step."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
import sqlalchemy as sa

from designate_pool.model import Action, PageRequest, ServerStatus
from designate_pool.storage.operations import heartbeats, server_statuses
from designate_pool.storage.sql.database import CLOCK_INTERVAL, DatabaseClock, Storage
from testing.rows import insert_domains

pytestmark = pytest.mark.parametrize('database_kind', ['mariadb', 'postgresql'], indirect=True)
CLAIM, SOON = timedelta(seconds=30), timedelta(seconds=5)
SERVER = 'a' * 32


def url_of(database: Storage) -> str:
    return database.engine.url.render_as_string(hide_password=False)


@pytest.fixture(params=[-3600, 3600], ids=['behind', 'ahead'])
def wrong(request: pytest.FixtureRequest, emptied_database: Storage) -> Iterator[Storage]:
    """The database as a host has it whose clock is wrong; ``emptied_database`` is that of another host."""
    clock = DatabaseClock(lambda: time.time() + request.param)
    with contextlib.closing(Storage(url_of(emptied_database), clock=clock)) as storage:
        yield storage


def test_the_time_is_the_databases(wrong: Storage, emptied_database: Storage) -> None:
    assert abs(wrong.now() - emptied_database.now()) < SOON
    assert abs(abs(wrong.clock.host_ahead) - 3600) < 5


def test_claims_end_when_their_time_is_over(wrong: Storage, emptied_database: Storage) -> None:
    domain_ids = emptied_database.run(insert_domains, 2)
    for domain_id, holder, other in zip(domain_ids, (wrong, emptied_database), (emptied_database, wrong)):
        now = holder.now()
        holder.run(server_statuses.write, [ServerStatus(SERVER, domain_id, Action.UPDATE, 1, next_attempt_at=now)], now)

        def claim(storage: Storage, later: timedelta = timedelta()) -> list[object]:
            now = storage.now() + later
            rows = storage.run(server_statuses.claim_due, {SERVER: 9}, now, storage.engine.url.database, now + CLAIM)
            names = storage.run(server_statuses.claim_names, SERVER, [domain_id], 'one', now, now + CLAIM)
            return [*(row.domain_id for row in rows), *names]

        assert claim(holder) == [domain_id] * 2
        assert claim(other) == [] == claim(other, CLAIM - SOON)
        assert claim(other, CLAIM + SOON) == [domain_id] * 2
        holder.run(server_statuses.forget, [domain_id])


def test_a_heartbeat_counts_for_as_long_as_any(wrong: Storage, emptied_database: Storage) -> None:
    for name, writer, reader in (('one', wrong, emptied_database), ('two', emptied_database, wrong)):
        writer.run(heartbeats.say, name, 'host', '', heartbeats.UP, {}, writer.now())

        def is_up(later: timedelta) -> bool:
            silent = reader.now() + later - timedelta(seconds=heartbeats.SILENCE)
            (status,) = reader.read(heartbeats.find, PageRequest({'service_name': name}), silent)
            return status.status == heartbeats.UP and status.heartbeated_at >= silent

        assert is_up(timedelta()) and is_up(timedelta(seconds=heartbeats.SILENCE) - SOON)
        assert not is_up(timedelta(seconds=heartbeats.SILENCE) + SOON)


def test_the_clock_is_read_at_first_and_once_a_minute(emptied_database: Storage) -> None:
    uptime = 1000.0
    clock = DatabaseClock(uptime=lambda: uptime)
    with contextlib.closing(Storage(url_of(emptied_database), clock=clock)) as storage:
        storage.now()
        statements: list[str] = []
        for engine in storage.engines:
            sa.event.listen(engine, 'before_cursor_execute', lambda *arguments: statements.append(arguments[2]))
        for _ in range(3):
            storage.now()
            storage.read(lambda tx: tx.exec_driver_sql('SELECT 1'))
            storage.run(lambda tx: tx.exec_driver_sql('SELECT 1'))
        assert statements == ['SELECT 1'] * 6
        uptime += CLOCK_INTERVAL
        for _ in range(2):
            storage.read(lambda tx: tx.exec_driver_sql('SELECT 1'))
        assert len(statements) == 9 and clock.is_measured and not clock.is_due
