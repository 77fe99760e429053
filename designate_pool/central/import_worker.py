"""Imports of zone files: tasks, each run by any one Central.

The invariant: an import creates its domain with all records, once, or nothing.  The task's result is written in the
transaction that creates the domain, and only while the claim on the task is held.  So a Central that dies, or loses its
claim, leaves nothing behind, and another one starts again.
"""

from __future__ import annotations

import codecs
import dataclasses
import functools
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from designate_pool import logs
from designate_pool.backoff import Backoff
from designate_pool.central import zonefile_parser
from designate_pool.central.domain_creator import DomainCreator, NewZone
from designate_pool.central.recordset_changes import InsertionParts
from designate_pool.central.validation.requests import NewDomain, WantedRecordSet
from designate_pool.concurrency import Runtime, one_ahead
from designate_pool.deadline import Turns
from designate_pool.errors import InvalidField, LostRace, OverQuota, PoolError
from designate_pool.model import ChangeKind, Context, Domain, ZoneTask, ZoneTaskStatus, new_id, new_ids
from designate_pool.protocol.zonefile import LONGEST_RECORD
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import recordsets, versions, zone_tasks

LOG = logging.getLogger(__name__)
T = TypeVar('T')
#: Size of zone files, in bytes, that do not wait behind large ones.
SMALL = 1 << 20
TINY, BATCH = zone_tasks.TINY, zone_tasks.BATCH
#: Records of one of these; ``$GENERATE`` can make many more out of a tiny file.
_MOST_RECORDS = 1000
#: Size above which a zone file is read while its records are written, if its names are in order.
_STREAMED = 1 << 18
#: One loop for each: the smallest and the largest zone file that it takes.  Only one takes large ones, which bounds
#: memory.
SIZE_LIMITS = ((0, SMALL), (0, SMALL), (SMALL + 1, None))
#: Seconds between looks for tasks without being woken, and how many are left out after each unless one waits here for
#: its next try: what is asked for wakes the loops, and what others leave is claimed for longer.
INTERVAL, LEFT_OUT = 5.0, 5
#: Seconds for which a claim is valid; it is renewed while the import runs, at each so many of these looks.
LEASE, RENEWED_EVERY = 60.0, 3
#: Tries of an import; one that fails so often may be what makes Centrals crash.
MOST_TRIES = 10
_PAUSES = Backoff(1.0, cap=120.0)


class _ClaimLost(PoolError):
    """The claim on the import {task} was lost."""


class _Stopped(Exception):
    """This Central is stopping."""


class ImportWorker:
    """Runs imports, in loops once started."""

    def __init__(self, storage: Storage, creator: DomainCreator) -> None:
        self._storage = storage
        self._creator = creator
        self._now = storage.now
        self._claims: set[tuple[str, str]] = set()  # ids of tasks, and the claims on them
        self._changed = threading.Condition()
        self._wakeups = 0
        self._retry_at = 0.0  # monotonic, of the last one
        self._stopping = threading.Event()
        self._ahead: Callable[[InsertionParts], InsertionParts] = lambda parts: parts

    def start(self, runtime: Runtime) -> None:
        """Start the loops."""
        self._ahead = functools.partial(one_ahead, runtime.workers(1, 'central-imports-ahead'))
        for number, (smallest, largest) in enumerate(SIZE_LIMITS, 1):
            runtime.spawn(self._loop, largest, smallest, name=f'central-imports-{number}')
        runtime.spawn(self._maintain, name='central-imports-claims')

    def stop(self) -> None:
        """Stop; running imports are left to other Centrals."""
        self._stopping.set()
        self.wake()

    def wake(self) -> None:
        """Let the loops look for tasks now."""
        with self._changed:
            self._wakeups += 1
            self._changed.notify_all()

    def run_next(self, largest: int | None = None, smallest: int = 0) -> bool:
        """Run one import, or several of tiny zone files; whether there may be more.

        :param largest: size of its zone file in bytes; None for any
        :param smallest: likewise
        """
        tasks, claim = self._claim_next(largest, smallest)
        try:
            for task in self._import_together(tasks, claim) if len(tasks) > 1 else tasks:
                self._run(task, claim)
                self._claims.discard((task.id, claim))
        finally:
            self._claims.difference_update((task.id, claim) for task in tasks)
        return bool(tasks)

    def _claim_next(self, largest: int | None, smallest: int) -> tuple[list[ZoneTask], str]:
        """The oldest task, with others if they are tiny, and the claim on them."""
        now = self._now()
        size = None if self._stopping.is_set() else self._storage.read(zone_tasks.oldest_size, now, largest, smallest)
        if size is None:
            return [], ''
        is_tiny = largest is not None and size <= TINY
        claim = new_id()
        tasks = self._storage.run(zone_tasks.claim, claim, now, now + timedelta(seconds=LEASE),
                                  TINY if is_tiny else largest, BATCH if is_tiny else 1, smallest)
        self._claims.update((task.id, claim) for task in tasks)
        return tasks, claim

    def _import_together(self, tasks: Sequence[ZoneTask], claim: str) -> list[ZoneTask]:
        """Create the domains of tiny zone files together; the tasks that are to be run one by one."""
        alike: dict[tuple[Any, ...], list[ZoneTask]] = {}
        for task in tasks:
            alike.setdefault((task.project_id, task.may_nest, task.may_use_blacklisted, task.may_approve, task.pool_id,
                              task.attributes), []).append(task)
        ended: set[str] = set()
        for batch in alike.values():
            try:
                ended |= self._import_many(batch, claim) if len(batch) > 1 else set()
            except _Stopped:
                break
            except Exception as error:  # found again for the task that it is about
                LOG.info('%d imports are carried out one by one, since together they failed: %s', len(batch), error)
        self._claims.difference_update((task_id, claim) for task_id in ended)
        return [task for task in tasks if task.id not in ended]

    def _import_many(self, tasks: Sequence[ZoneTask], claim: str) -> set[str]:
        """Of tasks that differ only in their zone files; the ids of those whose domains were created."""
        zone_files = self._storage.read(zone_tasks.zone_files, [task.id for task in tasks])
        limits = self._storage.read(self._creator.allowance.limits_of, tasks[0].project_id)
        zones: list[NewZone] = []
        read: dict[str, tuple[ZoneTask, zonefile_parser.ZoneFileContents]] = {}
        for domain_id, task in Turns().between(zip(new_ids(len(tasks)), self._unless_stopping(tasks))):
            try:
                new, contents = zonefile_parser.parse(_lines([zone_files.get(task.id, b'')]), limits)
            except (PoolError, UnicodeDecodeError):  # the error is found again when it is run by itself
                continue
            sets, records = list[WantedRecordSet](), 0
            for recordset in contents:
                records += len(recordset.rdatas)
                if records > _MOST_RECORDS:
                    break
                sets.append(recordset)
            else:
                new = dataclasses.replace(new, pool_id=task.pool_id, attributes=task.attributes)
                zones.append(NewZone(domain_id, new, sets, task.request_id, versions.actor_of(task.actor)))
                read[domain_id] = task, contents

        ends: dict[str, tuple[str, str]] = {}

        def finish(tx: Tx, created: Sequence[Domain]) -> None:
            nonlocal ends
            servers = _apex_name_servers(tx, created[:1])
            ends = {read[domain.id][0].id: (domain.id, f'{domain.shown_name} imported'
                                            f'{_note(servers, read[domain.id][1])}') for domain in created}
            if not zone_tasks.finish_many(tx, ends, claim, self._now()) and not all(
                    zone_tasks.has_created(tx, task_id, domain_id) for task_id, (domain_id, _) in ends.items()):
                raise _ClaimLost(task=', '.join(ends))

        created = self._creator.create_many(_context(tasks[0]), zones, also=finish) if zones else ()
        for domain in created:
            task, contents = read[domain.id]
            LOG.info('import %s made %s, %d recordsets [%s]', task.id, domain.name, len(contents), task.request_id)
            self._creator.events.import_ended(_ended(task, ZoneTaskStatus.COMPLETE, *ends[task.id]))
        return {read[domain.id][0].id for domain in created}

    def _run(self, task: ZoneTask, claim: str) -> None:
        tries = task.version - 1
        try:
            if tries > MOST_TRIES:
                raise InvalidField(field='zone file', why=f'the import was started {MOST_TRIES} times and never ended')
            self._import(task, claim)
        except _ClaimLost:
            LOG.info('import %s: somebody else carries it out, or it was deleted', task.id)
        except _Stopped:
            self._storage.run(zone_tasks.extend_claim, task.id, claim, self._now())
        except Exception as error:  # of us or the database: the task is only to blame if it happens every time
            message = f'Central failed {tries} times to import it ({type(error).__name__}); its log says more.'
            is_final = False
            if isinstance(error, PoolError):
                message, is_final = _all_mistakes(error), error.code < 500 and not isinstance(error, LostRace)
            else:
                LOG.exception('import %s failed', task.id)
            if is_final or tries >= MOST_TRIES:
                self._end(task, claim, message)
            else:
                pause = _PAUSES.delay(tries)
                LOG.warning('import %s is tried again in %g s: %s', task.id, pause, error)
                self._storage.run(zone_tasks.extend_claim, task.id, claim, self._now() + timedelta(seconds=pause))
                self._retry_at = max(self._retry_at, time.monotonic() + pause)

    def _import(self, task: ZoneTask, claim: str) -> None:
        size = task.size or 0

        def lines() -> Iterator[str]:
            return _lines(self._unless_stopping(zone_tasks.pieces(self._storage, task.id, size)))

        limits = self._storage.read(self._creator.allowance.limits_of, task.project_id)
        if size > _STREAMED and not self._storage.has_one_writer:
            try:
                return self._create_domain(task, claim, *zonefile_parser.stream(lines, limits))
            except (zonefile_parser.NotInOrder, InvalidField, OverQuota) as error:
                LOG.info('import %s: the zone file is read as a whole first: %s', task.id,
                         error if str(error) else 'its names are not in order')
        self._create_domain(task, claim, *zonefile_parser.parse(lines(), limits))

    def _create_domain(self, task: ZoneTask, claim: str, new: NewDomain,
                       contents: zonefile_parser.ZoneFileContents) -> None:
        message = ''

        def finish(tx: Tx, domain: Domain) -> None:
            nonlocal message
            note = _note(_apex_name_servers(tx, [domain]) if contents.name_servers else (), contents)
            message = f'{domain.shown_name} imported{note}'
            if not zone_tasks.finish(tx, task.id, claim, ZoneTaskStatus.COMPLETE, domain.id, message, self._now()) \
                    and not zone_tasks.has_created(tx, task.id, domain.id):  # it was committed, the answer was lost
                raise _ClaimLost(task=task.id)
            zone_tasks.remove_pieces(tx, task.id)

        new = dataclasses.replace(new, pool_id=task.pool_id, attributes=task.attributes)
        domain = self._creator.create_one(_context(task), new, _Parts(contents, self._unless_stopping), also=finish,
                                          ahead=self._ahead)
        LOG.info('import %s made %s, %d recordsets [%s]', task.id, domain.name, len(contents), task.request_id)
        self._creator.events.import_ended(_ended(task, ZoneTaskStatus.COMPLETE, domain.id, message))

    def _end(self, task: ZoneTask, claim: str, message: str) -> None:
        if self._storage.run(zone_tasks.finish, task.id, claim, ZoneTaskStatus.ERROR, None, message, self._now()):
            self._storage.run(zone_tasks.remove_pieces, task.id)
            LOG.info('import %s ended in error: %s [%s]', task.id, message, task.request_id)
            self._creator.events.import_ended(_ended(task, ZoneTaskStatus.ERROR, None, message))

    def _unless_stopping(self, source: Iterable[T]) -> Iterator[T]:
        for item in source:
            if self._stopping.is_set():
                raise _Stopped
            yield item

    def _loop(self, largest: int | None, smallest: int) -> None:
        while not self._stopping.is_set():
            with self._changed:
                seen = self._wakeups
            try:
                while self.run_next(largest, smallest):
                    pass
            except Exception as error:  # the loop outlives whatever ails the database
                logs.failure(LOG, error, 'waiting imports could not be read; tried again in %g s', INTERVAL)
            with self._changed:
                self._changed.wait_for(lambda: self._wakeups != seen or self._stopping.is_set())

    def _maintain(self) -> None:
        """Renew the claims, and wake the loops if tasks are free."""
        for number in itertools.count(1):
            if self._stopping.wait(INTERVAL):
                return
            try:
                if number % RENEWED_EVERY == 0:
                    self._renew_claims()
                has_retry = time.monotonic() <= self._retry_at + INTERVAL
                if (has_retry or number % (LEFT_OUT + 1) == 0) and \
                        self._storage.read(zone_tasks.oldest_size, self._now()) is not None:
                    self.wake()
            except Exception as error:  # as in the loops
                logs.failure(LOG, error, 'waiting imports could not be read; tried again in %g s', INTERVAL)

    def _renew_claims(self) -> None:
        for task_id, claim in tuple(self._claims):
            try:
                self._storage.run(zone_tasks.extend_claim, task_id, claim, self._now() + timedelta(seconds=LEASE))
            except Exception as error:  # if the claim expires, the import is only tried a second time
                logs.failure(LOG, error, 'the claim on import %s could not be renewed; another Central may take '
                             'it over', task_id)


class _Parts:
    """The recordsets of a zone file, in parts; iterable again when the transaction is repeated."""

    def __init__(self, contents: zonefile_parser.ZoneFileContents,
                 guarded: Callable[[Iterable[Sequence[WantedRecordSet]]],
                                   Iterator[Sequence[WantedRecordSet]]]) -> None:
        self._contents = contents
        self._guarded = guarded

    def __iter__(self) -> Iterator[Sequence[WantedRecordSet]]:
        return self._guarded(self._contents.parts())


def _ended(task: ZoneTask, status: ZoneTaskStatus, domain_id: str | None, message: str) -> ZoneTask:
    return dataclasses.replace(task, status=status, domain_id=domain_id, message=message[:zone_tasks.MAX_MESSAGE],
                               version=task.version + 1)


def _all_mistakes(error: PoolError) -> str:
    """All mistakes of a zone file, one a line, or the error."""
    mistakes = error.kwargs.get('all')
    return '\n'.join(f'{field}: {why}.' for field, why in mistakes) if mistakes else str(error)


def _context(task: ZoneTask) -> Context:
    """Tasks without a project come from users who may see everything."""
    actor = versions.actor_of(task.actor)
    return Context(request_id=task.request_id, project_id=task.project_id, may_nest=task.may_nest,
                   may_use_blacklisted=task.may_use_blacklisted, may_approve=task.may_approve,
                   all_projects=task.may_nest or not task.project_id, user=actor.user, address=actor.address,
                   client=actor.client, kind=ChangeKind.IMPORT)


def _apex_name_servers(tx: Tx, domains: Sequence[Domain]) -> list[str]:
    """The data of the NS records at the apex of a new domain, which its pool gives to all."""
    return [record.data for ns in recordsets.at_apex(tx, [domain.id for domain in domains], 'NS')
            for record in ns.records]


def _note(ours: Sequence[str], contents: zonefile_parser.ZoneFileContents) -> str:
    """What is otherwise than in the file: TTLs, and name servers that are not *ours*, those of the pool."""
    mixed = ', '.join(contents.mixed_ttls)
    note = f'; of several TTLs in a recordset the lowest is used: {mixed}' if mixed else ''
    if not contents.name_servers or set(contents.name_servers) == set(ours):
        return note
    return (f"{note}; its name servers are the pool's, {', '.join(ours)}, instead of those in the file, "
            f"{', '.join(contents.name_servers)}")


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """The lines of a zone file in UTF-8."""
    decoder = codecs.getincrementaldecoder('utf-8')()
    rest = ''
    for piece in pieces:
        *whole, rest = (rest + decoder.decode(piece)).split('\n')
        yield from whole
        if len(rest) > LONGEST_RECORD:
            raise InvalidField(field='zone file', why=f'a line of more than {LONGEST_RECORD} characters')
    yield rest
