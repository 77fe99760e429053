"""The name server over real sockets: transfers, NOTIFY, faults, restarts."""

from __future__ import annotations

import contextlib
import json
import pathlib
import socket
import threading
import time
from collections.abc import Callable

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.zone
import pytest

from designate_pool.model import Endpoint, TsigKey
from designate_pool.nameserver import refresher, server as server_module
from designate_pool.nameserver.server import NameServer
from testing.asking import Asked
from testing.processes import free_port, wait_until
from tests.fixtures.nameservers import Primary, zone_text

NAME = 'example.com.'
KEY = TsigKey('transfer.example.', 'hmac-sha256', 'dHJhbnNmZXIga2V5IGZvciB0ZXN0cyBvbmx5')


class Asker(Asked):
    def __init__(self, server: NameServer) -> None:
        self._server = server

    @property
    def host(self) -> str:  # type: ignore[override]
        return self._server.endpoint.host

    @property
    def port(self) -> int:  # type: ignore[override]
        return self._server.endpoint.port


@pytest.fixture
def server(name_server: Callable[..., NameServer], primary: Primary) -> NameServer:
    """A server that has the zone at serial 1."""
    primary.publish(NAME, zone_text(1, 'www A 192.0.2.1'))
    server = name_server(retry=0.1)
    server.add_zone(NAME, [primary.endpoint])
    wait_until(lambda: server.serial(NAME) == 1, 'the zone is there')
    return server


@pytest.fixture
def asker(server: NameServer) -> Asker:
    return Asker(server)


def rcode(asker: Asked, name: str = NAME, rtype: str = 'SOA', tcp: bool = False) -> str:
    return dns.rcode.to_text(asker.query(name, rtype, tcp=tcp).rcode())


def test_unknown_zone_is_refused_and_one_without_contents_is_servfail(server: NameServer, asker: Asker) -> None:
    assert rcode(asker, 'example.net.') == 'REFUSED'
    server.add_zone('example.net.', [Endpoint('127.0.0.1', free_port())])
    assert rcode(asker, 'example.net.') == 'SERVFAIL'
    assert rcode(asker, 'www.example.net.', 'A') == 'SERVFAIL'


def test_the_zone_with_the_longest_name_answers(server: NameServer, asker: Asker, primary: Primary) -> None:
    primary.publish('sub.example.com.', zone_text(9, 'www A 192.0.2.9'))
    assert rcode(asker, 'www.sub.example.com.', 'A') == 'NXDOMAIN'
    server.add_zone('sub.example.com.', [primary.endpoint])
    wait_until(lambda: asker.texts('www.sub.example.com.', 'A') == ['192.0.2.9'], 'the zone below answers')
    server.delete_zone('sub.example.com.')
    assert rcode(asker, 'www.sub.example.com.', 'A') == 'NXDOMAIN'


@pytest.mark.parametrize('hint', [2, None, 1, 99])
def test_notify_brings_the_new_serial_whatever_it_names(server: NameServer, asker: Asker, primary: Primary,
                                                        hint: int | None) -> None:
    primary.publish(NAME, zone_text(2, 'www A 192.0.2.2'))
    assert asker.notify(NAME, hint).rcode() == dns.rcode.NOERROR
    wait_until(lambda: asker.texts('www.example.com.', 'A') == ['192.0.2.2'], 'the second contents are served')


def test_notify_of_a_zone_that_is_not_held(asker: Asker) -> None:
    assert asker.notify('www.example.com.').rcode() == dns.rcode.NOTAUTH
    assert asker.notify('example.net.').rcode() == dns.rcode.NOTAUTH


def test_notify_from_a_stranger_is_refused_unless_signed(name_server: Callable[..., NameServer]) -> None:
    server = name_server(keys=[KEY])
    server.add_zone(NAME, [Endpoint('192.0.2.1', 53)])
    assert Asker(server).notify(NAME).rcode() == dns.rcode.REFUSED
    assert Asker(server).notify(NAME, key=KEY).rcode() == dns.rcode.NOERROR


def test_a_serial_that_goes_back_is_not_taken(server: NameServer, asker: Asker, primary: Primary) -> None:
    primary.publish(NAME, zone_text(4294967290))
    asker.notify(NAME, 5)
    primary.publish(NAME, zone_text(3))
    asker.notify(NAME, 3)
    wait_until(lambda: server.serial(NAME) == 3, 'the newer serial is taken')


def test_an_expired_zone_is_servfail(name_server: Callable[..., NameServer], primary: Primary) -> None:
    primary.publish(NAME, zone_text(1, refresh=1, retry=1, expire=1))
    server = name_server(retry=0.2)
    server.add_zone(NAME, [primary.endpoint])
    wait_until(lambda: Asker(server).serial(NAME) == 1, 'the zone is served')
    primary.stop()
    wait_until(lambda: rcode(Asker(server)) == 'SERVFAIL', 'the zone has expired')
    primary.start()
    primary.publish(NAME, zone_text(2))
    wait_until(lambda: Asker(server).serial(NAME) == 2, 'it is served again')


# Transfers out

def fetched(asker: Asked, key: TsigKey | None = None) -> dict[str, int]:
    """How many records of each type the zone has by AXFR."""
    zone = refresher.fetch(dns.name.from_text(NAME), Endpoint(asker.host, asker.port), key).zone
    counts: dict[str, int] = {}
    for _, rdataset in zone.iterate_rdatasets():
        kind = dns.rdatatype.to_text(rdataset.rdtype)
        counts[kind] = counts.get(kind, 0) + len(rdataset)
    return counts


@pytest.mark.parametrize('key', [None, KEY])
def test_a_zone_of_many_messages_goes_through_two_servers(name_server: Callable[..., NameServer],
                                                          key: TsigKey | None) -> None:
    lines = [f'host{number} A 192.0.2.{number % 250 + 1}' for number in range(600)]
    lines += [f'many TXT "{number} {"x" * 200}"' for number in range(150)]
    with Primary(keys=[KEY]) as first:
        first.publish(NAME, zone_text(1, *lines))
        server = name_server(keys=[KEY])
        server.add_zone(NAME, [first.endpoint], key)
        wait_until(lambda: server.serial(NAME) == 1, 'the zone is there')
        assert fetched(Asker(server), key) == {'SOA': 1, 'NS': 1, 'A': 600, 'TXT': 150}


def test_transfer_over_udp_and_of_a_name_in_the_zone(asker: Asker) -> None:
    assert rcode(asker, NAME, 'AXFR') == 'FORMERR'
    assert rcode(asker, 'www.example.com.', 'AXFR', tcp=True) == 'REFUSED'


def test_ixfr_gets_the_whole_zone_over_tcp_and_the_soa_over_udp(asker: Asker) -> None:
    over_udp = asker.query(NAME, 'IXFR')
    assert [rrset.rdtype for rrset in over_udp.answer] == [dns.rdatatype.SOA]
    over_tcp = asker.query(NAME, 'IXFR', tcp=True)
    assert {dns.rdatatype.to_text(rrset.rdtype) for rrset in over_tcp.answer} == {'SOA', 'NS', 'A'}


def test_a_large_answer_is_cut_over_udp(server: NameServer, asker: Asker, primary: Primary) -> None:
    primary.publish(NAME, zone_text(2, *(f'many TXT "{number} {"x" * 200}"' for number in range(20))))
    server.refresh(NAME)
    wait_until(lambda: server.serial(NAME) == 2, 'the zone is there')
    assert asker.query('many.example.com.', 'TXT').flags & dns.flags.TC
    assert len(asker.query('many.example.com.', 'TXT', tcp=True).answer[0]) == 20


# Faults

def test_while_many_are_answered_others_are_dropped(
        monkeypatch: pytest.MonkeyPatch, name_server: Callable[..., NameServer]) -> None:
    monkeypatch.setattr(server_module, 'MAX_DATAGRAMS', 2)
    server = name_server()
    server.set_fault('delay=0.4')
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(0.5)

        def ask(number: int) -> None:
            query = dns.message.make_query(NAME, 'SOA', id=number)
            client.sendto(query.to_wire(), (server.endpoint.host, server.endpoint.port))

        def answered() -> int:
            return int.from_bytes(client.recv(512)[:2], 'big')

        for number in (1, 2, 3):
            ask(number)
        assert {answered(), answered()} == {1, 2}

        def is_answered() -> bool:
            ask(4)
            with contextlib.suppress(TimeoutError):
                return answered() == 4
            return False

        wait_until(is_answered, 'a thread is free again')


def test_delay_holds_up_nobody_else(server: NameServer, asker: Asker) -> None:
    server.set_fault('delay=1.5@example.com.')
    late: list[float] = []

    def ask(tcp: bool) -> None:
        started = time.monotonic()
        asker.query(NAME, tcp=tcp)
        late.append(time.monotonic() - started)

    threads = [threading.Thread(target=ask, args=(tcp,)) for tcp in (False, True)]
    for thread in threads:
        thread.start()
    assert rcode(asker, 'example.net.') == 'REFUSED'
    assert late == []
    for thread in threads:
        thread.join()
    assert len(late) == 2 and min(late) >= 1.5


@pytest.mark.parametrize('kind', ['servfail', 'refused'])
def test_error_codes_by_server_and_by_zone(server: NameServer, asker: Asker, kind: str) -> None:
    for fault in (f'{kind}*2', f'{kind}*2@{NAME}'):
        server.set_fault(fault)
        assert [rcode(asker) for _ in range(3)] == [kind.upper()] * 2 + ['NOERROR']
    server.set_fault(f'{kind}@example.net.')
    assert rcode(asker) == 'NOERROR'


def test_stale_goes_on_with_the_old_serial_and_catches_up(server: NameServer, asker: Asker, primary: Primary) -> None:
    server.set_fault(f'stale@{NAME}')
    primary.publish(NAME, zone_text(2))
    primary.publish('example.net.', zone_text(1))
    assert asker.notify(NAME, 2).rcode() == dns.rcode.NOERROR
    server.add_zone('example.net.', [primary.endpoint])
    wait_until(lambda: asker.serial('example.net.') == 1, 'another zone is fetched')
    assert asker.serial(NAME) == 1
    server.clear_faults()
    wait_until(lambda: asker.serial(NAME) == 2, 'it has caught up')


def test_altered_serves_the_right_serial_with_other_contents(server: NameServer, asker: Asker) -> None:
    server.set_fault('altered')
    assert asker.serial(NAME) == 1
    assert asker.texts('www.example.com.', 'A') == ['192.0.2.254']
    assert fetched(asker) == {'SOA': 1, 'NS': 1, 'A': 1, 'TXT': 1}
    server.clear_faults()
    assert asker.texts('www.example.com.', 'A') == ['192.0.2.1']


def test_broken_keeps_the_old_zone_and_says_why(server: NameServer, asker: Asker, primary: Primary) -> None:
    server.set_fault('broken')
    primary.publish(NAME, zone_text(2, 'www A 192.0.2.2'))
    asker.notify(NAME, 2)
    wait_until(lambda: 'broke off' in str(server.list_zones()[0]['error']), 'the transfer broke off')
    assert asker.serial(NAME) == 1
    assert asker.texts('www.example.com.', 'A') == ['192.0.2.1']
    server.clear_faults()
    wait_until(lambda: asker.serial(NAME) == 2, 'it has caught up')


# Coming and going

def test_started_again_with_its_zones(name_server: Callable[..., NameServer], primary: Primary,
                                      tmp_path: pathlib.Path) -> None:
    primary.publish(NAME, zone_text(1, 'www A 192.0.2.1'))
    primary.publish('a\\.b.example.net.', zone_text(5))
    server = name_server(state=tmp_path / 'state')
    asker = Asker(server)
    for name in (NAME, 'a\\.b.example.net.', 'gone.example.net.'):
        server.add_zone(name, [primary.endpoint])
    wait_until(lambda: asker.serial(NAME) == 1 and asker.serial('a\\.b.example.net.') == 5, 'the zones are there')
    server.delete_zone('gone.example.net.')
    server.stop()
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / 'state').iterdir()} == {0o600}
    primary.publish(NAME, zone_text(2, 'www A 192.0.2.2'))
    server.start()
    wait_until(lambda: asker.texts('www.example.com.', 'A') == ['192.0.2.2'], 'it has caught up')
    server.stop()
    primary.stop()
    server.start()
    assert asker.texts('www.example.com.', 'A') == ['192.0.2.2']
    assert asker.serial('a\\.b.example.net.') == 5
    assert rcode(asker, 'gone.example.net.') == 'REFUSED'


def test_damaged_files_cost_their_own_zone_only(name_server: Callable[..., NameServer], primary: Primary,
                                                tmp_path: pathlib.Path) -> None:
    names = NAME, 'example.net.', 'example.org.'
    server = name_server(state=tmp_path)
    asker = Asker(server)
    for name in names:
        primary.publish(name, zone_text(1))
        server.add_zone(name, [primary.endpoint])
    wait_until(lambda: all(asker.serial(name) == 1 for name in names), 'the zones are there')
    server.stop()
    primary.stop()
    files = {json.loads(path.read_text())['name']: path for path in tmp_path.iterdir()}
    files[NAME].write_text('{')
    files['example.net.'].write_text(files['example.net.'].read_text().replace('SOA', 'SOA SOA'))
    server.start()
    assert [rcode(asker, name) for name in names] == ['REFUSED', 'REFUSED', 'NOERROR']


def test_stops_soon_while_a_primary_keeps_it_waiting(name_server: Callable[..., NameServer]) -> None:
    with socket.create_server(('127.0.0.1', 0), backlog=64) as silent_primary:
        server = name_server()
        for number in range(40):
            server.add_zone(f'zone{number}.example.', [Endpoint('127.0.0.1', silent_primary.getsockname()[1])])
        started = time.monotonic()
        server.stop()
        assert time.monotonic() - started < 4


def test_no_thread_is_left(primary: Primary) -> None:
    before = set(threading.enumerate())
    server = NameServer(Endpoint('127.0.0.1', 0), Endpoint('127.0.0.1', 0), 'secret').start()
    server.add_zone(NAME, [primary.endpoint])
    with socket.create_connection((server.endpoint.host, server.endpoint.port), 1):
        server.stop()
    ours = {thread for thread in threading.enumerate() if not thread.name.startswith('dns-tcp')}
    assert ours <= before
