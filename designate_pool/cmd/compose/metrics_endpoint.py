"""``GET /metrics``: the process's metrics over HTTP, for Prometheus.

This server answers while the services start, work and stop, in a few threads of its own, which are green where the
process's are.  Slow and silent clients are disconnected.
"""

from __future__ import annotations

import http.server
import logging
import socket
import socketserver
import threading
from collections.abc import Sequence
from typing import Any

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import REGISTRY

from designate_pool.model import Endpoint

LOG = logging.getLogger(__name__)
#: Connections at the same time; more are closed.
CLIENTS = 8
#: Seconds of silence after which a client is disconnected.
CLIENT_TIMEOUT = 10.0


class _Handler(http.server.BaseHTTPRequestHandler):
    server_version = 'designate-pool'
    sys_version = ''
    timeout = CLIENT_TIMEOUT

    def do_GET(self) -> None:
        if self.path.partition('?')[0] != '/metrics':
            self.send_error(404, 'there is only /metrics here')
            return
        encode, kind = choose_encoder(self.headers.get('Accept') or '')
        content = encode(REGISTRY)
        self.send_response(200)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        LOG.debug('%s: %s', self.address_string(), format % arguments)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = CLIENTS

    def __init__(self, endpoint: Endpoint) -> None:
        self.address_family = socket.AF_INET6 if ':' in endpoint.host else socket.AF_INET
        self._room = threading.BoundedSemaphore(CLIENTS)
        super().__init__((endpoint.host, endpoint.port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        # The client has disconnected or was too slow.
        LOG.debug('metrics were not taken by %s', client_address[0], exc_info=True)


class MetricsEndpoint:
    """Serves the metrics at some addresses, each once.

    :raises OSError: when it cannot listen at one of them
    """

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._servers: list[_Server] = []
        try:
            for endpoint in dict.fromkeys(endpoints):
                self._servers.append(_Server(endpoint))
        except OSError as error:
            self._close()
            raise OSError(error.errno, f'metrics cannot be served at {endpoint}: {error.strerror}') from error
        for server in self._servers:
            threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.5}, name='metrics',
                             daemon=True).start()

    @property
    def ports(self) -> list[int]:
        return [server.server_address[1] for server in self._servers]

    def stop(self) -> None:
        for server in self._servers:
            server.shutdown()
        self._close()

    def _close(self) -> None:
        for server in self._servers:
            server.server_close()
