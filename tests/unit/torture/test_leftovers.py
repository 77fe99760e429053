"""What is left over in a database is found; what belongs there is not."""

from __future__ import annotations

import datetime
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool.model import Action, Outcome, ServerState, Status, new_id, utcnow
from designate_pool.storage.sql import schema
from testing.databases import upgraded_sqlite
from testing.rows import default_pool_id, insert_domains
from tests.torture import leftovers

SERVER = 'aaaaaaaa000040008000000000000000'
LONG_AGO = datetime.timedelta(hours=1)


class Tables:
    """A database with one zone that is served by one server.

    :ivar url: of the database
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = sa.create_engine(url)
        now = utcnow()
        with self.engine.begin() as tx:
            self.zone, = insert_domains(tx, 1)
            tx.execute(schema.pool_servers.insert(), {
                'id': SERVER, 'created_at': now, 'updated_at': now, 'pool_id': default_pool_id(tx), 'label': 'x',
                'driver': 'bind9', 'state': ServerState.ACTIVE, 'state_since': now, 'fingerprint': ''})
        self.add_row(Action.CREATE)
        self.add_row(Action.UPDATE)

    def add_row(self, action: Action, **values: Any) -> None:
        now = utcnow()
        with self.engine.begin() as tx:
            tx.execute(schema.pool_manager_status.insert(), {
                'id': new_id(), 'created_at': now, 'updated_at': now, 'server_id': SERVER, 'domain_id': self.zone,
                'action': action, 'status': Outcome.SUCCESS, 'serial_number': 1, 'expected_serial': 1, **values})

    def set(self, table: sa.Table, **values: Any) -> None:
        with self.engine.begin() as tx:
            tx.execute(table.update().values(**values))

    def found(self, *shared: str) -> list[str]:
        """What is left over, without the names of the rows."""
        return [f'{table}: {what.partition(":")[0]}' for table, what in leftovers.find(self.url, shared, seconds=0)]


@pytest.fixture
def tables(tmp_path: pathlib.Path) -> Iterator[Tables]:
    made = Tables(upgraded_sqlite(tmp_path / 'pool.sqlite'))
    yield made
    made.engine.dispose()


def test_rows_of_a_deleted_zone(tables: Tables) -> None:
    tables.set(schema.domains, status=Status.DELETED, deleted=tables.zone)
    assert tables.found() == ['pool_manager_status: rows of zones that were deleted']
    with tables.engine.begin() as tx:
        tx.execute(schema.pool_manager_status.delete())
    assert tables.found() == []


@pytest.mark.parametrize(('ago', 'is_late'), [(LONG_AGO, True), (-LONG_AGO, False)], ids=['over', 'held'])
@pytest.mark.parametrize('column', ['claimed_until', 'next_attempt_at'])
def test_claims_and_due_rows(tables: Tables, column: str, ago: datetime.timedelta, is_late: bool) -> None:
    tables.set(schema.pool_manager_status, claimed_by='a pool manager', **{column: utcnow() - ago})
    expected = ['pool_manager_status: claims that nobody gave back, and rows that are due']
    assert tables.found() == (expected if is_late else [])


@pytest.mark.parametrize(('table', 'values', 'found'), [
    (schema.pool_manager_status, {'server_id': 'b' * 32}, 'pool_manager_status: rows of servers that do not exist'),
    (schema.domains, {'status': Status.PENDING, 'action': Action.UPDATE},
     'domains: zones that are neither ACTIVE nor DELETED'),
    (schema.domains, {'status': Status.ERROR}, 'domains: zones that are neither ACTIVE nor DELETED')])
def test_what_does_not_belong_there(tables: Tables, table: sa.Table, values: dict[str, Any], found: str) -> None:
    tables.set(table, **values)
    assert tables.found() == [found]


def test_marks_of_a_deleted_zone_but_for_ns_records_where_others_have_records(tables: Tables) -> None:
    with tables.engine.begin() as tx:
        tx.execute(schema.pool_manager_status.delete())
        name = tx.execute(sa.select(schema.domains.c.name)).scalar_one()
        tx.execute(schema.owned_rrsets.insert(), {'server_id': SERVER, 'domain_id': tables.zone, 'name': name,
                                                  'type': 'NS'})
    assert tables.found() == []
    tables.set(schema.domains, status=Status.DELETED, deleted=tables.zone)
    assert tables.found(name) == []
    assert tables.found() == tables.found('other.example.') == ['owned_rrsets: marks of zones that were deleted']
    tables.set(schema.owned_rrsets, name=f'www.{name}')
    assert tables.found(name) == ['owned_rrsets: marks of zones that were deleted']
