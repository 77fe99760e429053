"""Reads for the check of a pool's invariants: pages of domains with all their rows."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from designate_pool.model import Domain, ServerStatus, Status
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import chunks, values_among
from designate_pool.storage.sql.schema import (ALIVE, domains, pool_manager_status, pool_servers, records, recordsets,
                                               zone_shares)
from designate_pool.storage.zones import domains as domain_store


@dataclasses.dataclass(frozen=True, slots=True)
class DomainRows:
    """A domain and its rows.

    :ivar newest: the highest generation of all domains of its name
    :ivar undone: how many of its records are PENDING or in ERROR
    :ivar targets: the projects that it is shared with
    :ivar guests: the projects that have recordsets in it, besides its own
    :ivar former_servers: ids of the servers of the pool that it was moved from and that still keeps it
    """

    domain: Domain
    rows: Sequence[ServerStatus]
    newest: int
    undone: int
    targets: frozenset[str] = frozenset()
    guests: frozenset[str] = frozenset()
    former_servers: frozenset[str] = frozenset()


def ids(tx: Tx, pool_id: str, after_id: str, limit: int) -> list[str]:
    """Ids of the pool's domains after one, including deleted ones."""
    return list(tx.execute(sa.select(domains.c.id).where(domains.c.pool_id == pool_id, domains.c.id > after_id)
                           .order_by(domains.c.id).limit(limit)).scalars())


def domain_rows(tx: Tx, domain_ids: Sequence[str]) -> list[DomainRows]:
    """These domains, as servers may have them, those of its stages in a staged release, with their rows; those that do
    not exist, or wait, are left out."""
    # Rows first: a domain read before its rows could be older than what its servers serve.
    rows = server_statuses.for_domains(tx, domain_ids)
    domain_list = {key: domain for key, newest_domain in domain_store.get_many(tx, domain_ids).items()
                   if (domain := newest_domain.permitted_at(0)) is not None}
    newest: dict[str, int] = {}
    undone: dict[str, int] = {}
    for part in chunks(sorted({domain.name for domain in domain_list.values()})):
        newest.update(tx.execute(sa.select(domains.c.name, sa.func.max(domains.c.generation))
                                 .where(domains.c.name.in_(part)).group_by(domains.c.name)).tuples().all())
    for part in chunks(domain_list):
        undone.update(tx.execute(sa.select(records.c.domain_id, sa.func.count())
                                 .where(records.c.domain_id.in_(part),
                                        records.c.status.in_([Status.PENDING, Status.ERROR]))
                                 .group_by(records.c.domain_id)).tuples().all())
    targets, guests = _sets(tx, zone_shares.c.domain_id, zone_shares.c.target_project_id, list(domain_list)), _sets(
        tx, recordsets.c.domain_id, recordsets.c.project_id, list(domain_list), recordsets.c.deleted == ALIVE,
        recordsets.c.project_id.is_not(None))
    former = _sets(tx, pool_servers.c.pool_id, pool_servers.c.id, sorted(
        {domain.former_pool_id for domain in domain_list.values() if domain.former_pool_id is not None}))
    return [DomainRows(domain, rows[key], newest[domain.name], undone.get(key, 0), frozenset(targets[key]),
                       frozenset(guests[key]), frozenset(former[domain.former_pool_id or '']))
            for key, domain in sorted(domain_list.items())]


def _sets(tx: Tx, key: sa.Column[str], value: sa.Column[str], keys: Sequence[str],
          *conditions: sa.ColumnElement[bool]) -> dict[str, set[str]]:
    """The different values of a column, by those of *key*."""
    result: dict[str, set[str]] = collections.defaultdict(set)
    for part in chunks(keys):
        for set_key, member in tx.execute(sa.select(key, value).distinct().where(key.in_(part), *conditions)):
            result[set_key].add(member)
    return result


def ever_used(tx: Tx, names: Iterable[str]) -> set[str]:
    """Those of *names* that a domain of any pool has, or had without abandoning it last."""
    newer = domains.alias()
    is_last = ~sa.exists().where(newer.c.name == domains.c.name, newer.c.generation > domains.c.generation)
    return values_among(tx, domains.c.name, names, is_last, domains.c.abandoned.is_(False))


def servers_without_pool(tx: Tx, server_ids: Sequence[str], limit: int) -> list[tuple[str, str]]:
    """Server ids in rows that are not among *server_ids*, each with the id of one of its domains."""
    return [(server, domain) for server, domain in tx.execute(
        sa.select(pool_manager_status.c.server_id, sa.func.min(pool_manager_status.c.domain_id))
        .where(pool_manager_status.c.server_id.not_in(server_ids))
        .group_by(pool_manager_status.c.server_id).limit(limit))]
