"""Which database errors are transient, so that the same transaction may succeed when it is run again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import exc

#: Of PostgreSQL: serialization failure, deadlock, lock timeout, shutdown, crash, starting up, too many connections, and
#: connection exceptions.
SQLSTATES = {'40001', '40P01', '55P03', '57P01', '57P02', '57P03', '53300', '08000', '08001', '08003', '08004', '08006'}
#: Of MySQL and MariaDB: too many connections, WSREP not ready, shutting down, aborted or network trouble, lock wait,
#: deadlock, row changed, killed; and of the client: cannot connect, server gone, lost, out of order.
MYSQL_CODES = {1040, 1047, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1205, 1213, 1020, 1317, 1927,
               2002, 2003, 2006, 2013, 2014, 2055, 4031}
#: Parts of messages with which PostgreSQL refuses a connection that it would accept later.
_PASSING_REFUSALS = ('starting up', 'shutting down', 'recovery', 'too many clients', 'connection slots',
                     'terminating connection')


def is_transient(error: exc.DBAPIError) -> bool:
    """Whether the same transaction may succeed when run again."""
    if error.connection_invalidated:
        return True
    judge = _BY_DRIVER.get(type(error.orig).__module__.partition('.')[0])
    return judge is not None and judge(error)


def _sqlite(error: exc.DBAPIError) -> bool:
    name = getattr(error.orig, 'sqlite_errorname', '')
    return name.startswith(('SQLITE_BUSY', 'SQLITE_LOCKED'))


def _mysql(error: exc.DBAPIError) -> bool:
    arguments: tuple[Any, ...] = getattr(error.orig, 'args', ())
    return bool(arguments) and arguments[0] in MYSQL_CODES


def _postgresql(error: exc.DBAPIError) -> bool:
    sqlstate = getattr(error.orig, 'pgcode', None)
    if sqlstate is not None:
        return sqlstate in SQLSTATES
    # Errors without a code are of the connection: FATAL if the server refused it, otherwise of the network.
    text = str(error.orig)
    return isinstance(error, exc.OperationalError) and (
        'FATAL' not in text or any(words in text for words in _PASSING_REFUSALS))


_BY_DRIVER: dict[str, Callable[[exc.DBAPIError], bool]] = {
    'sqlite3': _sqlite,
    'pymysql': _mysql,
    'psycopg2': _postgresql,
}
