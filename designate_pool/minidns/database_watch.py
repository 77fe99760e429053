"""Looks once a second for what others have changed in the database, for all parts of MiniDNS in one statement."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from designate_pool.concurrency import LoopTask, Runtime
from designate_pool.model import utcnow
from designate_pool.outage_log import OutageLog
from designate_pool.storage.serving import watched
from designate_pool.storage.serving.watched import Watched
from designate_pool.storage.sql.database import Storage

LOG = logging.getLogger(__name__)

INTERVAL = 1.0


class DatabaseWatch:
    """
    :param followers: are told what was found at each look; an exception of one does not keep it from the others, and
        it is told again at the next look
    """

    def __init__(self, storage: Storage, pool_name: str, followers: Sequence[Callable[[Watched], None]]) -> None:
        self._storage = storage
        self._pool_name = pool_name
        self._followers = tuple(followers)
        self._outage = OutageLog(LOG, 'servers, TSIG keys and due refreshes cannot be read from the database, the '
                                 'known servers and keys are still used: %s',
                                 'servers, TSIG keys and due refreshes can be read from the database again')
        self._stop_event = threading.Event()
        self._task: LoopTask | None = None

    def start(self, runtime: Runtime) -> None:
        self._task = runtime.spawn(self._run, name='minidns-watch')

    def stop(self) -> None:
        self._stop_event.set()
        if self._task is not None:
            self._task.join(10)

    def look(self) -> None:
        """Look once; errors of the database are of several classes, and the next look tries again."""
        try:
            found = self._storage.read(watched.look, self._pool_name, utcnow())
        except Exception as error:
            self._outage.failed(error)
            return
        self._outage.ended()
        for number, follow in enumerate(self._followers):  # one that fails hides no outage of another's
            try:
                follow(found)
            except Exception as error:
                self._outage.failed(error, key=number)
            else:
                self._outage.ended(key=number)

    def _run(self) -> None:
        while True:
            self.look()
            if self._stop_event.wait(INTERVAL):
                return
