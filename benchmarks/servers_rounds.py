"""One round: a fresh server is given zones, directly or by our driver, and asked until it serves the last of them."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.measure import Processors
from benchmarks.serials import await_serials
from benchmarks.servers_makes import MAKES, Make
from benchmarks.servers_primary import StaticPrimary
from benchmarks.servers_zones import SERIAL, domain
from designate_pool import backends
from designate_pool.backends.base import Backend
from designate_pool.model import Domain, Endpoint, new_id
from testing.minidns import MiniDnsProcess

#: A round takes no longer than this.
SECONDS = 180.0
#: Between two rounds of asking for all serials.
_PAUSE = 0.02


@dataclasses.dataclass(frozen=True, slots=True)
class Round:
    """
    :ivar seconds: from the first command until every zone is served
    :ivar commands: until the last command was answered
    :ivar cpu: processor seconds by process; ``clients`` is who gives the commands
    """

    seconds: float
    commands: float
    cpu: Mapping[str, float]

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """What all rounds have in common.

    :ivar asker: the process that asks for serials
    :ivar database: URL of the one that MiniDNS reads; it has all zones
    :ivar names: of the zones that are added
    :ivar loaded: of those that a loaded server has before
    """

    folder: pathlib.Path
    asker: concurrent.futures.Executor
    static: StaticPrimary
    database: str
    concurrency: str
    names: Sequence[str]
    loaded: Sequence[str]

    def new_folder(self) -> pathlib.Path:
        return self.folder / new_id()

    def new_minidns(self) -> MiniDnsProcess:
        """A MiniDNS that has served nothing yet, for :func:`serving`."""
        folder = self.new_folder()
        folder.mkdir()
        return MiniDnsProcess(folder, self.database, [], self.concurrency)


class Told:
    """Servers of a make that are told of each zone, by name the driver's."""

    def __init__(self, place: Place, name: str) -> None:
        self._place = place
        self._make: Make = MAKES[name]

    def bare(self, loaded: Sequence[str]) -> Round:
        """The commands straight to the server, the zones from the static primary."""
        place = self._place
        with self._server(loaded) as server:
            add = self._make.add(server, place.names, place.static.endpoint)
            return timed(place.asker, server, place.names, add, {'primary': place.static.pid})

    def ours(self, loaded: Sequence[str]) -> Round:
        """The driver, and the zones from MiniDNS."""
        place = self._place
        minidns = place.new_minidns()
        with self._server(loaded) as server, serving(minidns, server):
            driver = backends.build(server.server([Endpoint(minidns.host, minidns.port)]))
            try:
                return timed(place.asker, server, place.names,
                             _calls(driver, [domain(name) for name in place.names]), {'primary': minidns.pid})
            finally:
                driver.close()

    @contextlib.contextmanager
    def _server(self, loaded: Sequence[str]) -> Iterator[Any]:
        """A fresh server that serves *loaded*."""
        server = self._make.new(self._place.new_folder())
        try:
            server.start()
            if loaded:
                add = self._make.add(server, loaded, self._place.static.endpoint)
                timed(self._place.asker, server, loaded, add, {})
            yield server
        finally:
            server.remove()


@contextlib.contextmanager
def serving(minidns: MiniDnsProcess, server: Any) -> Iterator[str]:
    """Has *minidns* run and serve *server*, whose id it is given."""
    server_id = new_id()
    minidns.servers.append({'id': server_id, 'driver': 'fake', 'host': server.host, 'port': server.port})
    try:
        minidns.start()
        yield server_id
    finally:
        minidns.stop()


def timed(asker: concurrent.futures.Executor, server: Any, names: Sequence[str], work: Callable[[], None],
          others: Mapping[str, int]) -> Round:
    """Do *work* and wait until *server* serves all of *names*.

    :param asker: a process of its own, so that asking for serials and *work* do not take turns in one interpreter
    :param others: more processes to be looked at, by name
    :raises AssertionError: when it does not
    """
    clock = Processors({'server': server.pid, **others, 'clients': os.getpid()})
    before = clock.read()
    wanted = dict.fromkeys(names, SERIAL)
    started = time.monotonic()
    asking = asker.submit(await_serials, [Endpoint(server.host, server.port)], wanted, SECONDS, _PAUSE)
    work()
    commanded = time.monotonic()
    return Round(asking.result() - started, commanded - started, clock.since(before))


def _calls(driver: Backend, domains: Sequence[Domain]) -> Callable[[], None]:
    """All calls of *driver* that create *domains*, as many at once as a pool manager makes."""
    size = driver.capabilities.batch_size
    batches = [domains[start:start + size] for start in range(0, len(domains), size)]
    callers = min(driver.server.max_in_flight, driver.capabilities.most_in_flight)

    def call() -> None:
        with concurrent.futures.ThreadPoolExecutor(callers) as executor:
            failures = [result.error for results in executor.map(driver.create_domains, batches)
                        for result in results if not result.ok]
        assert not failures, failures[:3]

    return call
