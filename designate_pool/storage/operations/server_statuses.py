"""The rows of pool_manager_status: the state of each operation on each server, and when it is due.

A row is replaced only by a newer version, so of two writers that read the same row the first wins and the second one's
write is dropped.  Due rows are found by the index (server_id, next_attempt_at); the rows that are done, which are
nearly all, have no next_attempt_at.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.dialects import mysql, postgresql, sqlite

from designate_pool.errors import LostRace
from designate_pool.model import Action, Domain, Outcome, ServerStatus, Status, new_id
from designate_pool.serial import newer
from designate_pool.storage.operations import pool_servers as servers
from designate_pool.storage.sql.columns import storable
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import Entities, all_of_each, chunks, delete_all, lost_race
from designate_pool.storage.sql.schema import ALIVE, domains, name_claims as CLAIMS, pool_manager_status
from designate_pool.storage.zones.domains import BY_IDS, DOMAINS, has_unsettled

TABLE = pool_manager_status
_ERROR_LENGTH = 1024
_IDS_PER_STATEMENT = 5000  # SQLite takes 32766 parameters
_SERVERS_PER_STATEMENT = 100  # two parts of a UNION for each; SQLite takes 500
#: One of so many claimed rows is one of the newest.
_NEWEST_SHARE = 4
_KEY = ('server_id', 'domain_id', 'action')
STATUSES = Entities(ServerStatus, TABLE, as_json=True)
_FIELDS, _SELECT = STATUSES.fields, STATUSES.select
_OF_DOMAINS = _SELECT.where(TABLE.c.domain_id.in_(sa.bindparam('ids', expanding=True)))
_GOING = sa.case(((domains.c.action == Action.DELETE) | (domains.c.status == Status.DELETED), 1), else_=0)
_CLAIMED_ON_NAMES = sa.union_all(
    sa.select(domains.c.name, _GOING, *(TABLE.c[name] for name in _FIELDS)).join_from(domains, TABLE)
    .where(domains.c.name.in_(sa.bindparam('names', expanding=True)), TABLE.c.claimed_until > sa.bindparam('now')),
    sa.select(CLAIMS.c.name, sa.literal_column('0'), *(CLAIMS.c.get(name, sa.null()) for name in _FIELDS))
    .where(CLAIMS.c.name.in_(sa.bindparam('names', expanding=True)), CLAIMS.c.claimed_until > sa.bindparam('now')))
_OF_BOTH = _OF_DOMAINS.where(TABLE.c.server_id.in_(sa.bindparam('server_ids', expanding=True)))
_COUNT = sa.select(sa.func.count()).where(TABLE.c.id.in_(sa.bindparam('ids', expanding=True)))
#: Version comes last: MariaDB assigns from left to right, and the others are guarded by what it was before.
_REPLACED = ('status', 'serial_number', 'seen_at', 'expected_serial', 'last_error', 'attempts', 'next_attempt_at',
             'deadline_at', 'claimed_by', 'claimed_until', 'diverged', 'finding_id', 'incarnation', 'reason',
             'updated_at', 'version')


class Claimed(NamedTuple):
    """A claim on a name on a server.

    :ivar row: the claimed row; None for a call without a row
    :ivar going: whether the row's domain is deleted or being deleted
    """

    name: str
    server_id: str
    going: bool
    row: ServerStatus | None


class Waiting(NamedTuple):
    """How much work waits for a server.

    :ivar has_due: whether :func:`claim_due` would find rows
    :ivar has_unsettled: whether domains have been PENDING or in ERROR for a while
    :ivar changes: see :func:`designate_pool.storage.operations.pool_servers.changes`
    """

    has_due: bool
    has_unsettled: bool
    changes: int | None


def for_domains(tx: Tx, domain_ids: Iterable[str], server_ids: Collection[str] = ()) -> dict[str, list[ServerStatus]]:
    """All rows of these domains, by domain id, each list ordered by server and action; empty where there are none.

    :param server_ids: only rows of these servers; empty for all
    """
    rows_of: dict[str, list[ServerStatus]] = {domain_id: [] for domain_id in domain_ids}
    query = _OF_BOTH if server_ids else _OF_DOMAINS
    for ids in chunks(rows_of, _IDS_PER_STATEMENT):
        for status in STATUSES.all(tx, query, ids=ids, server_ids=list(server_ids)):
            rows_of[status.domain_id].append(status)
    for statuses in rows_of.values():
        statuses.sort(key=operator.attrgetter('server_id', 'action'))
    return rows_of


def with_domains(tx: Tx, domain_ids: Iterable[str],
                 server_ids: Collection[str] = ()) -> tuple[list[ServerStatus], dict[str, Domain]]:
    """All rows of these domains, ordered by server and action; and those that exist, by id, deleted ones included.

    :param server_ids: as of :func:`for_domains`
    """
    rows, existing = list[ServerStatus](), list[Domain]()
    query = _OF_BOTH if server_ids else _OF_DOMAINS
    for ids in chunks(domain_ids):
        # Rows first: a domain read before its rows could be reported at an older serial than is served.
        statuses, part = all_of_each(tx, (STATUSES, query), (DOMAINS, BY_IDS), ids=ids, server_ids=list(server_ids))
        rows += statuses
        existing += part
    rows.sort(key=operator.attrgetter('server_id', 'action'))
    return rows, {domain.id: domain for domain in existing}


def write(tx: Tx, rows: Iterable[ServerStatus], now: datetime) -> int:
    """Insert each new row, and replace the stored one of its (server, domain, action) where that is older.

    The stored row keeps its id and created_at.  A row that was read, and has been deleted or handed over since, is not
    written.

    :param rows: with the versions that they will have; of two with the same key the newer is written
    :returns: how many rows were not written, because another writer was first
    :raises LostRace: when a row would be inserted and its domain has been removed; then nothing is written
    """
    newest: dict[tuple[str, str, str], ServerStatus] = {}
    for row in rows:
        # Every writer uses this order, so that two writers cannot deadlock.
        key = (row.domain_id, row.server_id, row.action.value)
        if key not in newest or newest[key].version <= row.version:
            newest[key] = row
    if not newest:
        return 0
    values = [_values(newest[key], now) for key in sorted(newest)]
    # A row that was read is inserted, with a new id, only where it has been deleted since.
    revived = {row['id'] for row in values if row['read_id'] is not None}
    tx = tx.execution_options(preserve_rowcount=True)
    try:
        done = tx.execute(_UPSERT[tx.dialect.name], values if tx.dialect.name != 'postgresql' else
                          {name: [row[name] for row in values] for name in TABLE.c.keys()})
    except exc.IntegrityError as error:
        if 'foreign key' not in str(error.orig).lower():
            raise
        raise LostRace(what='rows of a domain that was removed') from error
    if tx.dialect.name == 'sqlite':
        return len(newest) - done.rowcount
    if tx.dialect.name == 'postgresql':
        written = set(done.scalars())
        delete_all(tx, TABLE.c.id, sorted(written & revived))
        return len(newest) - len(written - revived)
    # MariaDB counts an insert once, an update twice, and an unchanged row once.  An inserted row has our id; where the
    # row existed, the stored one has kept its own.
    new = [row.id for row in newest.values() if row.created_at is None]
    missing = len(new) - sum(tx.execute(_COUNT, {'ids': ids}).scalar_one() for ids in chunks(new, _IDS_PER_STATEMENT))
    unchanged = max(0, len(newest) + (len(newest) - len(new)) - done.rowcount)
    if unchanged:
        delete_all(tx, TABLE.c.id, sorted(revived))
    return missing + unchanged


def claim_due(tx: Tx, server_rooms: Mapping[str, int], now: datetime, claimed_by: str,
              claimed_until: datetime) -> list[ServerStatus]:
    """Claim rows that are due and not claimed; rows locked by others are skipped.

    If more rows are due than are wanted, most of them are the oldest and some the newest, so that a row that has just
    become due does not wait for the whole backlog.

    :param server_rooms: how many rows to claim at most, by server id
    :returns: the rows with their claims
    """
    due: list[ServerStatus] = []
    for rooms in chunks([(server, room) for server, room in server_rooms.items() if room > 0], _SERVERS_PER_STATEMENT):
        parameters: dict[str, Any] = {'now': now}
        for number, (server, room) in enumerate(rooms):
            newest = room // _NEWEST_SHARE
            parameters |= {f'server{number}': server, f'oldest{number}': room - newest, f'newest{number}': newest}
        due += {row.id: row for row in STATUSES.all(tx, _both_ends(len(rooms)), **parameters)}.values()
    claim: dict[str, Any] = {'claimed_by': claimed_by, 'claimed_until': claimed_until, 'updated_at': now}
    for rows in chunks(due, _IDS_PER_STATEMENT):
        _change(tx, TABLE.c.id.in_([row.id for row in rows]), **claim)
    claimed = [dataclasses.replace(row, version=row.version + 1, **claim) for row in due]
    return sorted(claimed, key=lambda row: (row.next_attempt_at, row.id))


def look(tx: Tx, pool_name: str, server_ids: Collection[str], now: datetime, unwritten: timedelta) -> Waiting:
    """What there is to do in a pool, and whether it has changed, in one statement.

    :param unwritten: since when a domain must be unwritten to be found
    """
    due = sa.exists().where(TABLE.c.server_id.in_(list(server_ids)), TABLE.c.next_attempt_at <= now, _unclaimed(now))
    has_due, unsettled, changes = tx.execute(sa.select(
        due, has_unsettled(pool_name, now, unwritten), servers.changes(pool_name))).one()
    return Waiting(bool(has_due), bool(unsettled), changes)


def claimed_on_names(tx: Tx, names: Iterable[str], now: datetime) -> list[Claimed]:
    """All claims on these *names*, for domains of any generation or for none."""
    claimed: list[Claimed] = []
    for chunk in chunks(dict.fromkeys(names), _IDS_PER_STATEMENT):
        for name, going, *values in tx.execute(_CLAIMED_ON_NAMES, {'names': chunk, 'now': now}):
            row = ServerStatus(*values)
            claimed.append(Claimed(name, row.server_id, bool(going), None if row.domain_id is None else row))
    return claimed


def claim_names(tx: Tx, server_id: str, names: Collection[str], by: str, now: datetime, until: datetime) -> set[str]:
    """Claim those of *names* on a server that nobody has claimed so, for calls without a row; returns these.

    Together with the claims of rows they prevent concurrent calls for one name on one server.

    :raises LostRace: when one of them is claimed concurrently
    """
    # Expired claims of everyone: a program that has died releases none.
    tx.execute(CLAIMS.delete().where(CLAIMS.c.claimed_until <= now))
    taken = {name for part in chunks(names) for name in tx.execute(
        sa.select(CLAIMS.c.name).where(CLAIMS.c.name.in_(part), CLAIMS.c.server_id == server_id)).scalars()}
    free = set(names) - taken
    if free:
        with lost_race('claims of names'):
            tx.execute(CLAIMS.insert(), [{'name': name, 'server_id': server_id, 'claimed_by': by,
                                          'claimed_until': until} for name in sorted(free)])
    return free


def release_names(tx: Tx, server_id: str, names: Collection[str], by: str, until: datetime) -> None:
    """Release the claims of *by* that end at *until*."""
    for part in chunks(sorted(names)):
        tx.execute(CLAIMS.delete().where(CLAIMS.c.name.in_(part), CLAIMS.c.server_id == server_id,
                                         CLAIMS.c.claimed_by == by, CLAIMS.c.claimed_until == until))


def renew_claims(tx: Tx, rows: Sequence[ServerStatus], by: str, now: datetime, until: datetime) -> list[ServerStatus]:
    """Extend the claims of *by* on those of *rows* that it still has; these rows with their new claims."""
    kept: list[ServerStatus] = []
    for chunk in chunks(rows, _IDS_PER_STATEMENT):
        keys = {(row.server_id, row.domain_id, row.action) for row in chunk}
        query = _OF_BOTH.where(TABLE.c.claimed_by == by, TABLE.c.claimed_until > now).with_for_update()
        locked = STATUSES.all(tx, query, ids=sorted({row.domain_id for row in chunk}),
                              server_ids=sorted({row.server_id for row in chunk}))
        mine = [row for row in locked if (row.server_id, row.domain_id, row.action) in keys]
        if mine:
            _change(tx, TABLE.c.id.in_([row.id for row in mine]), claimed_until=until)
        kept += (dataclasses.replace(row, claimed_until=until, version=row.version + 1) for row in mine)
    return kept


def first_waiting_update(tx: Tx, server_id: str) -> ServerStatus | None:
    """The UPDATE row of this server that is due first; None if none is."""
    return STATUSES.one(tx, _SELECT.where(
        TABLE.c.server_id == server_id, TABLE.c.next_attempt_at.is_not(None), TABLE.c.action == Action.UPDATE)
        .order_by(TABLE.c.next_attempt_at).limit(1))


def being_polled(tx: Tx, server_id: str, domain_ids: Iterable[str], now: datetime) -> set[str]:
    """Those of *domain_ids* for which this server is being polled."""
    return {domain_id for ids in chunks(domain_ids, _IDS_PER_STATEMENT) for domain_id in tx.execute(
        sa.select(TABLE.c.domain_id).where(TABLE.c.server_id == server_id, TABLE.c.domain_id.in_(ids),
                                           TABLE.c.action == Action.UPDATE, TABLE.c.deadline_at > now)).scalars()}


def next_due(tx: Tx, server_ids: Iterable[str], after: datetime) -> datetime | None:
    """When the next row of these servers is due after that time; None if none is."""
    at = TABLE.c.next_attempt_at
    times = [time for part in chunks(server_ids, _SERVERS_PER_STATEMENT) for time in tx.execute(sa.select(*(
        # By one look into the index for each server.
        sa.select(sa.func.min(at, type_=at.type)).where(TABLE.c.server_id == server_id, at > after).scalar_subquery()
        for server_id in part))).one()]
    return min((time for time in times if time is not None), default=None)


def wake(tx: Tx, server_id: str, now: datetime) -> int:
    """Make all rows of this server that are due later due now; how many rows that was."""
    later = (TABLE.c.server_id == server_id) & (TABLE.c.next_attempt_at > now) & _unclaimed(now)
    return _change(tx, later, next_attempt_at=now, updated_at=now)


def wake_polled(tx: Tx, server_ids: Collection[str], now: datetime, patience: timedelta) -> int:
    """Make all rows due for which these servers are being polled; how many rows that was.

    They are due now, or once *patience* is over if the server was told of the zone since: it may be fetching it.
    """
    due = 0
    for of_age, at in ((TABLE.c.updated_at <= now - patience, now),
                       (TABLE.c.updated_at > now - patience, now + patience)):
        polled = (TABLE.c.server_id.in_(list(server_ids)) & (TABLE.c.next_attempt_at > at)
                  & (TABLE.c.deadline_at > now) & _unclaimed(now) & of_age)
        due += _change(tx, polled, next_attempt_at=at, deadline_at=None, updated_at=now)
    return due


def wake_domain(tx: Tx, server_id: str, domain_id: str, now: datetime, going: bool = False) -> int:
    """Make this server's rows for a domain due now, or when a call in flight has ended; how many rows that was.

    These are the UPDATE row, and the CREATE row unless it has succeeded; the DELETE row of a domain that is *going*.
    """
    first = Action.DELETE if going else Action.CREATE
    condition = (TABLE.c.action == first) & (TABLE.c.status.is_(None) | (TABLE.c.status != Outcome.SUCCESS))
    if not going:
        condition |= TABLE.c.action == Action.UPDATE
    return _change(tx, TABLE.c.server_id == server_id, TABLE.c.domain_id == domain_id, condition, next_attempt_at=now,
                   updated_at=now)


def is_overtaken(tx: Tx, server_id: str, domain_id: str, serial: int, by: str, now: datetime,
                 is_known: bool = True) -> bool:
    """Whether *by*, which works on a domain on a server at *serial*, has been overtaken by another pool manager.

    It has if its claim has ended, and another one has claimed the domain or a newer serial is expected of the server.

    :param is_known: whether it has also if the server has no rows for the domain any more
    """
    rows = for_domains(tx, [domain_id], [server_id])[domain_id]
    claimed = {row.claimed_by for row in rows if row.claimed_until is not None and row.claimed_until > now}
    if by in claimed:
        return False
    return bool(claimed - {None}) or is_known and not rows or any(newer(row.expected_serial, serial) for row in rows)


def release(tx: Tx, claimed_by: str, server_ids: Iterable[str]) -> int:
    """Release all claims of *claimed_by* on these servers; how many rows that was."""
    # The rows are searched without locks, by the index of due rows, and then updated by id.
    ids = tx.execute(sa.select(TABLE.c.id).where(
        TABLE.c.server_id.in_(list(server_ids)), TABLE.c.next_attempt_at.is_not(None),
        TABLE.c.claimed_by == claimed_by)).scalars().all()
    return sum(_change(tx, TABLE.c.id.in_(chunk), TABLE.c.claimed_by == claimed_by, claimed_by=None, claimed_until=None)
               for chunk in chunks(ids, _IDS_PER_STATEMENT))


def release_claims(tx: Tx, rows: Sequence[ServerStatus]) -> int:
    """Release the claims that *rows* have, unless they have changed; how many were released."""
    return sum(_change(tx, TABLE.c.id == row.id, TABLE.c.claimed_by == row.claimed_by,
                       TABLE.c.claimed_until == row.claimed_until, claimed_by=None, claimed_until=None) for row in rows)


def hand_over(tx: Tx, domain_id: str, to_id: str, pool_id: str | None, now: datetime) -> int:
    """Give the rows of a domain for a pool's servers, or for all for None, to another domain; how many there were."""
    of_pool = sa.true() if pool_id is None else TABLE.c.server_id.in_(servers.ids_of(pool_id))
    return _change(tx, TABLE.c.domain_id == domain_id, of_pool, domain_id=to_id, updated_at=now)


def forget(tx: Tx, domain_ids: Iterable[str]) -> int:
    """Delete all rows of these domains; how many there were."""
    return sum(tx.execute(TABLE.delete().where(TABLE.c.domain_id.in_(ids))).rowcount
               for ids in chunks(sorted(domain_ids), _IDS_PER_STATEMENT))


def remove(tx: Tx, ids: Iterable[str]) -> None:
    """Delete rows by their ids."""
    delete_all(tx, TABLE.c.id, sorted(ids))


def purge_domains(tx: Tx, domain_ids: Iterable[str], server_ids: Collection[str], now: datetime) -> int:
    """Delete these domains' rows on these servers, but for those that are due or claimed; how many were deleted.

    Such a row was restarted since its domain was found to be deleted everywhere; or the domain was restored.
    """
    return sum(tx.execute(_PURGE, {'ids': ids, 'server_ids': list(server_ids), 'now': now}).rowcount
               for ids in chunks(sorted(set(domain_ids)), _IDS_PER_STATEMENT))


def _change(tx: Tx, *conditions: Any, **values: Any) -> int:
    """Write values to the rows that meet conditions, which outdates what was read of them; how many rows that was."""
    return tx.execute(TABLE.update().where(*conditions).values(version=TABLE.c.version + 1, **values)).rowcount


def _values(row: ServerStatus, now: datetime) -> dict[str, Any]:
    values = STATUSES.values(row)
    values['read_id'] = None if row.created_at is None else row.id
    if row.created_at is not None:
        values['id'] = new_id()
    values['action'] = row.action.value
    values['status'] = row.status and row.status.value
    values['created_at'] = row.created_at or now
    values['updated_at'] = now
    if row.last_error is not None:
        values['last_error'] = storable(row.last_error, _ERROR_LENGTH)
    return values


def _unclaimed(now: datetime | sa.BindParameter[Any]) -> sa.ColumnElement[bool]:
    return TABLE.c.claimed_until.is_(None) | (TABLE.c.claimed_until < now)


# A case, as SQLite would take IS NULL for the way in, by the index of due rows: most rows of a server are not due.
_IS_DUE = sa.case((TABLE.c.next_attempt_at.is_not(None), 1), else_=0)
_PURGE = TABLE.delete().where(TABLE.c.domain_id.in_(sa.bindparam('ids', expanding=True)),
                              TABLE.c.server_id.in_(sa.bindparam('server_ids', expanding=True)),
                              _IS_DUE == 0, _unclaimed(sa.bindparam('now')),
                              sa.exists().where(domains.c.id == TABLE.c.domain_id, domains.c.deleted != ALIVE))


@functools.lru_cache(maxsize=16)
def _both_ends(servers: int) -> sa.CompoundSelect[Any]:
    """The oldest and the newest due rows of so many servers; a row may be in both.

    Its parameters are ``now``, and for each server, by number, its id and how many rows of each end.
    """
    at, now = TABLE.c.next_attempt_at, sa.bindparam('now', type_=TABLE.c.next_attempt_at.type)
    due = _SELECT.where(at <= now, _unclaimed(now)).with_for_update(skip_locked=True)
    queries = [due.where(TABLE.c.server_id == sa.bindparam(f'server{number}')).order_by(order)
               .limit(sa.bindparam(f'{end}{number}', type_=sa.Integer))
               for number in range(servers) for end, order in (('oldest', at), ('newest', at.desc()))]
    # As subqueries: SQLite allows no ORDER BY and LIMIT directly in a part of a UNION.
    return sa.union_all(*(sa.select(query.subquery()) for query in queries))


def _upsert_where_newer(insert: Any) -> Any:
    return insert.on_conflict_do_update(index_elements=_KEY, set_={name: insert.excluded[name] for name in _REPLACED},
                                        where=TABLE.c.version < insert.excluded.version)


def _upsert_if_newer(insert: mysql.Insert) -> mysql.Insert:
    newer = insert.inserted.version > TABLE.c.version
    return insert.on_duplicate_key_update([(name, sa.func.if_(newer, insert.inserted[name], TABLE.c[name]))
                                           for name in _REPLACED])


def _insert_unless_deleted() -> sqlite.Insert:
    """Of a row that was read, nothing if its domain does not have it any more; SQLite does not say what it has
    inserted."""
    read_id = sa.bindparam('read_id', type_=TABLE.c.id.type)
    values = {column.name: sa.bindparam(column.name, type_=column.type) for column in TABLE.c}
    source = sa.select(*values.values()).where(read_id.is_(None) | sa.exists().where(
        TABLE.c.id == read_id, TABLE.c.domain_id == values['domain_id']))
    return sqlite.insert(TABLE).from_select(TABLE.c.keys(), source)


def _insert_from_arrays() -> postgresql.Insert:
    # One array for each column: psycopg2 has no other way to insert many rows in one statement with ON CONFLICT.
    arrays = [sa.bindparam(column.name, type_=sa.ARRAY(
        sa.Text() if isinstance(column.type, sa.String) else column.type)) for column in TABLE.c]
    source = sa.func.unnest(*arrays).table_valued(*TABLE.c.keys()).render_derived()
    return postgresql.insert(TABLE).from_select(TABLE.c.keys(), sa.select(*source.c))


def _compiled(statement: Any, dialect: Callable[..., sa.Dialect]) -> sa.TextClause:
    """*statement* as text with typed parameters.

    SQLAlchemy compiles an upsert every time, which takes longer than executing it.
    """
    compiled = statement.compile(dialect=dialect(paramstyle='named'))
    text = sa.text(str(compiled).replace('::', r'\:\:'))
    return text.bindparams(*(sa.bindparam(name, type_=bind.type) for name, bind in compiled.binds.items()))


_UPSERT = {
    'sqlite': _compiled(_upsert_where_newer(_insert_unless_deleted()), sqlite.dialect),
    'postgresql': _compiled(_upsert_where_newer(_insert_from_arrays()).returning(TABLE.c.id), postgresql.dialect),
    'mysql': _compiled(_upsert_if_newer(mysql.insert(TABLE)), mysql.dialect),
}
