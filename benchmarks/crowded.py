"""One create and one change in a pool that has many domains already, beside the same in an empty pool.

The domains are put into the database and into the configuration of the servers, two Knots, before anything begins, and
the sweep goes over them meanwhile: the pool manager has asked both servers for each of them once before anything is
measured. Each size has a new system: servers, database, broker and services.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import memory, report
from benchmarks.load import Load
from benchmarks.measure import Processors, ours, percentile
from benchmarks.system import System, Watch, names
from benchmarks.tiny_zones import TEXT, insert
from testing.knot import Knotd
from testing.processes import wait_until

MAKES = ('knot', 'knot')
EMPTY = 'in an empty pool'
#: How a Knot with the crowd is configured: a template that takes all of these zones from one file, and counting.
_TEMPLATE = '''
  - id: crowd
    storage: "{folder}"
    file: tiny.zone
    zonefile-sync: -1
    zonefile-load: whole
    journal-content: none
zone:
{zones}
'''
_COUNTING = ('  - id: default\n', '  - id: default\n    global-module: mod-stats\n')
#: Seconds of idleness in which the costs of the sweep are taken, and those that the sweep may take to come round.
_IDLE = 10.0
_ROUNDS = 5


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('crowded', {'sizes': options.sizes, 'creates': options.creates, 'changes': options.changes,
                                       'interval': options.interval, 'concurrency': options.concurrency})
    empty: dict[str, Any] = {}
    for size in (0, *options.sizes):
        with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name:
            found = measure(pathlib.Path(name), size, options, result)
        result.details[str(size)] = found
        compare(result, size, found, empty)
        empty = empty or found
    result.finish(options.json)
    return 0


def measure(folder: pathlib.Path, size: int, options: argparse.Namespace, result: report.Report) -> dict[str, Any]:
    """Milliseconds of single creates and changes beside *size* domains, and what the system costs when idle."""
    crowd = names('crowd', size)
    system = System(folder, options.concurrency, MAKES, manager={'periodic_sync_interval': str(options.interval)})
    for server in system.servers:
        take_in(server, crowd)
    started = time.monotonic()
    with system:
        insert(system.storage, crowd, *(uuid.UUID(server_id).hex for server_id in system.server_ids))
        result.say(f'{size} domains are there after {time.monotonic() - started:.0f} s')
        await_sweep(system, size, options.interval)
        idle = measure_idle(system)
        load, watch = Load(system.central, 1, 10), Watch(system)
        created = [load.create_and_wait(watch, name) for name in names('one', options.creates)]
        changes = load.change_and_wait(watch, [domain for domain, _ in created], options.changes)
        memory.tell(result, system.processes, f'{size} domains')
    return {'create': [milliseconds for _, milliseconds in created], 'change': changes, 'idle': idle}


def compare(result: report.Report, size: int, found: Mapping[str, Any], empty: Mapping[str, Any]) -> None:
    """Put what was measured beside *size* domains into *result*.

    :param empty: what was measured beside none; empty where this is that
    """
    for what in ('create', 'change'):
        for title, of in (('median', statistics.median), ('99 of 100 within', lambda each: percentile(each, 0.99))):
            result.add(f'one {what} beside {size} domains: {title}', of(found[what]), 'ms',
                       *((of(empty[what]), EMPTY) if empty else ()))
    for title, unit in (('polls a second', ''), ('processors, of one', ''), ('SQL statements a second', '')):
        result.add(f'idle, {size} domains: {title}', found['idle'][title], unit)


def take_in(server: Knotd, crowd: Sequence[str]) -> None:
    """Have *server*, which has not started yet, begin with these zones and count what it is asked."""
    server.folder.mkdir(parents=True)
    (server.folder / 'tiny.zone').write_text(TEXT)
    old, new = _COUNTING
    assert old in server._configuration
    server._configuration = server._configuration.replace(old, new)
    if crowd:
        zones = '\n'.join(f'  - domain: {name}\n    template: crowd' for name in crowd)
        server._configuration = server._configuration.rstrip() + _TEMPLATE.format(folder=server.folder, zones=zones)


def await_sweep(system: System, size: int, interval: float) -> None:
    """Wait until each server has been asked for as many serials as there are domains.

    :raises AssertionError: when the sweep does not come round
    """
    before = asked(system)
    wait_until(lambda: all(now - then >= size for now, then in zip(asked(system), before)),
               'the sweep has come round', _ROUNDS * interval + 60, 0.2)


def measure_idle(system: System) -> dict[str, float]:
    """What goes on when nothing is changed."""
    clock = Processors(system.processes)
    polls, statements, cpu = sum(asked(system)), system.statements.read(), clock.read()
    started = time.monotonic()
    time.sleep(_IDLE)
    seconds = time.monotonic() - started
    return {'polls a second': (sum(asked(system)) - polls) / seconds,
            'processors, of one': ours(clock.since(cpu)) / seconds,
            'SQL statements a second': (system.statements.read() - statements) / seconds}


def asked(system: System) -> list[int]:
    """How many questions each server has been asked so far."""
    return [queries(server.knotc('stats', 'mod-stats.server-operation')) for server in system.servers]


def queries(printed: str) -> int:
    """The number of queries in what ``knotc stats mod-stats.server-operation`` prints."""
    for line in printed.splitlines():
        name, _, value = line.partition(' = ')
        if name == 'mod-stats.server-operation[query]':
            return int(value)
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('crowded', 'One create and one change in a pool with many domains, and in an empty one.')
    parser.add_argument('--sizes', type=sizes, default=(100000,), help='domains there are, with commas between them')
    parser.add_argument('--creates', type=int, default=50)
    parser.add_argument('--changes', type=int, default=200)
    parser.add_argument('--interval', type=float, default=120.0, help='periodic_sync_interval, in seconds')
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), default='eventlet')
    options = parser.parse_args(argv)
    if options.quick:
        options.sizes, options.interval = tuple(min(size, 5000) for size in options.sizes), min(options.interval, 5.0)
        options.creates, options.changes = min(options.creates, 20), min(options.changes, 60)
    return options


def sizes(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(','))


if __name__ == '__main__':
    sys.exit(main())
