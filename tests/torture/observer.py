"""Asks every server of the pool over DNS, all the time, and writes down what each answers and when."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import queue
import random
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.tsig
import dns.xfr
from dns.rdtypes.ANY.SOA import SOA

from designate_pool.model import Endpoint, TsigKey
from testing.processes import binary
from tests.torture.history import Event, History
from tests.torture.workload import life_of_rname

#: Answers that mean that a server does not have a zone; SERVFAIL means nothing.
_ABSENT = (dns.rcode.REFUSED, dns.rcode.NXDOMAIN, dns.rcode.NOTAUTH)
TIMEOUT = 1.5
#: What a signer makes.
_OF_SIGNER = ('CDNSKEY', 'CDS', 'DNSKEY', 'NSEC', 'NSEC3', 'NSEC3PARAM', 'RRSIG')
#: Which part of all that is asked are transfers, and which part of the queries goes over TCP.
_TRANSFERS, _OVER_TCP = 0.1, 0.2


class Observer:
    """
    :param servers: where each answers DNS, by its id in the history
    :param names: of the zones that it asks for
    :param keys: that queries are signed with, by the id of the server
    :param pause: seconds between two queries to one server
    """

    def __init__(self, history: History, servers: Mapping[str, Endpoint], names: Callable[[], Iterable[str]],
                 keys: Mapping[str, TsigKey] = {}, pause: float = 0.05) -> None:
        self._history = history
        self.servers = dict(servers)
        self._names = names
        self._keys = {server: dns.tsig.Key(key.name, key.secret, key.algorithm) for server, key in keys.items()}
        self._pause = pause
        self._stopping = threading.Event()
        self._wanted: dict[str, queue.SimpleQueue[str]] = {server: queue.SimpleQueue() for server in servers}
        self._threads = [threading.Thread(target=self._watch, name=f'observe {server}', args=(server,))
                         for server in servers]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def look(self, name: str) -> None:
        """Ask every server for a zone as soon as possible."""
        for wanted in self._wanted.values():
            wanted.put(name)

    def snapshot(self) -> None:
        """Ask every server for all zones with their contents now."""
        threads = [threading.Thread(target=self._snapshot_of, args=(server,)) for server in self.servers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _snapshot_of(self, server: str) -> None:
        for name in self._names():
            if self.ask(server, name)['serial'] is not None:
                self.transfer(server, name)

    def _watch(self, server: str) -> None:
        chance = random.Random(server)
        while not self._stopping.is_set():
            names = list(self._names())
            for name in names or [None]:
                if name is not None:
                    if chance.random() < _TRANSFERS:
                        self.transfer(server, name)
                    else:
                        self.ask(server, name, tcp=chance.random() < _OVER_TCP)
                until = time.monotonic() + self._pause
                while not self._stopping.is_set() and (left := until - time.monotonic()) > 0:
                    with contextlib.suppress(queue.Empty):
                        self.ask(server, self._wanted[server].get(timeout=left))
                if self._stopping.is_set():
                    return

    def ask(self, server: str, name: str, tcp: bool = False) -> Event:
        """One server's SOA of a zone, written down."""
        asked = self._history.now()
        found: Event = {'life': None, 'serial': None}
        query = dns.message.make_query(name, 'SOA', flags=0)
        if server in self._keys:
            query.use_tsig(self._keys[server])
        at = self.servers[server]
        try:
            answer = (dns.query.tcp if tcp else dns.query.udp)(query, at.host, port=at.port, timeout=TIMEOUT)
            soa = next((rrset[0] for rrset in answer.answer if rrset.rdtype == dns.rdatatype.SOA
                        and rrset.name == query.question[0].name), None)
            if soa is not None and answer.flags & dns.flags.AA:
                found = _of_soa(soa)
            elif answer.rcode() not in (*_ABSENT, dns.rcode.NOERROR) or soa is not None:
                found['why'] = f'{dns.rcode.to_text(answer.rcode())}, without authority' if soa is not None else (
                    dns.rcode.to_text(answer.rcode()))
        except (dns.exception.DNSException, OSError, EOFError) as error:
            found['why'] = f'{type(error).__name__}: {error}'[:120]
        return self._history.add('served', asked=asked, server=server, zone=name, **found)

    def transfer(self, server: str, name: str) -> Event:
        """One server's contents of a zone, written down; without an answer only why."""
        asked = self._history.now()
        at = self.servers[server]
        key = self._keys.get(server)
        rrsets: dict[tuple[str, str], tuple[int, list[str]]] = {}
        soa: SOA | None = None
        made = set[str]()
        try:
            for message in dns.query.xfr(at.host, name, port=at.port, timeout=TIMEOUT, lifetime=2 * TIMEOUT,
                                         relativize=False, keyring=key and {key.name: key},
                                         keyname=key and key.name):
                for rrset in message.answer:
                    kind = dns.rdatatype.to_text(rrset.rdtype)
                    if rrset.rdtype == dns.rdatatype.SOA:
                        soa = rrset[0]
                    if kind in _OF_SIGNER:
                        made.update(rrset.to_text().splitlines())
                        continue
                    _, rdatas = rrsets.setdefault((rrset.name.to_text(), kind), (rrset.ttl, []))
                    rdatas.extend(text for rdata in rrset if (text := rdata.to_text()) not in rdatas)
        except (dns.exception.DNSException, OSError, EOFError) as error:
            if isinstance(error, dns.query.TransferError) and error.rcode in _ABSENT:
                return self.ask(server, name)  # whether it has the zone, or does not give it away
            return self._history.add('served', asked=asked, server=server, zone=name, life=None, serial=None,
                                     why=f'AXFR: {type(error).__name__}: {error}'[:120])
        assert soa is not None, f'{server}: a transfer of {name} without SOA'
        contents = [[*key, ttl, sorted(rdatas)] for key, (ttl, rdatas) in sorted(rrsets.items())]
        signed: Event = {}
        if made:
            lines = (*(f'{owner} {ttl} {kind} {rdata}' for owner, kind, ttl, rdatas in contents for rdata in rdatas),
                     *sorted(made))
            signed = {'signatures': hashlib.sha256('\n'.join(sorted(made)).encode()).hexdigest(),
                      'invalid': _invalid(name, lines)}
        return self._history.add('contents', asked=asked, server=server, zone=name, **_of_soa(soa), rrsets=contents,
                                 **signed)


@functools.lru_cache(1000)
def _invalid(name: str, records: tuple[str, ...]) -> str | None:
    """What BIND's tool says against a signed zone."""
    with tempfile.NamedTemporaryFile('w') as file:
        file.write('\n'.join(records) + '\n')
        file.flush()
        done = subprocess.run([binary('dnssec-verify'), '-z', '-o', name, file.name], capture_output=True, text=True,
                              timeout=60, check=False)
    return None if done.returncode == 0 else done.stderr[-500:]


def _of_soa(soa: SOA) -> Event:
    return {'life': life_of_rname(soa.rname.to_text()), 'serial': int(soa.serial)}
