"""Zone files imported over HTTP, until the server serves what they say: one large zone, then many small ones.

The services run as processes over RabbitMQ, with one Knot.  The limits are measured in the same run: a Knot that loads
the same file by itself, dnspython reading it, and for the small zones a Knot that is told of each directly, with
another Knot as the primary.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import multiprocessing
import os
import pathlib
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence

import dns.zone
import requests
import sqlalchemy as sa

from benchmarks import memory, report
from benchmarks.makes import MAKES
from benchmarks.measure import Processors
from benchmarks.primary import StaticPrimary
from benchmarks.serials import await_serials
from benchmarks.steps import most_seconds
from benchmarks.system import DATABASES, System, Watch, names
from benchmarks.tiny_zones import SERIAL, TEXT
from designate_pool.central import zonefile_parser
from designate_pool.model import Endpoint
from designate_pool.storage.sql.schema import domains, records as records_table
from testing.knot import Knotd
from testing.processes import wait_until

#: Lines that are written at once.
_LINES = 10_000
#: Records of a name, by the number of the record; the first of each name has its name written.
_RECORDS = ('h{number:07} A 192.0.{high}.{low}', '  AAAA 2001:db8::{upper:x}:{lower:x}', '  TXT "host {number}"',
            'h{number:07}-c CNAME h{number:07}', 'h{number:07}-m 600 MX 10 h{number:07}')


def write_large(file: pathlib.Path, name: str, records: int) -> None:
    """Write a zone file with so many records, the SOA and the NS among them; five for each host.

    The names are in the order in which name servers write them (RFC 4034 section 6.1).
    """
    head, _, _ = TEXT.rpartition('www')
    with file.open('w') as out:
        out.write(f'$ORIGIN {name}{head}')
        for start in range(0, records - 2, _LINES):
            out.writelines(f'{_record(number)}\n' for number in range(start, min(start + _LINES, records - 2)))


def write_small(name: str) -> bytes:
    """A zone file with three records."""
    return f'$ORIGIN {name}{TEXT}'.encode('ascii')


def parsed_by_us(file: pathlib.Path) -> tuple[float, float]:
    """Seconds, and MB that this process has had at most."""
    started = time.perf_counter()
    with file.open() as lines:
        _, contents = zonefile_parser.parse(line.rstrip('\n') for line in lines)
        found = sum(1 for _ in contents)
    return _measured(started, found)


def parsed_by_dnspython(file: pathlib.Path) -> tuple[float, float]:
    """Seconds, and MB that this process has had at most."""
    started = time.perf_counter()
    zone = dns.zone.from_file(str(file), relativize=False)
    return _measured(started, len(zone.nodes))


def _record(number: int) -> str:
    host, kind = divmod(number, len(_RECORDS))
    return _RECORDS[kind].format(number=host, high=host // 250 % 250, low=host % 250, upper=host >> 16,
                                 lower=host & 0xffff)


def _measured(started: float, found: int) -> tuple[float, float]:
    spent = time.perf_counter() - started
    assert found
    return spent, memory.measure(os.getpid()).most


LARGE = 'large-0.example.com.'
MAKE = 'knot'
CLIENTS = 8
#: Small zone files in a request, and clients that send such requests.
BATCH, BATCH_CLIENTS = 200, 2
SECONDS = 3600.0
#: Beyond so many records dnspython is left out: it takes minutes, and gigabytes.
PEER_MOST = 1_000_000
_HEADERS = {'Content-Type': 'text/dns'}
_FILE_TEMPLATE = '''  - id: file
    storage: "{folder}"
    zonefile-sync: -1
    zonefile-load: whole
    journal-content: none
'''


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('import_zones', {'records': options.records, 'domains': options.domains,
                                            'database': options.database, 'concurrency': options.concurrency})
    with (tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name,
          concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context('spawn')) as asker):
        folder = pathlib.Path(name)
        asker.submit(await_serials, [], {}, 0.0).result()  # it is ready
        file = folder / 'large.zone'
        write_large(file, LARGE, options.records)
        loading = loaded_by_knot(folder / 'loading', file)
        parsing = read_alone(file, options.records, result)
        telling = told_to_knot(folder / 'told', names('small', options.domains), asker)
        with System(folder, options.concurrency, [MAKE], options.database) as system:
            import_large(system, file, options.records, loading, parsing, result)
            memory.tell(result, system.processes, 'a large zone')
            import_small(system, options.domains, 1 if options.alone else BATCH, telling, asker, result)
            memory.tell(result, system.processes, 'and many small ones')
    result.finish(options.json)
    return 0


def loaded_by_knot(folder: pathlib.Path, file: pathlib.Path) -> float:
    """Seconds from telling a Knot of a zone until it serves it out of its file."""
    server = Knotd(folder, templates=_FILE_TEMPLATE)
    try:
        server.start()
        started = time.monotonic()
        server.change(['conf-set', f'zone[{LARGE}]'], ['conf-set', f'zone[{LARGE}].template', 'file'],
                      ['conf-set', f'zone[{LARGE}].file', str(file)])
        return await_serials([Endpoint(server.host, server.port)], {LARGE: SERIAL}, SECONDS) - started
    finally:
        server.remove()


def read_alone(file: pathlib.Path, records: int, result: report.Report) -> float | None:
    """Seconds that dnspython takes for the file, None where it is left out; and what our reader takes."""
    ours, ours_memory = _in_a_process(parsed_by_us, file)
    theirs, their_memory = _in_a_process(parsed_by_dnspython, file) if records <= PEER_MOST else (None, None)
    result.add('large zone: read the file, no more', ours, 's', theirs, 'dnspython')
    result.add('large zone: memory of who reads the file', ours_memory, 'MB', their_memory, 'dnspython')
    return theirs


def told_to_knot(folder: pathlib.Path, wanted: Sequence[str], asker: concurrent.futures.Executor) -> float:
    """Seconds that a Knot takes for these zones when it is told of them directly, and transfers them from a Knot."""
    make = MAKES[MAKE]
    server = make.new(folder / 'server')
    with StaticPrimary(folder / 'primary', wanted) as primary:
        try:
            server.start()
            add = make.add(server, wanted, primary.endpoint)
            started = time.monotonic()
            served = asker.submit(await_serials, [Endpoint(server.host, server.port)], dict.fromkeys(wanted, SERIAL),
                                  most_seconds(len(wanted)), 0.1)
            add()
            return served.result() - started
        finally:
            server.remove()


def import_large(system: System, file: pathlib.Path, records: int, loading: float, parsing: float | None,
                 result: report.Report) -> None:
    """From the first octet of the upload until the Knot serves the zone."""
    started = time.monotonic()
    with file.open('rb') as contents:
        answer = requests.post(_imports(system), data=contents, headers=_HEADERS, timeout=SECONDS)
    assert answer.status_code == 202, answer.text
    task = system.stack.wait_for_import(answer.json()['id'], SECONDS)
    assert task['status'] == 'COMPLETE', task
    imported = time.monotonic()
    watch = Watch(system)
    active = watch.all_active('large', 1, SECONDS)
    await_serials(system.endpoints, dict(watch.serials('large')), 5.0)
    result.say(f'large zone: imported in {imported - started:.1f} s, ACTIVE {active - imported:.1f} s later')
    result.add('large zone: until ACTIVE', active - started, 's', loading, 'a Knot that loads the file')
    result.add('large zone: until ACTIVE', active - started, 's', parsing, parsing and 'dnspython that reads the file')
    result.add('large zone: until imported', imported - started, 's')
    result.add('large zone: from imported to ACTIVE', active - imported, 's')
    result.add('large zone: records a second', records / (active - started), '/s')
    # Each is inserted and made ACTIVE; more is a detour by ERROR.
    written = sa.select(sa.func.max(records_table.c.version)).select_from(
        records_table.join(domains)).where(domains.c.name == LARGE)
    result.add('large zone: times that each record was written',
               system.storage.read(lambda tx: tx.execute(written).scalar_one()), '')


def import_small(system: System, count: int, batch: int, telling: float, asker: concurrent.futures.Executor,
                 result: report.Report) -> None:
    """From the first upload until the Knot serves the last zone.

    :param batch: zone files in a request; with 1 each is one as Designate has it
    """
    wanted = names('small', count)
    sessions = threading.local()

    def post(some: Sequence[str]) -> None:
        if not hasattr(sessions, 'own'):
            sessions.own = requests.Session()
        if batch == 1:
            answer = sessions.own.post(_imports(system), data=write_small(some[0]), headers=_HEADERS, timeout=SECONDS)
        else:
            answer = sessions.own.post(f'{system.stack.url}/v2/zones/tasks/import_batches', timeout=SECONDS,
                                       json={'zonefiles': [write_small(name).decode() for name in some]})
        assert answer.status_code == 202, answer.text

    watch, clock = Watch(system), Processors(system.processes)
    before, started = clock.read(), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(CLIENTS if batch == 1 else BATCH_CLIENTS) as clients:
        for _ in clients.map(post, [wanted[start:start + batch] for start in range(0, count, batch)]):
            pass
    submitted = time.monotonic()
    imported = _all_imported(system, count, most_seconds(count))
    active = watch.all_active('small', count, most_seconds(count))
    used = clock.since(before)
    asker.submit(await_serials, system.endpoints, dict(watch.serials('small')), 30.0).result()
    result.say(f'{count} small zones: submitted in {submitted - started:.1f} s, ACTIVE after {active - started:.1f} s')
    result.add('small zones: until all are ACTIVE', active - started, 's', telling, 'a Knot told directly')
    result.add('small zones: submission alone', submitted - started, 's')
    result.add('small zones: into the database, a second', count / (imported - started), '/s')
    result.add('small zones: domains a second', count / (active - started), '/s', count / telling,
               'a Knot told directly')
    for name, seconds in used.items():
        result.add(f'small zones: processor of {name} for each', 1000 * seconds / count, 'ms')


def _all_imported(system: System, count: int, seconds: float) -> float:
    """When the domains of all small zones were in the database."""
    found = sa.select(sa.func.count()).where(domains.c.name.like('small-%'))
    wait_until(lambda: system.storage.read(lambda tx: tx.execute(found).scalar_one()) >= count,
               'all small zones are imported', seconds, 0.25)
    return time.monotonic()


def _imports(system: System) -> str:
    return f'{system.stack.url}/v2/zones/tasks/imports'


def _in_a_process(read: Callable[[pathlib.Path], tuple[float, float]], file: pathlib.Path) -> tuple[float, float]:
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context('spawn')) as alone:
        return alone.submit(read, file).result()


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('import_zones', 'Zone files imported until a Knot serves them.')
    parser.add_argument('--records', type=int, default=1_000_000, help='of the large zone')
    parser.add_argument('--domains', type=int, default=100_000, help='small ones')
    parser.add_argument('--alone', action='store_true', help='each small zone in a request of its own')
    parser.add_argument('--database', choices=tuple(DATABASES), default='postgresql')
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), default='eventlet')
    options = parser.parse_args(argv)
    if options.quick:
        options.records, options.domains = min(options.records, 20_000), min(options.domains, 500)
    return options


if __name__ == '__main__':
    sys.exit(main())
