"""Servers that restart empty and are owed every zone, while single changes go on.

The services run as processes over RabbitMQ with four servers of several makes, three of which are enough for a change
to be ACTIVE.  One server loses all its zones and is mended (``resync``) while changes follow one another; then all
servers do so at once.  What the changes take meanwhile is compared with what they take on the quiet system.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import multiprocessing
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import psutil
import requests

from benchmarks import memory, report
from benchmarks.load import Load
from benchmarks.makes import MAKES
from benchmarks.measure import percentile
from benchmarks.serials import await_serials
from benchmarks.system import DATABASES, System, Watch, names
from benchmarks.tiny_zones import SERIAL, insert
from designate_pool.model import Endpoint

THRESHOLD = 75
#: Domains in which changes are made, beside those that the storm is about.
CHANGED = 20
#: Connections that MiniDNS serves at the same time, as shipped.
MOST_CONNECTIONS = 500
#: What a storm may take, and how long a request that begins one, or a change meanwhile.
SECONDS, _REQUEST_SECONDS = 3600.0, 600.0
#: Changes between two looks at whether the storm is over.
_AT_ONCE = 5


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('storm', {'zones': options.zones, 'changes': options.changes, 'makes': options.makes,
                                     'database': options.database, 'concurrency': options.concurrency})
    with (tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name,
          concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context('spawn')) as asker,
          System(pathlib.Path(name), options.concurrency, options.makes, options.database,
                 manager={'threshold_percentage': str(THRESHOLD)}, keyed=True) as system):
        bench = Bench(system, asker, names('storm', options.zones), result)
        bench.fill()
        quiet = bench.quiet(options.changes)
        bench.storm(f'one of {len(system.servers)} restarts', [0], quiet)
        bench.storm('all restart', range(len(system.servers)), quiet)
        memory.tell(result, system.processes)
    result.finish(options.json)
    return 0


class Bench:
    """One running system.

    :param asker: a process that asks for serials
    :param zones: names of those that the storms are about
    """

    def __init__(self, system: System, asker: concurrent.futures.Executor, zones: Sequence[str],
                 result: report.Report) -> None:
        self._system = system
        self._asker = asker
        self._wanted = dict.fromkeys(zones, SERIAL)
        self._result = result
        self._load = Load(system.central, 8, 1, _REQUEST_SECONDS)
        self._watch = Watch(system)
        self._minidns = psutil.Process(system.processes['minidns'])

    def fill(self) -> None:
        """Give all zones to the servers, and make the domains that are changed."""
        insert(self._system.storage, list(self._wanted))
        everybody = range(len(self._system.servers))
        with concurrent.futures.ThreadPoolExecutor(len(everybody)) as callers:
            self._tell(f'all {len(everybody)} servers begin empty', self._begin(callers, everybody).result())
        self._domains = self._load.create(names('changed', CHANGED))
        self._watch.all_active('changed', CHANGED, SECONDS)

    def quiet(self, count: int) -> list[float]:
        """Milliseconds of single changes when nothing else goes on."""
        found = self._load.change_and_wait(self._watch, self._domains, count)
        self._result.details['quiet_ms'] = found
        return found

    def storm(self, title: str, numbers: Sequence[int], quiet: Sequence[float]) -> None:
        """Servers lose their zones and come back; single changes until they have all again."""
        for number in numbers:
            self._system.servers[number].forget_zones()
        changes: list[float] = []
        connections = 0
        with concurrent.futures.ThreadPoolExecutor(len(self._system.servers)) as callers:
            healed = self._begin(callers, numbers)
            while not healed.done():
                changes += self._load.change_and_wait(self._watch, self._domains, _AT_ONCE)
                connections = max(connections, len(self._minidns.net_connections('tcp')))
            self._tell(title, healed.result())
        for name, share in (('median', 0.5), ('99 of 100 within', 0.99)):
            self._result.add(f'{title}: one change meanwhile, {name}', percentile(changes, share), 'ms',
                             percentile(quiet, share), 'quiet')
        self._result.add(f'{title}: TCP sockets of MiniDNS at most', connections, '', MOST_CONNECTIONS,
                         'tcp_connections')
        self._result.details[title] = {'changes_ms': changes}
        self._result.say(f'{title}: {len(changes)} changes, median {statistics.median(changes):.0f} ms')

    def _begin(self, callers: concurrent.futures.Executor, numbers: Sequence[int]) -> concurrent.futures.Future[float]:
        """Have these servers mended; the seconds until they serve all zones."""
        started = time.monotonic()
        servers = [self._system.servers[number] for number in numbers]
        served = self._asker.submit(await_serials, [Endpoint(each.host, each.port) for each in servers], self._wanted,
                                    SECONDS, 0.1)
        told = [callers.submit(self._mend, self._system.server_ids[number]) for number in numbers]

        def wait() -> float:
            for each in told:
                each.result()
            return served.result() - started

        waiter = concurrent.futures.ThreadPoolExecutor(1)
        done = waiter.submit(wait)
        waiter.shutdown(wait=False)
        return done

    def _mend(self, server_id: str) -> Any:
        answer = requests.post(f'{self._system.stack.url}/v2/servers/{server_id}/resync', json={'fix': True},
                               timeout=_REQUEST_SECONDS)
        assert answer.status_code in (200, 202), answer.text
        return answer.json()

    def _tell(self, title: str, seconds: float) -> None:
        self._result.say(f'{title}: healed after {seconds:.1f} s')
        self._result.add(f'{title}: until all zones are served', seconds, 's')
        self._result.add(f'{title}: zones a second on each', len(self._wanted) / seconds, '/s')


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('storm', 'Servers restart empty while single changes go on.')
    parser.add_argument('--zones', type=int, default=10000)
    parser.add_argument('--changes', type=int, default=200, help='on the quiet system')
    parser.add_argument('--makes', type=_makes, default=None, help='of the servers, with commas between them: '
                        + ', '.join(MAKES))
    parser.add_argument('--database', choices=tuple(DATABASES), default='mariadb')
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), default='eventlet')
    options = parser.parse_args(argv)
    options.makes = options.makes or (('knot', 'bind9', 'knot', 'bind9') if options.quick else tuple(MAKES))
    if options.quick:
        options.zones, options.changes = min(options.zones, 500), min(options.changes, 50)
    return options


def _makes(text: str) -> tuple[str, ...]:
    makes = tuple(text.split(','))
    if unknown := sorted(set(makes) - set(MAKES)):
        raise argparse.ArgumentTypeError(f'unknown: {", ".join(unknown)}')
    return makes


if __name__ == '__main__':
    sys.exit(main())
