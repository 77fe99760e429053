"""Imports and exports of zones, as :class:`designate_pool.model.ZoneTask`; an import with its zone file in pieces.

An import is executed by the Central that has claimed it.  Its result is written by the transaction that creates its
domain, and only while the claim is held, so it is executed once even if several try.

A task whose zone file has not been received completely has no size and is not visible.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from designate_pool.model import PageRequest, ZoneTask, ZoneTaskKind, ZoneTaskStatus
from designate_pool.storage.sql import bulk, pages
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.entities import Entities, chunks, count, delete_all, exists
from designate_pool.storage.sql.schema import zone_task_pieces, zone_tasks
from designate_pool.storage.zones import zone_ancestry

TABLE, PIECES = zone_tasks, zone_task_pieces
#: Size of zone files, in bytes, that are imported together, and how many of them in one transaction: they are in memory
#: together, and none of them waits longer than for all.
TINY, BATCH = 1 << 15, 200
#: Characters of a message that are stored.
MAX_MESSAGE = 4096
_OLDEST_FIRST = (TABLE.c.created_at, TABLE.c.id)
#: Pieces deleted by one statement; a piece may be large.
_PIECES = 100
TASKS = Entities(ZoneTask, TABLE, ('created_at', 'id', 'updated_at', 'status'), {
    'status': lambda value: TABLE.c.status == value.upper(),  # an unknown one is that of no task
    'zone_id': TABLE.c.domain_id,
    'message': functools.partial(pages.like, TABLE.c.message),
}, newest_first=True)
_THERE = sa.or_(TABLE.c.kind == ZoneTaskKind.EXPORT, TABLE.c.size.is_not(None))


def put(tx: Tx, task: ZoneTask, now: datetime) -> bool:
    """Store *task*; False if it is stored already, and unchanged then."""
    if TASKS.get(tx, task.id) is not None:
        return False
    TASKS.insert(tx, dataclasses.replace(task, created_at=now, updated_at=now))
    return True


def put_pieces(tx: Tx, task_id: str, first: int, contents: list[bytes]) -> None:
    """Store pieces of a zone file, numbered from *first*, unless they are stored already."""
    if contents and not exists(tx, PIECES, PIECES.c.task_id == task_id, PIECES.c.number == first):
        tx.execute(PIECES.insert(), [{'task_id': task_id, 'number': number, 'content': content}
                                     for number, content in enumerate(contents, first)])


def put_imports(tx: Tx, tasks: Sequence[ZoneTask], contents: Sequence[Sequence[bytes]], now: datetime,
                most: int | None = None) -> bool:
    """Store imports of one request, while fewer than *most* of its project are pending; whether they are stored.

    :param tasks: which differ in id and size only
    :param contents: of each the first pieces of its zone file, or all
    :param most: None for no limit
    :raises LostRace: as :func:`designate_pool.storage.zones.zone_ancestry.lock`
    """
    if TASKS.get(tx, tasks[0].id) is not None:
        return True  # the commit came through, the answer to it did not
    if most is not None:
        # Of concurrent imports each must see the ones before it.
        zone_ancestry.lock(tx, f'{tasks[0].project_id}.imports.')
        if count(tx, sa.select(TABLE.c.id).where(
                TABLE.c.status == ZoneTaskStatus.PENDING, TABLE.c.project_id == tasks[0].project_id,
                TABLE.c.kind == ZoneTaskKind.IMPORT), most) >= most:
            return False
    same = {name: value for name, value in TASKS.values(tasks[0]).items()
            if name not in ('id', 'size') and value is not None}
    bulk.insert(tx, TABLE, {**same, 'created_at': now, 'updated_at': now},
                {'id': [task.id for task in tasks], 'size': [task.size for task in tasks]})
    pieces = [(task.id, *piece) for task, file in zip(tasks, contents) for piece in enumerate(file)]
    if pieces:
        bulk.insert(tx, PIECES, {}, dict(zip(('task_id', 'number', 'content'), zip(*pieces))))
    return True


def complete_upload(tx: Tx, task_id: str, size: int, now: datetime) -> None:
    """Set the size of a completely stored zone file: from now on the import can be claimed."""
    tx.execute(TABLE.update().where(TABLE.c.id == task_id).values(size=size, updated_at=now))


def get(tx: Tx, kind: ZoneTaskKind, task_id: str, project_id: str | None) -> ZoneTask | None:
    """One visible task of a project, or of any for None."""
    return TASKS.get(tx, task_id, TABLE.c.kind == kind, _THERE, _of(project_id))


def get_many(tx: Tx, kind: ZoneTaskKind, ids: Sequence[str]) -> dict[str, ZoneTask]:
    """Those of *ids* that exist, by id; of all projects."""
    return {task.id: task for part in chunks(ids)
            for task in TASKS.all(tx, TASKS.select.where(TABLE.c.id.in_(part), TABLE.c.kind == kind))}


def find(tx: Tx, kind: ZoneTaskKind, page: PageRequest, project_id: str | None) -> list[ZoneTask]:
    """Tasks that match, the newest first unless another order is wanted.

    :param page: searched by ``status``, ``zone_id``, ``message`` (``*`` stands for anything)
    :param project_id: None for every project
    """
    return TASKS.find(tx, page, TABLE.c.kind == kind, _THERE, _of(project_id))


def remove(tx: Tx, kind: ZoneTaskKind, task_id: str, project_id: str | None) -> ZoneTask | None:
    """Delete a task and its zone file; the task, if it existed.  An import being executed has no effect then."""
    task = TASKS.lock(tx, task_id, TABLE.c.kind == kind, _of(project_id))
    if task is not None:
        remove_pieces(tx, task_id)
        TASKS.delete(tx, task_id)
    return task


def remove_pieces(tx: Tx, task_id: str) -> None:
    """Delete a zone file."""
    first, is_more = 0, True
    while is_more:
        gone = tx.execute(PIECES.delete().where(PIECES.c.task_id == task_id, PIECES.c.number >= first,
                                                PIECES.c.number < first + _PIECES)).rowcount
        first, is_more = first + _PIECES, gone == _PIECES


def claim(tx: Tx, by: str, now: datetime, until: datetime, largest: int | None = None,
          count: int = 1, smallest: int = 0) -> list[ZoneTask]:
    """Claim the oldest imports that are not claimed; rows locked by others are skipped.

    One that was claimed before may be what Centrals die of.  It is claimed by itself, so that no others are given up
    because they were claimed with it.

    :param largest: only zone files of at most this many bytes; None for all
    :param smallest: only zone files of at least this many bytes
    """
    oldest = TASKS.select.where(_free(now, largest, smallest)).order_by(*_OLDEST_FIRST).limit(count)
    tasks = TASKS.all(tx, oldest.with_for_update(skip_locked=True))
    tasks = [task for task in tasks if task.version == 1] if tasks and tasks[0].version == 1 else tasks[:1]
    if tasks:
        tx.execute(TABLE.update().where(TABLE.c.id.in_([task.id for task in tasks])).values(
            claimed_by=by, claimed_until=until, version=TABLE.c.version + 1))
    return [dataclasses.replace(task, version=task.version + 1) for task in tasks]


def oldest_size(tx: Tx, now: datetime, largest: int | None = None, smallest: int = 0) -> int | None:
    """The size, in bytes, of the zone file that :func:`claim` would find first; None for none.  Takes no lock."""
    return tx.execute(sa.select(TABLE.c.size).where(_free(now, largest, smallest)).order_by(*_OLDEST_FIRST).limit(1)
                      ).scalar()


def extend_claim(tx: Tx, task_id: str, by: str, until: datetime) -> bool:
    """Extend a claim, or end it by a time in the past; whether it was still held."""
    return tx.execute(TABLE.update().where(_claimed(task_id, by)).values(claimed_until=until)).rowcount == 1


def finish(tx: Tx, task_id: str, by: str, status: ZoneTaskStatus, domain_id: str | None, message: str,
           now: datetime) -> bool:
    """End a claimed import; whether the claim was still held."""
    return tx.execute(TABLE.update().where(_claimed(task_id, by)).values(
        status=status, domain_id=domain_id, message=message[:MAX_MESSAGE], claimed_by=None, claimed_until=None,
        updated_at=now, version=TABLE.c.version + 1)).rowcount == 1


def finish_many(tx: Tx, made: Mapping[str, tuple[str, str]], by: str, now: datetime) -> bool:
    """End claimed imports that have created their domains, and delete their zone files.

    :param made: by the id of an import, the id of its domain and the message
    :returns: whether the claims on all of them were still held
    """
    ids = list(made)
    kept = sa.and_(TABLE.c.id.in_(ids), TABLE.c.status == ZoneTaskStatus.PENDING, TABLE.c.claimed_by == by)
    columns = {'domain_id': [domain_id for domain_id, _ in made.values()],
               'message': [message[:MAX_MESSAGE] for _, message in made.values()]}
    own: dict[str, Any]
    # One statement for all: a row of values for each would be a statement for each.
    if tx.dialect.name == 'postgresql':  # for which a CASE takes longer
        rows = sa.func.unnest(*(sa.literal(values, sa.ARRAY(sa.Text())) for values in (ids, *columns.values()))
                              ).table_valued('task_id', *columns).render_derived()
        kept, own = sa.and_(kept, TABLE.c.id == rows.c.task_id), {name: rows.c[name] for name in columns}
    else:
        own = {name: sa.case(dict(zip(ids, values)), value=TABLE.c.id) for name, values in columns.items()}
    ended = tx.execute(TABLE.update().where(kept).values(
        status=ZoneTaskStatus.COMPLETE, claimed_by=None, claimed_until=None, updated_at=now,
        version=TABLE.c.version + 1, **own)).rowcount
    tx.execute(PIECES.delete().where(PIECES.c.task_id.in_(ids)))
    return ended == len(ids)


def has_created(tx: Tx, task_id: str, domain_id: str) -> bool:
    """Whether an import has ended and created this domain."""
    return exists(tx, TABLE, TABLE.c.id == task_id, TABLE.c.domain_id == domain_id,
                  TABLE.c.status == ZoneTaskStatus.COMPLETE)


def assign_exports(tx: Tx, domain_id: str, project_id: str) -> None:
    """Assign the exports of a domain to a project."""
    tx.execute(TABLE.update().where(TABLE.c.domain_id == domain_id, TABLE.c.kind == ZoneTaskKind.EXPORT)
               .values(project_id=project_id))


def piece(tx: Tx, task_id: str, number: int) -> bytes | None:
    """One piece of a zone file."""
    return tx.execute(sa.select(PIECES.c.content).where(PIECES.c.task_id == task_id, PIECES.c.number == number)
                      ).scalar_one_or_none()


def zone_files(tx: Tx, task_ids: list[str]) -> dict[str, bytes]:
    """Whole zone files by the ids of their imports, in one statement: for small ones."""
    contents: dict[str, bytes] = {}
    for task_id, content in tx.execute(sa.select(PIECES.c.task_id, PIECES.c.content).where(
            PIECES.c.task_id.in_(task_ids)).order_by(PIECES.c.task_id, PIECES.c.number)):
        contents[task_id] = contents.get(task_id, b'') + content
    return contents


def pieces(storage: Storage, task_id: str, size: int) -> Iterator[bytes]:
    """The zone file of *size* bytes, piece by piece, each read in a transaction of its own."""
    read = number = 0
    while read < size and (content := storage.read(piece, task_id, number)) is not None:
        yield content
        read, number = read + len(content), number + 1


def expire(tx: Tx, before: datetime, arriving_before: datetime, limit: int) -> int:
    """Delete at most *limit* tasks; how many were deleted.

    :param before: of tasks that have ended, those last written before this time
    :param arriving_before: of incomplete uploads, those begun before this time
    """
    ended = TABLE.c.status.in_((ZoneTaskStatus.COMPLETE, ZoneTaskStatus.ERROR))
    ids = list(tx.execute(sa.select(TABLE.c.id).where(ended, TABLE.c.created_at < before, TABLE.c.updated_at < before)
                          .limit(limit)).scalars())
    ids += tx.execute(sa.select(TABLE.c.id).where(
        TABLE.c.status == ZoneTaskStatus.PENDING, TABLE.c.created_at < arriving_before,
        TABLE.c.updated_at < arriving_before, ~_THERE).limit(limit - len(ids))).scalars()
    # Pieces of ended imports remain where the Central was killed before it deleted them.
    arriving = tx.execute(sa.select(PIECES.c.task_id).where(PIECES.c.number == 0)).scalars().all()
    remaining = {task_id for part in chunks(arriving) for task_id in tx.execute(sa.select(TABLE.c.id).where(
        TABLE.c.id.in_(part), ended, TABLE.c.updated_at < arriving_before)).scalars()}
    for task_id in remaining | set(ids):
        remove_pieces(tx, task_id)
    delete_all(tx, TABLE.c.id, ids)
    return len(ids)


def _free(now: datetime, largest: int | None, smallest: int) -> Any:
    """The condition of imports that can be claimed."""
    return sa.and_(TABLE.c.kind == ZoneTaskKind.IMPORT, TABLE.c.status == ZoneTaskStatus.PENDING,
                   TABLE.c.size >= smallest, sa.or_(TABLE.c.claimed_by.is_(None), TABLE.c.claimed_until < now),
                   sa.true() if largest is None else TABLE.c.size <= largest)


def _claimed(task_id: str, by: str) -> Any:
    return sa.and_(TABLE.c.id == task_id, TABLE.c.status == ZoneTaskStatus.PENDING, TABLE.c.claimed_by == by)


def _of(project_id: str | None) -> Any:
    return sa.true() if project_id is None else TABLE.c.project_id == project_id
