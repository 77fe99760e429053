"""The number of domains of a pool, for reports: counted each time in a small pool, cached in a large one."""

from __future__ import annotations

from collections.abc import Callable

from designate_pool.storage.operations import pool_servers
from designate_pool.storage.sql.database import Tx

#: From this many domains on, a count is cached for this many seconds.
CACHED_FROM, CACHE_SECONDS = 10_000, 30.0


class DomainCounts:
    """
    :param clock: seconds
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._cache: dict[str, tuple[float, int]] = {}

    def of(self, tx: Tx, pool_id: str) -> int:
        """The domains of the pool that are to be served."""
        now = self._clock()
        counted_at, count = self._cache.get(pool_id, (now, 0))
        if count >= CACHED_FROM and 0 <= now - counted_at < CACHE_SECONDS:
            return count
        count = pool_servers.count_domains(tx, pool_id)
        self._cache[pool_id] = now, count
        return count
