"""The limit: servers told directly, over the fastest channel of their make, with a BIND as their static primary.

No database, no broker, nothing that decides: what is left is what the name servers themselves need.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence

from benchmarks.makes import MAKES, tell_bind
from benchmarks.measure import Processors
from benchmarks.serials import await_serials
from benchmarks.system import names
from designate_pool.model import Endpoint
from testing.bind import Named

_SECONDS = 120.0
#: More seconds for each zone.
_SECONDS_EACH = 0.2


@dataclasses.dataclass(frozen=True, slots=True)
class Limit:
    """What bare servers take.

    :ivar seconds: by step
    :ivar cpu: processor seconds by step and process
    :ivar one_ms: milliseconds of single changes
    """

    seconds: Mapping[str, float]
    cpu: Mapping[str, Mapping[str, float]]
    one_ms: Sequence[float]

    def times(self, factor: float) -> Limit:
        """What so many times as many zones would take."""
        return Limit({step: seconds * factor for step, seconds in self.seconds.items()},
                     {step: {process: spent * factor for process, spent in cpu.items()}
                      for step, cpu in self.cpu.items()}, self.one_ms)


def measure_limit(folder: pathlib.Path, makes: Sequence[str], domains: int, records: int, changes: int) -> Limit:
    """What servers of these makes take to create, change and delete so many zones of so many records.

    :param changes: single ones, before the zones are deleted
    """
    zones = dict.fromkeys(names('bare', domains), _zone_file(records))
    seconds: dict[str, float] = {}
    cpu: dict[str, dict[str, float]] = {}
    with Bare(folder, makes, zones) as bare:
        clock = Processors(bare.processes)

        def measure(step: str, work: Callable[[], float]) -> None:
            before = clock.read()
            seconds[step] = work()
            cpu[step] = clock.since(before)

        measure('create', bare.create)
        measure('change', bare.change)
        one_ms = [bare.change_one(name) * 1000 for name in list(zones)[:changes]]
        measure('delete', bare.delete)
    return Limit(seconds, cpu, one_ms)


class Bare:
    """A primary with all zones in its configuration, and secondaries without any.

    :param makes: of the secondaries
    :param zones: zone files by name, each with ``{serial}`` where its serial belongs
    """

    def __init__(self, folder: pathlib.Path, makes: Sequence[str], zones: Mapping[str, str]) -> None:
        self._zones = dict(zones)
        self._folder = folder
        self._serial = 1
        self._makes = tuple(makes)
        self.secondaries = [MAKES[make].new(folder / f'{make}-{number}') for number, make in enumerate(makes, 1)]
        notified = ' '.join(f'{each.host} port {each.port};' for each in self.secondaries)
        statements = '\n'.join(
            f'zone "{name}" {{ type primary; file "{self._path(name)}"; notify explicit;'
            f' also-notify {{ {notified} }}; }};' for name in zones)
        self.primary = Named(folder / 'primary', statements=statements,
                             options='notify-rate 10000; notify-delay 0; transfers-out 1000; tcp-clients 1000;')

    def __enter__(self) -> Bare:
        with contextlib.ExitStack() as stack:
            self._write(self._zones)
            for server in (self.primary, *self.secondaries):
                stack.callback(server.remove)
                server.start()
            self._stop = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.close()

    @property
    def processes(self) -> dict[str, int]:
        secondaries = enumerate(zip(self._makes, self.secondaries), 1)
        return {'primary': self.primary.pid, **{f'{make} {number}': each.pid for number, (make, each) in secondaries},
                'clients': os.getpid()}

    def create(self) -> float:
        """Seconds from the first request until all secondaries answer for every zone."""
        primary = Endpoint(self.primary.host, self.primary.port)
        return self._do([MAKES[make].add(server, list(self._zones), primary)
                         for make, server in zip(self._makes, self.secondaries)], self._wanted())

    def change(self) -> float:
        """Seconds from the first ``reload`` of the primary, which finds every zone changed, to the new serials."""
        self._serial += 1
        self._write(self._zones)
        return self._do([tell_bind(self.primary, [f'reload "{name}"' for name in self._zones])], self._wanted())

    def change_one(self, name: str) -> float:
        """The same for a single zone."""
        self._serial += 1
        self._write([name])
        return self._do([tell_bind(self.primary, [f'reload "{name}"'])], {name: self._serial}, pause=0.0005)

    def delete(self) -> float:
        """Seconds from the first request until all secondaries refuse to answer for any zone."""
        return self._do([MAKES[make].remove(server, list(self._zones))
                         for make, server in zip(self._makes, self.secondaries)], dict.fromkeys(self._zones))

    def _wanted(self) -> dict[str, int | None]:
        return dict.fromkeys(self._zones, self._serial)

    def _path(self, name: str) -> pathlib.Path:
        return self._folder / f'{name}zone'

    def _write(self, names: Sequence[str] | Mapping[str, str]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            self._path(name).write_text(self._zones[name].format(serial=self._serial))

    def _do(self, deeds: Sequence[Callable[[], None]], wanted: Mapping[str, int | None], pause: float = 0.01) -> float:
        """Do all of *deeds* at once, and wait for the secondaries."""
        started = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(len(deeds)) as executor:
            under_way = [executor.submit(deed) for deed in deeds]
            ended = await_serials([Endpoint(each.host, each.port) for each in self.secondaries], wanted,
                                  _SECONDS + _SECONDS_EACH * len(wanted), pause)
            for each in under_way:
                each.result()
        return ended - started


def _zone_file(records: int) -> str:
    return '\n'.join([
        '$TTL 3600', '@ IN SOA ns1.example.org. hostmaster.example.com. {serial} 3600 600 86400 3600',
        '@ IN NS ns1.example.org.', '@ IN NS ns2.example.org.', *(['host IN TXT "{serial}"'] if records else []),
        *(f'host{number} IN A 192.0.2.{number % 250}' for number in range(records - 1)), ''])
