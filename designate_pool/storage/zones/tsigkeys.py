"""TSIG keys that may transfer zones.  Only :func:`grants`, for MiniDNS, returns their secrets."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.errors import LostRace
from designate_pool.model import KeyScope, PageRequest, StoredTsigKey, TsigKey
from designate_pool.storage.sql import pages, secrets
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import ALIVE, change_counts, domains, pools, tsigkeys

#: Keys that MiniDNS reads at most: the oldest.
MOST = 10000

_FIELDS = tuple(field.name for field in dataclasses.fields(StoredTsigKey))
_SELECT = sa.select(*(tsigkeys.c[name] for name in _FIELDS))
_COUNTED = change_counts.c.what == 'tsigkeys'
#: The number of changes of keys, and of what they are for; NULL before the first one.
CHANGES = sa.select(change_counts.c.changes).where(_COUNTED)
_GRANTS = (
    sa.select(tsigkeys.c.name, tsigkeys.c.algorithm, tsigkeys.c.secret, pools.c.name, domains.c.id)
    .select_from(tsigkeys
                 .outerjoin(pools, sa.and_(tsigkeys.c.scope == KeyScope.POOL.value,
                                           pools.c.id == tsigkeys.c.resource_id))
                 .outerjoin(domains, sa.and_(tsigkeys.c.scope == KeyScope.ZONE.value,
                                             domains.c.id == tsigkeys.c.resource_id, domains.c.deleted == ALIVE)))
    .order_by(tsigkeys.c.created_at, tsigkeys.c.id).limit(MOST))
_SORT_KEYS = {name: tsigkeys.c[name] for name in ('name', 'id', 'created_at', 'updated_at', 'algorithm', 'scope')}


class Grant(NamedTuple):
    """What a key may transfer: all zones of a pool, or one zone; nothing if that has been deleted.

    :ivar pool_name: None for a key for one zone
    """

    key: TsigKey
    pool_name: str | None
    domain_id: str | None


def count_change(tx: Tx) -> None:
    """Have all programs read the keys again; concurrent changes wait until this transaction ends."""
    if not tx.execute(change_counts.update().where(_COUNTED).values(changes=change_counts.c.changes + 1)).rowcount:
        tx.execute(change_counts.insert(), {'what': 'tsigkeys', 'changes': 1})


def grants(tx: Tx) -> list[Grant]:
    """All keys, with their secrets."""
    kept = secrets.of(tx)
    return [Grant(TsigKey(row[0], row[1], kept.reveal(row[2], row[0])), row[3], row[4]) for row in tx.execute(_GRANTS)]


def rotate(tx: Tx, after_id: str, limit: int) -> list[str]:
    """Store the secrets of some keys again, by the present cipher; the ids of these keys, in order after *after_id*.

    :raises designate_pool.errors.UnreadableSecret: when one cannot be read
    """
    kept = secrets.of(tx)
    rows = tx.execute(sa.select(tsigkeys.c.id, tsigkeys.c.name, tsigkeys.c.secret).where(tsigkeys.c.id > after_id)
                      .order_by(tsigkeys.c.id).limit(limit).with_for_update()).all()
    for row in rows:
        tx.execute(sa.update(tsigkeys).where(tsigkeys.c.id == row.id)
                   .values(secret=kept.seal(kept.reveal(row.secret, row.name))))
    return [row.id for row in rows]


def get(tx: Tx, key_id: str) -> StoredTsigKey | None:
    row = tx.execute(_SELECT.where(tsigkeys.c.id == key_id)).first()
    return None if row is None else _key(row)


def lock(tx: Tx, key_id: str) -> StoredTsigKey | None:
    """The key, locked until this transaction ends."""
    row = tx.execute(_SELECT.where(tsigkeys.c.id == key_id).with_for_update()).first()
    return None if row is None else _key(row)


def ids_of_names(tx: Tx, lower_names: Iterable[str]) -> set[str]:
    """The ids of the keys with one of these names, given in lower case."""
    return set(tx.execute(sa.select(tsigkeys.c.id).where(sa.func.lower(tsigkeys.c.name).in_(list(lower_names))))
               .scalars())


def find(tx: Tx, page: PageRequest) -> list[StoredTsigKey]:
    pages.refuse_unknown(page.criterion, _CRITERIA)
    statement = _SELECT.where(*(_CRITERIA[key](value) for key, value in page.criterion.items()))
    return [_key(row) for row in pages.one_page(tx, statement, tsigkeys.c.id, _SORT_KEYS, page)]


def insert(tx: Tx, key: StoredTsigKey, secret: str, now: datetime) -> None:
    """Store a new key.

    :raises LostRace: when another transaction has taken the name meanwhile
    """
    try:
        tx.execute(sa.insert(tsigkeys), {
            'id': key.id, 'name': key.name, 'algorithm': key.algorithm, 'scope': key.scope.value,
            'secret': secrets.of(tx).seal(secret), 'resource_id': key.resource_id, 'version': 1, 'created_at': now,
            'updated_at': now})
    except exc.IntegrityError:
        raise LostRace(what=f'TSIG key {key.name}') from None  # the database's error shows the secret
    count_change(tx)


def save(tx: Tx, key: StoredTsigKey, secret: str | None, now: datetime) -> None:
    """Write a locked key.

    :param secret: None leaves it unchanged
    :raises LostRace: when another transaction has taken the name meanwhile
    """
    values = {'name': key.name, 'algorithm': key.algorithm, 'scope': key.scope.value, 'resource_id': key.resource_id,
              **({} if secret is None else {'secret': secrets.of(tx).seal(secret)})}
    try:
        tx.execute(sa.update(tsigkeys).where(tsigkeys.c.id == key.id)
                   .values(updated_at=now, version=tsigkeys.c.version + 1, **values))
    except exc.IntegrityError:
        raise LostRace(what=f'TSIG key {key.name}') from None  # the database's error shows the secret
    count_change(tx)


def delete(tx: Tx, key_id: str) -> bool:
    """Delete a key; whether it existed."""
    is_deleted = tx.execute(sa.delete(tsigkeys).where(tsigkeys.c.id == key_id)).rowcount > 0
    count_change(tx)
    return is_deleted


def delete_of_pool(tx: Tx, pool_id: str) -> None:
    """Delete the keys of a pool."""
    tx.execute(sa.delete(tsigkeys).where(tsigkeys.c.resource_id == pool_id))
    count_change(tx)


_CRITERIA: dict[str, Any] = {
    'name': lambda value: pages.like(tsigkeys.c.name, value),
    'algorithm': lambda value: tsigkeys.c.algorithm == value.lower(),
    # An unknown scope is that of no key.
    'scope': lambda value: tsigkeys.c.scope == value if value in set(KeyScope) else sa.false(),
    'resource_id': lambda value: tsigkeys.c.resource_id == value,
}


def _key(row: Any) -> StoredTsigKey:
    return StoredTsigKey(**{**row._mapping, 'scope': KeyScope(row.scope)})
