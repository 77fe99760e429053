"""The audit of serials as an operator sees it: a BIND and two small name servers, and what becomes of drift.

Nothing else looks at what is at rest, so whatever is mended here was found by it.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from designate_pool.storage.sql.database import Storage
from testing.bind import Named
from testing.processes import binary, wait_until
from testing.rows import default_pool_id
from testing.stack import QUICK, Stack
from tests.fixtures.nameservers import SecondaryServer

NAMES = ('a.example.com.', 'b.example.com.', 'c.example.com.')


class Pool:
    """One process with all services, and three servers."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.named = Named(folder / 'named')
        self.small = [SecondaryServer(folder / f'ns{number}', keep=True) for number in (1, 2)]
        sections = [each.section(str(uuid.uuid4()), call_timeout=2) for each in (self.named, *self.small)]
        url = f'sqlite:///{folder}/pool.sqlite'
        manager = {**QUICK, 'periodic_sync_interval': '1', 'poll_max_retries': '1', 'circuit_failures': '1'}
        self.stack = Stack(folder / 'stack', sections, url, threshold=66, manager=manager)
        self.storage = Storage(url)

    def start(self) -> None:
        for each in (self.named, *self.small):
            each.start()
        self.stack.start()
        for zone in [self.stack.create_zone(name)['id'] for name in NAMES]:
            self.stack.wait_for(zone)

    def stop(self) -> None:
        self.stack.stop()
        for each in (self.named, *self.small):
            each.stop()
        self.storage.close()

    def last(self) -> dict[str, Any]:
        """The last round, by the API; empty while there is none."""
        found = self.stack.request('GET', f'/v2/pools/{uuid.UUID(self.storage.read(default_pool_id))}/audits', 200)
        return next((each['last'] or {} for each in found['audits'] if each['kind'] == 'SERIALS'), {})

    def wait_for_round(self, condition: Callable[[dict[str, Any]], object], what: str) -> dict[str, Any]:
        """The first round from now on that is as wanted."""
        seen: list[dict[str, Any]] = [self.last()]

        def look() -> dict[str, Any] | None:
            found = self.last()
            if found != seen[-1]:
                seen.append(found)
            return found if len(seen) > 2 and condition(found) else None

        try:
            return wait_until(look, what, 60)
        except AssertionError as error:
            raise AssertionError(f'{error}\n{seen[-5:]}\n{self.stack.logs()}') from None

    def clean(self) -> dict[str, Any]:
        """A round that asked everybody for everything and found nothing."""
        return self.wait_for_round(
            lambda found: (found['domains'], found['asked'], found['findings'], found['coverage']) == (3, 9, 0, 1.0),
            'a round finds nothing')


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    made = Pool(tmp_path_factory.mktemp('audits'))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_a_zone_that_was_removed_by_hand_is_found_and_mended(pool: Pool) -> None:
    pool.clean()
    named = pool.named
    done = subprocess.run([binary('rndc'), '-s', named.host, '-p', str(named.rndc_port), '-k',
                           str(named.folder / 'rndc.key'), 'delzone', NAMES[0]], capture_output=True, timeout=20)
    assert done.returncode == 0, done.stderr
    wait_until(lambda: pool.named.query(NAMES[0]).answer, 'BIND serves it again', 60)
    pool.clean()
    label = f'bind9:{named.host}:{named.port}'
    found = json.loads(pool.stack.command('pool', 'audit', 'findings', '-f', 'json'))[0]
    assert (found['zone_name'], found['server_name'], found['mended']) == (NAMES[0], label, True)
    assert found['done'].startswith('the server is polled again') and found['request_id'].startswith('audit-')
    log = pool.stack.processes['all'].log.read_text()
    for line in (f'{NAMES[0]} on {label}: the audit of serials found that', f'CREATE of {NAMES[0]} at serial'):
        assert any(line in each and f'[{found["request_id"]}]' in each for each in log.splitlines())
    explained = pool.stack.command('zone', 'explain', NAMES[0])
    assert f'on {label}: {found["found"]}' in explained and f'repaired ({found["request_id"]}).' in explained
    assert f'{NAMES[0]} on {label}' in pool.stack.command('status').partition('FOUND BY AUDITS')[2]
    lines = pool.stack.command('pool', 'audit', '-f', 'csv', '-c', 'kind', '-c', 'round', '-c', 'domains').splitlines()
    assert '"SERIALS","last",3' in lines
