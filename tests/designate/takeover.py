"""``make test-migration``: ``designate-pool-manage designate`` with Designate itself, from PyPI.

First on the tables that it makes, filled without it; then with its services running, two BINDs and clients.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from designate_pool.cmd.manage import app
from designate_pool.storage.designate import tables
from designate_pool.storage.sql import schema
from designate_pool.storage.sql.database import Storage, Tx
from testing import designate as theirs
from testing.databases import DatabaseServer, MariaDB, PostgreSQL, upgraded_sqlite
from testing.processes import exit_on_sigterm
from tests.designate import whole

#: Columns that Designate fills and nobody reads here.
_UNREAD = {'zones': ('shard', 'reverse_name'), 'recordsets': ('zone_shard', 'reverse_name'),
           'records': ('zone_shard', 'hash')}
ZONES, RECORDSETS = 300, 20
#: Designate 23 cannot create a database on PostgreSQL: service_statuses is both a table and the type of a column in it,
#: and two tables have a constraint of the same name.  Its other columns are made here as it declares them.
_CREATE = '''
import sys
import sqlalchemy
from designate.storage.sqlalchemy.tables import metadata
tables = [table for table in metadata.sorted_tables if table.name != 'service_statuses']
for table in tables:
    table.constraints -= {each for each in table.constraints if isinstance(each, sqlalchemy.UniqueConstraint)}
metadata.create_all(sqlalchemy.create_engine(sys.argv[1]), tables=tables)
'''


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog='python -m tests.designate.takeover',
                                     description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--designate', type=_path, default=_path('.migration-venv'), metavar='VENV',
                        help='where designate is installed; %(default)s if not given')
    parser.add_argument('--zones', type=int, default=2000, metavar='COUNT',
                        help='that the running Designate has, at least 6; %(default)s if not given')
    parser.add_argument('--only', choices=('tables', 'running'), help='do only one of both')
    options = parser.parse_args(arguments)
    exit_on_sigterm()
    for kind in (MariaDB, PostgreSQL) if options.only != 'running' else ():
        with kind() as server, tempfile.TemporaryDirectory(prefix='designate-pool-takeover-') as folder:
            _take_over(options.designate, server, pathlib.Path(folder))
        print(f'{kind.__name__}: the tables are those that are read, and {ZONES} zones were copied.', flush=True)
    if options.only != 'tables':
        with tempfile.TemporaryDirectory(prefix='designate-pool-takeover-') as name, whole.a_way(
                options.designate, pathlib.Path(name), functools.partial(print, flush=True)) as way:
            way.go(options.zones)
    return 0


def _path(text: str) -> pathlib.Path:
    """One that also holds in the folder of a process."""
    return pathlib.Path(text).absolute()


def _take_over(venv: pathlib.Path, server: DatabaseServer, folder: pathlib.Path) -> None:
    url = server.create_database()
    conf = folder / 'designate.conf'
    conf.write_text(f'[storage:sqlalchemy]\nconnection = {url}\n')
    command = ([venv / 'bin' / 'designate-manage', '--config-file', conf, 'database', 'sync']
               if isinstance(server, MariaDB) else [venv / 'bin' / 'python', '-c', _CREATE, url])
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    ours = upgraded_sqlite(folder / 'ours.sqlite')
    (folder / 'pool.conf').write_text(f'[database]\nconnection = {ours}\n'
                                      '[backend:fake:11111111-1111-4111-8111-111111111111]\nhost = 127.0.0.1\n')
    with contextlib.closing(Storage(url)) as designate, contextlib.closing(Storage(ours)) as storage:
        designate.run(_fill_unread)
        designate.run(lambda tx: tx.execute(sa.delete(tables.pools)))
        designate.run(theirs.insert_pool)
        designate.run(theirs.fill, ZONES, RECORDSETS)
        designate.run(_fill_lists)
        command = ['--config-file', str(folder / 'pool.conf'), 'designate', 'copy', '--designate-conf', str(conf)]
        assert app.main(command, cfg.ConfigOpts()) == 0
        for table, their_table in ((schema.domains, tables.zones), (schema.recordsets, tables.recordsets),
                                   (schema.tlds, tables.tlds), (schema.blacklists, tables.blacklists),
                                   (schema.tsigkeys, tables.tsigkeys),
                                   (schema.zone_transfer_requests, tables.zone_transfer_requests)):
            assert _rows(storage, table, 'id') == _rows(designate, their_table, 'id') != set(), table.name
        assert _rows(storage, schema.quotas, 'project_id', 'resource', 'hard_limit') == _rows(
            designate, tables.quotas, 'tenant_id', 'resource', 'hard_limit') != set()


def _fill_unread(tx: Tx) -> None:
    """Have Designate's tables take rows without the columns that only Designate reads."""
    found = sa.inspect(tx)
    for table, columns in _UNREAD.items():
        kinds = {each['name']: each['type'].compile(tx.dialect) for each in found.get_columns(table)}
        for column in columns:
            change = (f'MODIFY {column} {kinds[column]} NULL' if tx.dialect.name == 'mysql'
                      else f'ALTER COLUMN {column} DROP NOT NULL')
            tx.exec_driver_sql(f'ALTER TABLE {table} {change}')


def _fill_lists(tx: Tx) -> None:
    zone = tx.execute(sa.select(tables.zones.c.id).limit(1)).scalar_one()
    theirs.insert(tx, tables.tlds, name='com')
    theirs.insert(tx, tables.blacklists, pattern='^bad\\.')
    theirs.insert(tx, tables.quotas, tenant_id='some-project', resource='zones', hard_limit=7)
    theirs.insert(tx, tables.tsigkeys, name='for-all', algorithm='hmac-sha256', secret='c2VjcmV0', scope='POOL',
                  resource_id=theirs.POOL_ID)
    theirs.insert(tx, tables.zone_transfer_requests, zone_id=zone, key='abcdefgh', tenant_id='some-project',
                  description='Take it', status='ACTIVE')


def _rows(storage: Storage, table: sa.Table, *columns: str) -> set[tuple[Any, ...]]:
    return set(storage.read(lambda tx: tx.execute(sa.select(*(table.c[name] for name in columns))).tuples().all()))


if __name__ == '__main__':
    sys.exit(main())
