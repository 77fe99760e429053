"""The status of running programs, as they report it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from designate_pool.model import PageRequest, ServiceStatus, new_id
from designate_pool.storage.sql import pages
from designate_pool.storage.sql.columns import Time
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import Entities, lost_race
from designate_pool.storage.sql.schema import service_statuses as TABLE

UP, DOWN = 'UP', 'DOWN'
#: Seconds without a heartbeat after which a service is DOWN: two heartbeat intervals.
SILENCE = 30.0
#: Characters of a host's name.
_LONGEST = 255
_STATUS = sa.case((TABLE.c.heartbeated_at < sa.bindparam('silent', type_=Time), DOWN), else_=TABLE.c.status)
#: Its statements have the parameter ``silent``: services without a heartbeat since then are DOWN.
SERVICES = Entities(
    ServiceStatus, TABLE, ('service_name', 'hostname', 'id', 'heartbeated_at', 'created_at', 'updated_at'),
    {'service_name': TABLE.c.service_name, 'hostname': functools.partial(pages.like, TABLE.c.hostname),
     'pool_name': TABLE.c.pool_name, 'status': _STATUS}, status=_STATUS)


def say(tx: Tx, service_name: str, hostname: str, pool_name: str, status: str, stats: Mapping[str, Any],
        now: datetime) -> None:
    """Store the status of a service, in one statement except for the first time.

    :raises LostRace: when another process of the service has inserted the row first
    """
    program = {'service_name': service_name, 'hostname': hostname[:_LONGEST], 'pool_name': pool_name}
    values = {'status': status, 'stats': stats, 'heartbeated_at': now, 'updated_at': now}
    same_program = sa.and_(*(TABLE.c[name] == value for name, value in program.items()))
    if tx.execute(sa.update(TABLE).where(same_program).values(**values)).rowcount:
        return
    with lost_race(f'service {service_name} on {hostname}'):
        tx.execute(sa.insert(TABLE), {'id': new_id(), 'capabilities': {}, 'created_at': now, **values, **program})


def forget(tx: Tx, silent: datetime) -> int:
    """Delete services without a heartbeat since *silent*; how many."""
    return tx.execute(sa.delete(TABLE).where(TABLE.c.heartbeated_at < silent)).rowcount


def find(tx: Tx, page: PageRequest, silent: datetime) -> list[ServiceStatus]:
    """A page of the services; those without a heartbeat since *silent* are DOWN, whatever their stored status."""
    return SERVICES.find(tx, page, silent=silent)
