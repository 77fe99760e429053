"""The rounds that look at every domain of a pool, a page at a time.

Where a round is stands in one row for each pool and kind.  Whoever takes a page claims that row over the version that
he has read, so no two take the same one; a claim runs out, so a page of one who died is taken again.  Counters are
raised where they stand, since answers come while others are at the next page.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.model import Action, Audit, AuditKind, Counts, Outcome, Status
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import ALIVE, audits, domains, pool_manager_status, pools

TABLE = audits
ROWS = pool_manager_status

#: Rounds that people are shown.
SHOWN = (AuditKind.SERIALS, AuditKind.CONTENTS)

_COUNTERS = tuple(field.name for field in dataclasses.fields(Counts))
_LAST = tuple(f'last_{name}' for name in _COUNTERS)
_PLACE = ('pool_id', 'kind', 'started_at', 'after_id', 'next_at', 'sent', 'heard', 'last_started_at', 'last_seconds',
          'claimed_by', 'claimed_until', 'version', 'updated_at')
_SELECT = sa.select(*(TABLE.c[name] for name in (*_PLACE, *_COUNTERS, *_LAST)))
_OF_POOL = _SELECT.join_from(TABLE, pools, pools.c.id == TABLE.c.pool_id).where(pools.c.name == sa.bindparam('name'))

#: ACTIVE, or given up by the pool as a whole: of each the servers that are at rest should go on serving it.
_AT_REST = (domains.c.status.in_([Status.ACTIVE, Status.ERROR]) & (domains.c.action != Action.DELETE)
            & (domains.c.deleted == ALIVE))
_HELD = (sa.select(sa.func.count()).select_from(ROWS)
         .where(ROWS.c.domain_id == domains.c.id, ROWS.c.action == Action.UPDATE,
                ROWS.c.server_id.in_(sa.bindparam('servers', expanding=True))).scalar_subquery())
# Counted by index: to see whether there are any, PostgreSQL would read them all.
_LEFT = sa.select(sa.func.count()).select_from(ROWS).where(ROWS.c.domain_id == domains.c.id)
_FORGOTTEN = ((domains.c.status == Status.DELETED) & (_LEFT.scalar_subquery() > 0)
              & (_LEFT.where(ROWS.c.next_attempt_at.is_not(None)).scalar_subquery() == 0))
_DOMAINS = (sa.select(domains.c.id, domains.c.name, domains.c.serial, sa.case((_AT_REST, 1), else_=0),
                      sa.case((_AT_REST, _HELD), (_FORGOTTEN, -1), else_=0))
            .where(domains.c.pool_id == sa.bindparam('pool_id'), domains.c.id > sa.bindparam('after'))
            .order_by(domains.c.id).limit(sa.bindparam('most')))
_QUIET = (sa.select(ROWS.c.domain_id)
          .where(ROWS.c.server_id == sa.bindparam('server_id'), ROWS.c.domain_id > sa.bindparam('after'),
                 ROWS.c.domain_id <= sa.bindparam('last'), ROWS.c.action == Action.UPDATE,
                 ROWS.c.status == Outcome.SUCCESS, ROWS.c.next_attempt_at.is_(None),
                 ROWS.c.updated_at <= sa.bindparam('before')))


@dataclasses.dataclass(frozen=True, slots=True)
class DomainPage:
    """Some of a pool's domains, in the order of their ids.

    :ivar last_id: of all that was looked through; empty when there are no more
    :ivar domains: (id, name, serial) of those that have come to rest: ACTIVE, or in ERROR for want of some servers
    :ivar lacking: ids of those among them that not all servers have a row for
    :ivar unfinished: ids of deleted ones that still have rows, with nothing due for any of them
    """

    last_id: str = ''
    domains: Sequence[tuple[str, str, int]] = ()
    lacking: Sequence[str] = ()
    unfinished: Sequence[str] = ()


def get(tx: Tx, pool_name: str, kind: AuditKind) -> Audit | None:
    """Where the round of a pool is; None before the first."""
    row = tx.execute(_OF_POOL.where(TABLE.c.kind == kind.value), {'name': pool_name}).first()
    return None if row is None else _audit(row)


def of_pool(tx: Tx, pool_name: str) -> list[Audit]:
    """The audits of a pool, of serials first."""
    return [_audit(row) for row in tx.execute(_OF_POOL.where(TABLE.c.kind.in_([kind.value for kind in SHOWN]))
                                              .order_by(TABLE.c.kind.desc()), {'name': pool_name})]


def create(tx: Tx, pool_name: str, kind: AuditKind, now: datetime) -> None:
    """Have a first round begin at once, unless there is one."""
    pool_id = tx.execute(sa.select(pools.c.id).where(pools.c.name == pool_name)).scalar()
    if pool_id is None:
        return
    try:
        with tx.begin_nested():
            tx.execute(TABLE.insert(), {'pool_id': pool_id, 'kind': kind.value, 'created_at': now, 'updated_at': now,
                                        'started_at': now})
    except exc.IntegrityError:
        return  # another pool manager came first


def claim(tx: Tx, audit: Audit, by: str, now: datetime, until: datetime) -> Audit | None:
    """Take the next page of a round, which begins with the first; None when somebody else has taken it.

    :param audit: as it was read
    """
    values: dict[str, Any] = {'claimed_by': by, 'claimed_until': until, 'version': audit.version + 1, 'updated_at': now}
    if not audit.after_id:
        values |= {'started_at': now, 'sent': 0, 'heard': 0}
    return dataclasses.replace(audit, **values) if _write(tx, audit, values) else None


def advance(tx: Tx, audit: Audit, after_id: str, found: Counts, messages: int, next_at: datetime,
            now: datetime) -> bool:
    """A page is done: let it go; whether it was still ours.

    :param after_id: where the next page begins; empty when that was the last, and the next round begins at *next_at*
    :param found: what the page came to; answers count when they come
    :param messages: how many were sent for it
    """
    values: dict[str, Any] = {
        'after_id': after_id, 'next_at': next_at, 'claimed_by': None, 'claimed_until': None, 'updated_at': now,
        'sent': TABLE.c.sent + messages, 'version': audit.version + 1}
    reached = {name: TABLE.c[name] + getattr(found, name) for name in _COUNTERS}
    if after_id:
        return _write(tx, audit, {**reached, **values})
    # MariaDB assigns from left to right: what is taken over comes before what is set back.
    return _write(tx, audit, {
        **{f'last_{name}': value for name, value in reached.items()}, 'last_started_at': audit.started_at,
        'last_seconds': (now - audit.started_at).total_seconds(), **dict.fromkeys(_COUNTERS, 0),
        'started_at': max(next_at, now), **values})


def keep(tx: Tx, audit: Audit, until: datetime) -> bool:
    """Go on having claimed a page until *until*; whether it was still ours."""
    return _write(tx, audit, {'claimed_until': until})


def release(tx: Tx, audit: Audit) -> bool:
    """Let a page go that was claimed and not looked at; whether it was still ours."""
    return _write(tx, audit, {'claimed_by': None, 'claimed_until': None, 'version': audit.version + 1})


def write_off(tx: Tx, audit: Audit) -> bool:
    """Wait no longer for the messages that were sent and not answered; whether *audit* was as it was read."""
    return _write(tx, audit, {'heard': TABLE.c.sent, 'version': audit.version + 1})


def heard(tx: Tx, pool_name: str, kind: AuditKind, started_at: datetime, found: Counts, messages: int,
          now: datetime) -> None:
    """Answers of the round that began at *started_at* have come; those of one before the last count no more."""
    ours = (TABLE.c.kind == kind.value) & (
        TABLE.c.pool_id == sa.select(pools.c.id).where(pools.c.name == pool_name).scalar_subquery())
    raised = [name for name in _COUNTERS if getattr(found, name)]
    present = TABLE.update().where(ours, TABLE.c.started_at == started_at).values(
        **{name: TABLE.c[name] + getattr(found, name) for name in raised}, heard=TABLE.c.heard + messages,
        updated_at=now)
    if tx.execute(present).rowcount:
        return
    tx.execute(TABLE.update().where(ours, TABLE.c.last_started_at == started_at).values(
        last_seconds=(now - started_at).total_seconds(), heard=TABLE.c.heard + messages, updated_at=now,
        **{f'last_{name}': TABLE.c[f'last_{name}'] + getattr(found, name) for name in raised}))


def page(tx: Tx, pool_id: str, after_id: str, most: int, server_ids: Sequence[str]) -> DomainPage:
    """The next *most* domains of a pool, in one statement.

    :param server_ids: of the servers that should have a row for each
    """
    found = tx.execute(_DOMAINS, {'pool_id': pool_id, 'after': after_id, 'most': most,
                                  'servers': list(server_ids)}).all()
    resting = [row for row in found if row[3]]
    return DomainPage(found[-1][0] if len(found) == most else '',
                      [(key, name, serial) for key, name, serial, _, _ in resting],
                      [row[0] for row in resting if row[4] < len(server_ids)], [row[0] for row in found if row[4] < 0])


def quiet(tx: Tx, before: Mapping[str, datetime], after_id: str, last_id: str) -> list[str]:
    """Ids of domains for which nothing is due on a server, and has not been since a time; by range of ids.

    :param before: the time by server
    """
    found = {key: None for server_id, moment in before.items() for key in tx.execute(
        _QUIET, {'server_id': server_id, 'after': after_id, 'last': last_id, 'before': moment}).scalars()}
    return list(found)


def _write(tx: Tx, audit: Audit, values: Mapping[str, Any]) -> bool:
    """Write over the version that was read; whether it was still that."""
    ours = (TABLE.c.pool_id == audit.pool_id) & (TABLE.c.kind == audit.kind.value) & (
        TABLE.c.version == audit.version)
    return tx.execute(TABLE.update().where(ours).ordered_values(*values.items())).rowcount == 1


def _audit(row: Any) -> Audit:
    place = dict(zip(_PLACE, row))
    at = len(_PLACE)
    now, last = row[at:at + len(_COUNTERS)], row[at + len(_COUNTERS):]
    return Audit(**{**place, 'kind': AuditKind(place['kind'])}, now=Counts(*now),
                 last=None if place['last_started_at'] is None else Counts(*last))
