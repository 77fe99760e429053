"""Transfers of large zones from MiniDNS, beside BIND, Knot and NSD that serve the same zone.

One client takes them all and only counts.  *Cold* is the first transfer of a serial, which is read from the database;
*kept* the next one; *IXFR* is that of 1,000 records that got other addresses.  The better of several rounds counts.
Over TLS and over TCP MiniDNS also answers many times on one connection: the whole zone, and one changed record.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import dataclasses
import pathlib
import re
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import dns.message
import dns.rrset
import dns.tsig

from benchmarks import report
from benchmarks.measure import Processors
from benchmarks.queries import DATABASES
from benchmarks.transfer_data import BESIDE, NAME, change, fill, raise_serial, write_zone_file
from designate_pool.model import Endpoint, TsigKey
from designate_pool.protocol import tls
from designate_pool.storage.sql.database import Storage
from testing.bind import Named
from testing.certificates import self_signed
from testing.knot import Knotd
from testing.minidns import MiniDnsProcess
from testing.nsd import Nsd
from testing.processes import wait_until

_CHUNK = 1 << 20
_SECONDS = 120.0
#: On one connection: records of whole zones, and transfers of one change.
_LARGE, _SMALL = 2_500_000, 2000


@dataclasses.dataclass(frozen=True, slots=True)
class Taken:
    """
    :ivar seconds: from sending the query to the last octet, the connection not counted
    """

    seconds: float
    records: int
    messages: int
    octets: int


def query(have: int | None = None, key: TsigKey | None = None) -> bytes:
    """An AXFR, or an IXFR of who has the serial *have*, as it is sent."""
    message = dns.message.make_query(NAME, 'AXFR' if have is None else 'IXFR', flags=0)
    if have is not None:
        message.authority.append(dns.rrset.from_text(NAME, 0, 'IN', 'SOA', f'. . {have} 0 0 0 0'))
    if key is not None:
        message.use_tsig(dns.tsig.Key(key.name, key.secret, key.algorithm))
    wire = message.to_wire()
    return len(wire).to_bytes(2, 'big') + wire


def take(server: Endpoint, octets: bytes, records: int, context: ssl.SSLContext | None = None,
         times: int = 1) -> Taken:
    """Send a query, and take messages until they have as many *records* as there have to be.

    :param context: for TLS; None for none
    :param times: how often on the one connection, each when the answer before is there
    :returns: of all of them
    :raises AssertionError: when the server refuses, or sends fewer or more
    """
    with contextlib.ExitStack() as end:
        sock = end.enter_context(socket.create_connection((server.host, server.port), timeout=_SECONDS))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            sock = end.enter_context(context.wrap_socket(sock))
        started = time.monotonic()
        answers = [_answer(server, sock, octets, records) for _ in range(times)]
        seconds = time.monotonic() - started
    messages, taken = map(sum, zip(*answers))
    return Taken(seconds, times * records, messages, taken)


def _answer(server: Endpoint, sock: socket.socket, octets: bytes, records: int) -> tuple[int, int]:
    """Send a query on a connection; how many messages and octets the answer has."""
    sock.sendall(octets)
    buffer = bytearray()
    found = messages = taken = 0
    while found < records:
        more = sock.recv(_CHUNK)
        assert more, f'{server} closed the connection after {found} of {records} records'
        taken += len(more)
        buffer += more
        at = 0
        while len(buffer) >= at + 14 and len(buffer) >= (end := at + 2 + (buffer[at] << 8 | buffer[at + 1])):
            assert not buffer[at + 5] & 15, f'{server} refuses with rcode {buffer[at + 5] & 15}'
            found += buffer[at + 8] << 8 | buffer[at + 9]
            messages += 1
            at = end
        del buffer[:at]
    assert found == records, f'{server} sent {found} records, not {records}'
    return messages, taken


#: Seconds that a server may take to load the zone.
LOADING = 300.0
_KNOT = '''
acl:
  - id: plain
    address: 127.0.0.1
    action: transfer
  - id: signed
    address: 127.0.0.1
    key: {key}
    action: transfer
zone:
  - domain: {name}
    file: "{file}"
    acl: [plain, signed]
    zonefile-load: whole
    journal-content: none
'''


def bind9(folder: pathlib.Path, zone_file: pathlib.Path, key: TsigKey) -> Named:
    return Named(folder, keys=[key],
                 statements=f'zone "{NAME}" {{ type primary; file "{zone_file}"; notify no; }};')


def knot(folder: pathlib.Path, zone_file: pathlib.Path, key: TsigKey) -> Knotd:
    # Of section templates, the one without a file stands in the fixture; so the zone's own items say where it is.
    return Knotd(folder, keys=[key], templates=_KNOT.format(key=key.name, name=NAME, file=zone_file))


def nsd(folder: pathlib.Path, zone_file: pathlib.Path, key: TsigKey) -> Nsd:
    return Nsd(folder, keys=[key], database=False, statements=f'''
zone:
    name: "{NAME}"
    zonefile: "{zone_file}"
    provide-xfr: 127.0.0.1 NOKEY
    provide-xfr: 127.0.0.1 {key.name}
''')


PEERS: dict[str, Callable[[pathlib.Path, pathlib.Path, TsigKey], Named | Knotd | Nsd]] = {
    'bind9': bind9, 'knot': knot, 'nsd': nsd}


KEY = TsigKey('transfer-key.', 'hmac-sha256', base64.b64encode(b'a secret of thirty-two octets...').decode())
SERVERS = ({'id': 'a' * 32, 'driver': 'fake', 'host': '127.0.0.1', 'port': 1},
           {'id': 'b' * 32, 'driver': 'fake', 'host': '192.0.2.2', 'port': 1,
            'tsig_key': [KEY.name, KEY.algorithm, KEY.secret]})
SIGNING = {'plain': None, 'TSIG': KEY}
#: Whom we are compared with.
COLD, KEPT = 'bind9', 'knot'

#: Records a second by the name of the server and whether it signs.
Rates = dict[tuple[str, str], float]


class Bench:
    """
    :param result: where the figures go
    """

    def __init__(self, folder: pathlib.Path, options: argparse.Namespace, result: report.Report) -> None:
        self._folder, self._options, self._result = folder, options, result

    def peers(self, size: int) -> Rates:
        """The others with the zone of so many records."""
        zone_file = self._folder / f'{size}.zone'
        write_zone_file(zone_file, size)
        rates: Rates = {}
        for name in self._options.peers:
            server = PEERS[name](self._folder / f'{name}-{size}', zone_file, KEY)
            with contextlib.ExitStack() as end:
                end.callback(server.remove)
                server.start()
                wait_until(lambda server=server: server.serial('example.org.') == 7, f'{name} has the zone', LOADING)
                for word, key in SIGNING.items():
                    best = self._best(Endpoint(server.host, server.port), query(key=key), size + BESIDE)
                    rates[name, word] = size / best.seconds
                    self._tell(f'{name}, {size} records, {word}', best)
        return rates

    def ours(self, database: str, size: int, rates: Rates) -> None:
        """MiniDNS with the same zone in a *database*."""
        with contextlib.ExitStack() as end:
            url = DATABASES[database](end)
            domain_id = fill(url, size)
            storage = Storage(url)
            end.callback(storage.close)
            label = f'{size} records, {database}'
            with self._minidns(url) as (process, endpoint):
                for word, key in SIGNING.items():
                    def cold() -> None:
                        raise_serial(storage, domain_id)

                    self._add(f'{label}, {word}: cold', size, self._best(endpoint, query(key=key), size + BESIDE, cold),
                              rates, COLD, word)
                    kept = self._best(endpoint, query(key=key), size + BESIDE)
                    self._add(f'{label}, {word}: kept', size, kept, rates, KEPT, word)
                    self._over_tls(f'{label}, {word}: AXFR, kept', process, query(key=key), size + BESIDE,
                                   max(1, _LARGE // size))
            if size >= 2 * self._options.changes:
                self._incremental(label, url, storage, domain_id)

    def _incremental(self, label: str, url: str, storage: Storage, domain_id: str) -> None:
        count = self._options.changes
        have = change(storage, domain_id, count)
        with self._minidns(url) as (process, endpoint):
            before = _private(process.pid)
            first = take(endpoint, query(have), 2 * count + 4)
            self._tell(f'{label}: IXFR', first)
            self._result.add(f'{label}: IXFR of {count} changes, first', 1000 * first.seconds, 'ms', 50.0, 'aim')
            kept = self._best(endpoint, query(have), 2 * count + 4)
            self._result.add(f'{label}: IXFR of {count} changes, kept', 1000 * kept.seconds, 'ms', 50.0, 'aim')
            self._memory(f'{label}: IXFR', before, _private(process.pid))
        have = change(storage, domain_id, 1)
        with self._minidns(url) as (process, endpoint):
            self._over_tls(f'{label}: IXFR of one change', process, query(have), 6, _SMALL)

    def _over_tls(self, title: str, process: MiniDnsProcess, octets: bytes, records: int, times: int) -> None:
        """Answers on one connection, one after the other, over TLS beside TCP."""
        rates, spent, processors = [], [], Processors({'minidns': process.pid})
        for port, context in ((process.port, None), (process.tls_port, tls.client_context(is_strict=False))):
            before = processors.read()
            best = self._best(Endpoint(process.host, port), octets, records, context=context, times=times)
            spent.append(1e6 * processors.since(before)['minidns'] / times / self._options.rounds)
            self._tell(f'{title}: {times} over {"TLS" if context else "TCP"}', best)
            rates.append(times / best.seconds)
        self._result.add(f'{title}, over TLS', rates[1], '/s', rates[0], 'TCP')
        self._result.add(f'{title}, over TLS: processor of MiniDNS', spent[1], 'µs', spent[0], 'TCP')

    def _best(self, endpoint: Endpoint, octets: bytes, records: int,
              prepare: Callable[[], object] = lambda: None, context: ssl.SSLContext | None = None,
              times: int = 1) -> Taken:
        rounds = []
        for _ in range(self._options.rounds):
            prepare()
            rounds.append(take(endpoint, octets, records, context, times))
        return min(rounds, key=lambda each: each.seconds)

    def _add(self, title: str, size: int, taken: Taken, rates: Rates, other: str, word: str) -> None:
        self._tell(title, taken)
        rate = rates.get((other, word))
        self._result.add(title, size / taken.seconds / 1e6, 'M records/s', None if rate is None else rate / 1e6,
                         None if rate is None else other)

    def _memory(self, title: str, before: float, after: float) -> None:
        self._result.add(f'{title}: private memory grew by', after - before, 'MiB')

    def _tell(self, title: str, taken: Taken) -> None:
        self._result.say(f'{title}: {taken.seconds:.3f} s, {taken.records / taken.seconds / 1e6:.3f} M records/s, '
                         f'{taken.messages} messages, {taken.octets} octets')
        self._result.details[title] = dataclasses.asdict(taken)

    @contextlib.contextmanager
    def _minidns(self, url: str, **options: int) -> Iterator[tuple[MiniDnsProcess, Endpoint]]:
        folder = pathlib.Path(tempfile.mkdtemp(dir=self._folder))
        process = MiniDnsProcess(folder, url, SERVERS, self._options.concurrency,
                                 tls=self_signed(folder / 'minidns.example.com'), **options)
        try:
            process.start()
            yield process, Endpoint(process.host, process.port)
        finally:
            process.stop()


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('transfer', {'sizes': ', '.join(map(str, options.sizes)), 'rounds': options.rounds,
                                        'concurrency': options.concurrency})
    with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name:
        pathlib.Path(name).chmod(0o755)
        bench = Bench(pathlib.Path(name), options, result)
        for size in options.sizes:
            rates = bench.peers(size)
            for (peer, word), rate in rates.items():
                result.add(f'{size} records, {peer}, {word}', rate / 1e6, 'M records/s')
            for database in options.databases:
                bench.ours(database, size, rates)
    result.finish(options.json)
    return 0


def _private(pid: int) -> float:
    """MiB that the process had in memory at most (proc(5)), without what is mapped from files.

    Of a SQLite file much is mapped; that is the system's to take back.
    """
    text = pathlib.Path(f'/proc/{pid}/status').read_text()
    fields = {name: int(value) for name, value in re.findall(r'^(\w+):\s+(\d+) kB$', text, re.MULTILINE)}
    return (fields['VmHWM'] - fields['RssFile'] - fields['RssShmem']) / 1024


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('transfer', 'AXFR and IXFR of large zones, beside BIND, Knot and NSD.')
    parser.add_argument('--sizes', type=_numbers, default=(100_000, 1_000_000), help='records, with commas')
    parser.add_argument('--databases', type=lambda text: _words(text, DATABASES), default=tuple(DATABASES),
                        help=f'with commas, of {", ".join(DATABASES)}')
    parser.add_argument('--peers', type=lambda text: _words(text, PEERS), default=tuple(PEERS),
                        help=f'with commas, of {", ".join(PEERS)}')
    parser.add_argument('--rounds', type=int, default=3, help='the best one counts')
    parser.add_argument('--changes', type=int, default=1000, help='records that change for IXFR')
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), default='eventlet')
    options = parser.parse_args(argv)
    if options.quick:
        options.sizes, options.databases, options.peers = (20_000,), ('sqlite',), (KEPT,)
    if options.rounds < 1:
        parser.error('--rounds is 1 at least')
    return options


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(','))


def _words(text: str, known: Iterable[str]) -> tuple[str, ...]:
    found = tuple(word.strip() for word in text.split(',') if word.strip())
    for word in found:
        if word not in known:
            raise argparse.ArgumentTypeError(f'{word} is none of {", ".join(known)}')
    return found


if __name__ == '__main__':
    sys.exit(main())
