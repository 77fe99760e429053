"""The quick set: every benchmark at its smallest, one after the other, each in a process of its own.

The tables and the JSON of each go into one folder, beside the summary.  One that fails, or takes longer than it may,
does not stop the others; when all the time is used up the rest is left out, and that is a failure too.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks import report


class Quick(NamedTuple):
    """A benchmark in its quick form.

    :ivar seconds: that it takes on two cores with nothing else on them
    :ivar sizes: options that say how much it does; more than that ``--quick`` does not take
    """

    seconds: float
    sizes: Mapping[str, int] = {}


#: By module, in the order in which they run.
QUICK: Mapping[str, Quick] = {
    'plan': Quick(12),
    'queries': Quick(25),
    'api': Quick(25, {'zones': 5000, 'requests': 500}),
    'converge': Quick(50, {'domains': 50, 'changes': 30}),
    'servers': Quick(55, {'count': 100, 'loaded': 500, 'fill': 200}),
    'crowded': Quick(45, {'sizes': 5000, 'creates': 20, 'changes': 60}),
    'pairs': Quick(40, {'domains': 40, 'changes': 20}),
    'wide': Quick(20),
    'idle': Quick(42),
    'audit': Quick(20, {'domains': 5000}),
    'import_zones': Quick(20, {'records': 20000, 'domains': 500}),
    'takeover': Quick(5),
    'transfer': Quick(8),
    'storm': Quick(30, {'zones': 500, 'changes': 50}),
    'soak': Quick(45),
}
HERE = pathlib.Path(__file__).parent.parent
RESULTS = HERE / 'benchmarks' / 'results'
#: Seconds that one may take, that all may take, and that one has to end what it started when it has taken them.
MOST = 120.0
ALL = 560.0
_GRACE = 40.0
#: What all load first, and the seconds that this takes on such a machine.
_LOADED, _LOADED_SECONDS = 'import designate_pool.cmd.compose.services', 0.8
#: Which part of a benchmark's time is for starting servers, at any size; and the smallest share of a size.
_STARTING, _LEAST = 0.5, 0.1


@dataclasses.dataclass(frozen=True, slots=True)
class Ran:
    """
    :ivar code: what it ended with; None when it took too long
    """

    name: str
    seconds: float
    code: int | None

    @property
    def word(self) -> str:
        return 'took too long' if self.code is None else 'failed' if self.code else 'done'


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the one that runs is ended
    folder = options.json.absolute().parent
    folder.mkdir(parents=True, exist_ok=True)
    end, slowness, ran = time.monotonic() + options.all, measure_slowness(), list[Ran]()
    print(f'programs take {slowness:.1f} times as long to load as on a quiet machine', flush=True)
    left = [name for name in QUICK if name in options.only]
    while left:
        fixed, sized = (slowness * sum(QUICK[name].seconds for name in left if bool(QUICK[name].sizes) is has_sizes)
                        for has_sizes in (False, True))
        share = fitting(end - time.monotonic() - fixed, sized)
        name = left.pop(0)
        ran.append(run(name, command(name, share, folder), folder / f'{name}.txt',
                       min(options.most, end - time.monotonic())))
    summarise(ran, folder)
    options.json.write_text(json.dumps([dataclasses.asdict(each) for each in ran], indent=2) + '\n')
    return 1 if any(each.code != 0 for each in ran) else 0


def measure_slowness() -> float:
    """How many times as long as on a quiet machine programs take to load, the median of three; 1 at least."""
    took = []
    for _ in range(3):
        started = time.monotonic()
        subprocess.run([sys.executable, '-c', _LOADED], check=True, timeout=MOST)
        took.append(time.monotonic() - started)
    return max(1.0, statistics.median(took) / _LOADED_SECONDS)


def fitting(left: float, needed: float) -> float:
    """The share of their sizes at which benchmarks that need so many seconds at full size take those that are left."""
    if not needed:
        return 1.0
    return min(1.0, max(_LEAST, (left / needed - _STARTING) / (1 - _STARTING)))


def command(name: str, share: float, folder: pathlib.Path) -> list[str]:
    """
    :param share: of its sizes
    """
    sizes = [word for option, size in QUICK[name].sizes.items() for word in (f'--{option}', str(round(share * size)))]
    return [sys.executable, '-m', f'benchmarks.{name}', '--quick', '--json', str(folder / f'{name}.json'), *sizes]


def run(name: str, arguments: Sequence[str], path: pathlib.Path, most: float, source: pathlib.Path = HERE) -> Ran:
    """Run one, with what it prints in the file *path* and here.

    :param most: seconds that it may take; with none left it is not run
    :param source: the tree whose code is run, wherever the packages are installed from
    """
    if most <= 0:
        return Ran(name, 0.0, None)
    print(f'=== {name}', flush=True)
    started = time.monotonic()
    with path.open('w') as output:
        process = subprocess.Popen(arguments, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   cwd=source, env={**os.environ, 'PYTHONPATH': str(source)})
        try:
            code = _wait(process, most)
        finally:
            _end(process)
    print(path.read_text(), flush=True)
    return Ran(name, time.monotonic() - started, code)


def summarise(ran: Sequence[Ran], folder: pathlib.Path) -> None:
    rows = [[each.name, f'{each.seconds:.0f}', each.word] for each in ran]
    report.print_table(f'results in {folder}', ['benchmark', 'seconds', ''],
                       [*rows, ['all', f'{sum(each.seconds for each in ran):.0f}', '']])


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Its exit code; None when it has not ended within *seconds*."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(seconds)
    return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it if it runs, in good order if it can: it has servers to stop."""
    if process.poll() is None:
        process.terminate()
        if _wait(process, _GRACE) is None:
            process.kill()
            process.wait()


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    known = list(QUICK)
    parser = argparse.ArgumentParser('python -m benchmarks.quick', description='The quick set of all benchmarks.')
    parser.add_argument('--json', type=pathlib.Path, default=RESULTS / 'quick.json', metavar='FILE',
                        help='the summary; the tables and the JSON of each benchmark are written beside it')
    parser.add_argument('--only', type=lambda text: text.split(','), default=known,
                        help='some of them, with commas between: ' + ', '.join(known))
    parser.add_argument('--most', type=float, default=MOST, help='seconds that one may take')
    parser.add_argument('--all', type=float, default=ALL, help='seconds that all may take')
    options = parser.parse_args(argv)
    if unknown := sorted(set(options.only) - set(known)):
        parser.error(f'--only: unknown: {", ".join(unknown)}')
    return options


if __name__ == '__main__':
    sys.exit(main())
