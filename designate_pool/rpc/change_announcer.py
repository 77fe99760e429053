"""Tells MiniDNS and the pool managers to look into the database, after something was changed there.

It is a hint: a message that cannot be sent is dropped, since they look every few seconds anyway.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from designate_pool.concurrency import Runtime
from designate_pool.model import Context
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.client import RpcClient
from designate_pool.rpc.minidns import MiniDnsClient
from designate_pool.rpc.pool_manager import PoolManagerClient

LOG = logging.getLogger(__name__)
#: Announcements that are sent as one, and seconds until the next are sent.
_MAX_BATCH, _PAUSE = 1000, 0.05


class ChangeAnnouncer:
    """Sends announcements in one loop: one at once, and those that come shortly afterwards together."""

    def __init__(self, caller: RpcClient, runtime: Runtime) -> None:
        self._central = CentralClient(caller)
        self._minidns = MiniDnsClient(caller)
        self._pool_managers = PoolManagerClient(caller)
        self._queue = runtime.work_queue(self._send, _MAX_BATCH, 'announcements', bound=_MAX_BATCH)

    def put(self, *pool_names: str) -> None:
        """Have every MiniDNS look into the database soon, and the pool managers of these pools."""
        self._queue.put(pool_names)

    def announce_import(self, context: Context) -> None:
        """Have every Central look for waiting imports."""
        _tell(self._central.wake_imports, context=context)

    def stop(self) -> None:
        """Send what is waiting; take no more."""
        self._queue.stop()

    def _send(self, batch: Sequence[Sequence[str]]) -> None:
        _tell(self._minidns.look_for_changes)
        for name in dict.fromkeys(name for names in batch for name in names):
            _tell(self._pool_managers.look_for_changes, name)
        time.sleep(_PAUSE)


def _tell(cast: Callable[..., None], *arguments: str, context: Context = Context()) -> None:
    try:
        cast(context, *arguments)
    except Exception as error:  # whatever the transport raises; who sends something else logs the outage
        LOG.debug('a change is found at the next look: %s', error)
