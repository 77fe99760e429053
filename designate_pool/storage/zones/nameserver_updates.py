"""Updates of the name servers of all domains of a pool, and their progress.

A pool has at most one update; a newer one replaces it and begins again with the first domain.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from datetime import datetime

from designate_pool.model import ChangeKind, Context
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import Entities
from designate_pool.storage.sql.schema import pool_renewals

TABLE = pool_renewals
#: After all ids.
END = '~'


@dataclasses.dataclass(frozen=True, slots=True)
class NameserverUpdate:
    """The update of one pool.

    :ivar run: an id that distinguishes it from other updates of the pool
    :ivar everywhere: whether every domain gets a new serial, or only domains whose name servers differ
    :ivar after_id: the id of the last domain that is done; ``END`` when only those of *left_out* are not
    :ivar left_out: the ids of domains that could not be changed, and are tried again
    :ivar former_primary: the first name server before; '' for the same
    :ivar actor: who changed the pool, see :func:`designate_pool.storage.zones.versions.actor_text`
    """

    pool_id: str
    run: str
    everywhere: bool
    request_id: str
    after_id: str = ''
    former_primary: str = ''
    actor: str = '{}'
    left_out: Sequence[str] = ()

    @property
    def context(self) -> Context:
        """That of the request for the update."""
        actor = json.loads(self.actor)
        return Context(self.request_id, all_projects=True, kind=ChangeKind.POOL, **actor)


UPDATES = Entities(NameserverUpdate, TABLE)


def begin(tx: Tx, update: NameserverUpdate, now: datetime, until: datetime) -> None:
    """Store an update, claimed by the caller until *until*; the pool must be locked."""
    former = UPDATES.one(tx, UPDATES.select.where(TABLE.c.pool_id == update.pool_id))
    values = {**dataclasses.asdict(update), 'claimed_until': until, 'updated_at': now}
    if former is None:
        tx.execute(TABLE.insert(), {**values, 'created_at': now})
    else:
        values['everywhere'] = update.everywhere or former.everywhere
        values['former_primary'] = former.former_primary or update.former_primary
        tx.execute(TABLE.update().where(TABLE.c.pool_id == update.pool_id).values(values))


def is_running(tx: Tx, pool_id: str) -> bool:
    """Whether an update of a pool has not come to its end; the pool must be locked."""
    return UPDATES.one(tx, UPDATES.select.where(TABLE.c.pool_id == pool_id, TABLE.c.after_id != END)) is not None


def claim(tx: Tx, now: datetime, until: datetime) -> NameserverUpdate | None:
    """Claim an update whose claim has expired, until *until*; None if there is none."""
    update = UPDATES.one(tx, UPDATES.select.where(TABLE.c.claimed_until < now).order_by(TABLE.c.pool_id).limit(1)
                         .with_for_update(skip_locked=True))
    if update is not None:
        tx.execute(TABLE.update().where(TABLE.c.pool_id == update.pool_id).values(claimed_until=until, updated_at=now))
    return update


def advance(tx: Tx, update: NameserverUpdate, after_id: str | None, left_out: Sequence[str], now: datetime,
            until: datetime) -> bool:
    """Store the id of the last domain that is done (None when all are but *left_out*); whether the update has not been
    replaced."""
    mine = (TABLE.c.pool_id == update.pool_id) & (TABLE.c.run == update.run)
    if after_id is None and not left_out:
        return tx.execute(TABLE.delete().where(mine)).rowcount == 1
    return tx.execute(TABLE.update().where(mine).values(
        after_id=END if after_id is None else after_id, left_out=list(left_out), claimed_until=until,
        updated_at=now)).rowcount == 1
