"""The static primary: a Knot with all zones from its start, the fastest there is at SOA and AXFR of small zones."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from benchmarks.servers_zones import TEXT, catalog_text
from designate_pool.model import Endpoint
from testing.knot import Knotd

CATALOG = 'catalog.pool.example.'
#: A zone that is served beside those that are asked for.
SEED = 'seed.example.com.'
_CONFIGURATION = '''
server:
    rundir: "{run}"
    listen: 127.0.0.1@{port}
    # Its queue of new connections has 10 places, which BIND alone fills; so each worker has one of its own.
    tcp-reuseport: on
    tcp-workers: 64
    udp-workers: 2
    tcp-remote-io-timeout: 0
database:
    storage: "{folder}"
log:
  - target: stderr
    any: warning
acl:
  - id: all
    address: 127.0.0.1
    action: transfer
template:
  - id: default
    storage: "{folder}"
    file: tiny.zone
    zonefile-sync: -1
    journal-content: none
    acl: all
zone:
  - domain: {catalog}
    file: catalog.zone
{zones}
'''


class StaticPrimary:
    """Serves the zones *names*, all from one zone file, and a catalog zone."""

    def __init__(self, folder: pathlib.Path, names: Sequence[str]) -> None:
        self.knot = Knotd(folder)
        self.knot._configuration = _CONFIGURATION.format(
            run=self.knot.run, port=self.knot.port, folder=folder, catalog=CATALOG,
            zones='\n'.join(f'  - domain: {name}' for name in [SEED, *names]))
        self._serial = 0

    def __enter__(self) -> StaticPrimary:
        self.knot.folder.mkdir(parents=True)
        (self.knot.folder / 'tiny.zone').write_text(TEXT)
        self.write_catalog([])
        try:
            self.knot.start()
        except BaseException:
            self.knot.remove()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.knot.remove()

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.knot.host, self.knot.port)

    @property
    def pid(self) -> int:
        return self.knot.pid

    def write_catalog(self, members: Sequence[str]) -> int:
        """Make a catalog of *members*, which is served after :meth:`reload_catalog`; its serial."""
        self._serial += 1
        (self.knot.folder / 'catalog.zone').write_text(catalog_text(CATALOG, self._serial, members))
        return self._serial

    def reload_catalog(self) -> None:
        self.knot.knotc('-b', 'zone-reload', CATALOG)
