"""Quotas of projects, and their use.

Counting stops at the limit, so a quota costs at most as many steps through an index as it allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from designate_pool.model import Status, Task
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import count, delete_all, lost_race
from designate_pool.storage.sql.schema import ALIVE, domains, project_deletes, quotas, records, recordsets
from designate_pool.storage.zones.domains import DELETED

_KEPT = sa.and_(records.c.task != Task.DELETE, records.c.status != Status.DELETED)


def of_project(tx: Tx, project_id: str) -> dict[str, int]:
    """The quotas set for a project, by resource."""
    rows = tx.execute(sa.select(quotas.c.resource, quotas.c.hard_limit).where(quotas.c.project_id == project_id))
    return {row[0]: row[1] for row in rows}


def save(tx: Tx, project_id: str, wanted: Mapping[str, int], now: datetime) -> None:
    """Set these quotas of a project; its other quotas are unchanged.

    :raises LostRace: when another transaction has set one for the first time meanwhile
    """
    for resource, limit in sorted(wanted.items()):
        here = sa.and_(quotas.c.project_id == project_id, quotas.c.resource == resource)
        changed = tx.execute(sa.update(quotas).where(here).values(hard_limit=limit, updated_at=now))
        if not changed.rowcount:
            with lost_race(f'quota of {project_id}'):
                tx.execute(sa.insert(quotas), {'project_id': project_id, 'resource': resource, 'hard_limit': limit,
                                               'created_at': now, 'updated_at': now})


def delete(tx: Tx, project_id: str) -> None:
    """Delete a project's quotas, so that those of the configuration apply."""
    tx.execute(sa.delete(quotas).where(quotas.c.project_id == project_id))


def lock_recent_deletes(tx: Tx, project_id: str, now: datetime) -> str:
    """A project's deletes, which nobody else can count until this transaction ends.

    :raises LostRace: as :func:`save`
    """
    deletes = tx.execute(sa.select(project_deletes.c.recent_deletes).where(
        project_deletes.c.project_id == project_id).with_for_update()).scalar()
    if deletes is None:
        with lost_race(f'deletes of {project_id}'):
            tx.execute(sa.insert(project_deletes), {'project_id': project_id, 'updated_at': now})
    return deletes or ''


def save_recent_deletes(tx: Tx, project_id: str, deletes: str, now: datetime) -> None:
    """Write the deletes of a project, which are locked."""
    tx.execute(sa.update(project_deletes).where(project_deletes.c.project_id == project_id)
               .values(recent_deletes=deletes, updated_at=now))


def expire_recent_deletes(tx: Tx, before: datetime, limit: int) -> int:
    """Delete the counts of at most *limit* projects that have deleted nothing since then; of how many."""
    ids = list(tx.execute(sa.select(project_deletes.c.project_id).where(project_deletes.c.updated_at < before)
                          .limit(limit).with_for_update(skip_locked=True)).scalars())
    delete_all(tx, project_deletes.c.project_id, ids)
    return len(ids)


def count_domains(tx: Tx, with_deleted: bool, project_id: str, most: int) -> int:
    """How many live domains a project has, also those that can be restored if *with_deleted*; counted up to *most*."""
    counted = domains.c.deleted == ALIVE
    if with_deleted:
        counted |= sa.and_(*DELETED)
    return count(tx, sa.select(domains.c.id).where(domains.c.project_id == project_id, counted), most)


def count_recordsets(tx: Tx, domain_id: str, most: int, with_managed: bool = False) -> int:
    """How many recordsets a domain has, except those made from its pool unless *with_managed*; counted up to *most*."""
    return count(tx, sa.select(recordsets.c.id).where(
        recordsets.c.domain_id == domain_id, recordsets.c.deleted == ALIVE,
        *(() if with_managed else (~recordsets.c.managed,))), most)


def count_records(tx: Tx, domain_id: str, most: int) -> int:
    """How many records a domain has, except those made from its pool; counted up to *most*."""
    return count(tx, sa.select(records.c.id).join_from(records, recordsets)
                 .where(records.c.domain_id == domain_id, _KEPT, ~recordsets.c.managed), most)
