"""How many domains a pool has, as it is shown: counted anew where that is cheap, else every now and then."""

from __future__ import annotations

from collections.abc import Callable

from designate_pool.storage.operations import pool_servers
from designate_pool.storage.sql.database import Tx

#: From so many domains on, a count is kept for so many seconds.
MANY, KEPT = 10_000, 30.0


class DomainCounts:
    """
    :param clock: seconds
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[float, int]] = {}

    def of(self, tx: Tx, pool_id: str) -> int:
        """How many domains of the pool are to be served, or were a moment ago."""
        now = self._clock()
        counted_at, count = self._kept.get(pool_id, (now, 0))
        if count >= MANY and 0 <= now - counted_at < KEPT:
            return count
        count = pool_servers.count_domains(tx, pool_id)
        self._kept[pool_id] = now, count
        return count
