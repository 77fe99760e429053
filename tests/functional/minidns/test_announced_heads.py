"""The head that a server got in the answer to its SOA query serves the transfer that follows."""

from __future__ import annotations

import dataclasses

import dns.message
import dns.query
import dns.rcode
import dns.rrset
import dns.xfr
import pytest

from designate_pool.central.service import Central
from designate_pool.model import Endpoint, Server, TsigKey
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import domains
from testing.zones import set_serial
from tests.fixtures.central import WHO, Clock, create
from tests.functional.minidns.conftest import KEY, KEYED, PLAIN, LocalMiniDns, ask, keyring, serial_of, transfer

NAME = 'example.com.'


@pytest.fixture
def database(sqlite: Storage) -> Storage:
    """Central's is the one that MiniDNS reads."""
    return sqlite


def ixfr(endpoint: Endpoint, client_serial: int, key: TsigKey | None = None, name: str = NAME) -> dns.message.Message:
    """The answer to an IXFR query of a client with an older serial."""
    query = dns.message.make_query(name, 'IXFR')
    query.authority.append(dns.rrset.from_text(name, 0, 'IN', 'SOA', f'. . {client_serial} 0 0 0 0'))
    if key is not None:
        query.use_tsig(keyring(key))
    return dns.query.tcp(query, endpoint.host, 10, endpoint.port)


def ask_ixfr(endpoint: Endpoint, client_serial: int, key: TsigKey | None = None) -> int:
    """The serial that the zone of an :func:`ixfr` has."""
    return serial_of(ixfr(endpoint, client_serial, key))


def heads_read(storage: Storage, endpoint: Endpoint, key: TsigKey | None = None) -> int:
    """How many statements read heads for a transfer to a server that has an older serial."""
    with storage.count_statements() as counter:
        ask_ixfr(endpoint, 1, key)
    return sum(number for statement, number in counter.items() if 'domains.name IN' in statement)


@pytest.mark.parametrize('server', [PLAIN, KEYED], ids=['by its address', 'by its key'])
def test_a_server_that_has_queried_the_soa_transfers_without_another_look(
        minidns: LocalMiniDns, server: Server) -> None:
    key = server.tsig_key
    (endpoint,) = minidns.start(server, packed_zones_bytes=1).endpoints  # nothing is kept
    assert heads_read(minidns.storage, endpoint, key) == 1
    for _ in range(2):
        ask(endpoint, key=key)
        assert heads_read(minidns.storage, endpoint, key=key) == 0
        assert heads_read(minidns.storage, endpoint, key=key) == 1, 'for one transfer only'


def test_servers_that_share_an_address_may_not_have_asked_themselves(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start(PLAIN, dataclasses.replace(PLAIN, id='f' * 32, port=2)).endpoints
    ask(endpoint)
    assert heads_read(minidns.storage, endpoint) == 1


def test_another_server_has_not_asked(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start(PLAIN, KEYED, packed_zones_bytes=1).endpoints
    ask(endpoint, key=KEY)
    assert heads_read(minidns.storage, endpoint) == 1
    assert heads_read(minidns.storage, endpoint, key=KEY) == 0


def test_who_has_that_serial_already_is_told_of_a_later_one(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start(PLAIN).endpoints
    told = serial_of(ask(endpoint))
    key = minidns.storage.read(lambda tx: tx.execute(domains.select()).one().id)
    minidns.storage.run(lambda tx: set_serial(tx, key, told + 1))
    assert ask_ixfr(endpoint, told) == told + 1
    assert serial_of(ask(endpoint)) == told + 1
    minidns.storage.run(lambda tx: set_serial(tx, key, told + 2))
    assert ask_ixfr(endpoint, told) >= told + 1, 'what it was told'
    assert ask_ixfr(endpoint, told) == told + 2


def test_a_zone_deleted_since_is_not_transferred(minidns: LocalMiniDns) -> None:
    """Neither read anew nor as it was kept: by now another project may have a zone of that name."""
    (endpoint,) = minidns.start(PLAIN).endpoints
    ask(endpoint)
    transfer(endpoint)
    ask(endpoint)
    minidns.storage.run(lambda tx: tx.execute(domains.update().values(deleted='1')) and None)
    with pytest.raises(dns.xfr.TransferError, match='NOTAUTH'):
        transfer(endpoint)


@pytest.mark.parametrize('kept', [True, False], ids=['kept', 'not kept'])
@pytest.mark.parametrize('has_journal', [True, False], ids=['difference', 'whole zone'])
def test_a_zone_deleted_since_is_not_transferred_to_who_has_an_older_serial(
        minidns: LocalMiniDns, central: Central, clock: Clock, has_journal: bool, kept: bool) -> None:
    name = 'example.org.'
    domain = create(central, name, *((f'host{number}.{name}', 'A', ['192.0.2.1']) for number in range(12)))
    clock.now += 60
    central.apply_changes(WHO, domain.id, [{'name': f'new.{name}', 'type': 'A', 'records': ['192.0.2.2']}])
    (endpoint,) = minidns.start(PLAIN, packed_zones_bytes=1 << 20 if kept else 1).endpoints
    client_serial = domain.serial - (not has_journal)
    assert ixfr(endpoint, client_serial, name=name).answer
    ask(endpoint, name)
    minidns.storage.run(lambda tx: tx.execute(domains.update().values(deleted='1')) and None)
    assert ixfr(endpoint, client_serial, name=name).rcode() == dns.rcode.NOTAUTH
