"""The zones of a database of Designate are copied, and followed when none or one has changed."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Sequence

from benchmarks import report
from designate_pool.cmd.takeover import lists
from designate_pool.cmd.takeover.zone_copy import CopyReport, ZoneCopy
from designate_pool.model import Pool, utcnow
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage
from testing import designate as theirs
from testing.databases import MariaDB, PostgreSQL

DATABASES = {'mariadb': MariaDB, 'postgresql': PostgreSQL}
POOL = 'default'


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('takeover', {'zones': options.zones, 'recordsets of each': options.recordsets,
                                        'database': options.database})
    with DATABASES[options.database]() as server:
        ours = server.create_database()
        migrate.upgrade(ours)
        with (contextlib.closing(theirs.new(server.create_database(), POOL)) as designate,
              contextlib.closing(Storage(ours)) as storage):
            designate.run(theirs.fill, options.zones, options.recordsets)
            pool, = lists.find_pools(designate, [POOL])
            storage.run(lists.write_pool, pool, Pool(POOL), utcnow())
            copying = ZoneCopy(designate, storage, [theirs.POOL_ID])
            copied, seconds = _timed(copying)
            assert copied.zones == options.zones and not copied.refused
            result.add('recordsets copied in a second', copied.recordsets / seconds, '1/s')
            _, seconds = _timed(copying)
            result.add('a pass when no zone has changed', seconds * 1000, 'ms')
            zone = designate.run(theirs.insert_zone, 'new.example.net.')
            found, seconds = _timed(copying)
            assert found.zones == 1, zone
            result.add('a pass when one zone is new', seconds * 1000, 'ms')
    result.finish(options.json)
    return 0


def _timed(copying: ZoneCopy) -> tuple[CopyReport, float]:
    started = time.perf_counter()
    return copying.run(), time.perf_counter() - started


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('takeover', (__doc__ or '').partition('\n')[0])
    parser.add_argument('--zones', type=int, default=2000)
    parser.add_argument('--recordsets', type=int, default=50, help='of each zone, besides SOA and NS')
    parser.add_argument('--database', choices=sorted(DATABASES), default='mariadb')
    options = parser.parse_args(argv)
    if options.quick:
        options.zones, options.recordsets = 100, 10
    return options


if __name__ == '__main__':
    sys.exit(main())
