"""Counts of what projects have, for reports: they read all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from designate_pool.model import Status, Task
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import domains, records


def zones(tx: Tx, project_id: str | None) -> int:
    """The number of zones.

    :param project_id: None for all projects, here and below
    """
    count: int = tx.execute(sa.select(sa.func.count(domains.c.id)).where(*_shown(project_id))).scalar_one()
    return count


def records_of_zones(tx: Tx, project_id: str | None) -> int:
    """Records, with those that are generated from the pool, but the SOA."""
    kept = records.c.task != Task.DELETE, records.c.status != Status.DELETED
    count: int = tx.execute(sa.select(sa.func.count(records.c.id)).join_from(
        records, domains, records.c.domain_id == domains.c.id).where(*kept, *_shown(project_id))).scalar_one()
    return count


def projects(tx: Tx, project_id: str | None) -> int:
    """Projects that have zones."""
    count: int = tx.execute(sa.select(sa.func.count(sa.distinct(domains.c.project_id)))
                            .where(*_shown(project_id))).scalar_one()
    return count


def zones_by_project(tx: Tx, project_id: str | None) -> list[tuple[str, int]]:
    return [(row[0], row[1]) for row in tx.execute(
        sa.select(domains.c.project_id, sa.func.count(domains.c.id)).where(*_shown(project_id))
        .group_by(domains.c.project_id).order_by(domains.c.project_id))]


def names_of_zones(tx: Tx, project_id: str) -> list[str]:
    return list(tx.execute(sa.select(domains.c.name).where(*_shown(project_id)).order_by(domains.c.name)).scalars())


def _shown(project_id: str | None) -> list[Any]:
    """The zones that users see, with those that are being deleted."""
    conditions: list[Any] = [domains.c.status != Status.DELETED, domains.c.moved_id.is_(None)]
    return conditions if project_id is None else [*conditions, domains.c.project_id == project_id]


#: Reports by Designate's names.
REPORTS: dict[str, Callable[[Tx, str | None], int]] = {
    'zones': zones, 'records': records_of_zones, 'tenants': projects}
