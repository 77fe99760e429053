"""Connections kept between calls: one for each call that is under way, a few idle ones.

A server closes idle connections and restarts, so a kept one may be dead without our knowing.  A call that
finds it so is made once more on a new connection; drivers' calls are safe to repeat.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from designate_pool.deadline import Deadline


class PooledConnection(Protocol):
    def close(self) -> None: ...


C = TypeVar('C', bound=PooledConnection)
T = TypeVar('T')


class ConnectionPool(Generic[C]):
    """The kept connections to one server.

    :param connect: makes a connection before the deadline is over
    :param keep: how many idle ones are kept
    :param idle: seconds after which an idle one is not used again
    """

    def __init__(self, connect: Callable[[Deadline], C], keep: int, idle: float = 20.0) -> None:
        self._connect = connect
        self._keep = keep
        self._idle = idle
        self._lock = threading.Lock()
        self._free: list[tuple[C, float]] = []

    def use(self, work: Callable[[C, Deadline], T], deadline: Deadline) -> T:
        """Do *work* on a connection that nobody else uses meanwhile.

        :raises OSError: when the server could not be talked to, also on a new connection
        """
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
        """Close the idle ones."""
        with self._lock:
            free, self._free = self._free, []
        for connection, _ in free:
            connection.close()

    def _work_on(self, connection: C, work: Callable[[C, Deadline], T], deadline: Deadline) -> T:
        try:
            result = work(connection, deadline)
        except BaseException:  # whatever it was, an answer may still be on its way: nobody else may get it
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
