"""What servers transfer of signed zones, and what users see of them, on each kind of database."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import dns.rdatatype
import dns.zone
import pytest

from designate_pool.central.service import Central
from designate_pool.model import ChangeKind, Domain, SignedRecord
from designate_pool.storage import queries
from designate_pool.storage.serving import zone_snapshot
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains, versions
from testing.databases import count_statements
from tests.fixtures.central import WHO, Clock, create
from tests.fixtures.signing import SignedZones, of_zone
from tests.functional.minidns.conftest import PLAIN, LocalMiniDns, Remembered

pytestmark = pytest.mark.all_databases
NAME = 'example.org.'


MADE = {'RRSIG', 'NSEC'}


class SignedZone(SignedZones, Remembered):
    """A signed zone, and a MiniDNS that serves it."""

    def __init__(self, central: Central, database: Storage, clock: Clock, minidns: LocalMiniDns, hosts: int) -> None:
        SignedZones.__init__(self, central, database)
        Remembered.__init__(self, NAME)
        self.clock, self.minidns = clock, minidns
        self.id = create(central, NAME, *((f'host{number}.{NAME}', 'A', ['192.0.2.1']) for number in range(hosts))).id
        self.serve_anew()

    def serve_anew(self) -> None:
        """By a MiniDNS that keeps nothing yet."""
        (self.endpoint,) = self.minidns.start(PLAIN).endpoints

    def signed(self) -> int:
        self.clock.now += 10
        self.turn(self.id)
        return self.remember()

    def renewed(self) -> int:
        self.clock.now += 10
        self.resign(self.id)
        return self.remember()

    def put(self, label: str, *addresses: str) -> int:
        self.clock.now += 10
        self.central.apply_changes(WHO, self.id, [
            {'name': f'{label}.{NAME}', 'type': 'A', 'records': list(addresses)}])
        return self.remember()

    def difference(self, client_serial: int) -> bool:
        """Whether a server with the zone at *client_serial* gets a difference."""
        return client_serial in self.serials(client_serial)

    def domain(self) -> Domain:
        domain = self.database.read(domains.get, self.id)
        assert domain is not None
        return domain

    def rows(self) -> set[SignedRecord]:
        return set(self.database.run(lambda tx: of_zone(tx, self.id)))


@pytest.fixture
def zones(central: Central, database: Storage, clock: Clock) -> Iterator[LocalMiniDns]:
    with contextlib.ExitStack() as ends:
        yield LocalMiniDns(database, ends)


@pytest.fixture
def zone(central: Central, database: Storage, clock: Clock, zones: LocalMiniDns) -> SignedZone:
    return SignedZone(central, database, clock, zones, 5)


def types_in(zone: dns.zone.Zone) -> set[str]:
    return {dns.rdatatype.to_text(rdataset.rdtype) for _, rdataset in zone.iterate_rdatasets()}


def names_with(zone: dns.zone.Zone, rtype: str) -> set[str]:
    return {owner.to_text() for owner, rdataset in zone.iterate_rdatasets(rtype)}


def test_servers_get_what_the_signer_made_and_how_that_changes(zone: SignedZone) -> None:
    unsigned = zone.remember()
    assert not MADE & types_in(zone.was[unsigned])
    first = zone.signed()
    assert names_with(zone.was[first], 'NSEC') == {NAME, *(f'host{number}.{NAME}' for number in range(5))}
    assert not zone.difference(unsigned), 'PowerDNS is not signed by a difference'
    assert zone.bring(unsigned) == zone.was[first]
    changed = zone.put('host1', '192.0.2.2')
    added = zone.put('new', '192.0.2.3')
    gone = zone.put('host2')
    renewed = zone.renewed()
    assert names_with(zone.was[renewed], 'NSEC') == {NAME, *(f'{label}.{NAME}' for label in (
        'host0', 'host1', 'host3', 'host4', 'new'))}
    zone.serve_anew()
    for serial in (first, changed, added, gone):
        assert zone.difference(serial) and zone.bring(serial) == zone.was[renewed], f'from {first} and {serial}'
    zone.clock.now += 10
    zone.turn(zone.id, on=False)
    plain = zone.remember()
    assert not MADE & types_in(zone.was[plain]) and zone.rows() == set()
    assert not zone.difference(renewed) and zone.bring(renewed) == zone.was[plain]


def test_large_signed_zones_are_read_in_pages(central: Central, database: Storage, clock: Clock,
                                              zones: LocalMiniDns) -> None:
    zone = SignedZone(central, database, clock, zones, 900)
    first = zone.signed()
    assert len(names_with(zone.was[first], 'NSEC')) == 901
    zone.put('host7', '192.0.2.7')
    zone.serve_anew()
    assert zone.difference(first)


def test_users_see_nothing_of_what_the_signer_made(zone: SignedZone, database: Storage) -> None:
    zone.signed()
    changed = zone.put('host1', '192.0.2.2')
    zone.renewed()
    assert not MADE & {recordset.type for recordset in zone.central.find_recordsets(WHO, zone.id)}
    for serial in (changed, zone.domain().serial):
        contents = database.read(lambda tx: list(versions.rows_at(tx, zone.id, serial)[1]))
        assert not MADE & {rtype for _, rtype, _, _ in contents} and len(contents) == 7
    kinds = [(version.kind, version.gone, version.added) for version in database.read(versions.find, zone.id)]
    assert kinds[:3] == [(ChangeKind.SIGNING, 0, 0), (ChangeKind.API, 1, 1), (ChangeKind.SIGNING, 0, 0)]
    assert zone.domain().history_records == 2
    changes = database.read(versions.between, zone.id, changed, zone.domain().serial)[2]
    assert [change.type for change in changes] == ['SOA'], 'which has another serial'


def test_differences_of_the_signer_count_in_the_journal_and_go_with_it(zone: SignedZone) -> None:
    zone.use(most=40, kept=1000)
    first = zone.signed()
    for number in range(8):
        zone.put('host1', f'192.0.2.{number}')
    domain = zone.domain()
    assert domain.journal_from is not None and 20 < domain.journal_records <= 40
    assert not zone.difference(first) and zone.bring(first) == zone.was[domain.serial]
    assert zone.difference(domain.journal_from)
    with zone.database.engine.connect() as connection:
        kept = connection.exec_driver_sql('SELECT serial_number, signed_size FROM zone_versions WHERE '
                                          'signed_difference IS NOT NULL AND signed_size > 0').all()
    assert domain.journal_from not in dict(kept) or sum(dict(kept).values()) < 60
    zone.use(most=5, kept=1000)
    zone.renewed()
    assert zone.domain().journal_from is None, 'all signatures are too many for one difference'


def test_small_signed_zones_are_read_together(central: Central, database: Storage, clock: Clock) -> None:
    signed = SignedZones(central, database)
    ids = [create(central, f'zone{number}.example.').id for number in range(3)]
    for key in ids[:2]:
        signed.turn(key)
    with count_statements(database) as counter:
        both = database.read(zone_snapshot.small_zones, ids[:2], 100, signed=True)
    assert counter.total() == 1 and both is not None
    assert {rtype for _, records in both.values() for _, rtype, _, _ in records} == {'NS', *MADE}
    assert database.read(zone_snapshot.counts, ids[:2], 100, True) == {key: len(both[key][1]) for key in ids[:2]}
    assert database.read(zone_snapshot.counts, ids[:2], len(both[ids[0]][1]), True) is None
    assert signed.signer.calls == [['zone0.example.'], ['zone1.example.']]


def test_a_change_of_a_zone_that_is_not_signed_asks_no_signer(central: Central, database: Storage) -> None:
    signed = SignedZones(central, database)
    domain = create(central, NAME, (f'www.{NAME}', 'A', ['192.0.2.1']))
    central.apply_changes(WHO, domain.id, [{'name': f'www.{NAME}', 'type': 'A', 'records': ['192.0.2.2']}])
    assert signed.signer.calls == []
    assert database.read(queries.domain, WHO, domain.id).content_serial is None
