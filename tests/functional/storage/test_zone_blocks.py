"""Zones whose records the database puts into wire form: the same as when Python does it."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator

import pymysql
import pytest
import sqlalchemy as sa

from designate_pool.concurrency import one_ahead
from designate_pool.minidns.zones import packing
from designate_pool.model import Status, Task, ZoneBlock, ZoneHead
from designate_pool.protocol import axfr_records, wire
from designate_pool.runtime import Threads
from designate_pool.storage.serving import mariadb_packing, zone_snapshot
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import domains, records, recordsets
from testing.databases import MariaDB, PostgreSQL
from testing.processes import wait_until
from testing.zones import EXAMPLE, big_zone, insert_big_zone, insert_zone, set_serial

ODD = EXAMPLE + r"""
long    IN TXT {long}
a.b.c   IN A   192.0.2.7
c 2147483647 IN A 192.0.2.8
d 86400 IN AAAA 2001:db8::d
e 0     IN A   192.0.2.9
{label} IN A   192.0.2.10
longest IN TXT {longest}
x\\y    IN A   192.0.2.11
_dmarc  IN TXT "a \\ and a . and a \" and a ; and \000\255"
""".format(long=' '.join(['"' + 'x' * 200 + '"'] * 3), label='l' * 63,
           longest=' '.join(['"' + 'y' * 255 + '"'] * 250))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zones are large and blocks are small."""
    monkeypatch.setattr(zone_snapshot, '_PAGE', 3)
    monkeypatch.setattr(mariadb_packing, '_FIRST', 4)
    monkeypatch.setattr(mariadb_packing, '_MOST', 5)
    monkeypatch.setattr(zone_snapshot, '_FIRST', zone_snapshot._RECORDS.limit(4))


def as_sent(pages: Iterator[tuple[ZoneHead, ZoneBlock]] | Iterator[tuple[ZoneHead, list[object]]]) -> list[bytes]:
    """The records of a transfer, sorted."""
    (head, first), rest = next(pages), pages
    found = []
    for count, octets in packing.bodies(head.name, axfr_records.pages(
            head, itertools.chain([first], (each for _, each in rest))), head.ttl):  # type: ignore[arg-type]
        at = 0
        for _ in range(count):
            end = wire.read_record(octets, at).end
            found.append(octets[at:end])
            at = end
        assert at == len(octets)
    return sorted(found)


@pytest.mark.usefixtures('small')
def test_records_of_every_kind_are_the_same(storage: Storage) -> None:
    key = storage.run(lambda tx: insert_zone(tx, ODD))
    sent = as_sent(storage.stream(zone_snapshot.blocks, key))
    assert sent == as_sent(storage.stream(zone_snapshot.pages, key))
    assert len(sent) == 15 + 9 + 2
    assert any(octets.startswith(b'\1c\xc0\x0c\0\1\0\1\x7f\xff\xff\xff\0\4') for octets in sent)


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
    sent = as_sent(storage.stream(zone_snapshot.blocks, key))
    assert sent == as_sent(storage.stream(zone_snapshot.pages, key))
    assert len(sent) == 40 - 3 + 1 + 2


@pytest.mark.usefixtures('small')
def test_ttls_are_those_of_now(storage: Storage) -> None:
    key = storage.run(lambda tx: insert_zone(tx, big_zone(9), name='example.org.'))
    for table, ttl in ((domains, 77), (recordsets, 78)):
        storage.run(lambda tx: tx.execute(table.update().values(ttl=ttl)) and None)
        sent = as_sent(storage.stream(zone_snapshot.blocks, key))
        assert sent == as_sent(storage.stream(zone_snapshot.pages, key))
        assert sum(b'\0\1\0\1' + ttl.to_bytes(4, 'big') in octets for octets in sent) == 9


@pytest.mark.usefixtures('small')
def test_a_zone_that_changes_while_it_is_read_is_sent_as_it_was(storage: Storage) -> None:
    key = storage.run(lambda tx: insert_zone(tx, big_zone(40), name='example.org.'))
    before = as_sent(storage.stream(zone_snapshot.blocks, key))
    found = storage.stream(zone_snapshot.blocks, key)
    first = next(found)

    def change(tx: sa.Connection) -> None:
        set_serial(tx, key, 8)
        tx.execute(records.update().where(records.c.domain_id == key).values(wire=b'\0\0\0\0'))

    storage.run(change)
    assert as_sent(itertools.chain([first], found)) == before
    assert as_sent(storage.stream(zone_snapshot.blocks, key)) != before


@pytest.mark.usefixtures('small')
def test_a_record_whose_status_changes_while_the_zone_is_read_is_sent_once(storage: Storage) -> None:
    key = storage.run(lambda tx: insert_zone(tx, big_zone(40), name='example.org.'))
    storage.run(lambda tx: tx.execute(records.update().values(task=Task.ADD, status=Status.PENDING)) and None)
    before = as_sent(storage.stream(zone_snapshot.blocks, key))
    found = storage.stream(zone_snapshot.blocks, key)
    first = next(found)
    storage.run(lambda tx: tx.execute(records.update().values(task=Task.NONE, status=Status.ACTIVE)) and None)
    assert as_sent(itertools.chain([first], found)) == before
    assert len(before) == len(set(before)) + 1 == 40 + 1 + 2, 'only the SOA is there twice'


def test_postgresql_returns_the_next_page_while_one_is_used(postgresql: PostgreSQL) -> None:
    url = postgresql.create_database()
    migrate.upgrade(url)
    workers = Threads().workers(1, 'test')
    with contextlib.closing(Storage(url)) as storage:
        key = storage.run(insert_big_zone, 3 * zone_snapshot._PAGE)
        for is_whole in (True, False):
            with storage.count_statements() as counter:
                found = storage.stream(zone_snapshot.blocks, key, functools.partial(one_ahead, workers))
                first = next(found)
                wait_until(lambda: counter[str(zone_snapshot._FETCH)] == 1, 'the second page is fetched')
            if is_whole:
                assert (as_sent(itertools.chain([first], found))
                        == as_sent(storage.stream(zone_snapshot.blocks, key)))
            found.close()
            assert storage.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    workers.stop()


@pytest.fixture
def on_mariadb(mariadb: MariaDB) -> Iterator[Storage]:
    url = mariadb.create_database()
    migrate.upgrade(url)
    storage = Storage(url, pool_size=4)
    yield storage
    storage.close()


def in_use(storage: Storage) -> int:
    return int(storage.engine.pool.checkedout())  # type: ignore[attr-defined]


def test_mariadb_reads_a_large_zone_with_two_connections_and_gives_them_back(on_mariadb: Storage) -> None:
    key = on_mariadb.run(insert_big_zone, 6000)
    found = on_mariadb.stream(zone_snapshot.blocks, key)
    assert [in_use(on_mariadb) for _ in found][:3] == [1, 2, 2]
    assert in_use(on_mariadb) == 0
    found = on_mariadb.stream(zone_snapshot.blocks, key)
    next(found), next(found)
    found.close()
    assert in_use(on_mariadb) == 0
    assert len(as_sent(on_mariadb.stream(zone_snapshot.blocks, key))) == 6003, 'what was not read is not read now'


def test_mariadb_reads_a_large_zone_with_one_connection_if_more_are_not_to_be_had(on_mariadb: Storage) -> None:
    key = on_mariadb.run(insert_big_zone, 6000)
    whole = as_sent(on_mariadb.stream(zone_snapshot.blocks, key))
    with on_mariadb.engine.connect(), on_mariadb.engine.connect():  # half of them
        found = on_mariadb.stream(zone_snapshot.blocks, key)
        assert as_sent((each for each in found if in_use(on_mariadb) == 3)) == whole

    def refuse(*arguments: object) -> None:
        raise pymysql.err.OperationalError(1040, 'Too many connections')

    on_mariadb.engine.dispose()
    found = on_mariadb.stream(zone_snapshot.blocks, key)
    first = next(found)
    sa.event.listen(on_mariadb.engine, 'do_connect', refuse, insert=True)
    assert as_sent(itertools.chain([first], found)) == whole
    sa.event.remove(on_mariadb.engine, 'do_connect', refuse)


def test_a_read_whose_second_connection_breaks_is_an_error(on_mariadb: Storage) -> None:
    key = on_mariadb.run(insert_big_zone, 20000)
    with on_mariadb.engine.connect() as tx:
        mine = tx.exec_driver_sql('SELECT connection_id()').scalar_one()
        found = on_mariadb.stream(zone_snapshot.blocks, key)
        next(found), next(found)
        begun = tx.exec_driver_sql(
            'SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> %s '
            'ORDER BY trx_started DESC, trx_mysql_thread_id DESC', (mine,)).scalars().all()
        tx.exec_driver_sql(f'KILL {begun[0]}')
    with pytest.raises((pymysql.err.OperationalError, sa.exc.OperationalError)):
        list(found)
    assert in_use(on_mariadb) == 0
    assert len(as_sent(on_mariadb.stream(zone_snapshot.blocks, key))) == 20003


@pytest.mark.parametrize('octets', [1024, 40_000])
def test_a_value_that_mariadb_cuts_off_is_an_error(on_mariadb: Storage, octets: int) -> None:
    """In the first block, and in one that is read ahead."""
    key = on_mariadb.run(insert_big_zone, 6000)

    def limit(connection: pymysql.Connection, *others: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f'SET group_concat_max_len = {octets}')

    sa.event.listen(on_mariadb.engine, 'checkout', limit)
    with pytest.raises(ValueError, match='cuts off'):
        list(on_mariadb.stream(zone_snapshot.blocks, key))
    assert in_use(on_mariadb) == 0


def test_a_warning_that_mariadb_does_not_list_may_be_that_one(on_mariadb: Storage) -> None:
    def limit(connection: pymysql.Connection, *others: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute('SET group_concat_max_len = 1024, max_error_count = 0')

    key = on_mariadb.run(insert_big_zone, 6000)
    sa.event.listen(on_mariadb.engine, 'checkout', limit)
    with pytest.raises(ValueError, match='cuts off'):
        list(on_mariadb.stream(zone_snapshot.blocks, key))


def test_a_warning_about_anything_else_is_none_about_the_zone(on_mariadb: Storage) -> None:
    key = on_mariadb.run(insert_big_zone, 6000)
    whole = as_sent(on_mariadb.stream(zone_snapshot.blocks, key))
    warned = []

    def warn(connection: sa.Connection, cursor: object, statement: str, parameters: object, context: object,
             executemany: bool) -> tuple[str, object]:
        if statement.startswith('SELECT count(*), '):
            warned.append(statement)
            statement = statement.replace('count(*)', "count(*) + 0 * CAST('1 host' AS INTEGER)", 1)
        return statement, parameters

    sa.event.listen(on_mariadb.engine, 'before_cursor_execute', warn, retval=True)
    assert as_sent(on_mariadb.stream(zone_snapshot.blocks, key)) == whole and warned


def test_mariadb_makes_blocks_of_a_large_zone_that_fit_into_messages(on_mariadb: Storage) -> None:
    storage = on_mariadb
    key = storage.run(insert_big_zone, 6000)
    found = [block for _, block in storage.stream(zone_snapshot.blocks, key)]
    assert sum(block.count + len(block.records) for block in found) == 6001
    assert sum(len(block.records) for block in found) == 1  # the name servers, whose owner is the zone
    assert max(len(block.octets) for block in found) <= packing.ROOM
    assert max(len(block.octets) for block in found) > packing.ROOM // 2
