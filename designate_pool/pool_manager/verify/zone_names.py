"""Which names of zones the database knows: of a pool's domains, and of those that explain zones on a server."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from designate_pool.model import Domain
from designate_pool.pool_manager.manager import Manager
from designate_pool.storage.operations import pool_servers as server_store
from designate_pool.storage.zones import domains as domain_store

PAGE = 500


def domains(manager: Manager, page: Callable[..., list[Domain]] = domain_store.page) -> Iterator[Domain]:
    """All domains of the pool that *page* reads a page of."""
    after = ''
    while found := manager.storage.read(page, manager.pool.name, after, PAGE):
        yield from found
        after = found[-1].id


def deleted_names(manager: Manager) -> Iterator[str]:
    """Names of the pool's deleted domains that the database still knows."""
    return (domain.name for domain in domains(manager, domain_store.page_of_deleted))


def explained(manager: Manager, server_id: str, names: Iterable[str]) -> set[str]:
    """Those of *names* that are domains of any pool, or whose deletion is in progress on the server.

    A server that reads the catalog has zones of secondary domains before their first transfer; see
    :func:`designate_pool.storage.zones.domains.explaining_zones` for the others.
    """
    read, left, found = manager.storage.read, iter(names), set[str]()
    worker = manager.all_workers.get(server_id)
    reads_catalog = worker is not None and worker.backend.capabilities.reads_catalog
    live = domain_store.live_by_name if reads_catalog else domain_store.explaining_zones
    while batch := list(itertools.islice(left, PAGE)):
        found.update(read(live, batch), read(server_store.names_on, server_id, batch))
    return found
