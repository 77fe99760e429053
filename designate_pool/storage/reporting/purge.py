"""Deletion of data that is not needed any more.

A round goes through the domains by id, page by page, so that no statement's cost grows with the size of the tables.
The newest tombstone of a name stays, since it keeps the name's serial and generation, and so do others as long as their
history is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from designate_pool.model import Status
from designate_pool.storage.operations import rrset_ownership
from designate_pool.storage.signing import signed_records
from designate_pool.storage.signing.zone_signing import IN_TOKEN
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import chunks, delete_all
from designate_pool.storage.sql.schema import (ALIVE, domains, managed_records, plans, pool_manager_status, records,
                                               recordsets, tsigkeys, zone_keys, zone_shares, zone_signing, zone_tasks,
                                               zone_transfer_accepts, zone_transfer_requests, zone_versions)
from designate_pool.storage.zones import domains as domain_store

_DELETED_AT = sa.func.coalesce(domains.c.deleted_at, domains.c.updated_at).label('deleted_at')
_NEWER = domains.alias()
_IS_OLDER = sa.exists().where(_NEWER.c.name == domains.c.name, _NEWER.c.generation > domains.c.generation)
_IS_OF_OWNER = sa.or_(recordsets.c.deleted == ALIVE,
                      sa.and_(recordsets.c.managed == sa.false(), recordsets.c.project_id.is_(None)))


class Purged(NamedTuple):
    """The result of a page: how many rows were *removed*, and the id to continue after, '' at the end of the round."""

    removed: int
    next_id: str


def purge(tx: Tx, before: datetime, limit: int, after_id: str = '', history: datetime | None = None) -> Purged:
    """Purge one page: of *limit* domains after *after_id*, about *limit* rows at most, deleted before *before*.

    :param history: tombstones that were deleted since then stay, with their versions, and deleted recordsets of others
        than the owner of their domain, which no revert may give to the owner; None for *before*
    """
    seen = tx.execute(sa.select(domains.c.id, domains.c.status, _DELETED_AT)
                      .where(domains.c.id > after_id).order_by(domains.c.id).limit(limit)).all()
    if not seen:
        return Purged(0, '')
    rows = tx.execute(sa.select(records.c.id, records.c.recordset_id)
                      .join_from(records, recordsets, recordsets.c.id == records.c.recordset_id)
                      .where(records.c.domain_id.in_([row.id for row in seen]), records.c.status == Status.DELETED,
                             records.c.updated_at < before, sa.or_(_IS_OF_OWNER, records.c.updated_at < (
                                 before if history is None else history))).limit(limit)).all()
    delete_all(tx, records.c.id, (row.id for row in rows))
    removed = len(rows) + _purge_recordsets(tx, {row.recordset_id for row in rows})
    if removed < limit:
        tombstones = [row.id for row in seen if row.status is Status.DELETED and row.deleted_at < before]
        removed += _purge_tombstones(tx, tombstones, limit - removed, history or before)
    if removed >= limit:
        return Purged(removed, after_id or '0')
    return Purged(removed, seen[-1].id if len(seen) == limit else '')


def _purge_recordsets(tx: Tx, ids: Iterable[str]) -> int:
    """Delete those of the recordsets that are marked as deleted and have no records."""
    removed = 0
    for part in chunks(sorted(ids)):
        has_records = sa.exists().where(records.c.recordset_id == recordsets.c.id)
        empty = tx.execute(sa.select(recordsets.c.id).where(recordsets.c.id.in_(part), recordsets.c.deleted != ALIVE,
                                                            ~has_records)).scalars().all()
        delete_all(tx, recordsets.c.id, empty)
        removed += len(empty)
    return removed


def _purge_tombstones(tx: Tx, ids: list[str], limit: int, history: datetime) -> int:
    """Delete the rows of tombstones that all servers have confirmed, then those that are not the newest of a name."""
    if not ids:
        return 0
    waited_for = sa.exists().where(pool_manager_status.c.domain_id == domains.c.id)
    # Locked: one that is restored meanwhile is not among them.
    ids = list(tx.execute(sa.select(domains.c.id).where(domains.c.id.in_(ids), domains.c.deleted != ALIVE, ~waited_for)
                          .order_by(domains.c.id).with_for_update(of=domains)).scalars())
    domain_store.mark_purged(tx, ids)
    removed = rrset_ownership.purge_domains(tx, ids, limit)
    if removed < limit:
        removed += purge_contents(tx, ids, limit - removed)
    if removed >= limit:
        return removed
    has_versions = sa.exists().where(zone_versions.c.domain_id == domains.c.id)
    has_keys = sa.exists().where(zone_keys.c.domain_id == domains.c.id)  # in a token
    gone = tx.execute(sa.select(domains.c.id).where(domains.c.id.in_(ids), _IS_OLDER, _DELETED_AT < history,
                                                    ~has_versions, ~has_keys)).scalars().all()
    delete_all(tx, domains.c.id, gone)
    return removed + len(gone)


def purge_contents(tx: Tx, ids: list[str], limit: int, with_versions: bool = False) -> int:
    """Delete what belongs to tombstones that are marked as purged, at most *limit* rows; how many there were."""
    removed = signed_records.purge(tx, ids, limit)
    if removed >= limit:
        return removed
    for table in (records, recordsets, managed_records, plans, zone_tasks, zone_transfer_requests,
                  zone_transfer_accepts, zone_shares, zone_keys, *([zone_versions] if with_versions else [])):
        # A token has to delete its key before.
        rows = list(tx.execute(sa.select(table.c.id).where(table.c.domain_id.in_(ids),
                                                           *([~IN_TOKEN] if table is zone_keys else []))
                               .limit(limit - removed)).scalars())
        delete_all(tx, table.c.id, rows)
        removed += len(rows)
        if removed >= limit:
            return removed
    for column in (tsigkeys.c.resource_id, zone_signing.c.domain_id):
        delete_all(tx, column, ids)
    return removed
