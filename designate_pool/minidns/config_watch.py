"""Follows the configuration: when a pool manager has read it anew, MiniDNS does so too.

Every reading raises a number in the database, which is looked at once a second.  So all processes of a pool agree on
its servers within a second or two, wherever they run, without a signal to each.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from designate_pool.concurrency import LoopTask, Runtime
from designate_pool.errors import PoolError
from designate_pool.model import Pool
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.sql.database import Storage

LOG = logging.getLogger(__name__)

EVERY = 1.0
#: Servers that were looked for which are remembered.
_MOST = 1000


class ConfigWatcher:
    """Reads the pool anew when that is due, and has it used.

    :param read_pool: reads the configuration; :class:`designate_pool.errors.PoolError` when it is wrong
    :param use: takes the pool that was read
    """

    def __init__(self, storage: Storage, pool_name: str, read_pool: Callable[[], Pool],
                 use: Callable[[Pool], None]) -> None:
        self._storage = storage
        self._pool_name = pool_name
        self._read_pool = read_pool
        self._use = use
        self._seen: int | None = None
        self._looked_for: dict[str, float] = {}
        self._reading = threading.Lock()
        self._complaint = ''
        self._outage = self._is_there = False
        self._over = threading.Event()
        self._task: LoopTask | None = None

    def start(self, runtime: Runtime) -> None:
        self._task = runtime.spawn(self._loop, name='minidns-following')

    def stop(self) -> None:
        self._over.set()
        if self._task is not None:
            self._task.join(10)

    def look_for(self, server_id: str) -> None:
        """Read at once, whatever the database says, since a server is not known; once a second for the same one."""
        with self._reading:
            now = time.monotonic()
            if now - self._looked_for.get(server_id, -EVERY) < EVERY:
                return
            if len(self._looked_for) >= _MOST:
                self._looked_for.clear()
            self._looked_for[server_id] = now
            self._read()

    def _loop(self) -> None:
        while True:
            try:
                self._look()
            except Exception as error:  # the database's errors are storage's own; the next look has its own chance
                if not self._outage:
                    LOG.error('the servers cannot be read from the database, the known ones are still used: %s', error)
                self._outage = True
            if self._over.wait(EVERY):
                return

    def _look(self) -> None:
        reloads = self._storage.read(pool_servers.reloads, self._pool_name)
        self._outage = False
        if reloads is None:
            if self._is_there:
                LOG.error("the pool %s is not in the database any more: it was deleted or renamed, and this program "
                          "serves no zones now. Stop it, correct pool_name, or 'designate-pool-manage pool create %s'",
                          self._pool_name, self._pool_name)
            self._is_there = False
            return
        self._is_there = True
        if reloads == self._seen:
            return
        with self._reading:
            if self._read():
                self._seen = reloads  # else it is tried again

    def _read(self) -> bool:
        """Take over the configuration; one with mistakes is told of once, and what was there before stays."""
        try:
            self._use(self._read_pool())
        except Exception as error:  # whatever a reader of files may raise
            if str(error) != self._complaint:
                LOG.error('the old list of servers is still used: %s', error, exc_info=not isinstance(error, PoolError))
            self._complaint = str(error)
            return False
        self._complaint = ''
        return True
