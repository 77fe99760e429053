"""Servers that were given a zone elsewhere, at a serial ahead of all that was ever issued: not counted, and mended."""

from __future__ import annotations

import contextlib
import json
import pathlib
import uuid
from collections.abc import Iterator

import pytest

from designate_pool.model import Endpoint
from testing.bind import Named
from testing.processes import wait_until
from testing.stack import QUICK, Stack
from tests.fixtures.nameservers import LocalSecondary, Primary, SecondaryServer, local_secondaries, zone_text

AHEAD = 1000


class Pool:
    """Four small name servers, of which three are needed, and somebody else's primary."""

    def __init__(self, folder: pathlib.Path, servers: list[LocalSecondary], elsewhere: Primary) -> None:
        self.servers, self.elsewhere = servers, elsewhere
        self.ids = [server.id for server in servers]
        self.stack = Stack(folder / 'stack', [server.section() for server in servers],
                           f'sqlite:///{folder}/pool.sqlite', threshold=75,
                           manager={**QUICK, 'periodic_sync_interval': '1', 'retry_backoff_maximum': '1'})

    def create(self, name: str) -> tuple[str, str]:
        zone, recordset = self.stack.begin_zone(name)
        self.stack.wait_for(zone)
        wait_until(lambda: self.serials(name) == [self.stack.zone(zone)['serial']] * 4, 'all serve it')
        return zone, recordset

    def serials(self, name: str) -> list[int | None]:
        return [server.serial(name) for server in self.servers]

    def give(self, name: str, serial: int, *numbers: int, stuck: bool = False) -> None:
        """Have these servers fetch other contents from elsewhere, and give them their primary back.

        :param stuck: whether they then fetch nothing any more
        """
        self.elsewhere.publish(name, zone_text(serial, 'www A 192.0.2.254'))
        for number in numbers:
            self.servers[number].add_zone(name, [self.elsewhere.endpoint])
        for number in numbers:
            wait_until(lambda: self.servers[number].serial(name) == serial, 'it has what is elsewhere')
            if stuck:
                self.servers[number].set_fault('stale')
            self.servers[number].add_zone(name, [Endpoint('127.0.0.1', self.stack.minidns_port)])


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    with local_secondaries(4) as servers, Primary() as elsewhere:
        made = Pool(tmp_path_factory.mktemp('ahead'), servers, elsewhere)
        with made.stack:
            yield made


def test_the_audit_finds_what_is_ahead_and_has_it_fetched_anew(pool: Pool) -> None:
    name = 'found.example.com.'
    zone, _ = pool.create(name)
    serial = pool.stack.zone(zone)['serial']
    pool.give(name, serial + AHEAD, 1)
    wait_until(lambda: pool.serials(name) == [serial] * 4, 'it has the pool\'s contents again', 60)
    wait_until(lambda: pool.stack.servers(zone)[pool.ids[1]]['current'], 'that is known')
    shown = pool.stack.servers(zone)[pool.ids[1]]
    assert (shown['serial'], shown['diverged'], shown['last_error']) == (serial, False, None)
    assert f'is ahead of {serial}, the newest that the pool ever issued' in pool.stack.processes['all'].log.read_text()


def test_what_is_ahead_and_stays_is_not_counted_and_gets_a_serial_above_it(pool: Pool) -> None:
    name = 'stays.example.com.'
    zone, recordset = pool.create(name)
    ahead = pool.stack.zone(zone)['serial'] + AHEAD
    pool.give(name, ahead, 0, 3, stuck=True)
    changed = pool.stack.set_recordset(zone, recordset, '192.0.2.2')
    for number in (0, 3):
        wait_until(lambda: pool.stack.servers(zone)[pool.ids[number]]['diverged'], 'it has diverged')
        assert f'serves serial {ahead}' in pool.stack.servers(zone)[pool.ids[number]]['last_error']
        assert not pool.stack.servers(zone)[pool.ids[number]]['current']
    issued = wait_until(lambda: (now := pool.stack.zone(zone)['serial']) > ahead and now, 'a serial above it is issued')
    assert changed['status'] == 'PENDING' and pool.stack.zone(zone)['status'] != 'ACTIVE'
    wait_until(lambda: [pool.servers[number].serial(name) for number in (1, 2)] == [issued] * 2, 'the others follow')
    assert pool.stack.zone(zone)['status'] != 'ACTIVE'
    for number in (0, 3):
        pool.servers[number].clear_faults()
    pool.stack.wait_for(zone)
    serial = pool.stack.zone(zone)['serial']
    wait_until(lambda: pool.serials(name) == [serial] * 4, 'all serve the change')
    for number in (0, 3):
        wait_until(lambda: pool.stack.servers(zone)[pool.ids[number]]['current'], 'it counts again')


NAMES = ('a.example.com.', 'b.example.com.', 'c.example.com.')


def test_a_zone_that_was_removed_by_hand_is_found_and_mended(tmp_path: pathlib.Path) -> None:
    with contextlib.ExitStack() as running:
        named, *small = [running.enter_context(server) for server in (
            Named(tmp_path / 'named'), *(SecondaryServer(tmp_path / f'ns{number}', keep=True) for number in (1, 2)))]
        stack = running.enter_context(Stack(
            tmp_path / 'stack', [each.section(str(uuid.uuid4()), call_timeout=2) for each in (named, *small)],
            f'sqlite:///{tmp_path}/pool.sqlite', threshold=66,
            manager={**QUICK, 'periodic_sync_interval': '1', 'poll_max_retries': '1', 'circuit_failures': '1'}))
        for zone in [stack.create_zone(name)['id'] for name in NAMES]:
            stack.wait_for(zone)
        stack.wait_for_round('SERIALS', zones=3, asked=9, findings=0, coverage=1)
        assert named.command(f'delzone {NAMES[0]}').result == 0
        wait_until(lambda: named.query(NAMES[0]).answer, 'BIND serves it again', 60)
        stack.wait_for_round('SERIALS', zones=3, asked=9, findings=0, coverage=1)
        label = f'bind9:{named.host}:{named.port}'
        found = json.loads(stack.command('pool', 'audit', 'findings', '-f', 'json'))[0]
        assert (found['zone_name'], found['server_name'], found['mended']) == (NAMES[0], label, True)
        assert found['done'].startswith('the server is polled again') and found['request_id'].startswith('audit-')
        log = stack.processes['all'].log.read_text()
        for line in (f'{NAMES[0]} on {label}: the audit of serials found that', f'CREATE of {NAMES[0]} at serial'):
            assert any(line in each and f'[{found["request_id"]}]' in each for each in log.splitlines())
        explained = stack.command('zone', 'explain', NAMES[0])
        assert 'Found at' not in explained, 'what is repaired is not to be explained'
        assert f'{NAMES[0]} on {label}' in stack.command('status').partition('FOUND BY AUDITS')[2]
        lines = stack.command('pool', 'audit', '-f', 'csv', '-c', 'kind', '-c', 'round', '-c', 'zones').splitlines()
        assert '"SERIALS","last",3' in lines
