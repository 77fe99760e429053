"""One benchmark at two commits: the working tree and an earlier one, in turn, on the same machine in one sitting.

The earlier commit is checked out beside the working tree, and runs its own benchmark with the libraries of this
environment.  Each figure is the median of the rounds, *ours* of the working tree and *other* of the earlier commit; a
figure that only one of them has is left out.  For benchmarks with steps, the processor seconds of each program in each
step are figures as well.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks import quick, report
from benchmarks.quick import HERE
from testing.processes import exit_on_sigterm

SECONDS = 1800.0
#: Whose processor time is summed up as that of our services; Central's may be in the process of the clients.
SERVICES = ('central', 'manager', 'minidns', 'api', 'clients')
#: Of one run: value and unit of each figure.
Figures = Mapping[str, tuple[float, str]]


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    exit_on_sigterm()
    result = report.Report(options.benchmark, {'before': options.commit, 'rounds': options.rounds,
                                               'options': ' '.join(options.options)})
    before, after = list[Figures](), list[Figures]()
    with checked_out(options.commit) as there, tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name:
        for number in range(options.rounds):
            for folder, found in ((there, before), (HERE, after)):
                found.append(measure(options.benchmark, options.options, folder, pathlib.Path(name)))
                result.say(f'round {number + 1} of {options.rounds}, {"after" if folder is HERE else "before"}: done')
    for key, (value, unit) in medians(after).items():
        if key in medians(before):
            result.add(key, value, unit, medians(before)[key][0], options.commit)
    result.details['rounds'] = {'before': before, 'after': after}
    result.finish(options.json)
    return 0


@contextlib.contextmanager
def checked_out(commit: str) -> Iterator[pathlib.Path]:
    """A folder with the files of *commit*, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix='designate-pool-before-') as name:
        folder = pathlib.Path(name) / 'before'
        subprocess.run(['git', 'worktree', 'add', '--quiet', '--detach', str(folder), commit], cwd=HERE, check=True)
        try:
            yield folder
        finally:
            subprocess.run(['git', 'worktree', 'remove', '--force', str(folder)], cwd=HERE, check=True)


def measure(benchmark: str, options: Sequence[str], source: pathlib.Path, results: pathlib.Path) -> Figures:
    """Run a benchmark of the source tree *source*; its figures.

    :raises RuntimeError: when it fails or takes too long
    """
    path = results / f'{benchmark}.json'
    path.unlink(missing_ok=True)
    ran = quick.run(benchmark, [sys.executable, '-m', f'benchmarks.{benchmark}', '--json', str(path), *options],
                    results / f'{benchmark}.txt', SECONDS, source)
    if ran.code != 0:
        raise RuntimeError(f'{benchmark} of {source.name} {ran.word} after {ran.seconds:.0f} s')
    return figures(json.loads(path.read_text()))


def figures(found: Mapping[str, Any]) -> Figures:
    """The figures of one run's JSON, and those of its steps."""
    values = {each['name']: (each['ours'], each['unit']) for each in found['figures']}
    for step in found['details'].get('steps', ()):
        values |= {f'{step["name"]}: processor of {program}': (seconds, 's')
                   for program, seconds in step['cpu'].items()}
        values[f'{step["name"]}: processor of our services'] = sum(
            seconds for program, seconds in step['cpu'].items() if program in SERVICES), 's'
    return values


def medians(rounds: Sequence[Figures]) -> Figures:
    """The median of each figure that all rounds have."""
    return {name: (statistics.median(each[name][0] for each in rounds), unit)
            for name, (_, unit) in rounds[0].items() if all(name in each for each in rounds)}


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser('python -m benchmarks.before_after', description='A benchmark at two commits.',
                                     usage='%(prog)s [--rounds COUNT] [--json FILE] COMMIT BENCHMARK [-- OPTION...]')
    parser.add_argument('commit', help='the earlier one, as git knows it')
    parser.add_argument('benchmark', choices=sorted(quick.BENCHMARKS))
    parser.add_argument('--rounds', type=int, default=3, help='of each')
    parser.add_argument('--json', type=pathlib.Path, metavar='FILE', help='write the figures there')
    words = list(sys.argv[1:] if argv is None else argv)
    end = words.index('--') if '--' in words else len(words)
    return parser.parse_args(words[:end], argparse.Namespace(options=words[end + 1:]))


if __name__ == '__main__':
    sys.exit(main())
