"""A pool of connections to one server: one for each call in flight, and a few idle ones.

The server may have closed an idle connection, or restarted.  A call that fails on an idle connection is repeated on a
new one; drivers' calls are safe to repeat.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from designate_pool.deadline import Deadline


class PooledConnection(Protocol):
    def close(self) -> None:
        """Close the connection."""


C = TypeVar('C', bound=PooledConnection)
T = TypeVar('T')


class ConnectionPool(Generic[C]):
    """The connections to one server.

    :param connect: makes a connection within a deadline
    :param keep: how many idle connections are kept
    :param idle: seconds after which an idle connection is not used any more
    """

    def __init__(self, connect: Callable[[Deadline], C], keep: int, idle: float = 20.0) -> None:
        self._connect = connect
        self._keep = keep
        self._idle = idle
        self._lock = threading.Lock()
        self._free: list[tuple[C, float]] = []

    def use(self, work: Callable[[C, Deadline], T], deadline: Deadline) -> T:
        """Do *work* on a connection of its own; OSError when the server cannot be reached on a new one either."""
        kept = self._take()
        if kept is not None:
            try:
                return self._work_on(kept, work, deadline)
            except TimeoutError:
                raise
            except OSError:
                self.close()
        return self._work_on(self._connect(deadline), work, deadline)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            free, self._free = self._free, []
        for connection, _ in free:
            connection.close()

    def _work_on(self, connection: C, work: Callable[[C, Deadline], T], deadline: Deadline) -> T:
        try:
            result = work(connection, deadline)
        except BaseException:  # an answer may still arrive, which the next call must not read
            connection.close()
            raise
        with self._lock:
            keep = len(self._free) < self._keep
            if keep:
                self._free.append((connection, time.monotonic()))
        if not keep:
            connection.close()
        return result

    def _take(self) -> C | None:
        now = time.monotonic()
        with self._lock:
            while self._free:
                connection, since = self._free.pop()
                if now - since < self._idle:
                    return connection
                connection.close()
        return None
