"""What programs have in memory: now, and at most since they began."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
from collections.abc import Mapping

import psutil

from benchmarks import report

_PROC = pathlib.Path('/proc')
_KIB_IN_MB = 1024 / 1e6


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """Of a program with all the processes that it has started, in MB of 10^6 bytes.

    :ivar now: what is resident, with what processes share counted once
    :ivar most: what was resident at once at most, in the largest of the processes; never less than :attr:`now`
    """

    now: float
    most: float


def tell(result: report.Report, processes: Mapping[str, int], when: str = '') -> None:
    """Put the memory of each program into *result*, and print it.

    :param processes: process ids by name
    :param when: what is told apart by it, where this is told more than once
    """
    found = {name: measure(pid) for name, pid in processes.items()}
    then = f', {when}' if when else ''
    for name, memory in found.items():
        result.add(f'memory of {name}{then}', memory.most, 'MB')
    result.details[f'memory{then}'] = {name: dataclasses.asdict(memory) for name, memory in found.items()}
    report.print_table(f'memory in MB{then}', ['program', 'now', 'at most'],
                       [[name, f'{memory.now:.1f}', f'{memory.most:.1f}'] for name, memory in found.items()])


def measure(pid: int) -> Memory:
    """The memory of a process and, unless it is this one, of all that it has started."""
    family = [pid]
    if pid != os.getpid():  # this one is a client, and what it has started is measured by its own name
        family += [child.pid for child in psutil.Process(pid).children(recursive=True)]
    found = []
    for each in family:
        try:
            found.append(((_PROC / str(each) / 'status').read_text(),
                          (_PROC / str(each) / 'smaps_rollup').read_text()))
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
    return of_family(found)


def of_family(found: list[tuple[str, str]]) -> Memory:
    """The memory of processes.

    :param found: of each process ``/proc/PID/status`` and ``/proc/PID/smaps_rollup`` (proc(5))
    """
    now = sum(_field('Pss', rollup) for _, rollup in found)
    return Memory(now, max([now, *(_field('VmHWM', status) for status, _ in found)]))


def _field(name: str, text: str) -> float:
    """A number of kB as MB; 0 where there is none, as of a process that has ended and was not waited for."""
    found = re.search(rf'^{name}:\s+(\d+) kB$', text, re.MULTILINE)
    return int(found[1]) * _KIB_IN_MB if found else 0.0
