"""When secondary domains are refreshed: rows of the table of that name.

Whoever writes has locked the domain, except for claims.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from designate_pool.model import Endpoint, RefreshState, RefreshTask
from designate_pool.storage.sql.columns import storable
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import Entities, exists
from designate_pool.storage.sql.schema import ALIVE, domains, pools, secondary_zones

TABLE = secondary_zones
_LONGEST_ERROR = 1024
_POOL_ID = sa.select(pools.c.id).where(pools.c.name == sa.bindparam('pool_name')).scalar_subquery()
_FREE = sa.or_(TABLE.c.claimed_until.is_(None), TABLE.c.claimed_until < sa.bindparam('now'))
_IS_DUE = sa.and_(TABLE.c.next_at <= sa.bindparam('now'), _FREE)
_IS_SERVED = sa.and_(domains.c.id == TABLE.c.domain_id, domains.c.deleted == ALIVE, domains.c.pool_id == _POOL_ID)
#: Whether :func:`claim` would find zones of ``:pool_name`` at ``:now``.  For a join, SQLite would read all domains of
#: the pool.
HAS_DUE = sa.exists().where(_IS_DUE, sa.exists().where(_IS_SERVED))
#: When the first zone of ``:pool_name`` is due, claimed or not; NULL if that is after ``:until``.
FIRST_AT = (sa.select(TABLE.c.next_at).where(TABLE.c.next_at <= sa.bindparam('until'), sa.exists().where(_IS_SERVED))
            .order_by(TABLE.c.next_at).limit(1).scalar_subquery())
_NEXT = (sa.select(domains.c.id, domains.c.name, domains.c.masters, domains.c.serial, domains.c.transferred_at,
                   domains.c.project_id)
         .join_from(TABLE, domains, _IS_SERVED)
         .where(_IS_DUE, domains.c.project_id.not_in(sa.bindparam('projects', expanding=True)))
         .order_by(TABLE.c.next_at).limit(sa.bindparam('most')).with_for_update(of=TABLE, skip_locked=True))
_BY_NAMES = (sa.select(domains.c.id, domains.c.name, domains.c.masters)
             .where(domains.c.name.in_(sa.bindparam('names', expanding=True)), domains.c.deleted == ALIVE,
                    domains.c.masters != '',
                    sa.or_(domains.c.pool_id == _POOL_ID, domains.c.former_pool_id == _POOL_ID)))
_STATES = Entities(RefreshState, TABLE)


def insert(tx: Tx, domain_id: str, now: datetime) -> None:
    """Have a new domain refreshed, now for the first time."""
    tx.execute(TABLE.insert(), {'domain_id': domain_id, 'created_at': now, 'updated_at': now, 'next_at': now})


def delete(tx: Tx, domain_ids: Sequence[str]) -> None:
    """Refresh these domains no more."""
    tx.execute(TABLE.delete().where(TABLE.c.domain_id.in_(domain_ids)))


def claim(tx: Tx, pool_name: str, by: str, now: datetime, until: datetime, most: int,
          but_projects: Sequence[str] = (), but_masters: Sequence[str] = ()) -> list[RefreshTask]:
    """Claim domains that are due, the longest due first; rows locked by others are skipped.

    :param but_projects: see :meth:`designate_pool.rpc.central.CentralClient.claim_refreshes`
    """
    # The port is the last part of a master's text.
    statement = _NEXT.where(*(domains.c.masters.not_like(f'{Endpoint(address, 0)}'[:-1] + '%')
                              for address in but_masters))
    due = tx.execute(statement, {'pool_name': pool_name, 'now': now, 'most': most,
                                 'projects': list(but_projects)}).all()
    if due:
        tx.execute(TABLE.update().where(TABLE.c.domain_id.in_([row.id for row in due]))
                   .values(claimed_by=by, claimed_until=until, is_requested=False, updated_at=now))
    return [RefreshTask(row.id, row.name, tuple(row.masters.split(',')), by,
                        None if row.transferred_at is None else row.serial, row.project_id) for row in due]


def holds(tx: Tx, domain_id: str, by: str) -> bool:
    """Whether the claim is still held."""
    return exists(tx, TABLE, _claimed(domain_id, by))


def end(tx: Tx, domain_id: str, by: str, now: datetime, next_at: datetime, master: str | None = None,
        error: str | None = None) -> None:
    """End a claimed refresh that reached *master*, or ended in *error*.  One requested meanwhile is due now."""
    values: dict[str, Any] = {'claimed_by': None, 'claimed_until': None, 'updated_at': now, 'next_at': sa.case(
        (TABLE.c.is_requested, sa.literal(now, TABLE.c.next_at.type)),
        else_=sa.literal(next_at, TABLE.c.next_at.type)), 'is_requested': False}
    if error is None:
        values |= {'checked_at': now, 'master': master, 'failures': 0, 'last_error': None}
    else:
        values |= {'failures': TABLE.c.failures + 1, 'last_error': storable(error, _LONGEST_ERROR)}
    tx.execute(TABLE.update().where(_claimed(domain_id, by)).values(values))


def request(tx: Tx, domain_id: str, now: datetime) -> None:
    """Have a domain refreshed now; while it is being refreshed, once more afterwards."""
    tx.execute(TABLE.update().where(TABLE.c.domain_id == domain_id)
               .values(next_at=now, updated_at=now, is_requested=TABLE.c.claimed_by.is_not(None)))


def get(tx: Tx, domain_id: str) -> RefreshState | None:
    """The state of a domain's refreshes; None for a primary one."""
    return _STATES.one(tx, _STATES.select.where(TABLE.c.domain_id == domain_id))


def masters(tx: Tx, pool_name: str, names: Collection[str]) -> dict[str, tuple[str, Sequence[str]]]:
    """The id and the masters, by name, of those of *names* that are live secondary domains of this pool, or were moved
    from there and are still kept."""
    rows = tx.execute(_BY_NAMES, {'pool_name': pool_name, 'names': list(names)})
    return {row.name: (row.id, row.masters.split(',')) for row in rows}


def _claimed(domain_id: str, by: str) -> Any:
    return sa.and_(TABLE.c.domain_id == domain_id, TABLE.c.claimed_by == by)
