"""The HTTP server of the API with an application that only answers: ``python -m benchmarks.api_bare LENGTH``."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

from designate_pool.api.http.server import ApiServer
from designate_pool.model import Endpoint
from designate_pool.settings import ApiSettings


class BareApi:
    """It as a process.

    :param length: bytes of its answers
    :ivar port: where it listens
    """

    port = 0

    def __init__(self, length: int) -> None:
        self._command = [sys.executable, '-m', 'benchmarks.api_bare', str(length)]

    def __enter__(self) -> BareApi:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate(timeout=30)


def main() -> None:
    body = b'x' * int(sys.argv[1])

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        environ['wsgi.input'].read()
        start_response('200 OK', [('Content-Type', 'application/json'), ('Content-Length', str(len(body)))])
        return [body]

    server = ApiServer(app, Endpoint('127.0.0.1', 0), ApiSettings(waits=0))
    server.start()
    print(server.endpoint.port, flush=True)
    ended = threading.Thread(target=sys.stdin.read)
    ended.start()
    ended.join()
    server.stop()


if __name__ == '__main__':
    main()
