"""An upgrade while clients go on: programs of two releases on one database and broker, exchanged one by one, both ways.

As the guide has it: the tables are upgraded first, with all programs of this release running; then each program is
restarted in the next one.  To return, each is restarted in this release, on the newer tables.
"""

from __future__ import annotations

import contextlib
import pathlib
import random
import threading
import uuid
from collections.abc import Iterator

import pytest
import requests

from testing.bind import Named
from testing.databases import MariaDB
from testing.processes import Process, free_port, wait_until
from testing.rabbitmq import RabbitMq
from testing.stack import SERVICES, Stack
from tests.fixtures.next_release import NextRelease

pytestmark = pytest.mark.slow

ZONES, CLIENTS = 6, 3


class RollingStack(Stack):
    """A stack whose programs are each of this release or of the next one."""

    def launch_next(self, release: NextRelease, name: str) -> None:
        """Start a program of the next release; returns when it is ready."""
        log = self.folder / f'{name}.log'
        seen = log.stat().st_size if log.exists() else 0
        process = Process(release.command(name, '--config-file', str(self.config)), log, env=release.environment,
                          cwd=self.folder)
        self.processes[name] = process.start()
        wait_until(lambda: process.running() and b': ready' in log.read_bytes()[seen:],
                   f'the next {name} is ready', 90)


class Client(threading.Thread):
    """Changes records of its zones, and creates and deletes others; knows what was acknowledged.

    :ivar records: what each zone's ``www`` has for certain or, where no answer came, one of several values
    :ivar acknowledged: changes that were answered with 202
    """

    def __init__(self, stack: Stack, number: int) -> None:
        super().__init__(name=f'client {number}')
        self._stack = stack
        self._number = number
        self._random = random.Random(number)
        self._over = threading.Event()
        self.records: dict[str, set[str]] = {}
        self._recordsets: dict[str, tuple[str, str]] = {}
        self.gone: set[str] = set()
        self.acknowledged = 0
        self.mistakes: list[str] = []
        for index in range(ZONES // CLIENTS):
            name = f'zone{index}.client{number}.example.com.'
            zone = stack.create_zone(name)['id']
            self._recordsets[name] = zone, stack.create_recordset(zone, f'www.{name}', 'A', '192.0.2.1')['id']
            self.records[name] = {'192.0.2.1'}

    def stop(self) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        for number in range(2000):
            if self._over.wait(0.1):
                return
            name = self._random.choice(sorted(self.records))
            zone, recordset = self._recordsets[name]
            value = f'198.51.100.{number % 250 + 1}'
            code = self._ask('PUT', f'/v2/zones/{zone}/recordsets/{recordset}', {'records': [value]})
            if code == 202:
                self.records[name] = {value}
                self.acknowledged += 1
            else:
                self.records[name].add(value)
            if number % 20 == 0:
                self._come_and_go(f'short{number}.client{self._number}.example.net.')

    def _come_and_go(self, name: str) -> None:
        """A zone that is created and deleted at once."""
        made: list[str] = []
        code = self._ask('POST', '/v2/zones', {'name': name, 'email': 'hostmaster@example.com'}, made)
        if code != 202:
            return
        # Tried until it is answered: only what was acknowledged must be gone.
        for _ in range(300):
            if self._ask('DELETE', f'/v2/zones/{made[0]}') in (202, 404):
                self.gone.add(name)
                self.acknowledged += 2
                return
            if self._over.wait(0.2):
                return

    def _ask(self, method: str, path: str, body: object = None, made: list[str] | None = None) -> int:
        """The status of the answer, 0 when there was none; an answer that no client should get is a mistake."""
        try:
            answer = requests.request(method, self._stack.url + path, json=body, timeout=40)
        except requests.RequestException:
            return 0
        if answer.status_code not in (202, 404, 429, 500, 503, 504) or answer.status_code == 404 and method == 'PUT':
            self.mistakes.append(f'{method} {path}: {answer.status_code} {answer.text}')
        if made is not None and answer.status_code == 202:
            made.append(answer.json()['id'])
        return answer.status_code


@pytest.fixture
def named(tmp_path: pathlib.Path) -> Iterator[list[Named]]:
    servers = [Named(tmp_path / f'named{number}') for number in range(2)]
    with contextlib.ExitStack() as end:
        for server in servers:
            end.callback(server.remove)
            server.start()
        yield servers


@pytest.fixture
def stack(tmp_path: pathlib.Path, named: list[Named], mariadb: MariaDB, rabbitmq: RabbitMq) -> Iterator[RollingStack]:
    sections = [server.section(str(uuid.uuid4()), call_timeout=4) for server in named]
    with RollingStack(tmp_path / 'stack', sections, mariadb.create_database(), rabbitmq.url,
                      minidns_port=free_port()) as stack:
        yield stack


def test_programs_are_exchanged_one_by_one_there_and_back_and_there(
        stack: RollingStack, named: list[Named], next_release: NextRelease) -> None:
    clients = [Client(stack, number) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        changes(clients, 5)
        next_release.manage('--config-file', str(stack.config), 'database', 'upgrade')
        changes(clients, 5)
        for name in SERVICES:
            stack.stop(name)
            stack.launch_next(next_release, name)
            changes(clients, 5)
        for name in reversed(SERVICES):
            stack.stop(name)
            stack.launch(name)
            changes(clients, 5)
        for name in ('api', 'manager', 'minidns'):
            stack.stop(name)
            stack.launch_next(next_release, name)
            changes(clients, 5)
    finally:
        for client in clients:
            client.stop()
    assert [each for client in clients for each in client.mistakes] == []
    for client in clients:
        for name, values in client.records.items():
            for server in named:
                wait_until(lambda: set(server.texts(f'www.{name}', 'A')) <= values and server.texts(f'www.{name}', 'A'),
                           f'port {server.port} serves one of {values} for {name}', 120)
        for name in client.gone:
            for server in named:
                wait_until(lambda: server.serial(name) is None, f'{name} is gone', 60)
    stack.must_be_sound()


def changes(clients: list[Client], count: int) -> None:
    """So many more changes of each client are acknowledged: what is exchanged now is seen at work."""
    before = [client.acknowledged for client in clients]
    wait_until(lambda: all(client.acknowledged >= then + count for client, then in zip(clients, before)),
               'changes go on', 120)
