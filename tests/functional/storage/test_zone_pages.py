"""Zones that are read page by page, on each database."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator, Sequence

import pytest
import sqlalchemy as sa

from designate_pool.concurrency import one_ahead
from designate_pool.model import Status, Task, ZoneHead, ZoneRecord
from designate_pool.runtime import Threads
from designate_pool.storage.serving import zone_snapshot
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import records, recordsets
from designate_pool.storage.zones import versions
from testing.databases import PostgreSQL, count_statements
from testing.processes import wait_until
from testing.zones import big_zone, insert_big_zone, insert_zone, set_serial


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
