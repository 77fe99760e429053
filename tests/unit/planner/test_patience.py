"""A client that is told to come again later does so, with what it had to say."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest

from designate_pool.planner.providers.pool_api import new_session


class Busy(http.server.BaseHTTPRequestHandler):
    """Refuses the first two requests."""

    bodies: list[bytes] = []

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers['Content-Length'])))
        self.send_response(429 if len(self.bodies) < 3 else 202)
        self.send_header('Retry-After', '0')
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    Busy.bodies = []
    with http.server.HTTPServer(('127.0.0.1', 0), Busy) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f'http://127.0.0.1:{server.server_port}'
        server.shutdown()
        thread.join()


def test_too_many_requests_are_made_again(url: str) -> None:
    assert new_session(url).post(f'{url}/v2/zones', json={'name': 'example.com.'}, timeout=30).status_code == 202
    assert Busy.bodies == [b'{"name": "example.com."}'] * 3
