"""A database of Designate, filled as Designate does: the columns that are read of it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

import sqlalchemy as sa

from designate_pool.storage.designate import tables
from designate_pool.storage.sql.database import Storage, Tx

POOL_ID = '794ccc2cd75144feb57f8894c9f5c842'
CREATED = datetime(2024, 5, 6, 7, 8, 9, tzinfo=timezone.utc)
UPDATED = datetime(2025, 6, 7, 8, 9, 10, tzinfo=timezone.utc)
SERIAL = 1_750_000_000
NAME_SERVERS = ('ns1.example.net.', 'ns2.example.net.')
#: Name in the zone, '' for the zone itself, and type; each with its data.
Contents = Mapping[tuple[str, str], Iterable[str]]


def new(url: str, pool_name: str = 'default') -> Storage:
    """A database with Designate's tables and one pool."""
    designate = Storage(url)
    tables.metadata.create_all(designate.engine)
    designate.run(insert_pool, pool_name)
    return designate


def insert_pool(tx: Tx, name: str = 'default', id: str = POOL_ID) -> None:
    insert(tx, tables.pools, id=id, version=3, name=name, description='The pool', updated_at=UPDATED)
    for priority, host in enumerate(NAME_SERVERS, 1):
        insert(tx, tables.pool_ns_records, pool_id=id, priority=priority, hostname=host)


def insert(tx: Tx, table: sa.Table, **values: Any) -> str:
    """Insert a row; its id."""
    row = {'id': uuid.uuid4().hex, 'created_at': CREATED, **({'version': 1} if 'version' in table.c else {}), **values}
    tx.execute(sa.insert(table).values(row))
    return str(row['id'])


def insert_zone(tx: Tx, name: str, contents: Contents = {}, **values: Any) -> str:
    """Insert a zone at rest, with SOA and NS as Designate makes them; its id."""
    zone_id = insert(tx, tables.zones, **{
        'name': name, 'email': f'hostmaster@{name.rstrip(".")}', 'ttl': 3600, 'serial': SERIAL, 'refresh': 3587,
        'retry': 600, 'expire': 86400, 'minimum': 3600, 'deleted': '0', 'tenant_id': 'some-project', 'type': 'PRIMARY',
        'status': 'ACTIVE', 'action': 'NONE', 'pool_id': POOL_ID, 'increment_serial': False, 'updated_at': UPDATED,
        'version': 5, **values})
    soa = f'{NAME_SERVERS[0]} hostmaster.{name} {values.get("serial", SERIAL)} 3587 600 86400 3600'
    add_recordset(tx, zone_id, name, 'SOA', [soa], managed=True)
    add_recordset(tx, zone_id, name, 'NS', NAME_SERVERS, managed=True)
    for (label, rtype), data in contents.items():
        add_recordset(tx, zone_id, f'{label}.{name}' if label else name, rtype, data)
    return zone_id


def insert_secondary(tx: Tx, name: str, masters: Iterable[str], **values: Any) -> str:
    """Insert a secondary zone, transferred from its masters, with their SOA and NS and a TXT record; its id.

    :param masters: address and port
    """
    zone_id = insert(tx, tables.zones, **{
        'name': name, 'email': f'admin@{name.rstrip(".")}', 'ttl': 900, 'serial': SERIAL, 'refresh': 1800, 'retry': 300,
        'expire': 604800, 'minimum': 3600, 'deleted': '0', 'tenant_id': 'some-project', 'type': 'SECONDARY',
        'status': 'ACTIVE', 'action': 'NONE', 'pool_id': POOL_ID, 'increment_serial': False, 'updated_at': UPDATED,
        'transferred_at': UPDATED, 'version': 5, **values})
    for each in masters:
        host, _, port = each.rpartition(':')
        insert(tx, tables.zone_masters, zone_id=zone_id, host=host, port=int(port))
    soa = f'primary.{name} admin.{name} {SERIAL} 1800 300 604800 60'
    for owner, rtype, data in ((name, 'SOA', soa), (name, 'NS', f'primary.{name}'),
                               (f'txt.{name}', 'TXT', '"of the masters"')):
        add_recordset(tx, zone_id, owner, rtype, [data], tenant_id=None, ttl=900)
    return zone_id


def insert_awaiting(tx: Tx, name: str, masters: Iterable[str], **values: Any) -> str:
    """Insert a secondary zone that was never transferred, which no server serves; its id."""
    zone_id = insert_secondary(tx, name, masters, **{'transferred_at': None, 'serial': 1, 'status': 'ERROR',
                                                     'action': 'CREATE', **values})
    for table in (tables.records, tables.recordsets):
        tx.execute(sa.delete(table).where(table.c.zone_id == zone_id))
    return zone_id


def add_recordset(tx: Tx, zone_id: str, name: str, rtype: str, data: Iterable[str], managed: bool = False,
                  **values: Any) -> str:
    set_id = insert(tx, tables.recordsets, **{'zone_id': zone_id, 'name': name, 'type': rtype,
                                              'tenant_id': 'some-project', **values})
    for each in data:
        add_record(tx, zone_id, set_id, each, managed=managed)
    return set_id


def add_record(tx: Tx, zone_id: str, set_id: str, data: str, **values: Any) -> str:
    return insert(tx, tables.records, **{'zone_id': zone_id, 'recordset_id': set_id, 'data': data, 'serial': SERIAL,
                                         'managed': False, 'action': 'NONE', **values})


def settle(tx: Tx, zone_id: str, serials: int = 1) -> None:
    """Have a changed zone be served, at a newer serial."""
    tx.execute(sa.update(tables.zones).where(tables.zones.c.id == zone_id).values(
        serial=tables.zones.c.serial + serials, version=tables.zones.c.version + 1, status='ACTIVE', action='NONE',
        increment_serial=False))


def fill(tx: Tx, zones: int, recordsets: int) -> None:
    """Insert zones, each with so many A recordsets, in few statements."""
    rows: dict[sa.Table, list[dict[str, Any]]] = {tables.zones: [], tables.recordsets: [], tables.records: []}
    for number in range(zones):
        name = f'zone-{number}.example.com.'
        zone_id = uuid.uuid4().hex
        rows[tables.zones].append({
            'id': zone_id, 'created_at': CREATED, 'updated_at': UPDATED, 'version': 5, 'name': name, 'ttl': 3600,
            'email': 'hostmaster@example.com', 'serial': SERIAL, 'refresh': 3587, 'retry': 600, 'expire': 86400,
            'minimum': 3600, 'deleted': '0', 'tenant_id': 'some-project', 'type': 'PRIMARY', 'status': 'ACTIVE',
            'action': 'NONE', 'pool_id': POOL_ID, 'increment_serial': False})
        soa = f'{NAME_SERVERS[0]} hostmaster.example.com. {SERIAL} 3587 600 86400 3600'
        sets = [(name, 'SOA', (soa,)), (name, 'NS', NAME_SERVERS)]
        sets += [(f'host-{each}.{name}', 'A', (f'192.0.2.{each % 256}',)) for each in range(recordsets)]
        for owner, rtype, data in sets:
            set_id = uuid.uuid4().hex
            rows[tables.recordsets].append({'id': set_id, 'created_at': CREATED, 'version': 1, 'zone_id': zone_id,
                                            'name': owner, 'type': rtype, 'tenant_id': 'some-project'})
            rows[tables.records] += [
                {'id': uuid.uuid4().hex, 'created_at': CREATED, 'version': 1, 'zone_id': zone_id, 'serial': SERIAL,
                 'recordset_id': set_id, 'data': each, 'managed': rtype != 'A', 'action': 'NONE'} for each in data]
    for table, found in rows.items():
        for start in range(0, len(found), 5000):
            tx.execute(sa.insert(table), found[start:start + 5000])
