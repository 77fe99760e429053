"""What waits for one server: changes of now before those of the past, so that neither starves the other.

A server that comes back, or that has lost its zones, is owed every change of the past; whoever changes something now
does not wait behind all of them.  Both kinds are bounded, the rest stays in the database.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from designate_pool.model import Domain, ServerStatus

#: For how long a change is one of now.
FRESH = timedelta(seconds=60)
#: Where both kinds wait, one in so many that are taken is of the past.
SHARE = 4
#: Polls of the past that may be under way to one server.
MOST_POLLS = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """A claimed row and its domain as they were when the work was handed out.

    :ivar current: whether it is for a change of now
    """

    domain: Domain
    row: ServerStatus
    current: bool = False


def is_current(domain: Domain, now: datetime) -> bool:
    """Whether what is to be done for *domain* is for a change of now."""
    return domain.changed_at is not None and now - domain.changed_at < FRESH


class PriorityQueue:
    """Work that waits to be done, of one name in the order in which it came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current: collections.deque[Operation] = collections.deque()
        self._past: collections.deque[Operation] = collections.deque()
        self._overtakings = 0

    def put(self, work: Operation) -> None:
        with self._lock:
            if work.current:
                former = [each for each in self._past if each.domain.name == work.domain.name]
                for each in former:
                    self._past.remove(each)
                self._current.extend((*former, work))
            elif any(each.domain.name == work.domain.name for each in self._current):
                self._current.append(work)
            else:
                self._past.append(work)

    def take(self, count: int) -> list[Operation]:
        """The next *count*."""
        with self._lock:
            return [self._next() for _ in range(count)]

    def waiting(self, current: bool) -> int:
        """How much of one kind waits."""
        return len(self._current if current else self._past)

    def _next(self) -> Operation:
        if not self._current or self._past and self._overtakings == SHARE - 1:
            self._overtakings = 0
            return self._past.popleft()
        self._overtakings += bool(self._past)
        return self._current.popleft()


class PollsInFlight:
    """Which domains a server is being polled for.

    Another pool manager may hear of it, so what is known here is looked up when it is too much to be true.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[str, None] = {}

    @property
    def room(self) -> int:
        return max(0, MOST_POLLS - len(self._asked))

    def asked(self, domain_id: str) -> None:
        with self._lock:
            self._asked[domain_id] = None

    def heard(self, domain_id: str) -> None:
        with self._lock:
            self._asked.pop(domain_id, None)

    def keep(self, under_way: Callable[[list[str]], Iterable[str]]) -> None:
        """Forget those that are not among *under_way* of them."""
        with self._lock:
            asked = list(self._asked)
        gone = set(asked).difference(under_way(asked))
        with self._lock:
            for domain_id in gone:
                self._asked.pop(domain_id, None)
