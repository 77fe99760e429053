"""The system as it runs for users, with real servers around it: two BINDs, RabbitMQ, MariaDB, a process per service."""

from __future__ import annotations

import contextlib
import os
import pathlib
import time
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from benchmarks.measure import Statements
from designate_pool.model import Endpoint, Status
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.messaging import Messaging
from designate_pool.storage.schema import domains
from designate_pool.storage.sessions import Storage
from tests.fixtures.bind import Named
from tests.fixtures.databases import MariaDB
from tests.fixtures.processes import free_port
from tests.fixtures.rabbitmq import RabbitMq
from tests.fixtures.stack import Stack

SERVER_IDS = ('aaaaaaaa-0000-0000-0000-000000000001', 'aaaaaaaa-0000-0000-0000-000000000002')
_WATCH_PAUSE = 0.02
_WATCH_ONE_PAUSE = 0.0015


class System:
    """All of it, from the servers to the clients, with threshold 100.

    Durability and times are as shipped; only BIND's limits for transfers and SOA queries are raised, and RabbitMQ's
    schedulers do not spin.
    """

    def __init__(self, folder: pathlib.Path, concurrency: str) -> None:
        self._folder = folder
        self._concurrency = concurrency
        self._minidns_port = free_port()
        self.servers = [Named(folder / f'named{number}') for number in (1, 2)]

    def __enter__(self) -> System:
        with contextlib.ExitStack() as stack:
            self._broker = stack.enter_context(RabbitMq(self._folder / 'rabbitmq'))
            self._database = stack.enter_context(MariaDB(durable=True))
            url = self._database.create_database()
            for server in self.servers:
                stack.callback(server.kill)
                server.start()
            self.statements = Statements(url)
            stack.callback(self.statements.close)
            self.storage = Storage(url)
            stack.callback(self.storage.close)
            cfg.CONF([])
            messaging = Messaging(cfg.CONF, 'benchmark', 60.0, self._broker.url)
            stack.callback(messaging.stop)
            self.central = CentralClient(messaging)
            primary = Endpoint('127.0.0.1', self._minidns_port)
            sections = [server.section(server_id, [primary]) for server, server_id in zip(self.servers, SERVER_IDS)]
            self.stack = stack.enter_context(Stack(
                self._folder / 'services', sections, url, self._broker.url, self._concurrency, manager={},
                minidns_port=self._minidns_port))
            self._end = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.close()

    def set_threshold(self, percentage: int) -> None:
        self.stack.set_threshold(percentage)

    @property
    def endpoints(self) -> list[Endpoint]:
        return [Endpoint(server.host, server.port) for server in self.servers]

    @property
    def processes(self) -> dict[str, int]:
        services = {name: process.pid for name, process in self.stack.processes.items()}
        return {**services, **{f'named {number}': each.pid for number, each in enumerate(self.servers, 1)},
                'MariaDB': self._database.pid, 'RabbitMQ': self._broker.pid, 'clients': os.getpid()}


class Watch:
    """Looks into the database for domains that have come to rest.

    :ivar asked: how many statements that has taken so far
    """

    def __init__(self, system: System) -> None:
        self._storage = system.storage
        self._system = system
        self.asked = 0

    def all_active(self, tag: str, count: int, seconds: float) -> float:
        """Wait until *count* domains of a tag are ACTIVE at their serials; the monotonic time of that."""
        return self._wait(tag, count, seconds, domains.c.status == Status.ACTIVE,
                          domains.c.reported_serial == domains.c.serial)

    def all_in(self, status: Status, tag: str, count: int, seconds: float) -> float:
        """Wait until *count* domains of a tag have *status*; the monotonic time of that."""
        return self._wait(tag, count, seconds, domains.c.status == status)

    def one(self, domain_id: str, status: Status, serial: int, seconds: float) -> float:
        """Wait, looking very often, until the domain has *status* at *serial*; the monotonic time of that."""
        query = sa.select(domains.c.status, domains.c.serial, domains.c.reported_serial).where(
            domains.c.id == domain_id)
        end = time.monotonic() + seconds
        while True:
            found = self._storage.read(lambda tx: tx.execute(query).one())
            now = time.monotonic()
            self.asked += 1
            reported = status is not Status.ACTIVE or found.reported_serial == serial
            if found.status is status and found.serial == serial and reported:
                return now
            assert now < end, f'{found} after {seconds:g} s, not {status} at {serial}\n{self._system.stack.logs()}'
            time.sleep(_WATCH_ONE_PAUSE)

    def serials(self, tag: str) -> dict[str, int]:
        """The serials of a tag's domains, by name."""
        self.asked += 1
        rows = self._storage.read(lambda tx: tx.execute(
            sa.select(domains.c.name, domains.c.serial).where(_tagged(tag))).all())
        return {name: serial for name, serial in rows}

    def _wait(self, tag: str, count: int, seconds: float, *conditions: Any) -> float:
        query = sa.select(sa.func.count()).select_from(domains).where(_tagged(tag), *conditions)
        end = time.monotonic() + seconds
        while True:
            found = self._storage.read(lambda tx: tx.execute(query).scalar_one())
            now = time.monotonic()
            self.asked += 1
            if found == count:
                return now
            assert now < end, f'{found} of {count} came to rest within {seconds:g} s\n{self._system.stack.logs()}'
            time.sleep(_WATCH_PAUSE)


def names(tag: str, count: int) -> list[str]:
    """Names of domains that belong together."""
    return [f'{tag}-{number:05}.example.com.' for number in range(count)]


def _tagged(tag: str) -> Any:
    return domains.c.name.like(f'{tag}-%')
