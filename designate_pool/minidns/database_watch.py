"""Looks for what others have changed in the database, for all parts of MiniDNS in one statement.

Whoever changes it says so (:meth:`designate_pool.rpc.minidns.MiniDnsClient.look_for_changes`), and it is acted on at
once.  The looks in between find what was changed by somebody without a broker, or when the message was lost.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from designate_pool.concurrency import LoopTask, Runtime
from designate_pool.model import utcnow
from designate_pool.outage_log import OutageLog
from designate_pool.storage.serving import watched
from designate_pool.storage.serving.watched import Watched
from designate_pool.storage.sql.database import Storage

LOG = logging.getLogger(__name__)

#: Seconds between two looks; while something is awaited, or failed; and at least.
INTERVAL, SOON, LEAST = 5.0, 1.0, 0.1


class DatabaseWatch:
    """
    :param followers: are told what was found at each look; an exception of one does not keep it from the others, and
        it is told again soon, as is one that returns False
    :param interval: seconds between two looks when nobody asks for one
    """

    def __init__(self, storage: Storage, pool_name: str, followers: Sequence[Callable[[Watched], bool | None]],
                 interval: float = INTERVAL) -> None:
        self._storage = storage
        self._pool_name = pool_name
        self._followers = tuple(followers)
        self._interval = interval
        self._changed = threading.Event()
        self._outage = OutageLog(LOG, 'servers, TSIG keys and due refreshes cannot be read from the database, the '
                                 'known servers and keys are still used: %s',
                                 'servers, TSIG keys and due refreshes can be read from the database again')
        self._stop_event = threading.Event()
        self._task: LoopTask | None = None

    def start(self, runtime: Runtime) -> None:
        self._task = runtime.spawn(self._run, name='minidns-watch')

    def stop(self) -> None:
        self._stop_event.set()
        self.wake()
        if self._task is not None:
            self._task.join(10)

    def wake(self) -> None:
        """Look now: something has changed."""
        self._changed.set()

    def look(self) -> float:
        """Look once; seconds until the next look.  Errors of the database are of several classes."""
        now = utcnow()
        try:
            found = self._storage.read(watched.look, self._pool_name, now, timedelta(seconds=self._interval))
        except Exception as error:
            self._outage.failed(error)
            return SOON
        self._outage.ended()
        pause = min(self._interval, _until(found.next_refresh_at, now))
        for number, follow in enumerate(self._followers):  # one that fails hides no outage of another's
            is_done: bool | None = False
            try:
                is_done = follow(found)
            except Exception as error:
                self._outage.failed(error, key=number)
            else:
                self._outage.ended(key=number)
            if is_done is False:
                pause = min(pause, SOON)
        return pause

    def _run(self) -> None:
        while not self._stop_event.is_set():
            self._changed.clear()
            pause = self.look()
            if self._stop_event.wait(LEAST):  # many changes need not be as many looks
                return
            self._changed.wait(pause - LEAST)


def _until(refresh_at: datetime | None, now: datetime) -> float:
    """Seconds until a refresh; one that is due is under way, or its claim will end."""
    if refresh_at is None:
        return math.inf
    return max(LEAST, (refresh_at - now).total_seconds()) if refresh_at > now else SOON
