"""The pools' catalog zones (RFC 9432): which domains are members, and at which serial.

A domain is a member from its creation, or its move to the pool, until its deletion there begins.  The transaction of
either raises the catalog's serial, so that each serial has exactly one set of members for the servers of a stage.
While a pool is frozen neither changes the members, nor the serial, which the end of the freeze raises, unless it began
before.  In a staged release they change for the servers of each stage when it comes.  It also increments the number of
changes and stores it in the domain, so that the members added and removed since an earlier state are found without a
clock.

The serial is in a row of its own, which is locked from :func:`bump` to the end of the transaction: call it last.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from typing import Any, TypeVar

import sqlalchemy as sa

from designate_pool import serial as serials
from designate_pool.model import LAST_STAGE, NOTHING, Action, Release
from designate_pool.storage.sql.database import Tx, see_one_state
from designate_pool.storage.sql.entities import chunks
from designate_pool.storage.sql.schema import ALIVE, catalogs, domains, pool_servers, pools
from designate_pool.storage.zones import pools as pools_

T = TypeVar('T')

#: Of a pool that has no catalog yet.
FIRST_SERIAL = 1
_PAGE = 5000

#: (domain id, generation, name)
Member = tuple[str, int, str]

_HEAD = sa.select(pools.c.id, catalogs.c.serial, catalogs.c.changes, pool_servers.c.catalog_epoch,
                  pool_servers.c.catalog_from).select_from(
    pools.outerjoin(catalogs, catalogs.c.pool_id == pools.c.id)
    .outerjoin(pool_servers, sa.and_(pool_servers.c.pool_id == pools.c.id,
                                     pool_servers.c.id.in_(sa.bindparam('server_ids', expanding=True))))).where(
        pools.c.name == sa.bindparam('pool_name'))
_IS_MEMBER = (domains.c.deleted == ALIVE) & (domains.c.action != Action.DELETE)
# Those that are released in stages are looked at one by one, see CatalogReading.
_IS_SEEN = sa.case((domains.c.release_state.is_not(None), sa.true()),
                   (pools_.IS_HELD, domains.c.version_before != NOTHING), else_=_IS_MEMBER)


def _members(pool: sa.Column[Any]) -> sa.Select[Any]:
    return sa.select((sa.select(domains.c.id, domains.c.generation, domains.c.name,
                                sa.case((pools_.IS_HELD, domains.c.version_before)).label('version_before'),
                                domains.c.release_state, _IS_MEMBER.label('is_member'))
                      .where(pool == sa.bindparam('pool_id'), domains.c.id >= sa.bindparam('first'),
                             domains.c.id < sa.bindparam('end'), _IS_SEEN)
                      .order_by(domains.c.id).limit(sa.bindparam('most'))).subquery())


# Two indexes, so two queries.  Domains that were moved to another pool stay until they are deleted from the servers.
_BOTH = sa.union_all(_members(domains.c.pool_id), _members(domains.c.former_pool_id)).subquery()
_MEMBERS = sa.select(_BOTH).order_by(_BOTH.c.id).limit(sa.bindparam('most'))
# The number of a domain that was moved is one of its new pool's changes.
_CHANGED = sa.union_all(
    sa.select(sa.func.coalesce(domains.c.moved_id, domains.c.id).label('id'))
    .where(domains.c.pool_id == sa.bindparam('pool_id'), domains.c.catalog_change > sa.bindparam('since')),
    sa.select(domains.c.id).where(domains.c.former_pool_id == sa.bindparam('pool_id'))).limit(sa.bindparam('most'))
#: After every id.
END = '~'
_CLOCK = sa.bindparam('clock', type_=sa.BigInteger)
# The clock if that is newer than the serial, else one more, as designate_pool.serial.next_serial does it.
_AHEAD = (_CLOCK - catalogs.c.serial + serials.SPACE) % serials.SPACE
_WAITS = sa.bindparam('may_wait', type_=sa.Boolean) & sa.exists().where(
    pools.c.id == catalogs.c.pool_id, pools.c.freeze_id.is_not(None), ~sa.exists().where(
        domains.c.id.in_(sa.bindparam('some', expanding=True)),
        sa.func.coalesce(domains.c.held_by, '') != pools.c.freeze_id).correlate(pools))
_BUMP = catalogs.update().where(catalogs.c.pool_id == sa.bindparam('pool')).values(
    changes=catalogs.c.changes + 1, updated_at=sa.bindparam('now'), serial=sa.case(
        (_WAITS, catalogs.c.serial), (sa.and_(_AHEAD > 0, _AHEAD < serials.HALF), _CLOCK),
        else_=(catalogs.c.serial + 1) % serials.SPACE))
_MARK = domains.update().where(domains.c.id.in_(sa.bindparam('ids', expanding=True))).values(
    catalog_change=sa.select(catalogs.c.changes).where(catalogs.c.pool_id == sa.bindparam('pool')).scalar_subquery())


@dataclasses.dataclass(frozen=True, slots=True)
class CatalogHead:
    """A catalog as given servers see it.

    :ivar epoch: the largest catalog epoch of these servers
    :ivar changes: the number of changes; None for a pool without a catalog
    :ivar since: for each of these servers, the first serial that it sees in its present epoch
    """

    pool_id: str
    serial: int
    epoch: int
    changes: int | None = None
    since: tuple[int, ...] = ()

    def was_seen(self, serial: int) -> bool:
        """Whether these servers would have seen the catalog of that serial in their present epoch."""
        return all(serials.at_least(serial, earlier) for earlier in self.since)


def establish(tx: Tx, pool_id: str, now: datetime) -> int:
    """Raise the serial of the catalog of a locked pool, creating the catalog if necessary; the new serial.

    No domain can be created or deleted in a locked pool, so no change of the members is missed.
    """
    serial = bump(tx, pool_id, now)
    if serial is None:
        serial = int(now.timestamp()) % serials.SPACE
        tx.execute(catalogs.insert(), {'pool_id': pool_id, 'created_at': now, 'updated_at': now, 'serial': serial,
                                       'changes': 0})
    return serial


def bump(tx: Tx, pool_id: str, now: datetime, came_or_went: Collection[str] = (),
         may_wait: bool = True) -> int | None:
    """Raise the catalog's serial, which stays locked until this transaction ends.

    :param came_or_went: ids of the domains that this transaction creates or begins to delete
    :param may_wait: whether servers do not see that before a freeze of the pool ends
    :returns: the new serial; None for a pool without a catalog, where nothing is locked
    """
    if not tx.execute(_BUMP, {'pool': pool_id, 'clock': int(now.timestamp()) % serials.SPACE, 'now': now,
                              'may_wait': may_wait and bool(came_or_went),
                              'some': list(came_or_went) if may_wait else []}).rowcount:
        return None
    for part in chunks(came_or_went):
        tx.execute(_MARK, {'pool': pool_id, 'ids': part})
    return int(tx.execute(sa.select(catalogs.c.serial).where(catalogs.c.pool_id == pool_id)).scalar_one())


def head(tx: Tx, pool_name: str, server_ids: Collection[str] = ()) -> CatalogHead | None:
    """The serial of the pool's catalog, and the epoch of these servers, in one statement; None without such a pool."""
    rows = tx.execute(_HEAD, {'pool_name': pool_name, 'server_ids': list(server_ids)}).all()
    if not rows:
        return None
    pool_id, serial, changes = rows[0][:3]
    return CatalogHead(pool_id, FIRST_SERIAL if serial is None else serial, max(row[3] or 0 for row in rows), changes,
                       tuple(row[4] for row in rows if row[4] is not None))


def snapshot(tx: Tx, pool_name: str, server_ids: Collection[str], take: Callable[[CatalogReading], T]) -> T | None:
    """The result of *take* for the catalog at one state of the database; None without such a pool.

    It must be the first call of its transaction (see :func:`designate_pool.storage.sql.database.see_one_state`).
    """
    see_one_state(tx)
    catalog = head(tx, pool_name, server_ids)
    return None if catalog is None else take(CatalogReading(tx, catalog))


class CatalogReading:
    """The catalog of *head*, at one state of the database."""

    def __init__(self, tx: Tx, head: CatalogHead) -> None:
        self._tx = tx
        self.head = head

    def members(self, first: str = '', end: str = END, stage: int = LAST_STAGE) -> Iterator[Member]:
        """The members from the id *first* to before *end*, in the order of their ids, read in pages to bound memory.

        :param stage: of the servers that see them
        """
        while True:
            page = self._tx.execute(_MEMBERS, {'pool_id': self.head.pool_id, 'first': first, 'end': end,
                                               'most': _PAGE}).all()
            for domain_id, generation, name, version, release_state, is_member in page:
                release = None if release_state is None else Release(**json.loads(release_state))
                if release is not None and stage <= release.stage:
                    version = release.version
                if version is not None and version != NOTHING:
                    yield domain_id, json.loads(version)['generation'], name
                elif version is None and is_member:
                    yield domain_id, generation, name
            if len(page) < _PAGE:
                return
            first = page[-1][0] + '!'  # the next id: all ids have the same length

    def changed(self, since: int, most: int) -> frozenset[str]:
        """Ids of domains added or removed since the change number *since*; at most *most*."""
        return frozenset(self._tx.execute(_CHANGED, {'pool_id': self.head.pool_id, 'since': since,
                                                     'most': most}).scalars())
