"""Many rows of one table at once: every value comes to be as SQLAlchemy would put it, on each database."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.model import Action, Status, Task, new_id, new_ids
from designate_pool.storage.sql import bulk
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import ALIVE, OPERATIONS, records, recordsets
from designate_pool.storage.zones import domains
from testing.databases import count_statements
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
    bulk.insert(tx, recordsets, same, {'id': ids, **{name: [each[name] for each in sets] for name in SETS[0]}})


def test_every_value_is_kept(storage: Storage) -> None:
    ids = new_ids(len(SETS))
    storage.run(insert_sets, ids, SETS)
    found = storage.read(lambda tx: tx.execute(sa.select(recordsets).order_by(recordsets.c.id)).mappings().all())
    assert [{name: row[name] for name in SETS[0]} for row in found] == SETS
    assert {(row['created_at'], row['deleted'], row['version']) for row in found} == {(NOW, ALIVE, 1)}
    same = {'created_at': NOW, 'updated_at': NOW, 'version': 1, 'serial_number': 4294967295, 'task': Task.ADD,
            'status': Status.PENDING, 'domain_id': found[0]['domain_id']}
    for set_id, (data, wire) in zip(ids, RECORDS, strict=True):
        storage.run(bulk.insert, records, same,
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
    with count_statements(storage) as counter:
        storage.run(insert_sets, new_ids(len(sets)), sets)
        storage.run(bulk.insert, recordsets, {'version': 1}, {'id': [], 'name': []})
    statements = sum(count for statement, count in counter.items() if 'recordsets' in statement)
    # SQLite gives no turns while it executes one.
    assert statements == (6 if storage.has_one_writer else 1)
    assert storage.read(lambda tx: tx.execute(sa.select(sa.func.count()).select_from(recordsets)).scalar()) == 3000


def test_more_than_a_statement_may_have_is_several(storage: Storage) -> None:
    rows = [('x' * 70_000, bytes(range(256)) * 255)] * 40 + [("'", b''), ('\\', b'\0')]
    (set_id,) = ids = new_ids(1)
    storage.run(insert_sets, ids, SETS[:1])
    domain_id = storage.read(lambda tx: tx.execute(sa.select(recordsets.c.domain_id)).scalar_one())
    same = {'created_at': NOW, 'updated_at': NOW, 'version': 1, 'serial_number': 1, 'task': Task.ADD,
            'status': Status.PENDING, 'domain_id': domain_id, 'recordset_id': set_id}
    data, wires = zip(*rows)
    storage.run(bulk.insert, records, same, {'id': new_ids(len(rows)), 'data': data, 'wire': wires})
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


def test_every_value_of_rows_that_are_updated_together_is_kept(storage: Storage) -> None:
    ids = sorted(new_ids(len(SETS)))
    storage.run(insert_sets, ids, SETS)
    for changed in (SETS[1:] + SETS[:1], [SETS[1]] * 3):
        columns = {name: [each[name] for each in changed[:2]] for name in ('ttl', 'description', 'managed')}
        unchanged = sa.select(recordsets.c.name).where(recordsets.c.id == ids[2])
        before = storage.read(lambda tx: tx.execute(unchanged).one())
        storage.run(bulk.update, recordsets, ids[:2], {**columns, 'updated_at': [NOW + timedelta(1), NOW]}, {
            'name': (['x', "y'%s?"], 3)})
        found = storage.read(lambda tx: tx.execute(sa.select(recordsets).order_by(recordsets.c.id)).mappings().all())
        assert [{name: row[name] for name in columns} for row in found[:2]] == [
            {name: each[name] for name in columns} for each in changed[:2]]
        assert [row['updated_at'] for row in found] == [NOW + timedelta(1), NOW, NOW]
        assert (found[2]['name'],) == before
    assert [row['name'] for row in found[:2]] == ['xxa.', "y'%s?y'%"]


def test_domains_that_are_saved_together_are_as_if_saved_one_by_one(storage: Storage) -> None:
    ids = storage.run(insert_domains, 60)
    found = storage.read(domains.get_many, ids)
    changed = [dataclasses.replace(
        found[key], serial=5 + place, version=2, updated_at=NOW, status=Status.PENDING, action=Action.UPDATE,
        converged_at=None if place % 2 else NOW, request_id=f'req-{place}',
        description=None if place % 3 else 'é ☃') for place, key in enumerate(ids)]
    operations = ['' if place == 1 else new_id() for place, _ in enumerate(changed)]
    with count_statements(storage) as counter:
        storage.run(domains.save_many, list(zip(changed, operations)))
    assert counter.total() == 3, 'of 50, of the others, and of the one without an operation'
    kept = storage.read(domains.get_many, ids)
    assert [kept[key] for key in ids] == changed
    serials = [storage.run(domains.lock_for, *pair)[1] for pair in zip(ids[:3], operations)]
    assert serials == [5, None, 7]


def test_of_the_operations_on_a_domain_the_newest_are_known(storage: Storage) -> None:
    ids = storage.run(insert_domains, 2)
    operations = [[new_id(), new_id()] for _ in range(OPERATIONS + 1)]
    for some in operations:
        found = storage.read(domains.get_many, ids)
        storage.run(domains.save_many, [(found[key], each) for key, each in zip(ids, some)])
    known = [[storage.run(domains.lock_for, key, each)[1] for key, each in zip(ids, some)] for some in operations]
    assert known == [[None, None], *[[1, 1]] * OPERATIONS]
