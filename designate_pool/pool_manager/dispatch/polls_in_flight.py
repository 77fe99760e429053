"""The polls of the backlog that are in flight to one server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

#: Polls of the backlog in flight to one server, at most.
MOST_POLLS = 1000


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

    def __contains__(self, domain_id: str) -> bool:
        return domain_id in self._domain_ids

    def discard(self, domain_id: str) -> None:
        with self._lock:
            self._domain_ids.pop(domain_id, None)

    def retain(self, under_way: Callable[[list[str]], Iterable[str]]) -> None:
        """Drop those that *under_way* does not return of the ids it is given."""
        with self._lock:
            known = list(self._domain_ids)
        gone = set(known).difference(under_way(known))
        with self._lock:
            for domain_id in gone:
                self._domain_ids.pop(domain_id, None)
