"""TSIG keys that may transfer zones.  Only :func:`grants`, for MiniDNS, returns their secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import sqlalchemy as sa

from designate_pool.errors import InvalidField
from designate_pool.model import KeyScope, StoredTsigKey, TsigKey
from designate_pool.storage.sql import secrets
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import ALIVE, change_counts, domains, pools, tsigkeys
from designate_pool.storage.zones.zone_names import EntryTable

#: Keys that MiniDNS reads at most: the oldest.
MOST = 10000
#: Characters of a secret as it is stored.
LONGEST = 1024

_COUNTED = change_counts.c.what == 'tsigkeys'
#: The number of changes of keys, and of what they are for; NULL before the first one.
CHANGES = sa.select(change_counts.c.changes).where(_COUNTED)
_GRANTS = (
    sa.select(tsigkeys.c.id, tsigkeys.c.name, tsigkeys.c.algorithm, tsigkeys.c.secret, pools.c.name, domains.c.id)
    .select_from(tsigkeys
                 .outerjoin(pools, sa.and_(tsigkeys.c.scope == KeyScope.POOL,
                                           pools.c.id == tsigkeys.c.resource_id))
                 .outerjoin(domains, sa.and_(tsigkeys.c.scope == KeyScope.ZONE,
                                             domains.c.id == tsigkeys.c.resource_id, domains.c.deleted == ALIVE)))
    .order_by(tsigkeys.c.created_at, tsigkeys.c.id).limit(MOST))


class Grant(NamedTuple):
    """What a key may transfer: all zones of a pool, or one (*pool_name* is None); nothing if that has been deleted."""

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
    return [Grant(TsigKey(name, algorithm, kept.reveal(secret, key_id, name)), *granted)
            for key_id, name, algorithm, secret, *granted in tx.execute(_GRANTS)]


def sealed(tx: Tx, secret: str, key_id: str) -> str:
    """The secret of a key as it is stored.

    :raises InvalidField: when it has no room there
    """
    text = secrets.of(tx).seal(secret, key_id)
    if len(text) > LONGEST:
        raise InvalidField(field='secret', why='it is too long to be kept encrypted')
    return text


def rotate(tx: Tx, after_id: str, limit: int) -> list[str]:
    """Store the secrets of some keys again, by the present cipher; the ids of these keys, in order after *after_id*.

    :raises designate_pool.errors.UnreadableSecret: when one cannot be read
    """
    kept = secrets.of(tx)
    rows = tx.execute(sa.select(tsigkeys.c.id, tsigkeys.c.name, tsigkeys.c.secret).where(tsigkeys.c.id > after_id)
                      .order_by(tsigkeys.c.id).limit(limit).with_for_update()).all()
    for row in rows:
        tx.execute(sa.update(tsigkeys).where(tsigkeys.c.id == row.id)
                   .values(secret=sealed(tx, kept.reveal(row.secret, row.id, row.name), row.id)))
    return [row.id for row in rows]


def ids_of_names(tx: Tx, lower_names: Iterable[str]) -> set[str]:
    """The ids of the keys with one of these names, given in lower case."""
    return set(tx.execute(sa.select(tsigkeys.c.id).where(sa.func.lower(tsigkeys.c.name).in_(list(lower_names))))
               .scalars())


def delete_of_pool(tx: Tx, pool_id: str) -> None:
    """Delete the keys of a pool."""
    tx.execute(sa.delete(tsigkeys).where(tsigkeys.c.resource_id == pool_id))
    count_change(tx)


class _TsigKeyTable(EntryTable[StoredTsigKey]):
    """The table of the keys, which counts their changes; a key's secret is hidden."""

    def delete(self, tx: Tx, entity_id: str) -> bool:
        count_change(tx)
        return super().delete(tx, entity_id)

    def write(self, tx: Tx, entry: StoredTsigKey, hidden: Mapping[str, str] = {}) -> None:
        super().write(tx, entry, {name: sealed(tx, secret, entry.id) for name, secret in hidden.items()})
        count_change(tx)


TSIGKEYS = _TsigKeyTable(StoredTsigKey, tsigkeys, 'name', {
    'algorithm': lambda value: tsigkeys.c.algorithm == value.lower(),
    'scope': tsigkeys.c.scope,
    'resource_id': tsigkeys.c.resource_id,
}, ('algorithm', 'scope'))
