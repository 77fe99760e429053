"""Servers that join, change and leave while MiniDNS runs."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import itertools
import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import dns.message
import dns.name
import dns.rcode
import dns.tsig
import pytest
import sqlalchemy as sa

from designate_pool.central.service import Central
from designate_pool.errors import BadConfiguration, InvalidField
from designate_pool.minidns.acl import TsigGrant
from designate_pool.minidns.database_watch import LEAST, SOON, DatabaseWatch, TsigGrants
from designate_pool.minidns.servers import HostAddresses
from designate_pool.minidns.service import MiniDns
from designate_pool.model import Context, Domain, Endpoint, Outcome, PollRequest, Pool, Server, TsigKey, new_id, utcnow
from designate_pool.runtime import Threads
from designate_pool.storage.serving import watched
from designate_pool.storage.serving.watched import Watched
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import pools
from testing.databases import count_statements
from testing.processes import wait_until
from testing.zones import EXAMPLE, insert_big_zone
from tests.fixtures.answering import Scripted, soa_answer
from tests.fixtures.central import WHO, Clock
from tests.functional.minidns.conftest import (KEY, KEYED, PLAIN, WRONG, LocalMiniDns, a_pool, ask, keyring, transfer,
                                               zone_of)
from tests.functional.minidns.test_connections import dial, framed, limit_buffers

NEW_KEY = dataclasses.replace(KEY, name='new-key.')
RING = {dns.name.from_text(each.name): keyring(each) for each in (KEY, NEW_KEY)}


def at(name_server: Scripted, **facts: object) -> Server:
    return Server(id=new_id(), driver='fake', host=name_server.host, port=name_server.port,
                  **facts)  # type: ignore[arg-type]


def poll(service: MiniDns, server_id: str, serial: int = 7, retries: int = 1000) -> None:
    service.notify_and_poll(Context(), 'default', [PollRequest('d1', 'example.com.', serial, server_id)], 10, 0.05,
                            retries)


def reload(minidns: LocalMiniDns, service: MiniDns) -> None:
    """What a pool manager does when it has read its configuration anew."""
    minidns.storage.run(lambda tx: tx.execute(pools.update().values(reloads=pools.c.reloads + 1)) and None)
    service.look_for_changes(Context())


class Resolver:
    """What a resolver knows; a name without addresses is not found."""

    def __init__(self, **known: list[str]) -> None:
        self.known = known
        self.asked = 0

    def __call__(self, host: str) -> list[str]:
        self.asked += 1
        if not self.known.get(host):
            raise OSError('Name or service not known')
        return self.known[host]

    def addresses(self) -> HostAddresses:
        return HostAddresses(self, interval=0.05, retry_interval=0.05)

    def wait_until_asked(self) -> None:
        """Until names have been looked up with what is known now, and the addresses are used."""
        asked = self.asked
        wait_until(lambda: self.asked >= asked + 2, 'the name is looked up again')


# Who may ask

def test_a_server_whose_name_is_not_found_yet_is_served_once_it_is(
        minidns: LocalMiniDns, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    resolver = Resolver()
    service = minidns.start(dataclasses.replace(PLAIN, host='ns1'), host_addresses=resolver.addresses())
    (endpoint,) = service.endpoints
    resolver.wait_until_asked()
    assert ask(endpoint).rcode() == dns.rcode.REFUSED
    resolver.known['ns1'] = ['127.0.0.1']
    wait_until(lambda: ask(endpoint).rcode() == dns.rcode.NOERROR, 'it is served')
    assert [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR] == [
        'the host name ns1 cannot be looked up: Name or service not known']
    assert sum('the host name ns1 is found again' in each.getMessage() for each in caplog.records) == 1


def test_a_server_whose_name_moves_is_served_and_polled_at_the_new_address(minidns: LocalMiniDns) -> None:
    def serve(query: dns.message.Message, over_tcp: bool) -> list[dns.message.Message]:
        return [soa_answer(query, 7)]

    with contextlib.closing(Scripted(serve)) as former, \
            contextlib.closing(Scripted(serve, '127.0.0.2', port=former.port)) as latter:
        resolver = Resolver(ns1=[former.host])
        server = dataclasses.replace(at(former), host='ns1')
        service = minidns.start(server, host_addresses=resolver.addresses())
        (endpoint,) = service.endpoints
        for now, allowed in ((latter, dns.rcode.REFUSED), (former, dns.rcode.NOERROR)):
            resolver.known['ns1'] = [now.host]
            wait_until(lambda: ask(endpoint).rcode() == allowed, 'only the new address may ask')
            for each in (former, latter):
                each.queries.clear()
            minidns.pool_manager.batches.clear()
            poll(service, server.id)
            wait_until(lambda: minidns.pool_manager.results, 'it has been polled')
            assert [bool(each.polls()) for each in (former, latter)] == [now is former, now is latter]


def test_a_server_keeps_its_address_while_the_resolver_fails(minidns: LocalMiniDns) -> None:
    resolver = Resolver(ns1=['127.0.0.1'])
    service = minidns.start(dataclasses.replace(PLAIN, host='ns1'), host_addresses=resolver.addresses())
    (endpoint,) = service.endpoints
    for _ in range(2):
        resolver.known['ns1'] = []
        resolver.wait_until_asked()
        service.set_pool(a_pool(dataclasses.replace(PLAIN, host='ns1'), KEYED))
        assert ask(endpoint).rcode() == dns.rcode.NOERROR
        resolver.known['ns1'] = ['127.0.0.1']
        resolver.wait_until_asked()


def test_names_are_looked_up_at_the_same_time_and_other_orders_change_nothing() -> None:
    names = [f'ns{number}' for number in range(8)]
    all_ask = threading.Barrier(len(names))
    orders = itertools.cycle([['192.0.2.1', '192.0.2.2'], ['192.0.2.2', '192.0.2.1']])

    def look_up(host: str) -> list[str]:
        if host in names:
            all_ask.wait(30)
        return [host] if host == '192.0.2.9' else next(orders)

    addresses = HostAddresses(look_up)
    found = addresses.of([*names, '192.0.2.9'])
    assert found['192.0.2.9'] == (('192.0.2.9',), None) and list(found) == ['192.0.2.9', *names]
    assert addresses.of([*names, '192.0.2.9']) == found


def test_servers_with_a_wrong_key_change_nothing(minidns: LocalMiniDns) -> None:
    service = minidns.start(KEYED)
    for key in (TsigKey('pool-key.', 'hmac-rot13', 'AAAA'), WRONG):
        with pytest.raises(InvalidField, match='tsig_key'):
            service.set_pool(a_pool(KEYED, dataclasses.replace(PLAIN, tsig_key=key)))
        assert transfer(service.endpoints[0], key=KEY) == zone_of(EXAMPLE)


def test_the_servers_of_another_pool_are_refused(minidns: LocalMiniDns) -> None:
    """A file of configuration that names another pool, for a restart to come, is read at a reload too."""
    service = minidns.start(KEYED)
    with pytest.raises(InvalidField, match='pool_name'):
        service.set_pool(dataclasses.replace(a_pool(PLAIN), name='other'))
    assert ask(service.endpoints[0]).rcode() == dns.rcode.REFUSED
    assert transfer(service.endpoints[0], key=KEY) == zone_of(EXAMPLE)


def test_a_transfer_that_has_begun_is_sent_to_its_end(minidns: LocalMiniDns) -> None:
    minidns.storage.run(insert_big_zone, 5000)
    service = minidns.start(PLAIN)
    limit_buffers(service, 16384)
    transfers = 10  # more than the buffers of both sides hold
    with dial(service.endpoints[0]) as sock, sock.makefile('rb') as stream:
        sock.sendall(framed(*[dns.message.make_query('example.org', 'AXFR')] * transfers))
        assert stream.peek(1)
        (connection,) = service._listener._tcp_server._open
        service.set_pool(a_pool(KEYED))
        assert ask(service.endpoints[0]).rcode() == dns.rcode.REFUSED
        assert connection.idle_since is None, 'it is still being served'
        count = 0
        while count < transfers * 5003:
            message = stream.read(int.from_bytes(stream.read(2), 'big'))
            assert message[3] & 15 == dns.rcode.NOERROR
            count += int.from_bytes(message[6:8], 'big')
        assert count == transfers * 5003


# Whom it asks

def test_polls_of_a_server_that_leaves_end_and_the_others_go_on(minidns: LocalMiniDns) -> None:
    serials = {'gone': 6, 'here': 6}
    gone = Scripted(lambda query, over_tcp: [soa_answer(query, serials['gone'])])
    here = Scripted(lambda query, over_tcp: [soa_answer(query, serials['here'])])
    with contextlib.closing(gone), contextlib.closing(here):
        leaving, staying = at(gone), at(here)
        service = minidns.start(leaving, staying)
        poll(service, leaving.id)
        poll(service, staying.id)
        wait_until(lambda: gone.polls() and here.polls(), 'both are polled')
        service.set_pool(a_pool(staying))
        settle(service)
        asked = len(gone.queries)
        polled = len(here.polls())
        wait_until(lambda: len(here.polls()) > polled + 2, 'the other is polled on')
        assert len(gone.queries) <= asked + 2  # what was on its way
        serials['here'] = 7
        (result,) = wait_until(lambda: minidns.pool_manager.results, 'the other is confirmed')
        assert (result.server_id, result.status) == (staying.id, Outcome.SUCCESS)


def test_a_poll_follows_a_server_that_moves(minidns: LocalMiniDns) -> None:
    old = Scripted(lambda query, over_tcp: [soa_answer(query, 6)])
    new = Scripted(lambda query, over_tcp: [soa_answer(query, 7)])
    with contextlib.closing(old), contextlib.closing(new):
        server = at(old)
        service = minidns.start(server)
        poll(service, server.id)
        wait_until(old.polls, 'it is polled where it is')
        service.set_pool(a_pool(dataclasses.replace(server, port=new.port)))
        (result,) = wait_until(lambda: minidns.pool_manager.results, 'it is confirmed')
        assert (result.server_id, result.serial_number, result.status) == (server.id, 7, Outcome.SUCCESS)
        assert new.notifies()


def test_a_server_that_is_verified_elsewhere_is_still_the_one_that_is_notified(minidns: LocalMiniDns) -> None:
    hidden, former, public = (Scripted(lambda query, over_tcp: [soa_answer(query, 6)], keyring=RING) for _ in range(3))
    with contextlib.closing(hidden), contextlib.closing(former), contextlib.closing(public):
        server = at(hidden, tsig_key=KEY, verify=(Endpoint(former.host, former.port),))
        service = minidns.start(server)
        poll(service, server.id)
        wait_until(former.polls, 'it is polled where it is verified')
        notified = len(hidden.notifies())
        service.set_pool(a_pool(dataclasses.replace(server, verify=(Endpoint(public.host, public.port),))))
        wait_until(lambda: len(public.polls()) > 2, 'it is polled where it is verified now')
        wait_until(lambda: len(hidden.notifies()) > notified, 'it is notified')
        assert all(each.had_tsig for each in hidden.notifies())
        assert not public.notifies() and not former.notifies()


def test_a_server_that_is_verified_elsewhere_is_notified_with_its_new_key(minidns: LocalMiniDns) -> None:
    hidden, public = (Scripted(lambda query, over_tcp: [soa_answer(query, 6)], keyring=RING) for _ in range(2))
    with contextlib.closing(hidden), contextlib.closing(public):
        server = at(hidden, tsig_key=KEY, verify=(Endpoint(public.host, public.port),))
        service = minidns.start(server)
        poll(service, server.id)
        wait_until(hidden.notifies, 'it is notified with the former key')
        service.set_pool(a_pool(dataclasses.replace(server, tsig_key=NEW_KEY)))
        settle(service)
        notified = len(hidden.notifies())
        wait_until(lambda: len(hidden.notifies()) > notified + 2, 'it is notified again and again')
        assert {str(each.keyname) for each in hidden.notifies()[notified + 1:]} == {NEW_KEY.name}


def test_a_notify_that_is_not_acknowledged_is_sent_with_the_new_key(minidns: LocalMiniDns) -> None:
    silent = Scripted(lambda query, over_tcp: [], keyring=RING)
    with contextlib.closing(silent):
        server = at(silent, tsig_key=KEY)
        service = minidns.start(server)
        domain = Domain(new_id(), 'example.com.', new_id(), 'default', 'a@example.com', 60, 7)
        service.notify_zone_changed(Context(), domain, f'{silent.host}:{silent.port}', 10, 0.05, 0)
        wait_until(silent.notifies, 'it is notified with the former key')
        service.set_pool(a_pool(dataclasses.replace(server, tsig_key=NEW_KEY)))
        wait_until(lambda: {str(each.keyname) for each in silent.notifies()} == {KEY.name, NEW_KEY.name},
                   'it is notified with the new key')


def settle(service: MiniDns) -> None:
    """Wait until the loop has done all that was handed in so far."""
    done: list[bool] = []
    service._client_loop.submit(lambda: done.append(True))
    wait_until(lambda: done, 'the loop is there')


# Following the configuration

class Configuration:
    """What a file of configuration would say."""

    def __init__(self, *servers: Server) -> None:
        self.says: Pool | Exception = a_pool(*servers)
        self.read = 0

    def __call__(self) -> Pool:
        self.read += 1
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


def serves(minidns: LocalMiniDns, service: MiniDns) -> Callable[[], bool]:
    return lambda: ask(service.endpoints[0]).rcode() == dns.rcode.NOERROR


def test_a_pool_that_is_gone_is_told_of_once(minidns: LocalMiniDns, caplog: pytest.LogCaptureFixture) -> None:
    configuration = Configuration(KEYED)
    service = minidns.start(KEYED, read_pool=configuration)
    wait_until(lambda: configuration.read == 1, 'it is read once at the start')
    minidns.storage.run(lambda tx: tx.execute(sa.update(pools).where(pools.c.name == 'default')
                                              .values(name='renamed')).close())
    looks = []
    read = minidns.storage.read
    minidns.storage.read = lambda work, *args: looks.append(work) or read(work, *args)  # type: ignore[method-assign]
    for number in (1, 2, 3):
        service.look_for_changes(Context())
        wait_until(lambda: len(looks) >= number, 'it has looked once more')
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == [
        "the pool default is not in the database any more: it was deleted or renamed, and this program serves no "
        "zones now. Stop it, correct pool_name, or 'designate-pool-manage pool create default'"]
    assert configuration.read == 1


def test_a_wrong_configuration_is_told_of_once_and_changes_nothing(minidns: LocalMiniDns,
                                                                   caplog: pytest.LogCaptureFixture) -> None:
    configuration = Configuration(PLAIN)
    service = minidns.start(PLAIN, read_pool=configuration)
    wait_until(lambda: configuration.read == 1, 'it is read')
    configuration.says = BadConfiguration(count=1, listing=' it is wrong')
    reload(minidns, service)
    wait_until(lambda: configuration.read >= 3, 'it is tried again')
    assert serves(minidns, service)()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == [
        'the old list of servers is still used: The configuration has mistakes (1): it is wrong']
    configuration.says = a_pool(KEYED)
    wait_until(lambda: not serves(minidns, service)(), 'it is followed when it is mended')


def test_a_database_that_is_away_does_not_end_the_following(
        minidns: LocalMiniDns, caplog: pytest.LogCaptureFixture) -> None:
    configuration = Configuration(KEYED)
    service = minidns.start(KEYED, read_pool=configuration)
    wait_until(lambda: configuration.read == 1, 'it is read')
    minidns.storage.run(lambda tx: tx.execute(sa.text('ALTER TABLE pools RENAME TO away')) and None)
    service.look_for_changes(Context())
    wait_until(lambda: 'cannot be read from the database' in caplog.text, 'it is noticed')
    minidns.storage.run(lambda tx: tx.execute(sa.text('ALTER TABLE away RENAME TO pools')) and None)
    configuration.says = a_pool(PLAIN)
    reload(minidns, service)
    wait_until(serves(minidns, service), 'it is followed')


def test_a_request_for_an_unknown_server_has_the_configuration_read_at_once(minidns: LocalMiniDns) -> None:
    name_server = Scripted(lambda query, over_tcp: [soa_answer(query, 7)])
    with contextlib.closing(name_server):
        server = at(name_server)
        configuration = Configuration(PLAIN)
        service = minidns.start(PLAIN, read_pool=configuration)
        wait_until(lambda: configuration.read == 1, 'it is read')
        configuration.says = a_pool(PLAIN, server)
        poll(service, 'f' * 32)
        poll(service, server.id)  # it came a moment after the last reading
        wait_until(lambda: [each for each in minidns.pool_manager.results if each.status is Outcome.SUCCESS],
                   'it is polled')
        read, now = configuration.read, time.monotonic()
        for _ in range(10):
            poll(service, 'f' * 32)
        assert configuration.read <= read + 1 + int(time.monotonic() - now)
        wait_until(lambda: [each for each in minidns.pool_manager.results if each.server_id == 'f' * 32],
                   'who is in no configuration is told of')


# What the log says

HOUR = 3600


class KnownKeys:
    """The keys that a MiniDNS knows, once it has looked."""

    def __init__(self, database: Storage) -> None:
        self._grants = TsigGrants(database)
        self._watch = DatabaseWatch(database, 'default', [self._grants.follow])

    def grants(self) -> dict[str, TsigGrant]:
        self._watch.look()
        return {name.to_text(): grant for name, grant in self._grants.grants.items() if isinstance(name, dns.name.Name)}

    def secrets(self) -> dict[str, bytes]:
        """By the names of the keys."""
        return {name: grant.key.secret.rstrip(b'.') for name, grant in self.grants().items()}


@pytest.fixture
def known_keys(database: Storage) -> KnownKeys:
    return KnownKeys(database)


def make(central: Central, name: str, secret: bytes = b'first') -> str:
    pool_id = central.find_pools(WHO)[0].id
    return central.tsigkeys.create(WHO, {'name': name, 'algorithm': 'hmac-sha256', 'scope': 'POOL',
                                         'resource_id': pool_id, 'secret': encoded(secret)}).id


def encoded(secret: bytes) -> str:
    return base64.b64encode(secret.ljust(32, b'.')).decode()


def test_a_rotation_by_a_clock_that_is_behind_is_seen(central: Central, known_keys: KnownKeys, clock: Clock) -> None:
    key = make(central, 'old.')
    clock.now += HOUR
    make(central, 'other.')
    clock.now -= HOUR
    assert known_keys.secrets() == {'old.': b'first', 'other.': b'first'}
    central.tsigkeys.update(WHO, key, {'secret': encoded(b'second')})
    assert known_keys.secrets() == {'old.': b'second', 'other.': b'first'}


def test_a_key_in_the_place_of_another_is_seen(central: Central, known_keys: KnownKeys, clock: Clock) -> None:
    clock.now += HOUR
    make(central, 'newest.')
    clock.now -= HOUR
    key = make(central, 'lost.')
    assert set(known_keys.secrets()) == {'newest.', 'lost.'}
    central.tsigkeys.delete(WHO, key)
    make(central, 'found.')
    assert set(known_keys.secrets()) == {'newest.', 'found.'}


def test_a_key_of_a_pool_is_one_of_it_by_its_new_name(central: Central, known_keys: KnownKeys) -> None:
    make(central, 'key.')
    assert [each.pool_name for each in known_keys.grants().values()] == ['default']
    central.update_pool(WHO, {'id': central.find_pools(WHO)[0].id, 'name': 'renamed'})
    assert [each.pool_name for each in known_keys.grants().values()] == ['renamed']


@pytest.mark.all_databases
def test_keys_that_have_not_changed_are_not_read(central: Central, known_keys: KnownKeys, database: Storage) -> None:
    make(central, 'key.')
    known_keys.grants()
    with count_statements(database) as counter:
        known_keys.grants()
    assert counter.total() == 1 and 'secret' not in next(iter(counter))


SECONDARY = {'name': 'example.com.', 'masters': ['192.0.2.1']}


def is_due(database: Storage, clock: Clock, pool_name: str = 'default') -> bool:
    return database.read(watched.look, pool_name, datetime.fromtimestamp(clock(), timezone.utc)).has_due_refresh


@pytest.mark.all_databases
def test_a_secondary_zone_is_due_until_it_is_claimed_and_when_the_claim_has_ended(central: Central, database: Storage,
                                                                                  clock: Clock) -> None:
    assert not is_due(database, clock)
    central.create_domain(WHO, SECONDARY)
    assert is_due(database, clock) and not is_due(database, clock, 'silver')
    central.claim_refreshes(WHO, 'default', 60, 1)
    assert not is_due(database, clock)
    clock.now += 61
    assert is_due(database, clock)


@pytest.mark.all_databases
def test_a_pool_that_is_not_there_has_no_reloads(central: Central, database: Storage, clock: Clock) -> None:
    found = [database.read(watched.look, name, datetime.fromtimestamp(clock(), timezone.utc)).reloads
             for name in ('default', 'silver')]
    assert found == [0, None]


def test_a_follower_that_fails_is_told_again_and_does_not_keep_it_from_others(
        database: Storage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level('INFO')
    told: list[Watched] = []

    def fails_once(found: Watched) -> None:
        told.append(found)
        if len(told) == 1:
            raise RuntimeError('the keys cannot be read')

    others: list[Watched] = []
    watch = DatabaseWatch(database, 'default', [fails_once, others.append])
    watch.look()
    assert 'the keys cannot be read' in caplog.text and len(others) == 1
    watch.look()
    assert len(told) == len(others) == 2 and 'can be read from the database again' in caplog.text


def test_one_that_is_not_done_is_told_again_soon(database: Storage) -> None:
    assert DatabaseWatch(database, 'default', [lambda found: None, lambda found: True], 60.0).look() == 60.0
    assert DatabaseWatch(database, 'default', [lambda found: None, lambda found: False], 60.0).look() == SOON


@pytest.mark.all_databases
def test_a_refresh_is_waited_for_and_while_it_is_under_way_so_is_its_end(central: Central, database: Storage,
                                                                         clock: Clock) -> None:
    watch = DatabaseWatch(database, 'default', [], 60.0)
    clock.now += 30
    domain = central.create_domain(WHO, SECONDARY)
    clock.now -= 30
    assert 20 < watch.look() <= 30
    assert DatabaseWatch(database, 'silver', [], 60.0).look() == 60.0
    assert DatabaseWatch(database, 'default', [], 10.0).look() == 10.0
    central.refresh_domain(WHO, domain.id)
    clock.now += 30
    assert watch.look() == SOON
    central.claim_refreshes(WHO, 'default', 60, 1)
    assert watch.look() == SOON
    central.delete_domain(WHO, domain.id)
    assert watch.look() == 60.0


def test_what_is_due_later_is_told_of_then(
        central: Central, database: Storage, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    clock.now = time.time() + 1
    central.create_domain(WHO, SECONDARY)
    monkeypatch.setattr(database, 'now', utcnow)
    due: list[bool] = []
    watch = DatabaseWatch(database, 'default', [lambda found: due.append(found.has_due_refresh)], 3600.0)
    watch.start(Threads())
    wait_until(lambda: True in due, 'it is due')
    watch.stop()


def test_many_changes_are_not_as_many_looks(database: Storage) -> None:
    looks: list[Watched] = []
    watch = DatabaseWatch(database, 'default', [looks.append], 3600.0)
    watch.start(Threads())
    wait_until(lambda: looks, 'it has begun')
    began = datetime.now(timezone.utc)
    while len(looks) < 4:
        watch.wake()
    assert datetime.now(timezone.utc) - began >= timedelta(seconds=2 * LEAST)
    watch.stop()
