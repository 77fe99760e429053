"""Telling the pool managers what has changed, after the database has it.

A cast is a hint: what cannot be sent is dropped, since the pool manager finds it in the database by itself.  So a
broker that is down neither fails nor delays what a user asked for.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

from designate_pool.concurrency import Runtime
from designate_pool.model import Action, Context, Domain
from designate_pool.outage_log import OutageLog
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.serial import newer

LOG = logging.getLogger(__name__)
#: Domains in one message.
CHUNK = 200
#: Domains that wait at most; beyond that they are dropped.
MOST_WAITING = 20000


class CastQueue:
    """Sends domains to their pool managers, in one loop: a single one at once, in batches when more are waiting."""

    def __init__(self, pool_managers: PoolManagerClient, runtime: Runtime) -> None:
        self._pool_managers = pool_managers
        self._runtime = runtime
        self._waiting: dict[str, tuple[Context, Domain]] = {}
        self._sending = False
        self._stopped = False
        self._outages = OutageLog(
            LOG, 'the pool manager of %s was not told about changes and will find them in the database: %s',
            'the pool manager of %s is told about changes again', logging.WARNING)
        self._changed = threading.Condition()

    def put(self, context: Context, domains: Iterable[Domain]) -> None:
        """Have *domains* cast soon; of one domain only the newest state."""
        with self._changed:
            if self._stopped:
                return
            for domain in domains:
                self._keep(context, domain)
            if self._sending or not self._waiting:
                return
            self._sending = True
        self._runtime.spawn(self._send_all, name='central-casts')

    def stop(self, seconds: float = 5.0) -> None:
        """Send what is waiting, for *seconds* at most; take no more."""
        with self._changed:
            self._stopped = True
            if not self._changed.wait_for(lambda: not self._sending, seconds):
                LOG.warning('%d changes were not sent to their pool managers; they will find them in the database',
                            len(self._waiting))
                self._waiting.clear()

    def _keep(self, context: Context, domain: Domain) -> None:
        _, older = self._waiting.get(domain.id, (context, None))
        if older is None and len(self._waiting) >= MOST_WAITING:
            return  # the loop is stuck with a broker that is down, and says so
        if older is None or (older.generation, 0) < (domain.generation, newer(domain.serial, older.serial)):
            self._waiting[domain.id] = context, domain

    def _send_all(self) -> None:
        try:
            while batch := self._take():
                by_pool: dict[str, list[tuple[Context, Domain]]] = {}
                for context, domain in batch:
                    by_pool.setdefault(domain.pool_name, []).append((context, domain))
                for pool_name, waiting in by_pool.items():
                    self._send(pool_name, waiting)
        except BaseException:  # a green thread that is killed must leave the way free for the next one
            with self._changed:
                self._sending = False
                self._changed.notify_all()
            raise

    def _take(self) -> list[tuple[Context, Domain]]:
        with self._changed:
            batch = list(self._waiting.values())
            self._waiting.clear()
            if not batch:
                self._sending = False
                self._changed.notify_all()
            return batch

    def _send(self, pool_name: str, waiting: list[tuple[Context, Domain]]) -> None:
        try:
            if len(waiting) == 1:
                self._send_one(*waiting[0])
            for start in range(0, len(waiting) if len(waiting) > 1 else 0, CHUNK):
                chunk = waiting[start:start + CHUNK]
                self._pool_managers.change_domains(chunk[0][0], pool_name, [domain for _, domain in chunk])
        except Exception as error:  # whatever the transport raises: the user's change is safe in the database
            self._outages.failed(pool_name, error, key=pool_name)
        else:
            self._outages.ended(pool_name, key=pool_name)

    def _send_one(self, context: Context, domain: Domain) -> None:
        if domain.action is Action.CREATE:
            self._pool_managers.create_domain(context, domain)
        elif domain.action is Action.DELETE:
            self._pool_managers.delete_domain(context, domain)
        else:
            self._pool_managers.update_domain(context, domain)
