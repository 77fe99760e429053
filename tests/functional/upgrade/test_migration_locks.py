"""Tables are upgraded while programs write: no table may be locked for longer than a second, whatever it holds.

Four writers touch a row of each large table all the time, in transactions of one statement, while the next revision is
applied to 100,000 rows in each of the tables that belong to zones.
"""

from __future__ import annotations

import pathlib
import threading
import time

import pytest
import sqlalchemy as sa

from designate_pool.storage.sql import migrate, schema
from designate_pool.storage.sql.database import Storage
from testing.databases import DatabaseServer
from testing.many_domains import ROWS_PER_DOMAIN, fill
from testing.processes import patience
from tests.fixtures.next_release import add_revision

pytestmark = pytest.mark.slow

ROWS = 100_000
TABLES = (schema.domains, schema.records, schema.pool_manager_status, schema.zone_versions)
#: Seconds that a write may have to wait.
LONGEST = 1.0


class Writer(threading.Thread):
    """Writes the same row again and again.

    :ivar longest: seconds that one write took
    :ivar writes: that were made
    """

    def __init__(self, url: str, table: sa.Table) -> None:
        super().__init__(name=f'writes {table.name}')
        self._engine = sa.create_engine(url)
        self._over = threading.Event()
        self.table = table
        self.longest = 0.0
        self.writes = 0
        with self._engine.connect() as connection:
            row = connection.scalar(sa.select(sa.func.min(table.c.id)))
        self._update = sa.update(table).where(table.c.id == row).values(created_at=table.c.created_at)

    def stop(self) -> None:
        self._over.set()
        self.join()
        self._engine.dispose()

    def run(self) -> None:
        while not self._over.wait(0.005):
            begun = time.monotonic()
            with self._engine.begin() as connection:
                connection.execute(self._update)
            self.longest = max(self.longest, time.monotonic() - begun)
            self.writes += 1


@pytest.fixture(params=['mariadb', 'postgresql'])
def full_database_url(request: pytest.FixtureRequest) -> str:
    """ROWS rows."""
    server: DatabaseServer = request.getfixturevalue(request.param)
    url = server.create_database()
    migrate.upgrade(url)
    storage = Storage(url)
    try:
        fill(storage, ROWS // ROWS_PER_DOMAIN)
    finally:
        storage.close()
    return url


def test_no_write_waits_for_longer_than_a_second(full_database_url: str, installed_migrations: pathlib.Path) -> None:
    add_revision(installed_migrations)
    writers = [Writer(full_database_url, table) for table in TABLES]
    for writer in writers:
        writer.start()
    begun = time.monotonic()
    try:
        migrate.upgrade(full_database_url)
    finally:
        took = time.monotonic() - begun
        for writer in writers:
            writer.stop()
    assert migrate.current(full_database_url) == migrate.head()
    waited = {writer.table.name: round(writer.longest, 2) for writer in writers}
    print(f'the upgrade took {took:.1f} s, the longest writes {waited}')
    assert all(writer.writes for writer in writers)
    assert max(waited.values()) < patience(LONGEST), waited
