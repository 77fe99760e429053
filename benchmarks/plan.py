"""How long it takes to read a zone, as it is and as it is to be, and to find the changes; and how much memory.

Ours and octoDNS do it on the same files, or with the same records made one by one, each time in a process of its own,
by turns.  Both have to find the same changes.  *Streams* are ours alone: zone files that are in the order of their
names, compared while they are read; they stand beside octoDNS with the same zone files.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

from benchmarks import report
from benchmarks.plan_clock import Place
from benchmarks.plan_data import changed_blocks, write_all
from benchmarks.plan_one import WAYS, Measured

#: What both planners do: ``ours-files`` stands beside ``octodns-files``, and so on.
KINDS = ('files', 'records', 'yaml')
#: Records above which YAML is not read: it is slow for everybody.
YAML_MOST = 100_000
PEER = 'octodns'


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the files are removed
    result = report.Report('plan', {'sizes': ','.join(map(str, options.sizes)), 'changed': options.changed,
                                    'rounds': options.rounds, 'octoDNS up to': options.peer_most})
    with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name:
        for records in options.sizes:
            place = Place(pathlib.Path(name) / 'zone', records, changed_blocks(records, options.changed))
            write_all(place.folder, records, place.changed, records <= YAML_MOST)
            measure_size(place, options, result)
            shutil.rmtree(place.folder)
    result.finish(options.json)
    return 0


def measure_size(place: Place, options: argparse.Namespace, result: report.Report) -> None:
    """All ways by turns, the quicker round of each; a line where octoDNS is left out."""
    some = ways(place.records, options.peer_most)
    rounds: dict[str, list[Measured]] = {way: [] for way in some}
    for _ in range(options.rounds):
        for way in some:
            rounds[way].append(run(way, place))
            check(way, place.changed, rounds[way][-1], rounds[some[0]][0])
    best = {way: min(measured, key=lambda each: each.seconds) for way, measured in rounds.items()}
    report.print_table(f'{place.records} records, {place.changed} creates, updates and deletes each', HEAD,
                       [row(way, best[way]) for way in sorted(best)])
    if place.records > options.peer_most:
        result.say(f'octoDNS is left out above {options.peer_most} records (--peer-most)\n')
    _add_figures(place.records, best, result)
    result.details[str(place.records)] = {way: [dataclasses.asdict(each) for each in measured]
                                          for way, measured in rounds.items()}


def ways(records: int, peer_most: int) -> list[str]:
    """Which of :data:`benchmarks.plan_one.WAYS` are measured with a zone of so many records."""
    return [way for way in WAYS if not (way.endswith('-yaml') and records > YAML_MOST)
            and not (way.startswith(PEER) and records > peer_most)]


def run(way: str, place: Place) -> Measured:
    """
    :raises CalledProcessError: when it fails; what it said is on standard error
    """
    command = [sys.executable, '-m', 'benchmarks.plan_one', way, str(place.folder), str(place.records),
               str(place.changed)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
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


def row(way: str, found: Measured) -> list[str]:
    """A line of the table."""
    return [way, *map(report.number, (found.populate, found.plan, found.seconds, found.peak, found.imported,
                                      found.growth))]


def _add_figures(records: int, best: Mapping[str, Measured], result: report.Report) -> None:
    for kind in KINDS:
        ours, other = best.get(f'ours-{kind}'), best.get(f'{PEER}-{kind}')
        if ours is None:
            continue
        for title, unit, quantity in (('both', 's', 'seconds'), ('memory at most', 'MiB', 'peak'),
                                      ('memory over imports', 'MiB', 'growth')):
            result.add(f'{records} {kind}: {title}', getattr(ours, quantity), unit,
                       None if other is None else getattr(other, quantity), None if other is None else
                       f'octoDNS, {kind}')


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
