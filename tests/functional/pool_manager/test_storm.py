"""A server restarts empty and is owed every zone, while changes go on: these are not starved, and nothing grows.

MiniDNS may serve few connections and keep next to no zones; one of the two servers is enough for a change.
"""

from __future__ import annotations

import contextlib
import itertools
import pathlib
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from designate_pool.model import Endpoint, new_id
from designate_pool.storage.sql.database import Storage, Tx
from testing.bind import Named
from testing.knot import Knotd
from testing.processes import free_port, wait_until
from testing.stack import QUICK, Stack
from testing.zones import insert_zone

NAMES = [f'storm{number}.example.com.' for number in range(120)]
SERIAL = 7
TEXT = f'@ 300 SOA ns1.example.org. hostmaster.example.com. {SERIAL} 3600 600 86400 900\n@ 300 NS ns1.example.org.\n'
CONNECTIONS = 12
#: Seconds until a change is ACTIVE, and until all zones are served.
DEADLINE, PATIENCE = 15.0, 90.0


class Pool:
    """A Knot that stays and a BIND that restarts, with the services in one process."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.steady, self.restarted = Knotd(folder / 'knot'), Named(folder / 'named', transfers=20)
        self.ids = {server: str(uuid.UUID(new_id())) for server in (self.steady, self.restarted)}
        primary = Endpoint('127.0.0.1', free_port())
        sections = [server.section(key, [primary], call_timeout=4) for server, key in self.ids.items()]
        self.stack = Stack(folder / 'stack', sections, f'sqlite:///{folder}/pool.sqlite', threshold=50,
                           manager={**QUICK, 'periodic_sync_interval': '120'}, minidns_port=primary.port,
                           minidns={'tcp_connections': str(CONNECTIONS), 'packed_zones_bytes': '1000'})

    def sockets(self) -> int:
        """TCP connections that MiniDNS has accepted."""
        process = psutil.Process(self.stack.processes['all'].pid)
        return sum(each.laddr.port == self.stack.minidns_port and each.status != psutil.CONN_LISTEN
                   for each in process.net_connections('tcp'))

    @contextlib.contextmanager
    def counted_sockets(self) -> Iterator[list[int]]:
        """What :meth:`sockets` says, again and again; first of all with one connection, which it has to see."""
        counts: list[int] = []
        over = threading.Event()

        def count() -> None:
            while not over.is_set():
                counts.append(self.sockets())

        with socket.create_connection(('127.0.0.1', self.stack.minidns_port)):
            wait_until(self.sockets, 'a connection is counted')
        counting = threading.Thread(target=count)
        counting.start()
        try:
            yield counts
        finally:
            over.set()
            counting.join()

    def served(self, server: Any, meanwhile: Callable[[], object] = bool) -> bool:
        """Wait until *server* serves every zone, doing something *meanwhile* again and again."""
        left = set(NAMES)

        def look() -> bool:
            meanwhile()
            left.difference_update([name for name in left if server.serial(name) == SERIAL])
            return not left

        return wait_until(look, f'all of {len(NAMES)} zones are served', PATIENCE)


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    made = Pool(tmp_path_factory.mktemp('storm'))
    with contextlib.ExitStack() as end:
        for server in made.ids:
            end.callback(server.remove)
            server.start()
        end.enter_context(made.stack)
        with contextlib.closing(Storage(made.stack.database_url)) as storage:
            storage.run(_insert)
        for key in made.ids.values():  # the pool manager may have found by itself what is missing
            made.stack.request('POST', f'/v2/servers/{key}/resync', json={'fix': True})
        for server in made.ids:
            made.served(server)
        yield made


def _insert(tx: Tx) -> None:
    for name in NAMES:
        insert_zone(tx, TEXT, name=name)


def test_changes_go_on_while_a_server_that_restarted_empty_is_healed(pool: Pool) -> None:
    stack = pool.stack
    zone = stack.create_zone('changed.example.com.')
    stack.wait_for(zone['id'])
    record = stack.create_recordset(zone['id'], 'www.changed.example.com.', 'A', '192.0.2.1')
    stack.wait_for(zone['id'])
    numbers = itertools.count(2)

    def change() -> None:
        address = f'192.0.2.{next(numbers) % 250}'
        stack.set_recordset(zone['id'], record['id'], address)
        serial = stack.wait_for(zone['id'], seconds=DEADLINE)['serial']
        wait_until(lambda: pool.steady.serial('changed.example.com.') == serial, 'the steady server has it', DEADLINE)

    pool.restarted.forget_zones()
    assert pool.restarted.serial(NAMES[0]) is None
    with pool.counted_sockets() as counts:
        pool.stack.request('POST', f'/v2/servers/{pool.ids[pool.restarted]}/resync', 202, json={'fix': True})
        pool.served(pool.restarted, change)
    # As many again wait, since both servers have this address, and one more for room.
    assert max(counts) <= 2 * CONNECTIONS + 1
