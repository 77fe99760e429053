"""Many rows into one table: every value comes to be as SQLAlchemy's own INSERT would put it, on each database."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.model import Status, Task, new_ids
from designate_pool.storage.sql import bulk_insert
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import ALIVE, records, recordsets
from testing.rows import insert_domains

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=2)))
SETS = [{'name': 'a.example.com.', 'type': 'A', 'ttl': 60, 'description': None, 'managed': False},
        {'name': '\\000\\".example.com.', 'type': 'TYPE65280', 'ttl': None, 'description': "50 % of 'é' \\ ☃, ?",
         'managed': True},
        {'name': 'n' * 1010, 'type': 'TXT', 'ttl': 0, 'description': '', 'managed': False}]
RECORDS = [('192.0.2.1', b'\xc0\0\2\1'), ("'\\\"%s ? :name {x} ☃", b''), ('x' * 70_000, bytes(range(256)) * 255)]


def insert_sets(tx: Tx, ids: list[str], sets: list[dict[str, Any]]) -> None:
    (domain_id,) = insert_domains(tx, 1)
    same = {'created_at': NOW, 'updated_at': NOW, 'deleted': ALIVE, 'version': 1, 'domain_id': domain_id}
    bulk_insert.insert(tx, recordsets, same, {'id': ids, **{name: [each[name] for each in sets] for name in SETS[0]}})


def test_every_value_is_kept(storage: Storage) -> None:
    ids = new_ids(len(SETS))
    storage.run(insert_sets, ids, SETS)
    found = storage.read(lambda tx: tx.execute(sa.select(recordsets).order_by(recordsets.c.id)).mappings().all())
    assert [{name: row[name] for name in SETS[0]} for row in found] == SETS
    assert {(row['created_at'], row['deleted'], row['version']) for row in found} == {(NOW, ALIVE, 1)}
    same = {'created_at': NOW, 'updated_at': NOW, 'version': 1, 'serial_number': 4294967295, 'task': Task.ADD,
            'status': Status.PENDING, 'domain_id': found[0]['domain_id']}
    for set_id, (data, wire) in zip(ids, RECORDS, strict=True):
        storage.run(bulk_insert.insert, records, same,
                    {'id': new_ids(1), 'recordset_id': [set_id], 'data': (data,), 'wire': (wire,)})
    kept = storage.read(lambda tx: tx.execute(sa.select(records).order_by(records.c.recordset_id)).mappings().all())
    assert [(row['data'], bytes(row['wire'])) for row in kept] == RECORDS
    assert {(row['serial_number'], row['task'], row['status']) for row in kept} == {
        (4294967295, Task.ADD, Status.PENDING)}


def test_values_with_what_stands_between_them_are_kept(storage: Storage) -> None:
    odd = ['\x1f', 'a\x1fb', '\x1e', 'a\x1eb', '', None, '\t\n\r', '\\N', '{a,"b"}', 'NULL']
    for some in ([each] for each in odd), (odd, odd[4:], odd[4:6], [None, None], ['', '']), ():
        for descriptions in some:
            sets = [{**SETS[0], 'name': f'h{number}.example.com.', 'description': each}
                    for number, each in enumerate(descriptions)]
            ids = new_ids(len(sets))
            storage.run(insert_sets, ids, sets)
            found = storage.read(lambda tx: tx.execute(
                sa.select(recordsets.c.description).where(recordsets.c.id.in_(ids)).order_by(recordsets.c.id)))
            assert list(found.scalars()) == descriptions


def test_many_rows_are_one_statement_and_no_rows_none(storage: Storage) -> None:
    sets = [{**SETS[0], 'name': f'h{number}.example.com.'} for number in range(3000)]
    with storage.count_statements() as counter:
        storage.run(insert_sets, new_ids(len(sets)), sets)
        storage.run(bulk_insert.insert, recordsets, {'version': 1}, {'id': [], 'name': []})
    assert sum(count for statement, count in counter.items() if 'recordsets' in statement) == 1
    assert storage.read(lambda tx: tx.execute(sa.select(sa.func.count()).select_from(recordsets)).scalar()) == 3000


def test_more_than_a_statement_may_have_is_several(storage: Storage) -> None:
    rows = [('x' * 70_000, bytes(range(256)) * 255)] * 40 + [("'", b''), ('\\', b'\0')]
    (set_id,) = ids = new_ids(1)
    storage.run(insert_sets, ids, SETS[:1])
    domain_id = storage.read(lambda tx: tx.execute(sa.select(recordsets.c.domain_id)).scalar_one())
    same = {'created_at': NOW, 'updated_at': NOW, 'version': 1, 'serial_number': 1, 'task': Task.ADD,
            'status': Status.PENDING, 'domain_id': domain_id, 'recordset_id': set_id}
    data, wires = zip(*rows)
    storage.run(bulk_insert.insert, records, same, {'id': new_ids(len(rows)), 'data': data, 'wire': wires})
    found = storage.read(lambda tx: tx.execute(sa.select(records.c.data, records.c.wire).order_by(records.c.id)).all())
    assert [(text, bytes(wire)) for text, wire in found] == rows


def test_what_the_column_refuses_is_refused(storage: Storage) -> None:
    too_long = [{**SETS[0], 'type': 'T' * 17}]
    if storage.engine.dialect.name == 'sqlite':
        too_long = [{**SETS[0], 'type': None}]
    with pytest.raises(exc.DBAPIError):
        storage.run(insert_sets, new_ids(1), too_long)
    with pytest.raises(exc.IntegrityError):
        storage.run(insert_sets, new_ids(1) * 2, SETS[:2])
