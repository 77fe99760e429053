"""Zones as MiniDNS serves them, read at one state of the database.

Domains and records that are deleted or being deleted are not served, nor are secondary domains that await a transfer.
Of zones whose changes wait, the heads here are those of the version that servers may have
(:mod:`designate_pool.model.freezes`); :func:`designate_pool.storage.zones.versions.permitted_pages` has its records.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import operator
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from designate_pool.model import LAST_STAGE, Action, Release, Status, Task, ZoneHead, ZoneRecord, permitted, staged
from designate_pool.storage.sql.database import Tx, see_one_state
from designate_pool.storage.sql.entities import rows_as_json
from designate_pool.storage.sql.schema import (ALIVE, domains, pool_attributes, pools, records, recordsets,
                                               signed_records)
from designate_pool.storage.zones import pools as pools_, recordsets as recordsets_of

IS_SERVED = sa.and_(domains.c.deleted == ALIVE, domains.c.action != Action.DELETE,
                    domains.c.awaits_transfer == sa.false())
#: Of a record: whether it is there now.
IS_PRESENT = sa.and_(records.c.task != Task.DELETE, records.c.status != Status.DELETED)
# Unordered: MariaDB would make a temporary table, which takes as long as all the rest.
_ALL_HEADS = (
    sa.select(domains.c.id, domains.c.name, pools.c.name, domains.c.email, domains.c.ttl, domains.c.serial,
              domains.c.refresh, domains.c.retry, domains.c.expire, domains.c.minimum, domains.c.soa_names,
              domains.c.is_signed, IS_SERVED, sa.case((pools_.IS_HELD, domains.c.version_before)),
              domains.c.release_state, pool_attributes.c.position, pool_attributes.c.value)
    .join_from(domains, pools)
    .outerjoin(pool_attributes, sa.and_(pool_attributes.c.pool_id == pools.c.id,
                                        pool_attributes.c.key == 'name_server'))
)
#: Also of those that servers may not have, which are left out when they are read.
_HEADS = _ALL_HEADS.where(sa.or_(domains.c.deleted == ALIVE, domains.c.version_before.is_not(None)))
_KEEPING = pools.alias('keeping_pool')
_HEADS_BY_NAME = _HEADS.where(domains.c.name.in_(sa.bindparam('names', expanding=True)),
                              sa.or_(pools.c.name == sa.bindparam('pool_name'), domains.c.former_pool_id == (
                                  sa.select(_KEEPING.c.id).where(_KEEPING.c.name == sa.bindparam('pool_name'))
                                  .scalar_subquery())))
_BY_ID = domains.c.id == sa.bindparam('domain_id')
_HEAD_BY_ID = _HEADS.where(_BY_ID)
_NEWEST_HEAD, _ANY_HEAD = _ALL_HEADS.where(_BY_ID, IS_SERVED), _ALL_HEADS.where(_BY_ID)
#: Of a row of a head: the domain's id, then the place of the name server and its name, None where there is none.
_BY_NAME_SERVER = operator.itemgetter(0, -2, -1)
_Pages = Generator[Sequence[ZoneRecord], None, None]
#: Has the next item of a generator made while the one before is used.
Ahead = Callable[[Generator[Any, None, None]], Any]
#: Rows held in memory at once.
_PAGE = 2000


def _records(domain: sa.ColumnElement[bool], wire: Any) -> sa.Select[Any]:
    return (sa.select(recordsets.c.name, recordsets.c.type, recordsets.c.ttl, wire)
            .join_from(records, recordsets, recordsets.c.id == records.c.recordset_id)
            .where(domain, IS_PRESENT, recordsets.c.deleted == ALIVE, recordsets.c.type != 'SOA'))


def _signed(domain: sa.ColumnElement[bool], wire: Any) -> sa.Select[Any]:
    return sa.select(signed_records.c.name, signed_records.c.type, signed_records.c.ttl, wire).where(domain)


def _by_signed(unsigned: Any, signed: Any, limit: Any = None) -> dict[bool, Any]:
    """A statement by whether it is for signed zones, whose records of the signer it reads too."""
    return {False: unsigned.limit(limit), True: sa.union_all(unsigned, signed).limit(limit)}


def _serial_of(domain_id: sa.Column[Any]) -> Any:
    return sa.select(domains.c.serial).where(domains.c.id == domain_id, IS_SERVED).scalar_subquery()


_IDS: sa.BindParameter[Any] = sa.bindparam('domain_ids', expanding=True)
_MOST: sa.BindParameter[Any] = sa.bindparam('most')
_SIGNED_OF_SOME = (_signed(signed_records.c.domain_id.in_(_IDS), signed_records.c.wire)
                   .add_columns(signed_records.c.domain_id, _serial_of(signed_records.c.domain_id)))
#: Unordered, with the records as the outer table, which takes the fewest lookups.
_RECORDS = _by_signed(_records(records.c.domain_id == sa.bindparam('domain_id'), records.c.wire),
                      _signed(signed_records.c.domain_id == sa.bindparam('domain_id'), signed_records.c.wire))
_UNLIMITED = (_records(records.c.domain_id.in_(_IDS), records.c.wire)
              .add_columns(records.c.domain_id, _serial_of(records.c.domain_id)))
_RECORDS_OF_SOME = _by_signed(_UNLIMITED, _SIGNED_OF_SOME, _MOST)
_FETCH = sa.text(f'FETCH {_PAGE} FROM zone')
_POSTGRESQL: sa.Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
_DOMAIN_ID: sa.ColumnElement[Any] = sa.literal_column(':domain_id')
_HEX_RECORDS = (_records(records.c.domain_id == _DOMAIN_ID, sa.func.encode(records.c.wire, 'hex'))
                .where(recordsets.c.domain_id == _DOMAIN_ID))
# With old statistics, or to return the first rows early, PostgreSQL chooses nested loops instead of a hash join.
# psycopg2 decodes hexadecimal digits faster than bytea.
_OPEN_CURSOR = {signed: sa.text('SET LOCAL enable_nestloop = off; DECLARE zone NO SCROLL CURSOR FOR {}; {}'.format(
    statement.compile(dialect=_POSTGRESQL, compile_kwargs={'literal_binds': True}), _FETCH))
    for signed, statement in _by_signed(_HEX_RECORDS, _signed(
        signed_records.c.domain_id == _DOMAIN_ID, sa.func.encode(signed_records.c.wire, 'hex'))).items()}
_IDS_OF_SOME = sa.select(records.c.domain_id).where(records.c.domain_id.in_(_IDS), IS_PRESENT)
_OF_SOME = _IDS_OF_SOME.limit(_MOST).subquery()
# With statistics from before a large import PostgreSQL scans all recordsets, unless these are restricted to the zones
# as well.  With those that it made during the import, when no record could be seen, it may take a minute to find that
# a zone is large, so that there is no join before the records are counted.
_RESTRICTED = _UNLIMITED.where(recordsets.c.domain_id.in_(_IDS),
                               sa.select(sa.func.count()).select_from(_OF_SOME).scalar_subquery() < _MOST)
_RECORDSETS_OF_SOME = _by_signed(_RESTRICTED, _SIGNED_OF_SOME, _MOST)
_COUNTS = {signed: sa.select(of_some.c.domain_id, sa.func.count()).group_by(of_some.c.domain_id)
           for signed, statement in _by_signed(_IDS_OF_SOME, sa.select(signed_records.c.domain_id).where(
               signed_records.c.domain_id.in_(_IDS)), _MOST).items() for of_some in (statement.subquery(),)}


def heads(tx: Tx, names: Collection[str], pool_name: str) -> dict[str, ZoneHead]:
    """The heads of those of *names* that this pool serves, by name, in one statement.

    A pool also serves domains that were moved from it and that its servers still keep, with the name servers of their
    new pools.
    """
    if not names:
        return {}
    heads_: dict[str, ZoneHead] = {}
    for zone_head in _read_heads(tx, _HEADS_BY_NAME, names=list(names), pool_name=pool_name):
        if zone_head.pool_name != pool_name:
            zone_head = dataclasses.replace(zone_head, pool_name=pool_name)
        if (other := heads_.get(zone_head.name)) is not None:
            zone_head = dataclasses.replace(other, others=(*other.others, zone_head))
        heads_[zone_head.name] = zone_head
    return heads_


def head(tx: Tx, domain_id: str, stage: int = LAST_STAGE) -> ZoneHead | None:
    """The head of a zone by its domain's id; None when servers of the stage may have none."""
    return next((zone_head for zone_head in _read_heads(tx, _HEAD_BY_ID, domain_id=domain_id)
                 if zone_head.at(stage) is not None), None)


def newest_head(tx: Tx, domain_id: str, if_served: bool = True) -> ZoneHead | None:
    """The head of the newest version of a zone; None when there is none, or *if_served* and it is not."""
    heads_ = _read_heads(tx, _NEWEST_HEAD if if_served else _ANY_HEAD, domain_id=domain_id, is_newest=True)
    return next(iter(heads_), None)


def records_of(tx: Tx, domain_id: str, ahead: Ahead = iter, signed: bool = False) -> _Pages:
    """Pages of a zone's present records, without the SOA, unordered, whether they are served or not.

    Rows are fetched page by page, and until the last page the transaction can do nothing else.

    :param ahead: used with PostgreSQL, which has the next page ready then when it is needed
    :param signed: whether the records that the signer made belong to it
    """
    name = tx.dialect.name
    return (_from_postgresql(tx, domain_id, ahead, signed) if name == 'postgresql' else
            _from_mysql(tx, domain_id, signed) if name == 'mysql' else _from_sqlite(tx, domain_id, signed))


def small_zones(tx: Tx, domain_ids: Collection[str], most: int,
                signed: bool = False) -> dict[str, tuple[int, list[ZoneRecord]]] | None:
    """Those of the zones that are served and have records, by domain id: the serial and the records without the SOA,
    unordered.

    All are of one state of the database, since they are read by one statement.  None if they have more than *most*
    records together.  For *signed* see :func:`records_of`.
    """
    query = _RECORDSETS_OF_SOME if tx.dialect.name == 'postgresql' else _RECORDS_OF_SOME
    rows = tx.execute(query[signed], {'domain_ids': list(domain_ids), 'most': most + 1}).all()
    if len(rows) > most or not rows and counts(tx, domain_ids, most, signed) is None:
        return None
    zones: dict[str, tuple[int, list[ZoneRecord]]] = {}
    for *record, domain_id, serial in rows:
        if serial is not None:
            zones.setdefault(domain_id, (serial, []))[1].append(tuple(record))
    return zones


def head_and_rows(tx: Tx, domain_id: str) -> tuple[ZoneHead, Iterator[tuple[str, str, int | None, str]]] | None:
    """A zone's head, and name, type, TTL (None for the zone's) and data of every record but its SOA, at one serial.

    The head has the zone's name as it was given.

    Rows are ordered by name, type and data, and fetched as they are consumed: until the last row the transaction can do
    nothing else.  None if the zone is not served.  It must be the first call of its transaction (see
    :func:`designate_pool.storage.sql.database.see_one_state`).
    """
    see_one_state(tx)
    zone_head = newest_head(tx, domain_id)
    if zone_head is None:
        return None
    name = tx.scalar(sa.select(domains.c.given_name).where(domains.c.id == domain_id)) or zone_head.name
    return dataclasses.replace(zone_head, name=name), recordsets_of.contents(tx, domain_id)


def counts(tx: Tx, domain_ids: Collection[str], most: int, signed: bool = False) -> dict[str, int] | None:
    """How many records these zones have besides their SOAs; None if more than *most* together."""
    counts_ = dict(tx.execute(_COUNTS[signed], {'domain_ids': list(domain_ids), 'most': most + 1}).tuples().all())
    return counts_ if sum(counts_.values()) <= most else None


def _from_sqlite(tx: Tx, domain_id: str, signed: bool) -> _Pages:
    """The driver's own rows: converting them to SQLAlchemy's takes as long as reading them."""
    cursor: Any = tx.execute(_RECORDS[signed], {'domain_id': domain_id}).cursor
    while page := cursor.fetchmany(_PAGE):
        yield page


def _from_mysql(tx: Tx, domain_id: str, signed: bool) -> _Pages:
    """Pages that the database sends while earlier ones are used."""
    options = {'yield_per': _PAGE}  # otherwise the driver fetches all rows at once
    is_whole = False
    try:
        for page in tx.execute(_RECORDS[signed], {'domain_id': domain_id}, execution_options=options).partitions():
            yield [row._t for row in page]
        is_whole = True
    finally:
        if not is_whole:  # otherwise the driver reads the rest first
            tx.invalidate()


def _from_postgresql(tx: Tx, domain_id: str, ahead: Ahead, signed: bool) -> _Pages:
    from_hex = bytes.fromhex
    with contextlib.closing(ahead(_fetched(tx, domain_id, signed))) as fetched:
        for page in fetched:
            time.sleep(0)  # a green thread that fetches ahead sends its statement now
            yield [(name, rtype, ttl, from_hex(wire)) for name, rtype, ttl, wire in page]


def _fetched(tx: Tx, domain_id: str, signed: bool) -> Generator[Sequence[Any], None, None]:
    page: Sequence[Any] = tx.execute(_OPEN_CURSOR[signed], {'domain_id': domain_id}).cursor.fetchall()
    while page:
        yield page
        page = tx.execute(_FETCH).cursor.fetchall() if len(page) >= _PAGE else []


def _read_heads(tx: Tx, statement: sa.Select[Any], is_newest: bool = False, **parameters: object) -> list[ZoneHead]:
    heads_: dict[str, ZoneHead | None] = {}
    released: dict[str, tuple[bool, str, Release]] = {}
    rows = rows_as_json(tx, statement, parameters)
    for *fields, soa_names, is_signed, is_served, version_before, release, _, name_server in sorted(
            rows, key=_BY_NAME_SERVER):
        present = heads_.get(fields[0])
        if present is not None:
            heads_[fields[0]] = dataclasses.replace(present, name_servers=(*present.name_servers, name_server))
            continue
        zone_head = ZoneHead(*[*fields, () if name_server is None else (name_server,), soa_names, False, is_signed])
        if release is not None and not is_newest:
            released[fields[0]] = is_served, version_before, Release(**json.loads(release))
            heads_[fields[0]] = zone_head
        elif version_before is not None and not is_newest:
            heads_[fields[0]] = permitted(dataclasses.replace(zone_head, is_held=True), version_before)
        else:
            heads_[fields[0]] = zone_head if is_served or is_newest else None
    return [zone_head for zone_head in heads_.values() if zone_head is not None and zone_head.domain_id not in released
            ] + [zone_head for key, how in released.items() for zone_head in _of_stages(heads_[key], *how)]


def _of_stages(newest: Any, is_served: bool, version_before: str, release: Release) -> Iterator[ZoneHead]:
    """The heads that servers have of a zone that is released in stages."""
    released, before = staged(newest, version_before, release)
    if released is not None and (is_served or released is not newest):
        contents_serial = before.serial if before is not None and release.turned_back is not None else None
        yield dataclasses.replace(released, stages=(0, release.stage), is_held=released is not newest,
                                  contents_serial=contents_serial)
    if before is not None:
        yield dataclasses.replace(before, stages=(release.stage + 1, LAST_STAGE), is_held=True)
