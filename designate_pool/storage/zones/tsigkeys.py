"""TSIG keys that may transfer zones.  Only :func:`grants`, for MiniDNS, returns their secrets."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import sqlalchemy as sa

from designate_pool.errors import UnreadableSecret
from designate_pool.model import KeyScope, StoredTsigKey, TsigKey
from designate_pool.storage.sql import secrets
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import ALIVE, change_counts, domains, pools, tsigkeys
from designate_pool.storage.zones.zone_names import EntryTable

LOG = logging.getLogger(__name__)
#: Keys that MiniDNS reads at most: the oldest.
MOST = 10000
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
    """All keys, with their secrets; those that cannot be read are logged, and left out."""
    kept, readable = secrets.of(tx), []
    for key_id, name, algorithm, secret, *granted in tx.execute(_GRANTS):
        try:
            readable.append(Grant(TsigKey(name, algorithm, kept.reveal(secret, key_id, name)), *granted))
        except UnreadableSecret as error:
            LOG.error('%s', error)
    return readable


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
        super().write(tx, entry, {
            name: secrets.sealed(tsigkeys.c[name], secrets.of(tx), secret, entry.id)
            for name, secret in hidden.items()})
        count_change(tx)


TSIGKEYS = _TsigKeyTable(StoredTsigKey, tsigkeys, 'name', {
    'algorithm': lambda value: tsigkeys.c.algorithm == value.lower(),
    'scope': tsigkeys.c.scope,
    'resource_id': tsigkeys.c.resource_id,
}, ('algorithm', 'scope'))
