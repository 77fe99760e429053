"""Imports of zone files: tasks that any Central carries out, one of them each.

The invariant: an import makes its domain with all its records, once, or nothing.  The task's end is written in the
transaction that makes the domain, and only while the claim on the task is held.  So a Central that dies, or loses its
claim, leaves nothing behind, and another one begins again.
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
#: Bytes of a zone file that does not wait behind large ones.
SMALL = 1 << 20
#: How many small ones are claimed at once; the loops for them share these.
AT_ONCE = 4
#: The loops of one Central, by the largest zone file that each takes: memory is bounded by the one that takes any.
LANES = (SMALL, SMALL, None)
#: Seconds after which a loop looks for tasks unasked.
INTERVAL = 5.0
#: Seconds that a claim holds; it is renewed while the work goes on.
LEASE = 60.0
#: How often an import is begun at most; what fails so often may be what ends the Centrals.
MOST_TRIES = 10
_PAUSES = Backoff(1.0, cap=120.0)


class _Taken(PoolError):
    """The claim on the import {task} was lost."""


class _Stopped(Exception):
    """This Central is about to end."""


class Make(Protocol):
    """Makes a domain for a project in one transaction, of which *also* does the last."""

    def __call__(self, context: Context, wanted: NewDomain, parts: Iterable[Sequence[WantedRecordSet]], *,
                 also: Callable[[Tx, Domain], None]) -> Domain: ...


class ImportWorker:
    """
    :param clock: seconds since 1970
    :param limits: the quotas of a project
    """

    def __init__(self, storage: Storage, make: Make, clock: Callable[[], float],
                 limits: Callable[[Tx, str], ProjectQuotas] = lambda tx, project_id: ProjectQuotas()) -> None:
        self._storage = storage
        self._make = make
        self._clock = clock
        self._limits = limits
        self._held: set[tuple[str, str]] = set()  # tasks, and the claims on them
        self._ahead: collections.deque[tuple[ZoneTask, str]] = collections.deque()  # held small ones, for the next loop
        self._claiming = threading.Lock()
        self._changed = threading.Condition()
        self._asked = 0
        self._stopping = threading.Event()

    def start(self, runtime: Runtime) -> None:
        for number, largest in enumerate(LANES, 1):
            runtime.spawn(self._loop, largest, name=f'central-imports-{number}')
        runtime.spawn(self._keep_claims, name='central-imports-claims')

    def stop(self) -> None:
        """Leave what is being carried out to other Centrals."""
        self._stopping.set()
        self.look()

    def look(self) -> None:
        """Have the loops look for tasks now."""
        with self._changed:
            self._asked += 1
            self._changed.notify_all()

    def turn(self, largest: int | None = None) -> bool:
        """Carry out one import; whether there may be more to do.

        :param largest: bytes that its zone file may have; None for any
        """
        taken = self._next(largest)
        if taken is None:
            return False
        task, claim = taken
        try:
            self._carry_out(task, claim)
        finally:
            self._held.discard((task.id, claim))
        return True

    # Below: how

    def _next(self, largest: int | None) -> tuple[ZoneTask, str] | None:
        """A task to carry out, and the claim on it."""
        with self._claiming:
            if largest is not None and self._ahead:
                return self._ahead.popleft()
            now = self._now()
            if self._stopping.is_set() or not self._storage.ask(zone_tasks.waiting, now, largest):
                return None
            claim = new_id()
            found = self._storage.run(zone_tasks.claim, claim, now, now + timedelta(seconds=LEASE), largest,
                                      1 if largest is None else AT_ONCE)
            self._held.update((task.id, claim) for task in found)
            self._ahead.extend((task, claim) for task in found[1:])
            return (found[0], claim) if found else None

    def _carry_out(self, task: ZoneTask, claim: str) -> None:
        tries = task.version - 1
        try:
            if tries > MOST_TRIES:
                raise InvalidField(field='zone file', why=f'the import was begun {MOST_TRIES} times and never ended')
            self._import(task, claim)
        except _Taken:
            LOG.info('import %s: somebody else carries it out, or it was deleted', task.id)
        except _Stopped:
            self._storage.run(zone_tasks.keep_claim, task.id, claim, self._now())
        except PoolError as error:
            if error.code < 500 or tries >= MOST_TRIES:
                self._end(task, claim, _told(error))
            else:
                self._try_later(task, claim, tries, error)
        except Exception as error:  # of the database, say: the task is not what is wrong, unless it is so every time
            LOG.exception('import %s failed', task.id)
            if tries >= MOST_TRIES:
                self._end(task, claim,
                          f'Central failed {tries} times to import it ({type(error).__name__}); its log says more.')
            else:
                self._try_later(task, claim, tries, error)

    def _import(self, task: ZoneTask, claim: str) -> None:
        # What is no project's was brought by one who sees everything.
        context = Context(request_id=task.request_id, project_id=task.project_id, may_nest=task.may_nest,
                          all_projects=task.may_nest or not task.project_id)
        pieces = zone_tasks.pieces(self._storage, task.id, task.size or 0)
        wanted, contents = zonefile_parser.parse(_lines(self._unless_stopping(pieces)),
                                                 self._storage.read(self._limits, task.project_id))

        def settle(tx: Tx, domain: Domain) -> None:
            if not zone_tasks.settle(tx, task.id, claim, ZoneTaskStatus.COMPLETE, domain.id,
                                     f'{domain.name} imported{_replaced(tx, domain, contents)}', self._now()) \
                    and not zone_tasks.made(tx, task.id, domain.id):  # the commit came through, the answer did not
                raise _Taken(task=task.id)
            zone_tasks.remove_pieces(tx, task.id)

        if task.pool_id is not None:
            wanted = dataclasses.replace(wanted, pool_id=task.pool_id)
        domain = self._make(context, wanted, _Parts(contents, self._unless_stopping), also=settle)
        LOG.info('import %s made %s, %d recordsets [%s]', task.id, domain.name, len(contents), task.request_id)

    def _end(self, task: ZoneTask, claim: str, message: str) -> None:
        if self._storage.run(zone_tasks.settle, task.id, claim, ZoneTaskStatus.ERROR, None, message, self._now()):
            self._storage.run(zone_tasks.remove_pieces, task.id)
            LOG.info('import %s ended in error: %s [%s]', task.id, message, task.request_id)

    def _try_later(self, task: ZoneTask, claim: str, tries: int, error: Exception) -> None:
        pause = _PAUSES.delay(tries)
        LOG.warning('import %s is tried again in %g s: %s', task.id, pause, error)
        self._storage.run(zone_tasks.keep_claim, task.id, claim, self._now() + timedelta(seconds=pause))

    def _unless_stopping(self, source: Iterable[T]) -> Iterator[T]:
        for each in source:
            if self._stopping.is_set():
                raise _Stopped
            yield each

    def _loop(self, largest: int | None) -> None:
        is_last = False
        while not is_last:
            is_last = self._stopping.is_set()  # then nothing is claimed any more, and what is claimed given back
            with self._changed:
                seen = self._asked
            try:
                while self.turn(largest):
                    pass
            except Exception:  # the loop outlives whatever ails the database
                LOG.exception('waiting imports could not be read; tried again in %g s', INTERVAL)
            with self._changed:
                self._changed.wait_for(lambda: self._asked != seen or self._stopping.is_set(), INTERVAL)

    def _keep_claims(self) -> None:
        while not self._stopping.wait(LEASE / 4):
            for task_id, claim in tuple(self._held):
                try:
                    self._storage.run(zone_tasks.keep_claim, task_id, claim,
                                      self._now() + timedelta(seconds=LEASE))
                except Exception:  # a claim that lapses meanwhile costs a second try of the import, no more
                    LOG.exception('the claim on import %s could not be renewed; another Central may take it over',
                                  task_id)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), timezone.utc)


class _Parts:
    """The recordsets of a zone file, in parts; can be gone through again, for a transaction that is done again."""

    def __init__(self, contents: zonefile_parser.ZoneFileContents,
                 guarded: Callable[[Iterable[Sequence[WantedRecordSet]]],
                                   Iterator[Sequence[WantedRecordSet]]]) -> None:
        self._contents = contents
        self._guarded = guarded

    def __iter__(self) -> Iterator[Sequence[WantedRecordSet]]:
        return self._guarded(self._contents.parts())


def _told(error: PoolError) -> str:
    """All that is wrong, a line each."""
    every = error.kwargs.get('all')
    return '\n'.join(f'{field}: {why}.' for field, why in every) if every else str(error)


def _replaced(tx: Tx, domain: Domain, contents: zonefile_parser.ZoneFileContents) -> str:
    """Which name servers of the file's the zone does not have; '' when it has those of the pool, or none."""
    if not contents.name_servers:
        return ''
    [found] = recordsets.at_apex(tx, [domain.id], 'NS')
    ours = [record.data for record in found.records]
    if set(contents.name_servers) == set(ours):
        return ''
    return (f"; its name servers are the pool's, {', '.join(ours)}, instead of those in the file, "
            f"{', '.join(contents.name_servers)}")


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """The lines of a zone file that is UTF-8."""
    decoder = codecs.getincrementaldecoder('utf-8')()
    rest = ''
    for piece in pieces:
        *whole, rest = (rest + decoder.decode(piece)).split('\n')
        yield from whole
        if len(rest) > LONGEST_RECORD:
            raise InvalidField(field='zone file', why=f'a line of more than {LONGEST_RECORD} characters')
    yield rest
