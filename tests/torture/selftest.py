"""The kit tests itself: each planted bug has to be found within a few seeds, and without a bug nothing is found::

    python -m tests.torture.selftest --seeds 3 --plants gone_at_once,purge_too_early

A run is one of :mod:`tests.torture.local`.  Exit code 1 when a bug was not found, or something was without one.
"""

from __future__ import annotations

import argparse
import pathlib
import signal
import sys
import tempfile
import time
from collections.abc import Sequence

from tests.torture import checker, local, planted
from tests.torture.checker import Breach

#: Seconds of faults in a run, and for healing where a bug may prevent it.
SECONDS, BOUND = 40.0, 45.0


def breaches_of(plant: str | None, seed: int, seconds: float, database: str) -> list[Breach]:
    """What one run has found; it ends as soon as it has found the bug."""
    with tempfile.TemporaryDirectory(prefix='designate-pool-torture-') as folder:
        events = local.run(pathlib.Path(folder), seed, seconds, database=database, plant=plant,
                           bound=BOUND if plant else local.BOUND,
                           enough=lambda events: plant is not None and bool(_expected(plant, checker.check(events))))
    return checker.check(events)


def _expected(plant: str, found: Sequence[Breach]) -> list[Breach]:
    return [each for each in found if each.rule in planted.PLANTS[plant].rules]


def find(plant: str, seeds: Sequence[int], seconds: float, database: str) -> tuple[int | None, str]:
    """The seed with which the bug was found, and what was found."""
    others = ''
    for seed in seeds:
        found = breaches_of(plant, seed, seconds, database)
        expected = _expected(plant, found)
        if expected:
            return seed, str(expected[0])
        others = str(found[0]) if found else others
    return None, f'only {others}' if others else 'nothing'


def main() -> int:
    parser = argparse.ArgumentParser(description='See whether the torture kit finds planted bugs.')
    parser.add_argument('--seeds', type=int, default=planted.SEEDS, help='tried with each bug at most')
    parser.add_argument('--seconds', type=float, default=SECONDS, help='of faults in a run')
    parser.add_argument('--database', choices=tuple(local.DATABASES), default='postgresql',
                        help='of runs with several pool managers')
    parser.add_argument('--plants', type=lambda text: list(filter(None, text.split(','))), default=list(planted.PLANTS))
    parser.add_argument('--clean', type=int, default=2, help='runs without a bug')
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all that was started is ended
    failed = 0
    for seed in range(1, options.clean + 1):
        found = breaches_of(None, seed, options.seconds, (local.SQLITE, options.database)[seed % 2])
        failed += bool(found)
        print(f'no bug, seed {seed}: {found[0] if found else "nothing found"}', flush=True)
    for plant in options.plants:
        begun = time.monotonic()
        database = options.database if planted.PLANTS[plant].several else local.SQLITE
        found_with, what = find(plant, range(1, options.seeds + 1), options.seconds, database)
        failed += found_with is None
        how = 'NOT FOUND' if found_with is None else f'found with seed {found_with}'
        print(f'{plant}: {how} in {time.monotonic() - begun:.0f} s: {what}', flush=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
