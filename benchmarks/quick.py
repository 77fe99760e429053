"""The quick set: every benchmark at its smallest, one after the other, each in a process of its own.

The tables and the JSON of each go into one folder, beside the summary.  One that fails, or takes longer than it may,
does not stop the others; when all the time is used up the rest is left out, and that is a failure too.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence

from benchmarks import report

#: Module and arguments of each, beside ``--quick``, in the order in which they run.
QUICK: tuple[tuple[str, tuple[str, ...]], ...] = (
    ('plan', ()),
    ('queries', ()),
    ('growth', ()),
    ('api', ()),
    ('converge', ()),
    ('servers', ()),
    ('crowded', ()),
    ('pairs', ()),
    ('wide', ()),
    ('idle', ()),
    ('poll', ()),
    ('audit', ()),
    ('import_zones', ()),
    ('takeover', ()),
    ('transfer', ()),
    ('storm', ()),
    ('soak', ()),
)
RESULTS = pathlib.Path(__file__).parent / 'results'
#: Seconds that one may take, that all may take, and that one has to end what it started when it has taken them.
MOST = 120.0
ALL = 560.0
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
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the one that runs is ended
    folder = options.json.parent
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.all
    ran = [run(name, command(name, arguments, folder), folder / f'{name}.txt',
               min(options.most, end - time.monotonic()))
           for name, arguments in QUICK if name in options.only]
    summarise(ran, folder)
    options.json.write_text(json.dumps([dataclasses.asdict(each) for each in ran], indent=2) + '\n')
    return 1 if any(each.code != 0 for each in ran) else 0


def command(name: str, arguments: Iterable[str], folder: pathlib.Path) -> list[str]:
    return [sys.executable, '-m', f'benchmarks.{name}', '--quick', '--json', str(folder / f'{name}.json'), *arguments]


def run(name: str, arguments: Sequence[str], path: pathlib.Path, most: float) -> Ran:
    """Run one, with what it prints in the file *path* and here.

    :param most: seconds that it may take; with none left it is not run
    """
    if most <= 0:
        return Ran(name, 0.0, None)
    print(f'=== {name}', flush=True)
    started = time.monotonic()
    with path.open('w') as output:
        process = subprocess.Popen(arguments, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
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
    known = [name for name, _ in QUICK]
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
