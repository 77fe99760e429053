"""What MiniDNS follows in the database: TSIG keys, reloads of the configuration, and secondary zones, in one statement.

Whoever changes it says so (:meth:`designate_pool.rpc.minidns.MiniDnsClient.look_for_changes`), and it is acted on at
once.  The looks in between find what was changed by somebody without a broker, or when the message was lost.

Each reload of a pool manager raises a counter in the database.  So all processes of a pool agree on its servers,
wherever they run, without a signal to each.  TSIG keys are read only when the number of their changes is another one,
so that a query costs no statement.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import dns.name

from designate_pool.concurrency import LoopTask, Runtime
from designate_pool.errors import PoolError
from designate_pool.logs import OutageLog
from designate_pool.minidns.acl import TsigGrant
from designate_pool.model import Pool
from designate_pool.protocol import tsig
from designate_pool.storage.serving import watched
from designate_pool.storage.serving.watched import Watched
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import tsigkeys

LOG = logging.getLogger(__name__)

#: Seconds between two looks; while something is awaited, or failed; and at least.
INTERVAL, SOON, LEAST = 5.0, 1.0, 0.1
#: Seconds between reloads for unknown servers.
UNKNOWN_INTERVAL = 1.0


class DatabaseWatch:
    """Looks into the database at intervals, and when it is woken.

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
        """Start the loop."""
        self._task = runtime.spawn(self._run, name='minidns-watch')

    def stop(self) -> None:
        """End the loop; wait at most ten seconds for a look in progress."""
        self._stop_event.set()
        self.wake()
        if self._task is not None:
            self._task.join(10)

    def wake(self) -> None:
        """Look now: something has changed."""
        self._changed.set()

    def look(self) -> float:
        """Look once; seconds until the next look.  Errors of the database are of several classes."""
        try:
            now = self._storage.now()
            changes = self._storage.read(watched.look, self._pool_name, now, timedelta(seconds=self._interval))
        except Exception as error:
            self._outage.failed(error)
            return SOON
        self._outage.ended()
        pause = min(self._interval, _until(changes.next_refresh_at, now))
        for number, follow in enumerate(self._followers):  # one that fails hides no outage of another's
            is_done: bool | None = False
            try:
                is_done = follow(changes)
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


class TsigGrants:
    """TSIG keys given out through the API: their holders may transfer zones without being a server of the pool.

    :ivar grants: the current ones, by the name of the key
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._change_count: int | None = None
        self.grants: Mapping[dns.name.Name, TsigGrant] = {}

    def follow(self, changes: Watched) -> None:
        """Read the keys if any of them has changed."""
        if changes.key_changes != self._change_count:
            self.grants = grants_by_key(self._storage.read(tsigkeys.grants))
            self._change_count = changes.key_changes  # of before the keys were read, so that none is missed


def grants_by_key(grants: Iterable[tsigkeys.Grant]) -> dict[dns.name.Name, TsigGrant]:
    """*grants* by the name of the key; of two with one name the older."""
    result: dict[dns.name.Name, TsigGrant] = {}
    for grant in grants:
        try:
            key = tsig.key_from(grant.key)
        except ValueError:  # its words could show the secret
            LOG.error('the TSIG key %s is not used: its secret is not Base64, or its name or algorithm is not valid',
                      grant.key.name)
            continue
        result.setdefault(key.name, TsigGrant(key, grant.pool_name, grant.domain_id))
    return result


class ConfigReloader:
    """Reloads the pool when the counter has changed, or when a server is unknown.

    :param read_pool: reads the configuration; raises :class:`designate_pool.errors.PoolError` when it is wrong
    """

    def __init__(self, pool_name: str, read_pool: Callable[[], Pool], apply: Callable[[Pool], None]) -> None:
        self._pool_name = pool_name
        self._read_pool = read_pool
        self._apply = apply
        self._applied_reloads: int | None = None
        self._last_lookup = -UNKNOWN_INTERVAL
        self._lock = threading.Lock()
        self._last_error = ''
        self._pool_gone = OutageLog(
            LOG, 'the pool %s is not in the database any more: it was deleted or renamed, and this program serves no '
            "zones now. Stop it, correct pool_name, or 'designate-pool-manage pool create %s'",
            'the pool %s is there again')

    def reload_for_unknown(self) -> None:
        """Reload at once, since a server is unknown, even if the counter has not changed; at most once a second."""
        with self._lock:
            now = time.monotonic()
            if now - self._last_lookup >= UNKNOWN_INTERVAL:
                self._last_lookup = now
                self._reload()

    def follow(self, changes: Watched) -> bool:
        """Reload the configuration if the counter has changed; whether it could be."""
        if changes.reloads is None:
            if self._applied_reloads is not None:
                self._pool_gone.failed(self._pool_name, self._pool_name)
            return True
        self._pool_gone.ended(self._pool_name)
        if changes.reloads == self._applied_reloads:
            return True
        with self._lock:
            is_done = self._reload()
            if is_done:
                self._applied_reloads = changes.reloads
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
