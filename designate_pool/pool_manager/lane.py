"""One server's own lane: its queue, its limit, its circuits.  What happens in it costs the other servers nothing."""

from __future__ import annotations

import dataclasses
import itertools
import zlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from designate_pool import metrics
from designate_pool.backends.base import Backend
from designate_pool.model import Action, CallResult, Domain, Server, ServerStatus
from designate_pool.pool_manager.circuit import Circuit

Fed = tuple[CallResult, int | None]
Feed = Callable[[Backend, Domain], Fed]


@dataclasses.dataclass(frozen=True, slots=True)
class Work:
    """A claimed row and its domain as they were when the work was handed out."""

    domain: Domain
    row: ServerStatus


@dataclasses.dataclass(frozen=True, slots=True)
class Called:
    """How the driver's call for *work* ended.

    :ivar leads: whether it stands for its call, where that was for several works
    :ivar serial: the serial that the server was fed, where it is fed by records
    """

    work: Work
    result: CallResult
    leads: bool = True
    serial: int | None = None


class Lane:
    """Calls one server's driver, ``server.max_in_flight`` calls at a time, one at a time for each domain name.

    What waits together goes to the driver together, as much as it takes in one call.

    :param feed: feeds a server that is fed by records a domain's contents: the result, and the serial that it has then
    :param done: told of every call, of those made together at once
    :param depth: how much work may wait here; the rest stays in the database
    """

    def __init__(self, server: Server, backend: Backend, control: Circuit, dns: Circuit, depth: int, runtime: Any,
                 feed: Feed, done: Callable[[Sequence[Called]], None], now: Callable[[], datetime]) -> None:
        self.server = server
        self.backend = backend
        self.control = control
        self.dns = dns
        self._depth = depth
        self._feed = feed
        self._done = done
        self._now = now
        self._stopping = False
        self._queues = [runtime.batches(self._call_all, backend.batch_size, name=f'{server.label}/{number}')
                        for number in range(min(server.max_in_flight, backend.most_in_flight))]

    @property
    def room(self) -> int:
        return max(0, self._depth - self.waiting)

    @property
    def waiting(self) -> int:
        """How much work waits here."""
        return sum(len(queue) for queue in self._queues)

    def put(self, work: Work) -> None:
        """Queue *work*; all work on one name goes through one queue, in order."""
        self._queues[zlib.crc32(work.domain.name.encode()) % len(self._queues)].put(work)

    def probe(self) -> CallResult:
        """One cheap question over the control channel."""
        return self.backend.ping()

    def stop(self) -> None:
        """Finish the calls under way; what waits stays in the database."""
        self._stopping = True
        for queue in self._queues:
            queue.stop(self.server.call_timeout)
        self.backend.close()

    def _call_all(self, works: list[Work]) -> None:
        # A claim that ran out in the queue belongs to whoever takes the row next.
        now = self._now()
        mine = [work for work in works if not self._stopping
                and (work.row.claimed_until is None or work.row.claimed_until > now)]
        for deletes, together in itertools.groupby(mine, lambda work: work.row.action is Action.DELETE):
            batch = list(together)
            self._done([Called(work, result, work is batch[0], serial)
                        for work, (result, serial) in zip(batch, self._call(batch, deletes), strict=True)])

    def _call(self, works: Sequence[Work], deletes: bool) -> Sequence[Fed]:
        if self.control.is_open:
            silent = CallResult(error=f'{self.server.label} has not answered its control channel', unreachable=True)
            return [(silent, None)] * len(works)
        if self.backend.fed_by_records and not deletes:
            done = [self._feed(self.backend, work.domain) for work in works]
            self._count(works, done, together=False)
            return done
        act = self.backend.delete_domains if deletes else self.backend.create_domains
        done = [(result, None) for result in act([work.domain for work in works])]
        self._count(works, done, together=True)
        return done

    def _count(self, works: Sequence[Work], done: Sequence[Fed], together: bool) -> None:
        """
        :param together: whether they were one call, so that all of them took as long
        """
        label, driver = self.server.label, self.server.driver
        for index, (work, (result, _)) in enumerate(zip(works, done)):
            action = work.row.action.value.lower()
            metrics.OPERATIONS.labels(label, driver, action, _outcome(result)).inc()
            if not together or index == 0:
                metrics.OPERATION_SECONDS.labels(label, driver, action).observe(result.seconds)


def _outcome(result: CallResult) -> str:
    if result.ok:
        return 'ok'
    if result.unreachable:
        return 'unreachable'
    return 'failed' if result.retryable else 'refused'
