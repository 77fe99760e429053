"""The database's clock, which is the reference for all programs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from designate_pool.model import utcnow
from designate_pool.storage.sql.database import Storage, Tx

#: Largest harmless offset, seconds.
MOST = 2.0
#: A time that is so much later than it can be was written by a clock that is ahead, and is not waited for.
TIMES_AHEAD = timedelta(seconds=30)


def clock(tx: Tx) -> datetime | None:
    """The database's time; None for SQLite, which has this host's clock."""
    statement = {'postgresql': "SELECT clock_timestamp() AT TIME ZONE 'UTC'", 'mysql': 'SELECT UTC_TIMESTAMP(6)'}
    if tx.dialect.name not in statement:
        return None
    time: datetime = tx.exec_driver_sql(statement[tx.dialect.name]).scalar_one()
    return time.replace(tzinfo=timezone.utc)


def offset(storage: Storage, now: Callable[[], datetime] = utcnow) -> float:
    """Seconds, at least, that this host's clock is ahead of the database's; 0 if the database has no clock."""
    before = now()
    database_time = storage.read(clock)
    after = now()
    if database_time is None or before <= database_time <= after:
        return 0.0
    # The database read its clock at some time between the two: the smallest possible offset.
    nearest = before if database_time < before else after
    return (nearest - database_time).total_seconds()
