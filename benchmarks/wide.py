"""What each further server of a pool costs: one change at a time, in pools of more and more servers.

The servers are very small ones (:mod:`benchmarks.wide_servers`): a hundred BINDs would need the machine for themselves.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks import report
from benchmarks.load import Load
from benchmarks.measure import Processors, percentile
from benchmarks.system import System, Watch, names
from designate_pool.model import Endpoint

#: Whose processor time depends on the number of servers.
FAN_OUT = ('manager', 'minidns')
#: All of them, in one process.
SERVERS = 'the servers'


class SmallServer:
    """One of those in the process *pid*, as :class:`~benchmarks.system.System` wants its servers."""

    driver = 'secondary'

    def __init__(self, pid: int, host: str, port: int, control_port: int) -> None:
        self.pid = pid
        self.host, self.port, self.control_port = host, port, control_port

    def start(self) -> None:
        """It runs already."""

    def remove(self) -> None:
        """It ends with its process."""

    def section(self, server_id: str, primaries: Sequence[Endpoint]) -> str:
        lines = {'host': self.host, 'port': self.port, 'control_port': self.control_port, 'control_secret': 'none',
                 'primaries': ', '.join(map(str, primaries))}
        return '\n'.join([f'[backend:{self.driver}:{server_id}]', *(f'{key} = {value}' for key, value in lines.items()),
                          ''])


@contextlib.contextmanager
def small_servers(count: int) -> Iterator[list[SmallServer]]:
    """*count* of them, in a process that ends when its standard input does."""
    with subprocess.Popen([sys.executable, '-m', 'benchmarks.wide_servers', str(count)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        ports = json.loads(process.stdout.readline())
        yield [SmallServer(process.pid, *each) for each in ports]
        process.stdin.close()


def measure(count: int, given: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of each change in a pool of *count* servers, and what one costs whom."""
    with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as folder, small_servers(count) as servers, \
            System(pathlib.Path(folder), given.concurrency, servers=servers) as system:
        watch = Watch(system)
        load = Load(system.central, 8, 1, 30.0)
        domains = load.create(names('wide', given.domains))
        watch.all_active('wide', given.domains, 120.0)
        load.change_and_wait(watch, domains, 10)
        clock = Processors({SERVERS: servers[0].pid, **{name: pid for name, pid in system.processes.items()
                                                        if not name.startswith(SmallServer.driver)}})
        cpu, statements, asked = clock.read(), system.statements.read(), watch.asked
        changes = load.change_and_wait(watch, domains, given.changes)
        used = clock.since(cpu)
        executed = system.statements.read() - statements - (watch.asked - asked)
    return {'changes_ms': changes, 'cpu_ms': {name: 1000 * seconds / given.changes for name, seconds in used.items()},
            'statements': executed / given.changes}


def main(arguments: Sequence[str] | None = None) -> int:
    given = _arguments(arguments)
    result = report.Report('wide', {'servers': given.servers, 'changes': given.changes,
                                    'concurrency': given.concurrency})
    found = {}
    for count in given.servers:
        each = found[count] = measure(count, given)
        result.add(f'{count} servers: one change, median', statistics.median(each['changes_ms']), 'ms')
        result.add(f'{count} servers: 99 of 100 within', percentile(each['changes_ms'], 0.99), 'ms')
        result.add(f'{count} servers: SQL statements', each['statements'], '')
        for name, milliseconds in each['cpu_ms'].items():
            result.add(f'{count} servers: processor of {name}', milliseconds, 'ms')
    for fewer, more in itertools.pairwise(given.servers):
        result.add(f'processor of each server from {fewer} to {more}',
                   (_fan_out(found[more]['cpu_ms']) - _fan_out(found[fewer]['cpu_ms'])) / (more - fewer), 'ms')
    result.details.update({str(count): each for count, each in found.items()})
    result.finish(given.json)
    return 0


def _fan_out(cpu: Mapping[str, float]) -> float:
    return sum(cpu[name] for name in FAN_OUT)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('wide', __doc__ or '')
    parser.add_argument('--servers', type=int, nargs='+', default=[2, 8, 24, 100])
    parser.add_argument('--domains', type=int, default=20)
    parser.add_argument('--changes', type=int, default=100)
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), default='eventlet')
    given = parser.parse_args(arguments)
    if given.quick:
        given.servers, given.domains, given.changes = [6], 5, 20
    return given


if __name__ == '__main__':
    sys.exit(main())
