"""The static primary: a Knot with all zones from its start, the fastest there is at SOA and AXFR of small zones."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from benchmarks.tiny_zones import TEXT
from designate_pool.model import Endpoint
from testing.knot import Knotd

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
{zones}
'''


class StaticPrimary:
    """Serves the zones *names*, all from one zone file."""

    def __init__(self, folder: pathlib.Path, names: Sequence[str]) -> None:
        self.knot = Knotd(folder)
        self.knot._configuration = _CONFIGURATION.format(
            run=self.knot.run, port=self.knot.port, folder=folder,
            zones='\n'.join(f'  - domain: {name}' for name in names))

    def __enter__(self) -> StaticPrimary:
        self.knot.folder.mkdir(parents=True)
        (self.knot.folder / 'tiny.zone').write_text(TEXT)
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
