"""Incremental transfers of what Central has changed."""

from __future__ import annotations

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
from prometheus_client import REGISTRY

from designate_pool.central.service import Central
from designate_pool.minidns.server.responder import Query, Transfer
from designate_pool.minidns.zones.ixfr import PackedDifference
from designate_pool.model import Endpoint, TsigKey, differences
from designate_pool.protocol import wire
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import zone_versions
from testing.databases import count_statements
from testing.processes import wait_until
from tests.fixtures.central import WHO, Clock, create
from tests.functional.minidns.conftest import KEY, KEYED, PLAIN, LocalMiniDns, Remembered, serials_in

NAME = 'example.org.'


class Zone(Remembered):
    """A domain of so many hosts, and a MiniDNS that serves it."""

    def __init__(self, minidns: LocalMiniDns, central: Central, clock: Clock, hosts: int = 40) -> None:
        super().__init__(NAME)
        self.minidns, self.central, self.clock = minidns, central, clock
        self.endpoint = self.served_anew()
        self.id = create(central, NAME, *((f'host{number}.{NAME}', 'A', ['192.0.2.1']) for number in range(hosts))).id
        self.first = self.remember()

    def served_anew(self) -> Endpoint:
        """Where a MiniDNS is from now on that keeps nothing yet."""
        self.service = self.minidns.start(PLAIN, KEYED)
        (self.endpoint,) = self.service.endpoints
        return self.endpoint

    def apply(self, *changes: tuple[str, str, list[str], int | None]) -> int:
        """Change recordsets, in one serial, which is given."""
        self.clock.now += 10
        self.central.apply_changes(WHO, self.id, [
            {'name': f'{label}.{NAME}', 'type': rtype, 'records': data, 'ttl': ttl}
            for label, rtype, data, ttl in changes])
        return self.remember()

    def put(self, label: str, *addresses: str) -> int:
        return self.apply((label, 'A', list(addresses), None))

    def is_whole(self, client_serial: int) -> bool:
        present = max(self.was)
        found = self.serials(client_serial)
        assert found == [present, present] or found[:2] == [present, client_serial]
        return len(found) == 2


@pytest.fixture
def database(sqlite: Storage) -> Storage:
    """Central's is the one that MiniDNS reads."""
    return sqlite


@pytest.fixture
def zone(minidns: LocalMiniDns, central: Central, clock: Clock) -> Zone:
    return Zone(minidns, central, clock)


def counted(kind: str, what: str = 'transfers_total', **labels: str) -> float:
    return REGISTRY.get_sample_value(f'designate_pool_{what}', {'server': 'fake:127.0.0.1:1', 'kind': kind,
                                                                **labels}) or 0.0


@pytest.mark.parametrize('key', [None, KEY], ids=['unsigned', 'signed'])
def test_all_serials_in_between_come_in_one_answer(zone: Zone, key: TsigKey | None) -> None:
    second, third, fourth = zone.put('new', '192.0.2.9'), zone.put('other', '192.0.2.8'), zone.put('host0')
    assert zone.serials(zone.first, key=key) == [fourth, zone.first, second, second, third, third, fourth, fourth]
    assert zone.serials(third, key=key) == [fourth, third, fourth, fourth]
    for client_serial in (zone.first, second, third, fourth):
        assert zone.bring(client_serial, key) == zone.was[fourth]


def test_over_udp_it_is_asked_for_by_tcp(zone: Zone) -> None:
    last = zone.put('new', '192.0.2.9')
    answer = zone.ask(zone.first, over=dns.query.udp)
    assert serials_in(answer) == [last] and answer.flags & dns.flags.TC
    assert zone.bring(zone.first, KEY, by=dns.query.UDPMode.TRY_FIRST) == zone.was[last]


def test_a_difference_that_is_no_smaller_is_the_whole_zone(
        minidns: LocalMiniDns, central: Central, clock: Clock) -> None:
    """As far as records are counted, and as far as the whole zone is kept and octets are compared."""
    zone = Zone(minidns, central, clock, hosts=120)
    zone.apply(*((f'host{number}', 'A', ['192.0.2.2'], None) for number in range(75)))
    assert zone.is_whole(zone.first)
    zone.served_anew()
    assert zone.is_whole(zone.first)
    middle = max(zone.was)
    zone.apply(*((f'host{number}', 'A', ['192.0.2.3'], None) for number in range(55)))
    zone.served_anew()
    assert not zone.is_whole(middle)


def test_the_second_server_costs_no_look_into_the_journal(zone: Zone) -> None:
    zone.put('new', '192.0.2.9')
    assert not zone.is_whole(zone.first)
    zone.minidns.storage.run(lambda tx: tx.execute(zone_versions.delete()) and None)
    assert not zone.is_whole(zone.first)
    zone.served_anew()
    assert zone.is_whole(zone.first)


def test_a_difference_that_was_declined_costs_no_second_look_into_the_journal(
        minidns: LocalMiniDns, central: Central, clock: Clock) -> None:
    zone = Zone(minidns, central, clock, hosts=120)
    zone.apply(*((f'host{number}', 'A', ['192.0.2.2'], None) for number in range(75)))
    assert zone.is_whole(zone.first)
    loader = zone.service._listener._query_handler._zone_loader
    head = loader.read_heads([NAME])[NAME]
    with count_statements(minidns.storage) as counter:
        assert loader.load_difference(head, zone.first) is None
    assert not counter


def test_who_asked_before_a_later_change_gets_the_difference_that_another_server_got(
        zone: Zone) -> None:
    zone.put('new', '192.0.2.9')
    handler = zone.service._listener._query_handler
    former = handler._zone_loader.read_heads([NAME])[NAME]
    peers = tuple(zone.service._servers.table.peers.values())
    query = Query(1, 0, b'', NAME, wire.IXFR, True, 65535, b'', zone.first, peers, '127.0.0.1')
    last = zone.put('newer', '192.0.2.8')
    assert not zone.is_whole(zone.first)
    with count_statements(zone.minidns.storage) as counter:
        found = handler.load_transfer(Transfer(query, former))
    assert isinstance(found, PackedDifference) and found.serial == last and not counter


def test_a_difference_is_made_without_a_look_at_the_whole_zone(
        minidns: LocalMiniDns, central: Central, clock: Clock) -> None:
    zone = Zone(minidns, central, clock, hosts=500)
    zone.put('new', '192.0.2.9')
    zone.served_anew()
    with count_statements(minidns.storage) as counter:
        assert not zone.is_whole(zone.first)
    of_zones = [statement for statement in counter.elements() if 'FROM domains' in statement or 'record' in statement
                if 'pools.reloads' not in statement]  # which is asked each second
    assert len(of_zones) == 2 and not any('FROM records' in statement for statement in of_zones)


def test_a_record_that_no_message_holds_makes_it_the_whole_zone(zone: Zone, minidns: LocalMiniDns) -> None:
    zone.put('new', '192.0.2.9')
    minidns.storage.run(lambda tx: tx.execute(zone_versions.update().values(
        difference=differences.pack([], [(f'new.{NAME}', 'A', None, bytes(65535))]))) and None)
    assert zone.is_whole(zone.first)


def test_a_journal_that_cannot_be_read_is_servfail(zone: Zone, minidns: LocalMiniDns) -> None:
    zone.put('new', '192.0.2.9')
    minidns.storage.run(lambda tx: tx.execute(sa.text('ALTER TABLE zone_versions RENAME TO away')) and None)
    assert zone.ask(zone.first).rcode() == dns.rcode.SERVFAIL
    minidns.storage.run(lambda tx: tx.execute(sa.text('ALTER TABLE away RENAME TO zone_versions')) and None)
    assert not zone.is_whole(zone.first)


def test_transfers_are_counted_by_kind(minidns: LocalMiniDns, central: Central, clock: Clock) -> None:
    before = {kind: (counted(kind, outcome='sent'), counted(kind, 'transfer_bytes_total'))
              for kind in ('axfr', 'ixfr', 'ixfr_whole')}
    zone = Zone(minidns, central, clock)  # one transfer, and one more at each change
    zone.put('new', '192.0.2.9')
    zone.ask(zone.first), zone.ask(zone.first), zone.ask(zone.first - 1)

    def grown() -> dict[str, tuple[float, float]]:
        return {kind: (counted(kind, outcome='sent') - sent, counted(kind, 'transfer_bytes_total') - octets)
                for kind, (sent, octets) in before.items()}

    wait_until(lambda: {kind: sent for kind, (sent, _) in grown().items()} == {'axfr': 2, 'ixfr': 2, 'ixfr_whole': 1},
               'all are counted')
    found = {kind: octets for kind, (_, octets) in grown().items()}
    assert found['ixfr_whole'] > found['axfr'] - found['ixfr_whole'] > found['ixfr'] > 0, 'one record less at first'
