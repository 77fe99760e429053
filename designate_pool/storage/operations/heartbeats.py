"""The status of running programs, as they report it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.errors import LostRace
from designate_pool.model import PageRequest, ServiceStatus, new_id
from designate_pool.storage.sql import pages
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import service_statuses as TABLE

UP, DOWN = 'UP', 'DOWN'
#: Seconds without a heartbeat after which a service is DOWN: two heartbeat intervals.
SILENCE = 30.0
#: Characters of a host's name.
_LONGEST = 255
_FIELDS = tuple(field.name for field in dataclasses.fields(ServiceStatus))
_SELECT = sa.select(*(TABLE.c[name] for name in _FIELDS))
_SORT_KEYS = {name: TABLE.c[name] for name in ('service_name', 'hostname', 'id', 'heartbeated_at', 'created_at',
                                               'updated_at')}
_CRITERIA: dict[str, Any] = {
    'service_name': lambda value: TABLE.c.service_name == value,
    'hostname': lambda value: pages.like(TABLE.c.hostname, value),
    'pool_name': lambda value: TABLE.c.pool_name == value,
}


def say(tx: Tx, service_name: str, hostname: str, pool_name: str, status: str, stats: Mapping[str, Any],
        now: datetime) -> None:
    """Store the status of a service, in one statement except for the first time.

    :param pool_name: '' for a service without a pool
    :raises LostRace: when another process of the service has inserted the row first
    """
    program = {'service_name': service_name, 'hostname': hostname[:_LONGEST], 'pool_name': pool_name}
    values = {'status': status, 'stats': json.dumps(stats), 'heartbeated_at': now, 'updated_at': now}
    same_program = sa.and_(*(TABLE.c[name] == value for name, value in program.items()))
    if tx.execute(sa.update(TABLE).where(same_program).values(**values)).rowcount:
        return
    try:
        tx.execute(sa.insert(TABLE), {'id': new_id(), 'capabilities': '{}', 'created_at': now, **values, **program})
    except exc.IntegrityError as error:
        raise LostRace(what=f'service {service_name} on {hostname}') from error


def forget(tx: Tx, silent: datetime) -> int:
    """Delete services without a heartbeat since *silent*; how many."""
    return tx.execute(sa.delete(TABLE).where(TABLE.c.heartbeated_at < silent)).rowcount


def find(tx: Tx, page: PageRequest, silent: datetime) -> list[ServiceStatus]:
    """A page of the services.

    :param silent: services without a heartbeat since then are DOWN, whatever their stored status
    """
    criteria = {**_CRITERIA, 'status': lambda value: sa.case((TABLE.c.heartbeated_at < silent, DOWN),
                                                             else_=TABLE.c.status) == value}
    pages.refuse_unknown(page.criterion, criteria)
    statement = _SELECT.where(*(criteria[key](value) for key, value in page.criterion.items()))
    return [_status(row) for row in pages.one_page(tx, statement, TABLE.c.id, _SORT_KEYS, page, 'service_name')]


def _status(row: Any) -> ServiceStatus:
    return ServiceStatus(**{**row._mapping, 'stats': json.loads(row.stats),
                            'capabilities': json.loads(row.capabilities)})
