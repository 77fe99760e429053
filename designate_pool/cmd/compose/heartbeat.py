"""Writes into the database that the services of this process are running.

This is for people to read: no service depends on it, and a database outage only costs a line in the log.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from typing import Any

from designate_pool import __version__
from designate_pool.concurrency import Runtime
from designate_pool.errors import LostRace
from designate_pool.model import utcnow
from designate_pool.outage_log import OutageLog
from designate_pool.storage.operations import heartbeats
from designate_pool.storage.sql.database import Storage, Tx

LOG = logging.getLogger(__name__)
#: Services that work for one pool.
_OF_A_POOL = {'minidns', 'pool_manager'}


class Heartbeat:
    """
    :param parts: the services, as in ``[service:…]``
    :param hostname: of this host
    :param pool_name: of the services that work for one pool
    :param interval: seconds; the reader takes twice as long for silence
        (:data:`designate_pool.storage.operations.heartbeats.SILENCE`)
    :param retry_interval: after one that could not be written
    """

    def __init__(self, storage: Storage, parts: Sequence[str], hostname: str, pool_name: str,
                 interval: float = 15.0, retry_interval: float = 2.0) -> None:
        self._storage = storage
        self._parts = tuple(sorted(parts))  # on SQLite one transaction, in one order for all
        self._hostname = hostname
        self._pool_name = pool_name
        self._interval = interval
        self._retry_interval = retry_interval
        self._stats = {'version': __version__, 'pid': os.getpid(), 'started_at': utcnow().isoformat(timespec='seconds')}
        self._stopped = threading.Event()
        self._outage = OutageLog(LOG, 'the heartbeat that the services here are %s could not be written: %s',
                                 'heartbeats can be written again', logging.WARNING)
        self._task: Any = None

    def start(self, runtime: Runtime) -> None:
        self._task = runtime.spawn(self._loop, name='heartbeat')

    def stop(self) -> None:
        """Write that the services are down, unless the database is away."""
        self._stopped.set()
        if self._task is not None:
            self._task.join(15)
        if not self._outage:
            self._write_status(heartbeats.DOWN)

    def _loop(self) -> None:
        while True:
            self._write_status(heartbeats.UP)
            if self._stopped.wait(self._retry_interval if self._outage else self._interval):
                return

    def _write_status(self, status: str) -> None:
        try:
            self._storage.run_autocommitted(self._write, status)
        except LostRace:
            return  # another process of the same service was first
        except Exception as error:  # of the database; the next heartbeat tries again
            self._outage.failed(status, error)
        else:
            self._outage.ended()

    def _write(self, tx: Tx, status: str) -> None:
        now = utcnow()
        for part in self._parts:
            heartbeats.say(tx, part, self._hostname, self._pool_name if part in _OF_A_POOL else '', status, self._stats,
                           now)
