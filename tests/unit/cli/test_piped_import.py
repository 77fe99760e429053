"""Zone files on their way: from a pipe, which can be read only once, and from an API that breaks off."""

from __future__ import annotations

import http.server
import io
import os
import pathlib
import threading
from collections.abc import Iterator

import pytest

from designate_pool.api.app import create_app
from designate_pool.api.auth.middleware import AuthMiddleware, NoAuth
from designate_pool.api.auth.policy import AllowAll
from designate_pool.api.http.limits import RateLimits
from designate_pool.api.http.server import ApiServer
from designate_pool.cli.app import Shell
from designate_pool.cli.commands import zone_files
from designate_pool.model import Endpoint
from designate_pool.settings import ApiSettings
from tests.fixtures.observed_central import POOL, ObservedCentral, PoolManager

ZONE = b'$ORIGIN example.com.\n@ 60 SOA ns1.example.org. hostmaster.example.com. 1 60 60 60 60\n' \
    + b'; a comment, for a file that no buffer holds\n' * 10000


@pytest.fixture
def url(central: ObservedCentral) -> Iterator[str]:
    """Of an API that takes one request a second."""
    gate = AuthMiddleware(NoAuth(), AllowAll(), RateLimits(1, 1))
    server = ApiServer(create_app(central, POOL, pool_managers=PoolManager(), storage=central.storage,
                                  gate=gate), Endpoint('127.0.0.1', 0), ApiSettings(threads=2, waits=0))
    server.start()
    yield f'http://{server.endpoint}'
    server.stop()


def run(url: str, *words: str, stdin: bytes = b'') -> tuple[int, str, str]:
    """A command with a pipe as its standard input."""
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, 'wb') as pipe:
            pipe.write(stdin)

    writer = threading.Thread(target=write)
    writer.start()
    out, err = io.StringIO(), io.StringIO()
    with open(reading, encoding='utf-8') as pipe:
        code = Shell(stdin=pipe, stdout=out, stderr=err).run(['--url', url, *words])
        pipe.buffer.read()
    writer.join()
    return code, out.getvalue(), err.getvalue()


def test_an_import_from_a_pipe_that_comes_too_early_comes_again(url: str) -> None:
    assert run(url, 'zone', 'list')[0] == 0
    code, out, err = run(url, 'zone', 'import', '-', '--no-wait', '-f', 'value', '-c', 'message', stdin=ZONE)
    assert (code, err) == (0, '')
    assert out.strip() == 'example.com. imported'


def test_a_pipe_without_end_does_not_fill_the_memory(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone_files, 'MOST_PIPED', 100_000)
    code, _, err = run(url, 'zone', 'import', '-', stdin=ZONE)
    assert code == 1
    assert 'more than 100000 bytes' in err


class BreaksOff(http.server.BaseHTTPRequestHandler):
    """Shows a zone, and sends the first line of its export."""

    def do_GET(self) -> None:
        self.send_response(200)
        is_export = self.path.endswith('/export')
        self.send_header('Content-Length', '1000' if is_export else '11')
        self.end_headers()
        self.wfile.write(ZONE[:22] if is_export else b'{"id": "a"}')

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_an_export_that_breaks_off_leaves_the_file_as_it_was(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'example.com.zone'
    path.write_bytes(ZONE)
    with http.server.HTTPServer(('127.0.0.1', 0), BreaksOff) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f'http://127.0.0.1:{server.server_port}'
        for words in ((), ('--file', str(path))):
            code, _, err = run(url, 'zone', 'export', 'f' * 32, *words)
            assert code == 1 and err.startswith('The API has not sent the whole zone (')
        server.shutdown()
    assert path.read_bytes() == ZONE and list(tmp_path.iterdir()) == [path]
