"""Zones on servers without rows: which names the database knows, and their deletion.

The invariant: while a call of :func:`remove` is in flight, no other call for the same name is made to the server.
:func:`claimed` claims a name and then reads the claims of rows; code that claims a row then reads the claims of names.
So if two claim at the same time, at least one of them sees the other's claim, and waits.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import timedelta

from designate_pool.backends.base import Backend
from designate_pool.errors import LostRace
from designate_pool.model import Domain, Server
from designate_pool.pool_manager.dispatch.record_sync import Removal
from designate_pool.pool_manager.manager import Manager
from designate_pool.storage.operations import pool_servers as server_store, server_statuses
from designate_pool.storage.zones import domains as domain_store

PAGE = 500
#: Zones with the result of their deletion; None for one that was not tried.
Removals = list[tuple[Domain, Removal | None]]


def domains(manager: Manager, page: Callable[..., list[Domain]] = domain_store.page,
            stage: int = 0) -> Iterator[Domain]:
    """All domains of the pool that *page* reads a page of."""
    after = ''
    while rows := manager.storage.read(page, manager.pool.name, after, PAGE):
        yield from filter(None, (domain.permitted_at(stage) for domain in rows))
        after = rows[-1].id


def deleted_names(manager: Manager) -> Iterator[str]:
    """Names of the pool's deleted domains that the database still knows."""
    return (domain.name for domain in domains(manager, domain_store.page_of_deleted))


def explained(manager: Manager, server_id: str, names: Iterable[str]) -> set[str]:
    """Those of *names* that are domains of any pool, or whose deletion is in progress on the server.

    A server that reads the catalog has zones of secondary domains before their first transfer; see
    :func:`designate_pool.storage.zones.domains.explaining_zones` for the others.
    """
    read, remaining, explained_names = manager.storage.read, iter(names), set[str]()
    worker = manager.all_workers.get(server_id)
    reads_catalog = worker is not None and worker.backend.capabilities.reads_catalog
    live = domain_store.live_by_name if reads_catalog else domain_store.explaining_zones
    while batch := list(itertools.islice(remaining, PAGE)):
        explained_names.update(read(live, batch), read(server_store.names_on, server_id, batch))
    return explained_names


def unexplained(manager: Manager, server_id: str, names: Iterable[str]) -> list[str]:
    """Those of *names* that are not :func:`explained`, nor the catalog, in order."""
    zones = set(names) - {manager.pool.catalog_zone}
    return sorted(zones - explained(manager, server_id, zones))


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
    storage, by, now = manager.storage, manager.settings.name, manager.storage.now()
    # It is not renewed, so it must outlast a call.
    until = now + timedelta(seconds=server.call_timeout + manager.settings.claim_seconds)
    try:
        ours = storage.run(server_statuses.claim_names, server.id, names, by, now, until)
    except LostRace:
        ours = set()
    try:
        claims = storage.read(server_statuses.claimed_on_names, ours, now) if ours else []
        yield ours.difference(claim.name for claim in claims if claim.server_id == server.id and claim.row is not None)
    finally:
        if ours:
            storage.run(server_statuses.release_names, server.id, ours, by, until)


def _delete(manager: Manager, backend: Backend, zones: Sequence[Domain],
            is_known: bool) -> Iterator[tuple[str, Removal]]:
    if backend.capabilities.fed_by_records:
        yield from ((zone.id, manager.record_sync.delete(backend, zone, is_known)) for zone in zones)
    elif zones:
        results = backend.delete_domains(zones)
        yield from ((zone.id, Removal(result, result.ok)) for zone, result in zip(zones, results, strict=True))
