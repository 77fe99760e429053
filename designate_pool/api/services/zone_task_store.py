"""Imports and exports in the database, so that every API process knows all of them.

A zone file is written to the database in pieces, and read from it row by row: it is never in memory as a whole.
"""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

from designate_pool.backoff import Backoff
from designate_pool.errors import DomainNotFound, LostRace, NotFound, OverLimit
from designate_pool.model import (Context, Domain, PageRequest, ZoneHead, ZoneTask, ZoneTaskKind, ZoneTaskStatus,
                                  new_id, new_ids)
from designate_pool.protocol import soa_rdata
from designate_pool.rpc.notifications import SILENT, Sink, put_zone_task
from designate_pool.storage.serving import zone_snapshot
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import versions, zone_tasks


def zonefile_lines(zone: str, ttl: int, soa: str, rows: Iterable[tuple[str, str, int | None, str]]) -> Iterator[str]:
    """A zone as the lines of a zone file (RFC 1035 section 5), each with its end.

    :param zone: its name
    :param ttl: seconds, of the SOA and of every record without its own
    :param soa: the SOA's data
    :param rows: name, type, TTL (None for the zone's) and data of every record but the SOA
    """
    yield f'$ORIGIN {zone}\n$TTL {ttl}\n{zone} {ttl} IN SOA {soa}\n'
    for name, rtype, own, data in rows:
        yield f'{name} {ttl if own is None else own} IN {rtype} {data}\n'


#: Bytes of a piece, and how many pieces one transaction writes: a statement may have 16 MiB on MariaDB.
PIECE, PIECES_PER_TRANSACTION = 1 << 18, 4
#: Imports of at most so many bytes are waited for, for so many seconds, to answer with their result.
LARGEST_WAITED_FOR, WAIT_SECONDS = 1 << 20, 3.0
#: Bytes of an export that are kept in memory; what is longer goes to a temporary file.
IN_MEMORY = 1 << 20
#: Seconds after which to ask again when too many imports are under way.
RETRY_AFTER = 5
#: Between two looks at an import that is waited for.
PAUSES = Backoff(0.005, 1.25, cap=0.05)


class ZoneTaskStore:
    """
    :param pending_imports: how many imports of one project may be under way; None for any number
    :param notifications: where what is asked for and deleted is sent; Central sends how an import has ended
    """

    def __init__(self, storage: Storage, pending_imports: int | None = None, notifications: Sink = SILENT) -> None:
        self._storage = storage
        self._pending_imports = pending_imports
        self._notifications = notifications

    def find(self, kind: ZoneTaskKind, context: Context, page: PageRequest) -> list[ZoneTask]:
        """A page of the imports or exports that the context sees."""
        return self._storage.read(zone_tasks.find, kind, page, context.scope)

    def get(self, kind: ZoneTaskKind, context: Context, task_id: str) -> ZoneTask:
        """An import or export that the requester may see.

        :raises NotFound: when there is none, or it is another project's
        """
        task = self._storage.read(zone_tasks.get, kind, task_id, context.scope)
        if task is None:
            raise missing(kind, task_id)
        return task

    def remove(self, kind: ZoneTaskKind, context: Context, task_id: str) -> None:
        """Delete an import or export that the requester may see.

        :raises NotFound: as :meth:`get`
        """
        removed = self._storage.run(zone_tasks.remove, kind, task_id, context.scope)
        if removed is None:
            raise missing(kind, task_id)
        put_zone_task(self._notifications, 'delete', dataclasses.replace(
            removed, request_id=context.request_id, actor=versions.actor_text(context.actor)))

    def store_export(self, context: Context, domain: Domain) -> ZoneTask:
        """Store an export of *domain*, which is COMPLETE then: its file is made when it is fetched.

        :returns: it as it was asked for, PENDING as in Designate
        """
        now = self._storage.now()
        task = ZoneTask(new_id(), ZoneTaskKind.EXPORT, project_id=domain.project_id,
                        status=ZoneTaskStatus.COMPLETE, domain_id=domain.id, request_id=context.request_id,
                        created_at=now, updated_at=now, actor=versions.actor_text(context.actor))
        self._storage.run(zone_tasks.put, task, now)
        asked_for = dataclasses.replace(task, status=ZoneTaskStatus.PENDING)
        put_zone_task(self._notifications, 'create', asked_for)
        put_zone_task(self._notifications, 'update', task)
        return asked_for

    def store_import(self, context: Context, pieces: Iterable[bytes], pool_id: str | None = None,
                     attributes: str = '') -> ZoneTask:
        """Store a zone file that is to be imported.

        :param pool_id: the pool that the zone goes to; None for the one that the scheduler chooses
        :param attributes: of the zone, as JSON
        :param pieces: may raise any error; then nothing is stored
        :raises OverLimit: when the project has its limit of imports under way
        """
        task = _new_import(new_id(), context, pool_id, attributes, created_at=self._storage.now())
        batches = _batches(pieces)
        first, following = next(batches, []), next(batches, None)
        size = sum(map(len, first))
        if following is None:
            task = dataclasses.replace(task, size=size)
        self._begin_imports([task], [first])
        try:
            number = len(first)
            while following is not None:
                self._storage.run(zone_tasks.put_pieces, task.id, number, following)
                number, size = number + len(following), size + sum(map(len, following))
                following = next(batches, None)
            if task.size is None:
                self._storage.run(zone_tasks.complete_upload, task.id, size, self._storage.now())
        except BaseException:  # the zone file is not complete
            self._storage.run(zone_tasks.remove, ZoneTaskKind.IMPORT, task.id, None)
            raise
        put_zone_task(self._notifications, 'create', task)
        return dataclasses.replace(task, size=size)

    def store_imports(self, context: Context, zone_files: Sequence[bytes], pool_id: str | None = None,
                      attributes: str = '') -> list[ZoneTask]:
        """As :meth:`store_import`, for several small zone files in one transaction; each gets a task, in their order.

        :raises OverLimit: when the project has its limit of imports under way already
        """
        now = self._storage.now()
        # Ids in their order, so that the first of several of one name is the one that is created.
        tasks = [_new_import(task_id, context, pool_id, attributes, created_at=now, updated_at=now, size=len(content))
                 for task_id, content in zip(new_ids(len(zone_files)), zone_files)]
        self._begin_imports(tasks, [[content] for content in zone_files])
        for task in tasks:
            put_zone_task(self._notifications, 'create', task)
        return tasks

    def _begin_imports(self, tasks: Sequence[ZoneTask], contents: Sequence[Sequence[bytes]]) -> None:
        most = self._pending_imports if tasks[0].project_id else None
        arguments = tasks, contents, self._storage.now(), most
        try:
            is_stored = self._storage.run(zone_tasks.put_imports, *arguments)
        except LostRace:  # at the first use of a lock; it is there now
            is_stored = self._storage.run(zone_tasks.put_imports, *arguments)
        if not is_stored:
            raise OverLimit(limit=f'{most} imports of the project are under way', seconds=RETRY_AFTER)

    def wait_for(self, task: ZoneTask) -> ZoneTask:
        """*task* when it has ended, or after a few seconds; a large one as it is."""
        if task.size is None or task.size > LARGEST_WAITED_FOR:
            return task
        return self.wait_for_all([task], WAIT_SECONDS)[0]

    def wait_for_all(self, tasks: Sequence[ZoneTask], seconds: float) -> list[ZoneTask]:
        """*tasks* when all of them have ended, or after these seconds; one that is deleted meanwhile as it was."""
        end, pauses = time.monotonic() + seconds, PAUSES.delays()
        newest = {task.id: task for task in tasks}
        waiting = [task.id for task in tasks if task.status is ZoneTaskStatus.PENDING]

        def pending(some: Sequence[str]) -> list[str]:
            newer = self._storage.read(zone_tasks.get_many, tasks[0].kind, some)
            newest.update(newer)
            return [task_id for task_id in some if task_id in newer and newer[task_id].status is ZoneTaskStatus.PENDING]

        while waiting and time.monotonic() < end:
            time.sleep(next(pauses))
            # Those of one request mostly end together: until the first has ended, the others are not read.
            if not pending(waiting[:1]):
                waiting = pending(waiting[1:])
        if len(waiting) > 1:
            pending(waiting)
        return [newest[task.id] for task in tasks]

    def spooled(self, write: Callable[..., Any], *arguments: Any) -> tuple[IO[bytes], int]:
        """A file that *write* fills in a read transaction, called with that, *arguments* and the file; and its length.

        It is written from one snapshot of the database before any of it is sent: so a read that breaks off is an error,
        not a short file, and no slow client holds a connection to the database.
        """
        file = tempfile.SpooledTemporaryFile(IN_MEMORY)
        try:
            self._storage.read(write, *arguments, file)
            size = file.tell()
            file.seek(0)
        except BaseException:  # nobody else will close the file
            file.close()
            raise
        return file, size


def _new_import(task_id: str, context: Context, pool_id: str | None, attributes: str, **values: Any) -> ZoneTask:
    return ZoneTask(task_id, ZoneTaskKind.IMPORT, project_id=context.project_id, request_id=context.request_id,
                    may_nest=context.may_nest, may_use_blacklisted=context.may_use_blacklisted,
                    may_approve=context.may_approve, pool_id=pool_id, attributes=attributes,
                    actor=versions.actor_text(context.actor), **values)


def _batches(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    remaining = iter(pieces)
    return iter(lambda: list(itertools.islice(remaining, PIECES_PER_TRANSACTION)), [])


def write_zone(tx: Tx, domain_id: str, file: IO[bytes]) -> None:
    """Write a domain as a zone file.

    :raises DomainNotFound: when it is gone
    """
    zone = zone_snapshot.head_and_rows(tx, domain_id)
    if zone is None:
        raise DomainNotFound(domain=domain_id)
    write_zone_file(file, *zone)


def write_zone_file(file: IO[bytes], head: ZoneHead, rows: Iterable[tuple[str, str, int | None, str]]) -> None:
    """Write a zone as a zone file."""
    write_lines(file, zonefile_lines(head.name, head.ttl, soa_rdata.text(head, head.name_servers[0]), rows))


def write_lines(file: IO[bytes], lines: Iterable[str]) -> None:
    """Write *lines* in place of what an earlier try wrote."""
    file.seek(0)
    file.truncate()
    waiting: list[str] = []
    for line in lines:
        waiting.append(line)
        if len(waiting) == 2000:
            file.write(''.join(waiting).encode())
            waiting.clear()
            time.sleep(0)  # other green threads may run
    file.write(''.join(waiting).encode())


def missing(kind: ZoneTaskKind, task_id: str) -> NotFound:
    """The error for an import or export that there is not."""
    word = kind.value.lower()
    return NotFound(what=f'{word} {task_id}', type=f'zone_{word}_not_found')
