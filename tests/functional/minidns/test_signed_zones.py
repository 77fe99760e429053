"""What servers transfer of signed zones, and what users see of them, on each kind of database."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import dns.query
import dns.rdatatype
import dns.xfr
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
from tests.functional.minidns.conftest import PLAIN, LocalMiniDns, transfer

pytestmark = pytest.mark.all_databases
NAME = 'example.org.'


MADE = {'RRSIG', 'NSEC'}


class SignedZone(SignedZones):
    """A signed zone, and a MiniDNS that serves it.

    :ivar was: the zone at each of its serials, as a server that transferred it whole has it
    """

    def __init__(self, central: Central, database: Storage, clock: Clock, minidns: LocalMiniDns, hosts: int) -> None:
        super().__init__(central, database)
        self.clock, self.minidns = clock, minidns
        self.id = create(central, NAME, *((f'host{number}.{NAME}', 'A', ['192.0.2.1']) for number in range(hosts))).id
        self.was: dict[int, dns.zone.Zone] = {}
        self.serve_anew()

    def serve_anew(self) -> None:
        """By a MiniDNS that keeps nothing yet."""
        (self.endpoint,) = self.minidns.start(PLAIN).endpoints

    def remember(self) -> int:
        zone = transfer(self.endpoint, NAME)
        serial = int(zone.get_soa().serial)
        self.was[serial] = zone
        return serial

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

    def bring(self, client_serial: int) -> tuple[dns.zone.Zone, bool]:
        """What a server with the zone at *client_serial* makes of the answer to IXFR; whether that is a difference."""
        zone = dns.zone.Zone(NAME, relativize=False)
        with zone.writer() as writer:
            for owner, rdataset in self.was[client_serial].iterate_rdatasets():
                writer.add(owner, rdataset)
        query, _ = dns.xfr.make_query(zone)
        answer = dns.query.tcp(query, self.endpoint.host, port=self.endpoint.port, timeout=10, one_rr_per_rrset=True)
        serials = [int(rrset[0].serial) for rrset in answer.answer if rrset.rdtype == dns.rdatatype.SOA]
        dns.query.inbound_xfr(self.endpoint.host, zone, query, port=self.endpoint.port, timeout=10, lifetime=20)
        return zone, client_serial in serials

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
    assert zone.bring(unsigned) == (zone.was[first], False), 'PowerDNS is not signed by a difference'
    changed = zone.put('host1', '192.0.2.2')
    added = zone.put('new', '192.0.2.3')
    gone = zone.put('host2')
    renewed = zone.renewed()
    assert names_with(zone.was[renewed], 'NSEC') == {NAME, *(f'{label}.{NAME}' for label in (
        'host0', 'host1', 'host3', 'host4', 'new'))}
    zone.serve_anew()
    for serial in (first, changed, added, gone):
        assert zone.bring(serial) == (zone.was[renewed], True), f'from {first} and {serial}'
    zone.clock.now += 10
    zone.turn(zone.id, on=False)
    plain = zone.remember()
    assert not MADE & types_in(zone.was[plain]) and zone.rows() == set()
    assert zone.bring(renewed) == (zone.was[plain], False)


def test_large_signed_zones_are_read_in_pages(central: Central, database: Storage, clock: Clock,
                                              zones: LocalMiniDns) -> None:
    zone = SignedZone(central, database, clock, zones, 900)
    first = zone.signed()
    assert len(names_with(zone.was[first], 'NSEC')) == 901
    zone.put('host7', '192.0.2.7')
    zone.serve_anew()
    assert zone.bring(first)[1]


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
    assert zone.bring(first) == (zone.was[domain.serial], False)
    assert zone.bring(domain.journal_from)[1]
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
