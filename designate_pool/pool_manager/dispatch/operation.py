"""Operations on servers, their outcomes and those of polls, and the queue of outcomes.

A server that comes back, or that has lost its zones, has a backlog of operations; a recent change does not wait behind
them.  Both kinds are bounded where they are queued; the rest stays in the database.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from designate_pool.model import CallResult, Domain, Outcome, PollResult, Server, ServerStatus

#: For how long a change is recent.
RECENT = timedelta(seconds=60)


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """A claimed row and its domain, as read when the operation was queued.

    :ivar recent: whether it is for a recent change
    """

    domain: Domain
    row: ServerStatus
    recent: bool = False


def is_recent(domain: Domain, now: datetime) -> bool:
    """Whether *domain* has changed recently."""
    return domain.changed_at is not None and now - domain.changed_at < RECENT


@dataclasses.dataclass(frozen=True, slots=True)
class CallOutcome:
    """How the driver's call for *operation* ended.

    :ivar is_first: whether it is the first of its call; a call may be for several operations
    :ivar serial: that the server serves after record sync or retransfer
    :ivar server: the settings that the call was made with; None if not known
    """

    operation: Operation
    result: CallResult
    is_first: bool = True
    serial: int | None = None
    server: Server | None = None


ServerOutcome = CallOutcome | PollResult


def domain_of(outcome: ServerOutcome) -> str:
    """The domain's id."""
    return outcome.operation.domain.id if isinstance(outcome, CallOutcome) else outcome.domain_id


def server_of(outcome: ServerOutcome) -> str:
    """The server's id."""
    return outcome.operation.row.server_id if isinstance(outcome, CallOutcome) else outcome.server_id


def channel_of(outcome: ServerOutcome) -> tuple[str, bool]:
    """The server's id, and whether it was called over its control channel or polled over DNS."""
    return server_of(outcome), isinstance(outcome, CallOutcome)


def is_success(outcome: ServerOutcome) -> bool:
    """Whether the call or poll succeeded."""
    return outcome.result.ok if isinstance(outcome, CallOutcome) else outcome.status is Outcome.SUCCESS


class OutcomeQueue:
    """Outcomes that have yet to be handled.

    When a server gets all its zones again, outcomes arrive faster than they are handled.  Those of recent changes are
    handled first.

    :param handle: is called with up to *max_batch* outcomes
    :param max_recent: domains that are known to have changed recently
    """

    def __init__(self, runtime: Any, handle: Callable[..., None], max_batch: int, max_recent: int = 10_000) -> None:
        self._max_recent = max_recent
        self._queue = runtime.work_queue(handle, max_batch, 'outcomes',
                                         priority=self._is_recent)
        self._recent: collections.OrderedDict[str, float] = collections.OrderedDict()
        self._lock = threading.Lock()

    def mark_recent(self, domain_ids: Iterable[str]) -> None:
        """Note that these domains have changed just now."""
        now = time.monotonic()
        with self._lock:
            for domain_id in domain_ids:
                self._recent[domain_id] = now
                self._recent.move_to_end(domain_id)
            while self._recent and (len(self._recent) > self._max_recent
                                    or now - next(iter(self._recent.values())) >= RECENT.total_seconds()):
                self._recent.popitem(last=False)

    def put(self, *outcomes: ServerOutcome) -> None:
        """Queue *outcomes*."""
        self._queue.put(*outcomes)

    def __len__(self) -> int:
        return len(self._queue)

    def stop(self) -> None:
        """Handle what is queued, for a few seconds at most, and end."""
        self._queue.stop()

    def _is_recent(self, outcome: ServerOutcome) -> bool:
        changed_at = self._recent.get(domain_of(outcome))
        return changed_at is not None and time.monotonic() - changed_at < RECENT.total_seconds()
