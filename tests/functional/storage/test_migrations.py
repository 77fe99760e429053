"""The revision of this release and a made-up next one on each database, and what programs make of them."""

from __future__ import annotations

import ast
import contextlib
import itertools
import pathlib
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import alembic.autogenerate
import alembic.runtime.migration
import pytest
import sqlalchemy as sa

from designate_pool import errors
from designate_pool.storage.sql import migrate, schema
from designate_pool.storage.sql.database import Storage, Tx, make_engine
from designate_pool.testing.processes import wait_until
from testing.databases import DatabaseServer
from tests.fixtures.next_release import UPGRADE, add_revision

THEN = datetime(2020, 2, 3, 4, 5, 6)
POOL, LIVE, LIVE_SET = (letter * 32 for letter in '124')
MAXIMUM = 4294967295
#: What programs make of the stored revisions does not depend on the dialect.
SQLITE = pytest.mark.parametrize('database_kind', ['sqlite'], indirect=True)


class Database:
    """A database whose tables are used as they are at its present revision, and not by the types of the schema."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine = make_engine(url)

    def insert(self, table: str, **values: Any) -> None:
        with self._engine.begin() as tx:
            tx.execute(sa.insert(sa.table(table, *map(sa.column, values))).values(
                {name: sa.literal(value) for name, value in values.items()}))

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """These columns of all rows, or all columns, in the order of their keys."""
        query = sa.select(*map(sa.column, columns)) if columns else sa.select(sa.text('*'))
        with self._engine.connect() as tx:
            return [tuple(row) for row in tx.execute(query.select_from(sa.table(table)).order_by(
                *map(sa.column, schema.metadata.tables[table].primary_key.columns.keys())))]

    def tables(self) -> set[str]:
        return set(sa.inspect(self._engine).get_table_names())

    def close(self) -> None:
        self._engine.dispose()


@pytest.fixture
def database(empty_database_url: str) -> Iterator[Database]:
    database = Database(empty_database_url)
    yield database
    database.close()


@contextlib.contextmanager
def with_pool(emptied: Storage) -> Iterator[Database]:
    with contextlib.closing(Database(emptied.engine.url.render_as_string(hide_password=False))) as database:
        database.insert('pools', id=POOL, created_at=THEN, updated_at=THEN, name='second')
        yield database


@pytest.fixture
def upgraded(emptied_database: Storage) -> Iterator[Database]:
    with with_pool(emptied_database) as database:
        yield database


def insert_domain(database: Database, key: str, name: str, **values: Any) -> None:
    database.insert('domains', **{
        'id': key, 'created_at': THEN, 'updated_at': THEN, 'pool_id': POOL, 'name': name, 'ttl': 3600,
        'email': 'hostmaster@example.com', 'refresh': 3600, 'retry': 600, 'expire': 86400, 'minimum': 300,
        'serial': 1, 'reversed_name': 'com.example.', **values})


def insert_recordset(database: Database, key: str, domain: str, **values: Any) -> None:
    database.insert('recordsets', **{'id': key, 'created_at': THEN, 'updated_at': THEN, 'domain_id': domain,
                                     'name': 'www.example.com.', 'type': 'A', **values})


def insert_record(database: Database, key: str, recordset: str, domain: str, **values: Any) -> None:
    database.insert('records', **{'id': key, 'created_at': THEN, 'updated_at': THEN, 'domain_id': domain,
                                  'recordset_id': recordset, 'data': '192.0.2.1', 'wire': b'\xc0\x00\x02\x01',
                                  **values})


def test_two_upgrades_at_once_are_one(database: Database) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(migrate.upgrade, [database.url] * 2))
    assert migrate.current(database.url) == migrate.head()
    assert len(database.rows('pools', 'id')) == 1


def test_the_first_upgrade_makes_the_default_pool_and_a_second_one_changes_nothing(database: Database) -> None:
    assert migrate.current(database.url) is None
    migrate.upgrade(database.url)
    assert migrate.current(database.url) == migrate.head()
    assert database.tables() == {*schema.metadata.tables, 'alembic_version'}
    (row,) = database.rows('pools', 'id', 'name', 'provisioner', 'version')
    assert re.fullmatch('[0-9a-f]{32}', row[0]) and row[1:] == ('default', 'unmanaged', 1)
    assert database.rows('pool_attributes', 'id') == []
    before = everything(database)
    migrate.upgrade(database.url)
    assert everything(database) == before
    migrate.downgrade(database.url, 'base')
    assert (migrate.current(database.url), database.tables()) == (None, {'alembic_version'})


def test_rows_survive_the_next_revision_and_the_way_back(
        database: Database, installed_migrations: pathlib.Path) -> None:
    migrate.upgrade(database.url)
    database.insert('pools', id=POOL, created_at=THEN, updated_at=THEN, name='second')
    insert_domain(database, LIVE, 'example.com.')
    fill_api_tables(database)
    before = everything(database)
    add_revision(installed_migrations)
    migrate.upgrade(database.url)
    assert migrate.current(database.url) == migrate.head() == '0002'
    assert migrate.revisions(database.url).oldest == '0001'
    assert database.rows('domains', 'next') == [(0,)] and 'next_things' in database.tables()
    migrate.downgrade(database.url, '-1')
    assert (migrate.current(database.url), everything(database)) == ('0001', before)


def fill_api_tables(database: Database) -> None:
    """A row in each table that the API has."""
    made = {'created_at': THEN, 'updated_at': THEN}
    database.insert('quotas', project_id='red', resource='zones', hard_limit=-1, **made)
    database.insert('tsigkeys', id='a' * 32, name='key.example.com.', algorithm='hmac-sha256', secret='c2VjcmV0',
                    scope='ZONE', resource_id=LIVE, **made)
    database.insert('zone_tasks', id='b' * 32, kind='IMPORT', domain_id=LIVE, **made)
    database.insert('zone_task_pieces', task_id='b' * 32, number=0, content=b'\0\xff')
    database.insert('service_statuses', id='c' * 32, service_name='central', hostname='host.example.com',
                    heartbeated_at=THEN, stats='{}', capabilities='{}', **made)


def test_the_tables_of_the_api_refuse_what_cannot_be(upgraded: Database) -> None:
    insert_domain(upgraded, LIVE, 'example.com.')
    fill_api_tables(upgraded)
    assert upgraded.rows('zone_tasks', 'status', 'project_id') == [('PENDING', '')]
    assert upgraded.rows('service_statuses', 'status') == [('UP',)]
    made = {'created_at': THEN, 'updated_at': THEN}
    key = {'algorithm': 'hmac-sha256', 'secret': 'c2VjcmV0', 'resource_id': LIVE, **made}
    service = {'hostname': 'host.example.com', 'heartbeated_at': THEN, 'stats': '{}', 'capabilities': '{}', **made}
    for table, values in (
            ('quotas', {'project_id': 'red', 'resource': 'zones', 'hard_limit': 1, **made}),
            ('tsigkeys', {'id': 'd' * 32, 'name': 'key.example.com.', 'scope': 'ZONE', **key}),
            ('tsigkeys', {'id': 'd' * 32, 'name': 'other.example.com.', 'scope': 'HOST', **key}),
            ('zone_tasks', {'id': 'd' * 32, 'kind': 'MOVE', **made}),
            ('zone_task_pieces', {'task_id': 'b' * 32, 'number': 0, 'content': b''}),
            ('service_statuses', {'id': 'd' * 32, 'service_name': 'api', 'status': 'WELL', **service})):
        with pytest.raises((sa.exc.IntegrityError, sa.exc.OperationalError)):
            upgraded.insert(table, **values)


def everything(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    return {table: database.rows(table) for table in schema.metadata.tables}


def test_the_upgraded_database_is_what_the_schema_says(empty_database_url: str) -> None:
    migrate.upgrade(empty_database_url)
    engine = make_engine(empty_database_url)
    with engine.begin() as tx:
        context = alembic.runtime.migration.MigrationContext.configure(tx, opts={'compare_type': True})
        assert alembic.autogenerate.compare_metadata(context, schema.metadata) == []
        upgraded = described(tx)
    with engine.begin() as tx:
        tables = sa.MetaData()
        tables.reflect(tx)
        tables.drop_all(tx)
        schema.metadata.create_all(tx)
    with engine.begin() as tx:
        assert described(tx) == upgraded
    engine.dispose()


def described(tx: Tx) -> dict[str, Any]:
    """All that the database tells of our tables, CHECKs included, which alembic does not compare."""
    inspector = sa.inspect(tx)
    return {table: {
        'columns': {column['name']: (str(column['type']), column['nullable'], column['default'])
                    for column in inspector.get_columns(table)},
        'primary key': inspector.get_pk_constraint(table)['constrained_columns'],
        'checks': sorted((check['name'], check['sqltext']) for check in inspector.get_check_constraints(table)),
        'unique': sorted((unique['name'], unique['column_names'])
                         for unique in inspector.get_unique_constraints(table)),
        'foreign keys': sorted((key['name'], key['constrained_columns'], key['referred_table'], key['options'])
                               for key in inspector.get_foreign_keys(table)),
        'indexes': sorted((index['name'], index['column_names'], bool(index['unique']))
                          for index in inspector.get_indexes(table)),
    } for table in inspector.get_table_names() if table != 'alembic_version'}


def test_serials_of_32_bits_are_stored_and_compared(upgraded: Database) -> None:
    numbers = [0, 2147483647, 2147483648, 3000000000, MAXIMUM]
    for number in numbers:
        insert_domain(upgraded, f'{number:032}', f'{number}.example.', serial=number, reported_serial=number)
    storage = Storage(upgraded.url)
    serial, reported = schema.domains.c.serial, schema.domains.c.reported_serial
    for number in numbers:
        newer = sa.select(serial).where(serial > number).order_by(serial)
        same = sa.select(serial).where(reported == number)
        assert storage.read(lambda tx: tx.execute(newer).scalars().all()) == [each for each in numbers if each > number]
        assert storage.read(lambda tx: tx.execute(same).scalars().all()) == [number]
    storage.close()


def test_a_serial_of_more_bits_is_refused(upgraded: Database) -> None:
    for number in (-1, MAXIMUM + 1):
        with pytest.raises((sa.exc.IntegrityError, sa.exc.OperationalError), match='ck_domains_serial'):
            insert_domain(upgraded, LIVE, 'example.com.', serial=number)


def test_only_the_eight_pairs_of_task_and_status_are_stored(upgraded: Database) -> None:
    insert_domain(upgraded, LIVE, 'example.com.')
    insert_recordset(upgraded, LIVE_SET, LIVE)
    stored = []
    for number, (task, status) in enumerate(itertools.product(['ADD', 'UPDATE', 'DELETE', 'NONE'],
                                                              ['PENDING', 'ERROR', 'ACTIVE', 'DELETED'])):
        with contextlib.suppress(sa.exc.IntegrityError, sa.exc.OperationalError):
            insert_record(upgraded, f'{number:032}', LIVE_SET, LIVE, serial_number=1, task=task, status=status)
            stored.append((task, status))
    assert stored == upgraded.rows('records', 'task', 'status') == [
        ('ADD', 'PENDING'), ('ADD', 'ERROR'), ('UPDATE', 'PENDING'), ('UPDATE', 'ERROR'),
        ('DELETE', 'PENDING'), ('DELETE', 'ERROR'), ('NONE', 'ACTIVE'), ('NONE', 'DELETED')]


def test_names_differ_by_every_octet_and_sort_by_octets(upgraded: Database) -> None:
    names = ['a-b.example.', 'a.example.', 'aa.example.', 'ab.example.', '\\065.example.', '_a.example.']
    for number, name in enumerate(names):
        insert_domain(upgraded, f'{number:032}', name)
    storage = Storage(upgraded.url)
    query = sa.select(schema.domains.c.name).order_by(schema.domains.c.name)
    assert storage.read(lambda tx: tx.execute(query).scalars().all()) == sorted(names)
    storage.close()


def test_a_migration_that_a_deadlock_ends_is_run_again(
        postgresql: DatabaseServer, installed_migrations: pathlib.Path) -> None:
    url = postgresql.create_database()
    migrate.upgrade(url)
    add_revision(installed_migrations, "    op.add_column('domains', sa.Column('next', sa.Integer))\n"
                 "    op.add_column('recordsets', sa.Column('next', sa.Integer))\n")
    engine = make_engine(url)
    waiting = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'recordsets'::regclass")
    try:
        with engine.connect() as program, engine.connect() as looking, ThreadPoolExecutor(1) as upgrading:
            # So that it is the migration that finds the deadlock.
            program.exec_driver_sql("SET deadlock_timeout = '1h'; SET lock_timeout = '60s'")
            program.exec_driver_sql('SELECT count(*) FROM recordsets')
            done = upgrading.submit(migrate.upgrade, url)
            wait_until(lambda: looking.scalar(waiting), 'the migration waits for recordsets', pause=0.01)
            program.exec_driver_sql('UPDATE domains SET serial = serial')  # goes on when the migration is ended
            assert not done.done()
            program.commit()
            done.result(60)
            counted = sa.text('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()')
            wait_until(lambda: (looking.rollback(), looking.scalar(counted))[1], 'a deadlock is counted')
        assert migrate.current(url) == migrate.head()
    finally:
        engine.dispose()


@SQLITE
def test_a_program_refuses_a_database_of_another_revision(
        empty_database_url: str, installed_migrations: pathlib.Path) -> None:
    storage = Storage(empty_database_url)
    with pytest.raises(errors.DatabaseNotReady) as caught:
        migrate.check(storage)
    assert caught.value.kwargs == {'found': 'none', 'wanted': '0001'}
    migrate.upgrade(empty_database_url)
    migrate.check(storage)
    add_revision(installed_migrations)
    with pytest.raises(errors.DatabaseNotReady) as caught:
        migrate.check(storage)
    assert caught.value.kwargs == {'found': '0001', 'wanted': '0002'}
    migrate.upgrade(empty_database_url)
    migrate.check(storage)
    storage.close()


def test_the_migrations_are_found_in_an_installed_package(installed_migrations: pathlib.Path) -> None:
    assert migrate.folder() == installed_migrations
    url = f'sqlite:///{installed_migrations.parent}/database.sqlite'
    migrate.upgrade(url)
    assert migrate.current(url) == migrate.head()


def test_a_new_revision_holds_what_the_database_lacks(installed_migrations: pathlib.Path) -> None:
    url = f'sqlite:///{installed_migrations.parent}/database.sqlite'
    migrate.upgrade(url)
    storage = Storage(url)
    storage.run(lambda tx: tx.exec_driver_sql('DROP INDEX ix_records_recordset_id').close())
    storage.close()
    head = int(migrate.head())
    migrate.revise(url, 'find records again')
    text = (installed_migrations / 'versions' / f'{head + 1:04}_find_records_again.py').read_text()
    assert f"down_revision = '{head:04}'" in text and text.count('ix_records_recordset_id') == 2
    migrate.upgrade(url)
    migrate.revise(url, 'nothing')
    text = (installed_migrations / 'versions' / f'{head + 2:04}_nothing.py').read_text()
    assert re.search(r'def upgrade\(\) -> None:\n(    #.*\n)*    pass\n', text), text


#: What a migration may do while programs that do not know it work on the tables.
ADDING = {'create_table', 'create_index', 'add_column', 'batch_alter_table', 'create_check_constraint', 'f', 'execute',
          'bulk_insert', 'get_bind', 'get_context'}


def breaking(source: str) -> list[str]:
    """The operations of a migration, without ``downgrade``, that programs of the version before do not live with.

    A CHECK or index may be replaced under its own name; what an ``execute`` does is for its reader.
    """
    calls = [each for node in ast.parse(source).body if getattr(node, 'name', '') != 'downgrade'
             for each in ast.walk(node) if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)
             and ast.unparse(each.func.value) in ('op', 'batch')]
    created = {(each.func.attr.removeprefix('create_').removeprefix('check_'), ast.unparse(each.args[0])): each.lineno
               for each in calls if each.func.attr in ('create_index', 'create_check_constraint')}
    return [each.func.attr for each in calls if each.func.attr not in ADDING and each.lineno >= created.get(
        (each.func.attr.removeprefix('drop_'), ast.unparse(each.args[0])), 0) or each.func.attr == 'add_column'
        and 'nullable=False' in ast.unparse(each) and 'server_default' not in ast.unparse(each)]


def test_migrations_only_add_or_say_that_they_do_not() -> None:
    """Those after the first, which makes the tables."""
    texts = {path.name: path.read_text() for path in (migrate.folder() / 'versions').glob('[0-9]*_*.py')
             if path.name > '0001_z'}
    assert {name: found for name, text in texts.items() if (found := breaking(text))
            and not re.search('^breaks_older_programs = True$', text, re.MULTILINE)} == {}


@pytest.mark.parametrize(('body', 'found'), [
    (UPGRADE.strip(), 0),
    ("op.add_column('pools', sa.Column('x', sa.Integer))", 0),
    ("op.add_column('pools', sa.Column('x', sa.Integer, nullable=False, server_default='0'))", 0),
    ("op.add_column('pools', sa.Column('x', sa.Integer, nullable=False))", 1),
    ("op.drop_table('pools')", 1),
    ("with op.batch_alter_table('pools') as batch:\n        batch.drop_column('x')", 1),
    ("op.drop_index('i', 'pools')\n    op.create_index('i', 'pools', ['x'])", 0),
    ("op.create_index('i', 'pools', ['x'])\n    op.drop_index('i')", 1),
])
def test_what_only_adds_is_known(body: str, found: int) -> None:
    assert len(breaking(f'def upgrade():\n    {body}\n')) == found


@pytest.fixture
def newer(installed_migrations: pathlib.Path) -> Callable[[str, bool], None]:
    """Upgrades a database as a newer version would that has one more migration, which breaks older programs or not."""
    def upgrade(url: str, breaks: bool) -> None:
        path = add_revision(installed_migrations, breaks=breaks)
        migrate.upgrade(url)
        assert migrate.current(url) == migrate.head()
        path.unlink()
    return upgrade


@SQLITE
def test_a_program_goes_on_with_newer_tables_that_only_have_more(
        empty_database_url: str, newer: Callable[[str, bool], None]) -> None:
    newer(empty_database_url, False)
    storage = Storage(empty_database_url)
    migrate.check(storage)
    storage.close()
    migrate.upgrade(empty_database_url)  # what designate-pool-all does at its start
    assert int(migrate.current(empty_database_url) or 0) == int(migrate.head()) + 1


@SQLITE
def test_a_program_refuses_newer_tables_that_it_cannot_use(
        empty_database_url: str, newer: Callable[[str, bool], None]) -> None:
    newer(empty_database_url, True)
    storage = Storage(empty_database_url)
    with pytest.raises(errors.DatabaseTooNew) as caught:
        migrate.check(storage)
    storage.close()
    assert caught.value.kwargs == {'found': f'{int(migrate.head()) + 1:04}', 'wanted': migrate.head()}
    with pytest.raises(errors.DatabaseTooNew):
        migrate.upgrade(empty_database_url)
