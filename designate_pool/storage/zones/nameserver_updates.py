"""Updates of the name servers of all domains of a pool, and their progress.

A pool has at most one update; a newer one replaces it and begins again with the first domain.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime

from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import Entities
from designate_pool.storage.sql.schema import pool_renewals

TABLE = pool_renewals


@dataclasses.dataclass(frozen=True, slots=True)
class NameserverUpdate:
    """The update of one pool.

    :ivar run: an id that distinguishes it from other updates of the pool
    :ivar everywhere: whether every domain gets a new serial, or only domains whose name servers differ
    :ivar after_id: the id of the last domain that is done
    """

    pool_id: str
    run: str
    everywhere: bool
    request_id: str
    after_id: str = ''


UPDATES = Entities(NameserverUpdate, TABLE)


def begin(tx: Tx, update: NameserverUpdate, now: datetime, until: datetime) -> None:
    """Store an update, claimed by the caller until *until*; the pool must be locked."""
    former = UPDATES.one(tx, UPDATES.select.where(TABLE.c.pool_id == update.pool_id))
    values = {**dataclasses.asdict(update), 'claimed_until': until, 'updated_at': now}
    if former is None:
        tx.execute(TABLE.insert(), {**values, 'created_at': now})
    else:
        values['everywhere'] = update.everywhere or former.everywhere
        tx.execute(TABLE.update().where(TABLE.c.pool_id == update.pool_id).values(values))


def claim(tx: Tx, now: datetime, until: datetime) -> NameserverUpdate | None:
    """Claim an update whose claim has expired, until *until*; None if there is none."""
    update = UPDATES.one(tx, UPDATES.select.where(TABLE.c.claimed_until < now).order_by(TABLE.c.pool_id).limit(1)
                         .with_for_update(skip_locked=True))
    if update is not None:
        tx.execute(TABLE.update().where(TABLE.c.pool_id == update.pool_id).values(claimed_until=until, updated_at=now))
    return update


def advance(tx: Tx, update: NameserverUpdate, after_id: str | None, now: datetime, until: datetime) -> bool:
    """Store the id of the last domain that is done (None when all are); whether the update has not been replaced."""
    mine = (TABLE.c.pool_id == update.pool_id) & (TABLE.c.run == update.run)
    if after_id is None:
        return tx.execute(TABLE.delete().where(mine)).rowcount == 1
    return tx.execute(TABLE.update().where(mine).values(after_id=after_id, claimed_until=until,
                                                        updated_at=now)).rowcount == 1
