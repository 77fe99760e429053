"""Which RRsets on a server that is fed by records are ours: those that the pool created there.

A key is ``name TAB type``, as in :mod:`designate_pool.protocol.rrset`.
"""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterable

import sqlalchemy as sa

from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import chunks, lost_race
from designate_pool.storage.sql.schema import domains, owned_rrsets, pool_servers

TABLE = owned_rrsets
#: Rows of one INSERT.
_ROWS = 5000
_OLD, _NEWER = TABLE.alias('old'), TABLE.alias('newer')
_SUCCESSOR_HAS_IT = sa.exists().where(
    _NEWER.c.server_id == _OLD.c.server_id, _NEWER.c.domain_id == sa.bindparam('successor'),
    _NEWER.c.name == _OLD.c.name, _NEWER.c.type == _OLD.c.type)
_FORMER, _NEW = domains.alias('former_domain'), domains.alias('new_domain')
_FORMER_OWNER = (
    sa.select(_FORMER.c.id).join_from(_FORMER, _NEW, sa.and_(
        _FORMER.c.name == _NEW.c.name, _FORMER.c.pool_id == _NEW.c.pool_id, _FORMER.c.id != _NEW.c.id))
    .where(_NEW.c.id == sa.bindparam('successor'), sa.exists().where(TABLE.c.domain_id == _FORMER.c.id))
    .order_by(_FORMER.c.generation.desc(), _FORMER.c.created_at.desc()).limit(1))
_COMMON = sa.select(_OLD.c.server_id, _OLD.c.name, _OLD.c.type).where(_OLD.c.domain_id == sa.bindparam('former'),
                                                                      _SUCCESSOR_HAS_IT)
_REASSIGN = TABLE.update().values(domain_id=sa.bindparam('successor')).where(
    TABLE.c.domain_id == sa.bindparam('former'))


def keys(tx: Tx, server_id: str, domain_id: str) -> frozenset[str]:
    """The keys of a domain's RRsets on a server that are ours."""
    return frozenset(f'{name}\t{rtype}' for name, rtype in
                     tx.execute(sa.select(TABLE.c.name, TABLE.c.type).where(_of(server_id, domain_id))))


def note(tx: Tx, server_id: str, domain_id: str, created: Collection[str], deleted: Collection[str]) -> None:
    """Record that the *created* RRsets are ours and the *deleted* ones are not; either may be recorded already.

    :raises LostRace: when another program records the same concurrently
    """
    _remove(tx, server_id, domain_id, deleted)
    for part in chunks(sorted(set(created) - _known(tx, server_id, domain_id, created)), _ROWS):
        rows = [{'server_id': server_id, 'domain_id': domain_id, 'name': name, 'type': rtype}
                for name, _, rtype in (key.partition('\t') for key in part)]
        with lost_race('owned RRsets'):
            tx.execute(TABLE.insert(), rows)


def reassign_of_name(tx: Tx, domain_id: str) -> int:
    """Reassign to a domain that a pool's servers are given, new or moved, the RRsets of the newest former domain of its
    name there that has any; how many.

    Otherwise they would belong to nobody: they would be served for ever and be in the way of the new domain's RRsets.

    :raises LostRace: when a pool manager records some of these for that domain concurrently
    """
    former = tx.execute(_FORMER_OWNER, {'successor': domain_id}).scalar()
    if former is None:
        return 0
    # A call that was overtaken by a move may have recorded some for the domain that it did not create.
    common = collections.defaultdict[str, list[str]](list)
    for server_id, name, rtype in tx.execute(_COMMON, {'former': former, 'successor': domain_id}):
        common[server_id].append(f'{name}\t{rtype}')
    for server_id, keys in common.items():
        _remove(tx, server_id, former, keys)
    with lost_race('owned RRsets'):
        return tx.execute(_REASSIGN, {'former': former, 'successor': domain_id}).rowcount


def hand_over(tx: Tx, domain_id: str, to_id: str, pool_id: str) -> int:
    """Give the RRsets of a domain on a pool's servers to another domain; how many there were."""
    ours = TABLE.c.server_id.in_(sa.select(pool_servers.c.id).where(pool_servers.c.pool_id == pool_id))
    return tx.execute(TABLE.update().where(TABLE.c.domain_id == domain_id, ours).values(domain_id=to_id)).rowcount


def purge_domains(tx: Tx, domain_ids: Iterable[str], limit: int) -> int:
    """Delete at most *limit* rows of these domains, for any server; how many there were."""
    rows = tx.execute(sa.select(TABLE.c.server_id, TABLE.c.domain_id, TABLE.c.name, TABLE.c.type)
                      .where(TABLE.c.domain_id.in_(list(domain_ids))).limit(limit)).all()
    keys_of: dict[tuple[str, str], list[str]] = {}
    for server_id, domain_id, name, rtype in rows:
        keys_of.setdefault((server_id, domain_id), []).append(f'{name}\t{rtype}')
    for (server_id, domain_id), keys in keys_of.items():
        _remove(tx, server_id, domain_id, keys)
    return len(rows)


def _of(server_id: str, domain_id: str) -> sa.ColumnElement[bool]:
    return sa.and_(TABLE.c.server_id == server_id, TABLE.c.domain_id == domain_id)


def _known(tx: Tx, server_id: str, domain_id: str, wanted: Iterable[str]) -> set[str]:
    """The keys of our RRsets at the names of *wanted*."""
    return {f'{name}\t{rtype}' for names in chunks({key.partition('\t')[0]: None for key in wanted})
            for name, rtype in tx.execute(sa.select(TABLE.c.name, TABLE.c.type).where(
                _of(server_id, domain_id), TABLE.c.name.in_(names)))}


def _remove(tx: Tx, server_id: str, domain_id: str, keys: Iterable[str]) -> None:
    by_type: dict[str, list[str]] = {}
    for key in keys:
        name, _, rtype = key.partition('\t')
        by_type.setdefault(rtype, []).append(name)
    for rtype, names in sorted(by_type.items()):
        for part in chunks(sorted(names)):
            tx.execute(TABLE.delete().where(_of(server_id, domain_id), TABLE.c.type == rtype, TABLE.c.name.in_(part)))
