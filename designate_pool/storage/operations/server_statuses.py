"""The rows of pool_manager_status: what each server has done of what was asked of it, and what is due when.

A row is written only over an older version of itself, so of two writers that started from the same row the first wins
and the second's write is dropped.  What is due is found by the index (server_id, next_attempt_at); the rows that are
done, which are nearly all, have no next_attempt_at and cost nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.dialects import mysql, postgresql, sqlite

from designate_pool.errors import LostRace
from designate_pool.model import Action, Outcome, ServerStatus, Status
from designate_pool.serial import newer
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import domains, name_claims, pool_manager_status

T = TypeVar('T')

TABLE = pool_manager_status
_ERROR_LENGTH = 1024
_IDS_PER_STATEMENT = 5000  # SQLite takes 32766 parameters
_SERVERS_PER_STATEMENT = 100  # with two parts each of a UNION, of which SQLite takes 500
#: One in so many of the rows that are claimed is of the newest.
_NEWEST_SHARE = 4
_KEY = ('server_id', 'domain_id', 'action')
_FIELDS = tuple(field.name for field in dataclasses.fields(ServerStatus))
_SELECT = sa.select(*(TABLE.c[name] for name in _FIELDS))
_OF_DOMAINS = _SELECT.where(TABLE.c.domain_id.in_(sa.bindparam('ids', expanding=True)))
_GOING = sa.case(((domains.c.action == Action.DELETE) | (domains.c.status == Status.DELETED), 1), else_=0)
_CLAIMED_ON_NAMES = sa.union_all(
    sa.select(domains.c.name, _GOING, *(TABLE.c[name] for name in _FIELDS)).join_from(domains, TABLE)
    .where(domains.c.name.in_(sa.bindparam('names', expanding=True)), TABLE.c.claimed_until > sa.bindparam('now')),
    sa.select(name_claims.c.name, sa.literal_column('0'), *(name_claims.c.get(name, sa.null()) for name in _FIELDS))
    .where(name_claims.c.name.in_(sa.bindparam('names', expanding=True)),
           name_claims.c.claimed_until > sa.bindparam('now')))
_OF_BOTH = _OF_DOMAINS.where(TABLE.c.server_id.in_(sa.bindparam('server_ids', expanding=True)))
#: Version comes last: MariaDB assigns from left to right, and the others are guarded by what it was before.
_REPLACED = ('status', 'serial_number', 'expected_serial', 'last_error', 'attempts', 'next_attempt_at', 'deadline_at',
             'claimed_by', 'claimed_until', 'diverged', 'finding_id', 'incarnation', 'reason', 'updated_at',
             'version')


class Claimed(NamedTuple):
    """A name that somebody has claimed on a server.

    :ivar row: that is claimed; None where there is none for the call
    :ivar going: whether the row's domain is deleted, or about to be
    """

    name: str
    server_id: str
    going: bool
    row: ServerStatus | None


def for_domains(tx: Tx, domain_ids: Iterable[str], server_ids: Collection[str] = ()) -> dict[str, list[ServerStatus]]:
    """All rows of these domains, by domain, each list by server and action; an empty list where there are none.

    :param server_ids: of these servers only; without any of all
    """
    found: dict[str, list[ServerStatus]] = {domain_id: [] for domain_id in domain_ids}
    query, servers = (_OF_BOTH, {'server_ids': list(server_ids)}) if server_ids else (_OF_DOMAINS, {})
    for ids in _chunks(list(found), _IDS_PER_STATEMENT):
        for status in _statuses(tx, query, {'ids': ids, **servers}):
            found[status.domain_id].append(status)
    for statuses in found.values():
        statuses.sort(key=lambda status: (status.server_id, status.action))
    return found


def write(tx: Tx, rows: Iterable[ServerStatus], now: datetime) -> int:
    """Insert each row, or put it in the place of the stored one of its (server, domain, action) if that is older.

    The stored row keeps its id and created_at.

    :param rows: with the version that each is to have afterwards; of two of the same key the newer counts
    :returns: how many rows that were read before were not written, since somebody else has written them meanwhile
    :raises LostRace: when a row is new, and its domain was removed meanwhile; nothing is written then
    """
    newest: dict[tuple[str, str, str], ServerStatus] = {}
    for row in rows:
        # In this order on every connection, so that two writers do not wait for each other crosswise.
        key = (row.domain_id, row.server_id, row.action.value)
        if key not in newest or newest[key].version <= row.version:
            newest[key] = row
    if not newest:
        return 0
    values = [_values(newest[key], now) for key in sorted(newest)]
    tx = tx.execution_options(preserve_rowcount=True)
    try:
        done = tx.execute(_UPSERT[tx.dialect.name], values if tx.dialect.name != 'postgresql' else
                          {name: [row[name] for row in values] for name in TABLE.c.keys()})
    except exc.IntegrityError as error:
        if 'foreign key' not in str(error.orig).lower():
            raise
        raise LostRace(what='rows of a domain that was removed') from error
    if tx.dialect.name != 'mysql':
        return len(newest) - done.rowcount
    # MariaDB counts an insert once, an update twice, and a row that stays as it is once: those that were to be inserted
    # and are there are told by their ids, since a row that was there before keeps its own.
    new = [row.id for row in newest.values() if row.created_at is None]
    missing = len(new) - sum(tx.execute(sa.select(sa.func.count()).where(TABLE.c.id.in_(ids))).scalar_one()
                             for ids in _chunks(new, _IDS_PER_STATEMENT))
    return missing + max(0, len(newest) + (len(newest) - len(new)) - done.rowcount)


def claim_due(tx: Tx, server_rooms: Mapping[str, int], now: datetime, claimed_by: str,
              claimed_until: datetime) -> list[ServerStatus]:
    """Take rows that are due and that nobody has claimed; pass over rows that others are taking.

    Where more are due than there is room for, most are the oldest and some the newest: what has just come due does not
    wait for all that has waited long.

    :param server_rooms: how many rows to take at most, by server id
    :returns: the rows as they now are
    """
    due: list[ServerStatus] = []
    for rooms in _chunks([(server, room) for server, room in server_rooms.items() if room > 0], _SERVERS_PER_STATEMENT):
        found = _statuses(tx, _union(part for server, room in rooms for part in _both_ends(server, room, now)))
        due += {row.id: row for row in found}.values()
    claim: dict[str, Any] = {'claimed_by': claimed_by, 'claimed_until': claimed_until, 'updated_at': now}
    for rows in _chunks(due, _IDS_PER_STATEMENT):
        tx.execute(TABLE.update().where(TABLE.c.id.in_([row.id for row in rows]))
                   .values(version=TABLE.c.version + 1, **claim))
    claimed = [dataclasses.replace(row, version=row.version + 1, **claim) for row in due]
    return sorted(claimed, key=lambda row: (row.next_attempt_at, row.id))


def claimed_on_names(tx: Tx, names: Iterable[str], now: datetime) -> list[Claimed]:
    """What any pool manager has claimed for these *names*, for domains of any generation or for none."""
    found: list[Claimed] = []
    for some in _chunks(list(dict.fromkeys(names)), _IDS_PER_STATEMENT):
        for name, going, *values in tx.execute(_CLAIMED_ON_NAMES, {'names': some, 'now': now}):
            row = ServerStatus(*values)
            found.append(Claimed(name, row.server_id, bool(going), None if row.domain_id is None else row))
    return found


def renew_claims(tx: Tx, rows: Sequence[ServerStatus], by: str, now: datetime, until: datetime) -> list[ServerStatus]:
    """Have those of *rows* that are still claimed by *by* stay so until a later time; these, as they are then."""
    kept: list[ServerStatus] = []
    for some in _chunks(rows, _IDS_PER_STATEMENT):
        wanted = {(row.server_id, row.domain_id, row.action) for row in some}
        query = _OF_BOTH.where(TABLE.c.claimed_by == by, TABLE.c.claimed_until > now).with_for_update()
        found = _statuses(tx, query, {'ids': sorted({row.domain_id for row in some}),
                                      'server_ids': sorted({row.server_id for row in some})})
        mine = [row for row in found if (row.server_id, row.domain_id, row.action) in wanted]
        if mine:
            tx.execute(TABLE.update().where(TABLE.c.id.in_([row.id for row in mine])).values(
                claimed_until=until, version=TABLE.c.version + 1))
        kept += (dataclasses.replace(row, claimed_until=until, version=row.version + 1) for row in mine)
    return kept


def any_waiting(tx: Tx, server_id: str) -> ServerStatus | None:
    """The UPDATE row that this server is to try first, or None when nothing waits for it."""
    query = (_SELECT.where(TABLE.c.server_id == server_id, TABLE.c.next_attempt_at.is_not(None),
                           TABLE.c.action == Action.UPDATE).order_by(TABLE.c.next_attempt_at).limit(1))
    return next(_statuses(tx, query), None)


def polled(tx: Tx, server_id: str, domain_ids: Iterable[str], now: datetime) -> set[str]:
    """Those of *domain_ids* that this server is being polled for."""
    return {found for ids in _chunks(list(domain_ids), _IDS_PER_STATEMENT) for found in tx.execute(
        sa.select(TABLE.c.domain_id).where(TABLE.c.server_id == server_id, TABLE.c.domain_id.in_(ids),
                                           TABLE.c.action == Action.UPDATE, TABLE.c.deadline_at > now)).scalars()}


def wake(tx: Tx, server_id: str, now: datetime) -> int:
    """Make all that waits for a later try on this server due now; how many rows that was."""
    later = (TABLE.c.server_id == server_id) & (TABLE.c.next_attempt_at > now) & _unclaimed(now)
    return tx.execute(TABLE.update().where(later).values(next_attempt_at=now, updated_at=now,
                                                         version=TABLE.c.version + 1)).rowcount


def wake_domain(tx: Tx, server_id: str, domain_id: str, now: datetime, going: bool = False) -> int:
    """Have this server tried for this domain now, or once more when a call that is under way has ended; how many rows.

    That is the UPDATE row, and the CREATE row where that has not succeeded; of a domain that is *going* the DELETE row.
    """
    first = Action.DELETE if going else Action.CREATE
    wanted = (TABLE.c.action == first) & (TABLE.c.status.is_(None) | (TABLE.c.status != Outcome.SUCCESS))
    if not going:
        wanted |= TABLE.c.action == Action.UPDATE
    return tx.execute(TABLE.update().where(TABLE.c.server_id == server_id, TABLE.c.domain_id == domain_id, wanted)
                      .values(next_attempt_at=now, updated_at=now, version=TABLE.c.version + 1)).rowcount


def is_overtaken(tx: Tx, server_id: str, domain_id: str, serial: int, by: str, now: datetime,
                 is_known: bool = True) -> bool:
    """Whether *by*, who is at work on a domain on a server at *serial*, has lost it to somebody else.

    That is so when its claim is over and another one's is there, or more is wanted of the server than was then.

    :param is_known: whether it is so as well when the server has nothing to do with the domain any more
    """
    rows = for_domains(tx, [domain_id], [server_id])[domain_id]
    claimed = {row.claimed_by for row in rows if row.claimed_until is not None and row.claimed_until > now}
    if by in claimed:
        return False
    return bool(claimed - {None}) or is_known and not rows or any(newer(row.expected_serial, serial) for row in rows)


def release(tx: Tx, claimed_by: str, server_ids: Iterable[str]) -> int:
    """Give back all that *claimed_by* has claimed on these servers; how many rows that was."""
    # It is searched for without locks, among what is due or tried again later, and what was found is changed by id.
    ids = tx.execute(sa.select(TABLE.c.id).where(TABLE.c.server_id.in_(list(server_ids)),
                                                 TABLE.c.next_attempt_at.is_not(None),
                                                 TABLE.c.claimed_by == claimed_by)).scalars().all()
    released = 0
    for some in _chunks(ids, _IDS_PER_STATEMENT):
        mine = TABLE.c.id.in_(some) & (TABLE.c.claimed_by == claimed_by)
        released += tx.execute(TABLE.update().where(mine).values(claimed_by=None, claimed_until=None,
                                                                 version=TABLE.c.version + 1)).rowcount
    return released


def release_claims(tx: Tx, rows: Sequence[ServerStatus]) -> int:
    """Release the claims that *rows* have, as far as they are the same still; how many those were."""
    return sum(tx.execute(TABLE.update().where(
        TABLE.c.id == row.id, TABLE.c.claimed_by == row.claimed_by, TABLE.c.claimed_until == row.claimed_until).values(
            claimed_by=None, claimed_until=None, version=TABLE.c.version + 1)).rowcount for row in rows)


def purge_domains(tx: Tx, domain_ids: Iterable[str], server_ids: Collection[str]) -> int:
    """Forget these domains' rows on these servers; how many there were."""
    return sum(tx.execute(TABLE.delete().where(TABLE.c.domain_id.in_(ids),
                                               TABLE.c.server_id.in_(list(server_ids)))).rowcount
               for ids in _chunks(sorted(set(domain_ids)), _IDS_PER_STATEMENT))


def _statuses(tx: Tx, query: sa.Executable, parameters: Mapping[str, Any] | None = None) -> Iterator[ServerStatus]:
    return (ServerStatus(*row) for row in tx.execute(query, parameters))


def _values(row: ServerStatus, now: datetime) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in _FIELDS}
    values['action'] = row.action.value
    values['status'] = row.status and row.status.value
    values['created_at'] = row.created_at or now
    values['updated_at'] = now
    if row.last_error is not None:
        values['last_error'] = row.last_error[:_ERROR_LENGTH]
    return values


def _unclaimed(now: datetime) -> sa.ColumnElement[bool]:
    return TABLE.c.claimed_until.is_(None) | (TABLE.c.claimed_until < now)


def _both_ends(server: str, room: int, now: datetime) -> Iterator[sa.Select[Any]]:
    """The oldest rows that are due, and the newest; the same may be among both."""
    newest = room // _NEWEST_SHARE
    at = TABLE.c.next_attempt_at
    for order, count in ((at, room - newest), (at.desc(), newest)):
        if count:
            yield (_SELECT.where(TABLE.c.server_id == server, at <= now, _unclaimed(now)).order_by(order).limit(count)
                   .with_for_update(skip_locked=True))


def _union(queries: Iterable[sa.Select[Any]]) -> sa.CompoundSelect[Any]:
    # Each as a subquery: SQLite allows no ORDER BY and LIMIT in a part of a UNION itself.
    return sa.union_all(*(sa.select(query.subquery()) for query in queries))


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start:start + size] for start in range(0, len(items), size))


def _upsert_where_newer(insert: Any) -> Any:
    return insert.on_conflict_do_update(index_elements=_KEY, set_={name: insert.excluded[name] for name in _REPLACED},
                                        where=TABLE.c.version < insert.excluded.version)


def _upsert_if_newer(insert: mysql.Insert) -> mysql.Insert:
    newer = insert.inserted.version > TABLE.c.version
    return insert.on_duplicate_key_update([(name, sa.func.if_(newer, insert.inserted[name], TABLE.c[name]))
                                           for name in _REPLACED])


def _insert_from_arrays() -> postgresql.Insert:
    # One array for each column; psycopg2 has no other way to put many rows into one INSERT with ON CONFLICT.
    arrays = []
    for column in TABLE.c:
        kind = sa.Text() if isinstance(column.type, sa.String) else column.type
        arrays.append(sa.bindparam(column.name, type_=sa.ARRAY(kind)))
    source = sa.func.unnest(*arrays).table_valued(*TABLE.c.keys()).render_derived()
    return postgresql.insert(TABLE).from_select(TABLE.c.keys(), sa.select(*source.c))


def _compiled(statement: Any, dialect: Callable[..., sa.Dialect]) -> sa.TextClause:
    """*statement* as text with typed parameters.

    SQLAlchemy compiles an upsert each time anew, which takes longer than all else that is done for it.
    """
    compiled = statement.compile(dialect=dialect(paramstyle='named'))
    text = sa.text(str(compiled).replace('::', r'\:\:'))
    return text.bindparams(*(sa.bindparam(name, type_=bind.type) for name, bind in compiled.binds.items()))


_UPSERT = {
    'sqlite': _compiled(_upsert_where_newer(sqlite.insert(TABLE)), sqlite.dialect),
    'postgresql': _compiled(_upsert_where_newer(_insert_from_arrays()), postgresql.dialect),
    'mysql': _compiled(_upsert_if_newer(mysql.insert(TABLE)), mysql.dialect),
}
