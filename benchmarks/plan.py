"""How long it takes to read a zone, as it is and as it is to be, and to find the changes; and how much memory.

Ours and octoDNS do it on the same zone files, each time in a process of its own, by turns.  Both have to find the same
changes.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from benchmarks import report
from benchmarks.plan_data import changed_blocks, write_all
from benchmarks.plan_one import WAYS, Measured

PEER = 'octodns'


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('plan', {'sizes': ','.join(map(str, options.sizes)), 'changed': options.changed,
                                    'rounds': options.rounds, 'octoDNS up to': options.peer_most})
    with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name:
        for records in options.sizes:
            folder, changed = pathlib.Path(name) / 'zone', changed_blocks(records, options.changed)
            write_all(folder, records, changed)
            measure_size(folder, records, changed, options, result)
            shutil.rmtree(folder)
    result.finish(options.json)
    return 0


def measure_size(folder: pathlib.Path, records: int, changed: int, options: argparse.Namespace,
                 result: report.Report) -> None:
    """Both by turns, the quicker round of each; octoDNS is left out above so many records."""
    ways = [way for way in WAYS if way != PEER or records <= options.peer_most]
    rounds: dict[str, list[Measured]] = {way: [] for way in ways}
    for _ in range(options.rounds):
        for way in ways:
            rounds[way].append(run(way, folder))
            check(way, changed, rounds[way][-1], rounds[ways[0]][0])
    best = {way: min(measured, key=lambda each: each.seconds) for way, measured in rounds.items()}
    report.print_table(f'{records} records, {changed} creates, updates and deletes each', HEAD, [
        [way, *map(report.number, (each.populate, each.plan, each.seconds, each.peak, each.imported, each.growth))]
        for way, each in sorted(best.items())])
    for title, unit, quantity in (('both', 's', 'seconds'), ('memory at most', 'MiB', 'peak'),
                                  ('memory over imports', 'MiB', 'growth')):
        other = getattr(best[PEER], quantity) if PEER in best else None
        result.add(f'{records} records: {title}', getattr(best['ours'], quantity), unit, other,
                   None if other is None else 'octoDNS')
    result.details[str(records)] = {way: [dataclasses.asdict(each) for each in measured]
                                    for way, measured in rounds.items()}


def run(way: str, folder: pathlib.Path) -> Measured:
    """
    :raises CalledProcessError: when it fails; what it said is on standard error
    """
    done = subprocess.run([sys.executable, '-m', 'benchmarks.plan_one', way, str(folder)], check=True,
                          stdout=subprocess.PIPE, text=True)
    return Measured(**json.loads(done.stdout))


def check(way: str, changed: int, found: Measured, other: Measured) -> None:
    """
    :raises AssertionError: when not the changes were found that are there, or not those of the *other*
    """
    expected = {'Create': changed, 'Delete': changed, 'Update': changed}
    if found.counts != expected or found.digest != other.digest:
        raise AssertionError(f'{way} found {found.counts}, digest {found.digest}; there are {expected}, and the first '
                             f'one found {other.digest}')


HEAD = ('way', 'populate s', 'plan s', 'both s', 'MiB at most', 'MiB imported', 'MiB over that')


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('plan', 'Reading a zone twice and finding the changes, beside octoDNS.')
    parser.add_argument('--sizes', type=_sizes, default=(10_000, 100_000, 1_000_000), help='records, with commas')
    parser.add_argument('--changed', type=float, default=1.0, help='how many of a hundred records are')
    parser.add_argument('--rounds', type=int, default=2, help='the quicker one counts')
    parser.add_argument('--peer-most', type=int, default=100_000, help='records above which octoDNS is left out')
    options = parser.parse_args(argv)
    if options.quick:
        options.sizes, options.rounds = (1000, 10_000), 1
    if options.rounds < 1:
        parser.error('--rounds is 1 at least')
    try:
        for records in options.sizes:
            changed_blocks(records, options.changed)
    except ValueError as error:
        parser.error(str(error))
    return options


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(','))


if __name__ == '__main__':
    sys.exit(main())
