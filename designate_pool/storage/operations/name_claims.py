"""Claims on zone names on a server, for calls without a row of pool_manager_status.

Together with the claims on rows they prevent concurrent calls for one name on one server;
:func:`designate_pool.storage.operations.server_statuses.claimed_on_names` reads both.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.errors import LostRace
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import name_claims
from designate_pool.storage.zones.domains import chunks

TABLE = name_claims


def claim(tx: Tx, server_id: str, names: Collection[str], by: str, now: datetime, until: datetime) -> set[str]:
    """Claim those of *names* on a server that are not in this table yet; returns these.

    :raises LostRace: when one of them is claimed concurrently
    """
    # Expired claims of everyone: a program that has died releases none.
    tx.execute(TABLE.delete().where(TABLE.c.claimed_until <= now))
    taken = {name for part in chunks(names) for name in tx.execute(
        sa.select(TABLE.c.name).where(TABLE.c.name.in_(part), TABLE.c.server_id == server_id)).scalars()}
    free = set(names) - taken
    if free:
        try:
            tx.execute(TABLE.insert(), [{'name': name, 'server_id': server_id, 'claimed_by': by, 'claimed_until': until}
                                        for name in sorted(free)])
        except exc.IntegrityError as error:
            raise LostRace(what='claims of names') from error
    return free


def release(tx: Tx, server_id: str, names: Collection[str], by: str, until: datetime) -> None:
    """Release the claims of *by* that end at *until*."""
    for part in chunks(sorted(names)):
        tx.execute(TABLE.delete().where(TABLE.c.name.in_(part), TABLE.c.server_id == server_id,
                                        TABLE.c.claimed_by == by, TABLE.c.claimed_until == until))
