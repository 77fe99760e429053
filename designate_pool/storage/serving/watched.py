"""What MiniDNS looks at all the time, in one statement: it is nearly all that an idle MiniDNS costs a database."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sa

from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import pools
from designate_pool.storage.zones import secondary_zones, tsigkeys

_RELOADS = sa.select(pools.c.reloads).where(pools.c.name == sa.bindparam('pool_name')).scalar_subquery()
_QUERY = sa.select(_RELOADS, tsigkeys.CHANGES.scalar_subquery(), secondary_zones.HAS_DUE,
                   secondary_zones.FIRST_AT)


class Watched(NamedTuple):
    """A state of the database that MiniDNS looks for changes of.

    :ivar reloads: how often the pool's configuration was reloaded on command; None when there is no such pool
    :ivar key_changes: the number of changes of TSIG keys, and of what they are for
    :ivar has_due_refresh: whether a secondary zone of the pool is due, and not claimed
    :ivar next_refresh_at: when the first secondary zone of the pool is due, which may be claimed; None if that is later
        than was asked for
    """

    reloads: int | None
    key_changes: int
    has_due_refresh: bool
    next_refresh_at: datetime | None = None


def look(tx: Tx, pool_name: str, now: datetime, ahead: timedelta = timedelta(0)) -> Watched:
    """The present state, read by one statement; refreshes are looked for up to *ahead* from now."""
    reloads, key_changes, has_due_refresh, next_refresh_at = tx.execute(
        _QUERY, {'pool_name': pool_name, 'now': now, 'until': now + ahead}).one()
    return Watched(reloads, key_changes or 0, bool(has_due_refresh), next_refresh_at)
