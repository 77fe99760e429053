"""How the databases go about each statement of the daily work, with a million rows in each large table.

Every statement is explained on each database before it is executed, and counted while it is.  One that goes through a
large table, or reads many more rows than it gives, is a fault, unless it is exempt with a reason; a fault makes the run
fail.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

from benchmarks import report
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage
from testing.databases import MariaDB, PostgreSQL
from testing.hot_paths import EXEMPT, HotPaths, everything
from testing.many_domains import ROWS_PER_DOMAIN, domain_ids, fill
from testing.query_plans import NO_SCANS, Explained, Explaining

#: Names of databases, and what makes an empty one.
DATABASES: dict[str, Callable[[contextlib.ExitStack], str]] = {
    'sqlite': lambda end: f'sqlite:///{end.enter_context(tempfile.TemporaryDirectory())}/database.sqlite',
    'mariadb': lambda end: end.enter_context(MariaDB()).create_database(),
    'postgresql': lambda end: end.enter_context(PostgreSQL()).create_database(),
}


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('queries', {'rows': ROWS_PER_DOMAIN * options.domains, 'batch': options.batch})
    costs: dict[str, dict[str, float]] = {}
    faults = []
    for name in options.databases.split(','):
        with contextlib.ExitStack() as end:
            found = _explain(result, name, DATABASES[name](end), options.domains, options.batch)
        for each in found:
            of_operation = costs.setdefault(each.operation, {})
            of_operation[name] = of_operation.get(name, 0.0) + 1000 * each.seconds
        result.add(f'{name}: statements', len(found), '')
        result.add(f'{name}: slowest', max(1000 * each.seconds for each in found), 'ms')
        faults += [(name, each) for each in found if each.fault]
        result.details[name] = [_as_json(each) for each in found]
    wrong = [(name, each) for name, each in faults if each.operation not in EXEMPT]
    result.add('faults', len(wrong), '')
    result.add('exempt', len(faults) - len(wrong), '')
    names = options.databases.split(',')
    report.print_table('milliseconds of each piece of work, by database', ['work', *names], [
        [operation, *(report.number(of_operation.get(name)) for name in names)]
        for operation, of_operation in sorted(costs.items())])
    for name, each in faults:
        why = EXEMPT.get(each.operation)
        print(f'{name}: {each.operation}: {each.fault}' + (f'; exempt: {why}' if why else f'\n{each.statement}'))
    result.finish(options.json)
    return 1 if wrong else 0


def _explain(result: report.Report, name: str, url: str, domains: int, batch: int) -> list[Explained]:
    migrate.upgrade(url)
    if name == 'postgresql':
        url += NO_SCANS
    storage = Storage(url)
    try:
        started = time.monotonic()
        fill(storage, domains)
        result.say(f'{name}: filled in {time.monotonic() - started:.0f} s')
        explaining = Explaining(storage)
        paths = HotPaths(storage, explaining)
        with explaining.listening():
            # From the middle, where an index is as deep as it gets.
            everything(paths, domain_ids(storage, batch, f'd{domains // 2:031x}'))
    finally:
        storage.close()
    return list(explaining.found.values())


def _as_json(each: Explained) -> dict[str, object]:
    return {'operation': each.operation, 'statement': each.statement, 'milliseconds': 1000 * each.seconds,
            'read': each.read, 'given': each.given, 'fault': each.fault, 'plan': each.plan}


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('queries', 'How the databases go about each statement, with a million rows.')
    parser.add_argument('--domains', type=int, default=250_000, help='each has four rows in the large tables')
    parser.add_argument('--batch', type=int, default=500, help='domains that are worked on together')
    parser.add_argument('--databases', default=','.join(DATABASES), help='those to look at, with commas')
    options = parser.parse_args(argv)
    if options.quick:
        # Of few rows, many are a part for which a database rightly goes through all.
        options.domains, options.batch = min(options.domains, 25_000), min(options.batch, 100)
    return options


if __name__ == '__main__':
    sys.exit(main())
