"""Pools and their attributes as :class:`designate_pool.model.Pool`."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from designate_pool.errors import InvalidField, LostRace, PoolNotFound, UnknownPool
from designate_pool.model import Domain, Freeze, PageRequest, Pool, ServerState, Status, new_id
from designate_pool.storage.sql import pages
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import exists, lost_race
from designate_pool.storage.sql.schema import ALIVE, domains, pool_attributes, pool_manager_status, pool_servers, pools
from designate_pool.storage.zones import tsigkeys

#: The pool that a new database has.
FIRST = 'default'
#: The row's key, and the field of Pool that holds its values.
_LISTS = {'name_server': 'name_servers', 'also_notify': 'also_notifies'}
#: Before the name of an attribute of the pool, in the key of its row.
ATTRIBUTE = 'attribute.'
_COLUMNS = tuple(pools.c[name] for name in ('id', 'name', 'description', 'project_id', 'provisioner', 'version',
                                            'created_at', 'updated_at', 'threshold_percentage', 'catalog_zone',
                                            'count_joining_servers', 'published_at', 'freeze',
                                            'requires_approval', 'probe_interval', 'release_stages'))
_WITH_ATTRIBUTES = (
    sa.select(*_COLUMNS, pool_attributes.c.key, pool_attributes.c.value, pool_attributes.c.position)
    .select_from(pools.outerjoin(pool_attributes, pool_attributes.c.pool_id == pools.c.id))
    .order_by(pool_attributes.c.position, pool_attributes.c.value))
_BY_ID = _WITH_ATTRIBUTES.where(pools.c.id == sa.bindparam('id'))
_HOLD = sa.select(pools.c.id, pools.c.freeze_id).where(pools.c.id == sa.bindparam('id')).with_for_update(read=True)
_HOLD_BY_NAME = sa.select(pools.c.id).where(pools.c.name == sa.bindparam('name')).with_for_update(read=True)
_SHARED = _BY_ID.with_for_update(read=True, of=pools)
_SHARED_BY_NAME = _WITH_ATTRIBUTES.where(pools.c.name == sa.bindparam('name')).with_for_update(read=True, of=pools)
_ALSO_NOTIFIES = (sa.select(pool_attributes.c.value).join_from(pool_attributes, pools)
                  .where(pools.c.name == sa.bindparam('name'), pool_attributes.c.key == 'also_notify')
                  .order_by(pool_attributes.c.position, pool_attributes.c.id))
_HAS_SERVERS = sa.exists().where(pool_servers.c.pool_id == pools.c.id, pool_servers.c.state.in_(
    (ServerState.JOINING, ServerState.ACTIVE))).label('has_servers')
_FROZEN = pools.alias('frozen_pools')
#: Of a domain's row: whether some servers may not have its newest version, since it is released in stages or a pool is
#: frozen.
IS_HELD = domains.c.release_state.is_not(None) | domains.c.held_by.is_not(None) & domains.c.held_by.in_(
    sa.select(_FROZEN.c.freeze_id).where(_FROZEN.c.freeze_id.is_not(None)))
#: Key, value and position.
_Row = tuple[str | None, str, int]
_SORT_KEYS = {name: pools.c[name] for name in ('name', 'id', 'created_at', 'updated_at')}
_CRITERIA: dict[str, Any] = {
    'name': functools.partial(pages.like, pools.c.name), 'id': pools.c.id,
    'description': functools.partial(pages.like, pools.c.description), 'project_id': pools.c.project_id}


def get(tx: Tx, pool_id: str) -> Pool | None:
    """A pool by its id; None when there is none."""
    return _one(tx, _BY_ID, id=pool_id)


def id_of(name: str) -> sa.ScalarSelect[str]:
    """The statement that finds the id of a pool by its name."""
    return sa.select(pools.c.id).where(pools.c.name == name).scalar_subquery()


def lock(tx: Tx, pool_id: str) -> Pool:
    """The pool, locked: until this transaction ends nobody can change it or create domains in it.

    :raises PoolNotFound: when there is none
    """
    tx.execute(sa.select(pools.c.id).where(pools.c.id == pool_id).with_for_update())
    pool = get(tx, pool_id)
    if pool is None:
        raise PoolNotFound(pool=pool_id)
    return pool


def share(tx: Tx, pool_id: str | None = None, name: str | None = None) -> Pool | None:
    """The pool by id or name, with a shared lock: nobody can change it until this transaction ends."""
    by_name, values = pool_id is None, {'id': pool_id, 'name': name}
    if tx.dialect.name == 'sqlite' or getattr(tx.dialect, 'is_mariadb', False):
        return _one(tx, _SHARED_BY_NAME if by_name else _SHARED, **values)
    # A statement that waited for a lock sees the locked row as it is then, and what is joined as it was before.
    pool_id_ = tx.execute(_HOLD_BY_NAME if by_name else _HOLD, values).scalar()
    return None if pool_id_ is None else get(tx, pool_id_)


def hold(tx: Tx, pool_id: str, *locked: Domain) -> None:
    """Lock the pool against changes until this transaction ends.

    :param locked: domains of it
    :raises LostRace: when a freeze of it has ended since these were read
    """
    row = tx.execute(_HOLD, {'id': pool_id}).first()
    for domain in locked:
        freeze = Freeze.parse(domain.freeze)
        if row is not None and freeze is not None and row.freeze_id != freeze.id:
            raise LostRace(what=f'freeze of the pool of {domain.name}')


def find(tx: Tx, page: PageRequest) -> list[Pool]:
    """Pools that match; in names and descriptions ``*`` matches any text."""
    statement = sa.select(*_COLUMNS).where(*pages.conditions(page.criterion, _CRITERIA))
    rows = pages.one_page(tx, statement, pools.c.id, _SORT_KEYS, page)
    attributes = _attributes(tx, [row.id for row in rows])
    return [_pool(row, attributes.get(row.id, ())) for row in rows]


def every(tx: Tx) -> list[tuple[Pool, bool]]:
    """All pools by name, each with whether it has servers."""
    rows = tx.execute(sa.select(*_COLUMNS, _HAS_SERVERS).order_by(pools.c.name)).all()
    attributes = _attributes(tx, [row.id for row in rows])
    return [(_pool(row, attributes.get(row.id, ())), row.has_servers) for row in rows]


def has_servers(tx: Tx, pool_id: str) -> bool:
    """Whether the pool has servers that are called and polled."""
    return bool(tx.execute(sa.select(_HAS_SERVERS).where(pools.c.id == pool_id)).scalar())


def name_servers(tx: Tx, pool_id: str) -> tuple[str, ...]:
    """The pool's name servers, the SOA's primary first."""
    return tuple(value for key, value, _ in _attributes(tx, [pool_id]).get(pool_id, ()) if key == 'name_server')


def check_known(tx: Tx, name: str, option: str = 'pool_name', may_be_unused: bool = True) -> None:
    """Check that a pool exists.

    :param option: the option that names the pool, for the error
    :param may_be_unused: accept any name in a database that has been used for no pool yet
    :raises UnknownPool: when there is no such pool
    """
    pool_names = sorted(tx.execute(sa.select(pools.c.name)).scalars())
    if name in pool_names:
        return
    is_unused = may_be_unused and pool_names in ([], [FIRST])
    if not is_unused or any(exists(tx, table) for table in (pool_servers, domains)):
        raise UnknownPool(option=option, pool=name, known=f'there are: {", ".join(pool_names)}' if pool_names else
                          'there is none at all')


def also_notifies(tx: Tx, name: str) -> tuple[str, ...]:
    """Further destinations of NOTIFY for changes of the pool's zones."""
    return tuple(tx.execute(_ALSO_NOTIFIES, {'name': name}).scalars())


def insert(tx: Tx, pool: Pool, now: datetime) -> None:
    """Store a new pool.

    :raises LostRace: when another transaction has taken the name meanwhile
    """
    with lost_race(f'pool {pool.name}'):
        tx.execute(sa.insert(pools), {'id': pool.id, 'created_at': now, 'updated_at': now, 'version': 1,
                                      'name': pool.name, 'description': pool.description,
                                      'project_id': pool.project_id, 'provisioner': pool.provisioner})
    _insert_attributes(tx, pool, now)


def save(tx: Tx, pool: Pool, now: datetime) -> None:
    """Write all columns and attributes of a locked pool.

    :raises LostRace: when another transaction has taken the name meanwhile
    """
    with lost_race(f'pool {pool.name}'):
        tx.execute(sa.update(pools).where(pools.c.id == pool.id)
                   .values(name=pool.name, description=pool.description, project_id=pool.project_id,
                           provisioner=pool.provisioner, updated_at=now, version=pools.c.version + 1))
    tx.execute(sa.delete(pool_attributes).where(
        pool_attributes.c.pool_id == pool.id,
        pool_attributes.c.key.in_(_LISTS) | pool_attributes.c.key.startswith(ATTRIBUTE)))
    _insert_attributes(tx, pool, now)
    tsigkeys.count_change(tx)  # MiniDNS knows the pool of a key by its name


def set_freeze(tx: Tx, pool_id: str, freeze: Freeze | None, now: datetime) -> None:
    """Begin, change or end the freeze of a locked pool."""
    tx.execute(sa.update(pools).where(pools.c.id == pool_id).values(
        freeze_id=freeze and freeze.id, freeze=freeze and freeze.text, updated_at=now, version=pools.c.version + 1))


def frozen(tx: Tx) -> dict[str, Freeze]:
    """The freezes that last, by the ids of their pools."""
    rows = tx.execute(sa.select(pools.c.id, pools.c.freeze).where(pools.c.freeze_id.is_not(None)))
    return {pool_id: freeze for pool_id, text in rows if (freeze := Freeze.parse(text))}


def publish(tx: Tx, pool: Pool, now: datetime) -> None:
    """Store the pool's settings from the configuration, for programs without it.

    :raises InvalidField: when the pool has a zone with the name of its catalog zone
    """
    if exists(tx, domains.join(pools, pools.c.id == domains.c.pool_id), pools.c.name == pool.name,
              domains.c.name == pool.catalog_zone, domains.c.deleted == ALIVE):
        raise InvalidField(field='[service:pool_manager] catalog_zone',
                           why=f'the pool {pool.name} has a zone {pool.catalog_zone}: choose another name')
    tx.execute(sa.update(pools).where(pools.c.name == pool.name).values(
        threshold_percentage=pool.threshold_percentage, catalog_zone=pool.catalog_zone,
        probe_interval=pool.probe_interval, release_stages=pool.release_stages,
        count_joining_servers=pool.count_joining_servers, requires_approval=pool.requires_approval, published_at=now))


def count_domains(tx: Tx, pool_id: str) -> int:
    """How many domains the pool has that are not deleted, or whose deletion some server has yet to confirm; with
    those that were moved from it and are still kept."""
    unconfirmed = sa.exists().where(pool_manager_status.c.domain_id == domains.c.id)
    return tx.execute(sa.select(sa.func.count()).select_from(domains)
                      .where(sa.or_(domains.c.former_pool_id == pool_id, sa.and_(
                          domains.c.pool_id == pool_id,
                          sa.or_(domains.c.status != Status.DELETED, unconfirmed))))).scalar_one()


def delete(tx: Tx, pool_id: str) -> bool:
    """Delete a locked pool; its tombstones, which keep the serials of names, are moved to another pool.

    They count as abandoned there: zones of these names on the servers of that pool are not what the deleted one left.
    They keep the id of the deleted pool as that of their former one, and are not restored.

    :returns: False when there are tombstones and no other pool
    """
    if exists(tx, domains, domains.c.pool_id == pool_id):
        other = tx.execute(sa.select(pools.c.id).where(pools.c.id != pool_id)
                           .order_by(pools.c.created_at, pools.c.id).limit(1)).scalar()
        if other is None:
            return False
        tx.execute(sa.update(domains).where(domains.c.pool_id == pool_id).values(
            pool_id=other, abandoned=True, former_pool_id=pool_id))
    tx.execute(sa.delete(pool_attributes).where(pool_attributes.c.pool_id == pool_id))
    tx.execute(sa.delete(pool_servers).where(pool_servers.c.pool_id == pool_id))
    tsigkeys.delete_of_pool(tx, pool_id)
    tx.execute(sa.delete(pools).where(pools.c.id == pool_id))
    return True


def _one(tx: Tx, statement: sa.Select[Any], **parameters: object) -> Pool | None:
    rows = tx.execute(statement, parameters).all()
    return _pool(rows[0], [(row.key, row.value, row.position) for row in rows]) if rows else None


def _pool(row: Any, attributes: Iterable[_Row]) -> Pool:
    """The pool of a row and its attributes, ordered by position."""
    values: dict[str, Any] = {column.name: getattr(row, column.name) for column in _COLUMNS}
    if values['threshold_percentage'] is None:  # it was never published
        del values['threshold_percentage']
    lists: dict[str, list[tuple[str, int]]] = {field: [] for field in _LISTS.values()}
    texts: dict[str, str] = {}
    for key, value, position in attributes:
        if key in _LISTS:
            lists[_LISTS[key]].append((value, position))
        elif key is not None and key.startswith(ATTRIBUTE):
            texts[key.removeprefix(ATTRIBUTE)] = value
    values |= {field: tuple(value for value, _ in rows) for field, rows in lists.items()}
    positions = [position for _, position in lists['name_servers']]
    has_priorities = positions != list(range(len(positions)))
    return Pool(**values, priorities=tuple(position + 1 for position in positions) if has_priorities else (),
                attributes=json.dumps(texts, ensure_ascii=False) if texts else '')


def _attributes(tx: Tx, ids: Iterable[str]) -> dict[str, list[_Row]]:
    rows_of: dict[str, list[_Row]] = {}
    for pool_id, *row in tx.execute(
            sa.select(pool_attributes.c.pool_id, pool_attributes.c.key, pool_attributes.c.value,
                      pool_attributes.c.position)
            .where(pool_attributes.c.pool_id.in_(list(ids)))
            .order_by(pool_attributes.c.position, pool_attributes.c.value)):
        rows_of.setdefault(pool_id, []).append((row[0], row[1], row[2]))
    return rows_of


def _insert_attributes(tx: Tx, pool: Pool, now: datetime) -> None:
    attributes = [('name_server', host, priority - 1) for host, priority in pool.ns_records]
    attributes += [('also_notify', value, position) for position, value in enumerate(pool.also_notifies)]
    attributes += [(ATTRIBUTE + name, value, position)
                   for position, (name, value) in enumerate(json.loads(pool.attributes or '{}').items())]
    rows = [{'id': new_id(), 'created_at': now, 'updated_at': now, 'version': 1, 'key': key, 'value': value,
             'position': position, 'pool_id': pool.id} for key, value, position in attributes]
    if rows:
        tx.execute(sa.insert(pool_attributes), rows)
