"""The status of running programs, as they report it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from designate_pool.errors import NotFound, Refused
from designate_pool.model import PageRequest, ServiceStatus, new_id
from designate_pool.storage.sql import pages
from designate_pool.storage.sql.columns import Time
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import Entities
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
        now: datetime, is_gone: Callable[[Mapping[str, Any]], bool] = lambda stats: False) -> None:
    """Store the status of a service in a process, which *stats* tell from others of its kind on the host.

    It takes over the row of one that is DOWN, or that *is_gone* by its statistics; one with its pid that ends up DOWN
    later, as the former one in a container does, is deleted.
    """
    program = {'service_name': service_name, 'hostname': hostname[:_LONGEST], 'pool_name': pool_name}
    values = {'status': status, 'stats': stats, 'heartbeated_at': now, 'updated_at': now}
    same_program = sa.and_(*(TABLE.c[name] == value for name, value in program.items()))
    rows = tx.execute(sa.select(TABLE.c.id, TABLE.c.stats, _STATUS).where(same_program).order_by(
        TABLE.c.heartbeated_at.desc()), {'silent': now - timedelta(seconds=SILENCE)}).all()
    own = [row_id for row_id, former_stats, _ in rows if former_stats == stats] or [
        row_id for row_id, former_stats, former_status in rows if former_status == DOWN or is_gone(former_stats)]
    former = [row_id for row_id, former_stats, former_status in rows
              if former_status == DOWN and row_id not in own[:1] and former_stats.get('pid') == stats.get('pid')]
    if former:
        tx.execute(sa.delete(TABLE).where(TABLE.c.id.in_(former)))
    if own:
        tx.execute(sa.update(TABLE).where(TABLE.c.id == own[0]).values(**values))
    else:
        tx.execute(sa.insert(TABLE), {'id': new_id(), 'capabilities': {}, 'created_at': now, **values, **program})


def remove(tx: Tx, service_id: str, silent: datetime) -> None:
    """Delete a service that has sent no heartbeat since *silent*, or was stopped.

    :raises Refused: while it runs
    """
    status = tx.execute(sa.select(_STATUS).where(TABLE.c.id == service_id), {'silent': silent}).scalar()
    if status is None:
        raise NotFound(what=f'service status {service_id}', type='service_status_not_found')
    if status != DOWN:
        raise Refused('service_running', 'The service is running; stop it first.', 409)
    tx.execute(sa.delete(TABLE).where(TABLE.c.id == service_id))


def forget(tx: Tx, silent: datetime) -> int:
    """Delete services without a heartbeat since *silent*; how many."""
    return tx.execute(sa.delete(TABLE).where(TABLE.c.heartbeated_at < silent)).rowcount


def find(tx: Tx, page: PageRequest, silent: datetime) -> list[ServiceStatus]:
    """A page of the services; those without a heartbeat since *silent* are DOWN, whatever their stored status."""
    return SERVICES.find(tx, page, silent=silent)
