"""Telling the pool managers what has changed, after the database has it.

A cast is a hint: what cannot be sent is dropped, since the pool manager finds it in the database by itself.  So a
broker that is down neither fails nor delays what a user asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from designate_pool.concurrency import Runtime
from designate_pool.logs import OutageLog
from designate_pool.model import Action, Context, Domain
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.serial import at_least

LOG = logging.getLogger(__name__)
#: Domains in one message.
MAX_BATCH = 200


class CastQueue:
    """Casts domains in one loop: a single one at once, in batches when more wait; those over *bound* are dropped."""

    def __init__(self, pool_managers: PoolManagerClient, runtime: Runtime, bound: int = 20000) -> None:
        self._pool_managers = pool_managers
        self._queue = runtime.work_queue(self._send, MAX_BATCH, 'central-casts', bound=bound)
        self._outages = OutageLog(
            LOG, 'the pool manager of %s was not told about changes and will find them in the database: %s',
            'the pool manager of %s is told about changes again', logging.WARNING)

    def put(self, context: Context, domains: Iterable[Domain]) -> None:
        """Have *domains* cast soon."""
        self._queue.put(*((context, domain) for domain in domains))

    def stop(self, seconds: float = 5.0) -> None:
        """Send what is waiting, for *seconds* at most; take no more."""
        if dropped := self._queue.stop(seconds):
            LOG.warning('%d changes were not sent to their pool managers; they will find them in the database', dropped)

    def _send(self, batch: Sequence[tuple[Context, Domain]]) -> None:
        """Cast the domains, of each only the newest state."""
        newest: dict[str, tuple[Context, Domain]] = {}
        for context, domain in batch:
            _, older = newest.get(domain.id, (context, None))
            if older is None or (older.generation, True) <= (domain.generation, at_least(domain.serial, older.serial)):
                newest[domain.id] = context, domain
        by_pool: dict[str, list[tuple[Context, Domain]]] = {}
        for context, domain in newest.values():
            by_pool.setdefault(domain.pool_name, []).append((context, domain))
            if domain.former_pool_name is not None:
                by_pool.setdefault(domain.former_pool_name, []).append((context, domain))
        for pool_name, changes in by_pool.items():
            try:
                if len(changes) == 1 and changes[0][1].pool_name == pool_name:
                    context, domain = changes[0]
                    client = self._pool_managers
                    cast = {Action.CREATE: client.create_domain, Action.DELETE: client.delete_domain}.get(domain.action)
                    (cast or client.update_domain)(context, domain)
                else:
                    self._pool_managers.change_domains(changes[0][0], pool_name, [domain for _, domain in changes])
            except Exception as error:  # whatever the transport raises: the user's change is safe in the database
                self._outages.failed(pool_name, error, key=pool_name)
            else:
                self._outages.ended(pool_name, key=pool_name)
