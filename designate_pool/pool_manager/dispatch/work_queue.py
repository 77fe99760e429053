"""The operations queued for one server: recent changes before the backlog, and neither starves the other.

A server that comes back, or that has lost its zones, has a backlog of operations; a recent change does not wait behind
them.  Both kinds are bounded; the rest stays in the database.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from designate_pool.model import Domain, ServerStatus

#: For how long a change is recent.
FRESH = timedelta(seconds=60)
#: If both kinds are queued, one in so many that are taken is of the backlog.
SHARE = 4
#: Polls of the backlog in flight to one server, at most.
MOST_POLLS = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """A claimed row and its domain, as read when the operation was queued.

    :ivar current: whether it is for a recent change
    """

    domain: Domain
    row: ServerStatus
    current: bool = False


def is_current(domain: Domain, now: datetime) -> bool:
    """Whether *domain* has changed recently."""
    return domain.changed_at is not None and now - domain.changed_at < FRESH


class PriorityQueue:
    """Queued operations; those of one domain name are taken in the order in which they came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current: collections.deque[Operation] = collections.deque()
        self._past: collections.deque[Operation] = collections.deque()
        self._skipped = 0

    def put(self, operation: Operation) -> None:
        with self._lock:
            if operation.current:
                earlier = [each for each in self._past if each.domain.name == operation.domain.name]
                for each in earlier:
                    self._past.remove(each)
                self._current.extend((*earlier, operation))
            elif any(each.domain.name == operation.domain.name for each in self._current):
                self._current.append(operation)
            else:
                self._past.append(operation)

    def take(self, count: int) -> list[Operation]:
        """The next *count*."""
        with self._lock:
            return [self._next() for _ in range(count)]

    def waiting(self, current: bool) -> int:
        """Number of queued operations of one kind."""
        return len(self._current if current else self._past)

    def _next(self) -> Operation:
        if not self._current or self._past and self._skipped == SHARE - 1:
            self._skipped = 0
            return self._past.popleft()
        self._skipped += bool(self._past)
        return self._current.popleft()


class PollsInFlight:
    """The domains that a server is being polled for.

    A result may go to another pool manager, so a full set is compared with the database, see :meth:`retain`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._domain_ids: dict[str, None] = {}

    @property
    def room(self) -> int:
        return max(0, MOST_POLLS - len(self._domain_ids))

    def add(self, domain_id: str) -> None:
        with self._lock:
            self._domain_ids[domain_id] = None

    def discard(self, domain_id: str) -> None:
        with self._lock:
            self._domain_ids.pop(domain_id, None)

    def retain(self, under_way: Callable[[list[str]], Iterable[str]]) -> None:
        """Drop those that *under_way* does not return of the ids it is given."""
        with self._lock:
            add = list(self._domain_ids)
        gone = set(add).difference(under_way(add))
        with self._lock:
            for domain_id in gone:
                self._domain_ids.pop(domain_id, None)
