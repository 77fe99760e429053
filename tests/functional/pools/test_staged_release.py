"""Staged releases: the canary gets a change first, and the others only when it serves that as it should."""

from __future__ import annotations

import base64
import itertools
import pathlib
import re
import threading
import uuid
from collections.abc import Callable, Iterator

import pytest

from designate_pool.model import Endpoint, TsigKey
from testing.databases import PostgreSQL
from testing.processes import free_port, wait_until
from tests.fixtures.nameservers import SecondaryServer
from tests.fixtures.staged import StagedPool

NAMES = ('canary', 'second', 'third', 'fourth')


class Staged(StagedPool):
    """A pool of four servers: a canary, then a half of them, then all."""

    def __init__(self, folder: pathlib.Path, database_url: str = '', **manager: str) -> None:
        keys = [TsigKey(f'{name}.example.com.', 'hmac-sha256', base64.b64encode(name.encode() * 8).decode())
                for name in NAMES]
        self.servers: dict[str, SecondaryServer] = {
            name: SecondaryServer(folder / name, keep=True, keys=[key]) for name, key in zip(NAMES, keys)}
        port = free_port()
        sections = [server.section(str(uuid.uuid4()), [Endpoint('127.0.0.1', port)],
                                   call_timeout=4, tsig_key=f'{key.name}:{key.algorithm}:{key.secret}')
                    for server, key in zip(self.servers.values(), keys)]
        canary = f'secondary:127.0.0.1:{self.servers["canary"].port}'
        super().__init__(folder, port, self.servers, sections, database_url=database_url,
                         release=f'canary {canary}; 50 %; all', **{'release_bake': '1.5', **manager})


@pytest.fixture(scope='module')
def database() -> Iterator[PostgreSQL]:
    with PostgreSQL() as server:
        yield server


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory, database: PostgreSQL) -> Iterator[Staged]:
    with Staged(tmp_path_factory.mktemp('staged'), database.create_database()) as running:
        yield running
        running.stack.must_be_sound()


def in_stages(seen: list[list[str]]) -> None:
    """The canary had it first, then one more, and all at the end."""
    seen = [now for now, _ in itertools.groupby(seen) if now]
    assert [*seen[:2], seen[-1]] == [['canary'], ['canary', 'second'], list(NAMES)]


def test_a_change_goes_from_the_canary_to_all(pool: Staged, database: PostgreSQL) -> None:
    name = 'changed.example.com.'
    zone, www = pool.begin(name)
    assert pool.watch(zone, name, '192.0.2.1')[-1] == list(NAMES)
    pool.stack.set_recordset(zone, www, '192.0.2.2')
    wait_until(lambda: pool.serving(name, '192.0.2.2') == ['canary'], 'the canary has it')
    database.kill()  # between two stages
    database.start()
    in_stages([['canary'], *pool.watch(zone, name, '192.0.2.2')])


class Fragile(threading.Thread):
    """Kills the canary as soon as it serves an address, each time: a make that dies of a certain record."""

    def __init__(self, pool: Staged, name: str, address: str) -> None:
        super().__init__(daemon=True)
        self.killed = 0
        self._look = lambda: pool.servers['canary'].addresses(name) == [address]
        self._kill = pool.servers['canary'].kill
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.02):
            if self._look():
                self._kill()
                self.killed += 1
                return

    def __exit__(self, *details: object) -> None:
        self._over.set()
        self.join()

    def __enter__(self) -> Fragile:
        self.start()
        return self


def held(pool: Staged, zone: str, seconds: float = 30) -> str:
    """Why the release is held, once it is."""
    wait_until(lambda: (pool.stack.zone(zone)['release'] or {}).get('held'), 'the release is held', seconds)
    return str(pool.stack.zone(zone)['release']['held'])


def wait_for_canary(pool: Staged, zone: str) -> None:
    """Until the pool knows that the canary serves the newest serial."""
    label = f'secondary:127.0.0.1:{pool.servers["canary"].port}'
    wait_until(lambda: any(server['name'] == label and server['current'] and server['released'] and (
        server['serial'] == pool.stack.zone(zone)['serial']) for server in pool.stack.request(
            'GET', f'/v2/zones/{zone}/servers', 200)['servers']), 'the canary was seen to serve it')


@pytest.mark.parametrize('verb', ['continue', 'abort'])
def test_a_canary_that_dies_of_a_record_keeps_it_from_all_others(pool: Staged, verb: str) -> None:
    name, other = f'dies.{verb}.example.com.', f'other.{verb}.example.com.'
    zone, www = pool.create(name)
    beside, www_beside = pool.create(other)
    with Fragile(pool, name, '192.0.2.66') as fragile:
        pool.stack.set_recordset(zone, www, '192.0.2.66')
        pool.stack.set_recordset(beside, www_beside, '192.0.2.2')

        def is_held() -> bool:
            assert pool.serving(name, '192.0.2.1')[-3:] == ['second', 'third', 'fourth']
            return bool(fragile.killed) and pool.stack.zone(zone)['release']['held'] is not None

        wait_until(is_held, 'the release is held', 60)
    assert 'secondary:127.0.0.1' in held(pool, zone)
    waited = pool.stack.request('GET', f'/v2/zones/{zone}/wait?timeout=30', 200)
    assert (waited['failed'], waited['timed_out'], waited['seconds'] < 5) == (True, False, True)
    explained = pool.stack.request('GET', f'/v2/zones/{zone}/explain', 200)
    assert explained['summary'].startswith(f'{name} is ERROR, being changed: its release is held at stage 1: secondary')
    assert f"'designate-pool zone release abort {name}'" in explained['advice'][0]
    pool.servers['canary'].start()
    wait_until(lambda: len(pool.serving(name, '192.0.2.1')) == 4, 'the canary is turned back')
    assert 'held' in pool.stack.command('zone', 'release', 'show', name)
    pool.stack.request('POST', f'/v2/zones/{beside}/tasks/continue_release', 202)
    assert pool.watch(beside, other, '192.0.2.2')[-1] == list(NAMES)
    pool.stack.command('zone', 'release', verb, name)
    address = '192.0.2.66' if verb == 'continue' else '192.0.2.1'
    assert pool.watch(zone, name, address)[-1] == list(NAMES)
    pool.stack.set_recordset(zone, www, '192.0.2.3')  # the next round
    in_stages(pool.watch(zone, name, '192.0.2.3'))


def until(pool: Staged, name: str, count: int, kill: Callable[[int], None]) -> list[list[str]]:
    """Who serves the zone, each time that it changes, until so many do.

    :param kill: called after each change with how many serve it
    """
    seen: list[list[str]] = []

    def look() -> bool:
        now = pool.serving(name, '192.0.2.1')
        if not seen or seen[-1] != now:
            seen.append(now)
            kill(len(now))
        return len(now) == count

    wait_until(look, f'{count} servers serve it', 90)
    return seen


def test_a_zone_is_created_and_deleted_in_stages_also_when_all_is_killed_between_them(
        pool: Staged, database: PostgreSQL) -> None:
    name = 'created.example.com.'
    zone, _ = pool.begin(name)
    killed: list[int] = []

    def kill_all(serving: int) -> None:
        if serving in (1, 2) and len(killed) < 2:
            killed.append(serving)
            pool.stack.kill('all')
            pool.stack.launch('all')

    in_stages(until(pool, name, len(NAMES), kill_all))
    pool.stack.wait_for(zone)
    pool.stack.delete_zone(zone)

    def kill_database(serving: int) -> None:
        if serving == 2:
            database.kill()
            database.start()

    left = [now for now in until(pool, name, 0, kill_database) if now != list(NAMES)]  # before the canary deletes it
    assert left[:2] == [['second', 'third', 'fourth'], ['third', 'fourth']]
    pool.stack.wait_for(zone, 'gone')


def test_an_aborted_creation_is_deleted_and_an_aborted_deletion_restored(pool: Staged) -> None:
    kept, _ = pool.create('kept.example.com.')
    created, _ = pool.begin('new.example.com.')
    wait_until(lambda: pool.serving('new.example.com.', '192.0.2.1') == ['canary'], 'the canary has it')
    pool.stack.request('POST', f'/v2/zones/{created}/tasks/abort_release', 202)
    pool.stack.wait_for(created, 'gone')
    pool.stack.delete_zone(kept)
    wait_until(lambda: 'canary' not in pool.serving('kept.example.com.', '192.0.2.1'), 'the canary has deleted it')
    pool.stack.request('POST', f'/v2/zones/{kept}/tasks/abort_release', 202)
    pool.stack.wait_for(kept)
    wait_until(lambda: len(pool.serving('kept.example.com.', '192.0.2.1')) == 4, 'all serve it again')


def test_a_query_that_is_not_answered_holds_a_release(tmp_path: pathlib.Path) -> None:
    with Staged(tmp_path, release_queries='@ MX, www A') as pool:
        zone, www = pool.create('asked.example.com.')
        pool.servers['canary'].control.ask('set_fault', fault='altered@asked.example.com.')
        pool.stack.set_recordset(zone, www, '192.0.2.2')
        assert 'secondary' in held(pool, zone)
        pool.servers['canary'].control.ask('clear_faults')
        pool.stack.command('zone', 'release', 'continue', 'asked.example.com.')
        in_stages(pool.watch(zone, 'asked.example.com.', '192.0.2.2'))
        pool.stack.set_recordset(zone, www, '192.0.2.3')
        wait_for_canary(pool, zone)
        pool.servers['canary'].control.ask('set_fault', fault='servfail@asked.example.com.')
        assert 'SERVFAIL' in held(pool, zone), 'whether it is verified first or polled'


def test_a_release_goes_on_in_the_stages_that_the_configuration_has_now(tmp_path: pathlib.Path) -> None:
    with Staged(tmp_path, release_bake='3600') as pool:
        def configure(release: str) -> None:
            config = pool.stack.config
            config.write_text(re.sub('^release = .*$', release, config.read_text(), flags=re.MULTILINE))
            pool.stack.kill('all')
            pool.stack.launch('all')

        name = 'unstaged.example.com.'
        zone, www = pool.begin(name)
        for count in (1, 2):
            wait_until(lambda: pool.serving(name, '192.0.2.1') == list(NAMES[:count]), 'the stage has it')
            pool.stack.command('zone', 'release', 'continue', name)
        pool.stack.wait_for(zone)
        pool.stack.set_recordset(zone, www, '192.0.2.2')
        wait_for_canary(pool, zone)
        # It is of the second stage from now on, keeps what it has, and is given what that may have when it loses it.
        configure(f'release = canary secondary:127.0.0.1:{pool.servers["second"].port}; 50 %; all')
        wait_until(lambda: pool.serving(name, '192.0.2.2') == ['canary', 'second'], 'the new canary has it')
        pool.servers['canary'].forget_zones()
        wait_until(lambda: pool.servers['canary'].addresses(name) == ['192.0.2.1'], 'it has the zone again')
        configure('')
        assert pool.watch(zone, name, '192.0.2.2')[-1] == list(NAMES)
