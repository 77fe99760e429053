"""The pools' catalog zones (RFC 9432): which domains are members, and at which serial.

A domain is a member from when it is made until its deletion begins.  The serial is raised by whoever changes that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from typing import TypeVar

import sqlalchemy as sa

from designate_pool import serial as serials
from designate_pool.errors import PoolNotFound
from designate_pool.model import Action
from designate_pool.storage.schema import ALIVE, domains, pool_servers, pools
from designate_pool.storage.sessions import Tx
from designate_pool.storage.zones import one_state

T = TypeVar('T')

#: Of a catalog that was never changed.
FIRST_SERIAL = 1
_PAGE = 5000

#: (domain id, generation, name)
Member = tuple[str, int, str]

_SERIAL = sa.func.coalesce(pools.c.catalog_serial, FIRST_SERIAL)
_HEAD = sa.select(pools.c.id, _SERIAL, sa.select(sa.func.coalesce(sa.func.max(pool_servers.c.catalog_epoch), 0)).where(
    pool_servers.c.id.in_(sa.bindparam('server_ids', expanding=True))).scalar_subquery()).where(
        pools.c.name == sa.bindparam('pool_name'))
_IS_MEMBER = (domains.c.deleted == ALIVE) & (domains.c.action != Action.DELETE)
_MEMBERS = (sa.select(domains.c.id, domains.c.generation, domains.c.name)
            .where(domains.c.pool_id == sa.bindparam('pool_id'), domains.c.id >= sa.bindparam('first'),
                   domains.c.id < sa.bindparam('end'), _IS_MEMBER)
            .order_by(domains.c.id).limit(sa.bindparam('most')))
_NEWEST = (sa.select(domains.c.changed_at)
           .where(domains.c.pool_id == sa.bindparam('pool_id'), domains.c.changed_at.is_not(None))
           .order_by(domains.c.changed_at.desc()).limit(1))
# Any change moves changed_at, so those that came or went are among the ones it leads to.
_CHANGED = (sa.select(domains.c.id, sa.case((_IS_MEMBER, 1), else_=0))
            .where(domains.c.pool_id == sa.bindparam('pool_id'), domains.c.changed_at >= sa.bindparam('since'),
                   (domains.c.created_at >= sa.bindparam('since')) | ~_IS_MEMBER)
            .limit(sa.bindparam('most')))
#: After every id.
END = '~'
# The clock if that is newer than the serial, else one more, as designate_pool.serial.next_serial does it.
_AHEAD = (sa.bindparam('clock', type_=sa.BigInteger) - _SERIAL + serials.SPACE) % serials.SPACE
_BUMP = pools.update().where(pools.c.name == sa.bindparam('pool_name')).values(catalog_serial=sa.case(
    (sa.and_(_AHEAD > 0, _AHEAD < serials.HALF), sa.bindparam('clock', type_=sa.BigInteger)),
    else_=(_SERIAL + 1) % serials.SPACE))


@dataclasses.dataclass(frozen=True, slots=True)
class CatalogHead:
    """A catalog as some servers are to see it.

    :ivar epoch: the largest catalog epoch of these servers
    """

    pool_id: str
    serial: int
    epoch: int


def bump(tx: Tx, pool_name: str, now: datetime) -> int:
    """Raise the catalog's serial, and have all others who would wait until this transaction ends; the new serial.

    :raises PoolNotFound: when there is no such pool
    """
    tx.execute(_BUMP, {'pool_name': pool_name, 'clock': int(now.timestamp()) % serials.SPACE})
    raised = tx.execute(sa.select(pools.c.catalog_serial).where(pools.c.name == pool_name)).scalar()
    if raised is None:
        raise PoolNotFound(pool=pool_name)
    return int(raised)


def head(tx: Tx, pool_name: str, server_ids: Collection[str] = ()) -> CatalogHead | None:
    """The serial of the pool's catalog, and the epoch of these servers, in one statement; None without such a pool."""
    found = tx.execute(_HEAD, {'pool_name': pool_name, 'server_ids': list(server_ids)}).first()
    return None if found is None else CatalogHead(found[0], int(found[1]), int(found[2]))


def snapshot(tx: Tx, pool_name: str, server_ids: Collection[str], take: Callable[[Reading], T]) -> T | None:
    """What *take* makes of the catalog, all at one state of the database; None without such a pool.

    It must be the first that its transaction does (see :func:`designate_pool.storage.zones.one_state`).
    """
    one_state(tx)
    found = head(tx, pool_name, server_ids)
    return None if found is None else take(Reading(tx, found))


class Reading:
    """The catalog of *head*, at one state of the database."""

    def __init__(self, tx: Tx, head: CatalogHead) -> None:
        self._tx = tx
        self.head = head

    def members(self, first: str = '', end: str = END) -> Iterator[Member]:
        """The members from the id *first* to the one before *end*, in the order of their ids.

        They are read in pages, so that a large catalog is never in memory as rows.
        """
        while True:
            page = self._tx.execute(_MEMBERS, {'pool_id': self.head.pool_id, 'first': first, 'end': end,
                                               'most': _PAGE}).all()
            for row in page:
                yield row[0], row[1], row[2]
            if len(page) < _PAGE:
                return
            first = page[-1][0] + '!'  # before every longer id, and no id is longer

    def newest_change(self) -> datetime | None:
        """When a domain of the pool changed last, by the clock of who changed it."""
        return self._tx.execute(_NEWEST, {'pool_id': self.head.pool_id}).scalar()

    def changed(self, since: datetime, most: int) -> frozenset[tuple[str, bool]]:
        """Ids of domains that came or went since then, and whether each is a member now; *most* of them at most."""
        found = self._tx.execute(_CHANGED, {'pool_id': self.head.pool_id, 'since': since, 'most': most})
        return frozenset((domain_id, bool(is_member)) for domain_id, is_member in found)
