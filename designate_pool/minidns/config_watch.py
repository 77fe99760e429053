"""Reloads the configuration when a pool manager has reloaded it.

Each reload of a pool manager raises a counter in the database, which is polled once a second.  So all processes of a
pool agree on its servers within a second or two, wherever they run, without a signal to each.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from designate_pool.concurrency import LoopTask, Runtime
from designate_pool.errors import PoolError
from designate_pool.model import Pool
from designate_pool.outage_log import OutageLog
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.sql.database import Storage

LOG = logging.getLogger(__name__)

POLL_INTERVAL = 1.0
#: Unknown server ids that are remembered, for the limit of one reload a second for each.
_MAX_REMEMBERED = 1000


class ConfigWatcher:
    """Reloads the pool when the counter has changed, or when a server is unknown.

    :param read_pool: reads the configuration; raises :class:`designate_pool.errors.PoolError` when it is wrong
    :param apply: called with the pool that was read
    """

    def __init__(self, storage: Storage, pool_name: str, read_pool: Callable[[], Pool],
                 apply: Callable[[Pool], None]) -> None:
        self._storage = storage
        self._pool_name = pool_name
        self._read_pool = read_pool
        self._apply = apply
        self._applied_reloads: int | None = None
        self._last_lookup: dict[str, float] = {}
        self._lock = threading.Lock()
        self._last_error = ''
        self._outage = OutageLog(LOG, 'the servers cannot be read from the database, the known ones are still used: %s',
                                 'the servers can be read from the database again')
        self._pool_gone = OutageLog(
            LOG, 'the pool %s is not in the database any more: it was deleted or renamed, and this program serves no '
            "zones now. Stop it, correct pool_name, or 'designate-pool-manage pool create %s'",
            'the pool %s is there again')
        self._stop_event = threading.Event()
        self._task: LoopTask | None = None

    def start(self, runtime: Runtime) -> None:
        self._task = runtime.spawn(self._run, name='minidns-config')

    def stop(self) -> None:
        self._stop_event.set()
        if self._task is not None:
            self._task.join(10)

    def reload_for(self, server_id: str) -> None:
        """Reload at once, since *server_id* is unknown, even if the counter has not changed; at most once a second for
        each id.
        """
        with self._lock:
            now = time.monotonic()
            if now - self._last_lookup.get(server_id, -POLL_INTERVAL) < POLL_INTERVAL:
                return
            if len(self._last_lookup) >= _MAX_REMEMBERED:
                self._last_lookup.clear()
            self._last_lookup[server_id] = now
            self._reload()

    def _run(self) -> None:
        while True:
            try:
                self._check()
            except Exception as error:  # errors of the database are of several classes; the next poll tries again
                self._outage.failed(error)
            if self._stop_event.wait(POLL_INTERVAL):
                return

    def _check(self) -> None:
        reloads = self._storage.read(pool_servers.reloads, self._pool_name)
        self._outage.ended()
        if reloads is None:
            if self._applied_reloads is not None:
                self._pool_gone.failed(self._pool_name, self._pool_name)
            return
        self._pool_gone.ended(self._pool_name)
        if reloads == self._applied_reloads:
            return
        with self._lock:
            if self._reload():
                self._applied_reloads = reloads  # else it is tried again

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
