"""One planner in a process of its own: ``python -m benchmarks.plan_one WAY FOLDER``.

It prints a line of JSON: what :class:`Measured` has.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import json
import pathlib
import sys
import time
from collections.abc import Iterator, Sequence

#: The modules of the planners, which import all that these need.
WAYS = {'octodns': 'plan_peer', 'ours': 'plan_ours'}
#: The changes found: kind, name and type of each.
Found = list[tuple[str, str, str]]


class Clock:
    """
    :ivar populated: seconds that reading both sides took
    """

    def __init__(self) -> None:
        self.populated = 0.0

    @contextlib.contextmanager
    def populating(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.populated += time.perf_counter() - began


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
    way, folder = argv
    print(json.dumps(dataclasses.asdict(measure(way, pathlib.Path(folder)))))
    return 0


def measure(way: str, folder: pathlib.Path) -> Measured:
    planner = importlib.import_module(f'benchmarks.{WAYS[way]}')
    clock = Clock()
    imported = _mib('VmRSS')
    began = time.perf_counter()
    found: Found = planner.changes(folder, clock)
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
