"""Recordsets and their records, as :class:`designate_pool.model.RecordSet`.

Deleted recordsets, and records that are deleted or being deleted, are left out when reading.  Whoever writes has locked
the domain.
"""

from __future__ import annotations

import collections
import itertools
import operator
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from designate_pool.deadline import Turns
from designate_pool.model import PageRequest, Record, RecordSet, Status, Task, new_ids
from designate_pool.model.names import at_or_above
from designate_pool.protocol.names_and_rdata import lies_in
from designate_pool.serial import HALF, SPACE
from designate_pool.storage.sql import bulk, pages
from designate_pool.storage.sql.bulk import Insertion
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import CHUNK, chunks, count
from designate_pool.storage.sql.schema import ALIVE, domains, records, recordsets
from designate_pool.storage.zones import zone_ancestry, zone_shares

#: The first label of names at which a parent finds CDS and CDNSKEY records of a zone elsewhere (RFC 9615 section 4.1).
SIGNAL = '_dsboot'
_SIGNAL_TYPES = ('CDS', 'CDNSKEY')
_SET_FIELDS = ('id', 'domain_id', 'name', 'type', 'ttl', 'description', 'managed', 'version', 'created_at',
               'updated_at', 'project_id', 'given_name', 'lock_reason', 'locked_by_admin')
#: The order of a recordset's records.
_BY_DATA = operator.attrgetter('data')
_SET_COLUMNS = tuple(recordsets.c[name] for name in _SET_FIELDS)
_RECORD_COLUMNS = (records.c.data, records.c.id, records.c.serial_number, records.c.task, records.c.status)
_KEPT = sa.and_(records.c.task != Task.DELETE, records.c.status != Status.DELETED)
_WITH_RECORDS = (
    sa.select(*_SET_COLUMNS, *(column.label(f'record_{column.name}') for column in _RECORD_COLUMNS))
    .select_from(recordsets.outerjoin(records, sa.and_(records.c.recordset_id == recordsets.c.id, _KEPT)))
    .where(recordsets.c.deleted == ALIVE))
_BY_ID = _WITH_RECORDS.where(recordsets.c.id == sa.bindparam('id'), recordsets.c.domain_id == sa.bindparam('domain_id'))
_BY_IDS = _WITH_RECORDS.where(recordsets.c.id.in_(sa.bindparam('ids', expanding=True)))
_AT_NAMES = _WITH_RECORDS.where(
    recordsets.c.domain_id.in_(sa.bindparam('ids', expanding=True)),
    recordsets.c.name.in_(sa.bindparam('or_above', expanding=True)),
    sa.or_(recordsets.c.type == 'DNAME', recordsets.c.name.in_(sa.bindparam('names', expanding=True))))
_OF_DOMAIN = sa.select(*_SET_COLUMNS).where(recordsets.c.domain_id == sa.bindparam('domain_id'),
                                            recordsets.c.deleted == ALIVE)
_RECORDS_OF = (sa.select(records.c.recordset_id, *_RECORD_COLUMNS)
               .where(records.c.recordset_id.in_(sa.bindparam('ids', expanding=True)), _KEPT))
#: Rows held in memory at once while a result is streamed.
_AT_ONCE = 2000
_UNSETTLED = records.c.status.in_((Status.PENDING, Status.ERROR))
_SORT_KEYS = {name: recordsets.c[name] for name in ('name', 'id', 'type', 'created_at', 'updated_at', 'ttl',
                                                    'description')}
#: Up to this many domains and recordsets in them, the recordsets are read by domain and sorted; above, all recordsets
#: are read in order until a page of them belongs to these domains.
_FEW, _FEW_SETS = 2000, 5000


def get(tx: Tx, domain_id: str, recordset_id: str) -> RecordSet | None:
    """A recordset with its records; None when the domain has none with this id."""
    matches = _read(tx, _BY_ID, id=recordset_id, domain_id=domain_id)
    return matches[0] if matches else None


def get_many(tx: Tx, ids: Iterable[str]) -> dict[str, RecordSet]:
    """Those of *ids* that exist."""
    return {recordset.id: recordset for part in chunks(ids) for recordset in _read(tx, _BY_IDS, ids=part)}


def deleted(tx: Tx, domain_id: str, recordset_id: str, serial: int) -> RecordSet | None:
    """A recordset that was deleted, with the records deleted with it; *serial* is the domain's since then."""
    row = tx.execute(sa.select(*_SET_COLUMNS).where(recordsets.c.id == recordset_id, recordsets.c.deleted != ALIVE,
                                                    recordsets.c.domain_id == domain_id)).first()
    gone = [Record(*row) for row in tx.execute(sa.select(*_RECORD_COLUMNS).where(
        records.c.recordset_id == recordset_id, records.c.serial_number == serial))]
    return RecordSet(**row._mapping, records=tuple(sorted(gone, key=_BY_DATA))) if row is not None and gone else None


def last_deleted(tx: Tx, domain_id: str, names: Iterable[str]) -> dict[tuple[str, str], RecordSet]:
    """The recordset that was deleted last of each name and type in a domain, without records."""
    rows = [row for part in chunks(names) for row in tx.execute(sa.select(*_SET_COLUMNS).where(
        recordsets.c.domain_id == domain_id, recordsets.c.name.in_(part), recordsets.c.deleted != ALIVE))]
    return {(row.name, row.type): RecordSet(**row._mapping)
            for row in sorted(rows, key=operator.attrgetter('updated_at'))}


def of_domain(tx: Tx, domain_id: str) -> list[RecordSet]:
    """Every recordset of a domain."""
    return _read(tx, _WITH_RECORDS.where(recordsets.c.domain_id == domain_id))


def at_names(tx: Tx, domain_id: str, names: Iterable[str]) -> list[RecordSet]:
    """Every recordset that has one of *names*, and the DNAMEs above them."""
    return _at_or_above(tx, {(domain_id, name) for name in names})


def at_names_of(tx: Tx, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], list[RecordSet]]:
    """Every recordset that is in a domain at a name, and the DNAMEs above it, by the domain's id and the name."""
    at_name: dict[tuple[str, str], list[RecordSet]] = {key: [] for key in wanted}
    for recordset in _at_or_above(tx, at_name.keys()):
        if (recordset.domain_id, recordset.name) in at_name:
            at_name[recordset.domain_id, recordset.name].append(recordset)
        if recordset.type == 'DNAME':
            for (domain_id, name), sets in at_name.items():
                if domain_id == recordset.domain_id and name != recordset.name and lies_in(name, recordset.name):
                    sets.append(recordset)
    return at_name


def _at_or_above(tx: Tx, wanted: Collection[tuple[str, str]]) -> list[RecordSet]:
    """The recordsets at names of domains, and the DNAMEs above; and some of the same names of others of the domains."""
    ids = sorted({domain_id for domain_id, _ in wanted})
    own = {name for _, name in wanted}
    every = dict.fromkeys(upper for name in Turns().between(own) for upper in at_or_above(name))
    return [recordset for part in chunks(every)
            for recordset in _read(tx, _AT_NAMES, ids=ids, or_above=part, names=[name for name in part if name in own])]


def some_below(tx: Tx, domain_id: str, name: str, most: int) -> list[RecordSet]:
    """Some recordsets of a domain below a name, without their records."""
    return [RecordSet(lower, rtype, domain_id=domain_id)
            for lower, rtype in zone_ancestry.recordsets_at_or_below(tx, [domain_id], name, most=most)
            if lower != name]


def is_signal(name: str, rtype: str) -> bool:
    """Whether a recordset is one at a name of :data:`SIGNAL`, and tells parents of the keys of another zone."""
    return rtype in _SIGNAL_TYPES and name.startswith(f'{SIGNAL}.')


def one_of_types(tx: Tx, domain_id: str, types: Collection[str]) -> RecordSet | None:
    """A recordset of a domain that is of one of these types, without its records; None if there is none.

    Those of :func:`is_signal` do not count.
    """
    row = tx.execute(sa.select(recordsets.c.name, recordsets.c.type).where(
        recordsets.c.domain_id == domain_id, recordsets.c.deleted == ALIVE, recordsets.c.type.in_(types),
        ~(recordsets.c.type.in_(_SIGNAL_TYPES) & recordsets.c.name.startswith(f'{SIGNAL}.', autoescape=True)))
        .limit(1)).first()
    return None if row is None else RecordSet(row.name, row.type, domain_id=domain_id)


def at_apex(tx: Tx, domain_ids: Iterable[str], rtype: str) -> list[RecordSet]:
    """The recordsets of one type at the apex of their domains."""
    return _read(tx, _WITH_RECORDS.join(domains, domains.c.id == recordsets.c.domain_id)
                 .where(recordsets.c.domain_id.in_(list(domain_ids)), recordsets.c.name == domains.c.name,
                        recordsets.c.type == rtype))


def find(tx: Tx, domain_id: str, page: PageRequest, soa_status: Status) -> list[RecordSet]:
    """Recordsets that match.  The SOA has no stored record, so its data never matches.

    :param page: searched by the keys of :data:`_CRITERIA`; in names, data and descriptions ``*`` matches any text
    :param soa_status: the status of the SOA
    """
    pages.refuse_unknown(page.criterion, _CRITERIA)
    return _with_records(tx, pages.one_page(
        tx, _OF_DOMAIN, recordsets.c.id, _SORT_KEYS, page,
        among=(recordsets.c.domain_id == domain_id,), parameters={'domain_id': domain_id},
        conditions=[_CRITERIA[key](value, soa_status) for key, value in page.criterion.items()]))


def find_everywhere(tx: Tx, page: PageRequest, project_id: str | None) -> list[RecordSet]:
    """Recordsets of all domains that are not deleted, which match.

    :param page: as for :func:`find`, and searched by ``id``
    :param project_id: the owner of the domains; None for every project.  Of a domain that is shared with this project,
        its own recordsets are found, and with ``id`` any
    """
    pages.refuse_unknown(page.criterion, _CRITERIA)
    # No join: MariaDB would begin with all domains and sort their recordsets instead of using the index.
    status, project = _of_owner(domains.c.status), _of_owner(domains.c.project_id)
    statement = sa.select(*_SET_COLUMNS).where(recordsets.c.deleted == ALIVE, status != Status.DELETED)
    # A domain with unsettled records is unsettled, so only a few domains are searched.
    unsettled = page.criterion.get('status') in (Status.PENDING, Status.ERROR)
    of_domain: Any = sa.true() if project_id is None else domains.c.project_id == project_id
    seen: Any = sa.true() if project_id is None else project == project_id
    is_target = project_id is not None and zone_shares.is_target(tx, project_id)
    if project_id is not None and is_target:
        shared = zone_shares.ids_for(project_id)
        of_domain = sa.or_(of_domain, domains.c.id.in_(shared))
        own = sa.true() if 'id' in page.criterion else recordsets.c.project_id == project_id
        seen = sa.or_(seen, sa.and_(recordsets.c.domain_id.in_(shared), own))
    if project_id is not None or unsettled:
        ids = tx.execute(sa.select(domains.c.id).where(
            domains.c.status.in_((Status.PENDING, Status.ERROR)) if unsettled else domains.c.status != Status.DELETED,
            of_domain).limit(_FEW + 1)).scalars().all()
        # A database without statistics does not know whether these are few.
        few = len(ids) <= _FEW and count(
            tx, sa.select(recordsets.c.id).where(recordsets.c.domain_id.in_(ids)), _FEW_SETS + 1) <= _FEW_SETS
        if few:
            statement = statement.where(recordsets.c.domain_id.in_(ids))
        if is_target or not few:
            statement = statement.where(seen)
    for key, value in page.criterion.items():
        statement = statement.where(_CRITERIA[key](value, status))
    return _with_records(tx, pages.one_page(tx, statement, recordsets.c.id, _SORT_KEYS, page, among=(seen,)))


def _of_owner(column: sa.Column[Any]) -> Any:
    return sa.select(column).where(domains.c.id == recordsets.c.domain_id).scalar_subquery()


def _with_records(tx: Tx, rows: Sequence[Any]) -> list[RecordSet]:
    records_of: dict[str, list[Record]] = collections.defaultdict(list)
    for part in chunks(row.id for row in rows):
        for recordset_id, *record in tx.execute(_RECORDS_OF, {'ids': part}):
            records_of[recordset_id].append(Record(*record))
    return [RecordSet(**row._mapping, records=tuple(sorted(records_of[row.id], key=_BY_DATA))) for row in rows]


def contents(tx: Tx, domain_id: str) -> Iterator[tuple[str, str, int | None, str]]:
    """Name, type, TTL and data of every stored record, in the order of these.

    Rows are fetched as they are consumed; until the last row the transaction can do nothing else.
    """
    rows = tx.execute(sa.select(recordsets.c.name, recordsets.c.type, recordsets.c.ttl, records.c.data)
                      .join_from(recordsets, records, records.c.recordset_id == recordsets.c.id)
                      .where(recordsets.c.domain_id == domain_id, recordsets.c.deleted == ALIVE, _KEPT)
                      .order_by(recordsets.c.name, recordsets.c.type)
                      .execution_options(yield_per=_AT_ONCE))
    for (name, rtype, ttl), same in itertools.groupby(rows, key=lambda row: (row[0], row[1], row[2])):
        for data in sorted(row[3] for row in same):
            yield name, rtype, ttl, data


def insert(tx: Tx, sets: Sequence[RecordSet], now: datetime) -> None:
    """Insert recordsets, without their records."""
    for part in chunks(sets, _AT_ONCE):
        insertion(tx.dialect, part, now)(tx)


def insertion(dialect: sa.Dialect, sets: Sequence[RecordSet], now: datetime) -> Insertion:
    """As :func:`insert`, prepared and not executed yet."""
    return bulk.insertion(dialect, recordsets, {
        'created_at': now, 'updated_at': now, 'deleted': ALIVE, 'version': 1}, {
        name: [getattr(recordset, name) for recordset in sets]
        for name in ('id', 'domain_id', 'name', 'given_name', 'type', 'ttl', 'description', 'managed', 'project_id')})


def insert_records(tx: Tx, serial: int, rows: Iterable[tuple[str, str, str, bytes]], now: datetime) -> list[str]:
    """Insert records that are to be added at *serial*; their ids.

    :param rows: (domain id, recordset id, rdata as text, rdata in wire form)
    """
    inserted: list[str] = []
    for ids, insert_part in record_insertions(tx.dialect, serial, rows, now):
        insert_part(tx)
        inserted += ids
    return inserted


def record_insertions(dialect: sa.Dialect, serial: int, rows: Iterable[tuple[str, str, str, bytes]],
                      now: datetime) -> Iterator[tuple[list[str], Insertion]]:
    """As :func:`insert_records`, prepared in parts, each with the ids of its records."""
    same = {'created_at': now, 'updated_at': now, 'version': 1, 'serial_number': serial, 'task': Task.ADD,
            'status': Status.PENDING}
    for part in chunks(rows, 5000):
        columns = dict(zip(('domain_id', 'recordset_id', 'data', 'wire'), zip(*part)))
        ids = new_ids(len(part))
        yield ids, bulk.insertion(dialect, records, same, {'id': ids, **columns})


def change(tx: Tx, ids: Iterable[str], ttl: int | None, description: str | None, now: datetime) -> None:
    """Set the TTL and description of recordsets."""
    for part in chunks(ids):
        tx.execute(_CHANGE, {'ids': part, 'new_ttl': ttl, 'new_description': description, 'now': now})


def save_lock(tx: Tx, recordset: RecordSet) -> None:
    """Write whether a recordset is locked, and its version."""
    tx.execute(sa.update(recordsets).where(recordsets.c.id == recordset.id).values(
        {name: getattr(recordset, name) for name in ('lock_reason', 'locked_by_admin', 'version', 'updated_at')}))


def locked(tx: Tx, domain_id: str, inheriting: bool = False) -> RecordSet | None:
    """One of a domain's recordsets that its owner or an administrator has locked, and not a guest.

    :param inheriting: only one that has its TTL from the domain
    """
    return next(iter(_read(tx, _WITH_RECORDS.where(
        recordsets.c.domain_id == domain_id, recordsets.c.lock_reason.is_not(None),
        sa.or_(recordsets.c.project_id.is_(None), recordsets.c.locked_by_admin),
        recordsets.c.ttl.is_(None) if inheriting else sa.true()))), None)


def delete(tx: Tx, ids: Iterable[str], serial: int, now: datetime) -> None:
    """Mark recordsets for deletion at *serial*; their names and types can be used again at once."""
    for part in chunks(ids):
        tx.execute(_DELETE, {'ids': part, 'now': now})
        tx.execute(_DELETE_OF_SETS, {'ids': part, 'serial': serial, 'now': now})


def delete_records(tx: Tx, ids: Iterable[str], serial: int, now: datetime) -> None:
    """Mark records for deletion at *serial*."""
    for part in chunks(ids):
        tx.execute(_DELETE_RECORDS, {'ids': part, 'serial': serial, 'now': now})


def touch_records(tx: Tx, ids: Iterable[str], serial: int, now: datetime) -> None:
    """Mark records as updated at *serial*; one that was never served keeps its task ADD."""
    for part in chunks(ids):
        tx.execute(_TOUCH_RECORDS, {'ids': part, 'serial': serial, 'now': now})


def touch_inheriting(tx: Tx, domain_id: str, serial: int, now: datetime) -> None:
    """As :func:`touch_records`, for every record that has its TTL from the domain."""
    tx.execute(_TOUCH_INHERITING, {'owner': domain_id, 'serial': serial, 'now': now})


def complete(tx: Tx, domain_ids: Iterable[str], now: datetime) -> None:
    """Complete changes of records up to the reported serial of each domain: ACTIVE, or DELETED if that was the task."""
    for part in chunks(domain_ids):
        tx.execute(_SETTLE, {'ids': part, 'now': now})


def fail(tx: Tx, domain_ids: Iterable[str], serial: int, now: datetime) -> None:
    """Set records that are PENDING for *serial* or an older one to ERROR."""
    for part in chunks(domain_ids):
        tx.execute(sa.update(records)
                   .where(records.c.domain_id.in_(part), records.c.status == Status.PENDING, _is_up_to(serial))
                   .values(status=Status.ERROR, updated_at=now, version=records.c.version + 1))


_UPDATE = sa.case((records.c.task == Task.NONE, sa.literal(Task.UPDATE, type_=records.c.task.type)),
                  else_=records.c.task)


def _due(condition: Any, task: Any) -> sa.Update:
    return (sa.update(records).where(condition, _KEPT)
            .values(task=task, status=Status.PENDING, serial_number=sa.bindparam('serial'),
                    updated_at=sa.bindparam('now'), version=records.c.version + 1))


def _is_up_to(serial: Any) -> Any:
    """Whether a record's serial is *serial* or older (RFC 1982), by arithmetic that every database has."""
    return (serial - records.c.serial_number + SPACE) % SPACE < HALF


_IDS: sa.BindParameter[Any] = sa.bindparam('ids', expanding=True)
_CHANGED = {'updated_at': sa.bindparam('now'), 'version': recordsets.c.version + 1}
_CHANGE = sa.update(recordsets).where(recordsets.c.id.in_(_IDS)).values(
    ttl=sa.bindparam('new_ttl'), description=sa.bindparam('new_description'), **_CHANGED)
_DELETE = sa.update(recordsets).where(recordsets.c.id.in_(_IDS)).values(deleted=recordsets.c.id, **_CHANGED)
_DELETE_OF_SETS = _due(records.c.recordset_id.in_(_IDS), Task.DELETE)
_DELETE_RECORDS = _due(records.c.id.in_(_IDS), Task.DELETE)
_TOUCH_RECORDS = _due(records.c.id.in_(_IDS), _UPDATE)
_TOUCH_INHERITING = _due(sa.and_(
    records.c.domain_id == sa.bindparam('owner'),
    records.c.recordset_id.in_(sa.select(recordsets.c.id).where(
        recordsets.c.domain_id == sa.bindparam('owner'), recordsets.c.deleted == ALIVE,
        recordsets.c.ttl.is_(None)))), _UPDATE)
# MySQL assigns from left to right, so status has to look at the task before it is cleared.
_SETTLE = sa.update(records).where(
    records.c.domain_id.in_(_IDS), _UNSETTLED,
    _is_up_to(sa.select(domains.c.reported_serial).where(domains.c.id == records.c.domain_id).scalar_subquery())
).ordered_values(
    (records.c.status, sa.case((records.c.task == Task.DELETE, sa.literal(Status.DELETED, records.c.status.type)),
                               else_=sa.literal(Status.ACTIVE, records.c.status.type))),
    (records.c.task, Task.NONE),
    (records.c.updated_at, sa.bindparam('now')),
    (records.c.version, records.c.version + 1))


def _has(*conditions: Any) -> Any:
    return sa.exists().where(records.c.recordset_id == recordsets.c.id, _KEPT, *conditions)


def _by_status(value: str, soa_status: Any) -> Any:
    """The condition for recordsets with this status; an unknown one is that of none.

    :param soa_status: the domain's status, or an expression for it
    """
    try:
        status = Status(value)
    except ValueError:
        return sa.false()
    failed, waits = _has(records.c.status == Status.ERROR), _has(records.c.status == Status.PENDING)
    stored = {Status.ERROR: failed, Status.PENDING: sa.and_(~failed, waits), Status.ACTIVE: sa.and_(~failed, ~waits),
              Status.DELETED: sa.false()}[status]
    soa = recordsets.c.type == 'SOA'
    as_domain = sa.literal(status is soa_status) if isinstance(soa_status, Status) else soa_status == status
    return sa.or_(sa.and_(soa, as_domain), sa.and_(~soa, stored))


_CRITERIA: dict[str, Any] = {
    'id': lambda value, soa_status: recordsets.c.id == value,
    'name': lambda value, soa_status: pages.like(recordsets.c.name, value.lower()),
    'type': lambda value, soa_status: recordsets.c.type == value.upper(),
    'data': lambda value, soa_status: _has(pages.like(records.c.data, value)),
    'status': _by_status,
    'ttl': lambda value, soa_status: recordsets.c.ttl == pages.number('ttl', value),
    'description': lambda value, soa_status: pages.like(recordsets.c.description, value),
    'managed': lambda value, soa_status: recordsets.c.managed == (sa.true() if value == 'true' else sa.false()),
}


def _read(tx: Tx, statement: sa.Select[Any], **parameters: object) -> list[RecordSet]:
    first_rows: dict[str, Any] = {}
    records_of: dict[str, list[Record]] = collections.defaultdict(list)
    width = len(_SET_FIELDS)
    turns = Turns()
    for rows in tx.execute(statement, parameters).partitions(CHUNK):
        for row in turns.between(rows):
            first_rows.setdefault(row[0], row)
            if row[width] is not None:
                records_of[row[0]].append(Record(*row[width:]))
    return [RecordSet(**dict(zip(_SET_FIELDS, row)), records=tuple(sorted(records_of[key], key=_BY_DATA)))
            for key, row in turns.between(first_rows.items())]
