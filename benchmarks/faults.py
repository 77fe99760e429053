"""The broker and the database die and are paused, round after round, under a bounded load: what stays in memory.

The services run over RabbitMQ with two BINDs, while users change records and list zones over HTTP.  In each round the
broker is killed and comes back, then the database, then each stands still for a while with its connections open.  What
is more after the first round is what such faults need; what each round adds would be a leak.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import pathlib
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import psutil
import requests

from benchmarks import report
from benchmarks.system import DATABASES
from testing.bind import Named
from testing.databases import DatabaseServer
from testing.rabbitmq import RabbitMq
from testing.stack import Stack

ZONES, USERS, SERVERS = 10, 8, 2
_MIB = 1 << 20
#: Samples, one a second, of which the median is what a process has in memory.
_LAST = 5


class Sampler:
    """Looks every second at what processes have resident.

    :param processes: process ids by name
    :ivar samples: MiB by name, in order
    """

    def __init__(self, processes: Mapping[str, int]) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in processes.items()}
        self.samples: dict[str, list[float]] = {name: [] for name in processes}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name='sampler')

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def now(self) -> dict[str, float]:
        return {name: statistics.median(found[-_LAST:]) for name, found in self.samples.items()}

    def _look(self) -> None:
        while not self._over.wait(1):
            for name, process in self._processes.items():
                self.samples[name].append(process.memory_info().rss / _MIB)


class Users:
    """Change records and list zones, so many times a second at most; what fails is let go.

    :ivar done: requests that were answered as they should
    """

    def __init__(self, stack: Stack, rate: float) -> None:
        self._stack = stack
        self._pause = USERS / rate
        self.done = self.failed = 0
        self._over = threading.Event()
        self._records = [self._zone(f'zone{number}.example.com.') for number in range(ZONES)]
        self._threads = [threading.Thread(target=self._use, name='user') for _ in range(USERS)]

    def _zone(self, name: str) -> tuple[str, str]:
        zone = self._stack.create_zone(name)['id']
        self._stack.wait_for(zone)
        return zone, self._stack.create_recordset(zone, f'www.{name}', 'A', '192.0.2.1')['id']

    def __enter__(self) -> Users:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _use(self) -> None:
        while not self._over.wait(random.uniform(0, 2 * self._pause)):
            try:
                self._stack.set_recordset(*random.choice(self._records), f'192.0.2.{random.randrange(1, 255)}')
                self._stack.request('GET', '/v2/zones', 200)
                self.done += 2
            except (AssertionError, requests.RequestException):
                self.failed += 1


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all that was started is ended
    result = report.Report('faults', {'rounds': options.rounds, 'database': options.database, 'rate': options.rate,
                                      'concurrency': options.concurrency, 'embedded': options.embedded})
    with contextlib.ExitStack() as end:
        folder = pathlib.Path(end.enter_context(tempfile.TemporaryDirectory(prefix='designate-pool-bench-')))
        broker = None if options.embedded else end.enter_context(RabbitMq(folder / 'rabbitmq'))
        database = end.enter_context(DATABASES[options.database](durable=True))
        sections = []
        for number in range(SERVERS):
            server = Named(folder / f'named{number}')
            end.callback(server.remove)
            server.start()
            sections.append(server.section(f'aaaaaaaa-0000-4000-8000-{number:012}', call_timeout=2))
        stack = end.enter_context(Stack(folder / 'services', sections, database.create_database(),
                                        broker.url if broker else None, options.concurrency))
        processes = {name: process.pid for name, process in stack.processes.items()}
        users = end.enter_context(Users(stack, options.rate))
        sampler = end.enter_context(Sampler(processes))
        time.sleep(options.warm)
        tables = {'before': sampler.now()}
        for number in range(1, options.rounds + 1):
            for fault in _faults(broker, database, options):
                fault()
                time.sleep(options.between)
            time.sleep(options.rest)
            tables[f'round {number}'] = sampler.now()
            result.say(f'round {number}: {users.done} requests answered, {users.failed} failed')
        tell(result, tables, {name: max(found) for name, found in sampler.samples.items()})
    result.finish(options.json)
    return 0


def tell(result: report.Report, tables: Mapping[str, Mapping[str, float]], most: Mapping[str, float]) -> None:
    """
    :param tables: MiB by process, by when
    :param most: MiB at most, by process
    """
    report.print_table('MiB resident', ['program', *tables, 'at most'], [
        [name, *(f'{found[name]:.1f}' for found in tables.values()), f'{most[name]:.1f}'] for name in most])
    found = list(tables.values())
    for name in most:
        result.add(f'{name}: after the first round', found[1][name], 'MiB', found[0][name], 'before')
        result.add(f'{name}: after the last round', found[-1][name], 'MiB', found[1][name], 'after the first')
    result.details['MiB'] = {**tables, 'at most': most}


@contextlib.contextmanager
def paused(pid: int) -> Iterator[None]:
    """A process and all that it has started stand still."""
    process = psutil.Process(pid)
    family = [process, *process.children(recursive=True)]
    for each in family:
        each.suspend()
    try:
        yield
    finally:
        for each in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.resume()


def _faults(broker: RabbitMq | None, database: DatabaseServer,
            options: argparse.Namespace) -> Iterator[Callable[[], None]]:
    """One round of them, each to be brought about and ended by a call."""
    def kill(server: RabbitMq | DatabaseServer) -> None:
        server.kill()
        time.sleep(options.away)
        server.start() if isinstance(server, DatabaseServer) else server.restart()

    def pause(server: RabbitMq | DatabaseServer) -> None:
        with paused(server.pid):
            time.sleep(options.paused)

    servers = [server for server in (broker, database) if server is not None]
    for _ in range(options.times):
        for fault in (kill, pause):
            for server in servers:
                yield functools.partial(fault, server)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('faults', 'What stays in memory of faults of the broker and the database.')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--times', type=int, default=2, help='that each fault happens in a round')
    parser.add_argument('--rate', type=float, default=12, help='of changes a second')
    parser.add_argument('--embedded', action='store_true', help='all in one process, without a broker')
    parser.add_argument('--database', choices=tuple(DATABASES), default='mariadb')
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), default='eventlet')
    options = parser.parse_args(argv)
    options.warm, options.between, options.rest, options.away, options.paused = 30, 5, 20, 2, 10
    if options.quick:
        options.rounds = options.times = 1
        options.warm, options.between, options.rest, options.away, options.paused = 5, 2, 5, 1, 3
        options.embedded = True
    return options


if __name__ == '__main__':
    sys.exit(main())
