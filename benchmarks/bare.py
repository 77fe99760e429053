"""The limit: two BINDs told directly, over kept control channels, with a third one as their static primary.

No database, no broker, nothing that decides: what is left is what the name servers themselves need.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from benchmarks.measure import Processors
from benchmarks.serials import await_serials
from benchmarks.system import names
from designate_pool.backends import rndc
from designate_pool.deadline import Deadline
from designate_pool.model import Endpoint
from tests.fixtures.bind import Named

#: Control channels to each server; the pool manager has as many by default.
CHANNELS = 4
_SECONDS = 120.0


@dataclasses.dataclass(frozen=True, slots=True)
class Limit:
    """What bare BINDs take.

    :ivar seconds: by step
    :ivar cpu: processor seconds by step and process
    :ivar one_ms: milliseconds of single changes
    """

    seconds: Mapping[str, float]
    cpu: Mapping[str, Mapping[str, float]]
    one_ms: Sequence[float]


def measure_limit(folder: pathlib.Path, domains: int, records: int, changes: int) -> Limit:
    """Create, change and delete so many zones of so many records, with single changes before the end."""
    zones = dict.fromkeys(names('bare', domains), _zone_file(records))
    seconds: dict[str, float] = {}
    cpu: dict[str, dict[str, float]] = {}
    with Bare(folder, zones) as bare:
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
    """A primary with all zones in its configuration, and two secondaries without any.

    :param zones: zone files by name, each with ``{serial}`` where its serial belongs
    """

    def __init__(self, folder: pathlib.Path, zones: Mapping[str, str]) -> None:
        self._zones = dict(zones)
        self._folder = folder
        self._serial = 1
        self.secondaries = [Named(folder / f'secondary{number}') for number in (1, 2)]
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
                stack.callback(server.stop)
                server.start()
            self._stop = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.close()

    @property
    def processes(self) -> dict[str, int]:
        return {'named primary': self.primary.pid,
                **{f'named {number}': each.pid for number, each in enumerate(self.secondaries, 1)},
                'clients': os.getpid()}

    def create(self) -> float:
        """Seconds from the first ``addzone`` until both secondaries answer for every zone."""
        primary = Endpoint(self.primary.host, self.primary.port)
        return self._tell([addzone(name, primary) for name in self._zones], self.secondaries, self._wanted())

    def change(self) -> float:
        """Seconds from the first ``reload`` of the primary, which finds every zone changed, to the new serials."""
        self._serial += 1
        self._write(self._zones)
        return self._tell([f'reload "{name}"' for name in self._zones], [self.primary], self._wanted())

    def change_one(self, name: str) -> float:
        """The same for a single zone."""
        self._serial += 1
        self._write([name])
        return self._tell([f'reload "{name}"'], [self.primary], {name: self._serial}, pause=0.0005)

    def delete(self) -> float:
        """Seconds from the first ``delzone`` until both secondaries refuse to answer for any zone."""
        return self._tell([f'delzone -clean "{name}" IN _default' for name in self._zones], self.secondaries,
                          dict.fromkeys(self._zones))

    def _wanted(self) -> dict[str, int | None]:
        return dict.fromkeys(self._zones, self._serial)

    def _path(self, name: str) -> pathlib.Path:
        return self._folder / f'{name}zone'

    def _write(self, names: Sequence[str] | Mapping[str, str]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            self._path(name).write_text(self._zones[name].format(serial=self._serial))

    def _tell(self, commands: Sequence[str], servers: Sequence[Named], wanted: Mapping[str, int | None],
              pause: float = 0.01) -> float:
        """Give *commands* to each of *servers* and wait for both secondaries."""
        channels = [(server, connect(server), commands[number::CHANNELS])
                    for server in servers for number in range(min(CHANNELS, len(commands)))]
        failures: list[str] = []
        threads = [threading.Thread(target=give, args=(channel, some, failures)) for _, channel, some in channels]
        started = time.monotonic()
        for thread in threads:
            thread.start()
        ended = await_serials([Endpoint(each.host, each.port) for each in self.secondaries], wanted, _SECONDS, pause)
        for thread in threads:
            thread.join(_SECONDS)
        for _, channel, _ in channels:
            channel.close()
        assert not failures, failures[:3]
        return ended - started


def addzone(name: str, primary: Endpoint) -> str:
    """The command that makes the zone *name*, transferred from *primary*."""
    return (f'addzone "{name}" IN _default {{ type secondary; primaries {{ {primary.host} port {primary.port}; }};'
            f' file "{name}db"; }};')


def connect(server: Named) -> rndc.Channel:
    """A control channel to *server*."""
    key = rndc.Key.read(str(server.folder / 'rndc.key'))
    return rndc.connect(server.host, server.rndc_port, key, Deadline(_SECONDS))


def give(channel: rndc.Channel, commands: Sequence[str], failures: list[str]) -> None:
    """Give *commands* one after the other; what named refuses is added to *failures*."""
    for command in commands:
        answer = channel.ask(command, Deadline(_SECONDS))
        if answer.result:
            failures.append(f'{command}: {answer.words}')


def _zone_file(records: int) -> str:
    return '\n'.join([
        '$TTL 3600', '@ IN SOA ns1.example.org. hostmaster.example.com. {serial} 3600 600 86400 3600',
        '@ IN NS ns1.example.org.', '@ IN NS ns2.example.org.', 'host IN TXT "{serial}"',
        *(f'host{number} IN A 192.0.2.{number % 250}' for number in range(records - 1)), ''])
