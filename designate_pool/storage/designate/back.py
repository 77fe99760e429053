"""Reads of our tables for the way back to Designate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from designate_pool.model import ServerState, Status, Task
from designate_pool.storage.designate.target import AWAITS_FIRST
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import (ALIVE, blacklists, domains, pool_servers, quotas, records, recordsets,
                                               tlds, tsigkeys, zone_shares)

#: Names of zones that are told of.
_SHOWN = 20


class Contents(NamedTuple):
    """Recordsets and records of domains, as rows."""

    recordsets: Sequence[Any]
    records: Sequence[Any]


def unsettled(tx: Tx, pool_id: str) -> list[str]:
    """The names of some domains that not all servers serve as they are, though they have to."""
    return list(tx.execute(sa.select(domains.c.name).where(
        domains.c.pool_id == pool_id, domains.c.deleted == ALIVE, domains.c.status != Status.ACTIVE, ~AWAITS_FIRST)
        .order_by(domains.c.name).limit(_SHOWN)).scalars())


def states(tx: Tx, pool_id: str) -> set[ServerState]:
    """The states that servers of a pool are in."""
    return set(tx.execute(sa.select(pool_servers.c.state).where(
        pool_servers.c.pool_id == pool_id, pool_servers.c.state != ServerState.REMOVED)).scalars())


def domain_rows(tx: Tx, ids: Sequence[str]) -> list[Any]:
    return list(tx.execute(sa.select(domains).where(domains.c.id.in_(ids), domains.c.deleted == ALIVE)))


def is_abandoned(tx: Tx, name: str) -> bool:
    """Whether the last domain of a name was deleted here and left on its servers."""
    return bool(tx.execute(sa.select(domains.c.abandoned).where(domains.c.name == name)
                           .order_by(domains.c.generation.desc()).limit(1)).scalar())


def contents(tx: Tx, domain_id: str) -> Contents:
    """The recordsets and records of a domain."""
    return Contents(
        tx.execute(sa.select(recordsets).where(recordsets.c.domain_id == domain_id,
                                               recordsets.c.deleted == ALIVE)).all(),
        tx.execute(sa.select(records).where(records.c.domain_id == domain_id, records.c.task != Task.DELETE,
                                            records.c.status != Status.DELETED)).all())


def lists(tx: Tx, pool_id: str) -> dict[str, set[tuple[Any, ...]]]:
    """What there is besides zones, without the ids of its rows; keys and shares are those of a pool and its zones."""
    def of(statement: sa.Select[Any]) -> set[tuple[Any, ...]]:
        return set(tx.execute(statement).tuples())

    here = sa.select(domains.c.id).where(domains.c.pool_id == pool_id, domains.c.deleted == ALIVE)
    return {
        'quota': of(sa.select(quotas.c.project_id, quotas.c.resource, quotas.c.hard_limit)),
        'TLD': of(sa.select(tlds.c.name)),
        'blacklist': of(sa.select(blacklists.c.pattern)),
        'TSIG key': of(sa.select(tsigkeys.c.name, tsigkeys.c.resource_id).where(
            sa.or_(tsigkeys.c.resource_id == pool_id, tsigkeys.c.resource_id.in_(here)))),
        'share': of(sa.select(zone_shares.c.domain_id, zone_shares.c.target_project_id).where(
            zone_shares.c.domain_id.in_(here))),
    }
