"""TSIG keys that were given out through the API: who may transfer zones without being a server of the pool.

Once in a while one small statement tells whether any key has changed; only then are they read.  So a query costs no
statement more, and a key works or ceases to within seconds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping

import dns.name

from designate_pool.concurrency import LoopTask, Runtime
from designate_pool.minidns.access.acl import TsigGrant
from designate_pool.protocol import tsig
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import tsigkeys

LOG = logging.getLogger(__name__)

EVERY = 2.0


class TsigGrants:
    """The keys of now, as :attr:`visitors`."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._changes: int | None = None
        self._outage = False
        self._over = threading.Event()
        self._task: LoopTask | None = None
        self.visitors: Mapping[dns.name.Name, TsigGrant] = {}

    def start(self, runtime: Runtime) -> None:
        self._task = runtime.spawn(self._loop, name='minidns-keyring')

    def stop(self) -> None:
        self._over.set()
        if self._task is not None:
            self._task.join(10)

    def look(self) -> None:
        """Read the keys if any of them has changed.  When the database does not answer, they stay as they are."""
        try:
            found = self._storage.read(_changed, self._changes)
        except Exception as error:  # the database's errors are storage's own; the next look has its own chance
            if not self._outage:
                LOG.error('TSIG keys cannot be read from the database, the known ones are still used: %s', error)
            self._outage = True
            return
        self._outage = False
        if found is not None:
            self._changes, grants = found
            self.visitors = visitors(grants)

    def _loop(self) -> None:
        while True:
            self.look()
            if self._over.wait(EVERY):
                return


def visitors(grants: Iterable[tsigkeys.Grant]) -> dict[dns.name.Name, TsigGrant]:
    """By the name of the key; of two with one name the older."""
    found: dict[dns.name.Name, TsigGrant] = {}
    for grant in grants:
        try:
            key = tsig.key_from(grant.key)
        except ValueError:  # Central takes none that is not valid; its words could show the secret
            LOG.error('the TSIG key %s in the database is not valid and is not used; delete it and create it again',
                      grant.key.name)
            continue
        found.setdefault(key.name, TsigGrant(key, grant.pool_name, grant.domain_id))
    return found


def _changed(tx: Tx, seen: int | None) -> tuple[int, list[tsigkeys.Grant]] | None:
    """How often the keys have changed, and the keys; None when that is *seen*."""
    now = tsigkeys.changes(tx)
    return None if now == seen else (now, tsigkeys.grants(tx))
