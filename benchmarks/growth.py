"""What the daily work costs with few domains and with many: the same work, on databases that grow.

Each piece of work is what :mod:`testing.hot_paths` does with a real Central and a real pool manager on a real
database, whose servers agree to everything; its time is all that it takes in our code and in the database.  The
databases are filled by themselves (:mod:`testing.many_domains`).
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from benchmarks import report
from benchmarks.growth_plot import plot
from benchmarks.queries import DATABASES
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage
from testing.hot_paths import HotPaths, everything
from testing.many_domains import domain_ids, fill

#: What is drawn, by what the drawing calls it; see :func:`testing.hot_paths.everything`.
DRAWN = {
    'Central: create a domain': 'create a domain',
    'Central: update a recordset': 'change a record',
    'pool manager: changes, 1': 'act on one change',
    'pool manager: changes, {batch}': 'act on {batch} changes',
    'Central: reports, 1': 'take in a report',
    'pool manager: claim what is due': 'claim what is due, 1 in 1,000',
    'pool manager: situations, {batch}': 'look at {batch} domains',
    'API: the last zones of everybody': 'list a page of zones',
    'API: recordsets of a zone': 'list records of a zone',
    'MiniDNS: a zone': 'read a zone to transfer',
    'MiniDNS: heads, {batch}': 'answer {batch} SOA queries',
}
SIZES = (1000, 10_000, 100_000)
MILLION = 1_000_000

#: Milliseconds by size, by piece of work.
Costs = Mapping[str, Mapping[int, float]]


class Clock:
    """Takes the time of pieces of work.

    :ivar spent: milliseconds of each time that a piece was done, by its name
    """

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}

    @contextlib.contextmanager
    def doing(self, operation: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.spent.setdefault(operation, []).append(1000 * (time.perf_counter() - started))


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('growth', {'domains': options.sizes, 'database': options.database, 'rounds': options.rounds,
                                      'batch': options.batch})
    costs: dict[str, dict[int, float]] = {}
    for size in options.sizes:
        for operation, spent in measure(result, options, size).items():
            costs.setdefault(operation, {})[size] = statistics.median(spent)
    least, most = options.sizes[0], options.sizes[-1]
    report.print_table('median milliseconds, by domains', ['work', *(str(size) for size in options.sizes)], [
        [operation, *(report.number(found.get(size)) for size in options.sizes)]
        for operation, found in sorted(costs.items())])
    for operation, title in drawn(options.batch).items():
        result.add(f'{title}, {most} domains', costs[operation][most], 'ms', costs[operation][least],
                   f'with {least} domains')
    result.details['median_ms'] = costs
    if options.plot is not None:
        shown = {title: costs[operation] for operation, title in drawn(options.batch).items()}
        plot(shown, f'{options.database}, version {result.machine["version"]}', options.plot)
    result.finish(options.json)
    return 0


def measure(result: report.Report, options: argparse.Namespace, size: int) -> dict[str, list[float]]:
    """Milliseconds of each piece of work with *size* domains; the first round, which fills caches, does not count."""
    with contextlib.ExitStack() as end:
        url = DATABASES[options.database](end)
        migrate.upgrade(url)
        storage = end.enter_context(contextlib.closing(Storage(url)))
        started = time.monotonic()
        fill(storage, size)
        result.say(f'{size} domains: filled in {time.monotonic() - started:.1f} s')
        clock = Clock()
        paths = HotPaths(storage, clock)
        # From the middle, where an index is as deep as it gets.
        after = f'd{size // 2:031x}'
        for _ in range(options.rounds + 1):
            ids = domain_ids(storage, options.batch, after)
            everything(paths, ids)
            after = ids[-1]
        rounds = len(clock.spent['Central: create a domain'])
        return {operation: spent[len(spent) // rounds:] for operation, spent in clock.spent.items()}


def drawn(batch: int) -> dict[str, str]:
    """:data:`DRAWN` for batches of so many."""
    return {operation.format(batch=batch): title.format(batch=batch) for operation, title in DRAWN.items()}


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('growth', 'What the daily work costs with few domains and with many.')
    parser.add_argument('--sizes', type=_sizes, default=SIZES, help='numbers of domains, with commas between them')
    parser.add_argument('--full', action='store_true', help='with a million domains as well')
    parser.add_argument('--rounds', type=int, default=5, help='of which the median counts')
    parser.add_argument('--batch', type=int, default=50, help='domains that are worked on together')
    parser.add_argument('--database', choices=tuple(DATABASES), default='postgresql')
    parser.add_argument('--plot', type=pathlib.Path, metavar='FILE', help='draw the costs there, as SVG')
    options = parser.parse_args(argv)
    if options.quick:
        options.sizes, options.rounds = SIZES[:2], min(options.rounds, 2)
    if options.full:
        options.sizes = (*options.sizes, MILLION)
    return options


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(each) for each in text.split(',')}))


if __name__ == '__main__':
    sys.exit(main())
