"""TCP connections: many, slow, silent, broken off."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
from collections.abc import Iterator

import dns.message
import dns.rcode
import pytest
from prometheus_client import REGISTRY

from designate_pool.minidns.server import responder
from designate_pool.minidns.server.listener import TcpLimits
from designate_pool.minidns.service import MiniDns
from designate_pool.model import Endpoint, KeyScope, StoredTsigKey, new_id, utcnow
from designate_pool.runtime import Threads
from designate_pool.settings import MiniDnsSettings
from designate_pool.storage.zones import tsigkeys
from testing.minidns import alone
from testing.processes import wait_until
from testing.zones import insert_big_zone
from tests.functional.minidns.conftest import KEY, PLAIN, LocalMiniDns, a_pool, ask, keyring, serial_of


def dial(endpoint: Endpoint) -> socket.socket:
    return socket.create_connection((endpoint.host, endpoint.port), timeout=10)


def dial_from(endpoint: Endpoint, source: str) -> socket.socket:
    return socket.create_connection((endpoint.host, endpoint.port), timeout=10, source_address=(source, 0))


def limit_buffers(service: MiniDns, octets: int) -> None:
    """Have connections accept no more than about *octets* that nobody takes.

    What is sent grows the system's own buffers to megabytes, which take seconds to fill with transfers.
    """
    for listener in service._listener._tcp:  # connections have its buffers
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, octets)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, octets)


def framed(*messages: dns.message.Message) -> bytes:
    wires = [message.to_wire() for message in messages]
    return b''.join(len(wire).to_bytes(2, 'big') + wire for wire in wires)


def read_message(sock: socket.socket) -> dns.message.Message:
    def exactly(count: int) -> bytes:
        octets = b''
        while len(octets) < count:
            more = sock.recv(count - len(octets))
            assert more, 'the connection was closed'
            octets += more
        return octets

    return dns.message.from_wire(exactly(int.from_bytes(exactly(2), 'big')))


def closed(sock: socket.socket) -> bool:
    with contextlib.suppress(ConnectionResetError):
        return sock.recv(1) == b''
    return True


def use(sock: socket.socket, expected: int | dns.rcode.Rcode = 7) -> None:
    """Ask for the SOA: its serial, or the RCODE."""
    sock.sendall(framed(dns.message.make_query('example.com', 'SOA')))
    answer = read_message(sock)
    assert (serial_of(answer) if answer.answer else answer.rcode()) == expected


def test_many_queries_on_one_connection_are_answered_in_their_order(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start().endpoints
    queries = [dns.message.make_query('example.com.', rtype, id=number)
               for number, rtype in enumerate(['SOA', 'AXFR', 'SOA', 'A', 'SOA'])]
    octets = framed(*queries)
    with dial(endpoint) as sock:
        sock.sendall(octets[:40])  # the cut is in the midst of a query
        sock.sendall(octets[40:])
        answers = [read_message(sock) for _ in queries]
    assert [answer.id for answer in answers] == [0, 1, 2, 3, 4]
    assert [len(answer.answer) > 1 for answer in answers] == [False, True, False, False, False]


def test_no_message_waits_for_the_acknowledgement_of_the_one_before(minidns: LocalMiniDns) -> None:
    service = minidns.start()
    with dial(service.endpoints[0]) as sock:
        use(sock)
        (connection,) = service._listener._tcp_server._open
        assert connection.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_noise_on_a_connection_does_not_end_it(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start().endpoints
    with dial(endpoint) as sock:
        noise = b'\0\0' + b'\0\x03abc' + b'\0\x0c\x12\x34' + bytes(10)
        sock.sendall(noise + framed(dns.message.make_query('example.com', 'SOA')))
        assert read_message(sock).rcode() == dns.rcode.FORMERR
        assert serial_of(read_message(sock)) == 7


@pytest.mark.parametrize(('limits', 'sent'), [(TcpLimits(idle=0.1), b''), (TcpLimits(query=0.2), b'\0')],
                         ids=['silent', 'dribbling'])
def test_a_client_that_sends_no_query_is_hung_up_on(minidns: LocalMiniDns, limits: TcpLimits, sent: bytes) -> None:
    (endpoint,) = minidns.start(tcp_limits=limits).endpoints
    with dial(endpoint) as sock:
        sock.sendall(sent)
        assert closed(sock)


def test_a_client_that_takes_nothing_is_hung_up_on(minidns: LocalMiniDns) -> None:
    minidns.storage.run(insert_big_zone, 5000)
    service = minidns.start(tcp_limits=TcpLimits(send=0.2))
    limit_buffers(service, 16384)
    with dial(service.endpoints[0]) as sock:
        sock.sendall(framed(*[dns.message.make_query('example.org', 'AXFR')] * 60))
        wait_until(lambda: service._listener._tcp_server._open, 'it is served')
        wait_until(lambda: not service._listener._tcp_server._open, 'it is hung up on')


def test_an_error_amid_the_messages_is_a_failed_transfer_and_names_the_zone(
        minidns: LocalMiniDns, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def break_off(*arguments: object) -> Iterator[bytes]:
        raise ValueError('a message is too long')

    def failed() -> float:
        return REGISTRY.get_sample_value('designate_pool_transfers_total', {
            'server': 'fake:127.0.0.1:1', 'kind': 'axfr', 'outcome': 'failed'}) or 0.0

    monkeypatch.setattr(responder, 'messages', break_off)
    before = failed()
    with dial(minidns.start().endpoints[0]) as sock:
        sock.sendall(framed(dns.message.make_query('example.com', 'AXFR')))
        assert closed(sock)
    assert failed() == before + 1
    assert [each.getMessage() for each in caplog.records if each.levelname == 'ERROR'] == [
        'the transfer of zone example.com. to 127.0.0.1 broke off: a message is too long']


def test_the_longest_idle_connection_makes_room_for_a_new_one(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start(tcp_limits=TcpLimits(2), hosts=('127.0.0.8',)).endpoints
    with dial_from(endpoint, '127.0.0.5') as other, dial(endpoint) as first:
        use(first)
        with dial_from(endpoint, '127.0.0.6') as third:
            assert closed(other)
            use(third, dns.rcode.REFUSED)


@pytest.mark.parametrize(('source', 'connections', 'expected'), [
    ('127.0.0.1', 4, 7), ('127.0.0.5', 8, dns.rcode.REFUSED)], ids=['a server', 'a stranger'])
def test_one_client_cannot_take_all_connections(minidns: LocalMiniDns, source: str, connections: int,
                                                expected: int | dns.rcode.Rcode) -> None:
    """A server's address has half of them, a stranger's a quarter; idle ones make room after a moment."""
    limits = TcpLimits(connections, first_query=60.0)
    (endpoint,) = minidns.start(tcp_limits=limits, hosts=('127.0.0.8',)).endpoints
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(dial_from(endpoint, source)) for _ in range(2)]
        for sock in socks:
            use(sock, expected)
        assert closed(stack.enter_context(dial_from(endpoint, source)))
        use(stack.enter_context(dial_from(endpoint, '127.0.0.6')), dns.rcode.REFUSED)
        for sock in socks:
            use(sock, expected)


def test_a_connection_takes_the_place_of_one_of_its_address_that_has_been_idle(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start(hosts=('127.0.0.8',), tcp_limits=TcpLimits(2, first_query=0.0)).endpoints
    with dial(endpoint) as idle, dial(endpoint) as next_one:
        assert closed(idle)
        use(next_one)


def test_servers_that_share_an_address_have_each_their_part_of_the_connections(minidns: LocalMiniDns) -> None:
    other = dataclasses.replace(PLAIN, id='d' * 32, port=2)
    (endpoint,) = minidns.start(PLAIN, other, tcp_limits=TcpLimits(4)).endpoints
    with contextlib.ExitStack() as stack:
        for sock in [stack.enter_context(dial(endpoint)) for _ in range(4)]:
            use(sock)


def test_strangers_keep_no_server_waiting(minidns: LocalMiniDns) -> None:
    """20 strangers from many addresses, who do not read what they are answered, take what strangers may have."""
    service = minidns.start(tcp_limits=TcpLimits(20), hosts=('127.0.0.8',))
    (endpoint,) = service.endpoints
    noise = framed(*[dns.message.make_query('example.com', 'SOA')] * 5000)
    with contextlib.ExitStack() as stack:
        for number in range(40):
            stranger = stack.enter_context(dial_from(endpoint, f'127.0.1.{1 + number // 4}'))
            stranger.settimeout(0.05)
            with contextlib.suppress(OSError):
                stranger.sendall(noise)
        held = service._listener._tcp_server
        wait_until(lambda: held._open, 'strangers are served')
        for _ in range(10):
            server = stack.enter_context(dial(endpoint))
            server.settimeout(2)
            use(server)
            assert sum(connection.is_stranger for connection in held._open) <= 10, 'they have half of the connections'


@pytest.mark.parametrize('rtype', ['SOA', 'AXFR'])
def test_who_shows_a_key_is_no_stranger(minidns: LocalMiniDns, rtype: str) -> None:
    service = minidns.start(tcp_limits=TcpLimits(4), hosts=('127.0.0.8',))
    with dial_from(service.endpoints[0], '127.0.0.5') as sock:
        query = dns.message.make_query('example.com', rtype)
        query.use_tsig(keyring(KEY))
        sock.sendall(framed(query))
        assert sock.recv(2)
        held = service._listener._tcp_server
        assert [connection.is_stranger for connection in held._open] == [False]
    wait_until(lambda: not held._open, 'it has gone')


def test_strangers_who_take_nothing_do_not_keep_their_places(minidns: LocalMiniDns) -> None:
    """A server that comes from an address which its section does not have is a stranger too, until it shows its key."""
    service = minidns.start(tcp_limits=TcpLimits(4), hosts=('127.0.0.8',))
    (endpoint,) = service.endpoints
    with contextlib.ExitStack() as stack:
        limit_buffers(service, 4096)
        for source in ('127.0.1.1', '127.0.1.2'):  # send queries until neither side takes anything any more
            sock = stack.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
            sock.bind((source, 0))
            sock.settimeout(1)
            sock.connect((endpoint.host, endpoint.port))
            with contextlib.suppress(OSError):
                while True:
                    sock.sendall(framed(dns.message.make_query('example.com', 'SOA')) * 5000)
        query = dns.message.make_query('example.com', 'AXFR')
        query.use_tsig(keyring(KEY))

        def is_served() -> bool:
            server = stack.enter_context(dial_from(endpoint, '127.0.0.5'))
            server.sendall(framed(query))
            return not closed(server)

        wait_until(is_served, 'a server is served')


def test_visitors_who_take_their_time_keep_no_server_waiting(minidns: LocalMiniDns) -> None:
    """A key that was given out is no server's, whatever it transfers."""
    domain_id = minidns.storage.run(insert_big_zone, 5000)
    given = dataclasses.replace(KEY, name='given.example.com.')
    key = StoredTsigKey(new_id(), given.name, given.algorithm, KeyScope.ZONE, domain_id, 1, utcnow(), utcnow())
    minidns.storage.run(tsigkeys.TSIGKEYS.write, key, {'secret': given.secret})
    service = minidns.start(tcp_limits=TcpLimits(4), hosts=('127.0.0.8',))
    limit_buffers(service, 16384)
    (endpoint,) = service.endpoints
    wait_until(lambda: service._tsig_grants.grants, 'the key is known')
    query = dns.message.make_query('example.org', 'AXFR')
    query.use_tsig(keyring(given))
    held = service._listener._tcp_server
    with contextlib.ExitStack() as stack:
        for number in range(4):
            visitor = stack.enter_context(dial_from(endpoint, f'127.0.1.{1 + number}'))
            visitor.sendall(framed(query) * 60)
            if number < 2:
                assert visitor.recv(2)
        server = stack.enter_context(dial(endpoint))
        server.settimeout(2)
        use(server)
        assert sum(connection.is_stranger for connection in held._open) == 2


def test_after_stop_the_ports_are_free_again(minidns: LocalMiniDns) -> None:
    service = minidns.start()
    (endpoint,) = service.endpoints
    with dial(endpoint) as sock:
        service.stop()
        assert closed(sock)
    again = MiniDns(minidns.storage, a_pool(PLAIN), MiniDnsSettings(listen=(endpoint,)),
                    minidns.pool_manager, Threads(), **alone(Threads()))  # type: ignore[arg-type]
    again.start()
    assert serial_of(ask(endpoint)) == 7
    again.stop()
