"""How long one round of the audit takes that asks four servers for the serial of every domain, and what it costs.

A PostgreSQL is filled by SQL with domains that are at rest, four Knots have all of them from their start.  One pool
manager and one MiniDNS go over them round after round, without the pauses by which a round is spread over its interval;
RabbitMQ is between them.  From the processor time of our processes, the database's and the broker's follows what a
million domains need.  Nothing is wrong in this pool, so nothing may be found.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence

import sqlalchemy as sa

from benchmarks import memory, report
from benchmarks.measure import OTHERS, Processors
from benchmarks.primary import StaticPrimary
from benchmarks.tiny_zones import SERIAL
from designate_pool.model import Audit, AuditKind
from designate_pool.storage.operations import sweeps
from designate_pool.storage.sql.database import Storage, Tx
from testing.databases import PostgreSQL
from testing.processes import wait_until
from testing.rabbitmq import RabbitMq
from testing.rows import default_pool_id
from testing.stack import Stack

MILLION, INTERVAL, CORES = 1_000_000, 120.0, 2
#: What the work of a round is done by; the name servers' own work is not ours.
WORKERS = ('manager', 'minidns', 'PostgreSQL', 'RabbitMQ')
_PATIENCE = 900.0

_DOMAINS = sa.text("""
INSERT INTO domains (id, created_at, updated_at, pool_id, name, reversed_name, email, ttl, refresh, retry, expire,
                     minimum, serial, reported_serial, action, status)
SELECT 'd' || lpad(to_hex(n), 31, '0'), now(), now(), :pool, 'poll-' || lpad(n::text, 6, '0') || '.example.com.',
       'com.example.poll-' || lpad(n::text, 6, '0') || '.', 'hostmaster@example.com',
       3600, 3600, 600, 86400, 300, :serial, :serial, 'NONE', 'ACTIVE'
FROM generate_series(0, :count - 1) AS numbers(n)""")
_ROWS = sa.text("""
INSERT INTO pool_manager_status (id, created_at, updated_at, server_id, domain_id, action, status, serial_number,
                                 expected_serial)
SELECT md5(:server || n::text || action), now(), now(), :server, 'd' || lpad(to_hex(n), 31, '0'), action, 'SUCCESS',
       :serial, :serial
FROM generate_series(0, :count - 1) AS numbers(n), (VALUES ('CREATE'), ('UPDATE')) AS actions(action)""")


class Pool:
    """The servers, what the services stand on, and the services, one of each that an audit needs."""

    def __init__(self, folder: pathlib.Path, domains: int, servers: int, concurrency: str) -> None:
        names = [f'poll-{number:06}.example.com.' for number in range(domains)]
        self.servers = [StaticPrimary(folder / f'knot{number}', names) for number in range(servers)]
        self._ids = [uuid.uuid4() for _ in self.servers]
        self._folder, self._concurrency, self._domains = folder, concurrency, domains

    def __enter__(self) -> Pool:
        with contextlib.ExitStack() as end:
            for server in self.servers:
                end.enter_context(server)
            broker = end.enter_context(RabbitMq(self._folder / 'rabbitmq'))
            database = end.enter_context(PostgreSQL(durable=True))
            url = database.create_database()
            sections = [f'[backend:fake:{key}]\nhost = {server.endpoint.host}\nport = {server.endpoint.port}\n'
                        for key, server in zip(self._ids, self.servers)]
            # The least that can be set: as soon as a round is over, the next begins.
            stack = Stack(self._folder / 'services', sections, url, broker.url, self._concurrency,
                          manager={'periodic_sync_interval': '0.1'})
            end.callback(stack.stop)
            stack.manage('database', 'upgrade')
            self.storage = Storage(url)
            end.callback(self.storage.close)
            self.storage.run(self._fill)
            with self.storage.engine.connect().execution_options(isolation_level='AUTOCOMMIT') as connection:
                connection.exec_driver_sql('VACUUM ANALYZE')
            stack.launch('minidns', 'manager', 'api')
            self.processes = {**{name: process.pid for name, process in stack.processes.items()},
                              'PostgreSQL': database.pid, 'RabbitMQ': broker.pid, 'clients': os.getpid(),
                              **{f'Knot {number}': each.pid for number, each in enumerate(self.servers, 1)}}
            self._end = end.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.close()

    def next_round(self) -> Audit:
        """The row of the audit, once another round is over and all its answers have come."""
        before = self._audit()
        started_at = None if before is None else before.last_started_at

        def over() -> Audit | None:
            found = self._audit()
            if found is None or found.last_started_at == started_at:
                return None
            # The next round does not begin before.
            return found if found.after_id or found.sent == found.heard else None

        return wait_until(over, 'a round is over', _PATIENCE)

    def _audit(self) -> Audit | None:
        return self.storage.read(sweeps.get, 'default', AuditKind.SERIALS)

    def _fill(self, tx: Tx) -> None:
        facts = {'count': self._domains, 'serial': SERIAL}
        tx.execute(_DOMAINS, {**facts, 'pool': default_pool_id(tx)})
        for key in self._ids:
            tx.execute(_ROWS, {**facts, 'server': key.hex})


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('audit', {'domains': options.domains, 'servers': options.servers, 'rounds': options.rounds,
                                     'concurrency': options.concurrency})
    with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name:
        result.say(f'starting {options.servers} Knots with {options.domains} zones each')
        with Pool(pathlib.Path(name), options.domains, options.servers, options.concurrency) as pool:
            wrong = measure(pool, options.rounds, result)
            memory.tell(result, pool.processes, 'audit')
    result.finish(options.json)
    return 1 if wrong else 0


def measure(pool: Pool, rounds: int, result: report.Report) -> bool:
    """Let some rounds go by; whether any of them was not whole, or found anything."""
    result.say(f'the first round, {_told(pool.next_round())}')
    processors = Processors(pool.processes)
    before, started = processors.read(), time.monotonic()
    done = []
    for _ in range(rounds):
        done.append(pool.next_round())
        result.say(_told(done[-1]))
    seconds, cpu = time.monotonic() - started, processors.since(before)
    pairs = sum(each.last.asked for each in done if each.last is not None)
    result.add('pairs a second', pairs / seconds, '/s')
    result.add('a round', seconds / rounds, 's')
    for name, used in cpu.items():
        if name != OTHERS:
            result.add(f'processors, {name}, for 100,000 pairs', 1e5 * used / pairs, 's')
    scale = MILLION * len(pool.servers) / pairs
    needed = scale * sum(cpu[name] for name in WORKERS)
    result.add('calculated, a million domains: processors, ours, database, broker', needed, 's',
               CORES * INTERVAL, f'{CORES} cores for {INTERVAL:g} s')
    result.add('calculated, a million domains: a round at this rate', scale * seconds, 's', INTERVAL, 'the interval')
    result.details['processor_seconds'] = cpu
    return any(each.last is None or each.last.findings or each.last.coverage < 1.0 for each in done)


def _told(audit: Audit) -> str:
    assert audit.last is not None
    return (f'{audit.last_seconds:.1f} s: {audit.last.domains} domains, {audit.last.asked} asked of '
            f'{audit.last.pairs}, {audit.last.unanswered} unanswered, {audit.last.findings} findings')


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('audit', __doc__ or '')
    parser.add_argument('--domains', type=int, default=100_000)
    parser.add_argument('--servers', type=int, default=4)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), default='eventlet')
    options = parser.parse_args(argv)
    if options.quick:
        options.domains = min(options.domains, 5000)
    return options


if __name__ == '__main__':
    sys.exit(main())
