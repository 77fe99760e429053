"""Pools whose domains are being brought to the pool's present name servers, and how far that has come.

A pool has one renewal at most; a newer one takes its place and begins with the first domain.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime

import sqlalchemy as sa

from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import pool_renewals

TABLE = pool_renewals


@dataclasses.dataclass(frozen=True, slots=True)
class NameserverUpdate:
    """
    :ivar run: of several renewals of a pool which it is
    :ivar everywhere: whether every domain gets a new serial, or only those that lack a name server or have one too many
    :ivar after_id: of the last domain that is done
    """

    pool_id: str
    run: str
    everywhere: bool
    request_id: str
    after_id: str = ''


_FIELDS = tuple(field.name for field in dataclasses.fields(NameserverUpdate))
_SELECT = sa.select(*(TABLE.c[name] for name in _FIELDS))


def begin(tx: Tx, renewal: NameserverUpdate, now: datetime, until: datetime) -> None:
    """Have it carried out by the caller, or after *until* by anybody; the pool has to be locked."""
    former = tx.execute(_SELECT.where(TABLE.c.pool_id == renewal.pool_id)).first()
    values = {**dataclasses.asdict(renewal), 'claimed_until': until, 'updated_at': now}
    if former is None:
        tx.execute(TABLE.insert(), {**values, 'created_at': now})
    else:
        values['everywhere'] = renewal.everywhere or NameserverUpdate(*former).everywhere
        tx.execute(TABLE.update().where(TABLE.c.pool_id == renewal.pool_id).values(values))


def claim(tx: Tx, now: datetime, until: datetime) -> NameserverUpdate | None:
    """One that nobody carries out any more, which the caller then does until *until*."""
    row = tx.execute(_SELECT.where(TABLE.c.claimed_until < now).order_by(TABLE.c.pool_id).limit(1)
                     .with_for_update(skip_locked=True)).first()
    if row is None:
        return None
    found = NameserverUpdate(*row)
    tx.execute(TABLE.update().where(TABLE.c.pool_id == found.pool_id).values(claimed_until=until, updated_at=now))
    return found


def advance(tx: Tx, renewal: NameserverUpdate, after_id: str | None, now: datetime, until: datetime) -> bool:
    """A page is done; whether another one has not taken its place.

    :param after_id: of the last domain that is done; None when all are
    """
    mine = (TABLE.c.pool_id == renewal.pool_id) & (TABLE.c.run == renewal.run)
    if after_id is None:
        return tx.execute(TABLE.delete().where(mine)).rowcount == 1
    return tx.execute(TABLE.update().where(mine).values(after_id=after_id, claimed_until=until,
                                                        updated_at=now)).rowcount == 1
