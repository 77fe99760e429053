"""One way of planning in a process of its own: ``python -m benchmarks.plan_one WAY FOLDER RECORDS CHANGED``.

It prints a line of JSON: what :class:`Measured` has.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import pathlib
import sys
import time
from collections.abc import Sequence

from benchmarks.plan_clock import Clock, Found, Place

#: The modules that have them, which import all that the way needs.
WAYS = {'octodns-files': 'plan_peer', 'octodns-records': 'plan_peer', 'octodns-yaml': 'plan_peer',
        'ours-files': 'plan_ours', 'ours-records': 'plan_ours', 'ours-yaml': 'plan_ours'}


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """
    :ivar populate: seconds to read both sides
    :ivar plan: seconds for all else
    :ivar imported: MiB resident when all was imported and nothing read
    :ivar peak: MiB that were resident at most
    :ivar counts: how many changes of each kind were found
    :ivar digest: the same for the same changes
    """

    populate: float
    plan: float
    imported: float
    peak: float
    counts: dict[str, int]
    digest: str

    @property
    def seconds(self) -> float:
        return self.populate + self.plan

    @property
    def growth(self) -> float:
        """MiB."""
        return self.peak - self.imported


def main(argv: Sequence[str]) -> int:
    way, folder, records, changed = argv
    print(json.dumps(dataclasses.asdict(measure(way, Place(pathlib.Path(folder), int(records), int(changed))))))
    return 0


def measure(way: str, place: Place) -> Measured:
    plan = getattr(importlib.import_module(f'benchmarks.{WAYS[way]}'), way.partition('-')[2])
    clock = Clock()
    imported = _mib('VmRSS')
    began = time.perf_counter()
    found: Found = plan(place, clock)
    ended, peak = time.perf_counter(), _mib('VmHWM')
    kinds = [kind for kind, _, _ in found]
    return Measured(clock.populated, ended - began - clock.populated, imported, peak,
                    {kind: kinds.count(kind) for kind in sorted(set(kinds))}, _digest(found))


def _digest(found: Found) -> str:
    return hashlib.sha256('\n'.join(' '.join(each) for each in sorted(found)).encode()).hexdigest()


def _mib(name: str) -> float:
    # Not ru_maxrss: it begins with what the process had that started this one (execve keeps the maximum).
    for line in pathlib.Path('/proc/self/status').read_text().splitlines():
        if line.startswith(f'{name}:'):
            return int(line.split()[1]) / 1024
    raise AssertionError(f'the kernel does not tell {name}')


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
