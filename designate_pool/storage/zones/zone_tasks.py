"""Imports and exports of zones, as :class:`designate_pool.model.ZoneTask`; an import with its zone file in pieces.

An import is carried out by whoever claims it, for as long as it keeps the claim.  Its end is written by the same
transaction that makes its domain, and only while the claim is held: so it is carried out once, however many try.

A task whose zone file has not arrived in full has no size, and nobody sees it.  One that names a pool looks as if it
were claimed by nobody: a Central of a former version, which would not heed the pool, leaves it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

import sqlalchemy as sa

from designate_pool.errors import InvalidField
from designate_pool.model import ZoneTask, ZoneTaskKind, ZoneTaskStatus
from designate_pool.storage.sql import paging
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import zone_task_pieces, zone_tasks
from designate_pool.storage.zones import zone_ancestry
from designate_pool.storage.zones.domains import chunks

TABLE, PIECES = zone_tasks, zone_task_pieces
_MAX_MESSAGE = 4096
_NEVER = datetime(9999, 1, 1, tzinfo=timezone.utc)
#: Pieces that one statement removes; a piece may be large.
_PIECES = 100
_FIELDS = tuple(field.name for field in dataclasses.fields(ZoneTask))
_SELECT = sa.select(*(TABLE.c[name] for name in _FIELDS))
_THERE = sa.or_(TABLE.c.kind == ZoneTaskKind.EXPORT.value, TABLE.c.size.is_not(None))
_SORT_KEYS = {name: TABLE.c[name] for name in ('created_at', 'id', 'updated_at', 'status')}


def put(tx: Tx, task: ZoneTask, now: datetime) -> bool:
    """Keep *task*; one that is kept already is left as it is, and the answer is False."""
    if tx.execute(sa.select(TABLE.c.id).where(TABLE.c.id == task.id)).first() is not None:
        return False
    values = {name: getattr(task, name) for name in _FIELDS}
    tx.execute(TABLE.insert(), {**values, 'kind': task.kind.value, 'status': task.status.value,
                                'claimed_until': None if task.pool_id is None else _NEVER,
                                'created_at': now, 'updated_at': now})
    return True


def put_pieces(tx: Tx, task_id: str, first: int, contents: list[bytes]) -> None:
    """Keep pieces of a zone file, which begin with number *first*; those that are kept already are left."""
    if contents and tx.execute(sa.select(PIECES.c.number).where(
            PIECES.c.task_id == task_id, PIECES.c.number == first)).first() is None:
        _insert_pieces(tx, task_id, first, contents)


def put_import(tx: Tx, task: ZoneTask, contents: list[bytes], now: datetime, most: int | None = None) -> bool:
    """Store an import with the first pieces of its zone file, or all; False where its project has no room for it.

    :param most: pending imports of the project, with this one; None for any number
    :raises LostRace: as :func:`designate_pool.storage.zones.zone_ancestry.lock`
    """
    if most is not None:
        # Of imports that begin at the same time each has to see those before it.
        zone_ancestry.lock(tx, f'{task.project_id}.imports.')
        if _count_other_pending(tx, task, most) >= most:
            return False
    if put(tx, task, now):
        _insert_pieces(tx, task.id, 0, contents)
    return True


def arrived(tx: Tx, task_id: str, size: int, now: datetime) -> None:
    """The zone file is there in full: from now on the import can be claimed."""
    tx.execute(TABLE.update().where(TABLE.c.id == task_id).values(size=size, updated_at=now))


def get(tx: Tx, kind: ZoneTaskKind, task_id: str, project_id: str | None) -> ZoneTask | None:
    """
    :param project_id: None for every project
    """
    return _one(tx, _SELECT.where(TABLE.c.id == task_id, TABLE.c.kind == kind.value, _THERE, _of(project_id)))


def find(tx: Tx, kind: ZoneTaskKind, criterion: Mapping[str, str], project_id: str | None, marker: str | None = None,
         limit: int | None = None, sort_key: str | None = None, sort_dir: str | None = None) -> list[ZoneTask]:
    """Tasks that match, the newest first unless another order is wanted.

    :param criterion: ``status``, ``zone_id``, ``message`` (``*`` stands for anything)
    :param project_id: None for every project
    """
    paging.refuse_unknown(criterion, _CRITERIA)
    statement = _SELECT.where(TABLE.c.kind == kind.value, _THERE, _of(project_id),
                              *(_CRITERIA[key](value) for key, value in criterion.items()))
    return [_task(row) for row in
            paging.one_page(tx, statement, TABLE.c.id, _SORT_KEYS, marker, limit, sort_key,
                            sort_dir or (None if sort_key else 'desc'), default_key='created_at',
                            among=(TABLE.c.kind == kind.value, _of(project_id)))]


def remove(tx: Tx, kind: ZoneTaskKind, task_id: str, project_id: str | None) -> bool:
    """Forget a task, with its zone file; whether it was there.  An import that is being carried out comes to nothing.

    :param project_id: None for every project
    """
    here = tx.execute(sa.select(TABLE.c.id).where(TABLE.c.id == task_id, TABLE.c.kind == kind.value, _of(project_id))
                      .with_for_update()).first()
    if here is None:
        return False
    remove_pieces(tx, task_id)
    tx.execute(TABLE.delete().where(TABLE.c.id == task_id))
    return True


def remove_pieces(tx: Tx, task_id: str) -> None:
    """Forget a zone file."""
    first, is_more = 0, True
    while is_more:
        gone = tx.execute(PIECES.delete().where(PIECES.c.task_id == task_id, PIECES.c.number >= first,
                                                PIECES.c.number < first + _PIECES)).rowcount
        first, is_more = first + _PIECES, gone == _PIECES


def claim(tx: Tx, by: str, now: datetime, until: datetime, largest: int | None = None,
          count: int = 1) -> list[ZoneTask]:
    """Claim the oldest imports that nobody works on; what others are claiming is passed over.

    :param largest: bytes that a zone file may have; None for any
    :param count: how many at most
    """
    found = [_task(row) for row in tx.execute(_SELECT.where(_free(now, largest)).order_by(TABLE.c.created_at)
                                              .limit(count).with_for_update(skip_locked=True))]
    if found:
        tx.execute(TABLE.update().where(TABLE.c.id.in_([task.id for task in found])).values(
            claimed_by=by, claimed_until=until, version=TABLE.c.version + 1))
    return [dataclasses.replace(task, version=task.version + 1) for task in found]


def waiting(tx: Tx, now: datetime, largest: int | None = None) -> bool:
    """Whether :func:`claim` would find one; it takes no lock."""
    return tx.execute(sa.select(TABLE.c.id).where(_free(now, largest)).limit(1)).first() is not None


def keep_claim(tx: Tx, task_id: str, by: str, until: datetime) -> bool:
    """Hold a claim until then, also to let it lapse; whether it was still held."""
    return tx.execute(TABLE.update().where(_claimed(task_id, by)).values(claimed_until=until)).rowcount == 1


def settle(tx: Tx, task_id: str, by: str, status: ZoneTaskStatus, domain_id: str | None, message: str,
           now: datetime) -> bool:
    """End a claimed import; whether the claim was still held."""
    return tx.execute(TABLE.update().where(_claimed(task_id, by)).values(
        status=status.value, domain_id=domain_id, message=message[:_MAX_MESSAGE], claimed_by=None, claimed_until=None,
        updated_at=now, version=TABLE.c.version + 1)).rowcount == 1


def made(tx: Tx, task_id: str, domain_id: str) -> bool:
    """Whether an import has ended by making this domain."""
    return tx.execute(sa.select(TABLE.c.id).where(TABLE.c.id == task_id, TABLE.c.domain_id == domain_id,
                                                  TABLE.c.status == ZoneTaskStatus.COMPLETE.value)).first() is not None


def give_exports(tx: Tx, domain_id: str, project_id: str) -> None:
    """Have the exports of a domain be a project's."""
    tx.execute(TABLE.update().where(TABLE.c.domain_id == domain_id, TABLE.c.kind == ZoneTaskKind.EXPORT.value)
               .values(project_id=project_id))


def piece(tx: Tx, task_id: str, number: int) -> bytes | None:
    """One piece of a zone file."""
    return tx.execute(sa.select(PIECES.c.content).where(PIECES.c.task_id == task_id, PIECES.c.number == number)
                      ).scalar_one_or_none()


def pieces(storage: Storage, task_id: str, size: int) -> Iterator[bytes]:
    """The zone file of *size* bytes, piece by piece, each read by itself."""
    read = number = 0
    while read < size and (content := storage.read(piece, task_id, number)) is not None:
        yield content
        read, number = read + len(content), number + 1


def expire(tx: Tx, before: datetime, arriving_before: datetime, limit: int) -> int:
    """Remove *limit* tasks at most; how many there were.

    :param before: of those that have ended, what was last written before then goes
    :param arriving_before: of zone files that never arrived in full, those that were begun before then
    """
    ended = TABLE.c.status.in_((ZoneTaskStatus.COMPLETE.value, ZoneTaskStatus.ERROR.value))
    ids = list(tx.execute(sa.select(TABLE.c.id).where(ended, TABLE.c.created_at < before, TABLE.c.updated_at < before)
                          .limit(limit)).scalars())
    ids += tx.execute(sa.select(TABLE.c.id).where(
        TABLE.c.status == ZoneTaskStatus.PENDING.value, TABLE.c.created_at < arriving_before,
        TABLE.c.updated_at < arriving_before, ~_THERE).limit(limit - len(ids))).scalars()
    # Whoever carried an import out removes its pieces; these are left where it was killed in between.
    arriving = tx.execute(sa.select(PIECES.c.task_id).where(PIECES.c.number == 0)).scalars().all()
    left = {task_id for part in chunks(arriving) for task_id in tx.execute(sa.select(TABLE.c.id).where(
        TABLE.c.id.in_(part), ended, TABLE.c.updated_at < arriving_before)).scalars()}
    for task_id in left | set(ids):
        remove_pieces(tx, task_id)
    for part in chunks(ids):
        tx.execute(TABLE.delete().where(TABLE.c.id.in_(part)))
    return len(ids)


def _count_other_pending(tx: Tx, task: ZoneTask, most: int) -> int:
    """How many other imports of the project have not ended; counted up to *most*."""
    some = sa.select(TABLE.c.id).where(
        TABLE.c.status == ZoneTaskStatus.PENDING.value, TABLE.c.project_id == task.project_id,
        TABLE.c.kind == ZoneTaskKind.IMPORT.value, TABLE.c.id != task.id).limit(most).subquery()
    return int(tx.execute(sa.select(sa.func.count()).select_from(some)).scalar_one())


def _insert_pieces(tx: Tx, task_id: str, first: int, contents: list[bytes]) -> None:
    tx.execute(PIECES.insert(), [{'task_id': task_id, 'number': number, 'content': content}
                                 for number, content in enumerate(contents, first)])


def _free(now: datetime, largest: int | None) -> Any:
    """What can be claimed."""
    return sa.and_(TABLE.c.kind == ZoneTaskKind.IMPORT.value, TABLE.c.status == ZoneTaskStatus.PENDING.value,
                   TABLE.c.size.is_not(None), sa.or_(TABLE.c.claimed_by.is_(None), TABLE.c.claimed_until < now),
                   sa.true() if largest is None else TABLE.c.size <= largest)


def _claimed(task_id: str, by: str) -> Any:
    return sa.and_(TABLE.c.id == task_id, TABLE.c.status == ZoneTaskStatus.PENDING.value, TABLE.c.claimed_by == by)


def _of(project_id: str | None) -> Any:
    return sa.true() if project_id is None else TABLE.c.project_id == project_id


def _one(tx: Tx, statement: sa.Select[Any]) -> ZoneTask | None:
    row = tx.execute(statement).first()
    return None if row is None else _task(row)


def _task(row: Any) -> ZoneTask:
    task = ZoneTask(*row)
    return dataclasses.replace(task, kind=ZoneTaskKind(task.kind), status=ZoneTaskStatus(task.status))


def _by_status(value: str) -> Any:
    try:
        return TABLE.c.status == ZoneTaskStatus(value.upper()).value
    except ValueError:
        raise InvalidField(field='status', why=f'not one of {", ".join(ZoneTaskStatus)}') from None


_CRITERIA: dict[str, Any] = {
    'status': _by_status,
    'zone_id': lambda value: TABLE.c.domain_id == value,
    'message': lambda value: paging.like(TABLE.c.message, value),
}
