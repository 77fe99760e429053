"""For which resources of other services records are there.  Whoever writes has locked the domain.

A record stays while a row names it.  A row without a record keeps when the last event of its resource was.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from designate_pool.model import Action, ManagedRecord, new_id
from designate_pool.storage.sql import paging
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import ALIVE, domains
from designate_pool.storage.sql.schema import managed_records as MANAGED
from designate_pool.storage.sql.schema import recordsets
from designate_pool.storage.zones import recordsets as recordset_store
from designate_pool.storage.zones.domains import chunks

_SELECT = (sa.select(*(MANAGED.c[field.name] for field in dataclasses.fields(ManagedRecord)))
           .join(domains, domains.c.id == MANAGED.c.domain_id)
           .where(MANAGED.c.recordset_id.is_not(None), domains.c.deleted == ALIVE, domains.c.action != Action.DELETE)
           .order_by(MANAGED.c.id))
_CRITERIA = {name: MANAGED.c[name] for name in ('id', 'domain_id', 'plugin', 'resource_type', 'resource_id', 'region',
                                                'address', 'project_id')}


def insert(tx: Tx, made: Sequence[ManagedRecord]) -> None:
    if made:
        tx.execute(MANAGED.insert(), [dataclasses.asdict(each) for each in made])


def find(tx: Tx, criterion: Mapping[str, Any]) -> list[ManagedRecord]:
    """Those in domains that are not deleted.

    :param criterion: a text, or a list of texts, for each column
    """
    texts = {key: [value] if isinstance(value, str) else value for key, value in criterion.items()}
    for key, values in texts.items():
        for value in values:
            paging.refuse_unknown({key: value}, _CRITERIA)
    return [ManagedRecord(*row) for row in tx.execute(_SELECT.where(*(
        _CRITERIA[key].in_(values) for key, values in texts.items())))]


def of_recordsets(tx: Tx, recordset_ids: Iterable[str]) -> list[ManagedRecord]:
    return [ManagedRecord(*row) for part in chunks(recordset_ids)
            for row in tx.execute(_SELECT.where(MANAGED.c.recordset_id.in_(part)))]


def delete(tx: Tx, ids: Iterable[str]) -> None:
    for part in chunks(ids):
        tx.execute(MANAGED.delete().where(MANAGED.c.id.in_(part)))


def mark_managed(tx: Tx, recordset_ids: Sequence[str], now: datetime) -> set[str]:
    """After recordsets were changed: delete the rows whose records are gone, and write which recordsets have rows.

    :param recordset_ids: none of those that are generated from the pool
    :returns: the ids of recordsets that have become managed, or are it no more
    """
    if not recordset_ids:
        return set()
    present = recordset_store.get_many(tx, recordset_ids)
    held = {(each.id, record.data) for each in present.values() for record in each.records}
    rows = of_recordsets(tx, recordset_ids)
    delete(tx, [each.id for each in rows if (each.recordset_id, each.data) not in held])
    managed = {each.recordset_id for each in rows if (each.recordset_id, each.data) in held}
    changed = [each for each in present.values() if each.managed is not (each.id in managed)]
    for each in changed:
        tx.execute(sa.update(recordsets).where(recordsets.c.id == each.id)
                   .values(managed=not each.managed, updated_at=now, version=recordsets.c.version + 1))
    return {each.id for each in changed}


def last_event(tx: Tx, domain_id: str, resource: Mapping[str, str]) -> datetime | None:
    """When the last event of a resource was, if that is known."""
    return tx.execute(sa.select(MANAGED.c.event_at).where(
        MANAGED.c.domain_id == domain_id, MANAGED.c.recordset_id.is_(None), *_of(resource))).scalar()


def keep_event(tx: Tx, domain_id: str, resource: Mapping[str, str], at: datetime, now: datetime,
               forgotten: datetime) -> None:
    """Store when the last event of a resource was.

    :param forgotten: events before this time are deleted
    """
    own = sa.and_(MANAGED.c.domain_id == domain_id, MANAGED.c.recordset_id.is_(None))
    tx.execute(MANAGED.delete().where(own, sa.or_(MANAGED.c.updated_at < forgotten, sa.and_(*_of(resource)))))
    tx.execute(MANAGED.insert().values(id=new_id(), created_at=now, updated_at=now, domain_id=domain_id, data='',
                                       event_at=at, **resource))


def _of(resource: Mapping[str, str]) -> list[Any]:
    return [_CRITERIA[name] == value for name, value in resource.items()]
