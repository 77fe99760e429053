"""Imports of zone files: tasks, each run by any one Central.

The invariant: an import creates its domain with all records, once, or nothing.  The task's result is written in the
transaction that creates the domain, and only while the claim on the task is held.  So a Central that dies, or loses its
claim, leaves nothing behind, and another one starts again.
"""

from __future__ import annotations

import codecs
import collections
import dataclasses
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import Protocol, TypeVar

from designate_pool.backoff import Backoff
from designate_pool.central.rules.quotas import ProjectQuotas
from designate_pool.central.validation.requests import NewDomain, WantedRecordSet
from designate_pool.central.zone_tasks import zonefile_parser
from designate_pool.concurrency import Runtime
from designate_pool.errors import InvalidField, PoolError
from designate_pool.model import Context, Domain, ZoneTask, ZoneTaskStatus, new_id
from designate_pool.protocol.zonefile.reader import LONGEST_RECORD
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import recordsets, zone_tasks

LOG = logging.getLogger(__name__)
T = TypeVar('T')
#: Size of zone files, in bytes, that do not wait behind large ones.
SMALL = 1 << 20
#: Small ones claimed at once; the loops for them share these.
CLAIM_BATCH = 4
#: One loop for each: the largest zone file that it takes.  Only one takes any size, which bounds memory.
SIZE_LIMITS = (SMALL, SMALL, None)
#: Seconds between looks for tasks without being woken.
INTERVAL = 5.0
#: Seconds for which a claim is valid; it is renewed while the import runs.
LEASE = 60.0
#: Tries of an import; one that fails so often may be what makes Centrals crash.
MOST_TRIES = 10
_PAUSES = Backoff(1.0, cap=120.0)


class _ClaimLost(PoolError):
    """The claim on the import {task} was lost."""


class _Stopped(Exception):
    """This Central is stopping."""


class MakeDomain(Protocol):
    """Creates a domain for a project in one transaction, at whose end *also* is called."""

    def __call__(self, context: Context, wanted: NewDomain, parts: Iterable[Sequence[WantedRecordSet]], *,
                 also: Callable[[Tx, Domain], None]) -> Domain: ...


class ImportWorker:
    """
    :param clock: seconds since 1970
    :param limits: the quotas of a project
    """

    def __init__(self, storage: Storage, make: MakeDomain, clock: Callable[[], float],
                 limits: Callable[[Tx, str], ProjectQuotas] = lambda tx, project_id: ProjectQuotas()) -> None:
        self._storage = storage
        self._make = make
        self._clock = clock
        self._limits = limits
        self._held: set[tuple[str, str]] = set()  # tasks, and the claims on them
        self._claimed: collections.deque[tuple[ZoneTask, str]] = collections.deque()  # small ones, for the next loop
        self._claiming = threading.Lock()
        self._changed = threading.Condition()
        self._wakeups = 0
        self._stopping = threading.Event()

    def start(self, runtime: Runtime) -> None:
        for number, largest in enumerate(SIZE_LIMITS, 1):
            runtime.spawn(self._loop, largest, name=f'central-imports-{number}')
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

    def run_next(self, largest: int | None = None) -> bool:
        """Run one import; whether there may be more.

        :param largest: size of its zone file in bytes; None for any
        """
        taken = self._next(largest)
        if taken is None:
            return False
        task, claim = taken
        try:
            self._run(task, claim)
        finally:
            self._held.discard((task.id, claim))
        return True

    def _next(self, largest: int | None) -> tuple[ZoneTask, str] | None:
        """A task, and the claim on it."""
        with self._claiming:
            if largest is not None and self._claimed:
                return self._claimed.popleft()
            now = self._now()
            if self._stopping.is_set() or not self._storage.read(zone_tasks.waiting, now, largest):
                return None
            claim = new_id()
            found = self._storage.run(zone_tasks.claim, claim, now, now + timedelta(seconds=LEASE), largest,
                                      1 if largest is None else CLAIM_BATCH)
            self._held.update((task.id, claim) for task in found)
            self._claimed.extend((task, claim) for task in found[1:])
            return (found[0], claim) if found else None

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
            if error.code < 500 or tries >= MOST_TRIES:
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
        # Tasks without a project come from users who may see everything.
        context = Context(request_id=task.request_id, project_id=task.project_id, may_nest=task.may_nest,
                          may_use_blacklisted=task.may_use_blacklisted,
                          all_projects=task.may_nest or not task.project_id)
        pieces = zone_tasks.pieces(self._storage, task.id, task.size or 0)
        wanted, contents = zonefile_parser.parse(_lines(self._unless_stopping(pieces)),
                                                 self._storage.read(self._limits, task.project_id))

        def settle(tx: Tx, domain: Domain) -> None:
            if not zone_tasks.finish(tx, task.id, claim, ZoneTaskStatus.COMPLETE, domain.id,
                                     f'{domain.name} imported{_name_server_note(tx, domain, contents)}', self._now()) \
                    and not zone_tasks.has_created(tx, task.id, domain.id):  # it was committed, the answer was lost
                raise _ClaimLost(task=task.id)
            zone_tasks.remove_pieces(tx, task.id)

        wanted = dataclasses.replace(wanted, pool_id=task.pool_id, attributes=task.attributes)
        domain = self._make(context, wanted, _Parts(contents, self._unless_stopping), also=settle)
        LOG.info('import %s made %s, %d recordsets [%s]', task.id, domain.name, len(contents), task.request_id)

    def _end(self, task: ZoneTask, claim: str, message: str) -> None:
        if self._storage.run(zone_tasks.finish, task.id, claim, ZoneTaskStatus.ERROR, None, message, self._now()):
            self._storage.run(zone_tasks.remove_pieces, task.id)
            LOG.info('import %s ended in error: %s [%s]', task.id, message, task.request_id)

    def _try_later(self, task: ZoneTask, claim: str, tries: int, error: Exception) -> None:
        pause = _PAUSES.delay(tries)
        LOG.warning('import %s is tried again in %g s: %s', task.id, pause, error)
        self._storage.run(zone_tasks.extend_claim, task.id, claim, self._now() + timedelta(seconds=pause))

    def _unless_stopping(self, source: Iterable[T]) -> Iterator[T]:
        for each in source:
            if self._stopping.is_set():
                raise _Stopped
            yield each

    def _loop(self, largest: int | None) -> None:
        is_last = False
        while not is_last:
            is_last = self._stopping.is_set()  # then nothing new is claimed, and claims are returned
            with self._changed:
                seen = self._wakeups
            try:
                while self.run_next(largest):
                    pass
            except Exception:  # the loop outlives whatever ails the database
                LOG.exception('waiting imports could not be read; tried again in %g s', INTERVAL)
            with self._changed:
                self._changed.wait_for(lambda: self._wakeups != seen or self._stopping.is_set(), INTERVAL)

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


def _all_mistakes(error: PoolError) -> str:
    """All mistakes of a zone file, one a line, or the error."""
    every = error.kwargs.get('all')
    return '\n'.join(f'{field}: {why}.' for field, why in every) if every else str(error)


def _name_server_note(tx: Tx, domain: Domain, contents: zonefile_parser.ZoneFileContents) -> str:
    """A note when the file's name servers differ from those of the pool, otherwise ''."""
    if not contents.name_servers:
        return ''
    [found] = recordsets.at_apex(tx, [domain.id], 'NS')
    ours = [record.data for record in found.records]
    if set(contents.name_servers) == set(ours):
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
