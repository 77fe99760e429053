"""Reloads the configuration when a pool manager has reloaded it.

Each reload of a pool manager raises a counter in the database, which is read when it says so, and every few seconds.
So all processes of a pool agree on its servers, wherever they run, without a signal to each.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from designate_pool.errors import PoolError
from designate_pool.model import Pool
from designate_pool.outage_log import OutageLog
from designate_pool.storage.serving.watched import Watched

LOG = logging.getLogger(__name__)

#: Seconds between reloads for one unknown server.
UNKNOWN_INTERVAL = 1.0
#: Unknown server ids that are remembered, for the limit of one reload a second for each.
_MAX_REMEMBERED = 1000


class ConfigReloader:
    """Reloads the pool when the counter has changed, or when a server is unknown.

    :param read_pool: reads the configuration; raises :class:`designate_pool.errors.PoolError` when it is wrong
    :param apply: called with the pool that was read
    """

    def __init__(self, pool_name: str, read_pool: Callable[[], Pool], apply: Callable[[Pool], None]) -> None:
        self._pool_name = pool_name
        self._read_pool = read_pool
        self._apply = apply
        self._applied_reloads: int | None = None
        self._last_lookup: dict[str, float] = {}
        self._lock = threading.Lock()
        self._last_error = ''
        self._pool_gone = OutageLog(
            LOG, 'the pool %s is not in the database any more: it was deleted or renamed, and this program serves no '
            "zones now. Stop it, correct pool_name, or 'designate-pool-manage pool create %s'",
            'the pool %s is there again')

    def reload_for(self, server_id: str) -> None:
        """Reload at once, since *server_id* is unknown, even if the counter has not changed; at most once a second for
        each id.
        """
        with self._lock:
            now = time.monotonic()
            if now - self._last_lookup.get(server_id, -UNKNOWN_INTERVAL) < UNKNOWN_INTERVAL:
                return
            if len(self._last_lookup) >= _MAX_REMEMBERED:
                self._last_lookup.clear()
            self._last_lookup[server_id] = now
            self._reload()

    def follow(self, found: Watched) -> bool:
        """Reload the configuration if the counter has changed; whether it could be."""
        if found.reloads is None:
            if self._applied_reloads is not None:
                self._pool_gone.failed(self._pool_name, self._pool_name)
            return True
        self._pool_gone.ended(self._pool_name)
        if found.reloads == self._applied_reloads:
            return True
        with self._lock:
            is_done = self._reload()
            if is_done:
                self._applied_reloads = found.reloads
            return is_done

    def _reload(self) -> bool:
        """Read and apply the configuration; one with errors is logged once, and the previous one stays in use."""
        try:
            self._apply(self._read_pool())
        except Exception as error:  # whatever a reader of files may raise
            if str(error) != self._last_error:
                LOG.error('the old list of servers is still used: %s', error, exc_info=not isinstance(error, PoolError))
            self._last_error = str(error)
            return False
        self._last_error = ''
        return True
