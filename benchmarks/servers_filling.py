"""A server joins the pool of a running system: the four services as processes, RabbitMQ, MariaDB."""

from __future__ import annotations

import contextlib
import os
import pathlib
import time
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from benchmarks.measure import Processors
from benchmarks.serials import await_serials
from benchmarks.servers_makes import MAKES
from benchmarks.servers_primary import StaticPrimary
from benchmarks.servers_rounds import Round
from benchmarks.servers_zones import SERIAL, insert
from designate_pool.model import Endpoint, ServerState, new_id
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import pool_servers
from testing.databases import MariaDB
from testing.processes import free_port
from testing.rabbitmq import RabbitMq
from testing.stack import Stack

_SECONDS = 900.0
_WATCH_PAUSE = 0.05


class Filling:
    """What is needed around the systems.

    :param static: the server that is in the pool from the start, and serves all domains
    """

    def __init__(self, folder: pathlib.Path, static: StaticPrimary, concurrency: str) -> None:
        self._folder = folder
        self._static = static
        self._concurrency = concurrency

    def __enter__(self) -> Filling:
        with contextlib.ExitStack() as stack:
            self._broker = stack.enter_context(RabbitMq(self._folder / 'rabbitmq'))
            self._database = stack.enter_context(MariaDB(durable=True))
            self._end = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.close()

    def fill(self, word: str, names: Sequence[str]) -> Round:
        """From the SIGHUP that has a server of a make join until it is active, with all of *names*, in a new system."""
        make, server_ids, minidns = MAKES[word], (new_id(), new_id()), Endpoint('127.0.0.1', free_port())
        first = self._static.knot.section(server_ids[0], [minidns])
        url = self._database.create_database()
        server = make.new(self._folder / word)
        with contextlib.ExitStack() as stack:
            stack.callback(server.remove)
            server.start()
            second = server.section(server_ids[1], [minidns])
            system = stack.enter_context(Stack(
                self._folder / f'services-{word}', [first], url, self._broker.url, self._concurrency, manager={},
                minidns_port=minidns.port))
            storage = stack.enter_context(contextlib.closing(Storage(url)))
            insert(storage, names, server_ids[0])
            clock = Processors({'server': server.pid, 'MariaDB': self._database.pid, 'RabbitMQ': self._broker.pid,
                                **{name: each.pid for name, each in system.processes.items()}, 'clients': os.getpid()})
            before = clock.read()
            started = time.monotonic()
            system.reload([first, second])
            ended = _await_active(storage, server_ids[1], system)
            cpu = clock.since(before)
            await_serials([Endpoint(server.host, server.port)], dict.fromkeys(names, SERIAL), 5.0)
        return Round(ended - started, ended - started, cpu)


def _await_active(storage: Storage, server_id: str, system: Stack) -> float:
    """The monotonic time at which the server has joined."""
    query = sa.select(pool_servers.c.state, pool_servers.c.filled).where(pool_servers.c.id == server_id)
    end = time.monotonic() + _SECONDS
    while True:
        found: Any = storage.read(lambda tx: tx.execute(query).first())
        now = time.monotonic()
        if found is not None and found.state is ServerState.ACTIVE:
            return now
        assert now < end, f'{found} after {_SECONDS:g} s\n{system.logs()}'
        time.sleep(_WATCH_PAUSE)
