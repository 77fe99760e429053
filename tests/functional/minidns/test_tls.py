"""Transfers over TLS (RFC 9103), by our own client; BIND and NSD have theirs in ``pools/test_transfers_over_tls``."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator

import dns.message
import dns.query
import dns.rcode
import dns.rrset
import pytest

from designate_pool.cmd.compose.services import tls_context
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendUnreachable, BadConfiguration
from designate_pool.minidns.server.listener import TcpLimits
from designate_pool.minidns.service import MiniDns
from designate_pool.model import Endpoint
from designate_pool.protocol import tls
from designate_pool.protocol.axfr_inbound import Pace, TransferRefused, take
from designate_pool.protocol.soa_exchange import serial_in, soa_question
from designate_pool.protocol.tcp_client import TcpPeer
from designate_pool.settings import MiniDnsSettings
from testing.certificates import Authority, Pair
from testing.processes import wait_until
from tests.functional.minidns.conftest import PLAIN, LocalMiniDns

NAME = 'minidns.example.com'


@pytest.fixture(scope='module')
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp('authority'))


@pytest.fixture(scope='module')
def pair(authority: Authority) -> Pair:
    return authority.sign(NAME)


def settings(pair: Pair, **options: object) -> MiniDnsSettings:
    return MiniDnsSettings(listen_tls=(Endpoint('127.0.0.1', 0),), tls_certificate=pair.certificate, tls_key=pair.key,
                           **options)  # type: ignore[arg-type]


def peer_of(minidns: MiniDns, context: ssl.SSLContext, name: str = NAME) -> TcpPeer:
    where, = minidns.tls_endpoints
    return TcpPeer(where.host, where.port, None, context, name)


def serial_over(peer: TcpPeer) -> int | None:
    return serial_in(peer.ask(soa_question('example.com.'), 5), 'example.com.')


@pytest.fixture
def served(minidns: LocalMiniDns, pair: Pair) -> MiniDns:
    return minidns.start(PLAIN, settings=settings(pair))


def test_a_zone_is_transferred_and_several_queries_share_a_connection(served: MiniDns, authority: Authority) -> None:
    peer = peer_of(served, tls.client_context(authority.pair.certificate))
    zone = take(peer, 'example.com.', 5, Pace(0), 1000, 1 << 20)
    assert zone.whole and zone.contents.added > 3
    pairs = list(peer.ask_each([soa_question('example.com.') for _ in range(50)], 5))
    assert {serial_in(answer, 'example.com.') for _, answer in pairs} == {zone.serial} and len(pairs) == 50


def test_any_certificate_will_do_to_who_asks_for_none(served: MiniDns) -> None:
    assert serial_over(peer_of(served, tls.client_context(is_strict=False)))


@pytest.mark.parametrize(('name', 'is_known', 'why'), [
    ('other.example.com', True, 'its certificate is not accepted: Hostname mismatch'),
    (NAME, False, 'its certificate is not accepted')], ids=['other name', 'other authority'])
def test_who_proves_nothing_is_not_asked(served: MiniDns, authority: Authority, tmp_path: pathlib.Path, name: str,
                                         is_known: bool, why: str) -> None:
    ca = authority if is_known else Authority(tmp_path)
    with pytest.raises(BackendUnreachable, match=why):
        serial_over(peer_of(served, tls.client_context(ca.pair.certificate), name))


def test_a_server_that_has_not_chosen_the_alpn_token_is_not_asked(served: MiniDns, authority: Authority) -> None:
    context = ssl.create_default_context(cafile=authority.pair.certificate)
    with pytest.raises(BackendUnreachable, match='has not chosen the ALPN token "dot"'):
        serial_over(peer_of(served, context))


def test_tls_before_1_3_is_refused(served: MiniDns) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(BackendUnreachable, match='tlsv1 alert protocol version'):
        serial_over(peer_of(served, context))


def test_clients_without_a_certificate_of_the_authority_are_refused(
        minidns: LocalMiniDns, authority: Authority, pair: Pair, tmp_path: pathlib.Path) -> None:
    served = minidns.start(PLAIN, settings=settings(pair, tls_client_ca=authority.pair.certificate))
    for client, is_taken in ((authority.sign('ns1.example.com'), True), (None, False),
                             (Authority(tmp_path).sign('ns1.example.com'), False)):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(authority.pair.certificate)
        context.set_alpn_protocols(['dot'])
        if client is not None:
            context.load_cert_chain(*client)
        with contextlib.nullcontext() if is_taken else pytest.raises(BackendUnreachable):
            assert serial_over(peer_of(served, context))


def test_silent_clients_hold_up_nobody_and_are_gone_soon(minidns: LocalMiniDns, pair: Pair) -> None:
    served = minidns.start(PLAIN, settings=settings(pair), tcp_limits=TcpLimits(handshake=0.3))
    where, = served.tls_endpoints
    with contextlib.ExitStack() as ends:
        silent = [ends.enter_context(socket.create_connection((where.host, where.port))) for _ in range(20)]
        assert serial_over(peer_of(served, tls.client_context(is_strict=False)))
        for sock in silent:
            sock.settimeout(10)
            assert sock.recv(100) == b''


def test_one_record_octet_by_octet_takes_no_longer_than_its_limit(pair: Pair) -> None:
    one, two = socket.socketpair()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = tls.client_context(is_strict=False).wrap_bio(incoming, outgoing)
    server = tls.TlsStream(one, tls.server_context(*pair), is_server=True)
    with one, two:
        thread = threading.Thread(target=server.handshake, args=[Deadline(20)])
        thread.start()
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                two.sendall(outgoing.read())
                incoming.write(two.recv(65536))
        two.sendall(outgoing.read())
        thread.join(20)
        client.write(b'x' * 1000)
        stop = threading.Event()

        def drip() -> None:
            for octet in outgoing.read()[:-1]:
                if stop.wait(0.02):
                    break
                two.sendall(bytes((octet,)))

        dripping = threading.Thread(target=drip)
        dripping.start()
        server.settimeout(0.3)
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            server.recv(65536)
        stop.set()
        dripping.join(20)
        assert time.monotonic() - begun < 15  # 1,000 octets take 20 s


def test_a_key_that_is_encrypted_is_named_and_nobody_is_asked(tmp_path: pathlib.Path, pair: Pair) -> None:
    encrypted = tmp_path / 'key'
    subprocess.run(['openssl', 'ec', '-in', pair.key, '-aes256', '-passout', 'pass:secret', '-out', str(encrypted)],
                   check=True, capture_output=True)
    with pytest.raises(BadConfiguration, match='the key is encrypted'):
        tls_context(settings(Pair(pair.certificate, str(encrypted))))


def test_octets_that_are_no_tls_end_the_connection_alone(served: MiniDns) -> None:
    where, = served.tls_endpoints
    with socket.create_connection((where.host, where.port)) as sock:
        sock.sendall(b'\0\x1d' + dns.message.make_query('example.com.', 'SOA').to_wire())
        sock.settimeout(10)
        assert sock.recv(100) == b''
    assert serial_over(peer_of(served, tls.client_context(is_strict=False)))


def test_where_tls_is_required_a_plain_transfer_is_refused_and_an_soa_query_answered(
        minidns: LocalMiniDns, authority: Authority, pair: Pair) -> None:
    served = minidns.start(PLAIN, settings=settings(pair, require_tls=True))
    plain, = served.endpoints
    with pytest.raises(TransferRefused, match='REFUSED'):
        take(TcpPeer(plain.host, plain.port), 'example.com.', 5, Pace(0), 1000, 1 << 20)
    ixfr = dns.message.make_query('example.com.', 'IXFR')
    ixfr.authority.append(dns.rrset.from_text('example.com.', 0, 'IN', 'SOA', '. . 1 0 0 0 0'))
    assert dns.query.udp(ixfr, plain.host, 5, plain.port).rcode() == dns.rcode.REFUSED
    assert serial_over(TcpPeer(plain.host, plain.port))
    assert take(peer_of(served, tls.client_context(authority.pair.certificate)), 'example.com.', 5, Pace(0), 1000,
                1 << 20).whole


@pytest.fixture
def files(tmp_path: pathlib.Path, pair: Pair) -> Iterator[Pair]:
    """Copies of the pair, to be replaced."""
    copies = Pair(str(tmp_path / 'certificate'), str(tmp_path / 'key'))
    put(copies, pair)
    yield copies


def put(files: Pair, pair: Pair, only: int | None = None) -> None:
    for number, (new, source) in enumerate(zip(files, pair)):
        if only in (None, number):
            pathlib.Path(f'{new}.new').write_bytes(pathlib.Path(source).read_bytes())
            pathlib.Path(f'{new}.new').replace(new)


def test_a_new_certificate_is_used_without_a_restart_and_a_wrong_pair_is_not(
        minidns: LocalMiniDns, authority: Authority, tmp_path: pathlib.Path, files: Pair,
        caplog: pytest.LogCaptureFixture) -> None:
    served = minidns.start(PLAIN, settings=settings(files))
    peer = peer_of(served, tls.client_context(authority.pair.certificate))
    newer = authority.sign('second.example.com')
    assert serial_over(peer)
    put(files, newer, only=0)  # the certificate, but not yet its key
    wait_until(lambda: serial_over(peer) and 'the new certificate of MiniDNS is not used' in caplog.text,
               'the pair that does not match is noticed')
    assert serial_over(peer)
    put(files, newer)

    def is_new() -> bool:
        try:
            return bool(serial_over(peer_of(served, tls.client_context(authority.pair.certificate),
                                            'second.example.com')))
        except BackendUnreachable:
            return False

    wait_until(is_new, 'the new certificate is shown')


def test_files_that_are_wrong_at_the_start_are_named(pair: Pair, authority: Authority, tmp_path: pathlib.Path) -> None:
    other = authority.sign(NAME, 'other')
    for wrong, why in ((Pair(pair.certificate, other.key), 'key values mismatch'),
                       (Pair(str(tmp_path / 'none'), pair.key), 'No such file or directory')):
        with pytest.raises(BadConfiguration, match=f'tls_certificate.*{why}'):
            tls_context(settings(wrong))


@pytest.mark.parametrize('octets', [1, 1 << 20])
def test_a_stream_carries_what_is_sent(pair: Pair, authority: Authority, octets: int) -> None:
    plain, two = socket.socketpair()
    at_once: list[int] = []

    class Watched(socket.socket):
        def recv(self, size: int, flags: int = 0, /) -> bytes:
            octets = super().recv(size, flags)
            at_once.append(len(octets))
            return octets

    with Watched(fileno=plain.detach()) as one, two:
        server = tls.TlsStream(one, tls.server_context(*pair), is_server=True)
        client = tls.TlsStream(two, tls.client_context(authority.pair.certificate), NAME)
        received = bytearray()

        def take_all() -> None:
            server.handshake(Deadline(10))
            while chunk := server.recv(65536):
                received.extend(chunk)

        thread = threading.Thread(target=take_all)
        thread.start()
        client.handshake(Deadline(10))
        client.sendall(b'x' * octets)
        client.shutdown(socket.SHUT_WR)
        thread.join(20)
        assert received == b'x' * octets
    assert max(at_once) <= 1 << 14, 'what is read at once may be thousands of records without data, in one turn'
