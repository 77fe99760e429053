"""One server's own lane: its queues, its limits, its circuits.  What happens in it costs the other servers nothing."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from designate_pool import metrics
from designate_pool.backends.base import Backend
from designate_pool.model import Action, CallResult, Domain, Server, ServerStatus
from designate_pool.pool_manager.dispatch.circuit_breaker import CircuitBreaker
from designate_pool.pool_manager.dispatch.work_queue import Operation, PollsInFlight, PriorityQueue

#: Servers that were found with other contents are mended so many zones at a time: each is transferred, twice at least.
MOST_MENDED = 16
#: Seconds after which a call is taken to be stuck: what it and those behind it have claimed is left to others.
LONGEST_CALL = 600.0
#: How many times as long as its calls took a server is left in peace where more is to gather, and seconds at most.
REST, LONGEST_REST = 3.0, 1.0

Fed = tuple[CallResult, int | None]
Feed = Callable[[Backend, Domain], Fed]
Mend = Callable[[Backend, Sequence[Domain]], Sequence[Fed]]
#: Renews claims; those that are still ours, as they are then.
Renew = Callable[[Sequence[ServerStatus]], Sequence[ServerStatus]]


@dataclasses.dataclass(frozen=True, slots=True)
class CallOutcome:
    """How the driver's call for *work* ended.

    :ivar leads: whether it stands for its call, where that was for several works
    :ivar serial: that the server was fed, where it is fed by records, or was heard to serve when it was to be mended
    :ivar server: with the settings that it was called with; None where that is not told
    """

    work: Operation
    result: CallResult
    leads: bool = True
    serial: int | None = None
    server: Server | None = None


class ServerWorker:
    """Calls one server's driver, ``server.max_in_flight`` calls at a time, one at a time for each domain name.

    What waits together goes to the driver together, as much as it takes in one call.  Where calls are dear (the
    driver's ``gathers_below``), most of the time is left for more to gather, unless work comes singly.

    :param feed: feeds a server that is fed by records a domain's contents, or deletes it there: the result, and the
        serial that it has then
    :param mend: has the server transfer domains anew that it has with other contents; the results, as those of *feed*
    :param done: told of every call, of those made together at once
    :param renew: renews the claims of what waits, or is under way
    :param depth: how much work may wait here for changes of now, and how much for those of the past
    :ivar polls: what the server is being polled for
    """

    def __init__(self, server: Server, backend: Backend, control: CircuitBreaker, dns: CircuitBreaker, depth: int,
                 runtime: Any, feed: Feed, mend: Mend, done: Callable[[Sequence[CallOutcome]], None],
                 now: Callable[[], datetime], renew: Renew = lambda rows: ()) -> None:
        self.server = server
        self.backend = backend
        self.control = control
        self.dns = dns
        self._depth = depth
        self._feed = feed
        self._mend = mend
        self._done = done
        self._now = now
        self._renew = renew
        self._stopping = threading.Event()
        self.polls = PollsInFlight()
        # What waits or is under way, by the identity that it had when it came, with its claim as it is now; and by
        # line since when its call is.
        self._works: dict[int, tuple[int, Operation]] = {}
        self._began: dict[int, float] = {}
        self._lock = threading.Lock()
        self._lines = [PriorityQueue() for _ in range(min(server.max_in_flight, backend.capabilities.most_in_flight))]
        # A queue counts what waits in its line: which of it comes next is seen when it is taken.
        self._queues = [runtime.batches(functools.partial(self._call_next, number), backend.capabilities.batch_size,
                                        name=f'{server.label}/{number}') for number in range(len(self._lines))]

    def takes(self, row: ServerStatus) -> bool:
        """Whether what is due for *row* is work for this lane, not a poll."""
        return row.action is not Action.UPDATE or row.diverged or self.backend.capabilities.fed_by_records

    def room(self, current: bool) -> int:
        """How much more work of one kind may wait here."""
        return max(0, self._depth - sum(line.waiting(current) for line in self._lines))

    @property
    def waiting(self) -> int:
        """How much work waits here."""
        return sum(len(queue) for queue in self._queues)

    def put(self, *works: Operation) -> None:
        """Queue *works*; all work on one name goes through one queue, in order."""
        counts: collections.Counter[int] = collections.Counter()
        for work in works:
            number = zlib.crc32(work.domain.name.encode()) % len(self._lines)
            with self._lock:
                self._works[id(work)] = number, work
            self._lines[number].put(work)
            counts[number] += 1
        for number, count in counts.items():
            self._queues[number].put(*range(count))

    def probe(self) -> CallResult:
        """One cheap question over the control channel."""
        return self.backend.ping()

    def stop(self) -> None:
        """Finish the calls under way; what waits stays in the database."""
        self._stopping.set()
        for queue in self._queues:
            queue.stop(self.server.call_timeout)
        self.backend.close()

    def keep_claims(self, before: datetime) -> None:
        """Renew the claims that end *before* then, but for those of calls that are stuck."""
        stuck = time.monotonic() - LONGEST_CALL
        with self._lock:
            rows = [work.row for number, work in self._works.values()
                    if work.row.claimed_until is not None and work.row.claimed_until < before
                    and self._began.get(number, stuck) >= stuck]
        self._prolong(rows)

    def _call_next(self, number: int, places: Sequence[int]) -> None:
        works = self._lines[number].take(len(places))
        began = time.monotonic()
        done = 0
        try:
            for (deletes, mends), together in itertools.groupby(works, _kind):
                some = list(together)
                most = MOST_MENDED if mends else len(some)
                for start in range(0, len(some), most):
                    with self._lock:
                        self._began[number] = time.monotonic()
                    done += self._carry_out(some[start:start + most], deletes, mends)
        finally:
            with self._lock:
                self._began.pop(number, None)
                for work in works:
                    self._works.pop(id(work), None)
        if 1 < done < self.backend.capabilities.gathers_below:
            self._stopping.wait(min(REST * (time.monotonic() - began), LONGEST_REST))

    def _carry_out(self, works: Sequence[Operation], deletes: bool, mends: bool) -> int:
        """Make one call for those of *works* that are still ours; how many these were."""
        ids = self._claimed(works)
        if ids:
            results = self._call([self._works[key][1] for key in ids], deletes, mends)
            self._done([CallOutcome(self._works[key][1], result, key == ids[0], serial, self.server)
                        for key, (result, serial) in zip(ids, results, strict=True)])
        return len(ids)

    def _claimed(self, works: Sequence[Operation]) -> list[int]:
        """Which of *works* have claims that outlast a call; one that ran out belongs to whoever takes the row next."""
        if self._stopping.is_set():
            return []
        ids = [id(work) for work in works]
        until = self._now() + timedelta(seconds=self.server.call_timeout)
        self._prolong([row for key in ids if not _outlasts(row := self._works[key][1].row, until)])
        return [key for key in ids if _outlasts(self._works[key][1].row, until)]

    def _prolong(self, rows: Sequence[ServerStatus]) -> None:
        if not rows:
            return
        renewed = {(row.domain_id, row.action): row for row in self._renew(rows)}
        with self._lock:
            for key, (number, work) in self._works.items():
                row = renewed.get((work.row.domain_id, work.row.action))
                if row is not None:
                    self._works[key] = number, dataclasses.replace(work, row=row)

    def _call(self, works: Sequence[Operation], deletes: bool, mends: bool) -> Sequence[Fed]:
        if self.control.is_open:
            silent = CallResult(error=f'{self.server.label} has not answered its control channel', unreachable=True)
            return [(silent, None)] * len(works)
        if self.backend.capabilities.fed_by_records:
            done = [self._feed(self.backend, work.domain) for work in works]
            self._count(works, done, together=False)
            return done
        if mends:
            mended = self._mend(self.backend, [work.domain for work in works])
            self._count(works, mended, together=True)
            return mended
        act = self.backend.delete_domains if deletes else self.backend.create_domains
        done = [(result, None) for result in act([work.domain for work in works])]
        self._count(works, done, together=True)
        return done

    def _count(self, works: Sequence[Operation], done: Sequence[Fed], together: bool) -> None:
        """
        :param together: whether they were one call, so that all of them took as long
        """
        label, driver = self.server.label, self.server.driver
        for index, (work, (result, _)) in enumerate(zip(works, done)):
            action = work.row.action.value.lower()
            metrics.OPERATIONS.labels(label, driver, action, _outcome(result)).inc()
            if not together or index == 0:
                metrics.OPERATION_SECONDS.labels(label, driver, action).observe(result.seconds)


def _outlasts(row: ServerStatus, until: datetime) -> bool:
    """Whether nobody else may take *row* before *until*."""
    return row.claimed_until is None or row.claimed_until > until


def _kind(work: Operation) -> tuple[bool, bool]:
    """Whether it deletes, and whether it mends; what is of one kind goes to the driver together."""
    return work.row.action is Action.DELETE, work.row.action is Action.UPDATE and work.row.diverged


def _outcome(result: CallResult) -> str:
    if result.ok:
        return 'ok'
    if result.unreachable:
        return 'unreachable'
    return 'failed' if result.retryable else 'refused'
