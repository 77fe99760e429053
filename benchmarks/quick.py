"""The quick set: every benchmark at its smallest, one after the other, each in a process of its own.

The tables and the JSON of each go into one folder, beside the summary.  One that fails, or takes longer than it may,
does not stop the others.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Sequence

from benchmarks import report
from testing.processes import exit_on_sigterm

#: The modules, in the order in which they run.
BENCHMARKS = ('plan', 'queries', 'api', 'converge', 'crowded', 'pairs', 'wide', 'idle', 'audit', 'import_zones',
              'takeover', 'transfer', 'history', 'signed', 'storm', 'soak')
HERE = pathlib.Path(__file__).parent.parent
RESULTS = HERE / 'benchmarks' / 'results'
#: Seconds that one may take, and that it has to end what it started when it has taken them.
MOST = 240.0
_GRACE = 40.0


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
    exit_on_sigterm()
    folder = options.json.absolute().parent
    folder.mkdir(parents=True, exist_ok=True)
    ran = [run(name, [sys.executable, '-m', f'benchmarks.{name}', '--quick', '--json', str(folder / f'{name}.json')],
               folder / f'{name}.txt', options.most, HERE) for name in BENCHMARKS if name in options.only]
    rows = [[each.name, f'{each.seconds:.0f}', each.word] for each in ran]
    report.print_table(f'results in {folder}', ['benchmark', 'seconds', ''],
                       [*rows, ['all', f'{sum(each.seconds for each in ran):.0f}', '']])
    options.json.write_text(json.dumps([dataclasses.asdict(each) for each in ran], indent=2) + '\n')
    return 1 if any(each.code != 0 for each in ran) else 0


def run(name: str, arguments: Sequence[str], path: pathlib.Path, most: float, source: pathlib.Path) -> Ran:
    """Run one, with what it prints in the file *path* and here.

    :param most: seconds that it may take
    :param source: the tree whose code is run, wherever the packages are installed from
    """
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
    known = list(BENCHMARKS)
    parser = argparse.ArgumentParser('python -m benchmarks.quick', description='The quick set of all benchmarks.')
    parser.add_argument('--json', type=pathlib.Path, default=RESULTS / 'quick.json', metavar='FILE',
                        help='the summary; the tables and the JSON of each benchmark are written beside it')
    parser.add_argument('--only', type=lambda text: text.split(','), default=known,
                        help='some of them, with commas between: ' + ', '.join(known))
    parser.add_argument('--most', type=float, default=MOST, help='seconds that one may take')
    options = parser.parse_args(argv)
    if unknown := sorted(set(options.only) - set(known)):
        parser.error(f'--only: unknown: {", ".join(unknown)}')
    return options


if __name__ == '__main__':
    sys.exit(main())
