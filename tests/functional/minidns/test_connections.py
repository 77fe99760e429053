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
from designate_pool.minidns.server.listener import ClientConnection, TcpLimits
from designate_pool.minidns.server.query_handler import QueryHandler
from designate_pool.minidns.server.responder import Transfer
from designate_pool.minidns.service import MiniDns
from designate_pool.model import Endpoint, KeyScope, StoredTsigKey, new_id, utcnow
from designate_pool.runtime import Threads
from designate_pool.settings import MiniDnsSettings
from designate_pool.storage.zones import tsigkeys
from testing.processes import wait_until
from testing.zones import EXAMPLE, insert_big_zone
from tests.functional.minidns.conftest import (KEY, PLAIN, LocalMiniDns, a_pool, ask, keyring, serial_of, transfer,
                                               zone_of)


def dial(endpoint: Endpoint) -> socket.socket:
    return socket.create_connection((endpoint.host, endpoint.port), timeout=10)


def dial_from(endpoint: Endpoint, source: str) -> socket.socket:
    return socket.create_connection((endpoint.host, endpoint.port), timeout=10, source_address=(source, 0))


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


def two_who_take_nothing(service: MiniDns, stack: contextlib.ExitStack) -> None:
    """Connections from two strangers' addresses that send queries until neither side takes anything any more."""
    for listener in service._listener._tcp:  # connections have its buffers: small ones are full at once
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    noise = framed(dns.message.make_query('example.com', 'SOA')) * 5000
    for source in ('127.0.1.1', '127.0.1.2'):
        sock = stack.enter_context(socket.socket())
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
        sock.bind((source, 0))
        sock.settimeout(1)
        sock.connect((service.endpoints[0].host, service.endpoints[0].port))
        with contextlib.suppress(OSError):
            while True:
                sock.sendall(noise)


def closed(sock: socket.socket) -> bool:
    with contextlib.suppress(ConnectionResetError):
        return sock.recv(1) == b''
    return True


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


def test_noise_on_a_connection_does_not_end_it(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start().endpoints
    with dial(endpoint) as sock:
        noise = b'\0\0' + b'\0\x03abc' + b'\0\x0c\x12\x34' + bytes(10)
        sock.sendall(noise + framed(dns.message.make_query('example.com', 'SOA')))
        assert read_message(sock).rcode() == dns.rcode.FORMERR
        assert serial_of(read_message(sock)) == 7


def test_clients_that_say_or_take_nothing_block_nobody(minidns: LocalMiniDns) -> None:
    minidns.storage.run(insert_big_zone, 20000)
    (endpoint,) = minidns.start().endpoints
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(dial(endpoint))
        for _ in range(5):
            slow = stack.enter_context(dial(endpoint))
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.sendall(framed(dns.message.make_query('example.org', 'AXFR')))
        assert transfer(endpoint) == zone_of(EXAMPLE)


def test_a_client_that_is_silent_for_long_is_hung_up_on(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start(tcp_limits=TcpLimits(idle=0.1)).endpoints
    with dial(endpoint) as sock:
        assert closed(sock)


def test_a_client_that_dribbles_its_query_is_hung_up_on(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start(tcp_limits=TcpLimits(query=0.2)).endpoints
    with dial(endpoint) as sock:
        sock.sendall(b'\0')
        assert closed(sock)


def test_a_client_that_takes_nothing_is_hung_up_on(minidns: LocalMiniDns) -> None:
    minidns.storage.run(insert_big_zone, 20000)
    service = minidns.start(tcp_limits=TcpLimits(send=0.2))
    with dial(service.endpoints[0]) as sock:
        sock.sendall(framed(*[dns.message.make_query('example.org', 'AXFR')] * 60))
        wait_until(lambda: service._listener._tcp_server._open, 'it is served')
        wait_until(lambda: not service._listener._tcp_server._open, 'it is hung up on')


def count_ends() -> list[float]:
    """The transfers that have failed, and those that were aborted."""
    return [REGISTRY.get_sample_value('designate_pool_transfers_total', {
        'server': 'fake:127.0.0.1:1', 'kind': 'axfr', 'outcome': outcome}) or 0.0 for outcome in ('failed', 'aborted')]


def begin_and_lose_transfer(service: MiniDns) -> None:
    with dial(service.endpoints[0]) as sock:
        sock.sendall(framed(dns.message.make_query('example.com', 'AXFR')))
        assert closed(sock)


def test_an_error_reply_that_is_not_taken_is_one_failed_transfer(
        minidns: LocalMiniDns, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handler: QueryHandler, transfer: Transfer) -> bytes:
        return transfer.query.reply(dns.rcode.SERVFAIL, 0)

    def hang_up(connection: ClientConnection, message: bytes, timeout: float | None = None) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(QueryHandler, 'load_transfer', fail)
    monkeypatch.setattr(ClientConnection, 'send', hang_up)
    failed, aborted = count_ends()
    begin_and_lose_transfer(minidns.start())
    assert count_ends() == [failed + 1, aborted]


def test_an_error_amid_the_messages_is_a_failed_transfer_and_names_the_zone(
        minidns: LocalMiniDns, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def break_off(*arguments: object) -> Iterator[bytes]:
        raise ValueError('a message is too long')

    monkeypatch.setattr(responder, 'messages', break_off)
    failed, aborted = count_ends()
    begin_and_lose_transfer(minidns.start())
    assert count_ends() == [failed + 1, aborted]
    assert [each.getMessage() for each in caplog.records if each.levelname == 'ERROR'] == [
        'the transfer of zone example.com. to 127.0.0.1 broke off: a message is too long']


def test_the_longest_idle_connection_makes_room_for_a_new_one(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start(tcp_limits=TcpLimits(2), hosts=('127.0.0.8',)).endpoints
    with dial_from(endpoint, '127.0.0.5') as other, dial(endpoint) as first:
        first.sendall(framed(dns.message.make_query('example.com', 'SOA')))
        assert serial_of(read_message(first)) == 7
        with dial_from(endpoint, '127.0.0.6') as third:
            assert closed(other)
            third.sendall(framed(dns.message.make_query('example.com', 'SOA')))
            assert read_message(third).rcode() == dns.rcode.REFUSED


def test_one_client_cannot_take_all_connections_and_those_too_many_wait(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start(tcp_limits=TcpLimits(4), hosts=('127.0.0.8',)).endpoints
    question = framed(dns.message.make_query('example.com', 'SOA'))
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(dial(endpoint)) for _ in range(5)]
        assert closed(socks[4]), 'two are served, two wait, and no more'
        for sock in socks[:4]:
            sock.sendall(question)
        assert [serial_of(read_message(sock)) for sock in socks[:2]] == [7, 7]
        socks[2].sendall(question)
        socks[2].settimeout(0.3)
        with pytest.raises(TimeoutError):
            socks[2].recv(1)
        for done, waiting in ((0, 2), (1, 3)):
            socks[done].close()
            socks[waiting].settimeout(10)
            assert serial_of(read_message(socks[waiting])) == 7


def test_one_that_waits_takes_the_place_of_one_that_has_been_idle(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start(hosts=('127.0.0.8',), tcp_limits=TcpLimits(2, first_query=0.0)).endpoints
    with dial(endpoint) as idle, dial(endpoint) as next_one:
        assert closed(idle)
        next_one.sendall(framed(dns.message.make_query('example.com', 'SOA')))
        assert serial_of(read_message(next_one)) == 7


def test_those_that_wait_are_closed_at_the_end(minidns: LocalMiniDns) -> None:
    service = minidns.start(tcp_limits=TcpLimits(2), hosts=('127.0.0.8',))
    with dial(service.endpoints[0]) as served, dial(service.endpoints[0]) as waiting:
        wait_until(lambda: service._listener._tcp_server._waiting, 'it waits')
        service.stop()
        assert closed(served) and closed(waiting)


def test_servers_that_share_an_address_have_each_their_part_of_the_connections(minidns: LocalMiniDns) -> None:
    other = dataclasses.replace(PLAIN, id='d' * 32, port=2)
    (endpoint,) = minidns.start(PLAIN, other, tcp_limits=TcpLimits(4)).endpoints
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(dial(endpoint)) for _ in range(4)]
        for sock in socks:
            sock.sendall(framed(dns.message.make_query('example.com', 'SOA')))
        assert [serial_of(read_message(sock)) for sock in socks] == [7, 7, 7, 7]


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
        wait_until(lambda: held._stranger_count == 10, 'strangers have half of the connections')
        for _ in range(10):
            server = stack.enter_context(dial(endpoint))
            server.sendall(framed(dns.message.make_query('example.com', 'SOA')))
            server.settimeout(2)
            assert serial_of(read_message(server)) == 7


def test_as_many_strangers_wait_as_are_served_and_no_more(minidns: LocalMiniDns) -> None:
    service = minidns.start(hosts=('127.0.0.8',), tcp_limits=TcpLimits(4, stranger_send=30))
    (endpoint,) = service.endpoints
    with contextlib.ExitStack() as stack:
        two_who_take_nothing(service, stack)
        waiting = [stack.enter_context(dial_from(endpoint, f'127.0.2.{1 + number}')) for number in range(2)]
        assert closed(stack.enter_context(dial_from(endpoint, '127.0.2.3')))
        for sock in waiting:
            sock.settimeout(0.1)
            with pytest.raises(TimeoutError):
                sock.recv(1)


def test_one_stranger_leaves_room_for_others(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start(tcp_limits=TcpLimits(8), hosts=('127.0.0.8',)).endpoints
    question = framed(dns.message.make_query('example.com', 'SOA'))
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(dial_from(endpoint, '127.0.0.5')) for _ in range(4)]
        other = stack.enter_context(dial_from(endpoint, '127.0.0.6'))
        for sock in (*socks[:2], other):
            sock.sendall(question)
            assert read_message(sock).rcode() == dns.rcode.REFUSED
        socks[2].sendall(question)
        socks[2].settimeout(0.3)
        with pytest.raises(TimeoutError):
            socks[2].recv(1)


@pytest.mark.parametrize('rtype', ['SOA', 'AXFR'])
def test_who_shows_a_key_is_no_stranger(minidns: LocalMiniDns, rtype: str) -> None:
    service = minidns.start(tcp_limits=TcpLimits(4), hosts=('127.0.0.8',))
    with dial_from(service.endpoints[0], '127.0.0.5') as sock:
        query = dns.message.make_query('example.com', rtype)
        query.use_tsig(keyring(KEY))
        sock.sendall(framed(query))
        assert sock.recv(2)
        held = service._listener._tcp_server
        assert len(held._open) == 1 and held._stranger_count == 0
    wait_until(lambda: not held._open, 'it has gone')
    assert held._stranger_count == 0


def test_strangers_who_take_nothing_do_not_keep_their_places(minidns: LocalMiniDns) -> None:
    """A server that comes from an address which its section does not have is a stranger too, until it shows its key."""
    service = minidns.start(tcp_limits=TcpLimits(4), hosts=('127.0.0.8',))
    (endpoint,) = service.endpoints
    with contextlib.ExitStack() as stack:
        two_who_take_nothing(service, stack)
        server = stack.enter_context(dial_from(endpoint, '127.0.0.5'))
        query = dns.message.make_query('example.com', 'AXFR')
        query.use_tsig(keyring(KEY))
        server.sendall(framed(query))
        assert server.recv(2)


def test_visitors_who_take_their_time_keep_no_server_waiting(minidns: LocalMiniDns) -> None:
    """A key that was given out is no server's, whatever it transfers."""
    domain_id = minidns.storage.run(insert_big_zone, 20000)
    given = dataclasses.replace(KEY, name='given.example.com.')
    key = StoredTsigKey(new_id(), given.name, given.algorithm, KeyScope.ZONE, domain_id, 1, utcnow(), utcnow())
    minidns.storage.run(tsigkeys.TSIGKEYS.insert, key, {'secret': given.secret})
    service = minidns.start(tcp_limits=TcpLimits(4), hosts=('127.0.0.8',))
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
        server.sendall(framed(dns.message.make_query('example.com', 'SOA')))
        server.settimeout(2)
        assert serial_of(read_message(server)) == 7
        assert held._stranger_count == 2


def test_a_port_that_is_taken_shows_at_start(minidns: LocalMiniDns) -> None:
    taken = minidns.start().endpoints[0]
    service = MiniDns(minidns.storage, a_pool(), MiniDnsSettings(listen=(Endpoint('127.0.0.1', 0), taken)),
                      minidns.pool_manager, Threads())  # type: ignore[arg-type]
    with pytest.raises(OSError):
        service.start()


def test_after_stop_the_ports_are_free_again(minidns: LocalMiniDns) -> None:
    service = minidns.start()
    (endpoint,) = service.endpoints
    with dial(endpoint) as sock:
        service.stop()
        assert closed(sock)
    again = MiniDns(minidns.storage, a_pool(PLAIN), MiniDnsSettings(listen=(endpoint,)),
                    minidns.pool_manager, Threads())  # type: ignore[arg-type]
    again.start()
    assert serial_of(ask(endpoint)) == 7
    again.stop()
