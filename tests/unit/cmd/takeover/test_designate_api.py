"""What Designate's API is told with each request."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from designate_pool.cmd.takeover.designate_api import CallRefused, DesignateApi

HEADER = 'X-Designate-Delete-Shares'


@pytest.fixture
def designate() -> Iterator[str]:
    """Answers as Designate does when a shared zone is deleted; its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_DELETE(self) -> None:
            self.send_response(202 if self.headers.get(HEADER) == 'true' else 400)
            self.send_header('Content-Length', '0')
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f'http://127.0.0.1:{server.server_port}'
        server.shutdown()


def test_a_shared_zone_that_was_deleted_here_can_be_deleted(designate: str) -> None:
    api = DesignateApi(designate, {'X-Auth-Token': 'secret'})
    assert api.call('DELETE', 'zones/one', None, 'alpha') is None
    api.close()
    other = DesignateApi(designate, {HEADER: 'false'})
    with pytest.raises(CallRefused, match='400'):
        other.call('DELETE', 'zones/one')
    other.close()
