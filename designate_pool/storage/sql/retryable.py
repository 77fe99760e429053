"""Which database errors are transient, so that the same transaction may succeed when it is run again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import exc

#: Of PostgreSQL: serialization failure, deadlock, lock timeout, shutdown, crash, starting up, too many connections, and
#: connection exceptions.
SQLSTATES = {'40001', '40P01', '55P03', '57P01', '57P02', '57P03', '53300', '08000', '08001', '08003', '08004', '08006'}
#: Of MySQL and MariaDB: too many connections, WSREP not ready, shutting down, aborted or network trouble, lock wait,
#: deadlock (a Galera node says so too of a transaction that another node's is in conflict with), row changed, killed;
#: and of the client: cannot connect, server gone, lost, out of order.
MYSQL_CODES = {1040, 1047, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1205, 1213, 1020, 1317, 1927,
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


def is_transient(error: exc.DBAPIError) -> bool:
    """Whether the same transaction may succeed when run again."""
    if error.connection_invalidated:
        return True
    judge = _BY_DRIVER.get(type(error.orig).__module__.partition('.')[0])
    return judge is not None and judge(error)


def is_elsewhere(error: BaseException | None) -> bool:
    """Whether the server takes no transactions, so that a new connection may lead to one that does.

    :param error: the driver's
    """
    if getattr(error, 'pgcode', None) == _SQLSTATE_ELSEWHERE:
        return True
    return type(error).__module__.startswith('pymysql.') and _mysql_code(error) in _MYSQL_ELSEWHERE


def _sqlite(error: exc.DBAPIError) -> bool:
    name = getattr(error.orig, 'sqlite_errorname', '')
    return name.startswith(('SQLITE_BUSY', 'SQLITE_LOCKED'))


def _mysql(error: exc.DBAPIError) -> bool:
    code = _mysql_code(error.orig)
    return code in MYSQL_CODES or code == _NO_SAVEPOINT and 'SAVEPOINT' in str(error.orig)


def _mysql_code(error: BaseException | None) -> Any:
    arguments: tuple[Any, ...] = getattr(error, 'args', ())
    return arguments[0] if arguments else None


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
