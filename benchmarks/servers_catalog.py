"""Servers that learn their zones from a catalog zone: one of the static primary's, or MiniDNS's."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.serials import await_serials
from benchmarks.servers_primary import CATALOG, SEED
from benchmarks.servers_rounds import SECONDS, Place, Round, serving, timed
from benchmarks.servers_zones import SERIAL, insert, make_database
from designate_pool.model import Endpoint, PollRequest, utcnow
from designate_pool.storage.sql.database import Storage
from testing.bind import Named
from testing.knot import Knotd
from testing.rows import raise_catalog

_KNOT = '''
server:
    rundir: "{run}"
    listen: 127.0.0.1@{port}
    tcp-remote-io-timeout: 500
    background-workers: 8
database:
    storage: "{folder}"
log:
  - target: stderr
    any: info
remote:
  - id: primary
    address: {primary}
acl:
  - id: primary
    address: 127.0.0.1
    action: [notify, transfer]
template:
  - id: default
    storage: "{folder}/zones"
  - id: member
    storage: "{folder}/zones"
    master: primary
    acl: primary
    zonefile-sync: -1
    zonefile-load: none
    journal-content: all
zone:
  - domain: {catalog}
    master: primary
    acl: primary
    catalog-role: interpret
    catalog-template: member
'''


def new_bind(folder: pathlib.Path, primary: Endpoint) -> Named:
    return Named(folder, catalog=(CATALOG, [primary], None))


def new_knot(folder: pathlib.Path, primary: Endpoint) -> Knotd:
    server = Knotd(folder)
    server._configuration = _KNOT.format(run=server.run, folder=folder, port=server.port, catalog=CATALOG,
                                         primary=f'{primary.host}@{primary.port}')
    return server


#: By the word of the driver for servers of this kind that are told of each zone.
READERS: dict[str, Callable[[pathlib.Path, Endpoint], Any]] = {'bind9': new_bind, 'knot': new_knot}


class Reading:
    """Servers of a make that read a catalog, which has a member from the start: the reading is then under way."""

    def __init__(self, place: Place, name: str) -> None:
        self._place = place
        self._new = READERS[name]

    def bare(self, loaded: Sequence[str]) -> Round:
        """The catalog, and the zones, from the static primary."""
        place, static = self._place, self._place.static
        loaded = [SEED, *loaded]
        static.write_catalog(loaded)
        static.reload_catalog()
        server = self._new(place.new_folder(), static.endpoint)
        with _running(server):
            await_serials([Endpoint(server.host, server.port)], dict.fromkeys(loaded, SERIAL), SECONDS)
            serial = static.write_catalog([*loaded, *place.names])

            def tell() -> None:
                static.reload_catalog()
                server.notify(CATALOG, serial)

            return timed(place.asker, server, place.names, tell, {'primary': static.pid})

    def ours(self, loaded: Sequence[str]) -> Round:
        """The catalog, and the zones, from MiniDNS, which is told as a pool manager tells it."""
        place, folder = self._place, self._place.new_folder()
        loaded = [SEED, *loaded]
        folder.mkdir()
        url = f'sqlite:///{folder}/pool.sqlite'
        make_database(url, loaded)
        minidns = place.new_minidns(url, CATALOG)
        with contextlib.closing(Storage(url)) as storage:
            server = self._new(place.new_folder(), Endpoint(minidns.host, minidns.port))
            with serving(minidns, server) as server_id, _running(server):
                def tell() -> None:
                    serial = storage.run(raise_catalog, utcnow())
                    minidns.cast('notify_and_poll', pool_name='default', timeout=5.0, retry_interval=1.0, max_retries=9,
                                 requests=[PollRequest('catalog', CATALOG, serial, server_id)])

                await_serials([Endpoint(server.host, server.port)], dict.fromkeys(loaded, SERIAL), SECONDS)
                insert(storage, place.names)
                return timed(place.asker, server, place.names, tell, {'primary': minidns.pid})


@contextlib.contextmanager
def _running(server: Any) -> Iterator[None]:
    try:
        server.start()
        yield
    finally:
        server.stop()
        shutil.rmtree(server.folder, ignore_errors=True)
