"""How often each fault struck in some runs, as CSV, from the files that ``--results`` has written::

    python -m tests.torture.totals results.jsonl
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import pathlib
import sys
from collections.abc import Iterable, Iterator

from tests.torture.faults import FAULTS


def totals(lines: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """For each fault, the most frequent first: its name, how often it struck, and how often it was tried in vain.

    :param lines: the results of a run each
    """
    struck, missed = collections.Counter[str](), collections.Counter[str]()
    for line in lines:
        run = json.loads(line)
        struck.update(run['faults'])
        missed.update(run['not_injected'])
    for name in sorted({*FAULTS, *struck, *missed}, key=lambda name: (-struck[name], name)):
        yield name, struck[name], missed[name]


def main() -> int:
    parser = argparse.ArgumentParser(description='Add up how often each fault struck.')
    parser.add_argument('results', type=pathlib.Path, nargs='+')
    options = parser.parse_args()
    table = csv.writer(sys.stdout, lineterminator='\n')
    table.writerow(['fault', 'struck', 'in vain'])
    table.writerows(totals(line for path in options.results for line in path.read_text().splitlines()))
    return 0


if __name__ == '__main__':
    sys.exit(main())
