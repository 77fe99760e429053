"""Hours of steady load, with faults now and then: what every process holds, and what waits and is stored, against time.

The services run over RabbitMQ with two BINDs, while users create zones, change records, list, and delete zones over
HTTP.  Now and then the broker, the database or a name server is killed and comes back, or stands still for a while with
its connections open.  The services themselves live through all of it, so that what each fault leaves behind adds up.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import pathlib
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import psutil
import requests
import sqlalchemy as sa
from kombu.connection import Connection

from benchmarks import report
from benchmarks.system import DATABASES
from designate_pool.rpc import central, minidns, pool_manager
from designate_pool.storage.sql.schema import metadata
from testing.bind import Named
from testing.databases import DatabaseServer
from testing.rabbitmq import RabbitMq
from testing.stack import Stack

ZONES, USERS, SERVERS = 10, 8, 2
_MIB = 1 << 20
QUEUES = (central.TOPIC, minidns.topic('default'), pool_manager.topic('default'))
#: So that in half an hour the tables are as large as they will ever be.
RETENTION = '[service:central]\ndeleted_retention = 120\nhistory_records = 5000\n'
#: The first part of the time that is not judged: caches are filled, and tables come to their size.
WARM = 0.3
#: What may come on top within the rest of the time, at least, beside a tenth: by unit.
SLACK = {'MiB': 12.0, 'threads': 4.0, 'descriptors': 10.0, 'connections': 8.0, 'messages': 20.0, 'rows': 500.0}


class Series(NamedTuple):
    """What was measured of one thing.

    :ivar unit: a key of :data:`SLACK`
    :ivar name: of a process, a queue, or of all tables together
    """

    unit: str
    name: str


class Sampler:
    """Measures, at regular times, what processes hold, what waits in queues, and how many rows there are.

    :param processes: process ids by name
    :param broker: asked for its queues
    :param database_url: whose rows are counted
    :param pause: seconds
    :ivar samples: (seconds since the beginning, value), in order
    :ivar missed: what could not be measured, as something was away or stood still
    """

    def __init__(self, processes: Mapping[str, int], broker: RabbitMq | None = None, database_url: str | None = None,
                 pause: float = 1.0) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in processes.items()}
        self._broker_url = None if broker is None else broker.url.replace('rabbit:', 'amqp:', 1)
        self._database = None if database_url is None else sa.create_engine(database_url, poolclass=sa.NullPool)
        self._pause = pause
        self.begun = time.monotonic()
        self.samples: dict[Series, list[tuple[float, float]]] = {}
        self.missed = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name='sampler')

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def seconds(self) -> float:
        return time.monotonic() - self.begun

    def _run(self) -> None:
        while not self._over.wait(self._pause):
            for measure in (self._measure_processes, self._measure_queues, self._measure_tables):
                try:
                    measure()
                except Exception:  # of whatever library: it is measured again when it is back
                    self.missed += 1

    def _add(self, unit: str, name: str, value: float) -> None:
        self.samples.setdefault(Series(unit, name), []).append((self.seconds(), value))

    def _measure_processes(self) -> None:
        for name, process in self._processes.items():
            with process.oneshot():
                self._add('MiB', name, process.memory_info().rss / _MIB)
                self._add('threads', name, process.num_threads())
            self._add('descriptors', name, process.num_fds())
            self._add('connections', name, len(process.net_connections('tcp')))

    def _measure_queues(self) -> None:
        if self._broker_url is None:
            return
        with Connection(self._broker_url, connect_timeout=2) as connection:
            for queue in QUEUES:
                declared = connection.default_channel.queue_declare(queue, passive=True)
                self._add('messages', queue, declared.message_count)

    def _measure_tables(self) -> None:
        if self._database is None:
            return
        with self._database.connect() as connection:
            counts = {table.name: connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0
                      for table in metadata.sorted_tables}
        for name, count in counts.items():
            self._add('rows', name, count)


class Users:
    """Create zones, change records, list zones and delete zones, so many times a second at most; failures are let go.

    :ivar done: requests that were answered as they should
    """

    def __init__(self, stack: Stack, rate: float) -> None:
        self._stack = stack
        self._pause = USERS / rate
        self.done = self.failed = 0
        self._over = threading.Event()
        # A name that was deleted keeps one row for good: few names are used again and again.
        self._names = itertools.cycle(f'short{number}.example.net.' for number in range(20 * USERS))
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
        short: str | None = None
        while not self._over.wait(random.uniform(0, 2 * self._pause)):
            try:
                self._stack.set_recordset(*random.choice(self._records), f'192.0.2.{random.randrange(1, 255)}')
                self._stack.request('GET', '/v2/zones', 200)
                if short is None:
                    short = self._stack.create_zone(next(self._names))['id']
                else:
                    self._stack.delete_zone(short)
                    short = None
                self.done += 3
            except (AssertionError, requests.RequestException):
                self.failed += 1


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('soak', {'hours': options.hours, 'database': options.database, 'rate': options.rate,
                                    'concurrency': options.concurrency, 'embedded': options.embedded})
    with contextlib.ExitStack() as end:
        folder = pathlib.Path(end.enter_context(tempfile.TemporaryDirectory(prefix='designate-pool-bench-')))
        broker = None if options.embedded else end.enter_context(RabbitMq(folder / 'rabbitmq'))
        database = end.enter_context(DATABASES[options.database](durable=True))
        servers = []
        for number in range(SERVERS):
            server = Named(folder / f'named{number}')
            end.callback(server.remove)
            server.start()
            servers.append(server)
        sections = [server.section(f'aaaaaaaa-0000-4000-8000-{number:012}', call_timeout=2)
                    for number, server in enumerate(servers)]
        url = database.create_database()
        stack = end.enter_context(Stack(folder / 'services', [*sections, RETENTION], url,
                                        broker.url if broker else None, options.concurrency))
        users = end.enter_context(Users(stack, options.rate))
        sampler = end.enter_context(Sampler({name: process.pid for name, process in stack.processes.items()},
                                            broker, url, options.pause))
        faults: list[tuple[float, str]] = []
        for name, fault in _faults(broker, database, servers, options):
            if sampler.seconds() + options.every > options.hours * 3600:
                break
            time.sleep(options.every)
            faults.append((sampler.seconds(), name))
            fault()
            result.say(f'{sampler.seconds():.0f} s: {name}; {users.done} requests answered, {users.failed} failed')
        time.sleep(max(options.every, options.hours * 3600 - sampler.seconds()))
        result.details['measurements missed'] = sampler.missed
    grown = tell(result, sampler.samples, len(faults))
    result.details['faults'] = faults
    result.finish(options.json)
    if grown and not options.quick:  # a short run is warming up all the time
        print(f'These have grown: {", ".join(f"{unit} of {name}" for unit, name in grown)}.')
        return 1
    return 0


def tell(result: report.Report, samples: Mapping[Series, Sequence[tuple[float, float]]], faults: int) -> list[Series]:
    """Put into *result* what there was in the third quarter and in the last one; what has grown in between."""
    rows, grown = [], []
    for series in sorted(samples):
        early, late, most = summary(samples[series])
        if most == 0:
            continue
        if late - early > max(SLACK[series.unit], 0.1 * early):
            grown.append(series)
        rows.append([series.unit, series.name, f'{early:.1f}', f'{late:.1f}', f'{most:.1f}',
                     'grows' if series in grown else ''])
        result.add(f'{series.unit} of {series.name}, at the end', late, series.unit, early, 'after warming up')
    report.print_table(f'medians, with {faults} faults',
                       ['what', 'of', 'after warming up', 'at the end', 'at most', ''], rows)
    result.details['samples'] = {f'{unit} of {name}': found for (unit, name), found in samples.items()}
    return grown


def summary(found: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """The median soon after the warm part and at the end, each of a sixth of the time, and the largest value."""
    end = found[-1][0]
    early = [value for at, value in found if WARM * end <= at <= (WARM + 1 / 6) * end] or [found[0][1]]
    late = [value for at, value in found if at >= 5 / 6 * end]
    return statistics.median(early), statistics.median(late), max(value for _, value in found)


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


def _faults(broker: RabbitMq | None, database: DatabaseServer, names: Sequence[Named],
            options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], None]]]:
    """One after the other, without end: what it is called, and what brings it about and ends it."""
    def kill(server: RabbitMq | DatabaseServer | Named) -> None:
        server.kill()
        time.sleep(options.away)
        server.restart() if isinstance(server, RabbitMq) else server.start()

    def pause(server: RabbitMq | DatabaseServer | Named) -> None:
        with paused(server.pid):
            time.sleep(options.paused)

    servers = {'the broker': broker, 'the database': database,
               **{f'name server {number}': server for number, server in enumerate(names)}}
    faults = [(f'{name} {word}', functools.partial(fault, server))
              for word, fault in (('killed', kill), ('paused', pause))
              for name, server in servers.items() if server is not None]
    while True:
        yield from faults


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('soak', 'What processes hold after hours of load and faults.')
    parser.add_argument('--hours', type=float, default=1.0)
    parser.add_argument('--every', type=float, default=60.0, help='seconds from one fault to the next')
    parser.add_argument('--rate', type=float, default=12, help='of changes a second')
    parser.add_argument('--embedded', action='store_true', help='all in one process, without a broker')
    parser.add_argument('--database', choices=tuple(DATABASES), default='mariadb')
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), default='eventlet')
    options = parser.parse_args(argv)
    options.away, options.paused, options.pause = 2, 10, 5.0
    if options.quick:
        options.hours, options.every = 0.01, 5.0
        options.away, options.paused, options.pause = 1, 3, 1.0
        options.embedded = True
    return options


if __name__ == '__main__':
    sys.exit(main())
