"""Reads for status pages and reports, each a few statements.  But for the counts of what projects have, their
cost does not grow with the number of domains.

Permissions are not checked here: callers show the results to operators, or have got the domain from Central before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from designate_pool.model import Action, Outcome, Status, Task
from designate_pool.serial import distance
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import count
from designate_pool.storage.sql.schema import domains, pool_manager_status, records
from designate_pool.storage.zones import pools as pool_store

ROWS = pool_manager_status
#: Rows of a server that are searched for failures, in the order in which they are due.
SEARCHED = 2000


@dataclasses.dataclass(frozen=True, slots=True)
class RecentChange:
    """The last change of a domain, and when the pool agreed on it."""

    domain_id: str
    name: str
    serial: int
    action: Action
    status: Status
    changed_at: datetime
    converged_at: datetime | None


@dataclasses.dataclass(frozen=True, slots=True)
class RecentFailure:
    """A row of pool_manager_status that is in ERROR."""

    domain_id: str
    name: str
    server_id: str
    action: Action
    serial: int | None
    expected_serial: int
    attempts: int
    error: str
    next_attempt_at: datetime


def newest_serial(tx: Tx, recordset_id: str, around: int) -> int | None:
    """The serial of the last change of a recordset, including removed records; None if it has no records."""
    serials = tx.execute(sa.select(records.c.serial_number).where(records.c.recordset_id == recordset_id)
                         .distinct()).scalars().all()
    return max(serials, key=lambda serial: distance(around, serial), default=None)


def recent_changes(tx: Tx, pool_name: str, limit: int, project_id: str | None = None) -> list[RecentChange]:
    """The pool's domains (a project's, all for None) that changed last, with deleted ones, the newest change first."""
    return [RecentChange(*row) for row in tx.execute(
        sa.select(domains.c.id, domains.c.name, sa.func.coalesce(domains.c.content_serial, domains.c.serial),
                  domains.c.action, domains.c.status,
                  domains.c.changed_at, domains.c.converged_at)
        .where(domains.c.pool_id == pool_store.id_of(pool_name), domains.c.changed_at.is_not(None), _of(project_id))
        .order_by(domains.c.changed_at.desc()).limit(limit))]


def in_error(tx: Tx, pool_name: str, limit: int, project_id: str | None = None) -> list[tuple[str, str]]:
    """Ids and names of the pool's domains (a project's, all for None) that are in ERROR, *limit* at most."""
    return [(domain_id, name) for domain_id, name in tx.execute(
        sa.select(domains.c.id, domains.c.name).where(
            domains.c.pool_id == pool_store.id_of(pool_name), domains.c.status == Status.ERROR, _of(project_id))
        .order_by(domains.c.id).limit(limit))]


def failures(tx: Tx, server_ids: Sequence[str], limit: int, project_id: str | None = None) -> list[RecentFailure]:
    """Rows in ERROR that will be retried, for each server *limit*, those due first; of a project, or all for None."""
    recent: list[RecentFailure] = []
    for server_id in server_ids:
        waiting = (sa.select(ROWS).where(ROWS.c.server_id == server_id, ROWS.c.next_attempt_at.is_not(None))
                   .order_by(ROWS.c.next_attempt_at).limit(SEARCHED).subquery())
        recent.extend(RecentFailure(*row) for row in tx.execute(
            sa.select(domains.c.id, domains.c.name, waiting.c.server_id, waiting.c.action, waiting.c.serial_number,
                      waiting.c.expected_serial, waiting.c.attempts, sa.func.coalesce(waiting.c.last_error, ''),
                      waiting.c.next_attempt_at)
            .join_from(waiting, domains, domains.c.id == waiting.c.domain_id)
            .where(waiting.c.status == Outcome.ERROR, _of(project_id))
            .order_by(waiting.c.next_attempt_at).limit(limit)))
    return recent


def _of(project_id: str | None) -> sa.ColumnElement[bool]:
    return sa.true() if project_id is None else domains.c.project_id == project_id


def zones_by_project(tx: Tx, project_id: str | None) -> list[tuple[str, int]]:
    """Ids of projects with the numbers of their zones; one project alone, or all for None."""
    return [(row[0], row[1]) for row in tx.execute(
        sa.select(domains.c.project_id, sa.func.count(domains.c.id)).where(*_shown(project_id))
        .group_by(domains.c.project_id).order_by(domains.c.project_id))]


def names_of_zones(tx: Tx, project_id: str) -> list[str]:
    """As their creators wrote them."""
    name = sa.func.coalesce(domains.c.given_name, domains.c.name)
    return list(tx.execute(sa.select(name).where(*_shown(project_id)).order_by(domains.c.name)).scalars())


def _shown(project_id: str | None) -> list[Any]:
    """The zones that users see, with those that are being deleted."""
    conditions: list[Any] = [domains.c.status != Status.DELETED, domains.c.moved_id.is_(None)]
    return conditions if project_id is None else [*conditions, domains.c.project_id == project_id]


#: What Designate counts, by its names; as the lists above it reads all that projects have.  Records are counted with
#: those that are generated from the pool, but the SOA; tenants are projects that have zones.
COUNTS: dict[str, sa.Select[Any]] = {
    'zones': sa.select(domains.c.id),
    'records': sa.select(records.c.id).join_from(records, domains, records.c.domain_id == domains.c.id).where(
        records.c.task != Task.DELETE, records.c.status != Status.DELETED),
    'tenants': sa.select(domains.c.project_id).distinct()}


def count_all(tx: Tx, name: str, project_id: str | None) -> int:
    """One of :data:`COUNTS`, of a project, or all for None."""
    return count(tx, COUNTS[name].where(*_shown(project_id)))
