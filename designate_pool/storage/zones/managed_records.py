"""For which resources of other services records are there.  Whoever writes has locked the domain.

A record stays while a row names it.  A row without a record keeps when the last event of its resource was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from designate_pool.model import Action, ManagedRecord, new_id
from designate_pool.storage.sql import pages
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import Entities, chunks, delete_all
from designate_pool.storage.sql.schema import ALIVE, domains, managed_records as MANAGED, recordsets
from designate_pool.storage.zones import recordsets as recordset_store

_ENTITIES = Entities(ManagedRecord, MANAGED)
_SELECT = (_ENTITIES.select.join(domains, domains.c.id == MANAGED.c.domain_id)
           .where(MANAGED.c.recordset_id.is_not(None), domains.c.deleted == ALIVE, domains.c.action != Action.DELETE)
           .order_by(MANAGED.c.id))
_CRITERIA = {name: MANAGED.c[name] for name in ('id', 'domain_id', 'plugin', 'resource_type', 'resource_id', 'region',
                                                'address', 'project_id')}


def insert(tx: Tx, made: Sequence[ManagedRecord]) -> None:
    """Store new rows; *made* may be empty."""
    if made:
        tx.execute(MANAGED.insert(), [_ENTITIES.values(managed) for managed in made])


def find(tx: Tx, criterion: Mapping[str, Any]) -> list[ManagedRecord]:
    """Those in domains that are not deleted; *criterion* has a text, or a list of texts, for each column."""
    texts = {key: [value] if isinstance(value, str) else value for key, value in criterion.items()}
    for key, values in texts.items():
        for value in values:
            pages.refuse_unknown({key: value}, _CRITERIA)
    return _ENTITIES.all(tx, _SELECT.where(*(_CRITERIA[key].in_(values) for key, values in texts.items())))


def of_recordsets(tx: Tx, recordset_ids: Iterable[str]) -> list[ManagedRecord]:
    """The rows about records of these recordsets, in domains that are not deleted."""
    return [managed for part in chunks(recordset_ids)
            for managed in _ENTITIES.all(tx, _SELECT.where(MANAGED.c.recordset_id.in_(part)))]


def delete(tx: Tx, ids: Iterable[str]) -> None:
    """Delete the rows with these ids."""
    delete_all(tx, MANAGED.c.id, ids)


def mark_managed(tx: Tx, recordset_ids: Sequence[str], now: datetime) -> set[str]:
    """After recordsets were changed: delete the rows whose records are gone, and write which recordsets have rows.

    :param recordset_ids: none of those that are generated from the pool
    :returns: the ids of recordsets that have become managed, or are it no more
    """
    if not recordset_ids:
        return set()
    present = recordset_store.get_many(tx, recordset_ids)
    present_data = {(recordset.id, record.data) for recordset in present.values() for record in recordset.records}
    rows = of_recordsets(tx, recordset_ids)
    delete(tx, [row.id for row in rows if (row.recordset_id, row.data) not in present_data])
    managed = {row.recordset_id for row in rows if (row.recordset_id, row.data) in present_data}
    changed = [recordset for recordset in present.values() if recordset.managed is not (recordset.id in managed)]
    for recordset in changed:
        tx.execute(sa.update(recordsets).where(recordsets.c.id == recordset.id)
                   .values(managed=not recordset.managed, updated_at=now, version=recordsets.c.version + 1))
    return {recordset.id for recordset in changed}


def last_event(tx: Tx, domain_id: str, resource: Mapping[str, str]) -> datetime | None:
    """When the last event of a resource was, if that is known."""
    return tx.execute(sa.select(MANAGED.c.event_at).where(
        MANAGED.c.domain_id == domain_id, MANAGED.c.recordset_id.is_(None), *_of(resource))).scalar()


def keep_event(tx: Tx, domain_id: str, resource: Mapping[str, str], at: datetime, now: datetime,
               forgotten: datetime) -> None:
    """Store when the last event of a resource was, and delete events before *forgotten*."""
    own = sa.and_(MANAGED.c.domain_id == domain_id, MANAGED.c.recordset_id.is_(None))
    tx.execute(MANAGED.delete().where(own, sa.or_(MANAGED.c.updated_at < forgotten, sa.and_(*_of(resource)))))
    tx.execute(MANAGED.insert().values(id=new_id(), created_at=now, updated_at=now, domain_id=domain_id, data='',
                                       event_at=at, **resource))


def _of(resource: Mapping[str, str]) -> list[Any]:
    return [_CRITERIA[name] == value for name, value in resource.items()]
