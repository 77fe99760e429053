"""One zone more on a Knot that has many zones: by a transaction of its configuration, and by a catalog zone.

The pool is left out: Knot gets commands over its control socket, and the time is taken until it answers for the new
zone, whose contents are in a file.  The catalog is a zone of this Knot, so that no transfer is part of the time.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

from benchmarks import crowded, report
from benchmarks.serials import await_serials
from benchmarks.servers_zones import SERIAL
from benchmarks.system import names
from designate_pool.backends.knot.control_protocol import KnotControl, Unit, error_in
from designate_pool.deadline import Deadline
from designate_pool.model import Endpoint
from testing.knot import Knotd

CATALOG = 'catalog.example.'
_CATALOG_ZONE = '''
  - domain: {catalog}
    template: crowd
    file: catalog.zone
    catalog-role: interpret
    catalog-template: crowd
'''
_SECONDS = 600.0
#: Between two zones, so that the work for one is not part of the next.
_PAUSE = 0.2

Add = Callable[[Knotd, str], None]


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('crowded_knot', {'sizes': options.sizes, 'zones': options.zones})
    for size in options.sizes:
        with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name:
            folder = pathlib.Path(name)
            configured = measure(folder / 'configured', size, False, options.zones, add_by_configuration)
            cataloged = measure(folder / 'cataloged', size, True, options.zones, add_by_catalog)
        result.add(f'one zone beside {size}, by configuration', configured, 'ms')
        result.add(f'one zone beside {size}, by a catalog', cataloged, 'ms', configured, 'by configuration')
    result.finish(options.json)
    return 0


def measure(folder: pathlib.Path, size: int, by_catalog: bool, count: int, add: Add) -> float:
    """The median of the milliseconds from adding a zone until it is served."""
    crowd = names('crowd', size)
    server = Knotd(folder)
    crowded.take_in(server, names('seed', 1) if by_catalog else crowd or names('seed', 1))
    if by_catalog:
        server._configuration += _CATALOG_ZONE.format(catalog=CATALOG)
        members = ''.join(f'm{number}.zones 0 PTR {name}\n' for number, name in enumerate(crowd))
        (folder / 'catalog.zone').write_text(f'$ORIGIN {CATALOG}\n@ 0 SOA invalid. invalid. 1 3600 600 86400 0\n'
                                             f'@ 0 NS invalid.\nversion 0 TXT "2"\n{members}')
    with contextlib.ExitStack() as end:
        end.callback(server.remove)
        server.start()
        endpoint = [Endpoint(server.host, server.port)]
        await_serials(endpoint, dict.fromkeys([*crowd, *names('seed', 1 if by_catalog or not crowd else 0)], SERIAL),
                      _SECONDS)
        taken = []
        for name in names('one', count):
            time.sleep(_PAUSE)
            started = time.monotonic()
            add(server, name)
            taken.append(1000 * (await_serials(endpoint, {name: SERIAL}, _SECONDS, 0.001) - started))
    return statistics.median(taken)


def add_by_configuration(server: Knotd, name: str) -> None:
    _ask(server, {'command': 'conf-begin'}, {'command': 'conf-set', 'section': 'zone', 'item': 'domain', 'data': name},
         {'command': 'conf-set', 'section': 'zone', 'id': name, 'item': 'template', 'data': 'crowd'},
         {'command': 'conf-commit'})


def add_by_catalog(server: Knotd, name: str) -> None:
    member = f'{name.partition(".")[0]}.zones.{CATALOG}'
    _ask(server, {'command': 'zone-begin', 'zone': CATALOG},
         {'command': 'zone-set', 'zone': CATALOG, 'owner': member, 'ttl': '0', 'type': 'PTR', 'data': name},
         {'command': 'zone-commit', 'zone': CATALOG})


def _ask(server: Knotd, *units: Unit) -> None:
    deadline = Deadline(_SECONDS)
    with contextlib.closing(KnotControl(str(server.socket), deadline)) as control:
        for unit in units:
            trouble = error_in(list(control.ask(unit, deadline)))
            assert trouble is None, trouble


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('crowded_knot', 'One zone more on a Knot that has many zones.')
    parser.add_argument('--sizes', type=crowded.sizes, default=(0, 100000), help='zones there are, with commas')
    parser.add_argument('--zones', type=int, default=20, help='that are added one after the other')
    options = parser.parse_args(argv)
    if options.quick:
        options.sizes, options.zones = tuple(min(size, 10000) for size in options.sizes), min(options.zones, 10)
    return options


if __name__ == '__main__':
    sys.exit(main())
