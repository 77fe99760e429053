"""Each serial of the catalog zone has one set of members, whoever serves it, and whatever goes on meanwhile."""

from __future__ import annotations

import collections
import random
import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from designate_pool.central.service import Central
from designate_pool.minidns.acl import AllowedPeer
from designate_pool.minidns.zones.catalog_zone import CatalogLoader
from designate_pool.minidns.zones.loader import ZoneCache
from designate_pool.minidns.zones.packed_zone import Body
from designate_pool.model import Domain, PoolServer, ServerState, ZoneHead, utcnow
from designate_pool.protocol import soa_rdata, wire
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.serving import catalog
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import domains as table
from designate_pool.storage.zones import domains, pools
from testing.processes import wait_until
from testing.rows import default_pool_id
from tests.fixtures.central import WHO, create

ZONE = 'catalog.example.'
ONE, TWO = (AllowedPeer(letter * 32, letter, ('127.0.0.1',), 53) for letter in 'ab')


class MiniDns:
    """What one MiniDNS knows of the catalog."""

    def __init__(self, storage: Storage) -> None:
        self._catalog_loader = CatalogLoader(storage, ZoneCache(1 << 24))

    def whole(self, *peers: AllowedPeer) -> tuple[int, frozenset[str]]:
        """The catalog's serial and members: ``name label``."""
        found = self._catalog_loader.load_catalog(self._head(), peers)
        assert found is not None
        return found.serial, frozenset(text for _, text in records(found.bodies) if text)

    def step(self, client_serial: int, members: Collection[str], *peers: AllowedPeer) -> tuple[int, frozenset[str]]:
        """The serial and members of a server that asks for what changed since *client_serial*."""
        found = self._catalog_loader.load_difference(self._head(), peers, client_serial)
        if found is None:
            return self.whole(*peers)
        is_added, there = True, set(members)
        for serial, text in records(found.bodies)[1:]:
            if serial is not None:
                is_added = not is_added
            elif is_added:
                assert text not in there
                there.add(text)
            else:
                there.remove(text)  # a server that has no such record takes the difference for broken
        return found.serial, frozenset(there)

    def _head(self) -> ZoneHead:
        found = self._catalog_loader.head(ZONE, 'default')
        assert found is not None
        return found


def records(bodies: Collection[Body]) -> list[tuple[int | None, str]]:
    """SOA records by their serials, and members."""
    found: list[tuple[int | None, str]] = []
    for count, octets in bodies:
        at = 0
        for _ in range(count):
            record = wire.read_record(octets, at)
            if record.rtype == wire.SOA:
                found.append((soa_rdata.serial_at(octets, record), ''))
            elif record.rtype == wire.PTR:
                label = octets[at + 1:at + 1 + octets[at]].decode()
                found.append((None, f'{wire.text_of(octets[record.start:record.end])} {label}'))
            at = record.end
    return found


@pytest.fixture
def has_catalog(central: Central, database: Storage) -> None:
    database.run(lambda tx: catalog.establish(tx, default_pool_id(tx), utcnow()))


def register(storage: Storage, *peers: AllowedPeer) -> None:
    """Have the configuration read anew that has these servers."""
    wanted = [PoolServer(each.id, '', each.label, 'catalog', ServerState.ACTIVE) for each in peers]
    storage.run(pool_servers.register, 'default', wanted, False, True, utcnow(), has_catalog=True)


def members(storage: Storage) -> set[str]:
    return set(storage.read(lambda tx: tx.execute(
        sa.select(table.c.name).where(table.c.action != 'DELETE')).scalars().all()))


@pytest.mark.all_databases
@pytest.mark.usefixtures('has_catalog')
def test_servers_that_follow_any_minidns_have_the_same_members(central: Central, database: Storage,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('designate_pool.minidns.zones.catalog_zone.BLOCK_MEMBERS', 4)
    seen: dict[int, set[frozenset[str]]] = collections.defaultdict(set)
    over, dice = threading.Event(), random.Random(13)

    def change(thread: int) -> None:
        there: list[Domain] = []
        for number in range(12):
            there.append(create(central, f'd{number}.{thread}.example.'))
            if number % 3 == 2:
                central.delete_domain(WHO, there.pop(0).id)

    def follow() -> None:
        """A server that takes what changed now from one MiniDNS and now from the other."""
        asked = [MiniDns(database), MiniDns(database)]
        serial, there = asked[0].whole()
        while True:
            was_over = over.is_set()
            seen[serial].add(there)
            serial, there = dice.choice(asked).step(serial, there)
            if was_over:
                assert {each.split()[0] for each in there} == members(database)
                return

    with ThreadPoolExecutor(5) as threads:
        followers = [threads.submit(follow) for _ in range(2)]
        changers = [threads.submit(change, number) for number in range(3)]
        try:
            for each in changers:
                each.result(60)
        finally:
            over.set()
        for each in followers:
            each.result(60)
    assert len(seen) > 5 and {len(each) for each in seen.values()} == {1}


@pytest.mark.usefixtures('has_catalog')
def test_an_epoch_that_another_server_has_already_resets_a_server_all_the_same(central: Central,
                                                                               database: Storage) -> None:
    register(database, ONE, TWO)
    minidns = MiniDns(database)
    for number in range(20):
        create(central, f'd{number}.example.')
    database.run(pool_servers.raise_epoch, TWO.id, utcnow())
    minidns.whole(TWO)
    serial, there = minidns.whole(ONE)
    database.run(pool_servers.raise_epoch, ONE.id, utcnow())
    minidns.whole(TWO)
    serial, there = minidns.step(serial, there, ONE)
    assert all(each.endswith('-e1') for each in there) and len(there) == 20
    create(central, 'last.example.')
    assert minidns.step(serial, there, ONE) == minidns.whole(ONE) == minidns.whole(TWO)


@pytest.mark.usefixtures('has_catalog')
def test_a_server_that_was_away_takes_the_whole_catalog(central: Central, database: Storage) -> None:
    register(database, ONE, TWO)
    minidns = MiniDns(database)
    for number in range(20):
        create(central, f'd{number}.example.')
    database.run(pool_servers.raise_epoch, ONE.id, utcnow())
    serial, there = minidns.whole(ONE)
    minidns.whole(TWO)
    register(database, TWO)
    row = database.read(pool_servers.SERVERS.get, ONE.id)
    assert row is not None
    long_ago = utcnow() - pool_servers.KEPT
    database.run(pool_servers.save, pool_servers.in_state(row, ServerState.REMOVED, long_ago), utcnow())
    register(database, TWO)
    assert database.read(pool_servers.SERVERS.get, ONE.id) is None
    register(database, ONE, TWO)
    serial, there = minidns.step(serial, there, ONE)
    assert not any(each.endswith('-e1') for each in there) and len(there) == 20
    create(central, 'last.example.')
    assert minidns.step(serial, there, ONE) == minidns.whole(ONE)


@pytest.mark.all_databases
@pytest.mark.usefixtures('has_catalog')
def test_an_import_under_way_holds_up_no_announcement(central: Central, database: Storage) -> None:
    impatient = Storage(database.engine.url.render_as_string(hide_password=False), patience=2)
    pool_id = database.read(default_pool_id)
    begun, over = threading.Event(), threading.Event()

    def import_much(tx: Tx) -> None:
        """As far as :func:`designate_pool.central.domain_creator.create_domain` is before its records are written."""
        pools.share(tx, name='default')
        domains.last_of_name(tx, 'large.example.')
        begun.set()
        assert over.wait(30)

    with ThreadPoolExecutor(1) as threads:
        importing = threads.submit(database.run, import_much)
        wait_until(begun.is_set, 'the import has begun')
        try:
            head = impatient.read(catalog.head, 'default')
            assert head is not None
            if database.engine.dialect.name != 'sqlite':  # which has one writer at a time, whatever they write
                assert (impatient.run(catalog.bump, pool_id, utcnow()) or 0) > head.serial
        finally:
            over.set()
        importing.result(30)
    impatient.close()


def test_a_pool_without_a_catalog_keeps_none(central: Central, database: Storage) -> None:
    domain = create(central, 'a.example.')
    central.delete_domain(WHO, domain.id)
    head = database.read(catalog.head, 'default')
    assert head is not None and (head.serial, head.changes) == (catalog.FIRST_SERIAL, None)
