"""A server restarts empty and is owed every zone, while changes go on: these are not starved.

MiniDNS may serve few connections and keep next to no zones; one of the two servers is enough for a change.
"""

from __future__ import annotations

import contextlib
import itertools
import pathlib
import uuid
from collections.abc import Callable

from designate_pool.model import Endpoint, new_id
from designate_pool.storage.sql.database import Storage, Tx
from testing.bind import Named
from testing.daemon import Daemon
from testing.knot import Knotd
from testing.processes import free_port, wait_until
from testing.stack import QUICK, Stack
from testing.zones import insert_zone

NAMES = [f'storm{number}.example.com.' for number in range(120)]
SERIAL = 7
TEXT = f'@ 300 SOA ns1.example.org. hostmaster.example.com. {SERIAL} 3600 600 86400 900\n@ 300 NS ns1.example.org.\n'
#: Seconds until a change is ACTIVE, and until all zones are served.
DEADLINE, PATIENCE = 15.0, 90.0


def wait_until_served(server: Daemon, meanwhile: Callable[[], object] = bool) -> None:
    """Wait until *server* serves every zone, doing something *meanwhile* again and again."""
    left = set(NAMES)

    def look() -> bool:
        meanwhile()
        left.difference_update([name for name in left if server.serial(name) == SERIAL])
        return not left

    wait_until(look, f'all of {len(NAMES)} zones are served', PATIENCE)


def insert_zones(tx: Tx) -> None:
    for name in NAMES:
        insert_zone(tx, TEXT, name=name)


def test_changes_go_on_while_a_server_that_restarted_empty_is_healed(tmp_path: pathlib.Path) -> None:
    steady, restarted = Knotd(tmp_path / 'knot'), Named(tmp_path / 'named', transfers=20)
    ids = {server: str(uuid.UUID(new_id())) for server in (steady, restarted)}
    primary = Endpoint('127.0.0.1', free_port())
    stack = Stack(tmp_path / 'stack', [server.section(key, [primary], call_timeout=4) for server, key in ids.items()],
                  f'sqlite:///{tmp_path}/pool.sqlite', threshold=50, minidns_port=primary.port,
                  manager={**QUICK, 'periodic_sync_interval': '120'},
                  minidns={'tcp_connections': '12', 'packed_zones_bytes': '1000'})
    with steady, restarted, stack:
        with contextlib.closing(Storage(stack.database_url)) as storage:
            storage.run(insert_zones)
        for key in ids.values():  # the pool manager may have found by itself what is missing
            stack.request('POST', f'/v2/servers/{key}/resync', json={'fix': True})
        for server in ids:
            wait_until_served(server)
        zone = stack.create_zone('changed.example.com.')['id']
        stack.wait_for(zone)
        record = stack.create_recordset(zone, 'www.changed.example.com.', 'A', '192.0.2.1')['id']
        stack.wait_for(zone)
        numbers = itertools.count(2)

        def change() -> None:
            stack.set_recordset(zone, record, f'192.0.2.{next(numbers) % 250}')
            serial = stack.wait_for(zone, seconds=DEADLINE)['serial']
            wait_until(lambda: steady.serial('changed.example.com.') == serial, 'the steady server has it', DEADLINE)

        restarted.forget_zones()
        assert restarted.serial(NAMES[0]) is None
        stack.request('POST', f'/v2/servers/{ids[restarted]}/resync', 202, json={'fix': True})
        wait_until_served(restarted, change)
