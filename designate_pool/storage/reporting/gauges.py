"""Measurements of a pool every few seconds, by statements whose cost is bounded by an index."""

from __future__ import annotations

import dataclasses
from datetime import datetime

import sqlalchemy as sa

from designate_pool.model import Outcome, PlanState, Status
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import count
from designate_pool.storage.sql.schema import domains, plans, pool_manager_status
from designate_pool.storage.zones import pools as pool_store

ROWS = pool_manager_status
#: Rows and unsettled domains are counted up to this.
MOST = 100_000
#: Operations of a server from which its lag is computed: those due first.
SAMPLE = 10_000


@dataclasses.dataclass(frozen=True, slots=True)
class ServerMeasures:
    """Measurements of a server.

    :ivar waiting: operations that are due or will be retried; *due*: due now and not claimed; *failing*: in ERROR;
        *in_hand*: claimed or being polled; *diverged*: the server serves other contents
    :ivar oldest_due: since when the oldest of *due* has been due
    :ivar behind: domains with a waiting operation that has not succeeded
    :ivar behind_since: when the first of these domains changed
    """

    waiting: int = 0
    due: int = 0
    failing: int = 0
    in_hand: int = 0
    oldest_due: datetime | None = None
    behind: int = 0
    diverged: int = 0
    behind_since: datetime | None = None


def of_server(tx: Tx, server_id: str, now: datetime) -> ServerMeasures:
    """Two statements, by the index of due rows."""
    waiting = (ROWS.c.server_id == server_id) & ROWS.c.next_attempt_at.is_not(None)
    page = (sa.select(ROWS.c.domain_id, ROWS.c.status, ROWS.c.next_attempt_at, ROWS.c.claimed_until, ROWS.c.deadline_at,
                      ROWS.c.diverged)
            .where(waiting).order_by(ROWS.c.next_attempt_at).limit(MOST).subquery())
    failed = page.c.status == Outcome.ERROR
    undone = failed | page.c.status.is_(None)
    in_progress = (sa.func.coalesce(page.c.claimed_until > now, sa.false())
                   | sa.func.coalesce(page.c.deadline_at > now, sa.false()))
    due = (page.c.next_attempt_at <= now) & ~in_progress
    row = tx.execute(sa.select(
        sa.func.count(), sa.func.count(sa.case((due, 1))), sa.func.count(sa.case((failed, 1))),
        sa.func.count(sa.case((in_progress, 1))), sa.func.min(sa.case((due, page.c.next_attempt_at))),
        sa.func.count(sa.distinct(sa.case((undone, page.c.domain_id)))),
        sa.func.count(sa.case((page.c.diverged, 1))))).one()
    if not row[5]:
        return ServerMeasures(*row)
    first = (sa.select(ROWS.c.domain_id, ROWS.c.status).where(waiting).order_by(ROWS.c.next_attempt_at).limit(SAMPLE)
             .subquery())
    since = tx.execute(sa.select(sa.func.min(domains.c.changed_at)).join_from(first, domains,
                                                                              domains.c.id == first.c.domain_id)
                       .where((first.c.status == Outcome.ERROR) | first.c.status.is_(None))).scalar()
    return dataclasses.replace(ServerMeasures(*row), behind_since=since)


def unsettled(tx: Tx, pool_name: str) -> dict[Status, int]:
    """How many domains of the pool are PENDING and how many in ERROR."""
    return {status: count(tx, sa.select(domains.c.id).where(
        domains.c.pool_id == pool_store.id_of(pool_name), domains.c.status == status), MOST)
            for status in (Status.PENDING, Status.ERROR)}


def active(tx: Tx, pool_name: str) -> int:
    """How many domains of the pool are ACTIVE.  It counts an index, so call it rarely."""
    return tx.execute(sa.select(sa.func.count()).where(
        domains.c.pool_id == pool_store.id_of(pool_name), domains.c.status == Status.ACTIVE)).scalar_one()


def parked_plans(tx: Tx, pool_name: str, now: datetime) -> int:
    """How many plans of the pool wait for an operator."""
    return count(tx, sa.select(plans.c.id).where(plans.c.state == PlanState.PARKED, plans.c.expires_at >= now,
                                                 plans.c.pool_name == pool_name, plans.c.server_id.is_not(None)), MOST)
