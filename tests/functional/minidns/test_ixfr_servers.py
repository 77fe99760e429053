"""Servers of each make follow thousands of changes by incremental transfers."""

from __future__ import annotations

import base64
import bisect
import concurrent.futures
import contextlib
import pathlib
import random
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from prometheus_client import REGISTRY

from designate_pool import backends
from designate_pool.central.rules import pools as pool_rules
from designate_pool.central.service import Central
from designate_pool.minidns.service import MiniDns
from designate_pool.model import Context, Domain, Endpoint, PollRequest, Pool, TsigKey, new_id
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.runtime import Threads
from designate_pool.settings import MiniDnsSettings
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage
from testing.bind import Named
from testing.daemon import Daemon
from testing.inline import Inline
from testing.knot import Knotd
from testing.minidns import alone
from testing.nsd import Nsd
from testing.pdns import PowerDns
from testing.processes import binary, free_port, wait_until
from testing.settings import central_settings
from tests.fixtures.central import SERVERS, WHO, Caller, Clock

#: NSD, once more, as it is told to ask over UDP.
MAKES = ('bind9', 'nsd', 'nsd-udp', 'knot', 'pdns')
KEYS = {make: TsigKey(f'{make}.example.com.', 'hmac-sha256', base64.b64encode(make.encode() * 8).decode())
        for make in MAKES}
LABELS = [f'host{number}' for number in range(600)] + [f'*.wild{number}' for number in range(100)] + [
    f'{letter}.deep.down{number}' for number in range(100) for letter in 'ab']

#: TTL and sorted records by name and type.
RecordSets = dict[tuple[str, str], tuple[int, list[str]]]


class Silent:
    """A pool manager that nobody can tell anything."""

    def update_statuses(self, *arguments: Any) -> None: ...

    update_status = update_statuses


class Contents:
    """What a zone is to hold, changed at random; the sequence is the same each time."""

    def __init__(self) -> None:
        self.random = random.Random(6)
        self._held: dict[str, dict[str, tuple[int | None, list[str]]]] = {
            label: {} for label in LABELS}
        self.changed = 0

    def recordsets(self, domain: Domain) -> RecordSets:
        return {(f'{label}.{domain.name}', rtype): (domain.ttl if ttl is None else ttl, records)
                for label, held in self._held.items() for rtype, (ttl, records) in held.items()}

    def changes(self, number: int) -> list[dict[str, Any]]:
        """Changes of so many names: in each one recordset comes, goes, or gets other records or another TTL."""
        found = []
        for label in self.random.sample(LABELS, number):
            held = self._held[label]
            rtype = self.random.choice(sorted(_RECORDS))
            if rtype in held and self.random.random() < 0.5:
                gone = [rtype]
            else:  # a CNAME is alone at its name
                gone = [each for each in held if each != rtype and 'CNAME' in (each, rtype)]
                ttl = self.random.choice([None, 60, 300])
                held[rtype] = ttl, sorted({_RECORDS[rtype](self.random) for _ in range(
                    1 if rtype == 'CNAME' else self.random.randint(1, 4))})
                found.append(_change(label, rtype, *held[rtype]))
            for each in gone:
                del held[each]
                found.append(_change(label, each, None, []))
        self.changed += len(found)
        return found


class Servers:
    """A server of each make that transfers from one MiniDNS, and a Central beside it."""

    def __init__(self, folder: pathlib.Path) -> None:
        url = f'sqlite:///{folder}/database.sqlite'
        migrate.upgrade(url)
        self.storage = Storage(url)
        self.clock = Clock()
        self.storage.now = self.clock.moment  # type: ignore[method-assign]
        self.central = Central(self.storage, PoolManagerClient(Caller()), Inline(),
                               settings=central_settings())
        (pool,) = self.central.find_pools(WHO)
        self.central.update_pool(WHO, {'id': pool.id, 'name_servers': SERVERS})
        self.primary = Endpoint('127.0.0.1', free_port())
        self.daemons = _daemons(folder, self.primary)
        options: dict[str, dict[str, Any]] = {'nsd': {'pattern': 'by-tcp'}, 'nsd-udp': {'pattern': 'by-udp'},
                                              'pdns': {'ixfr': True}}
        self.servers = {make: self.daemons[make].server([self.primary], tsig_key=KEYS[make], **options.get(make, {}))
                        for make in MAKES}
        self.minidns = MiniDns(self.storage, Pool('default', servers=tuple(self.servers.values())),
                               MiniDnsSettings(listen=(self.primary,)), Silent(),  # type: ignore[arg-type]
                               Threads(), **alone(Threads()))

    def start(self) -> None:
        self.start_daemons()
        self.minidns.start()

    def start_daemons(self) -> None:
        with concurrent.futures.ThreadPoolExecutor() as starting:
            list(starting.map(lambda each: each.start(), self.daemons.values()))

    def stop(self) -> None:
        self.minidns.stop()
        for daemon in self.daemons.values():
            daemon.remove()
        self.central.stop()
        self.storage.close()

    def create(self, name: str, changes: Sequence[dict[str, Any]]) -> Domain:
        """A zone that all servers serve."""
        domain = self.central.create_domain(WHO, {'name': name, 'email': 'hostmaster@example.com'},
                                            _absolute(changes, name))
        for server in self.servers.values():
            backend = backends.build(server)
            result = backend.create_domain(domain)
            assert result.ok, result
            backend.close()
        self.wait_for(domain)
        return domain

    def apply(self, domain: Domain, changes: Sequence[dict[str, Any]]) -> Domain:
        self.clock.now += 1
        return self.central.apply_changes(WHO, domain.id, _absolute(changes, domain.name))

    def notify(self, domain: Domain, makes: Sequence[str]) -> None:
        for make in makes:
            self.minidns.notify_zone_changed(WHO, domain, f'127.0.0.1:{self.daemons[make].port}', 5, 1, 3)

    def wait_for(self, domain: Domain, makes: Sequence[str] = MAKES) -> None:
        """Until they serve the zone at its present serial, being told of it as by a pool manager."""
        self.minidns.notify_and_poll(WHO, 'default', [
            PollRequest(domain.id, domain.name, domain.serial, self.servers[make].id) for make in makes], 5, 1, 30)
        for make in makes:
            wait_until(lambda: self.daemons[make].serial(domain.name) == domain.serial,
                       f'{make} serves {domain.name} at {domain.serial}')

    def counted(self, kind: str, outcome: str = 'sent') -> dict[str, int]:
        """How many transfers of a kind each server has had, or how many of its queries ended otherwise."""
        return {make: int(REGISTRY.get_sample_value('designate_pool_transfers_total', {
            'server': server.label, 'kind': kind, 'outcome': outcome}) or 0) for make, server in self.servers.items()}

    def agree(self, domain: Domain) -> RecordSets:
        """The zone, which all servers have alike, and at its present serial."""
        expected = _transferred(self.primary.port, domain.name, KEYS['bind9'])
        assert f' {domain.serial} ' in expected[domain.name, 'SOA'][1][0]
        for make, daemon in self.daemons.items():
            assert _transferred(daemon.port, domain.name, KEYS[make]) == expected, make
        return {key: value for key, value in expected.items() if key[0] != domain.name}


@pytest.fixture(scope='module')
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    servers = Servers(tmp_path_factory.mktemp('ixfr'))
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()


@pytest.fixture(scope='module')
def contents() -> Contents:
    return Contents()


@pytest.fixture(scope='module')
def domain(servers: Servers, contents: Contents) -> Domain:
    """A zone of some two thousand records."""
    return servers.create('example.com.', contents.changes(900))


def test_thousands_of_changes_leave_the_same_on_all_servers(servers: Servers, domain: Domain,
                                                            contents: Contents) -> None:
    """Each is told now and then, and is then several serials behind, another number of them each time."""
    chance = contents.random
    taken = servers.counted('ixfr')
    for _ in range(80):
        domain = servers.apply(domain, contents.changes(chance.randint(1, 80)))
        servers.notify(domain, [make for make in MAKES if chance.random() < 0.2])
    servers.wait_for(domain)
    assert contents.changed > 4000
    assert servers.agree(domain) == contents.recordsets(domain)
    times = {make: count - taken[make] for make, count in servers.counted('ixfr').items()}
    assert all(count >= 2 for count in times.values()) and max(times.values()) < 80, times
    assert [make for make, count in servers.counted('ixfr', 'by_tcp').items() if count] == ['nsd-udp']


def test_one_change_is_one_transfer_of_that_change(servers: Servers, domain: Domain, contents: Contents) -> None:
    for changes in (contents.changes(1), [_change('host1', 'AAAA', 77, ['2001:db8::77'])]):
        told = Told(servers)
        changed = servers.apply(domain, changes)
        servers.wait_for(changed)
        told.once_each()
        servers.agree(changed)


def test_what_changed_while_they_were_away_is_one_transfer(servers: Servers, domain: Domain,
                                                           contents: Contents) -> None:
    told = Told(servers)
    for daemon in servers.daemons.values():
        daemon.stop()
    for _ in range(7):
        domain = servers.apply(domain, contents.changes(5))
    servers.start_daemons()
    servers.wait_for(domain)
    told.once_each()
    servers.agree(domain)


def test_after_a_change_of_the_soa_they_have_it_whole_and_then_changes_again(servers: Servers,
                                                                             domain: Domain) -> None:
    servers.clock.now += 1
    changed = taken_whole(servers, lambda: servers.central.update_domain(WHO, domain.id,
                                                                         {'email': 'other@example.com'}))
    told = Told(servers)
    changed = servers.apply(changed, [_change('new', 'A', None, ['192.0.2.1'])])
    servers.wait_for(changed)
    told.once_each()
    servers.agree(changed)


def test_until_the_domain_has_a_serial_for_a_new_primary_they_have_it_whole(servers: Servers, domain: Domain) -> None:
    """A difference would delete a SOA that none of them has: BIND refuses that, and PowerDNS goes on with its SOA."""
    servers.storage.run(pool_rules.update, Context(), domain.pool_id, {'name_servers': ['ns9.example.net.', *SERVERS]},
                        servers.clock.moment(), new_id())
    taken_whole(servers, lambda: servers.apply(domain, [_change('primary', 'A', None, ['192.0.2.1'])]))

    def resume() -> Domain:
        servers.clock.now += pool_rules.CLAIM.total_seconds() + 1
        servers.central.backlog.resume_renewals()
        return servers.central.get_domain(WHO, domain.id)

    changed = taken_whole(servers, resume)
    told = Told(servers)
    changed = servers.apply(changed, [_change('primary', 'A', None, ['192.0.2.2'])])
    servers.wait_for(changed)
    told.once_each()
    servers.agree(changed)


def taken_whole(servers: Servers, change: Callable[[], Domain]) -> Domain:
    """The domain after *change*, which all servers have taken as a whole zone."""
    whole = servers.counted('ixfr_whole')
    changed = change()
    servers.wait_for(changed)
    wait_until(lambda: all(count > whole[make] for make, count in servers.counted('ixfr_whole').items()),
               'all have taken the whole zone')
    servers.agree(changed)
    return changed


def test_a_powerdns_that_fetches_whole_zones_again_answers_for_what_came_by_changes(servers: Servers,
                                                                                    domain: Domain) -> None:
    """What ``config check`` says of ``ixfr = true``, and what it has one do about it."""
    pdns = servers.daemons['pdns']
    changed = servers.apply(domain, [_change('by-ixfr', 'A', None, ['192.0.2.1'])])
    servers.wait_for(changed)
    assert pdns.texts('by-ixfr.example.com.', 'A') == []
    server = servers.daemons['pdns'].server([servers.primary], tsig_key=KEYS['pdns'])
    for _ in range(2):
        with contextlib.closing(backends.build(server)) as backend:
            assert backend.create_domain(changed).ok
        wait_until(lambda: pdns.texts('by-ixfr.example.com.', 'A') == ['192.0.2.1'], 'it is answered')
    changes = servers.counted('ixfr')['pdns']
    changed = servers.apply(changed, [_change('by-ixfr', 'A', None, ['192.0.2.2'])])
    servers.wait_for(changed)
    assert pdns.texts('by-ixfr.example.com.', 'A') == ['192.0.2.2']
    assert servers.counted('ixfr')['pdns'] == changes


class Told:
    """What the servers were sent from now on."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._before = self._now()

    def once_each(self) -> None:
        """Each has taken one difference, and nothing else.

        But for NSD, which begins anew with the whole zone where two updates come into one reload of its own.
        """
        # A server may serve the zone a moment before the transfer is counted.
        wait_until(lambda: all(self._taken(make)['ixfr'] or self._taken(make)['axfr'] for make in self._before['ixfr']),
                   'all have taken something')
        for make in self._before['ixfr']:
            taken = self._taken(make)
            if make.startswith('nsd') and taken['axfr']:
                assert taken['ixfr'] <= 1
            else:
                assert taken == {'ixfr': 1, 'ixfr_whole': 0, 'axfr': 0}, make

    def _taken(self, make: str) -> dict[str, int]:
        return {kind: counts[make] - self._before[kind][make] for kind, counts in self._now().items()}

    def _now(self) -> dict[str, dict[str, int]]:
        return {kind: self._servers.counted(kind) for kind in ('ixfr', 'ixfr_whole', 'axfr')}


_RECORDS = {
    'A': lambda chance: f'192.0.2.{chance.randrange(256)}',
    'AAAA': lambda chance: f'2001:db8::{chance.randrange(1, 256):x}',
    'TXT': lambda chance: f'"{chance.randrange(1000)}" "{"x" * chance.randrange(100)}"',
    'MX': lambda chance: f'{chance.randrange(100)} host{chance.randrange(10)}.example.com.',
    'CNAME': lambda chance: f'host{chance.randrange(10)}.example.com.',
}


def _change(label: str, rtype: str, ttl: int | None, records: Sequence[str]) -> dict[str, Any]:
    return {'name': label, 'type': rtype, 'ttl': ttl, 'records': list(records)}


def _absolute(changes: Sequence[dict[str, Any]], zone: str) -> list[dict[str, Any]]:
    return [{**change, 'name': f"{change['name']}.{zone}"} for change in changes]


def _daemons(folder: pathlib.Path, primary: Endpoint) -> dict[str, Daemon]:
    def key(make: str) -> list[TsigKey]:
        return [KEYS[make]]

    return {'bind9': Named(folder / 'bind9', keys=key('bind9')),
            'nsd': Nsd(folder / 'nsd', keys=key('nsd'), statements=_pattern('by-tcp', '', primary, 'nsd')),
            'nsd-udp': Nsd(folder / 'nsd-udp', keys=key('nsd-udp'),
                           statements=_pattern('by-udp', 'UDP ', primary, 'nsd-udp')),
            'knot': Knotd(folder / 'knot', keys=key('knot')),
            'pdns': PowerDns(folder / 'pdns', keys=key('pdns'))}


def _pattern(name: str, how: str, primary: Endpoint, make: str) -> str:
    key = KEYS[make].name
    return '\n    '.join(['pattern:', f'name: "{name}"', f'request-xfr: {how}{primary.host}@{primary.port} {key}',
                          f'allow-notify: 127.0.0.1 {key}', f'provide-xfr: 127.0.0.1 {key}'])


def _transferred(port: int, name: str, key: TsigKey) -> RecordSets:
    """The zone by AXFR; dnspython would take most of the time that these tests need."""
    done = subprocess.run([
        binary('dig'), '@127.0.0.1', '-p', str(port), '-y', f'{key.algorithm}:{key.name}:{key.secret}', name, 'AXFR',
        '+noall', '+answer', '+onesoa'], capture_output=True, text=True, timeout=30, check=True)
    found: RecordSets = {}
    for line in done.stdout.splitlines():
        owner, ttl, _, rtype, data = line.split(None, 4)
        if rtype != 'TSIG':
            known = found.setdefault((owner, rtype), (int(ttl), []))
            assert known[0] == int(ttl)
            bisect.insort(known[1], data)
    return found
