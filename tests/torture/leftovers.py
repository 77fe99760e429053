"""What must not be in the database any more when all is done: read from its tables by plain SQL.

What servers must not keep any more: see :func:`tests.torture.name_servers.leftovers`.
"""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Callable, Collection

import sqlalchemy as sa

from testing.processes import patience

#: Seconds for which a claim or a due row may be left alone.
_LATE = 30
#: What is left over, and the statement that finds it, by the table in which it is.
_QUESTIONS = (
    ('pool_manager_status', 'rows of zones that were deleted',
     "SELECT d.name, s.action, s.status FROM pool_manager_status s JOIN domains d ON d.id = s.domain_id "
     "WHERE d.action = 'DELETE' OR d.status = 'DELETED'"),
    ('pool_manager_status', 'claims that nobody gave back, and rows that are due',
     'SELECT d.name, s.action, s.server_id, s.status, s.next_attempt_at, s.claimed_by, s.claimed_until '
     'FROM pool_manager_status s JOIN domains d ON d.id = s.domain_id '
     'WHERE s.claimed_by IS NOT NULL AND s.claimed_until < :before OR s.next_attempt_at < :before'),
    ('pool_manager_status', 'rows of servers that do not exist',
     'SELECT s.server_id FROM pool_manager_status s WHERE s.server_id NOT IN (SELECT id FROM pool_servers)'),
    ('domains', 'zones that are neither ACTIVE nor DELETED',
     "SELECT name, action, status FROM domains WHERE status NOT IN ('ACTIVE', 'DELETED') OR action <> 'NONE'"),
    ('domains', 'names with two living zones',
     "SELECT name FROM domains WHERE deleted = '0' GROUP BY name HAVING COUNT(*) > 1"),
    ('records', 'records of living zones that are not done',
     "SELECT d.name, r.task FROM records r JOIN domains d ON d.id = r.domain_id "
     "WHERE d.deleted = '0' AND r.status IN ('PENDING', 'ERROR')"),
    ('owned_rrsets', 'marks of zones that were deleted',
     "SELECT d.name FROM owned_rrsets o JOIN domains d ON d.id = o.domain_id "
     "WHERE d.status = 'DELETED' AND NOT EXISTS (SELECT 1 FROM domains l WHERE l.name = d.name AND l.deleted = '0') "
     "AND NOT (o.type = 'NS' AND o.name = d.name AND d.name IN :shared)"),
)


def find(database_url: str, shared: Collection[str] = (), seconds: float = 30.0) -> list[tuple[str, str]]:
    """Tables, and what is left over in each; what is gone within *seconds* is not.

    :param shared: zones that may stay on a server, for somebody else has records there; their NS records remain ours
    """
    return patiently(lambda: _look(database_url, shared), seconds)


def patiently(look: Callable[[], list[tuple[str, str]]], seconds: float = 30.0) -> list[tuple[str, str]]:
    """What is found, as soon as that is nothing, or after *seconds*, which are more on a slow or busy machine."""
    until = time.monotonic() + patience(seconds)
    while (found := look()) and time.monotonic() < until:
        time.sleep(1)
    return found


def _look(database_url: str, shared: Collection[str]) -> list[tuple[str, str]]:
    before = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None) - datetime.timedelta(seconds=_LATE)
    engine = sa.create_engine(database_url)
    found = []
    with contextlib.ExitStack() as end:
        end.callback(engine.dispose)
        connection = end.enter_context(engine.connect())
        for table, what, statement in _QUESTIONS:
            query = sa.text(statement)
            if ':before' in statement:
                query = query.bindparams(sa.bindparam('before', before, sa.DateTime))
            if ':shared' in statement:
                query = query.bindparams(sa.bindparam('shared', list(shared), sa.String, expanding=True))
            rows = connection.execute(query).all()
            if rows:
                found.append((table, f'{what}: {", ".join(" ".join(map(str, row)) for row in rows[:5])}'))
    return found
