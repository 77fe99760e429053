"""The history of a large zone: how much room a year of small changes takes, and how fast a version from then is read.

Each change gives one host another address, through Central and with all that a request does but HTTP.  The clock of the
database is moved on with them.  The statements of a change are counted at the end, when all versions are there.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from benchmarks import report
from benchmarks.queries import DATABASES
from benchmarks.transfer_data import NAME, fill
from designate_pool.central.service import Central
from designate_pool.model import Context, RecordChange, utcnow
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.runtime import Threads
from designate_pool.storage import queries
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import domains
from testing.databases import count_statements
from testing.settings import central_settings

_WHO = Context(all_projects=True, user='benchmark', address='192.0.2.1')
#: By database, what gives the octets of it, or of the versions alone where that can be told.
_SIZES = {
    'sqlite': ('VACUUM', 'SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()'),
    'mysql': ('OPTIMIZE TABLE zone_versions', 'SELECT data_length + index_length FROM information_schema.tables '
                                              "WHERE table_schema = DATABASE() AND table_name = 'zone_versions'"),
    'postgresql': ('VACUUM FULL zone_versions', "SELECT pg_total_relation_size('zone_versions')")}


class _Nobody:
    """Takes what is cast to pool managers."""

    def cast(self, *arguments: Any, **named: Any) -> None:
        return

    def call(self, *arguments: Any, **named: Any) -> None:
        raise AssertionError('nothing is called')


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('history', {'records': options.records, 'days': options.days, 'a day': options.changes,
                                       'database': options.database})
    with contextlib.ExitStack() as end:
        url = DATABASES[options.database](end)
        domain_id = fill(url, options.records)
        storage = Storage(url)
        end.callback(storage.close)
        central = Central(storage, PoolManagerClient(_Nobody()), Threads(),
                          settings=central_settings())
        end.callback(central.stop)
        before = _size(url)
        began = _play(storage, central, domain_id, options)
        result.add('versions in the database', (_size(url) - before) / 2 ** 20, 'MiB')
        with count_statements(storage) as counter:
            _change(central, domain_id, 0, 1)
        result.add('statements for a change', counter.total(), '')
        for title, at in (('a year ago' if options.days == 365 else 'of the first day', began), ('now', utcnow())):
            _read(storage, domain_id, at, title, result)
    result.finish(options.json)
    return 0


def _play(storage: Storage, central: Central, domain_id: str, options: argparse.Namespace) -> datetime:
    """Make the changes; the time after the first of them."""
    dice = random.Random(options.records)
    moment = utcnow() - timedelta(days=options.days)
    storage.run(lambda tx: tx.execute(sa.update(domains).values(created_at=moment)) and None)
    storage.now = lambda: moment  # type: ignore[method-assign]
    pause = timedelta(days=1) / options.changes
    _change(central, domain_id, 0, 0)
    began = moment = moment + pause / 2
    for number in range(options.days * options.changes):
        moment += pause
        _change(central, domain_id, dice.randrange(options.records), number)
    del storage.now
    return began


def _change(central: Central, domain_id: str, host: int, number: int) -> None:
    central.apply_changes(_WHO, domain_id, [RecordChange(
        f'host{host}.{NAME}', 'A', (f'10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}',))])


def _read(storage: Storage, domain_id: str, at: datetime, title: str, result: report.Report) -> None:
    expired = at - timedelta(days=1)
    for what, work in {
        'the zone': lambda: storage.read(queries.use_rows_at, _WHO, domain_id, at, expired, lambda head, rows: head),
        'one name': lambda: storage.read(queries.use_rows_at, _WHO, domain_id, at, expired,
                                         lambda head, rows: list(rows), f'host1.{NAME}'),
        'all records': lambda: storage.read(queries.use_rows_at, _WHO, domain_id, at, expired,
                                            lambda head, rows: sum(1 for _ in rows)),
        'what has changed since': lambda: storage.read(queries.changes_between, _WHO, domain_id, at, utcnow(), expired),
    }.items():
        started = time.perf_counter()
        assert work()
        result.add(f'{what}, {title}', time.perf_counter() - started, 's')


def _size(url: str) -> int:
    """Octets of the database, or of its versions."""
    engine = sa.create_engine(url, isolation_level='AUTOCOMMIT')
    try:
        with engine.connect() as connection:
            compact, query = _SIZES[engine.dialect.name]
            connection.exec_driver_sql(compact)
            return int(connection.exec_driver_sql(query).scalar_one())
    finally:
        engine.dispose()


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('history', 'The versions of a large zone: their size, and how fast they are read.')
    parser.add_argument('--records', type=int, default=1_000_000)
    parser.add_argument('--days', type=int, default=365)
    parser.add_argument('--changes', type=int, default=50, help='a day')
    parser.add_argument('--database', choices=tuple(DATABASES), default='sqlite')
    options = parser.parse_args(argv)
    if options.quick:
        options.records, options.days = min(options.records, 20_000), min(options.days, 20)
    return options


if __name__ == '__main__':
    sys.exit(main())
