"""A small run of the kit on loopback, without namespaces, with two BINDs.

All services are one process on SQLite, or several with RabbitMQ and another database, and two pool managers then.  It
is what the self-test of the kit uses, and the quickest way to try the workload and the checker::

    python -m tests.torture.local --seed 3 --seconds 40 --database postgresql
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping

from benchmarks.soak import paused
from designate_pool.model import Endpoint
from testing.bind import Named
from testing.databases import DatabaseServer, MariaDB, PostgreSQL
from testing.rabbitmq import RabbitMq
from testing.stack import Stack
from tests.torture import checker, leftovers, planted
from tests.torture.history import Event, History
from tests.torture.observer import Observer
from tests.torture.workload import Workload

TENANTS = ('alpha', 'beta')
#: SQLite is for all services in one process.
SQLITE = 'sqlite'
DATABASES = {'postgresql': PostgreSQL, 'mariadb': MariaDB}
#: Seconds from the end of the faults within which all must be as it has to be.
BOUND = 90.0
#: Seconds that a fault lasts at most; claims end after five.
LONGEST = 9.0


class LocalSystem:
    """The system of one run.

    :ivar endpoints: of the name servers, by id
    :ivar tokens: by tenant
    :param plant: a bug to be planted in all programs
    """

    def __init__(self, folder: pathlib.Path, seed: int, database: str, plant: str | None = None,
                 concurrency: str = 'eventlet') -> None:
        self.threshold = (100, 50)[seed % 2]
        self._folder = folder
        self._plant = plant
        self._ended = contextlib.ExitStack()
        self.servers = [Named(folder / f'named{number}') for number in range(2)]
        self.ids = [f'aaaaaaaa-0000-4000-8000-{number:012}' for number in range(2)]
        self.broker = None if database == SQLITE else RabbitMq(folder / 'rabbitmq')
        self.database = None if database == SQLITE else DATABASES[database]()
        self.tokens: dict[str, str | None] = {}
        self._concurrency = concurrency
        self.stack: Stack

    def __enter__(self) -> LocalSystem:
        with self._ended:
            self._ended.enter_context(_environment(planted.environment(self._plant) if self._plant else {}))
            for each in (self.broker, self.database):
                if each is not None:
                    self._ended.enter_context(each)
            for server in self.servers:
                self._ended.callback(server.remove)
                server.start()
            tokens = self._folder / 'tokens'
            sections = [f'auth = token\ntokens_file = {tokens}\n', *(
                server.section(key, call_timeout=2) for server, key in zip(self.servers, self.ids, strict=True))]
            url = (f'sqlite:///{self._folder}/pool.sqlite' if self.database is None else
                   self.database.create_database())
            self.stack = Stack(self._folder / 'services', sections, url, self.broker and self.broker.url,
                               self._concurrency, self.threshold)
            self.stack.executed = True
            for tenant in TENANTS:
                self.tokens[tenant] = self.stack.manage('token', 'create', tenant, '--project', tenant, '--role',
                                                        'member').split()[0]
            self._ended.enter_context(self.stack)
            if not self.stack.embedded:
                self.stack.launch('manager', key='manager2')
            self._ended = self._ended.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.close()

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        return {key: Endpoint(server.host, server.port) for key, server in zip(self.ids, self.servers, strict=True)}

    def faults(self) -> dict[str, tuple[str, Callable[[float], None]]]:
        """Each fault's target and what brings it about for so many seconds."""
        found: dict[str, tuple[str, Callable[[float], None]]] = {}
        for number, (key, server) in enumerate(zip(self.ids, self.servers, strict=True)):
            found[f'kill server {number}'] = key, self._killed(server)
            found[f'pause server {number}'] = key, self._paused(lambda server=server: server.pid)
            found[f'server {number} loses its zones'] = key, lambda seconds, server=server: server.forget_zones()
        for name in ('all',) if self.stack.embedded else ('api', 'minidns', 'manager', 'manager2'):
            found[f'kill {name}'] = name, lambda seconds, name=name: self._kill_service(name, seconds)
            found[f'pause {name}'] = name, self._paused(lambda name=name: self.stack.processes[name].pid)
        if self.broker is not None and self.database is not None:
            found['kill broker'] = 'broker', lambda seconds: self._kill(self.broker, self.broker.restart, seconds)
            found['kill database'] = 'database', lambda seconds: self._kill(self.database, self.database.start, seconds)
        return found

    def _kill_service(self, name: str, seconds: float) -> None:
        self.stack.kill(name)
        time.sleep(seconds / 3)
        self.stack.launch(name.rstrip('2'), key=name)

    @staticmethod
    def _kill(server: RabbitMq | DatabaseServer, start: Callable[[], object], seconds: float) -> None:
        server.kill()
        time.sleep(seconds / 3)
        start()

    @staticmethod
    def _killed(server: Named) -> Callable[[float], None]:
        def bring_about(seconds: float) -> None:
            server.kill()
            time.sleep(seconds)
            server.start()
        return bring_about

    @staticmethod
    def _paused(pid: Callable[[], int]) -> Callable[[float], None]:
        def bring_about(seconds: float) -> None:
            with paused(pid()):
                time.sleep(seconds)
        return bring_about


def run(folder: pathlib.Path, seed: int, seconds: float, *, database: str = SQLITE, plant: str | None = None,
        concurrency: str = 'eventlet', bound: float = BOUND,
        enough: Callable[[list[Event]], bool] = lambda events: False,
        say: Callable[[str], None] = lambda text: None) -> list[Event]:
    """One run; its history.

    :param enough: asked now and then with the history so far; whether the run may end
    """
    chance = random.Random(f'{seed}/faults')
    folder.mkdir(parents=True, exist_ok=True)
    with LocalSystem(folder, seed, database, plant, concurrency) as system, \
            contextlib.closing(History(folder / 'history.jsonl')) as history:
        history.add('run', seed=seed, servers=system.ids, threshold=system.threshold, bound=bound, database=database,
                    concurrency=concurrency, plant=plant)
        workload = Workload(history, [system.stack.url], system.tokens, seed, clients=2, look=lambda name:
                            observer.look(name))
        observer = Observer(history, system.endpoints, workload.names)
        observer.start()
        workload.start()
        try:
            try:
                _trouble(system, history, chance, seconds, enough, say)
            finally:
                workload.stop()
            say(f'{workload.acknowledged} operations acknowledged')
            if not enough(history.events()):
                history.add('healed')
                _wait_until_settled(history, workload, observer, bound)
                for where, what in leftovers.find(system.stack.database_url):
                    history.add('leftover', where=where, what=what)
        finally:
            observer.stop()
        return history.events()


def _trouble(system: LocalSystem, history: History, chance: random.Random, seconds: float,
             enough: Callable[[list[Event]], bool], say: Callable[[str], None]) -> None:
    """Faults one after the other, with pauses, until the time is over."""
    faults, number = system.faults(), 0
    while history.now() < seconds and not enough(history.events()):
        time.sleep(chance.uniform(0.5, 3))
        name = chance.choice(sorted(faults))
        target, bring_about = faults[name]
        number += 1
        say(f'{history.now():.0f} s: {name}')
        history.add('fault', id=f'f{number}', fault=name, target=target, phase='begin', spoils=False,
                    excuses=not name.startswith('pause'))
        bring_about(chance.uniform(1, LONGEST))
        history.add('fault', id=f'f{number}', fault=name, target=target, phase='end', spoils=False)


def _wait_until_settled(history: History, workload: Workload, observer: Observer, bound: float) -> None:
    """Look at everything until it is as it has to be, or the bound is over."""
    until = history.now() + bound
    while history.now() < until:
        workload.look_at_all()
        observer.snapshot()
        if not checker.unsettled(history.events()):
            return
        time.sleep(1)


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Have what is started meanwhile find these in its environment."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def main() -> int:
    parser = argparse.ArgumentParser(description='One small run of the torture kit on loopback.')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--seconds', type=float, default=40)
    parser.add_argument('--database', choices=(SQLITE, *DATABASES), default=SQLITE)
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), default='eventlet')
    parser.add_argument('--plant', choices=tuple(planted.PLANTS))
    parser.add_argument('--keep', type=pathlib.Path, help='a folder that stays')
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all that was started is ended
    with tempfile.TemporaryDirectory(prefix='designate-pool-torture-') as folder:
        events = run(options.keep or pathlib.Path(folder), options.seed, options.seconds, database=options.database,
                     plant=options.plant, concurrency=options.concurrency, say=print)
    breaches = checker.check(events)
    print(f'{len(events)} events')
    for breach in breaches[:10]:
        print(breach)
    return 1 if breaches else 0


if __name__ == '__main__':
    sys.exit(main())
