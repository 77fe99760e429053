"""The pdns driver against what is no PowerDNS, or stands in front of one."""

from __future__ import annotations

import contextlib
import http.server
import pathlib
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from designate_pool.model import Server
from designate_pool.testing import NOWHERE, a_domain, opened
from testing.processes import binary


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
        assert 'its certificate is not accepted (self-signed certificate)' in str(result.error)
        assert result.unreachable
        with opened(at(url.replace('https', 'http'))) as backend:
            assert not backend.ping().ok
        assert encrypted.keys == ['only-for-us']  # type: ignore[attr-defined]
    with elsewhere(200, {}, b'') as plain:
        with opened(at(f'https://127.0.0.1:{plain.server_port}', ca_file=ours)) as backend:
            assert 'no TLS connection to' in str(backend.ping().error)
