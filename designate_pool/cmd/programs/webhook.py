"""``designate-pool-webhook``: the pool as a provider for external-dns.

It prints where it listens when it is ready, and stops at SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from designate_pool.api.http.cross_site import CrossSiteGuard
from designate_pool.api.http.limits import RequestLimits
from designate_pool.api.http.server import ApiServer
from designate_pool.cli.base import ttl
from designate_pool.cli.connection import DEFAULT_URL
from designate_pool.cmd.compose import program
from designate_pool.cmd.compose.program import MetricsEndpoint, Signals
from designate_pool.model import Endpoint
from designate_pool.planner.targets.pool import KeptZone, PoolProvider
from designate_pool.settings import ApiSettings
from designate_pool.webhook.app import MAX_BODY, create_app

#: What is over the limit of a client needs a thread to be refused.
SETTINGS = ApiSettings(threads=4, waits=4, max_body=MAX_BODY)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal comes; the exit status, 1 when it cannot listen at an address."""
    options = _parser().parse_args(argv)
    program.log_to_stderr()
    signals = Signals()
    kept: dict[str, KeptZone] = {}
    app = create_app(lambda: PoolProvider('webhook', url=options.url, kept=kept), options.zone, options.ttl)
    limited = RequestLimits(CrossSiteGuard(app, options.host), SETTINGS)
    servers = [ApiServer(limited, endpoint, SETTINGS)
               for endpoint in options.listen or [Endpoint('127.0.0.1', 8888)]]
    try:
        metrics_endpoint = MetricsEndpoint(options.metrics)
        for server in servers:
            server.start()
    except OSError as error:
        print(f'designate-pool-webhook: {error}', file=sys.stderr)
        return 1
    print(f'webhook: ready at {", ".join(str(server.endpoint) for server in servers)}', file=sys.stderr, flush=True)
    signals.wait_for_stop()
    for server in servers:
        server.stop()
    metrics_endpoint.stop()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = program.argument_parser('designate-pool-webhook', 'The pool as a webhook provider for external-dns.',
                                     epilog="The token for the pool's API is in DESIGNATE_POOL_TOKEN.")
    parser.add_argument('--listen', type=program.endpoint, action='append', metavar='ADDRESS:PORT',
                        help='where external-dns reaches it; may be given more than once (default: 127.0.0.1:8888)')
    parser.add_argument('--host', action='append', default=[], metavar='NAME',
                        help='a name in the URL by which external-dns calls it, beside addresses and localhost; may be '
                             'given more than once')
    parser.add_argument('--metrics', type=program.endpoint, action='append', default=[], metavar='ADDRESS:PORT',
                        help='where GET /metrics is answered, for Prometheus; may be given more than once (default: '
                             'nowhere)')
    parser.add_argument('--url', default=os.environ.get('DESIGNATE_POOL_URL') or DEFAULT_URL,
                        help=f"where the pool's API is; DESIGNATE_POOL_URL if not given, else {DEFAULT_URL}")
    parser.add_argument('--zone', type=program.zone, action='append', default=[], metavar='ZONE',
                        help='a zone, or a name in one, that external-dns may see and change with all below it; may be '
                             'given more than once (default: all zones)')
    parser.add_argument('--ttl', type=ttl, default=300, metavar='TTL',
                        help='in seconds, or as 1h, for new records that external-dns gives none (default: 300)')
    return parser


if __name__ == '__main__':
    sys.exit(main())
