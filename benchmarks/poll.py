"""How many SOA queries a second our pollers ask and read the answers of, beside dnsperf, of the same servers.

A Knot and an NSD have the zones from their start.  *polls* are what follows a change: the poller and exchange of
MiniDNS, with a schedule, a result and a report for each zone.  *audit* is what the audit of all domains does.  dnsperf
has one thread and one socket, as we have.  Ours are in a process of their own, with native threads and with eventlet;
all take turns, and the best round of each counts.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks import report
from benchmarks.poll_ways import WAYS, Asked, zone_names
from benchmarks.servers_primary import StaticPrimary
from benchmarks.servers_zones import TEXT
from designate_pool.model import Endpoint
from testing.nsd import Nsd
from testing.processes import binary

PEER = 'dnsperf'
CONCURRENCIES = ('threading', 'eventlet')
#: Queries under way at once, ours and dnsperf's.
IN_FLIGHT = 128
_SECONDS = 600.0
_FIGURES = {'queries': r'Queries completed:\s+(\d+)', 'lost': r'Queries lost:\s+(\d+)',
            'seconds': r'Run time \(s\):\s+([\d.]+)'}


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """
    :ivar queries: a file for dnsperf
    """

    endpoint: Endpoint
    zones: int
    seconds: float
    queries: pathlib.Path


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all that was started is ended
    result = report.Report('poll', {'zones': ','.join(map(str, options.zones)), 'rounds': options.rounds,
                                    'seconds': options.seconds})
    with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name:
        for zones in options.zones:
            folder = pathlib.Path(name) / str(zones)
            folder.mkdir()
            queries = folder / 'queries'
            queries.write_text(''.join(f'{zone} SOA\n' for zone in zone_names(zones)))
            for make in options.makes:
                with MAKES[make](folder / make, zone_names(zones)) as endpoint:
                    measure(make, Place(endpoint, zones, options.seconds, queries), options.rounds, result)
    result.finish(options.json)
    return 0


def measure(make: str, place: Place, rounds: int, result: report.Report) -> None:
    """All by turns, and what each did in its best round beside dnsperf's."""
    askers = {PEER: by_dnsperf} | {f'{way}, {concurrency}': _ours(way, concurrency)
                                   for way in WAYS for concurrency in CONCURRENCIES}
    asked: dict[str, list[Asked]] = {name: [] for name in askers}
    for _ in range(rounds):
        for name, ask in askers.items():
            asked[name].append(ask(place))
            result.say(f'{time.strftime("%H:%M:%S")} {make}, {place.zones} zones, {name}: {_line(asked[name][-1])}')
    best = {name: max(some, key=lambda each: each.rate) for name, some in asked.items()}
    for name in askers:
        title = f'{make}, {place.zones} zones: {name}'
        if name != PEER:
            result.add(title, best[name].rate, 'queries/s', best[PEER].rate, PEER)
            result.add(f'{title}, processor', 1e6 * best[name].cpu / best[name].queries, 'µs/query',
                       1e6 * best[PEER].cpu / best[PEER].queries, PEER)
            result.add(f'{title}, lost', sum(each.lost for each in asked[name]), 'queries')
        result.details[title] = [dataclasses.asdict(each) for each in asked[name]]


def by_dnsperf(place: Place) -> Asked:
    """dnsperf, through its file again and again."""
    before = _children()
    done = subprocess.run(
        [binary('dnsperf'), '-s', place.endpoint.host, '-p', str(place.endpoint.port), '-d', str(place.queries),
         '-T', '1', '-c', '1', '-q', str(IN_FLIGHT), '-l', f'{max(1, round(place.seconds))}'],
        capture_output=True, text=True, timeout=_SECONDS, check=True)
    return read_dnsperf(done.stdout, _children() - before)


def read_dnsperf(printed: str, cpu: float) -> Asked:
    """What dnsperf says that it has done.

    :raises AssertionError: when the answers were not all NOERROR
    """
    found = {name: re.search(pattern, printed) for name, pattern in _FIGURES.items()}
    missing = [name for name, match in found.items() if match is None]
    assert not missing, f'dnsperf does not tell {missing}: {printed}'
    numbers = {name: float(match[1]) for name, match in found.items() if match is not None}
    codes = re.search(r'Response codes:\s+(.*)', printed)
    assert codes is not None and re.fullmatch(r'NOERROR \d+ \(100\.00%\)', codes[1].strip()), printed
    return Asked(int(numbers['queries']), int(numbers['lost']), numbers['seconds'], cpu)


def _ours(way: str, concurrency: str) -> Callable[[Place], Asked]:
    def ask(place: Place) -> Asked:
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-m', 'benchmarks.poll_ways', way, concurrency, place.endpoint.host,
             str(place.endpoint.port), str(place.zones), str(place.seconds)],
            stdout=subprocess.PIPE, text=True, timeout=_SECONDS, check=True)
        fields: Mapping[str, float] = json.loads(done.stdout)
        return Asked(int(fields['queries']), int(fields['lost']), fields['seconds'], fields['cpu'])

    return ask


@contextlib.contextmanager
def knot(folder: pathlib.Path, names: Sequence[str]) -> Iterator[Endpoint]:
    with StaticPrimary(folder, names) as primary:
        yield primary.endpoint


@contextlib.contextmanager
def nsd(folder: pathlib.Path, names: Sequence[str]) -> Iterator[Endpoint]:
    """With its limit of answers a second, which is for each zone."""
    folder.mkdir()
    (folder / 'tiny.zone').write_text(TEXT)
    server = Nsd(folder, database=False, statements='\n'.join(
        f'zone:\n    name: "{name}"\n    zonefile: "tiny.zone"' for name in names))
    try:
        server.start()
        yield Endpoint(server.host, server.port)
    finally:
        server.remove()


MAKES = {'knot': knot, 'nsd': nsd}


def _line(asked: Asked) -> str:
    return (f'{asked.rate:.0f} queries/s, {asked.lost} lost, '
            f'{1e6 * asked.cpu / asked.queries:.1f} µs of processor for each')


def _children() -> float:
    """Processor seconds of the processes that were started and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('poll', 'Asking servers for the serials of many zones, beside dnsperf.')
    parser.add_argument('--zones', type=_sizes, default=(1000, 100_000), help='with commas')
    parser.add_argument('--makes', type=_words, default=tuple(MAKES), help=f'with commas, of {", ".join(MAKES)}')
    parser.add_argument('--rounds', type=int, default=3, help='the best one counts')
    parser.add_argument('--seconds', type=float, default=5.0, help='of a round, which ends with its last zone')
    options = parser.parse_args(argv)
    if options.quick:
        options.zones, options.rounds, options.seconds = (min(options.zones),), 1, min(options.seconds, 2.0)
    return options


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(','))


def _words(text: str) -> tuple[str, ...]:
    found = tuple(word.strip() for word in text.split(','))
    for word in found:
        if word not in MAKES:
            raise argparse.ArgumentTypeError(f'{word} is none of {", ".join(MAKES)}')
    return found


if __name__ == '__main__':
    sys.exit(main())
