"""What a look at the soundness of a pool reads: pages of domains with all that is kept about them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from designate_pool.model import Domain, ServerStatus, Status
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import domains, pool_manager_status, records
from designate_pool.storage.zones import domains as domain_store


@dataclasses.dataclass(frozen=True, slots=True)
class DomainRows:
    """A domain and what is kept about it.

    :ivar newest: the highest generation of any domain of its name
    :ivar undone: how many of its records are not settled
    """

    domain: Domain
    rows: Sequence[ServerStatus]
    newest: int
    undone: int


def ids(tx: Tx, pool_id: str, after_id: str, limit: int) -> list[str]:
    """Ids of the pool's domains after one, those that are deleted too."""
    return list(tx.execute(sa.select(domains.c.id).where(domains.c.pool_id == pool_id, domains.c.id > after_id)
                           .order_by(domains.c.id).limit(limit)).scalars())


def kept(tx: Tx, domain_ids: Sequence[str]) -> list[DomainRows]:
    """These domains, in four statements; those that do not exist are left out."""
    # The rows first: a domain that is older than its rows would be said to serve less than it does.
    rows = server_statuses.for_domains(tx, domain_ids)
    found = domain_store.get_many(tx, domain_ids)
    newest: dict[str, int] = {}
    undone: dict[str, int] = {}
    for part in domain_store.chunks(sorted({domain.name for domain in found.values()})):
        newest.update(tx.execute(sa.select(domains.c.name, sa.func.max(domains.c.generation))
                                 .where(domains.c.name.in_(part)).group_by(domains.c.name)).tuples().all())
    for part in domain_store.chunks(found):
        undone.update(tx.execute(sa.select(records.c.domain_id, sa.func.count())
                                 .where(records.c.domain_id.in_(part),
                                        records.c.status.in_([Status.PENDING, Status.ERROR]))
                                 .group_by(records.c.domain_id)).tuples().all())
    return [DomainRows(domain, rows[key], newest[domain.name], undone.get(key, 0))
            for key, domain in sorted(found.items())]


def once_named(tx: Tx, names: Iterable[str]) -> set[str]:
    """Those of *names* that a domain of any pool has or had."""
    return {name for part in domain_store.chunks(names) for name in tx.execute(
        sa.select(domains.c.name).distinct().where(domains.c.name.in_(part))).scalars()}


def strange_rows(tx: Tx, server_ids: Sequence[str], limit: int) -> list[tuple[str, str]]:
    """Servers of rows that are none of these, each with the id of a domain."""
    return [(server, domain) for server, domain in tx.execute(
        sa.select(pool_manager_status.c.server_id, sa.func.min(pool_manager_status.c.domain_id))
        .where(pool_manager_status.c.server_id.not_in(server_ids))
        .group_by(pool_manager_status.c.server_id).limit(limit))]
