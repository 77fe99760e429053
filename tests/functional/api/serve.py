"""The API over Central on SQLite, as a program: ``python -m tests.functional.api.serve CONCURRENCY JSON``.

JSON is the URL of the "database", ApiServer's options and those of the API; with "tokens_file" clients need a token.
It prints its port, serves until it is told to end, and stops in good order.  Some addresses beside the
API's own serve the tests: /slow?SECONDS answers after so long, /large with 32 MiB, /pair when two ask for it at the
same time.  Who asks for the zone :data:`HELD` waits for an answer until somebody asks for /released, and /held tells
how many do.
"""

from __future__ import annotations

import sys

import designate_pool  # noqa: F401  sets EVENTLET_NO_GREENDNS
from designate_pool import runtime

if sys.argv[1] == 'eventlet':
    runtime.patch()

import json  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

from designate_pool.api.app import create_app  # noqa: E402
from designate_pool.api.auth.middleware import AuthMiddleware  # noqa: E402
from designate_pool.api.auth.policy import AllowAll  # noqa: E402
from designate_pool.api.auth.token_file import TokenAuth  # noqa: E402
from designate_pool.api.http.limits import RateLimits, RequestLimits  # noqa: E402
from designate_pool.api.http.server import ApiServer  # noqa: E402
from designate_pool.cmd.compose.program import Signals  # noqa: E402
from designate_pool.model import Context, Domain, Endpoint  # noqa: E402
from designate_pool.settings import ApiSettings  # noqa: E402
from tests.fixtures.observed_central import POOL, ObservedCentral, PoolManager  # noqa: E402

LARGE = 32 << 20
#: The id of a zone.
HELD = '8' * 32


class Holding(ObservedCentral):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.released, self.lock, self.held = threading.Event(), threading.Lock(), 0

    def get_domain(self, context: Context, domain_id: str) -> Domain:
        if domain_id == HELD:
            with self.lock:
                self.held += 1
            self.released.wait(30)
        found: Domain = self.__getattr__('get_domain')(context, domain_id)
        return found


def main() -> None:
    pair = threading.Barrier(2)
    options = json.loads(sys.argv[2])
    central = Holding(options.pop('database'))
    connections, idle_timeout = options.pop('connections', 500), options.pop('idle_timeout', 60)
    # As many threads again, as for waiting requests.
    settings = ApiSettings(**{'max_body': 64 << 20, 'waits': options.get('threads', 16), **options})
    gate = settings.tokens_file and AuthMiddleware(TokenAuth(settings.tokens_file), AllowAll(), RateLimits(0, 1))
    api = create_app(central, POOL, settings, pool_managers=PoolManager(), storage=central.storage, gate=gate)

    def app(environ, start_response):
        if environ['PATH_INFO'] == '/slow':
            time.sleep(float(environ['QUERY_STRING']))
        elif environ['PATH_INFO'] == '/pair':
            pair.wait(20)
        elif environ['PATH_INFO'] == '/large':
            start_response('200 OK', [('Content-Type', 'text/plain'), ('Content-Length', str(LARGE))])
            return [b'x' * LARGE]
        elif environ['PATH_INFO'] == '/held':
            start_response('200 OK', [('Content-Type', 'text/plain')])
            return [str(central.held).encode()]
        elif environ['PATH_INFO'] == '/released':
            central.released.set()
        else:
            return api(environ, start_response)
        start_response('200 OK', [('Content-Type', 'text/plain'), ('Content-Length', '4')])
        return [b'done']

    server = ApiServer(RequestLimits(app, settings), Endpoint('127.0.0.1', 0), settings, connections, idle_timeout)
    signals = Signals()
    server.start()
    print(f'port {server.endpoint.port}', flush=True)
    signals.wait_for_stop()
    server.stop()


main()
