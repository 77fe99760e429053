"""Audit rounds over all domains of a pool, page by page.

The progress of a round is in one row for each pool and kind.  A page is claimed by writing that row with a check of the
version, so only one pool manager gets it; a claim expires, so another one takes over the page of one that died.
Counters are incremented in the database, since answers arrive while others work on later pages.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.model import Action, Audit, AuditKind, Counts, Outcome, SigningState, Status
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import (ALIVE, audits, domains, pool_manager_status, pools, recordsets,
                                               zone_signing)
from designate_pool.storage.zones import pools as pool_store

TABLE = audits
ROWS = pool_manager_status

#: Rounds that are shown to users.
SHOWN = (AuditKind.SERIALS, AuditKind.CONTENTS, AuditKind.SIGNATURES)

_COUNTERS = tuple(field.name for field in dataclasses.fields(Counts))
_LAST = tuple(f'last_{name}' for name in _COUNTERS)
_PLACE = ('pool_id', 'kind', 'started_at', 'after_id', 'next_at', 'sent', 'heard', 'last_started_at', 'last_seconds',
          'claimed_by', 'claimed_until', 'version', 'updated_at')
_SELECT = sa.select(*(TABLE.c[name] for name in (*_PLACE, *_COUNTERS, *_LAST)))
_OF_POOL = _SELECT.join_from(TABLE, pools, pools.c.id == TABLE.c.pool_id).where(pools.c.name == sa.bindparam('name'))

#: ACTIVE or in ERROR, and not being deleted: servers that have nothing due should serve these.
_AT_REST = (domains.c.status.in_([Status.ACTIVE, Status.ERROR]) & (domains.c.action != Action.DELETE)
            & (domains.c.deleted == ALIVE) & (domains.c.awaits_transfer == sa.false()))
#: Likewise, or they wait for the end of a freeze, or for their stage: that may take days.
_SETTLED = _AT_REST | ((domains.c.status == Status.PENDING) & (domains.c.action != Action.DELETE)
                       & (domains.c.awaits_transfer == sa.false()) & pool_store.IS_HELD)
# After a restore servers have newer versions of these, which they are not to lose.
_KEEPS_NEWER = domains.c.is_signed & (sa.select(sa.func.count()).select_from(zone_signing).where(
    zone_signing.c.domain_id == domains.c.id, zone_signing.c.state == SigningState.HELD).scalar_subquery() > 0)
_HELD = (sa.select(sa.func.count()).select_from(ROWS)
         .where(ROWS.c.domain_id == domains.c.id, ROWS.c.action == Action.UPDATE,
                ROWS.c.server_id.in_(sa.bindparam('servers', expanding=True))).scalar_subquery())
# Counted by index: for an EXISTS PostgreSQL would read all rows.
_LEFT = sa.select(sa.func.count()).select_from(ROWS).where(ROWS.c.domain_id == domains.c.id)
_FORGOTTEN = ((domains.c.status == Status.DELETED) & (_LEFT.scalar_subquery() > 0)
              & (_LEFT.where(ROWS.c.next_attempt_at.is_not(None)).scalar_subquery() == 0))
_DOMAINS = (sa.select(domains.c.id, domains.c.name, domains.c.serial, sa.case((_SETTLED & ~_KEEPS_NEWER, 1), else_=0),
                      sa.case((_SETTLED & ~_KEEPS_NEWER, _HELD), (_FORGOTTEN, -1), else_=0))
            .where(domains.c.pool_id == sa.bindparam('pool_id'), domains.c.id > sa.bindparam('after'))
            .order_by(domains.c.id).limit(sa.bindparam('most')))
#: Whether the contents have signatures: the zone was signed by whoever it was transferred from.
_PRESIGNED = (sa.select(sa.func.count()).select_from(recordsets)
              .where(recordsets.c.domain_id == domains.c.id, recordsets.c.name == domains.c.name,
                     recordsets.c.type == 'RRSIG', recordsets.c.deleted == ALIVE).scalar_subquery() > 0)
_SIGNED = (sa.select(domains.c.id, domains.c.name, sa.case((_AT_REST, 1), else_=0),
                     sa.case(((domains.c.is_signed == sa.true()) | _PRESIGNED, 1), else_=0))
           .where(domains.c.pool_id == sa.bindparam('pool_id'), domains.c.id > sa.bindparam('after'))
           .order_by(domains.c.id).limit(sa.bindparam('most')))
_QUIET = (sa.select(ROWS.c.domain_id)
          .where(ROWS.c.server_id == sa.bindparam('server_id'), ROWS.c.domain_id > sa.bindparam('after'),
                 ROWS.c.domain_id <= sa.bindparam('last'), ROWS.c.action == Action.UPDATE,
                 ROWS.c.status == Outcome.SUCCESS, ROWS.c.next_attempt_at.is_(None),
                 ROWS.c.updated_at <= sa.bindparam('before')))
_KEPT_BEHIND = (sa.select(domains.c.id)
                .where(domains.c.former_pool_id == sa.bindparam('pool_id'), domains.c.awaits_transfer == sa.false(),
                       _LEFT.where(ROWS.c.action == Action.UPDATE,
                                   ROWS.c.server_id.in_(sa.bindparam('servers', expanding=True)),
                                   ROWS.c.expected_serial != domains.c.serial).scalar_subquery() > 0)
                .limit(sa.bindparam('most')))


@dataclasses.dataclass(frozen=True, slots=True)
class DomainPage:
    """A page of a pool's domains, in the order of their ids.

    :ivar last_id: the last id of the page; empty if it is the last page
    :ivar domains: (id, name, serial) of those that are settled: ACTIVE, in ERROR because some servers failed, or
        waiting for the end of a freeze or for their stage
    :ivar lacking: ids of settled domains without a row for some server
    :ivar unfinished: ids of deleted domains that have rows, none of which is due
    """

    last_id: str = ''
    domains: Sequence[tuple[str, str, int]] = ()
    lacking: Sequence[str] = ()
    unfinished: Sequence[str] = ()


def get(tx: Tx, pool_name: str, kind: AuditKind) -> Audit | None:
    """The state of a pool's round; None before the first."""
    row = tx.execute(_OF_POOL.where(TABLE.c.kind == kind), {'name': pool_name}).first()
    return None if row is None else _audit(row)


def of_pool(tx: Tx, pool_name: str) -> list[Audit]:
    """The audits of a pool in the order of :data:`SHOWN`; that of signatures where a zone is signed."""
    shown = [_audit(row) for row in tx.execute(_OF_POOL.where(TABLE.c.kind.in_(SHOWN)), {'name': pool_name})]
    return sorted((audit for audit in shown if audit.kind is not AuditKind.SIGNATURES or audit.now.domains
                   or audit.last is not None and audit.last.domains), key=lambda audit: SHOWN.index(audit.kind))


def create(tx: Tx, pool_name: str, kind: AuditKind, now: datetime) -> None:
    """Create the first round, unless there is one."""
    pool_id = tx.execute(sa.select(pools.c.id).where(pools.c.name == pool_name)).scalar()
    if pool_id is None:
        return
    try:
        with tx.begin_nested():
            tx.execute(TABLE.insert(), {'pool_id': pool_id, 'kind': kind, 'created_at': now, 'updated_at': now,
                                        'started_at': now})
    except exc.IntegrityError:
        return  # another pool manager came first


def claim(tx: Tx, audit: Audit, by: str, now: datetime, until: datetime) -> Audit | None:
    """Claim the next page of a round, as *audit* was read; None if another pool manager has claimed it."""
    values: dict[str, Any] = {'claimed_by': by, 'claimed_until': until, 'version': audit.version + 1, 'updated_at': now}
    if not audit.after_id:
        values |= {'started_at': now, 'sent': 0, 'heard': 0}
    return dataclasses.replace(audit, **values) if _write(tx, audit, values) else None


def advance(tx: Tx, audit: Audit, after_id: str, found: Counts, messages: int, next_at: datetime,
            now: datetime) -> bool:
    """Complete a page and release its claim; whether the claim was still ours.

    :param after_id: the last id of the page; empty if it was the last page, and the next round begins at *next_at*
    :param found: the counts of the page, without the answers, which are counted when they arrive
    :param messages: how many were sent for the page
    """
    values: dict[str, Any] = {
        'after_id': after_id, 'next_at': next_at, 'claimed_by': None, 'claimed_until': None, 'updated_at': now,
        'sent': TABLE.c.sent + messages, 'version': audit.version + 1}
    reached = {name: TABLE.c[name] + getattr(found, name) for name in _COUNTERS}
    if after_id:
        return _write(tx, audit, {**reached, **values})
    # MariaDB assigns from left to right, so the counters are copied before they are reset.
    return _write(tx, audit, {
        **{f'last_{name}': value for name, value in reached.items()}, 'last_started_at': audit.started_at,
        'last_seconds': (now - audit.started_at).total_seconds(), **dict.fromkeys(_COUNTERS, 0),
        'started_at': max(next_at, now), **values})


def renew_claim(tx: Tx, audit: Audit, until: datetime) -> bool:
    """Extend the claim on a page; whether it was still ours."""
    return _write(tx, audit, {'claimed_until': until})


def release(tx: Tx, audit: Audit) -> bool:
    """Release the claim on a page that was not started; whether it was still ours."""
    return _write(tx, audit, {'claimed_by': None, 'claimed_until': None, 'version': audit.version + 1})


def forget_unanswered(tx: Tx, audit: Audit) -> bool:
    """Count the messages without an answer as answered; whether *audit* had not changed since it was read."""
    return _write(tx, audit, {'heard': TABLE.c.sent, 'version': audit.version + 1})


def count_answers(tx: Tx, pool_name: str, kind: AuditKind, started_at: datetime, found: Counts, messages: int,
                  now: datetime) -> None:
    """Count answers of the round that began at *started_at*, if it is the present or the last one."""
    ours = (TABLE.c.kind == kind) & (TABLE.c.pool_id == pool_store.id_of(pool_name))
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
    """The next *most* domains of a pool, in one statement; each should have a row for each of *server_ids*."""
    rows = tx.execute(_DOMAINS, {'pool_id': pool_id, 'after': after_id, 'most': most,
                                 'servers': list(server_ids)}).all()
    resting = [row for row in rows if row[3]]
    return DomainPage(rows[-1][0] if len(rows) == most else '',
                      [(key, name, serial) for key, name, serial, _, _ in resting],
                      [row[0] for row in resting if row[4] < len(server_ids)], [row[0] for row in rows if row[4] < 0])


def signed_page(tx: Tx, pool_id: str, after_id: str, most: int) -> tuple[str, list[tuple[str, str, bool]]]:
    """The next *most* domains of a pool, of which those are given that are settled.

    :returns: the last id of the page, empty if it is the last one; (id, name, whether the pool knows that it is signed)
    """
    rows = tx.execute(_SIGNED, {'pool_id': pool_id, 'after': after_id, 'most': most}).all()
    return (rows[-1][0] if len(rows) == most else '',
            [(key, name, bool(is_signed)) for key, name, is_settled, is_signed in rows if is_settled])


def kept_behind(tx: Tx, pool_id: str, server_ids: Sequence[str], most: int) -> list[str]:
    """Ids of domains, *most* at most, that still have to be updated on *server_ids* of their former pool, *pool_id*.

    They were moved to another pool and changed since, and their former pool keeps them.
    """
    return list(tx.execute(_KEPT_BEHIND, {'pool_id': pool_id, 'servers': list(server_ids), 'most': most}).scalars())


def unchanged_since(tx: Tx, before: Mapping[str, datetime], after_id: str, last_id: str) -> list[str]:
    """Ids of domains, in a range of ids, whose row for a server is not due, nor written since its time in *before*."""
    unchanged = {key: None for server_id, moment in before.items() for key in tx.execute(
        _QUIET, {'server_id': server_id, 'after': after_id, 'last': last_id, 'before': moment}).scalars()}
    return list(unchanged)


def _write(tx: Tx, audit: Audit, values: Mapping[str, Any]) -> bool:
    """Write if the version is the one that was read; whether it was."""
    ours = (TABLE.c.pool_id == audit.pool_id) & (TABLE.c.kind == audit.kind) & (TABLE.c.version == audit.version)
    return tx.execute(TABLE.update().where(ours).ordered_values(*values.items())).rowcount == 1


def _audit(row: Any) -> Audit:
    place = dict(zip(_PLACE, row))
    at = len(_PLACE)
    now, last = row[at:at + len(_COUNTERS)], row[at + len(_COUNTERS):]
    return Audit(**place, now=Counts(*now),
                 last=None if place['last_started_at'] is None else Counts(*last))
