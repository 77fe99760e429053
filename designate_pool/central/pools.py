"""The rules for pools, each function one transaction's work."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from designate_pool.central import validation
from designate_pool.errors import Conflict, DuplicatePool, InvalidField, PoolNotEmpty, PoolNotFound
from designate_pool.model import AlsoNotify, Pool
from designate_pool.storage import pools, servers, tsigkeys
from designate_pool.storage.sessions import Tx

#: Domains that get new name servers in one transaction.
PAGE = 500


def create(tx: Tx, pool: Pool, now: datetime) -> Pool:
    there = pools.share(tx, name=pool.name)
    if there is not None and there.id != pool.id:
        raise DuplicatePool(pool=pool.name)
    _check_keys(tx, pool)
    if there is None:  # else the commit came through, the answer to it did not
        pools.insert(tx, pool, now)
    return _present(tx, pool.id)


def update(tx: Tx, pool_id: str, given: Mapping[str, Any], now: datetime) -> tuple[Pool, bool]:
    """The pool, and whether its first name server is another one now."""
    old = pools.lock(tx, pool_id)
    if old is None:
        raise PoolNotFound(pool=pool_id)
    new = validation.pool(given, old)
    if new == old:
        return old, False
    if new.name != old.name and pools.share(tx, name=new.name) is not None:
        raise DuplicatePool(pool=new.name)
    if old.name_servers and not new.name_servers and pools.count_domains(tx, pool_id):
        raise InvalidField(field='name_servers', why='the pool has domains, whose SOA and NS are made from these')
    if new.also_notifies != old.also_notifies:
        _check_keys(tx, new)
    pools.save(tx, new, now)
    return _present(tx, pool_id), new.name_servers[:1] != old.name_servers[:1]


def delete(tx: Tx, pool_id: str) -> None:
    pool = pools.lock(tx, pool_id)
    if pool is None:
        raise PoolNotFound(pool=pool_id)
    count = pools.count_domains(tx, pool_id)
    if count:
        raise PoolNotEmpty(pool=pool.name, count=count)
    if not pools.delete(tx, pool_id):
        raise Conflict(why='the last pool keeps the serials of the domains that were deleted')


def _check_keys(tx: Tx, pool: Pool) -> None:
    """
    :raises InvalidField: when a NOTIFY is to be signed with a key that is neither a server's nor was given out
    """
    for index, each in enumerate(pool.also_notifies):
        key = AlsoNotify.parse(each).key
        if key is None:
            continue
        plain = key.lower().rstrip('.')
        if (plain not in {name.lower().rstrip('.') for name in servers.key_names(tx)}
                and not tsigkeys.ids_of_names(tx, (plain, f'{plain}.'))):
            raise InvalidField(field=f'also_notifies[{index}]', why=f'there is no TSIG key {key}')


def _present(tx: Tx, pool_id: str) -> Pool:
    found = pools.get(tx, pool_id)
    assert found is not None
    return found
