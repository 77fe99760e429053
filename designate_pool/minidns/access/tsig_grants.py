"""TSIG keys given out through the API: their holders may transfer zones without being a server of the pool.

The number of changes is polled with one small statement, and the keys are read only when it has changed.  So a query
costs no statement, and a new or deleted key takes effect within seconds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping

import dns.name

from designate_pool.concurrency import LoopTask, Runtime
from designate_pool.minidns.access.acl import TsigGrant
from designate_pool.outage_log import OutageLog
from designate_pool.protocol import tsig
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import tsigkeys

LOG = logging.getLogger(__name__)

POLL_INTERVAL = 2.0


class TsigGrants:
    """Keeps the current grants, by the name of the key, in :attr:`grants`."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._change_count: int | None = None
        self._outage = OutageLog(LOG, 'TSIG keys cannot be read from the database, the known ones are still used: %s',
                                 'TSIG keys can be read from the database again')
        self._stop_event = threading.Event()
        self._task: LoopTask | None = None
        self.grants: Mapping[dns.name.Name, TsigGrant] = {}

    def start(self, runtime: Runtime) -> None:
        self._task = runtime.spawn(self._run, name='minidns-tsig')

    def stop(self) -> None:
        self._stop_event.set()
        if self._task is not None:
            self._task.join(10)

    def reload(self) -> None:
        """Read the keys if any of them has changed; while the database does not answer, they stay as they are."""
        try:
            change = self._storage.read(_read_if_changed, self._change_count)
        except Exception as error:  # errors of the database are of several classes; the next poll tries again
            self._outage.failed(error)
            return
        self._outage.ended()
        if change is not None:
            self._change_count, grants = change
            self.grants = grants_by_key(grants)

    def _run(self) -> None:
        while True:
            self.reload()
            if self._stop_event.wait(POLL_INTERVAL):
                return


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


def _read_if_changed(tx: Tx, known_count: int | None) -> tuple[int, list[tsigkeys.Grant]] | None:
    """The number of changes, and the keys; None when the number is still *known_count*."""
    now = tsigkeys.changes(tx)
    return None if now == known_count else (now, tsigkeys.grants(tx))
