"""The journal: the changes of a zone with each serial, for incremental transfers (RFC 1995).

A domain's journal contains the changes of every serial from ``journal_from`` to the present one.  A change of the SOA
other than of its serial is not recorded: the journal begins again at the serial of that change.  The primary changes
with the pool, before the domain has a serial for that; until then there are no differences, as they would delete a SOA
that no server has (RFC 1995 section 4).  Whoever writes has locked the domain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from designate_pool import serial as serials
from designate_pool.model import Change, Domain, Status, Task, ZoneDifference, ZoneStep, new_ids
from designate_pool.storage.serving import zone_snapshot
from designate_pool.storage.sql import bulk
from designate_pool.storage.sql.database import Tx, see_one_state
from designate_pool.storage.sql.entities import chunks, delete_all
from designate_pool.storage.sql.schema import domains, pool_renewals, record_changes, records, recordsets

TABLE = record_changes
_ROWS_PER_STATEMENT = 5000

_HELD = (sa.select(records.c.id, records.c.recordset_id, recordsets.c.name, recordsets.c.type, recordsets.c.ttl,
                   records.c.wire)
         .join_from(records, recordsets, recordsets.c.id == records.c.recordset_id)
         .where(records.c.task != Task.DELETE, records.c.status != Status.DELETED))
_HELD_BY_SET = _HELD.where(records.c.recordset_id.in_(sa.bindparam('ids', expanding=True)))
_HELD_BY_ID = _HELD.where(records.c.id.in_(sa.bindparam('ids', expanding=True)))
_OF_DOMAIN = TABLE.c.domain_id == sa.bindparam('domain_id')
#: The update that has still to give a domain a serial for its new primary.
_AWAITED = sa.and_(pool_renewals.c.pool_id == domains.c.pool_id, pool_renewals.c.everywhere == sa.true(),
                   pool_renewals.c.after_id < domains.c.id)
_REACH = (sa.select(domains.c.journal_from).select_from(domains.outerjoin(pool_renewals, _AWAITED))
          .where(domains.c.id == sa.bindparam('domain_id'), domains.c.journal_to == domains.c.serial,
                 pool_renewals.c.pool_id.is_(None)))
_JOURNALS = (sa.select(domains.c.id, domains.c.serial, domains.c.journal_from, domains.c.journal_records)
             .where(domains.c.id.in_(sa.bindparam('ids', expanding=True))).order_by(domains.c.id).with_for_update())
_SHORTEN = (sa.update(domains).where(domains.c.id == sa.bindparam('key'))
            .values(journal_from=sa.bindparam('reach'), journal_records=sa.bindparam('left')))
_HAS_SERIAL = sa.select(TABLE.c.id).where(_OF_DOMAIN, TABLE.c.serial_number == sa.bindparam('serial')).limit(1)
_FIELDS = sa.select(TABLE.c.serial_number, TABLE.c.added, TABLE.c.name, TABLE.c.type, TABLE.c.ttl, TABLE.c.wire)
_ROWS = _FIELDS.where(_OF_DOMAIN).limit(sa.bindparam('most'))
#: Serials after *have* and up to *serial*, where they do not wrap around between these and where they do.
_BETWEEN = _ROWS.where(TABLE.c.serial_number > sa.bindparam('have'), TABLE.c.serial_number <= sa.bindparam('serial'))
_AROUND = _ROWS.where(sa.or_(TABLE.c.serial_number > sa.bindparam('have'),
                             TABLE.c.serial_number <= sa.bindparam('serial')))
#: Of some domains, from a serial on; at least a row for each.
_OF_SOME = (_FIELDS.add_columns(domains.c.id, domains.c.serial, domains.c.journal_from)
            .select_from(domains.outerjoin(pool_renewals, _AWAITED).outerjoin(TABLE, sa.and_(
                TABLE.c.domain_id == domains.c.id, TABLE.c.serial_number >= sa.bindparam('least'),
                domains.c.journal_to == domains.c.serial, pool_renewals.c.pool_id.is_(None))))
            .where(domains.c.id.in_(sa.bindparam('ids', expanding=True)), zone_snapshot.IS_SERVED)
            .limit(sa.bindparam('most')))


class Span(NamedTuple):
    """A domain's id, an older serial and the present one."""

    domain_id: str
    have: int
    serial: int


class JournalRecord(NamedTuple):
    """A record that is served; *ttl* is None for the domain's."""

    id: str
    recordset_id: str
    name: str
    type: str
    ttl: int | None
    wire: bytes


class DomainChange(NamedTuple):
    """What a domain's new serial brought: the records that went, and those that came."""

    domain_id: str
    serial: int
    gone: Sequence[Change]
    added: Sequence[Change]


def held(tx: Tx, recordset_ids: Sequence[str], record_ids: Sequence[str]) -> list[JournalRecord]:
    """The served records of these recordsets, and these records."""
    return [JournalRecord(*row) for query, ids in ((_HELD_BY_SET, recordset_ids), (_HELD_BY_ID, record_ids))
            for part in chunks(ids) for row in tx.execute(query, {'ids': part})]


def write(tx: Tx, changes: Iterable[DomainChange], now: datetime) -> None:
    """Record what domains' new serials brought."""
    rows = ((domain_id, serial, added, *change) for domain_id, serial, gone, new in changes
            for added, side in ((False, gone), (True, new)) for change in side)
    for part in chunks(rows, _ROWS_PER_STATEMENT):
        columns = dict(zip(('domain_id', 'serial_number', 'added', 'name', 'type', 'ttl', 'wire'), zip(*part)))
        bulk.insert(tx, TABLE, {'created_at': now}, {'id': new_ids(len(part)), **columns})


def difference(tx: Tx, domain_id: str, have: int, most: int) -> ZoneDifference | None:
    """The difference of a zone from serial *have* to its present one; None when it is not served.

    It must be the first call of its transaction (see :func:`designate_pool.storage.sql.database.see_one_state`).

    :param most: a difference of more records is not read: its ``steps`` are None
    """
    see_one_state(tx)
    head = zone_snapshot.head(tx, domain_id)
    if head is None:
        return None
    reach = tx.execute(_REACH, {'domain_id': domain_id}).scalar()
    if not _begins(reach, have, head.serial,
                   lambda: tx.execute(_HAS_SERIAL, {'domain_id': domain_id, 'serial': have}).first() is not None):
        return ZoneDifference(head, None)
    query = _BETWEEN if have <= head.serial else _AROUND
    rows = tx.execute(query, {'domain_id': domain_id, 'have': have, 'serial': head.serial, 'most': most + 1}).all()
    return ZoneDifference(head, _steps(rows, have) if len(rows) <= most else None)


def steps(tx: Tx, wanted: Collection[Span], most: int) -> dict[Span, list[ZoneStep]] | None:
    """What leads from older serials of zones to the present ones, in one statement.

    Empty where the journal does not go back that far.  Zones that are at other serials by now, or not served,
    are left out.  None if more than *most* records have to be read.
    """
    has_wrapped = any(span.have > span.serial for span in wanted)
    rows = tx.execute(_OF_SOME, {'ids': sorted({span.domain_id for span in wanted}), 'most': most + 1,
                                 'least': 0 if has_wrapped else min(span.have for span in wanted)}).all()
    if len(rows) > most:
        return None
    by_domain: dict[tuple[str, int], tuple[int | None, list[Sequence[Any]]]] = {}
    for *row, domain_id, serial, reach in rows:
        _, changes = by_domain.setdefault((domain_id, serial), (reach, []))
        if row[0] is not None:
            changes.append(row)
    return {span: _steps_since(span, *by_domain[span.domain_id, span.serial])
            for span in wanted if (span.domain_id, span.serial) in by_domain}


def trim(tx: Tx, domain: Domain, most: int) -> tuple[int, int]:
    """Delete the oldest serials of a journal with more than *most* records; its new first serial and size."""
    counts = tx.execute(sa.select(TABLE.c.serial_number, sa.func.count()).where(TABLE.c.domain_id == domain.id)
                        .group_by(TABLE.c.serial_number)).all()
    remaining = sum(count for _, count in counts)
    reach = domain.journal_from
    gone = []
    for serial, count in sorted(counts, key=lambda row: -_age(row[0], domain.serial)):
        if remaining <= most:
            break
        reach, remaining = serial, remaining - count
        gone.append(serial)
    for part in chunks(gone):
        tx.execute(sa.delete(TABLE).where(TABLE.c.domain_id == domain.id, TABLE.c.serial_number.in_(part)))
    assert reach is not None
    return reach, remaining


def forget(tx: Tx, domain_ids: Iterable[str]) -> None:
    """Delete the journals of these domains."""
    delete_all(tx, TABLE.c.domain_id, domain_ids)


def expire(tx: Tx, before: datetime, limit: int) -> int:
    """Delete what was recorded before a time, the oldest first, *limit* records at most; how many were deleted."""
    old = tx.execute(sa.select(TABLE.c.id, TABLE.c.domain_id, TABLE.c.serial_number).where(TABLE.c.created_at < before)
                     .order_by(TABLE.c.created_at).limit(limit)).all()
    stale: dict[str, list[int]] = {}
    for _, domain_id, serial in old:
        stale.setdefault(domain_id, []).append(serial)
    shorter = []
    for part in chunks(sorted(stale)):
        for row in tx.execute(_JOURNALS, {'ids': part}):
            reached = stale[row.id] if row.journal_from is None else [*stale[row.id], row.journal_from]
            shorter.append({'key': row.id, 'reach': min(reached, key=lambda serial: _age(serial, row.serial)),
                            'left': max(0, row.journal_records - len(stale[row.id]))})
    if shorter:
        tx.execute(_SHORTEN, shorter)
    delete_all(tx, TABLE.c.id, (row.id for row in old))
    return len(old)


def _steps_since(span: Span, reach: int | None, rows: Sequence[Sequence[Any]]) -> list[ZoneStep]:
    """The changes since a serial, step by step; *rows* are the journal's since then at least, *reach* is its own."""
    if not _begins(reach, span.have, span.serial, lambda: any(row[0] == span.have for row in rows)):
        return []
    behind = _age(span.have, span.serial)
    return _steps((row for row in rows if _age(row[0], span.serial) < behind), span.have)


def _begins(reach: int | None, have: int, newest: int, has_changes: Callable[[], bool]) -> bool:
    """Whether a difference can begin with the serial *have*.

    :param reach: of the journal, None when there is none
    :param has_changes: whether the journal has what *have* brought
    """
    return (reach is not None and _age(have, newest) <= _age(reach, newest) < serials.HALF
            and (have == reach or has_changes()))


def _age(serial: int, newest: int) -> int:
    """How far *serial* lies behind (RFC 1982)."""
    return (newest - serial) % serials.SPACE


def _steps(rows: Iterable[Sequence[Any]], have: int) -> list[ZoneStep]:
    changes_of: dict[int, tuple[list[Change], list[Change]]] = {}
    for serial, added, name, rtype, ttl, wire in rows:
        changes_of.setdefault(serial, ([], []))[added].append((name, rtype, ttl, wire))
    in_order = sorted(changes_of, key=lambda serial: serials.distance(have, serial))
    return [ZoneStep(serial, *changes_of[serial]) for serial in in_order]
