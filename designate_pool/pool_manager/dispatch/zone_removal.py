"""Deleting zones on a server for no row of theirs: of servers that are emptied, and zones that are no domains.

The invariant: while one of these calls is under way nobody else calls the server for the name.  The name is claimed
before anybody's claims of rows are looked at, and who has claimed a row looks at the claims of names after that: of two
at least one sees the other, and waits.
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
           spared: Callable[[Collection[str]], Collection[str]] = lambda names: ()) -> Removals:
    """Delete *zones* on a server, as many in one call as it takes, until it cannot be talked to.

    :param is_known: whether they are domains of the database
    :param spared: which of the names that it is asked for are to be left after all, once nobody else can begin there
    :returns: how it ended for each that was come to; None for one that is spared, or that others are at work on
    """
    done: Removals = []
    size = 1 if backend.capabilities.fed_by_records else backend.capabilities.batch_size
    for start in range(0, len(zones), size):
        some = zones[start:start + size]
        with claimed(manager, backend.server, {zone.name for zone in some}) as names:
            free = names.difference(spared(names))
            ended = dict(_delete(manager, backend, [zone for zone in some if zone.name in free], is_known))
        done += ((zone, ended.get(zone.id)) for zone in some)
        if any(removal.result.unreachable for removal in ended.values()):
            break  # the rest would fare no better
    return done


@contextlib.contextmanager
def claimed(manager: Manager, server: Server, names: Collection[str]) -> Iterator[set[str]]:
    """Have nobody else call *server* for those of *names* that nobody is at work on now: these, for one call."""
    storage, by, now = manager.storage, manager.settings.name, utcnow()
    # Nobody renews it, so it is for longer than a call takes.
    until = now + timedelta(seconds=server.call_timeout + manager.settings.claim_seconds)
    try:
        ours = storage.run(name_claims.claim, server.id, names, by, now, until)
    except LostRace:
        ours = set()
    try:
        held = storage.read(server_statuses.claimed_on_names, ours, now) if ours else []
        yield ours.difference(each.name for each in held if each.server_id == server.id and each.row is not None)
    finally:
        if ours:
            storage.run(name_claims.release, server.id, ours, by, until)


def _delete(manager: Manager, backend: Backend, zones: Sequence[Domain],
            is_known: bool) -> Iterator[tuple[str, Removal]]:
    """How it ended, by id."""
    if backend.capabilities.fed_by_records:
        yield from ((zone.id, manager.feeder.delete(backend, zone, is_known)) for zone in zones)
    elif zones:
        results = backend.delete_domains(zones)
        yield from ((zone.id, Removal(result, result.ok)) for zone, result in zip(zones, results, strict=True))
