"""What the services cost while nothing is changed: statements of the database, by kind, and processor time."""

from __future__ import annotations

import argparse
import pathlib
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence

import pymysql
import sqlalchemy as sa

from benchmarks import report
from benchmarks.load import Load
from benchmarks.measure import Processors
from benchmarks.system import System, Watch, names

#: Seconds after the last change until retries, reports and purges that belong to it are over.
_AFTERMATH = 20.0
#: What stands in a statement for a value.
_VALUES = re.compile(r"'(?:[^'\\]|\\.|'')*'|\b[0-9][0-9.]*\b")
_MANY = re.compile(r'\(\?(?:, \?)+\)')


class GeneralLog:
    """The statements that a MariaDB is sent, each with its values left out, by how often it came."""

    def __init__(self, url: str) -> None:
        parsed = sa.make_url(url)
        self._connection = pymysql.connect(host=parsed.host, port=parsed.port or 3306, user=parsed.username or '')
        self._run("SET GLOBAL log_output = 'TABLE'")

    def begin(self) -> None:
        self._run('SET GLOBAL general_log = 0')
        self._run('TRUNCATE mysql.general_log')
        self._run('SET GLOBAL general_log = 1')

    def end(self) -> Counter[str]:
        self._run('SET GLOBAL general_log = 0')
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT argument FROM mysql.general_log WHERE command_type = 'Query'")
            found = [bytes(text).decode(errors='replace') if not isinstance(text, str) else text
                     for text, in cursor.fetchall()]
        return Counter(each for each in map(kind_of, found) if 'general_log' not in each)

    def close(self) -> None:
        self._connection.close()

    def _run(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)


def kind_of(statement: str) -> str:
    """The statement on one line, with ``?`` for every value."""
    return _MANY.sub('(?, ...)', _VALUES.sub('?', ' '.join(statement.split())))


def main(arguments: Sequence[str] | None = None) -> int:
    given = _arguments(arguments)
    result = report.Report('idle', {'domains': given.domains, 'seconds': given.seconds, 'pairs': given.pairs,
                                    'concurrency': given.concurrency})
    with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as folder, \
            System(pathlib.Path(folder), given.concurrency, pairs=given.pairs) as system:
        load = Load(system.central, 8, 1, 30.0)
        watch = Watch(system)
        load.create(names('idle', given.domains))
        watch.all_active('idle', given.domains, 120.0 + given.domains)
        time.sleep(_AFTERMATH if not given.quick else _AFTERMATH / 4)
        log = GeneralLog(system.url)
        clock, services = Processors(system.processes), tuple(system.stack.processes)
        log.begin()
        before, began = clock.read(), time.monotonic()
        time.sleep(given.seconds)
        used, seconds = clock.since(before), time.monotonic() - began
        statements = log.end()
        log.close()
    result.add('SQL statements a second', statements.total() / seconds, '')
    result.add('processor of our services, of one core', sum(
        used[name] for name in services) / seconds, '')
    for name, each in sorted(used.items()):
        result.say(f'{name}: {1000 * each / seconds:.1f} ms of processor a second')
    for statement, count in statements.most_common(given.statements):
        result.say(f'{count / seconds:6.2f} a second  {statement[:150]}')
    result.details['statements'] = dict(statements)
    result.details['processor'] = {name: each / seconds for name, each in used.items()}
    result.finish(given.json)
    return 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('idle', __doc__ or '')
    parser.add_argument('--domains', type=int, default=20)
    parser.add_argument('--seconds', type=float, default=60.0, help='of idleness that are measured')
    parser.add_argument('--pairs', type=int, default=1, help='how many pool managers, and how many MiniDNS')
    parser.add_argument('--statements', type=int, default=20, help='how many kinds of statements are printed')
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), default='eventlet')
    given = parser.parse_args(arguments)
    if given.quick:
        given.domains, given.seconds = 5, 10.0
    return given


if __name__ == '__main__':
    sys.exit(main())
