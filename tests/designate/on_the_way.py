"""Clients that change zones all the time, and a monitor that asks servers for them all the time."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from designate_pool.deadline import Deadline
from designate_pool.protocol import soa_exchange
from designate_pool.serial import newer
from testing.bind import Named
from testing.processes import wait_until

#: Method, path without ``/v2/``, and body; the answer's body.
Request = Callable[[str, str, Any], Any]
#: Records by name and type.
Recordsets = dict[tuple[str, str], list[str]]
#: Of all changes, how many delete a zone, make one, change one, delete a recordset, and change one; the rest makes one.
_SHARES = (('delete_zone', 0.02), ('create_zone', 0.05), ('change_zone', 0.1), ('delete_recordset', 0.25),
           ('change_recordset', 0.6), ('create_recordset', 1.0))
#: Faults that are kept.
_MOST = 50


class Monitor:
    """Asks servers for the serials of zones, all the time, and notes every answer that must not be.

    :ivar faults: with the time of each
    :ivar rounds: by server, how often it was asked for each zone
    """

    def __init__(self, servers: Sequence[Named]) -> None:
        self.faults: list[str] = []
        self.rounds = [0] * len(servers)
        self._servers = servers
        self._watched: set[str] = set()
        self._last: dict[tuple[int, str], int] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def watch(self, name: str) -> None:
        """Ask for this zone from now on: all servers have it."""
        with self._lock:
            self._watched.add(name)

    def release(self, name: str) -> None:
        """Do not ask for this zone any more."""
        with self._lock:
            self._watched.discard(name)
            for number in range(len(self._servers)):
                self._last.pop((number, name), None)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._run, args=(number, server))
                   for number, server in enumerate(self._servers)]
        for each in threads:
            each.start()
        try:
            yield
            before = tuple(self.rounds)
            wait_until(lambda: all(now > then + 1 for now, then in zip(self.rounds, before, strict=True)),
                       'the monitor has asked each server once more', 120)
        finally:
            self._stopping.set()
            for each in threads:
                each.join()

    def _run(self, number: int, server: Named) -> None:
        while not self._stopping.wait(0.05):
            with self._lock:
                names = sorted(self._watched)
            try:
                found = soa_exchange.ask(server.host, server.port, None, names, Deadline(20))
            except Exception as error:
                self._note(number, repr(error))
                continue
            with self._lock:
                for name, said in found.items():
                    if name in self._watched:
                        self._look(number, name, said)
            self.rounds[number] += 1

    def _look(self, number: int, name: str, said: soa_exchange.SoaReply | None) -> None:
        last = self._last.get((number, name))
        if said is None or said.serial is None:
            why = 'no answer' if said is None else said.error
        elif last is not None and newer(last, said.serial):
            why = f'serial {said.serial} after {last}'
        else:
            self._last[number, name] = said.serial
            return
        self._note(number, f'{name}: {why}')

    def _note(self, number: int, what: str) -> None:
        if len(self.faults) < _MOST:
            self.faults.append(f'{time.strftime("%H:%M:%S")} server {number}: {what}')


class Clients:
    """Each of several threads changes zones of its own.

    :param request: to one API or the other: both are the same
    :param monitor: is told which zones there are
    :ivar expected: by zone, what must be served in the end
    :ivar changes: that an API has accepted
    """

    def __init__(self, request: Request, monitor: Monitor, threads: int = 3) -> None:
        self.request = request
        self.expected: dict[str, Recordsets] = {}
        self.changes = 0
        self._monitor = monitor
        self._threads = threads
        self._zone_ids: dict[str, str] = {}
        self._set_ids: dict[tuple[str, str], str] = {}
        self._numbers = iter(range(10 ** 9))
        self._failures: list[BaseException] = []
        self._own: list[list[str]] = [[] for _ in range(threads)]

    def create(self, count: int, patience: float) -> None:
        """Create so many zones, each with a record; returns when all are ACTIVE.

        :param patience: seconds
        """
        def work(thread: int) -> None:
            for number in range(thread, count, self._threads):
                self._create_zone(thread, f'made-{number}.example.net.')

        self._run_all(work)
        self.wait_until_active(patience)
        for name in self.expected:
            self._monitor.watch(name)

    def adopt(self, ids: Mapping[str, tuple[str, str]], address: str) -> None:
        """Change these zones, too, which have an A recordset ``www``.

        :param ids: of zone and recordset, by the zone's name
        """
        for number, (name, (zone_id, set_id)) in enumerate(ids.items()):
            key = f'www.{name}', 'A'
            self._zone_ids[name], self._set_ids[key], self.expected[name] = zone_id, set_id, {key: [address]}
            self._own[number % self._threads].append(name)
            self._monitor.watch(name)

    @contextlib.contextmanager
    def running(self, pause: float = 0.1) -> Iterator[None]:
        """Make changes; returns when the last one is accepted."""
        stopping = threading.Event()

        def work(thread: int) -> None:
            chance = random.Random(thread)
            while not stopping.wait(pause):
                share = chance.random()
                verb = next(verb for verb, bound in _SHARES if share < bound)
                getattr(self, f'_{verb}')(thread, chance)

        threads = [threading.Thread(target=self._guarded, args=(work, number)) for number in range(self._threads)]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            stopping.set()
            for each in threads:
                each.join()
        self._raise()

    def await_changes(self, count: int, seconds: float) -> None:
        """Until so many more changes were accepted."""
        since = self.changes
        wait_until(lambda: self._failures or self.changes >= since + count, f'{count} changes are accepted', seconds)

    def wait_until_active(self, seconds: float) -> None:
        """Until no zone waits for anything."""
        def settled() -> bool:
            waiting = [zone for status in ('PENDING', 'ERROR')
                       for zone in self.request('GET', f'zones?limit=5&status={status}', None)['zones']]
            if waiting:
                raise TimeoutError(f'these wait: {waiting}')
            return True

        wait_until(settled, 'no zone waits for anything', seconds)

    def _run_all(self, work: Callable[[int], None]) -> None:
        threads = [threading.Thread(target=self._guarded, args=(work, number)) for number in range(self._threads)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self._raise()

    def _guarded(self, work: Callable[[int], None], thread: int) -> None:
        try:
            work(thread)
        except BaseException as error:
            self._failures.append(error)

    def _raise(self) -> None:
        if self._failures:
            raise self._failures[0]

    def _change(self, method: str, path: str, body: Any = None) -> Any:
        said = self.request(method, path, body)
        self.changes += 1
        return said

    def _create_zone(self, thread: int, chance: random.Random | str) -> None:
        name = chance if isinstance(chance, str) else f'new-{next(self._numbers)}.example.org.'
        self._zone_ids[name] = self._change('POST', 'zones', {'name': name, 'email': 'hostmaster@example.net'})['id']
        self.expected[name] = {}
        self._own[thread].append(name)
        self._set(name, f'www.{name}', '192.0.2.1')

    def _delete_zone(self, thread: int, chance: random.Random) -> None:
        name = chance.choice(self._own[thread])
        self._monitor.release(name)
        self._own[thread].remove(name)
        self._change('DELETE', f'zones/{self._zone_ids.pop(name)}')
        del self.expected[name]

    def _change_zone(self, thread: int, chance: random.Random) -> None:
        name = chance.choice(self._own[thread])
        self._change('PATCH', f'zones/{self._zone_ids[name]}', {'description': f'{chance.random()}'})

    def _create_recordset(self, thread: int, chance: random.Random) -> None:
        zone = chance.choice(self._own[thread])
        self._set(zone, f'host-{next(self._numbers)}.{zone}', f'192.0.2.{chance.randrange(1, 255)}')

    def _change_recordset(self, thread: int, chance: random.Random) -> None:
        zone = chance.choice(self._own[thread])
        name, rtype = chance.choice(sorted(self.expected[zone]) or [(f'www.{zone}', 'A')])
        self._set(zone, name, f'198.51.100.{chance.randrange(1, 255)}')

    def _delete_recordset(self, thread: int, chance: random.Random) -> None:
        zone = chance.choice(self._own[thread])
        if self.expected[zone]:
            key = chance.choice(sorted(self.expected[zone]))
            self._change('DELETE', f'zones/{self._zone_ids[zone]}/recordsets/{self._set_ids.pop(key)}')
            del self.expected[zone][key]

    def _set(self, zone: str, name: str, record: str) -> None:
        path, key = f'zones/{self._zone_ids[zone]}/recordsets', (name, 'A')
        if key in self.expected[zone]:
            self._change('PUT', f'{path}/{self._set_ids[key]}', {'records': [record]})
        else:
            self._set_ids[key] = self._change('POST', path, {'name': name, 'type': 'A', 'records': [record]})['id']
        self.expected[zone][key] = [record]
