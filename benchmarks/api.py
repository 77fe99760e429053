"""Requests a second of the API, and their 99th percentile, with few zones and with many.

The services run as processes over RabbitMQ, with their zones in PostgreSQL.  *Bare* is the same HTTP server with an
application that only answers, with as many bytes as ours, measured in the same run by the same clients.  A list is
asked for its first page and for its last, with 1,000 zones in the database and with all; and zones are shown while
other clients are slow, and while they flood.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import multiprocessing
import os
import pathlib
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence

from benchmarks import memory, report
from benchmarks.api_bare import BareApi
from benchmarks.api_clients import Answered, Connection, Neighbours, drive, prepare
from benchmarks.system import names
from benchmarks.tiny_zones import identifier, insert
from designate_pool.storage.sql.database import Storage, Tx
from testing.databases import PostgreSQL
from testing.processes import free_port
from testing.rabbitmq import RabbitMq
from testing.stack import Stack

FEW = 1000
PAGE = 20
SERVER_ID = 'aaaaaaaa000040008000000000000001'
SERVER = '[backend:fake:aaaaaaaa-0000-4000-8000-000000000001]\nhost = 127.0.0.1\nport = {}\n'
#: What a domain, a record, and a server that has a domain take in the database, by the tables that they are in.
HELD = {'domain': ('domains',), 'record with its recordset': ('recordsets', 'records'),
        'domain on a server': ('pool_manager_status',)}


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('api', {'zones': options.zones, 'requests': options.requests, 'clients': options.clients,
                                   'concurrency': options.concurrency})
    with (tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name,
          running(pathlib.Path(name), options.concurrency) as (stack, storage),
          concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context('spawn')) as driver):
        bench = Bench(stack, driver, options, result)
        there = names('zone', options.zones)
        insert(storage, there[:FEW], SERVER_ID)
        at_first = f'{min(FEW, len(there))} zones'
        few = bench.lists(there[:FEW], at_first)
        insert(storage, there[FEW:], SERVER_ID)
        storage.run(lambda tx: tx.exec_driver_sql('ANALYZE'))  # as PostgreSQL does by itself within a minute
        measure_sizes(storage, there, result)
        many = bench.lists(there, f'{len(there)} zones')
        for where in ('first', 'last'):
            result.add(f'list, {where} page: time with {len(there)} zones', 1 / many[where].rate, 's',
                       1 / few[where].rate, f'with {at_first}')
        result.add('list: time of the last page', 1 / many['last'].rate, 's', 1 / many['first'].rate, 'of the first')
        bench.show(there)
        bench.create_recordsets(there)
        memory.tell(result, {**{key: process.pid for key, process in stack.processes.items()}, 'clients': os.getpid()})
    result.finish(options.json)
    return 0


class Bench:
    """What is asked of one running system."""

    def __init__(self, stack: Stack, driver: concurrent.futures.Executor, options: argparse.Namespace,
                 result: report.Report) -> None:
        self._stack = stack
        self._driver = driver
        self._options = options
        self._result = result

    def lists(self, there: Sequence[str], title: str) -> dict[str, Answered]:
        marker = identifier(sorted(there)[-PAGE - 1])
        paths = {'first': f'/v2/zones?limit={PAGE}', 'last': f'/v2/zones?limit={PAGE}&marker={marker}'}
        return {where: self._compared(f'list, {where} page, {title}', [prepare('GET', path)])
                for where, path in paths.items()}

    def show(self, there: Sequence[str]) -> None:
        shown = random.Random(1).sample(there, min(FEW, len(there)))
        requests = [prepare('GET', f'/v2/zones/{identifier(name)}') for name in shown]
        quiet = self._compared('show', requests)
        for title, slow, flooding in (('100 slow clients', 100, 0), ('8 clients that flood', 0, 8)):
            with Neighbours(self._stack.api_port, slow, flooding, prepare('GET', '/v2/zones?limit=100')):
                disturbed = self._measured(f'show, beside {title}', self._stack.api_port, requests)
            self._result.add(f'show, 99th percentile beside {title}', disturbed.percentile(0.99), 'ms',
                             quiet.percentile(0.99), 'without them')

    def create_recordsets(self, there: Sequence[str]) -> None:
        zones = random.Random(2).sample(there, self._options.requests)
        self._compared('recordset create', [
            prepare('POST', f'/v2/zones/{identifier(name)}/recordsets',
                    {'name': f'new.{name}', 'type': 'A', 'records': ['192.0.2.7']}) for name in zones], once=True)

    def _compared(self, title: str, requests: Sequence[bytes], once: bool = False) -> Answered:
        """
        :param once: whether each of *requests* can be sent once only
        """
        connection = Connection(self._stack.api_port)
        length = len(connection.ask(requests[-1])[1])
        connection.close()
        with BareApi(length) as bare:
            limit = self._measured(f'{title}, bare', bare.port, requests)
        ours = self._measured(title, self._stack.api_port, requests[:-1] if once else requests, once)
        if not set(ours.statuses) <= {200, 202}:
            raise RuntimeError(f'{title}: answered with {ours.statuses}')
        self._result.add(f'{title}: requests', ours.rate, '/s', limit.rate, 'bare')
        self._result.add(f'{title}: 99th percentile', ours.percentile(0.99), 'ms', limit.percentile(0.99), 'bare')
        return ours

    def _measured(self, title: str, port: int, requests: Sequence[bytes], once: bool = False) -> Answered:
        count = len(requests) if once else self._options.requests
        found = self._driver.submit(drive, port, requests, count, self._options.clients).result()
        self._result.say(f'{title}: {found.rate:.0f}/s, median {found.percentile(0.5):.1f} ms, '
                         f'99 % {found.percentile(0.99):.1f} ms')
        self._result.details[title] = found.as_json()
        return found


def measure_sizes(storage: Storage, there: Sequence[str], result: report.Report) -> None:
    """Bytes of PostgreSQL's files, with indexes and without; a zone has two records, and is on one server."""
    for what, tables in HELD.items():
        count = len(there) * (2 if 'records' in tables else 1)
        whole, bare = (sum(storage.read(_size, function, table) for table in tables) / count
                       for function in ('pg_total_relation_size', 'pg_relation_size'))
        result.add(f'database: bytes of a {what}', whole, 'B', bare, 'without indexes')


def _size(tx: Tx, function: str, table: str) -> int:
    return int(tx.exec_driver_sql(f"SELECT {function}('{table}')").scalar_one())


@contextlib.contextmanager
def running(folder: pathlib.Path, concurrency: str) -> Iterator[tuple[Stack, Storage]]:
    """The services, with one server that agrees to everything."""
    with RabbitMq(folder / 'rabbitmq') as broker, PostgreSQL(durable=True) as database:
        url = database.create_database()
        stack = Stack(folder / 'services', [SERVER.format(free_port())], url, broker.url, concurrency, manager={},
                      api={'rate_limit': '0'})
        with stack, contextlib.closing(Storage(url)) as storage:
            yield stack, storage


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('api', 'Requests a second of the API, with few zones and with many.')
    parser.add_argument('--zones', type=int, default=100000)
    parser.add_argument('--requests', type=int, default=3000, help='of each kind')
    parser.add_argument('--clients', type=int, default=4, help='connections at once')
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), default='eventlet')
    options = parser.parse_args(argv)
    if options.quick:
        options.zones, options.requests = min(options.zones, 5000), min(options.requests, 500)
    return options


if __name__ == '__main__':
    sys.exit(main())
