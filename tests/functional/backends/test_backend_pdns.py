"""The pdns driver against real PowerDNS servers."""

from __future__ import annotations

import contextlib
import dataclasses
import http.server
import logging
import pathlib
import socket
import sqlite3
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import dns.message
import dns.name
import dns.opcode
import dns.query
import dns.rcode
import pytest

from designate_pool.backends.base import Backend
from designate_pool.model import Endpoint, Reason, Server, TsigKey
from designate_pool.testing import NOWHERE, ODD_NAMES, KeyedContract, RemoteContract, a_domain, opened
from testing.pdns import PowerDns
from testing.processes import binary, wait_until
from tests.fixtures.nameservers import Primary, zone_text
from tests.fixtures.rigs import KEY, PdnsApiRig, example_servers

Start = Callable[..., PowerDns]

#: The API takes names of letters, digits, hyphens, underscores and slashes only.
UNSUPPORTED = [ODD_NAMES[what] for what in (
    '63 octets of escapes', 'escaped dot', 'quotation mark', 'end of a statement', 'backslash', 'trailing backslash',
    'newline', 'null octet', 'high octet', 'slashes', 'at sign')] + ['a\\.b.example.com.']


class PdnsRig(PdnsApiRig):
    refused = dict.fromkeys(UNSUPPORTED, 'contains unsupported characters')


@pytest.fixture
def rig(powerdns: Start) -> PdnsRig:
    return PdnsRig(powerdns())


class TestContract(RemoteContract, KeyedContract):
    pass


def holding(server: PowerDns, name: str = 'example.com.') -> tuple[str, str]:
    """Kind and primaries of a zone that the server has."""
    return server.zones()[dns.name.from_text(name)]


def by_hand(server: PowerDns, statement: str, *values: str) -> None:
    """Change the server's database without the driver."""
    with contextlib.closing(sqlite3.connect(server.database, timeout=10)) as database, database:
        database.execute(statement, values)


def wait_for(server: PowerDns, backend: Backend, serial: int, seconds: float = 30) -> None:
    """Create the zone until its contents are served: PowerDNS drops a retrieval while another one of the zone ends."""
    wait_until(lambda: backend.create_domain(a_domain()).ok and server.serial('example.com.') == serial,
               f'serial {serial} is served', seconds)


def test_a_zone_that_was_asked_for_before_it_was_there_is_served_at_once(powerdns: Start, primary: Primary) -> None:
    """PowerDNS's caches, left at their defaults, hide neither a new zone nor a change nor a deletion made by itself."""
    primary.publish('example.com.', zone_text(1))
    server = powerdns()
    with opened(server.server([primary.endpoint])) as backend:
        for serial in range(1, 4):
            assert server.query('example.com.').rcode() == dns.rcode.REFUSED
            wait_for(server, backend, serial, 5)
            primary.publish('example.com.', zone_text(serial + 1))
            wait_for(server, backend, serial + 1, 5)
            assert backend.delete_domain(a_domain()).ok


def test_a_key_that_the_server_does_not_know_is_permanent_until_it_is_made(
        powerdns: Start, keyed_primary: Primary) -> None:
    keyed_primary.publish('example.com.', zone_text(7))
    server = powerdns()
    with opened(server.server([keyed_primary.endpoint], tsig_key=KEY)) as backend:
        for _ in range(2):  # PowerDNS has made the zone, without the key, when it is asked the second time
            result = backend.create_domain(a_domain())
            assert "TSIG key with the name 'transfer.example' does not exist" in str(result.error)
            assert not result.retryable
        findings = backend.check()
        assert [finding.advice for finding in findings] == [
            'on its host: pdnsutil import-tsig-key transfer.example hmac-sha256 SECRET']
        server.keys.append(KEY)
        server.restart()
        assert backend.create_domain(a_domain()).ok
        wait_until(lambda: server.serial('example.com.') == 7, 'the contents are served')
        assert backend.check() == []


def test_create_again_gives_other_primaries_and_another_key(
        powerdns: Start, primary: Primary, keyed_primary: Primary) -> None:
    primary.publish('example.com.', zone_text(1))
    keyed_primary.publish('example.com.', zone_text(9))
    server = powerdns(keys=[KEY])
    with opened(server.server([Endpoint('127.0.0.2', 53), Endpoint('::1', 53)])) as backend:
        assert backend.create_domain(a_domain()).ok
        assert holding(server) == ('SLAVE', '127.0.0.2, ::1')
    with_key = keyed_primary.endpoint, KEY, 9
    for endpoint, key, serial in (with_key, (primary.endpoint, None, 1), with_key):
        with opened(server.server([endpoint], tsig_key=key)) as backend:
            wait_for(server, backend, serial)
        assert holding(server) == ('SLAVE', str(endpoint))


@pytest.mark.parametrize('primaries', [
    [Endpoint('127.0.0.1', 53), Endpoint('127.0.0.1', 9)],
    [Endpoint('::1', 53), Endpoint('::1', 9), Endpoint('127.0.0.2', 53)]])
def test_create_again_with_the_same_settings_changes_nothing(
        powerdns: Start, primaries: list[Endpoint], monkeypatch: pytest.MonkeyPatch) -> None:
    server = powerdns(keys=[KEY])
    with opened(server.server(primaries, tsig_key=KEY)) as backend:
        assert backend.create_domain(a_domain()).ok
        before = holding(server)
        asked: list[tuple[str, str]] = []
        api = backend._api  # type: ignore[attr-defined]
        ask = api.ask
        monkeypatch.setattr(api, 'ask', lambda verb, path, *rest: asked.append((verb, path)) or ask(verb, path, *rest))
        assert backend.create_domain(a_domain()).ok
    assert holding(server) == before
    assert asked == [('POST', '/zones?rrsets=false'), ('GET', '/zones/example.com.?rrsets=false'),
                     ('GET', '/zones/example.com./metadata/IXFR'), ('PUT', '/zones/example.com./axfr-retrieve')]


def test_retrieval_that_fails_does_not_fail_the_create(powerdns: Start, monkeypatch: pytest.MonkeyPatch,
                                                       caplog: pytest.LogCaptureFixture) -> None:
    server = powerdns()
    with opened(server.server([NOWHERE])) as backend:
        api = backend._api  # type: ignore[attr-defined]
        ask = api.ask

        def ask_but_stop_the_server_first(verb: str, path: str, *rest: Any) -> Any:
            if path.endswith('/axfr-retrieve'):
                server.kill()
            return ask(verb, path, *rest)

        monkeypatch.setattr(api, 'ask', ask_but_stop_the_server_first)
        with caplog.at_level(logging.DEBUG):
            assert backend.create_domain(a_domain()).ok
    assert holding(server) == ('SLAVE', str(NOWHERE))
    said = [record.levelname for record in caplog.records if 'retrieve example.com.' in record.getMessage()]
    assert said == ['DEBUG']


def test_list_tells_what_is_served(powerdns: Start, primary: Primary) -> None:
    serials = {'zero.example.': 0, 'largest.example.': 4294967295, '0/26.2.0.192.in-addr.arpa.': 7}
    for name, serial in serials.items():
        primary.publish(name, zone_text(serial))
    server = powerdns()
    by_hand(server, "INSERT INTO domains (name, type) VALUES (?, 'SLAVE')", 'a"b.by\\.hand.example')
    expected = serials | {'empty.example.': None, 'a\\"b.by\\.hand.example.': None}
    with opened(server.server([primary.endpoint])) as backend:
        for name in [*serials, 'empty.example.']:
            assert backend.create_domain(a_domain(name)).ok
        wait_until(lambda: backend.list_zones([]).serials == expected, 'the list has the serials')
        assert backend.list_zones([]).complete


def test_zones_that_were_made_by_hand_are_deleted_whatever_their_names(powerdns: Start) -> None:
    server = powerdns()
    pdnsutil = [binary('pdnsutil'), f'--config-dir={server.folder}', 'create-secondary-zone']
    with opened(server.server([NOWHERE])) as backend:
        for name in UNSUPPORTED:
            subprocess.run([*pdnsutil, name, '127.0.0.1'], check=True, capture_output=True)
            assert list(server.zones()) == [dns.name.from_text(name)]
            assert backend.list_zones([]).serials == {dns.name.from_text(name).to_text().lower(): None}
            assert backend.delete_domain(a_domain(name)).ok
            assert server.zones() == {}


def test_another_server_id_is_permanent_for_create_and_for_delete(powerdns: Start) -> None:
    server = powerdns().server([NOWHERE])
    options = {**server.options, 'server_id': 'elsewhere'}
    with opened(dataclasses.replace(server, options=options)) as backend:
        assert "no API for a server 'elsewhere'" in backend.check()[0].what
        for result in (backend.create_domain(a_domain()), backend.delete_domain(a_domain()), backend.ping()):
            assert "no API for a server 'elsewhere'" in str(result.error)
            assert not result.retryable


def test_trouble_inside_the_server_is_tried_again(powerdns: Start) -> None:
    server = powerdns()
    by_hand(server, 'ALTER TABLE domains RENAME TO hidden')
    with opened(server.server([NOWHERE])) as backend:
        result = backend.create_domain(a_domain())
        assert result.error == 'create example.com.: Internal Server Error (500)'
        assert result.retryable and not result.unreachable
        by_hand(server, 'ALTER TABLE hidden RENAME TO domains')
        assert backend.create_domain(a_domain()).ok


@pytest.mark.parametrize(('settings', 'what', 'advice'), [
    ({'secondary': 'no'}, 'secondary=no: PowerDNS transfers no zones', 'set secondary=yes and restart PowerDNS'),
    ({'allow-unsigned-notify': 'no'}, 'allow-unsigned-notify=no, and the section has no tsig_key', 'give the section'),
    ({'allow-notify-from': '192.0.2.0/24, ::/0'}, 'allow-notify-from does not have 127.0.0.1', 'add 127.0.0.1 to'),
])
def test_check_finds_a_setting(powerdns: Start, settings: dict[str, str], what: str, advice: str) -> None:
    server = powerdns(settings=settings)
    with opened(server.server([NOWHERE])) as backend:
        [finding] = backend.check()
        assert backend.create_domain(a_domain()).ok
    assert what in finding.what
    assert advice in finding.advice
    assert finding.serious
    assert server.notify('example.com.').rcode() == dns.rcode.REFUSED


@pytest.mark.parametrize(('settings', 'what', 'serious'), [
    ({}, 'ixfr = true and gsqlite3-dnssec=yes: PowerDNS does not answer for records that came by IXFR', True),
    ({'gsqlite3-dnssec': 'no'}, 'ixfr = true: PowerDNS answers NXDOMAIN for a name without records', False),
])
def test_check_finds_that_changes_alone_are_fetched(powerdns: Start, settings: dict[str, str], what: str,
                                                    serious: bool) -> None:
    server = powerdns(settings=settings)
    with opened(server.server([NOWHERE], ixfr=True)) as backend:
        [finding] = backend.check()
    assert what in finding.what and 'set ixfr = false' in finding.advice
    assert finding.serious == serious


def command(server: PowerDns, *arguments: str) -> None:
    """What an operator does with ``pdnsutil``."""
    subprocess.run([binary('pdnsutil'), f'--config-dir={server.folder}', *arguments], check=True, capture_output=True)


def test_a_zone_with_keys_is_neither_deleted_nor_made_anew(powerdns: Start, primary: Primary) -> None:
    server = powerdns()
    primary.publish('example.com.', zone_text(4))
    with opened(server.server([primary.endpoint], signs_zones=True)) as backend:
        assert backend.create_domain(a_domain()).ok
        wait_until(lambda: server.serial('example.com.') == 4, 'the contents are served')
        command(server, 'secure-zone', 'example.com')
        keys = wait_until(lambda: server.query('example.com.', 'DNSKEY').answer, 'it signs')
        assert backend.create_domain(a_domain()).ok and backend.refetch_domains([a_domain()])[0].ok
        result = backend.delete_domain(a_domain())
        assert result.retryable and result.reason is Reason.CONFLICT
        assert 'example.com. has DNSSEC keys there, which are deleted with the zone' in str(result.error)
        assert server.query('example.com.', 'DNSKEY').answer == keys and server.serial('example.com.') == 4
        command(server, 'disable-dnssec', 'example.com')
        assert backend.delete_domain(a_domain()).ok
    assert server.zones() == {}


def test_check_finds_that_zones_are_signed(powerdns: Start, primary: Primary) -> None:
    server = powerdns()
    primary.publish('example.com.', zone_text(4))
    with opened(server.server([primary.endpoint])) as backend, \
            opened(server.server([primary.endpoint], signs_zones=True)) as signing:
        assert backend.create_domain(a_domain()).ok
        wait_until(lambda: server.serial('example.com.') == 4, 'the contents are served')
        assert backend.check() == signing.check() == []
        command(server, 'secure-zone', 'example.com')
        [finding] = backend.check()
        assert finding.what == 'PowerDNS signs zones with keys of its own: example.com.' and finding.serious
        assert 'set signs_zones = true in the section of each server' in finding.advice
        assert signing.check() == []
        command(server, 'set-meta', 'example.com', 'SOA-EDIT', 'INCEPTION-INCREMENT')
        [finding] = signing.check()
        assert finding.what == 'SOA-EDIT of example.com.: PowerDNS serves serials of its own for zones that it signs'


@pytest.mark.parametrize(('settings', 'options', 'what'), [
    ({'gsqlite3-dnssec': 'no'}, {}, 'gsqlite3-dnssec=no: PowerDNS answers for signed zones without their signatures'),
    ({'default-soa-edit': 'EPOCH'}, {}, 'default-soa-edit=EPOCH: PowerDNS serves serials of its own'),
    ({}, {'ixfr': True}, 'ixfr = true and signs_zones = true: PowerDNS has no NSEC records for what came by IXFR'),
])
def test_check_finds_what_breaks_zones_that_it_signs(powerdns: Start, settings: dict[str, str],
                                                     options: dict[str, bool], what: str) -> None:
    with opened(powerdns(settings=settings).server([NOWHERE], signs_zones=True, **options)) as backend:
        assert any(what in finding.what and finding.serious for finding in backend.check())


def two_servers(first: PowerDns, second: PowerDns) -> dict[str, str]:
    """What the examples say of their two servers, and what these are."""
    return {'api_url = https://ns2.example.com:8443': f'api_url = {second.api_url}',
            'host = 192.0.2.1\n': f'host = 127.0.0.1\nport = {first.port}\napi_url = {first.api_url}\n',
            'host = 198.51.100.1\n': f'host = 127.0.0.1\nport = {second.port}\n'}


def test_the_example_runs(powerdns: Start, tmp_path: pathlib.Path) -> None:
    """Both files together: a zone is created, transferred with the example's key, and deleted."""
    key = TsigKey('transfer.example.com.', 'hmac-sha256', 'bm90IGEgc2VjcmV0LCBhbiBleGFtcGxl')
    with Primary(keys=[key]) as primary:
        primary.publish('example.com.', zone_text(4))
        servers = [powerdns(name, keys=[key]) for name in ('ns1', 'ns2')]
        pairs = two_servers(*servers) | {'listen = 192.0.2.10:5354': f'listen = {primary.endpoint}'}
        for configured, server in zip(example_servers('example-pdns.conf', tmp_path, pairs), servers, strict=True):
            with opened(configured) as backend:
                assert backend.check() == []
                assert backend.create_domain(a_domain()).ok
                wait_until(lambda server=server: server.serial('example.com.') == 4, 'the contents are served')
                assert backend.delete_domain(a_domain()).ok
            assert server.zones() == {}


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """Answers everything with what its server was made for, and keeps the keys that it was shown."""

    def do_GET(self) -> None:
        self.server.keys.append(self.headers['X-API-Key'])  # type: ignore[attr-defined]
        status, headers, body = self.server.answer  # type: ignore[attr-defined]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_DELETE = do_GET

    def log_message(self, *arguments: object) -> None:
        """Keep quiet."""


@contextlib.contextmanager
def elsewhere(status: int, headers: dict[str, str], body: bytes,
              certificate: pathlib.Path | None = None) -> Iterator[http.server.ThreadingHTTPServer]:
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Elsewhere)
    server.answer = status, headers, body  # type: ignore[attr-defined]
    server.keys = []  # type: ignore[attr-defined]
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def at(url: str, call_timeout: float = 5.0, **options: Any) -> Server:
    return Server(id='1' * 32, driver='pdns', host='127.0.0.1', primaries=(NOWHERE,), call_timeout=call_timeout,
                  options={'api_url': url, 'api_key': 'only-for-us'} | options)


def test_redirect_is_not_followed_and_the_key_stays_here() -> None:
    with elsewhere(200, {}, b'{}') as other:
        target = f'http://127.0.0.1:{other.server_port}/'
        with elsewhere(301, {'Location': target}, b'') as here:
            with opened(at(f'http://127.0.0.1:{here.server_port}')) as backend:
                for result in (backend.create_domain(a_domain()), backend.delete_domain(a_domain()), backend.ping()):
                    assert 'redirects to another address (301)' in str(result.error)
                    assert not result.retryable
            assert set(here.keys) == {'only-for-us'}  # type: ignore[attr-defined]
        assert other.keys == []  # type: ignore[attr-defined]


@pytest.mark.parametrize('body', [b'<html><body>Welcome</body></html>', b'{"daemon_type": "recursor"}', b'[1]', b'7'])
def test_something_else_that_speaks_http_is_no_powerdns(body: bytes) -> None:
    with elsewhere(200, {'Content-Type': 'text/html'}, body) as other:
        with opened(at(f'http://127.0.0.1:{other.server_port}')) as backend:
            for result in (backend.ping(), backend.list_zones([]).result):
                assert 'is not the API of a PowerDNS Authoritative Server' in str(result.error)
                assert not result.retryable
            for result in (backend.create_domain(a_domain()), backend.delete_domain(a_domain())):
                assert not result.ok
                assert '<html>' not in str(result.error)


@contextlib.contextmanager
def saying(*pieces: bytes, pause: float = 0.0) -> Iterator[str]:
    """The URL of what answers one connection with *pieces*, with a *pause* before each."""
    done = threading.Event()

    def answer() -> None:
        connected, _ = listening.accept()
        with connected, contextlib.suppress(OSError):
            connected.recv(4096)
            for piece in pieces:
                if done.wait(pause):
                    return
                connected.sendall(piece)

    with socket.create_server(('127.0.0.1', 0)) as listening:
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f'http://127.0.0.1:{listening.getsockname()[1]}'
        done.set()
        thread.join()


def test_answer_that_only_drips_is_not_waited_for_beyond_the_deadline() -> None:
    with saying(*[b'H'] * 100, pause=0.1) as url, opened(at(url, call_timeout=0.5)) as backend:
        started = time.monotonic()
        result = backend.ping()
        took = time.monotonic() - started
    assert result.error == 'no answer within 0.5 s'
    assert 0.5 <= took < 8, 'all of it takes ten seconds'


def test_answer_in_chunks_is_put_together() -> None:
    head = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
    with saying(head, b'10\r\n{"daemon_type": \r\n', b'10\r\n "authoritative"\r\n', b'1\r\n}\r\n0\r\n\r\n') as url:
        with opened(at(url)) as backend:
            assert backend.ping().ok


@pytest.mark.parametrize('answer', [
    b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[]',
    b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n'])
def test_list_that_broke_off_is_no_list(answer: bytes) -> None:
    with saying(answer) as url, opened(at(url)) as backend:
        listing = backend.list_zones(['example.com.'])
    assert 'cut short' in str(listing.result.error)
    assert listing.result.retryable
    assert not listing.complete


def test_tls_with_a_certificate_that_is_trusted_and_with_one_that_is_not(tmp_path: pathlib.Path) -> None:
    certificates = [tmp_path / name for name in ('one.pem', 'other.pem')]
    for path in certificates:
        subprocess.run([binary('openssl'), 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
                        '-nodes', '-keyout', path, '-out', f'{path}.crt', '-days', '2', '-subj', '/CN=pool',
                        '-addext', 'subjectAltName=IP:127.0.0.1'], check=True, capture_output=True)
        path.write_bytes(path.read_bytes() + pathlib.Path(f'{path}.crt').read_bytes())
    ours, others = (f'{path}.crt' for path in certificates)
    with elsewhere(200, {}, b'{"daemon_type": "authoritative"}', certificates[0]) as encrypted:
        url = f'https://127.0.0.1:{encrypted.server_port}'
        with opened(at(url, ca_file=ours)) as backend:
            assert backend.ping().ok
        with opened(at(url, ca_file=others)) as backend:
            result = backend.ping()
        assert 'its certificate is not accepted: self-signed certificate' in str(result.error)
        assert result.unreachable
        with opened(at(url.replace('https', 'http'))) as backend:
            assert not backend.ping().ok
        assert encrypted.keys == ['only-for-us']  # type: ignore[attr-defined]
    with elsewhere(200, {}, b'') as plain:
        with opened(at(f'https://127.0.0.1:{plain.server_port}', ca_file=ours)) as backend:
            assert 'no TLS connection to' in str(backend.ping().error)
