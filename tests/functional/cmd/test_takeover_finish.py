"""``designate-pool-manage designate finish``: two BINDs that get their zones from Designate get them from here."""

from __future__ import annotations

import contextlib
import pathlib
import threading
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from designate_pool.storage.designate import tables
from designate_pool.storage.sql.database import Storage
from testing import designate as theirs
from testing.bind import Named
from testing.databases import upgraded_sqlite
from testing.processes import wait_until
from testing.stack import Stack
from tests.fixtures.nameservers import Primary, zone_text

ZONES = [f'zone-{number}.example.com.' for number in range(8)]
IDS = ('11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222')


class Monitor:
    """Asks servers for the serials of zones, all the time."""

    def __init__(self, servers: list[Named]) -> None:
        self.servers = servers
        self.faults: list[str] = []
        self.rounds = 0
        self._stop = threading.Event()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _run(self) -> None:
        last: dict[tuple[int, str], int] = {}
        while not self._stop.wait(0.02):
            for number, server in enumerate(self.servers):
                for name in ZONES:
                    serial = server.serial(name)
                    if serial is None or serial < last.get((number, name), 0):
                        self.faults.append(f'{server.driver} {number}: {name} at {serial}')
                    else:
                        last[number, name] = serial
            self.rounds += 1


@pytest.fixture
def designate(tmp_path: pathlib.Path, primary: Primary) -> Iterator[Storage]:
    """Designate's database; its MiniDNS is *primary*."""
    found = theirs.new(f'sqlite:///{tmp_path}/designate.sqlite')
    (tmp_path / 'designate.conf').write_text(f'[storage:sqlalchemy]\nconnection = {found.engine.url}\n')
    for name in ZONES:
        found.run(lambda tx: theirs.insert_zone(tx, name, {('www', 'A'): ['192.0.2.1']}))
        primary.publish(name, zone_text(theirs.SERIAL, 'www A 192.0.2.1'))
    yield found
    found.close()


@pytest.fixture
def binds(named: Callable[..., Named], designate: Storage, primary: Primary) -> list[Named]:
    """Two BINDs to which Designate has added its zones."""
    found = [named('one'), named('two')]
    for each in found:
        for name in ZONES:
            added = each.command(
                f'addzone {name.rstrip(".")}  {{ type slave; masters {{ 127.0.0.1 port {primary.port};}}; '
                f'file "slave.{name}00000000-0000-4000-8000-000000000000"; }};')
            assert added.result == 0, added
    wait_until(lambda: all(each.serial(name) == theirs.SERIAL for each in found for name in ZONES),
               'they have the zones')
    return found


@pytest.fixture
def stack(tmp_path: pathlib.Path, binds: list[Named]) -> Iterator[Stack]:
    """Ours, with a copy of the zones; no program runs yet."""
    found = Stack(tmp_path / 'stack', [each.section(server_id, call_timeout=2) for each, server_id in zip(binds, IDS)],
                  upgraded_sqlite(tmp_path / 'ours.sqlite'))
    try:
        yield found
    finally:
        found.stop()


def designate_command(stack: Stack, verb: str, *words: str) -> tuple[int, str]:
    return stack._manage('designate', verb, '--designate-conf', str(stack.folder.parent / 'designate.conf'), *words)


def test_the_servers_are_turned_and_serve_all_the_time(stack: Stack, binds: list[Named], designate: Storage,
                                                       primary: Primary) -> None:
    code, told = designate_command(stack, 'copy')
    assert code == 0, told
    code, told = designate_command(stack, 'finish')
    assert (code, 'no minidns of the pool default runs; start it with this configuration' in told) == (1, True)
    stack.launch('all')
    zone = designate.read(lambda tx: tx.execute(sa.select(tables.zones.c.id).where(
        tables.zones.c.name == ZONES[0])).scalar_one())
    designate.run(lambda tx: tx.execute(sa.update(tables.zones).values(status='PENDING', action='UPDATE').where(
        tables.zones.c.id == zone)))
    code, told = designate_command(stack, 'finish', '--quiet', '0.1')
    assert (code, f'1 zones are not settled in Designate: {ZONES[0]}; stop its API' in told) == (1, True)
    designate.run(theirs.settle, zone)
    code, told = designate_command(stack, 'finish', '--quiet', '0.1')
    assert code == 1
    assert (f'serves 1 zones otherwise at {binds[0].host}:{binds[0].port}: {ZONES[0]} at {theirs.SERIAL} in place of '
            in told)
    assert f'port {primary.port}' in binds[0].command(f'showzone {ZONES[0]}').text
    primary.publish(ZONES[0], zone_text(theirs.SERIAL + 1, 'www A 192.0.2.1'))
    for each in binds:
        each.command(f'refresh {ZONES[0]}')
    wait_until(lambda: all(each.serial(ZONES[0]) == theirs.SERIAL + 1 for each in binds), 'they have the last change')
    monitor = Monitor(binds)
    with monitor.running():
        code, told = designate_command(stack, 'finish', '--quiet', '0.1')
        assert (code, told.splitlines()[-1]) == (0, 'All servers get their zones from here; each serves all 8 zones at '
                                                    'the serials that they have here.')
        for each in binds:
            for name in ZONES:
                shown = each.command(f'showzone {name}').text
                assert f'port {stack.minidns_port}' in shown and f'port {primary.port}' not in shown
        stack.create_recordset(zone, f'new.{ZONES[0]}', 'A', '192.0.2.9')
        stack.wait_for(zone)
        rounds = monitor.rounds
        wait_until(lambda: monitor.rounds > rounds + 1, 'the monitor has asked once more')
    assert monitor.faults == []
    for each in binds:
        assert each.texts(f'new.{ZONES[0]}', 'A') == ['192.0.2.9']
    code, told = designate_command(stack, 'follow', '--once')
    assert (code, 'get its zones from here already' in told) == (1, True)
    assert designate_command(stack, 'finish')[0] == 0
