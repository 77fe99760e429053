"""Zones read from each kind of database."""

from __future__ import annotations

import contextlib
import datetime
import functools
import itertools
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from designate_pool.concurrency import one_ahead
from designate_pool.model import Action, Domain, RecordSet, Status, Task, ZoneHead, ZoneRecord, new_id, new_ids, utcnow
from designate_pool.runtime import Threads
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.serving import zone_snapshot
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import domains, pool_attributes, pools, records, recordsets
from designate_pool.storage.zones import domains as domain_store, recordsets as recordsets_of, versions
from testing.databases import PostgreSQL, count_statements
from testing.processes import wait_until
from testing.zones import EXAMPLE, big_zone, insert_big_zone, insert_zone, set_serial


def test_the_heads_of_many_zones_are_one_statement(storage: Storage) -> None:
    for number in range(5):
        storage.run(lambda tx: insert_zone(tx, EXAMPLE, name=f'z{number}.example.', pool_name='two'))
    with count_statements(storage) as counter:
        heads = storage.read(zone_snapshot.heads, [f'z{number}.example.' for number in range(9)], 'two')
    assert counter.total() == 1
    assert sorted(heads) == [f'z{number}.example.' for number in range(5)]
    head = heads['z3.example.']
    assert (head.serial, head.pool_name, head.name_servers, head.email) == (
        7, 'two', ('ns1.example.net.',), 'first.last@example.com')
    assert storage.read(zone_snapshot.heads, list(heads), 'default') == {}, 'another pool has none of them'
    pool = sa.select(pools.c.id).where(pools.c.name == 'two')
    storage.run(lambda tx: tx.execute(pool_attributes.insert(), [
        {'id': new_id(), 'pool_id': tx.scalar(pool), 'key': 'name_server', 'value': value, 'position': position,
         'created_at': utcnow(), 'updated_at': utcnow()}
        for value, position in (('b.example.', 5), ('c.example.', -1), ('a.example.', 5))]) and None)
    for head in storage.read(zone_snapshot.heads, list(heads), 'two').values():
        assert head.name_servers == ('c.example.', 'ns1.example.net.', 'a.example.', 'b.example.')


@pytest.mark.parametrize('characters', [
    ''.join(map(chr, range(1, 160))), '\u2028\ufeff\uffff\U0001f600', r'"\u0041\\"'])
def test_a_domain_is_read_with_the_types_and_the_text_that_were_written(storage: Storage, characters: str) -> None:
    key = storage.run(insert_zone)
    second, micro = (datetime.datetime(2026, 1, 2, 3, 4, 5, part, datetime.timezone.utc) for part in (0, 6))
    storage.run(lambda tx: tx.execute(domains.update().where(domains.c.id == key).values(
        description=characters, serial=2 ** 32 - 1, action=Action.DELETE, abandoned=True, locked_by_admin=True,
        former_until=second, changed_at=micro, converged_at=None)) and None)
    select = domain_store.DOMAINS.select.where(domains.c.id == key)
    as_columns, = storage.read(lambda tx: tx.execute(select).all())
    for read in (domain_store.get, domain_store.lock, lambda tx, key: domain_store.lock_for(tx, key, new_id())[0]):
        domain = storage.run(read, key)
        assert repr(domain) == repr(Domain(*as_columns)) and domain is not None
        assert (domain.description, domain.former_until, domain.changed_at, domain.converged_at) == (
            characters, second, micro, None)
    with count_statements(storage) as counter:
        assert storage.read(domain_store.get_many, [key, new_id()]) == {key: domain}
    assert counter.total() == 1


def test_records_of_several_zones_are_counted_together(storage: Storage) -> None:
    keys = [storage.run(lambda tx: insert_zone(tx, name=f'z{number}.example.')) for number in range(3)]
    storage.run(lambda tx: tx.execute(records.update().where(records.c.domain_id == keys[1]).values(
        task=Task.DELETE, status=Status.PENDING)) and None)
    assert storage.read(zone_snapshot.counts, [*keys, new_id()], 30) == {keys[0]: 15, keys[2]: 15}
    assert storage.read(zone_snapshot.counts, keys, 29) is None


def test_a_zone_without_records_has_a_head_only(storage: Storage) -> None:
    only_soa = '@ IN SOA ns1.example.net. a.example.com. 4294967295 1 2 3 4\n'
    key = storage.run(lambda tx: insert_zone(tx, '$TTL 300\n' + only_soa, pool_name='two'))
    ((head, contents),) = storage.stream(versions.permitted_pages, key)
    assert (head.serial, list(contents)) == (4294967295, [])
    assert list(storage.stream(versions.permitted_pages, new_id())) == []
    assert storage.read(zone_snapshot.heads, [], 'two') == {}


def test_small_zones_are_read_together(storage: Storage) -> None:
    ids = [storage.run(lambda tx, name=name: insert_zone(tx, EXAMPLE, name=f'{name}.example.', pool_name='two'))
           for name in 'abc']
    storage.run(lambda tx: tx.execute(domains.update().where(domains.c.id == ids[1]).values(action=Action.DELETE))
                and None)
    with count_statements(storage) as counter:
        found = storage.read(zone_snapshot.small_zones, [*ids, new_id()], 45)
    assert counter.total() == 1
    assert found is not None and sorted(found) == sorted([ids[0], ids[2]])
    for key, (serial, contents) in found.items():
        head = storage.read(zone_snapshot.head, key)
        assert head is not None and head.serial == serial
        assert sorted(contents) == sorted(
            row for _, page in storage.stream(versions.permitted_pages, key) for row in page)
    assert storage.read(zone_snapshot.small_zones, ids, 44) is None, 'they have 45 records together'
    assert storage.read(zone_snapshot.small_zones, [new_id()], 0) == {}


def test_that_a_zone_is_not_small_is_found_without_reading_it_for_each_record(postgresql: PostgreSQL) -> None:
    """PostgreSQL made its statistics while the zone was imported, when there were no records to be seen."""
    url, many = postgresql.create_database(), 5000
    migrate.upgrade(url)

    def fill(tx: Tx) -> str:
        key = insert_zone(tx)
        sets = [RecordSet(f'h{number}.example.com.', 'A', id=set_id, domain_id=key)
                for number, set_id in enumerate(new_ids(many))]
        recordsets_of.insert(tx, sets, utcnow())
        recordsets_of.insert_records(tx, 1, ((key, each.id, '192.0.2.1', bytes(4)) for each in sets), utcnow())
        with storage.engine.connect() as other:
            other.exec_driver_sql('ANALYZE records, recordsets')
        return key

    def rows_read(tx: Tx, key: str) -> int:
        assert zone_snapshot.small_zones(tx, [key], 100) is None
        return int(tx.exec_driver_sql(
            'SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables '
            "WHERE relname IN ('records', 'recordsets')").scalar_one())

    with contextlib.closing(Storage(url)) as storage:
        assert storage.read(rows_read, storage.run(fill)) < 1000


def test_head_and_records_agree_while_somebody_writes(storage: Storage) -> None:
    key = storage.run(insert_zone)
    over = threading.Event()
    seen: set[int] = set()

    def write(tx: sa.Connection, serial: int) -> None:
        set_serial(tx, key, serial)
        tx.execute(records.update().where(records.c.domain_id == key).values(wire=serial.to_bytes(4, 'big')))

    storage.run(write, 1)

    def keep_writing() -> None:
        serial = 1
        while not over.is_set():
            serial += 1
            storage.run(write, serial)

    def look() -> bool:
        pages = list(storage.stream(versions.permitted_pages, key))
        (serial,) = {head.serial for head, _ in pages}
        seen.add(serial)
        assert {wire for _, page in pages for _, _, _, wire in page} == {serial.to_bytes(4, 'big')}
        return len(seen) >= 20

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(keep_writing)
        try:
            wait_until(lambda: look() or writing.done(), 'twenty serials are seen', pause=0.001)
        finally:
            over.set()
        writing.result()


def test_a_domain_that_has_been_pending_for_a_while_is_unsettled(storage: Storage) -> None:
    now = utcnow()
    for seconds, name in ((-10, 'old'), (0, 'now')):
        key = storage.run(lambda tx: insert_zone(tx, EXAMPLE, name=f'{name}.example.'))
        storage.run(lambda tx: tx.execute(domains.update().where(domains.c.id == key).values(
            status=Status.PENDING, updated_at=now + datetime.timedelta(seconds=seconds))) and None)
        waiting = storage.read(server_statuses.look, 'default', [], now, datetime.timedelta(seconds=5))
        assert not waiting.has_due and waiting.has_unsettled
    found = storage.read(domain_store.unsettled, 'default', now, datetime.timedelta(seconds=5), '', 10)
    assert {domain.name for domain in found} == {'old.example.'}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zones have many pages."""
    monkeypatch.setattr(zone_snapshot, '_PAGE', 3)


def contents(pages: Iterator[tuple[ZoneHead, Sequence[ZoneRecord]]]) -> list[ZoneRecord]:
    """The records of all pages, sorted; all pages have the same head."""
    heads, records_of_pages = zip(*pages)
    assert len(set(heads)) == 1
    return sorted(itertools.chain(*records_of_pages), key=repr)


@pytest.mark.usefixtures('small')
def test_records_are_sent_whatever_their_status_but_those_that_go(storage: Storage) -> None:
    key = storage.run(lambda tx: insert_zone(tx, big_zone(40), name='example.org.'))
    of_host = {number: records.c.recordset_id.in_(sa.select(recordsets.c.id).where(
        recordsets.c.name == f'host{number}.example.org.')) for number in range(6)}
    for number, (task, status) in enumerate([
            (Task.ADD, Status.PENDING), (Task.UPDATE, Status.ERROR), (Task.DELETE, Status.PENDING),
            (Task.DELETE, Status.ERROR), (Task.NONE, Status.DELETED)]):
        storage.run(lambda tx: tx.execute(records.update().where(of_host[number]).values(
            task=task, status=status)) and None)
    sent = contents(storage.stream(versions.permitted_pages, key))
    assert len(sent) == len(set(sent)) == 40 - 3 + 1
    assert not {f'host{number}.example.org.' for number in (2, 3, 4)} & {name for name, *_ in sent}


@pytest.mark.usefixtures('small')
def test_a_zone_that_changes_while_it_is_read_is_sent_as_it_was(storage: Storage) -> None:
    key = storage.run(lambda tx: insert_zone(tx, big_zone(40), name='example.org.'))
    before = contents(storage.stream(versions.permitted_pages, key))
    found = storage.stream(versions.permitted_pages, key)
    first = next(found)

    def change(tx: sa.Connection) -> None:
        set_serial(tx, key, 8)
        tx.execute(records.update().where(records.c.domain_id == key).values(wire=b'\0\0\0\0'))

    storage.run(change)
    assert contents(itertools.chain([first], found)) == before
    assert contents(storage.stream(versions.permitted_pages, key)) != before


@pytest.mark.usefixtures('small')
def test_a_record_whose_status_changes_while_the_zone_is_read_is_sent_once(storage: Storage) -> None:
    key = storage.run(lambda tx: insert_zone(tx, big_zone(40), name='example.org.'))
    storage.run(lambda tx: tx.execute(records.update().values(task=Task.ADD, status=Status.PENDING)) and None)
    before = contents(storage.stream(versions.permitted_pages, key))
    found = storage.stream(versions.permitted_pages, key)
    first = next(found)
    storage.run(lambda tx: tx.execute(records.update().values(task=Task.NONE, status=Status.ACTIVE)) and None)
    assert contents(itertools.chain([first], found)) == before
    assert len(before) == len(set(before)) == 40 + 1


def test_postgresql_returns_the_next_page_while_one_is_used(postgresql: PostgreSQL) -> None:
    url = postgresql.create_database()
    migrate.upgrade(url)
    workers = Threads().workers(1, 'test')
    with contextlib.closing(Storage(url)) as storage:
        key = storage.run(insert_big_zone, 3 * zone_snapshot._PAGE)
        for is_whole in (True, False):
            with count_statements(storage) as counter:
                found = storage.stream(versions.permitted_pages, key, functools.partial(one_ahead, workers))
                first = next(found)
                wait_until(lambda: counter[str(zone_snapshot._FETCH)] == 1, 'the second page is fetched')
            if is_whole:
                assert (contents(itertools.chain([first], found))
                        == contents(storage.stream(versions.permitted_pages, key)))
            found.close()
            assert storage.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    workers.stop()


@pytest.mark.usefixtures('small')
def test_a_zone_that_is_not_read_to_its_end_gives_its_connection_back(storage: Storage) -> None:
    key = storage.run(lambda tx: insert_zone(tx, big_zone(40), name='example.org.'))
    pages = storage.stream(versions.permitted_pages, key)
    next(pages)
    pages.close()
    assert storage.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    assert len(contents(storage.stream(versions.permitted_pages, key))) == 41, 'what was not read is not read now'
