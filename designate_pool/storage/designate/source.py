"""Reads of Designate's database.

Each read is one transaction in which all statements see the same state, and which the database allows to write nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from designate_pool.errors import BadInput
from designate_pool.model import Endpoint
from designate_pool.storage.designate.tables import (metadata, pool_also_notifies, pool_attributes, pool_ns_records,
                                                     pools, records, recordsets, zone_attributes, zone_masters, zones)
from designate_pool.storage.sql.database import Items, Tx

#: Rows of a part that :func:`contents` yields.
PART = 5000
#: Of ``deleted``, while the zone lives.
ALIVE = '0'
PRIMARY, SECONDARY, CATALOG = 'PRIMARY', 'SECONDARY', 'CATALOG'

_ZONE = sa.select(zones)
# Its catalog zones are not of its users, and its API neither creates nor deletes them.
_LIVE = sa.and_(zones.c.deleted == ALIVE, zones.c.type != CATALOG)
# One that was given other masters has no time either, and goes on being served.
_AWAITING = sa.select(zones.c.id).where(
    zones.c.type == SECONDARY, zones.c.transferred_at.is_(None), ~sa.exists().where(
        recordsets.c.zone_id == zones.c.id, recordsets.c.type == 'SOA', records.c.recordset_id == recordsets.c.id))


class Part(NamedTuple):
    """Rows of one kind: ``zones``, ids of all recordsets (``set_ids``) and of managed ones (``managed``), ``sets``
    (recordsets) or ``records``."""

    kind: str
    rows: Sequence[Any]


def begin(tx: Tx) -> None:
    """Have *tx* see one state and write nothing; it must be its first call."""
    if tx.dialect.name != 'sqlite':  # there, a transaction sees one state anyway
        tx.exec_driver_sql('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY')


def check(tx: Tx) -> None:
    """Check that the database has the tables of Designate.

    :raises BadInput: when these are not the tables of Designate 23
    """
    begin(tx)
    inspector = sa.inspect(tx)
    present = set(inspector.get_table_names())
    for table in metadata.sorted_tables:
        if table.name not in present:
            raise BadInput(why=f"Designate's database has no table {table.name}; only that of Designate 23 can be "
                               'taken over')
        lacking = set(table.columns.keys()) - {column['name'] for column in inspector.get_columns(table.name)}
        if lacking:
            raise BadInput(why=f'the table {table.name} of Designate has no column {min(lacking)}; upgrade it to '
                               'Designate 23')


def rows(tx: Tx, table: sa.Table) -> list[Any]:
    """All rows of a small table, in the order of their ids."""
    begin(tx)
    return list(tx.execute(sa.select(table).order_by(table.c.id)))


class DesignatePool(NamedTuple):
    """A pool of Designate.

    :ivar name_servers: with their priorities; the first is the primary in the SOA
    """

    row: Any
    name_servers: tuple[tuple[str, int], ...]
    also_notifies: tuple[tuple[str, int], ...]
    attributes: tuple[tuple[str, str], ...]


def all_pools(tx: Tx) -> list[DesignatePool]:
    """All pools of Designate, in the order of their names."""
    begin(tx)

    def of(table: sa.Table, pool_id: str, *columns: str) -> tuple[Any, ...]:
        return tuple(tx.execute(sa.select(*(table.c[name] for name in columns)).where(table.c.pool_id == pool_id)
                                .order_by(*(table.c[name] for name in columns))))

    return [DesignatePool(row, tuple((host, priority) for priority, host in of(pool_ns_records, row.id, 'priority',
                                                                               'hostname')),
                          tuple((host, port) for host, port in of(pool_also_notifies, row.id, 'host', 'port')),
                          tuple((key, value) for key, value in of(pool_attributes, row.id, 'key', 'value')))
            for row in tx.execute(sa.select(pools).order_by(pools.c.name))]


def catalog_zones(tx: Tx, pool_id: str) -> list[str]:
    """The names of a pool's catalog zones, which all other reads leave out."""
    begin(tx)
    return list(tx.execute(sa.select(zones.c.name).where(zones.c.deleted == ALIVE, zones.c.type == CATALOG,
                                                         zones.c.pool_id == pool_id).order_by(zones.c.name)).scalars())


def zone_page(tx: Tx, pool_ids: Sequence[str], after_id: str, limit: int) -> list[Any]:
    """Live zones of pools, by id after *after_id*."""
    begin(tx)
    after = () if not after_id else (zones.c.id > after_id,)
    return list(tx.execute(_ZONE.where(_LIVE, zones.c.pool_id.in_(pool_ids), *after).order_by(zones.c.id).limit(limit)))


def live_zones(tx: Tx, pool_ids: Sequence[str], ids: Sequence[str]) -> set[str]:
    """Those of *ids* that are live zones of pools."""
    begin(tx)
    return set(tx.execute(sa.select(zones.c.id).where(_LIVE, zones.c.pool_id.in_(pool_ids), zones.c.id.in_(ids)))
               .scalars())


class ZoneDetails(NamedTuple):
    """What Designate keeps of a zone beside its row; *awaits_transfer*: of a secondary one, never transferred."""

    attributes: dict[str, str]
    masters: list[Endpoint]
    awaits_transfer: bool


def details(tx: Tx, zone_ids: Sequence[str]) -> dict[str, ZoneDetails]:
    """The details of each of these zones."""
    begin(tx)
    awaiting = set(tx.execute(_AWAITING.where(zones.c.id.in_(zone_ids))).scalars())
    details_of = {zone_id: ZoneDetails({}, [], zone_id in awaiting) for zone_id in zone_ids}
    for row in tx.execute(sa.select(zone_attributes).where(zone_attributes.c.zone_id.in_(zone_ids))
                          .order_by(zone_attributes.c.key, zone_attributes.c.value)):
        details_of[row.zone_id].attributes[row.key] = row.value
    for row in tx.execute(sa.select(zone_masters).where(zone_masters.c.zone_id.in_(zone_ids))
                          .order_by(zone_masters.c.host, zone_masters.c.port)):
        details_of[row.zone_id].masters.append(Endpoint(row.host, row.port))
    return details_of


def contents(tx: Tx, zone_ids: Sequence[str]) -> Items[Part]:
    """These zones, if they live, with their recordsets and records, in parts in the order of :class:`Part`.

    Records that are being deleted are left out, as in Designate's own transfers.
    """
    begin(tx)
    yield Part('zones', list(tx.execute(_ZONE.where(_LIVE, zones.c.id.in_(zone_ids)))))
    yield Part('set_ids', list(tx.execute(sa.select(recordsets.c.id)
                                          .where(recordsets.c.zone_id.in_(zone_ids))).scalars()))
    yield Part('managed', list(tx.execute(sa.select(records.c.recordset_id).distinct().where(
        records.c.zone_id.in_(zone_ids), records.c.managed)).scalars()))
    yield from _parts(tx, 'sets', sa.select(recordsets).where(recordsets.c.zone_id.in_(zone_ids)))
    # Records in the order of their recordsets, so that repeated ones stand next to each other.
    yield from _parts(tx, 'records', sa.select(records)
                      .where(records.c.zone_id.in_(zone_ids), records.c.action != 'DELETE')
                      .order_by(records.c.recordset_id, records.c.created_at, records.c.id))


def _parts(tx: Tx, kind: str, statement: sa.Select[Any]) -> Iterator[Part]:
    for part in tx.execute(statement.execution_options(yield_per=PART)).partitions():
        yield Part(kind, part)
