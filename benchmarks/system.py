"""The system as it runs for users, with real servers around it: BINDs or others, RabbitMQ, a database, the services."""

from __future__ import annotations

import base64
import concurrent.futures
import contextlib
import os
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from benchmarks.makes import MAKES
from benchmarks.measure import Statements
from designate_pool.central.service import Central
from designate_pool.model import Endpoint, Status, TsigKey
from designate_pool.rpc.broker import Messaging
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.runtime import Threads
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import domains
from testing.databases import MariaDB, PostgreSQL
from testing.processes import free_port
from testing.rabbitmq import RabbitMq
from testing.settings import central_settings
from testing.stack import Stack

DATABASES = {'mariadb': MariaDB, 'postgresql': PostgreSQL}
#: What most benchmarks have the system with.
TWO_BINDS = ('bind9', 'bind9')
_WATCH_PAUSE = 0.02
#: So many times as long as counting takes passes until the next look, as it keeps the database busy.
_WATCH_SHARE = 20
_WATCH_ONE_PAUSE = 0.0015
#: The pause grows with the time waited: a look costs the database as much as one of the services' statements.
_WATCH_ONE_SHARE = 50


class System:
    """All of it, from the servers to the clients, with threshold 100.

    Durability and times are as shipped; only BIND's limits for transfers and SOA queries are raised, and RabbitMQ's
    schedulers do not spin.

    :param makes: of its servers
    :param database: its make
    :param manager: options of ``[service:pool_manager]``
    :param pairs: how many pool managers there are, and as many MiniDNS, each with a port of its own
    :param keyed: whether each server has a TSIG key; without it MiniDNS cannot tell who of those at one address has
        had a transfer, and asks all of them
    :param servers: fixtures that have not been started, in place of those of *makes*
    :param api: options of ``[service:api]``
    :param central: settings of the clients' Central
    :ivar central: that of the clients, which calls it as the API does, in its process
    :ivar minidns: where they listen; the servers are told of all of them
    :ivar servers: fixtures, whose configuration can be changed until the system starts
    :ivar server_ids: as in the configuration
    """

    def __init__(self, folder: pathlib.Path, concurrency: str, makes: Sequence[str] = TWO_BINDS,
                 database: str = 'mariadb', manager: Mapping[str, str] | None = None, pairs: int = 1,
                 keyed: bool = False, servers: Sequence[Any] = (), api: Mapping[str, str] | None = None,
                 central: Mapping[str, Any] | None = None) -> None:
        self._folder = folder
        self._concurrency = concurrency
        self._database_kind = database
        self._manager = dict(manager or {})
        self._api = dict(api or {})
        self._central = dict(central or {})
        self.minidns = [Endpoint('127.0.0.1', free_port()) for _ in range(pairs)]
        self.makes = tuple(each.driver for each in servers) if servers else tuple(makes)
        self._keys = [TsigKey(f'key{number}.example.com.', 'hmac-sha256',
                              base64.b64encode(bytes([number]) * 32).decode()) if keyed else None
                      for number, _ in enumerate(self.makes, 1)]
        self.servers: list[Any] = list(servers) or [
            MAKES[make].new(folder / f'{make}-{number}', keys=[key] if key else [])
            for number, (make, key) in enumerate(zip(self.makes, self._keys), 1)]
        self.server_ids = [f'aaaaaaaa-0000-4000-8000-{number:012}' for number in range(1, len(self.makes) + 1)]

    def __enter__(self) -> System:
        with contextlib.ExitStack() as stack:
            self._broker = stack.enter_context(RabbitMq(self._folder / 'rabbitmq'))
            self._database = stack.enter_context(DATABASES[self._database_kind](durable=True))
            self.url = url = self._database.create_database()
            for server in self.servers:
                stack.callback(server.remove)
                server.start()
            self.statements = Statements(url)
            stack.callback(self.statements.close)
            self.storage = Storage(url)
            stack.callback(self.storage.close)
            cfg.CONF([])
            self.messaging = messaging = Messaging(cfg.CONF, 'benchmark', 60.0, self._broker.url)
            stack.callback(messaging.stop)
            self.central = Central(self.storage, PoolManagerClient(messaging), Threads(), settings=central_settings(
                **self._central))
            stack.callback(self.central.stop)
            sections = [server.section(server_id, self.minidns, **(
                {'tsig_key': f'{key.name}:{key.algorithm}:{key.secret}'} if key else {}))
                for server, server_id, key in zip(self.servers, self.server_ids, self._keys)]
            self.stack = Stack(self._folder / 'services', sections, url, self._broker.url,
                               self._concurrency, manager=self._manager, minidns_port=self.minidns[0].port,
                               api=self._api)
            stack.enter_context(self.stack)
            for number in range(2, len(self.minidns) + 1):
                self._launch_pair(number)
            self._end = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.close()

    def set_threshold(self, percentage: int) -> None:
        self.stack.set_threshold(percentage)

    def _launch_pair(self, number: int) -> None:
        """Another pool manager and another MiniDNS."""
        config = self.stack.folder / f'pair-{number}.conf'
        first, own = (f'\nlisten = {endpoint}\n' for endpoint in (self.minidns[0], self.minidns[number - 1]))
        config.write_text(self.stack.config.read_text().replace(first, own))
        with concurrent.futures.ThreadPoolExecutor() as starting:
            list(starting.map(lambda service: self.stack.launch(service, key=f'{service} {number}', config=config),
                              ('minidns', 'manager')))

    @property
    def endpoints(self) -> list[Endpoint]:
        return [Endpoint(server.host, server.port) for server in self.servers]

    @property
    def processes(self) -> dict[str, int]:
        services = {name: process.pid for name, process in self.stack.processes.items()}
        servers = {f'{make} {number}': each.pid for number, (make, each) in enumerate(zip(self.makes, self.servers), 1)}
        return {**services, **servers, type(self._database).__name__: self._database.pid,
                'RabbitMQ': self._broker.pid, 'clients': os.getpid()}


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
        began = time.monotonic()
        end = began + seconds
        while True:
            found = self._storage.read(lambda tx: tx.execute(query).one())
            now = time.monotonic()
            self.asked += 1
            reported = status is not Status.ACTIVE or found.reported_serial == serial
            if found.status is status and found.serial == serial and reported:
                return now
            assert now < end, f'{found} after {seconds:g} s, not {status} at {serial}\n{self._system.stack.logs()}'
            time.sleep(max(_WATCH_ONE_PAUSE, (now - began) / _WATCH_ONE_SHARE))

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
            asked = time.monotonic()
            found = self._storage.read(lambda tx: tx.execute(query).scalar_one())
            now = time.monotonic()
            self.asked += 1
            if found == count:
                return now
            assert now < end, f'{found} of {count} came to rest within {seconds:g} s\n{self._system.stack.logs()}'
            time.sleep(max(_WATCH_PAUSE, _WATCH_SHARE * (now - asked)))


def names(tag: str, count: int) -> list[str]:
    """Names of domains that belong together."""
    return [f'{tag}-{number:05}.example.com.' for number in range(count)]


def _tagged(tag: str) -> Any:
    return domains.c.name.like(f'{tag}-%')
