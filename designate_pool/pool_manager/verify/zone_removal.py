"""Deletion of zones on a server without rows: on draining servers, and of zones without a domain.

The invariant: while such a call is in flight, no other call for the same name is made to the server.  This module
claims a name and then reads the claims of rows; code that claims a row then reads the claims of names.  So if two claim
at the same time, at least one of them sees the other's claim, and waits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import timedelta

from designate_pool.backends.base import Backend
from designate_pool.errors import LostRace
from designate_pool.model import Domain, Server, utcnow
from designate_pool.pool_manager.dispatch.record_sync import Removal
from designate_pool.pool_manager.manager import Manager
from designate_pool.storage.operations import name_claims, server_statuses

Removals = list[tuple[Domain, Removal | None]]


def remove(manager: Manager, backend: Backend, zones: Sequence[Domain], is_known: bool = True,
           excluded: Callable[[Collection[str]], Collection[str]] = lambda names: ()) -> Removals:
    """Delete *zones* on a server, in batches, until it is unreachable.

    :param is_known: whether they are domains of the database
    :param excluded: called with names that are claimed now; returns those to leave after all
    :returns: the result for each zone that was reached; None for one that is excluded or claimed by others
    """
    done: Removals = []
    size = 1 if backend.capabilities.fed_by_records else backend.capabilities.batch_size
    for start in range(0, len(zones), size):
        batch = zones[start:start + size]
        with claimed(manager, backend.server, {zone.name for zone in batch}) as names:
            free = names.difference(excluded(names))
            results_by_id = dict(_delete(manager, backend, [zone for zone in batch if zone.name in free], is_known))
        done += ((zone, results_by_id.get(zone.id)) for zone in batch)
        if any(removal.result.unreachable for removal in results_by_id.values()):
            break  # so is the rest
    return done


@contextlib.contextmanager
def claimed(manager: Manager, server: Server, names: Collection[str]) -> Iterator[set[str]]:
    """Claim *names* on *server* for one call; yields those that nobody else has claimed a call for."""
    storage, by, now = manager.storage, manager.settings.name, utcnow()
    # It is not renewed, so it must outlast a call.
    until = now + timedelta(seconds=server.call_timeout + manager.settings.claim_seconds)
    try:
        ours = storage.run(name_claims.claim, server.id, names, by, now, until)
    except LostRace:
        ours = set()
    try:
        claims = storage.read(server_statuses.claimed_on_names, ours, now) if ours else []
        yield ours.difference(each.name for each in claims if each.server_id == server.id and each.row is not None)
    finally:
        if ours:
            storage.run(name_claims.release, server.id, ours, by, until)


def _delete(manager: Manager, backend: Backend, zones: Sequence[Domain],
            is_known: bool) -> Iterator[tuple[str, Removal]]:
    """The results by domain id."""
    if backend.capabilities.fed_by_records:
        yield from ((zone.id, manager.record_sync.delete(backend, zone, is_known)) for zone in zones)
    elif zones:
        results = backend.delete_domains(zones)
        yield from ((zone.id, Removal(result, result.ok)) for zone, result in zip(zones, results, strict=True))
