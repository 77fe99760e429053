"""The kit tests itself: each planted bug has to be found within a few seeds, and without a bug nothing is found::

    python -m tests.torture.selftest --seeds 3 --plants gone_at_once,purge_too_early --places loopback

Each is tried in the small run on loopback (:mod:`tests.torture.local`) and, where that is a fair judge of it, in the
lab (:mod:`tests.torture.run`).  Exit code 1 when a bug was not found, or something was without one.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

from tests.torture import checker, isolation, local, planted

#: Seconds of faults in a run, and for healing where a bug may prevent it.
SECONDS, BOUND = 40.0, 45.0
#: The same in the lab, which has more to start again.
LAB_SECONDS, LAB_BOUND = 75.0, 75.0
#: The name servers there: faults are scheduled by them, and with these each bug was found.
LAB_SERVERS = 'bind1,bind2,knot1,nsd1,pdns1,small1'
#: What a run with a bug, or without one, and with a seed has found.
Run = Callable[[str | None, int], list[str]]


def on_loopback(database: str) -> Run:
    """:param database: of the runs that need several pool managers, and of some without a bug"""

    def run(plant: str | None, seed: int) -> list[str]:
        several = planted.PLANTS[plant].several if plant else seed % 2
        with tempfile.TemporaryDirectory(prefix='designate-pool-torture-') as folder:
            events = local.run(
                pathlib.Path(folder), seed, SECONDS, database=database if several else local.SQLITE, plant=plant,
                bound=BOUND if plant else local.BOUND, enough=lambda events: plant is not None and bool(
                    planted.breaches(plant, checker.check(events))))
        return [str(each) for each in checker.check(events)]

    return run


def in_lab(database: str) -> Run:
    """:param database: the back ends"""

    def run(plant: str | None, seed: int) -> list[str]:
        with tempfile.TemporaryDirectory(prefix='designate-pool-torture-') as folder:
            results = pathlib.Path(folder, 'results')
            words = ['--seed', str(seed), '--minutes', str(LAB_SECONDS / 60), '--database', database,
                     '--concurrency', 'eventlet', '--servers', LAB_SERVERS, '--quiet', '--results', str(results),
                     '--keep', folder]
            isolation.run('tests.torture.run', [*words, *(['--plant', plant, '--bound', str(LAB_BOUND)]
                                                          if plant else [])])
            assert results.exists(), f'seed {seed}: the run did not come to its end'
            return list(json.loads(results.read_text())['breaches'])

    return run


PLACES = {'loopback': on_loopback, 'lab': in_lab}


def find(run: Run, plant: str, seeds: Sequence[int]) -> tuple[int | None, str]:
    """The seed with which the bug was found, and what was found."""
    others = ''
    for seed in seeds:
        found = run(plant, seed)
        expected = planted.breaches(plant, found)
        if expected:
            return seed, expected[0]
        others = found[0] if found else others
    return None, f'only {others}' if others else 'nothing'


def main() -> int:
    parser = argparse.ArgumentParser(description='See whether the torture kit finds planted bugs.')
    parser.add_argument('--seeds', type=int, default=planted.SEEDS, help='tried with each bug at most')
    parser.add_argument('--places', type=_words, default=list(PLACES), help=f'(default: {",".join(PLACES)})')
    parser.add_argument('--database', choices=tuple(local.DATABASES), default='postgresql',
                        help='in the lab, and of other runs with several pool managers')
    parser.add_argument('--plants', type=_words, default=list(planted.PLANTS))
    parser.add_argument('--clean', type=int, default=2, help='runs without a bug, in each place')
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all that was started is ended
    failed = 0
    for place in options.places:
        run = PLACES[place](options.database)
        for seed in range(1, options.clean + 1):
            found = run(None, seed)
            failed += bool(found)
            print(f'{place}: no bug, seed {seed}: {found[0] if found else "nothing found"}', flush=True)
        for plant in options.plants:
            if place == 'lab' and not planted.PLANTS[plant].in_lab:
                continue
            begun = time.monotonic()
            found_with, what = find(run, plant, range(1, options.seeds + 1))
            failed += found_with is None
            how = 'NOT FOUND' if found_with is None else f'found with seed {found_with}'
            print(f'{place}: {plant}: {how} in {time.monotonic() - begun:.0f} s: {what}', flush=True)
    return 1 if failed else 0


def _words(text: str) -> list[str]:
    return list(filter(None, text.split(',')))


if __name__ == '__main__':
    sys.exit(main())
