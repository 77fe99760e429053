"""The API over Central on SQLite, as a program: ``python -m tests.functional.api.serve CONCURRENCY JSON``.

JSON is ApiServer's options, and the URL of the "database"; "threads" and "per_client" limit requests as well, and with
"tokens", a file of them, clients need one.  It prints its port, serves until its standard input ends, stops in good
order, and ends.  Some addresses beside the API's own serve the tests: /slow?SECONDS answers after so long, /large with
32 MiB, /pair when two ask for it at the same time.  Who asks for the zone :data:`HELD` waits for an answer until
somebody asks for /released, and /held tells how many do.
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
    tokens, threads, per_client = (options.pop(name, default) for name, default in (
        ('tokens', None), ('threads', 16), ('per_client', 0)))
    gate = None if tokens is None else AuthMiddleware(TokenAuth(tokens), AllowAll(), RateLimits(0, 1))
    api = create_app(central, POOL, ApiSettings(max_body=options.get('body_limit', 64 << 20)),
                     pool_managers=PoolManager(), storage=central.storage, gate=gate)

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

    # As many threads again, as for waiting requests.
    server = ApiServer(RequestLimits(app, threads, per_client), Endpoint('127.0.0.1', 0), 2 * threads, **options)
    server.start()
    print(server.endpoint.port, flush=True)
    ended = threading.Event()
    runtime.BY_NAME[sys.argv[1]]().spawn(_wait_for_end, ended, name='end')
    ended.wait()
    server.stop()


def _wait_for_end(ended: threading.Event) -> None:
    if sys.argv[1] == 'eventlet':
        # reading a pipe would hold every green thread
        from eventlet import tpool

        tpool.execute(sys.stdin.read)
    else:
        sys.stdin.read()
    ended.set()


main()
