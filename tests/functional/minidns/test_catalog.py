"""The catalog zone: what is in it, at which serial, and how it is served."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.rrset
import dns.xfr
import dns.zone
import pytest
import sqlalchemy as sa

from designate_pool import serial as serials
from designate_pool.minidns.service import MiniDns
from designate_pool.minidns.zones import catalog_zone
from designate_pool.minidns.zones.catalog_zone import PackedCatalog
from designate_pool.model import (CATALOG_ID, LAST_STAGE, Action, Context, Endpoint, Outcome, PollRequest, Server,
                                  ServerState, Status, ZoneHead, new_id)
from designate_pool.storage.reporting import purge
from designate_pool.storage.serving import catalog, catalog as store
from designate_pool.storage.serving.catalog import END, CatalogHead, CatalogReading, Member
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import catalogs, domains, pool_servers, pools
from testing.databases import count_statements
from testing.processes import wait_until
from testing.rows import default_pool_id, insert_domains, raise_catalog, set_catalog
from testing.zones import EXAMPLE, insert_zone
from tests.fixtures.answering import Scripted, soa_answer
from tests.functional.minidns.conftest import (KEY, KEYED, PLAIN, LocalMiniDns, Remembered, a_pool, ask, serial_of,
                                               transfer, zone_of)

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
CLOCK = int(NOW.timestamp())
CATALOG = 'catalog.example.'


def everything(reading: CatalogReading) -> tuple[CatalogHead, list[Member]]:
    return reading.head, list(reading.members())


# In the database

@pytest.mark.parametrize(('before', 'after'), [
    (None, CLOCK), (CLOCK, CLOCK + 1), ((CLOCK + serials.HALF + 1) % serials.SPACE, CLOCK),
    (serials.SPACE - 1, CLOCK if serials.newer(CLOCK, serials.SPACE - 1) else 0),
])
def test_the_serial_rises_as_those_of_zones_do(storage: Storage, before: int | None, after: int) -> None:
    storage.run(set_catalog, before)
    assert storage.run(raise_catalog, NOW) == after
    assert after == serials.next_serial(before, CLOCK)
    head = storage.read(catalog.head, 'default')
    assert head is not None and head.serial == after


@pytest.mark.all_databases
def test_all_who_raise_the_serial_at_once_get_each_their_own(storage: Storage) -> None:
    storage.run(set_catalog, 1)
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda _: storage.run(raise_catalog, NOW), range(40)))
    assert sorted(got) == list(range(CLOCK, CLOCK + 40))


def test_a_pool_that_is_not_there(storage: Storage) -> None:
    assert storage.run(catalog.bump, 'f' * 32, NOW) is None
    assert storage.read(catalog.head, 'nowhere') is None
    assert storage.read(catalog.snapshot, 'nowhere', (), everything) is None


def test_a_catalog_that_was_never_changed(storage: Storage) -> None:
    found = storage.read(catalog.snapshot, 'default', ['f' * 32], everything)
    assert found is not None
    head, members = found
    assert (head.serial, head.epoch, members) == (catalog.FIRST_SERIAL, 0, [])


def test_the_members_are_those_that_are_to_be_served_page_by_page(storage: Storage,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, '_PAGE', 3)
    ids = storage.run(insert_domains, 10)

    def some_go(tx: Tx) -> None:
        tx.execute(domains.update().where(domains.c.id == ids[0]).values(action=Action.DELETE))
        tx.execute(domains.update().where(domains.c.id == ids[1]).values(deleted=ids[1]))
        tx.execute(domains.update().where(domains.c.id == ids[2]).values(generation=5))

    storage.run(some_go)
    for count in range(8, 5, -1):  # a last page that is full, and ones that are not
        found = storage.read(catalog.snapshot, 'default', (), everything)
        assert found is not None
        members = found[1]
        assert {member[0] for member in members} == set(ids[10 - count:])
        assert len(members) == count and [member[0] for member in members] == sorted(ids[10 - count:])
        if count == 8:
            assert dict((member[0], member[1]) for member in members)[ids[2]] == 5
        storage.run(lambda tx: tx.execute(
            domains.update().where(domains.c.id == ids[10 - count]).values(action=Action.DELETE)) and None)


@pytest.mark.all_databases
def test_a_snapshot_sees_one_state_of_the_database(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    if storage.engine.dialect.name == 'sqlite':
        storage = Storage(str(storage.engine.url), patience=5)
    monkeypatch.setattr(catalog, '_PAGE', 3)
    storage.run(insert_domains, 6)
    begun, changed = threading.Event(), threading.Event()

    def slowly(reading: CatalogReading) -> tuple[int, int]:
        rows = reading.members()
        next(rows)
        begun.set()
        assert changed.wait(10)
        return reading.head.serial, 1 + len(list(rows))

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(storage.read, catalog.snapshot, 'default', (), slowly)
        assert begun.wait(10)
        storage.run(lambda tx: (tx.execute(domains.update().values(action=Action.DELETE)),
                                raise_catalog(tx, NOW)) and None)
        changed.set()
        assert reading.result(10) == (catalog.FIRST_SERIAL, 6)


def test_of_several_servers_the_largest_epoch_counts(storage: Storage) -> None:
    pool_id = storage.read(lambda tx: tx.execute(sa.select(pools.c.id)).scalar_one())
    ids = [storage.run(insert_server, pool_id, epoch) for epoch in (0, 2, 1)]
    for servers, epoch in ((ids, 2), (ids[:1], 0), (ids[2:], 1), ([], 0), (['f' * 32], 0)):
        head = storage.read(catalog.head, 'default', servers)
        assert head is not None and head.epoch == epoch


def insert_server(tx: Tx, pool_id: str, epoch: int, server_id: str = '') -> str:
    server_id = server_id or new_id()
    tx.execute(pool_servers.insert(), {
        'id': server_id, 'pool_id': pool_id, 'label': 'test', 'driver': 'catalog', 'state': ServerState.ACTIVE,
        'state_since': NOW, 'fingerprint': '', 'catalog_epoch': epoch, 'created_at': NOW, 'updated_at': NOW})
    return server_id


# On the wire

@pytest.fixture
def serving(minidns: LocalMiniDns) -> MiniDns:
    service = minidns.start()
    service.set_pool(a_pool(PLAIN, KEYED, catalog_zone=CATALOG))
    return service


def catalog_text(minidns: LocalMiniDns, serial: int, suffix: str = '') -> str:
    rows = minidns.storage.read(lambda tx: tx.execute(
        sa.select(domains.c.id, domains.c.generation, domains.c.name).where(domains.c.action != Action.DELETE)).all())
    return '\n'.join([f'@ 0 IN SOA invalid. hostmaster.invalid. {serial} 60 10 2147483647 0', '@ 0 IN NS invalid.',
                      'version 0 IN TXT "2"',
                      *(f'{row[0]}-{row[1]}{suffix}.zones 0 IN PTR {row[2]}' for row in rows)])


def test_the_catalog_names_every_domain(minidns: LocalMiniDns, serving: MiniDns) -> None:
    (endpoint,) = serving.endpoints
    for name in ('b.example.com.', 'a\\.b.example.com.', '\\@.example.net.'):
        minidns.storage.run(lambda tx, name=name: insert_zone(tx, name=name))
    for key in (None, KEY):
        assert transfer(endpoint, CATALOG, key) == zone_of(catalog_text(minidns, 1), CATALOG)
    answer = ask(endpoint, CATALOG)
    assert (answer.rcode(), serial_of(answer)) == (dns.rcode.NOERROR, 1)


class Changing(Remembered):
    """What happens to domains, each time at a serial of its own."""

    def __init__(self, minidns: LocalMiniDns, endpoint: Endpoint) -> None:
        super().__init__(CATALOG)
        self._minidns = minidns
        self.endpoint = endpoint
        minidns.storage.run(set_catalog, 1)
        self.remember()

    def comes(self, *names: str, is_asked: bool = True) -> int:
        return self._pass(lambda tx: [insert_zone(tx, name=name) for name in names], is_asked)

    def goes(self, *names: str, is_asked: bool = True) -> int:
        return self._pass(lambda tx: tx.execute(domains.update().where(domains.c.name.in_(names)).values(
            action=Action.DELETE, changed_at=NOW)), is_asked)

    def _pass(self, work: Callable[[Tx], object], is_asked: bool) -> int:
        serial = self._minidns.storage.run(lambda tx: (work(tx), raise_catalog(tx, NOW))[1])
        if is_asked:
            assert self.remember() == serial
        return serial

    def answer(self, client_serial: int) -> list[str | int]:
        """What is in the answer to an IXFR query: serials, and names of members."""
        answer = self.ask(client_serial)
        assert answer.rcode() == dns.rcode.NOERROR and not answer.flags & dns.flags.TC
        return [rrset[0].serial if rrset.rdtype == dns.rdatatype.SOA else rrset[0].to_text().partition('.')[0]
                for rrset in answer.answer]


@pytest.fixture
def changing(minidns: LocalMiniDns, serving: MiniDns) -> Changing:
    """A catalog of 20 members."""
    minidns.storage.run(lambda tx: [insert_zone(tx, name=f'old{number}.example.') for number in range(19)] and None)
    return Changing(minidns, serving.endpoints[0])


def test_what_came_and_went_is_all_that_is_sent(changing: Changing) -> None:
    first = changing.comes('a.example.')
    assert changing.answer(1) == [first, 1, first, 'a', first]
    second = changing.goes('a.example.', 'old3.example.')
    assert changing.answer(first)[:2] == [second, first]
    assert sorted(map(str, changing.answer(first)[2:])) == sorted(['a', 'old3', f'{second}', f'{second}'])
    assert changing.answer(1) == [second, 1, 'old3', second, second], 'what came and went is not told'
    assert changing.answer(second) == [second]


def test_ixfr_leads_from_every_serial_to_the_present_catalog(changing: Changing, minidns: LocalMiniDns) -> None:
    dice = random.Random(6)
    names = [f'old{number}.example.' for number in range(19)]
    for number in range(20):
        if dice.random() < 0.5:
            new = [f'new{number}.example.', f'new{number}.example.net.']
            names += new
            changing.comes(*new)
        else:
            changing.goes(names.pop(dice.randrange(len(names))))
    present = zone_of(catalog_text(minidns, max(changing.was)), CATALOG)
    for client_serial in changing.was:
        assert changing.bring(client_serial) == present


def test_from_a_serial_that_was_never_packed_the_whole_catalog_is_sent(changing: Changing) -> None:
    skipped = changing.comes('a.example.', is_asked=False)
    present = changing.comes('b.example.')
    for client_serial in (skipped, 5, present - 100):
        assert changing.answer(client_serial)[:2] == [present, 'invalid']
    assert changing.answer(1)[:2] == [present, 1] and len(changing.answer(1)) == 6


def test_only_so_many_records_are_remembered(changing: Changing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_zone, 'MAX_RECORDS', 3)
    serials_ = [1, *(changing.comes(f'new{number}.example.') for number in range(5))]
    assert [changing.answer(client_serial)[1:2] for client_serial in serials_] == [
        ['invalid'], ['invalid'], *([client_serial] for client_serial in serials_[2:5]), []]
    changing.comes(*(f'more{number}.example.' for number in range(4)))
    assert changing.answer(serials_[-1])[1] == 'invalid'


def test_each_server_sees_its_own_epoch(minidns: LocalMiniDns, serving: MiniDns) -> None:
    (endpoint,) = serving.endpoints
    pool_id = minidns.storage.read(lambda tx: tx.execute(sa.select(pools.c.id)).scalar_one())
    minidns.storage.run(insert_server, pool_id, 3, KEYED.id)
    minidns.storage.run(insert_server, pool_id, 0, PLAIN.id)
    for _ in ('packed', 'kept'):
        assert transfer(endpoint, CATALOG, KEY) == zone_of(catalog_text(minidns, 1, '-e3'), CATALOG)
        assert transfer(endpoint, CATALOG) == zone_of(catalog_text(minidns, 1), CATALOG)


def test_a_catalog_that_has_not_changed_is_not_read_again(minidns: LocalMiniDns, serving: MiniDns) -> None:
    (endpoint,) = serving.endpoints
    transfer(endpoint, CATALOG)
    with count_statements(minidns.storage) as counter:
        transfer(endpoint, CATALOG)
    assert not [statement for statement in counter if 'domains' in statement]


def test_without_the_setting_there_is_no_catalog(serving: MiniDns) -> None:
    (endpoint,) = serving.endpoints
    assert ask(endpoint, CATALOG).rcode() == dns.rcode.NOERROR
    serving.set_pool(a_pool(PLAIN))
    assert ask(endpoint, CATALOG).rcode() == dns.rcode.REFUSED


def test_a_pool_that_is_not_in_the_database_has_no_catalog(minidns: LocalMiniDns, serving: MiniDns) -> None:
    minidns.storage.run(lambda tx: tx.execute(pools.update().values(name='renamed')) and None)
    assert ask(serving.endpoints[0], CATALOG).rcode() == dns.rcode.REFUSED


def test_a_domain_of_the_same_name_does_not_hide_the_catalog(minidns: LocalMiniDns, serving: MiniDns) -> None:
    (endpoint,) = serving.endpoints
    minidns.storage.run(lambda tx: insert_zone(tx, name=CATALOG))
    assert serial_of(ask(endpoint, CATALOG)) == 1
    assert transfer(endpoint, CATALOG) == zone_of(catalog_text(minidns, 1), CATALOG)
    assert transfer(endpoint) == zone_of(EXAMPLE)


def test_a_large_catalog_takes_several_messages(minidns: LocalMiniDns, serving: MiniDns) -> None:
    minidns.storage.run(insert_domains, 1500)
    assert transfer(serving.endpoints[0], CATALOG) == zone_of(catalog_text(minidns, 1), CATALOG)


# NOTIFY and polls

def test_a_server_is_notified_of_the_catalog_and_polled_for_it(minidns: LocalMiniDns) -> None:
    serials = [1, 2]
    name_server = Scripted(lambda query, over_tcp: [soa_answer(query, serials[0])])
    with contextlib.closing(name_server):
        server = Server(new_id(), 'catalog', '127.0.0.1', name_server.port)
        service = minidns.start(server)
        service.set_pool(a_pool(server, catalog_zone=CATALOG))
        service.notify_and_poll(Context(), 'default', [PollRequest('any text', CATALOG, 2, server.id)], 10, 0.05, 100)
        wait_until(lambda: name_server.notifies() and name_server.polls(), 'it is notified and polled')
        assert {query.question[0].name.to_text().lower() for query in name_server.queries} == {CATALOG}
        serials.pop(0)
        (result,) = wait_until(lambda: minidns.pool_manager.results, 'it is confirmed')
        assert (result.domain_id, result.serial_number, result.status) == ('any text', 2, Outcome.SUCCESS)


HEAD = ZoneHead(CATALOG_ID, 'catalog.example.', 'default', 'hostmaster@invalid', 0, 1, 60, 10, 0x7fffffff, 0,
                ('invalid.',))
BEGIN = datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


class Pool:
    """A pool in which an hour passes between two changes."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.now = BEGIN
        self.ranges: list[tuple[str, str]] = []

    def add(self, *ids: str) -> None:
        self._pass(insert, ids, ids, self.now)

    def delete(self, *ids: str) -> None:
        self._pass(change, ids, ids, {'action': Action.DELETE, 'changed_at': self.now})

    def change(self, *ids: str) -> None:
        self._pass(change, (), ids, {'serial': domains.c.serial + 1, 'changed_at': self.now})

    def read(self, former: PackedCatalog | None) -> PackedCatalog:
        """The catalog after *former*; :attr:`ranges` is what was read for it."""
        self.ranges.clear()
        found = self.storage.read(store.snapshot, 'default', [],
                                  functools.partial(catalog_zone.read_catalog, HEAD, former))
        assert found is not None
        return found

    def _pass(self, work: Callable[..., object], came_or_went: Sequence[str], *arguments: object) -> None:
        self.now += timedelta(hours=1)
        self.storage.run(lambda tx: (work(tx, *arguments), raise_catalog(tx, self.now, came_or_went)) and None)


def insert(tx: Tx, ids: Sequence[str], now: datetime) -> None:
    pool_id = default_pool_id(tx)
    tx.execute(domains.insert(), [
        {'id': key, 'created_at': now, 'updated_at': now, 'changed_at': now, 'pool_id': pool_id,
         'name': f'{key}.example.com.', 'reversed_name': f'com.example.{key}.',
         'email': 'hostmaster@example.com', 'ttl': 60, 'refresh': 60, 'retry': 60,
         'expire': 60, 'minimum': 60, 'serial': 1, 'action': Action.CREATE, 'status': Status.PENDING} for key in ids])


def change(tx: Tx, ids: Sequence[str], values: dict[str, object]) -> None:
    tx.execute(sa.update(domains).where(domains.c.id.in_(ids)).values(values))


def ids(*numbers: int) -> list[str]:
    return [f'{number:032x}' for number in numbers]


def records(found: PackedCatalog) -> tuple[int, bytes]:
    return sum(count for count, _ in found.bodies), b''.join(octets for _, octets in found.bodies)


def grown_old(found: PackedCatalog) -> PackedCatalog:
    return dataclasses.replace(found, full_read_at=found.full_read_at - catalog_zone.FULL_READ_INTERVAL)


@pytest.fixture
def pool(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> Pool:
    """A pool of 40 domains with even ids, in ten blocks."""
    monkeypatch.setattr(catalog_zone, 'BLOCK_MEMBERS', 4)
    made = Pool(storage)
    storage.run(set_catalog, 1)
    read = CatalogReading.members

    def seen(self: CatalogReading, first: str = '', end: str = END, stage: int = LAST_STAGE) -> Iterator[Member]:
        made.ranges.append((first, end))
        return read(self, first, end, stage)

    monkeypatch.setattr(CatalogReading, 'members', seen)
    made.add(*ids(*range(2, 82, 2)))
    return made


def test_nothing_is_read_when_no_domain_came_or_went(pool: Pool) -> None:
    first = pool.read(None)
    assert pool.ranges == [('', END)] and len(first.blocks) == 10
    pool.change(*ids(2, 40, 80))
    second = pool.read(first)
    assert not pool.ranges and second.serial > first.serial
    assert records(second)[0] == 40 + 4
    assert records(second) == records(pool.read(None))


@pytest.mark.parametrize(('comes', 'goes', 'blocks'), [
    ([41], [], 1), ([], [2], 1), ([1], [], 1), ([], [10, 12, 14, 16], 1), ([99], [50], 2), ([], [80], 1),
    ([3, 5, 7, 9, 11], [], 2)])
def test_only_blocks_in_which_domains_came_or_went_are_read(pool: Pool, comes: list[int], goes: list[int],
                                                            blocks: int) -> None:
    former = pool.read(None)
    if comes:
        pool.add(*ids(*comes))
    if goes:
        pool.delete(*ids(*goes))
    found = pool.read(former)
    assert len(pool.ranges) == blocks and ('', END) not in pool.ranges
    assert records(found)[0] == 40 + 4 + len(comes) - len(goes)
    assert records(found) == records(pool.read(None))


@pytest.mark.parametrize('why', ['many changes', 'small', 'long ago', 'a backup'])
def test_when_all_is_read_anew(pool: Pool, why: str) -> None:
    if why == 'small':
        pool.delete(*ids(*range(10, 82, 2)))
    former = pool.read(None)
    if why == 'long ago':
        former = grown_old(former)
    if why == 'many changes':
        pool.delete(*ids(*range(2, 82, 8)))
    if why == 'a backup':
        pool.storage.run(lambda tx: tx.execute(
            catalogs.update().values(changes=0, serial=catalogs.c.serial + 1)) and None)
    else:
        pool.add(*ids(41))
    found = pool.read(former)
    assert pool.ranges == [('', END)]
    assert records(found) == records(pool.read(None))


def test_after_any_changes_it_is_what_all_of_it_would_be(pool: Pool) -> None:
    dice = random.Random(6)
    there, found = set(range(2, 82, 2)), pool.read(None)
    for _ in range(40):
        if dice.random() < 0.5:
            new = dice.sample(sorted(set(range(1, 200)) - there - set(range(2, 82, 2))), 2)
            pool.add(*ids(*(number + 1000 * len(there) for number in new)))
            there.update(new)
        else:
            pool.delete(*ids(dice.choice(range(2, 82, 2))))
        found = pool.read(found)
        assert records(found) == records(pool.read(None))


def test_a_deleted_domain_that_was_purged_since_is_not_kept_beside_its_successor(pool: Pool) -> None:
    (old,), (new,) = ids(30), ids(75)
    former = grown_old(pool.read(None))
    pool.delete(old)
    pool.storage.run(change, [old], {'status': Status.DELETED, 'deleted': old, 'updated_at': pool.now})
    pool.add(new)
    pool.storage.run(change, [new], {'name': f'{old}.example.com.', 'generation': 2})
    pool.storage.run(purge.purge, pool.now + timedelta(days=8), 1000)
    found = pool.read(former)
    assert f'{old}-'.encode() not in records(found)[1]
    assert records(found) == records(pool.read(None))
