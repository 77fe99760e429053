"""The worker of one server: its queues, limits and circuit breakers.  It never delays the other servers.

A server that comes back, or that has lost its zones, has a backlog of operations; a recent change does not wait behind
them.  Both kinds are bounded where they are queued; the rest stays in the database.

There are two circuits for each server, since its control channel and its DNS can fail independently.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import itertools
import logging
import threading
import time
import zlib
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from designate_pool import metrics
from designate_pool.backends.base import Backend
from designate_pool.backoff import Backoff
from designate_pool.errors import ServiceUnavailable
from designate_pool.model import Action, CallResult, Domain, Outcome, PollResult, Reason, Server, ServerStatus

LOG = logging.getLogger(__name__)

#: For how long a change is recent.
RECENT = timedelta(seconds=60)
#: If probes succeed and calls fail, the pause between probes doubles, up to this many intervals.
LONGEST_PAUSE = 16
#: Seconds for which a circuit was open lately.
LATELY = 600.0
#: Polls of the backlog in flight to one server, at most.
MOST_POLLS = 1000
#: Zones in one retransfer: each is transferred at least twice.
MAX_RETRANSFERS = 16

#: The result, and the serial that the server serves then.
SyncResult = tuple[CallResult, int | None]


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """A claimed row and its domain, as read when the operation was queued."""

    domain: Domain
    row: ServerStatus
    recent: bool = False


def has_recent_change(domain: Domain, now: datetime) -> bool:
    """Whether *domain* has changed recently."""
    return domain.changed_at is not None and now - domain.changed_at < RECENT


@dataclasses.dataclass(frozen=True, slots=True)
class CallOutcome:
    """How the driver's call for *operation* ended, which may be the first one or another one of several in that call.

    :ivar serial: that the server serves after record sync or retransfer
    :ivar server: the settings that the call was made with; None if not known
    """

    operation: Operation
    result: CallResult
    is_first: bool = True
    serial: int | None = None
    server: Server | None = None

    @property
    def domain_id(self) -> str:
        """The domain's id."""
        return self.operation.domain.id

    @property
    def server_id(self) -> str:
        """The server's id."""
        return self.operation.row.server_id

    @property
    def status(self) -> Outcome:
        """SUCCESS or ERROR."""
        return Outcome.SUCCESS if self.result.ok else Outcome.ERROR


ServerOutcome = CallOutcome | PollResult


class CircuitBreaker:
    """Closed while the server answers; after *failures* in a row it gets no calls but an occasional cheap probe.

    :param probe_interval: seconds between two probes while it is open
    :param clock: monotonic seconds
    """

    def __init__(self, failures: int, probe_interval: float, clock: Callable[[], float]) -> None:
        self._limit = failures
        self._clock = clock
        self._lock = threading.Lock()
        self._count = 0
        self._open_since: float | None = None
        self._closed_at = -LATELY
        self._next_probe = 0.0
        self._pauses = Backoff(probe_interval, cap=LONGEST_PAUSE * probe_interval)
        self._unproven = 0
        self._proven = True
        self._heard_at = clock()

    @property
    def is_open(self) -> bool:
        """Whether the server gets only probes."""
        return self._open_since is not None

    @property
    def was_open_lately(self) -> bool:
        """Whether it is open, or was within the last :data:`LATELY` seconds."""
        return self.is_open or self._clock() - self._closed_at < LATELY

    def failed(self, count: int = 1) -> bool:
        """Count *count* failures to reach the server; whether this opened the circuit."""
        with self._lock:
            self._heard_at = self._clock()
            self._count += count
            if self._open_since is not None or self._count < self._limit:
                return False
            self._open_since = self._clock()
            self._unproven = 0 if self._proven else self._unproven + 1
            self._next_probe = self._open_since + self._pauses.delay(self._unproven)
            return True

    def answered(self, probe: bool = False) -> bool:
        """The server has answered anything at all (a *probe* proves little); whether this closed the circuit."""
        with self._lock:
            self._heard_at = self._clock()
            self._count = 0
            was_open = self._open_since is not None
            if was_open:
                self._closed_at = self._clock()
            self._open_since = None
            self._proven = not probe
            return was_open

    def probe_due(self) -> bool:
        """Whether a probe may be sent now; if so, the next one is due after the pause."""
        with self._lock:
            if self._open_since is None or self._clock() < self._next_probe:
                return False
            self._next_probe = self._clock() + self._pauses.delay(self._unproven)
            return True

    def close_unheard(self, longest: float) -> bool:
        """Close if nothing was heard of probes whose answers take *longest* seconds at most; whether it was closed."""
        with self._lock:
            if self._open_since is None or self._clock() - self._heard_at <= longest + 2 * self._pauses.cap:
                return False
            self._open_since, self._count, self._closed_at = None, 0, self._clock()
            return True


class _Kind(enum.Enum):
    """Operations of one kind share a call."""

    CREATE = enum.auto()
    DELETE = enum.auto()
    RETRANSFER = enum.auto()
    REFETCH = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerCallbacks:
    """What the manager does for its workers.

    :ivar sync_records: plans and applies a domain on a server that is fed by records, or deletes it there
    :ivar retransfer: makes the server transfer domains again whose contents are not ours
    :ivar renew: renews the claims of operations queued or in flight; returns the rows that are still ours, renewed
    :ivar release: releases the claims of operations that will not be called
    """

    sync_records: Callable[[Backend, Domain], SyncResult]
    retransfer: Callable[[Backend, Sequence[Domain]], Sequence[SyncResult]]
    done: Callable[[Sequence[CallOutcome]], object]
    renew: Callable[[Sequence[ServerStatus]], Sequence[ServerStatus]] = lambda rows: ()
    release: Callable[[Sequence[ServerStatus]], object] = lambda rows: None


class PollsInFlight:
    """The domains that a server is being polled for.

    A result may go to another pool manager, so a full set is compared with the database, see :meth:`retain`; and a poll
    counts until its round must have ended at most.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: When the round must have ended, and whether the poll is for a recent change; in order of time.
        self._polls: dict[str, tuple[datetime, bool]] = {}

    def room(self, now: datetime) -> int:
        """How many more polls may be in flight."""
        with self._lock:
            while self._polls and next(iter(self._polls.values()))[0] <= now:
                del self._polls[next(iter(self._polls))]
            return max(0, MOST_POLLS - len(self._polls))

    def add(self, domain_id: str, until: datetime, recent: bool) -> None:
        """Note that the server is being polled for this domain."""
        with self._lock:
            self._polls.pop(domain_id, None)
            self._polls[domain_id] = until, recent

    def is_for_recent_change(self, domain_id: str) -> bool:
        """Whether the server is being polled for a recent change of this domain."""
        return self._polls.get(domain_id, (None, False))[1]

    def discard(self, domain_id: str) -> None:
        """Note that the poll for this domain has ended."""
        with self._lock:
            self._polls.pop(domain_id, None)

    def retain(self, under_way: Callable[[list[str]], Collection[str]]) -> None:
        """Drop those that *under_way* does not return of the ids it is given."""
        with self._lock:
            polled = list(self._polls)
        for domain_id in set(polled).difference(under_way(polled)):
            self.discard(domain_id)


class ServerWorker:
    """Calls one server's driver: ``server.max_in_flight`` calls at a time, one at a time for each domain name.

    Queued operations of a kind go to the driver in one call, up to its batch size.  If calls are expensive (the
    driver's ``gathers_below``), the worker pauses after a small batch so that more gathers, unless enough wait already.

    :param depth: operations that may be queued for recent changes, and as many for the backlog
    :param longest_call: seconds after which a call is stuck: its claims and those queued behind it are not renewed
    :param rest: the pause after a small batch, as a multiple of the time that it took; *longest_rest* seconds at most
    :ivar is_silent: whether the database says that the server answers nobody, as read or written last
    :ivar answered_at: when it answered last, which another pool manager may not know; None if not since the start
    """

    def __init__(self, server: Server, backend: Backend, control: CircuitBreaker, dns: CircuitBreaker, depth: int,
                 runtime: Any, callbacks: WorkerCallbacks, now: Callable[[], datetime], *,
                 longest_call: float = 600.0, rest: float = 3.0, longest_rest: float = 1.0) -> None:
        self.server = server
        self.backend = backend
        self.control = control
        self.dns = dns
        self._depth = depth
        self._callbacks = callbacks
        self._now = now
        self._longest_call = longest_call
        self._rest, self._longest_rest = rest, longest_rest
        self._stopping = threading.Event()
        self.polls = PollsInFlight()
        self.is_silent = False
        self.answered_at: datetime | None = None
        # Queued or in flight, by the id() they had when queued: the number of the queue, and the present claim.
        self._operations: dict[int, tuple[int, Operation]] = {}
        self._call_started: dict[int, float] = {}
        self._lock = threading.Lock()
        count = min(server.max_in_flight, backend.capabilities.most_in_flight)
        size = backend.capabilities.batch_size
        if rate := backend.capabilities.changes_per_second:  # a recent change does not wait for a long batch
            size = min(size, max(1, int(rate / count)))
        self._queues = [runtime.work_queue(functools.partial(self._call_next, number), size, f'{server.label}/{number}',
                                           priority=lambda each: each.recent) for number in range(count)]

    def room(self, recent: bool) -> int:
        """How many more operations of one kind may be queued."""
        return max(0, self._depth - sum(queue.waiting(recent) for queue in self._queues))

    @property
    def waiting(self) -> int:
        """Number of queued operations."""
        return sum(len(queue) for queue in self._queues)

    def put(self, *operations: Operation) -> None:
        """Queue *operations*; all operations on one name go through one queue."""
        by_queue: dict[int, list[Operation]] = collections.defaultdict(list)
        for operation in operations:
            by_queue[zlib.crc32(operation.domain.name.encode()) % len(self._queues)].append(operation)
        for number, part in by_queue.items():
            with self._lock:
                self._operations.update((id(operation), (number, operation)) for operation in part)
            self._queues[number].put(*part)

    def stop(self) -> None:
        """Finish the calls in flight and release what is queued, so that others can claim it at once."""
        self._stopping.set()
        for queue in self._queues:
            queue.stop(self.server.call_timeout)
        with self._lock:  # a call that has not ended in time keeps its claims
            rows = [operation.row for number, operation in self._operations.values()
                    if number not in self._call_started]
        self.backend.close()
        if rows:
            self._callbacks.release(rows)

    def extend_claims(self, before: datetime) -> None:
        """Renew the claims that end *before* then, except those of stuck calls."""
        stuck = time.monotonic() - self._longest_call
        with self._lock:
            rows = [operation.row for number, operation in self._operations.values()
                    if operation.row.claimed_until is not None and operation.row.claimed_until < before
                    and self._call_started.get(number, stuck) >= stuck]
        self._extend(rows)

    def _call_next(self, number: int, operations: Sequence[Operation]) -> None:
        began = time.monotonic()
        called: set[int] = set()
        capabilities = self.backend.capabilities
        dropped: list[ServerStatus] = []
        is_ending = False
        try:
            for kind, together in itertools.groupby(operations, _kind):
                part = list(together)
                size = MAX_RETRANSFERS if kind is _Kind.RETRANSFER else len(part)
                for start in range(0, len(part), size):
                    with self._lock:
                        self._call_started[number] = time.monotonic()
                    ids = self._call_claimed(part[start:start + size], kind)
                    called.update(ids)
                    if capabilities.changes_per_second and kind in (_Kind.CREATE, _Kind.DELETE):
                        self._stopping.wait(len(ids) * len(self._queues) / capabilities.changes_per_second)
        except (SystemExit, KeyboardInterrupt, GeneratorExit):
            is_ending = True
            raise
        finally:
            with self._lock:
                self._call_started.pop(number, None)
                for operation in operations:
                    if id(operation) in called or not self._stopping.is_set():
                        entry = self._operations.pop(id(operation), None)
                        if entry is not None and id(operation) not in called:
                            dropped.append(entry[1].row)
            # Someone else may have ended the row meanwhile, and then nobody looks at its claim again.
            if dropped and not is_ending:
                self._callbacks.release(dropped)
        if 1 < len(called) < capabilities.gathers_below > len(self._queues[number]):
            self._stopping.wait(min(self._rest * (time.monotonic() - began), self._longest_rest))

    def _call_claimed(self, operations: Sequence[Operation], kind: _Kind) -> list[int]:
        """Make one call for those of *operations* that are still ours; their keys."""
        ids = self._claimed(operations)
        if ids:
            results = self._call_or_fail([self._operations[key][1] for key in ids], kind)
            self._callbacks.done([CallOutcome(self._operations[key][1], result, key == ids[0], serial, self.server)
                                  for key, (result, serial) in zip(ids, results, strict=True)])
        return ids

    def _claimed(self, operations: Sequence[Operation]) -> list[int]:
        """Keys of *operations* whose claims outlast a call; the others may be claimed by another pool manager."""
        if self._stopping.is_set():
            return []
        ids = [id(operation) for operation in operations]
        until = self._now() + timedelta(seconds=self.server.call_timeout)
        self._extend([row for key in ids if not _outlasts(row := self._operations[key][1].row, until)])
        return [key for key in ids if _outlasts(self._operations[key][1].row, until)]

    def _extend(self, rows: Sequence[ServerStatus]) -> None:
        if not rows:
            return
        renewed = {(row.domain_id, row.action): row for row in self._callbacks.renew(rows)}
        with self._lock:
            for key, (number, operation) in self._operations.items():
                row = renewed.get((operation.row.domain_id, operation.row.action))
                if row is not None:
                    self._operations[key] = number, dataclasses.replace(operation, row=row)

    def _call_or_fail(self, operations: Sequence[Operation], kind: _Kind) -> Sequence[SyncResult]:
        """The results of one call; whatever it raises is the failure of all of it, unless the database is away."""
        try:
            return self._call(operations, kind)
        except (SystemExit, KeyboardInterrupt, GeneratorExit, ServiceUnavailable):
            raise
        except BaseException as error:  # eventlet's Timeout is not an Exception, and a driver may do anything
            LOG.exception('%s: a call for %d zones failed', self.server.label, len(operations))
            failed = CallResult(error=f'the driver failed: {type(error).__name__}: {error}', reason=Reason.OTHER)
            return [(failed, None)] * len(operations)

    def _call(self, operations: Sequence[Operation], kind: _Kind) -> Sequence[SyncResult]:
        if self.control.is_open and kind is not _Kind.RETRANSFER:  # contents are compared over DNS
            silent = CallResult(error='its control channel has not answered', unreachable=True,
                                reason=Reason.UNREACHABLE)
            return [(silent, None)] * len(operations)
        done: Sequence[SyncResult]
        domains = [operation.domain for operation in operations]
        if self.backend.capabilities.fed_by_records:
            done = [self._callbacks.sync_records(self.backend, domain) for domain in domains]
        elif kind is _Kind.RETRANSFER:
            done = self._callbacks.retransfer(self.backend, domains)
        else:
            act = {_Kind.CREATE: self.backend.create_domains, _Kind.DELETE: self.backend.delete_domains,
                   _Kind.REFETCH: self.backend.refetch_domains}[kind]
            done = [(result, None) for result in act(domains)]
        self._count(operations, done)
        return done

    def _count(self, operations: Sequence[Operation], done: Sequence[SyncResult]) -> None:
        """Count the results in the metrics, and measure the calls; a server fed by records has one for each."""
        label, driver = self.server.label, self.server.driver
        for index, (operation, (result, _)) in enumerate(zip(operations, done)):
            action = operation.row.action.value.lower()
            outcome = 'ok' if result.ok else 'unreachable' if result.unreachable else \
                'failed' if result.retryable else 'refused'
            metrics.OPERATIONS.labels(label, driver, action, outcome).inc()
            if not result.ok:
                metrics.FAILURES.labels(label, action, result.reason or Reason.OTHER).inc()
            if index == 0 or self.backend.capabilities.fed_by_records:
                metrics.OPERATION_SECONDS.labels(label, driver, action).observe(result.seconds)


def _outlasts(row: ServerStatus, until: datetime) -> bool:
    """Whether no other pool manager can claim *row* before *until*."""
    return row.claimed_until is None or row.claimed_until > until


def _kind(operation: Operation) -> _Kind:
    row = operation.row
    if row.action is Action.UPDATE:
        return _Kind.RETRANSFER if row.diverged or row.reason is Reason.UNCHECKED else _Kind.REFETCH
    return _Kind.DELETE if row.action is Action.DELETE else _Kind.CREATE
