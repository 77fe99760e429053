"""The kit tests itself: each planted bug has to be found within a few seeds, and without a bug nothing is found::

    python -m tests.torture.selftest --seeds 3 --plants gone_at_once,purge_too_early

Exit code 1 when a bug was not found, or something was without one.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

from testing.processes import exit_on_sigterm
from tests.torture import isolation, planted
from tests.torture.backends import BACKENDS

#: Seconds of faults in a run, and for healing where a bug may prevent it.
SECONDS, BOUND = 75.0, 75.0
#: The name servers: faults are scheduled by them, and with these each bug was found.
SERVERS = 'bind1,bind2,knot1,nsd1,pdns1'


def run(database: str, plant: str | None, seed: int) -> list[str]:
    """What a run with a bug, or without one, and with a seed has found."""
    with tempfile.TemporaryDirectory(prefix='designate-pool-torture-') as folder:
        results = pathlib.Path(folder, 'results')
        words = ['--seed', str(seed), '--minutes', str(SECONDS / 60), '--database', database, '--concurrency',
                 'eventlet', '--servers', SERVERS, '--quiet', '--results', str(results), '--keep', folder]
        if plant is not None:
            words += ['--plant', plant, '--bound', str(BOUND), *planted.PLANTS[plant].words]
        isolation.run('tests.torture.run', words)
        assert results.exists(), f'seed {seed}: the run did not come to its end'
        return list(json.loads(results.read_text())['breaches'])


def find(run: Callable[[str, int], list[str]], plant: str, seeds: Sequence[int]) -> tuple[int | None, str]:
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
    parser.add_argument('--database', choices=tuple(BACKENDS), default='postgresql', help='the back ends')
    parser.add_argument('--plants', type=lambda text: text.split(','), default=list(planted.PLANTS))
    parser.add_argument('--clean', type=int, default=2, help='runs without a bug')
    options = parser.parse_args()
    exit_on_sigterm()
    failed = 0
    for seed in range(1, options.clean + 1):
        found = run(options.database, None, seed)
        failed += bool(found)
        print(f'no bug, seed {seed}: {found[0] if found else "nothing found"}', flush=True)
    for plant in options.plants:
        begun = time.monotonic()
        found_with, what = find(functools.partial(run, options.database), plant, range(1, options.seeds + 1))
        failed += found_with is None
        how = 'NOT FOUND' if found_with is None else f'found with seed {found_with}'
        print(f'{plant}: {how} in {time.monotonic() - begun:.0f} s: {what}', flush=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
