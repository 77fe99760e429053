"""The zone that is transferred: in databases, and as the zone file of the servers that it is compared with."""

from __future__ import annotations

import pathlib

import sqlalchemy as sa

from designate_pool.model import Actor, ChangeKind, Status, Task, Version, ZoneRecord, differences, new_ids, utcnow
from designate_pool.storage.sql import bulk, migrate
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import domains, records, recordsets
from designate_pool.storage.zones import versions
from testing.zones import big_zone, insert_zone

NAME = 'example.org.'
#: Records beside those that are counted: the SOA twice, and an NS.
BESIDE = 3
#: Rows of one statement.
_AT_ONCE = 20_000
_OTHER = bytes((10, 0, 0, 1))


def write_zone_file(path: pathlib.Path, count: int) -> None:
    path.write_text(big_zone(count))


def fill(url: str, count: int) -> str:
    """Make a database that has the zone with *count* A records, each in a recordset of its own; its id."""
    migrate.upgrade(url)
    storage = Storage(url)
    try:
        domain_id = storage.run(lambda tx: insert_zone(tx, big_zone(0), name=NAME))
        for start in range(0, count, _AT_ONCE):
            storage.run(_insert, domain_id, range(start, min(start + _AT_ONCE, count)))
        storage.run(_have_looked_at)
    finally:
        storage.close()
    return domain_id


def raise_serial(storage: Storage, domain_id: str) -> None:
    """Have the zone packed anew when it is asked for next."""
    storage.run(lambda tx: tx.execute(sa.update(domains).where(domains.c.id == domain_id).values(
        serial=domains.c.serial + 1)) and None)


def change(storage: Storage, domain_id: str, count: int) -> int:
    """Give the first *count* hosts another address, with the next serial, and write it down; the former serial."""
    return storage.run(_change, domain_id, count)


def _insert(tx: Tx, domain_id: str, numbers: range) -> None:
    same = {'created_at': utcnow(), 'updated_at': utcnow(), 'domain_id': domain_id}
    ids = new_ids(len(numbers))
    bulk.insert(tx, recordsets, {**same, 'type': 'A'},
                {'id': ids, 'name': [_host(number) for number in numbers]})
    bulk.insert(tx, records, {**same, 'serial_number': 7, 'task': Task.NONE, 'status': Status.ACTIVE},
                {'id': new_ids(len(numbers)), 'recordset_id': ids,
                 'wire': [_address(number) for number in numbers],
                 'data': ['.'.join(map(str, _address(number))) for number in numbers]})


def _have_looked_at(tx: Tx) -> None:
    """Have the database look at what it has, as it does by itself in operation; nothing has SQLite do so."""
    for statement in {'mysql': ['ANALYZE TABLE records, recordsets, domains'],
                      'postgresql': ['ANALYZE']}.get(tx.dialect.name, []):
        tx.exec_driver_sql(statement)


def _change(tx: Tx, domain_id: str, count: int) -> int:
    serial: int = tx.execute(sa.select(domains.c.serial).where(domains.c.id == domain_id)).scalar_one()
    gone: list[ZoneRecord] = [(_host(number), 'A', 300, _address(number)) for number in range(count)]
    added: list[ZoneRecord] = [(name, rtype, ttl, _OTHER) for name, rtype, ttl, _ in gone]
    versions.write(tx, [versions.NewVersion(
        Version(domain_id, serial, serial + 1, serial, ChangeKind.API, Actor(), gone=count, added=count),
        differences.pack(gone, added))], utcnow())
    tx.execute(sa.update(domains).where(domains.c.id == domain_id).values(
        serial=serial + 1, journal_from=serial, journal_to=serial + 1, journal_records=2 * count))
    for number in range(0, count, 500):
        names = [_host(each) for each in range(number, min(number + 500, count))]
        ids = sa.select(recordsets.c.id).where(recordsets.c.domain_id == domain_id, recordsets.c.name.in_(names))
        tx.execute(sa.update(records).where(records.c.recordset_id.in_(tx.execute(ids).scalars().all()))
                   .values(wire=_OTHER))
    return serial


def _host(number: int) -> str:
    return f'host{number}.{NAME}'


def _address(number: int) -> bytes:
    """As :func:`testing.zones.big_zone` has it."""
    return bytes((198, 51, number >> 8 & 255, number & 255))
