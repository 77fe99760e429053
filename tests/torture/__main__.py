"""``python -m tests.torture``: runs by seed and back end, each in namespaces of its own; exit code 1 after a breach."""

from __future__ import annotations

import argparse
import sys

from tests.torture import isolation
from tests.torture.backends import BACKENDS

#: One in so many seeds has the second concurrency setting.
_THREADING = 4
#: One in so many has signed zones among the others.
_SIGNING = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog='python -m tests.torture', description='Torture the system, and judge it.',
                                     epilog='All other options are those of python -m tests.torture.run.',
                                     allow_abbrev=False)
    parser.add_argument('--seeds', type=int, default=1, help='how many (default: 1)')
    parser.add_argument('--first-seed', type=int, default=1)
    parser.add_argument('--backends', type=lambda text: text.split(','), default=list(BACKENDS),
                        help=f'(default: {",".join(BACKENDS)})')
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'),
                        help='(default: eventlet, and threading with every fourth seed)')
    options, passed = parser.parse_known_args()
    if unknown := set(options.backends) - BACKENDS.keys():
        parser.error(f'no such back end: {", ".join(sorted(unknown))}; there are {", ".join(BACKENDS)}')
    failed = []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        concurrency = options.concurrency or ('eventlet' if seed % _THREADING else 'threading')
        for database in options.backends:
            more = passed if seed % _SIGNING or '--signing' in passed else [*passed, '--signing']
            print(f'seed {seed}, {database}, {concurrency}', flush=True)
            if isolation.run('tests.torture.run', [*more, '--seed', str(seed), '--database', database,
                                                   '--concurrency', concurrency]):
                failed.append(f'{seed} ({database}, {concurrency})')
    print(f'torture: {"OK" if not failed else "failed with seed " + ", ".join(failed)}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
