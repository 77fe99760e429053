"""Imports of zone files: tasks, each run by any one Central.

The invariant: an import creates its domain with all records, once, or nothing.  The task's result is written in the
transaction that creates the domain, and only while the claim on the task is held.  So a Central that dies, or loses its
claim, leaves nothing behind, and another one starts again.
"""

from __future__ import annotations

import codecs
import collections
import dataclasses
import functools
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Protocol, TypeVar

from designate_pool.backoff import Backoff
from designate_pool.central.domain_creator import NewZone
from designate_pool.central.recordset_changes import InsertionParts
from designate_pool.central.rules.quotas import ProjectQuotas
from designate_pool.central.validation.requests import NewDomain, WantedRecordSet
from designate_pool.central.zone_tasks import zonefile_parser
from designate_pool.concurrency import Runtime, one_ahead
from designate_pool.errors import InvalidField, LostRace, OverQuota, PoolError
from designate_pool.model import Context, Domain, ZoneTask, ZoneTaskStatus, new_id, new_ids
from designate_pool.protocol.zonefile.reader import LONGEST_RECORD
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import recordsets, zone_tasks

LOG = logging.getLogger(__name__)
T = TypeVar('T')
#: Size of zone files, in bytes, that do not wait behind large ones.
SMALL = 1 << 20
#: Small ones claimed at once; the loops for them share these.
CLAIM_BATCH = 4
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
#: Seconds for which a claim is valid; it is renewed while the import runs.
LEASE = 60.0
#: Tries of an import; one that fails so often may be what makes Centrals crash.
MOST_TRIES = 10
_PAUSES = Backoff(1.0, cap=120.0)
#: Seconds for which a claim lasts at most: it is kept between two tries.
LONGEST_CLAIM = max(LEASE, _PAUSES.cap)


class _ClaimLost(PoolError):
    """The claim on the import {task} was lost."""


class _Stopped(Exception):
    """This Central is stopping."""


class MakeDomain(Protocol):
    """Creates a domain for a project in one transaction, at whose end *also* is called."""

    def __call__(self, context: Context, wanted: NewDomain, parts: Iterable[Sequence[WantedRecordSet]], *,
                 also: Callable[[Tx, Domain], None], ahead: Callable[[InsertionParts], InsertionParts]) -> Domain: ...


class MakeDomains(Protocol):
    """Creates some of several domains for a project in one transaction, at whose end *also* is called with them."""

    def __call__(self, context: Context, zones: Sequence[NewZone], *,
                 also: Callable[[Tx, Sequence[Domain]], None]) -> Sequence[Domain]: ...


class ImportWorker:
    """
    :param clock: seconds since 1970
    :param limits: the quotas of a project
    :param make_many: without it each domain gets a transaction of its own
    :param on_end: called with each import that has ended, after the commit
    """

    def __init__(self, storage: Storage, make: MakeDomain, clock: Callable[[], float],
                 limits: Callable[[Tx, str], ProjectQuotas] = lambda tx, project_id: ProjectQuotas(),
                 make_many: MakeDomains | None = None,
                 on_end: Callable[[ZoneTask], None] = lambda task: None) -> None:
        self._storage = storage
        self._make = make
        self._make_many = make_many
        self._clock = clock
        self._limits = limits
        self._on_end = on_end
        self._held: set[tuple[str, str]] = set()  # tasks, and the claims on them
        self._claimed: collections.deque[tuple[ZoneTask, str]] = collections.deque()  # small ones, for the next loop
        self._claiming = threading.Lock()
        self._changed = threading.Condition()
        self._wakeups = 0
        self._retry_at = 0.0  # monotonic, of the last one
        self._stopping = threading.Event()
        self._ahead: Callable[[InsertionParts], InsertionParts] = lambda parts: parts

    def start(self, runtime: Runtime) -> None:
        self._ahead = functools.partial(one_ahead, runtime.workers(1, 'central-imports-ahead'))
        for number, (smallest, largest) in enumerate(SIZE_LIMITS, 1):
            runtime.spawn(self._loop, largest, smallest, name=f'central-imports-{number}')
        runtime.spawn(self._keep_looking, name='central-imports-look')
        runtime.spawn(self._keep_claims, name='central-imports-claims')

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
        taken, claim = self._next(largest, smallest)
        try:
            alone = self._run_batch(taken, claim) if len(taken) > 1 else taken
            for task in alone:
                self._run(task, claim)
                self._held.discard((task.id, claim))
        finally:
            self._held.difference_update((task.id, claim) for task in taken)
        return bool(taken)

    def _next(self, largest: int | None, smallest: int) -> tuple[list[ZoneTask], str]:
        """The oldest task, with others if they are tiny, and the claim on them."""
        with self._claiming:
            if largest is not None and self._claimed:
                task, claim = self._claimed.popleft()
                return [task], claim
            if self._stopping.is_set():
                return [], ''
            now = self._now()
            size = self._storage.read(zone_tasks.oldest_size, now, largest, smallest)
            if size is None:
                return [], ''
            claim = new_id()
            if largest is not None and size <= TINY and self._make_many is not None:
                return self._claim(claim, now, TINY, BATCH, smallest), claim
            found = self._claim(claim, now, largest, 1 if largest is None else CLAIM_BATCH, smallest)
            self._claimed.extend((task, claim) for task in found[1:])
            return found[:1], claim

    def _claim(self, claim: str, now: datetime, largest: int | None, count: int, smallest: int) -> list[ZoneTask]:
        until = now + timedelta(seconds=LEASE)
        found = self._storage.run(zone_tasks.claim, claim, now, until, largest, count, smallest)
        self._held.update((task.id, claim) for task in found)
        return found

    def _run_batch(self, tasks: Sequence[ZoneTask], claim: str) -> list[ZoneTask]:
        """Create the domains of tiny zone files together; the tasks that are to be run one by one."""
        alike: dict[tuple[Any, ...], list[ZoneTask]] = {}
        for task in tasks:
            alike.setdefault((task.project_id, task.may_nest, task.may_use_blacklisted, task.pool_id,
                              task.attributes), []).append(task)
        ended: set[str] = set()
        for some in alike.values():
            try:
                ended |= self._import_many(some, claim) if len(some) > 1 else set()
            except _Stopped:
                break
            except Exception as error:  # found again for the task that it is about
                LOG.info('%d imports are carried out one by one, since together they failed: %s', len(some), error)
        self._held.difference_update((task_id, claim) for task_id in ended)
        return [task for task in tasks if task.id not in ended]

    def _import_many(self, tasks: Sequence[ZoneTask], claim: str) -> set[str]:
        """Of tasks that differ only in their zone files; the ids of those whose domains were created."""
        assert self._make_many is not None
        zone_files = self._storage.read(zone_tasks.zone_files, [task.id for task in tasks])
        limits = self._storage.read(self._limits, tasks[0].project_id)
        zones: list[NewZone] = []
        read: dict[str, tuple[ZoneTask, zonefile_parser.ZoneFileContents]] = {}
        for domain_id, task in zip(new_ids(len(tasks)), self._unless_stopping(tasks)):
            try:
                wanted, contents = zonefile_parser.parse(_lines([zone_files.get(task.id, b'')]), limits)
            except (PoolError, UnicodeDecodeError):  # of which it is told when it is run by itself
                continue
            sets = _if_few(contents)
            if sets is not None:
                wanted = dataclasses.replace(wanted, pool_id=task.pool_id, attributes=task.attributes)
                zones.append(NewZone(domain_id, wanted, sets, task.request_id))
                read[domain_id] = task, contents
            time.sleep(0)  # let other green threads run

        ends: dict[str, tuple[str, str]] = {}

        def settle(tx: Tx, made: Sequence[Domain]) -> None:
            nonlocal ends
            servers = _apex_name_servers(tx, made[:1])
            ends = {read[each.id][0].id: (each.id, f'{each.name} imported'
                                          f'{_name_server_note(servers, read[each.id][1])}') for each in made}
            if not zone_tasks.finish_many(tx, ends, claim, self._now()) \
                    and not all(zone_tasks.has_created(tx, *end) for end in
                                ((task_id, domain_id) for task_id, (domain_id, _) in ends.items())):
                raise _ClaimLost(task=', '.join(ends))

        made = self._make_many(_context(tasks[0]), zones, also=settle) if zones else ()
        for domain in made:
            task, contents = read[domain.id]
            LOG.info('import %s made %s, %d recordsets [%s]', task.id, domain.name, len(contents), task.request_id)
            self._on_end(_ended(task, ZoneTaskStatus.COMPLETE, *ends[task.id]))
        return {read[domain.id][0].id for domain in made}

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
        except PoolError as error:
            is_passing = error.code >= 500 or isinstance(error, LostRace)
            if not is_passing or tries >= MOST_TRIES:
                self._end(task, claim, _all_mistakes(error))
            else:
                self._try_later(task, claim, tries, error)
        except Exception as error:  # such as of the database: the task is only to blame if it happens every time
            LOG.exception('import %s failed', task.id)
            if tries >= MOST_TRIES:
                self._end(task, claim,
                          f'Central failed {tries} times to import it ({type(error).__name__}); its log says more.')
            else:
                self._try_later(task, claim, tries, error)

    def _import(self, task: ZoneTask, claim: str) -> None:
        size = task.size or 0

        def lines() -> Iterator[str]:
            return _lines(self._unless_stopping(zone_tasks.pieces(self._storage, task.id, size)))

        limits = self._storage.read(self._limits, task.project_id)
        if size > _STREAMED and not self._storage.has_one_writer:
            try:
                return self._make_domain(task, claim, *zonefile_parser.stream(lines, limits))
            except (zonefile_parser.NotInOrder, InvalidField, OverQuota) as error:
                LOG.info('import %s: the zone file is read as a whole first: %s', task.id,
                         error if str(error) else 'its names are not in order')
        self._make_domain(task, claim, *zonefile_parser.parse(lines(), limits))

    def _make_domain(self, task: ZoneTask, claim: str, wanted: NewDomain,
                     contents: zonefile_parser.ZoneFileContents) -> None:
        message = ''

        def settle(tx: Tx, domain: Domain) -> None:
            nonlocal message
            note = _name_server_note(_apex_name_servers(tx, [domain]) if contents.name_servers else (), contents)
            message = f'{domain.name} imported{note}'
            if not zone_tasks.finish(tx, task.id, claim, ZoneTaskStatus.COMPLETE, domain.id, message, self._now()) \
                    and not zone_tasks.has_created(tx, task.id, domain.id):  # it was committed, the answer was lost
                raise _ClaimLost(task=task.id)
            zone_tasks.remove_pieces(tx, task.id)

        wanted = dataclasses.replace(wanted, pool_id=task.pool_id, attributes=task.attributes)
        domain = self._make(_context(task), wanted, _Parts(contents, self._unless_stopping), also=settle,
                            ahead=self._ahead)
        LOG.info('import %s made %s, %d recordsets [%s]', task.id, domain.name, len(contents), task.request_id)
        self._on_end(_ended(task, ZoneTaskStatus.COMPLETE, domain.id, message))

    def _end(self, task: ZoneTask, claim: str, message: str) -> None:
        if self._storage.run(zone_tasks.finish, task.id, claim, ZoneTaskStatus.ERROR, None, message, self._now()):
            self._storage.run(zone_tasks.remove_pieces, task.id)
            LOG.info('import %s ended in error: %s [%s]', task.id, message, task.request_id)
            self._on_end(_ended(task, ZoneTaskStatus.ERROR, None, message))

    def _try_later(self, task: ZoneTask, claim: str, tries: int, error: Exception) -> None:
        pause = _PAUSES.delay(tries)
        LOG.warning('import %s is tried again in %g s: %s', task.id, pause, error)
        self._storage.run(zone_tasks.extend_claim, task.id, claim, self._now() + timedelta(seconds=pause))
        self._retry_at = max(self._retry_at, time.monotonic() + pause)

    def _unless_stopping(self, source: Iterable[T]) -> Iterator[T]:
        for each in source:
            if self._stopping.is_set():
                raise _Stopped
            yield each

    def _loop(self, largest: int | None, smallest: int) -> None:
        is_last = False
        while not is_last:
            is_last = self._stopping.is_set()  # then nothing new is claimed, and claims are returned
            with self._changed:
                seen = self._wakeups
            try:
                while self.run_next(largest, smallest):
                    pass
            except Exception:  # the loop outlives whatever ails the database
                LOG.exception('waiting imports could not be read; tried again in %g s', INTERVAL)
            with self._changed:
                self._changed.wait_for(lambda: self._wakeups != seen or self._stopping.is_set())

    def look(self) -> None:
        """Wake the loops if tasks are free, or claimed here and left when a loop failed."""
        if self._claimed or self._storage.read(zone_tasks.oldest_size, self._now()) is not None:
            self.wake()

    def _keep_looking(self) -> None:
        for number in itertools.count(1):
            if self._stopping.wait(INTERVAL):
                return
            is_idle = not self._claimed and time.monotonic() > self._retry_at + INTERVAL
            if is_idle and number % (LEFT_OUT + 1):
                continue
            try:
                self.look()
            except Exception:  # as in the loops
                LOG.exception('waiting imports could not be read; tried again in %g s', INTERVAL)

    def _keep_claims(self) -> None:
        while not self._stopping.wait(LEASE / 4):
            for task_id, claim in tuple(self._held):
                try:
                    self._storage.run(zone_tasks.extend_claim, task_id, claim,
                                      self._now() + timedelta(seconds=LEASE))
                except Exception:  # if the claim expires, the import is only tried a second time
                    LOG.exception('the claim on import %s could not be renewed; another Central may take it over',
                                  task_id)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), timezone.utc)


class _Parts:
    """The recordsets of a zone file, in parts; iterable again when the transaction is repeated."""

    def __init__(self, contents: zonefile_parser.ZoneFileContents,
                 guarded: Callable[[Iterable[Sequence[WantedRecordSet]]],
                                   Iterator[Sequence[WantedRecordSet]]]) -> None:
        self._contents = contents
        self._guarded = guarded

    def __iter__(self) -> Iterator[Sequence[WantedRecordSet]]:
        return self._guarded(self._contents.parts())


def _if_few(contents: Iterable[WantedRecordSet]) -> list[WantedRecordSet] | None:
    """The recordsets of a zone file; None if they have many records, of which no more is made then."""
    found: list[WantedRecordSet] = []
    records = 0
    for each in contents:
        records += len(each.rdatas)
        if records > _MOST_RECORDS:
            return None
        found.append(each)
    return found


def _ended(task: ZoneTask, status: ZoneTaskStatus, domain_id: str | None, message: str) -> ZoneTask:
    """*task* as it was stored at its end."""
    return dataclasses.replace(task, status=status, domain_id=domain_id, message=message[:zone_tasks.MAX_MESSAGE],
                               version=task.version + 1)


def _all_mistakes(error: PoolError) -> str:
    """All mistakes of a zone file, one a line, or the error."""
    every = error.kwargs.get('all')
    return '\n'.join(f'{field}: {why}.' for field, why in every) if every else str(error)


def _context(task: ZoneTask) -> Context:
    """Tasks without a project come from users who may see everything."""
    return Context(request_id=task.request_id, project_id=task.project_id, may_nest=task.may_nest,
                   may_use_blacklisted=task.may_use_blacklisted, all_projects=task.may_nest or not task.project_id)


def _apex_name_servers(tx: Tx, made: Sequence[Domain]) -> list[str]:
    """The data of the NS records at the apex of a new domain, which its pool gives to all."""
    return [record.data for found in recordsets.at_apex(tx, [each.id for each in made], 'NS')
            for record in found.records]


def _name_server_note(ours: Sequence[str], contents: zonefile_parser.ZoneFileContents) -> str:
    """A note when the file's name servers differ from *ours*, those of the pool; otherwise ''."""
    if not contents.name_servers or set(contents.name_servers) == set(ours):
        return ''
    return (f"; its name servers are the pool's, {', '.join(ours)}, instead of those in the file, "
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
