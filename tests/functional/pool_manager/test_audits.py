"""The audit of serials as an operator sees it: a BIND and two small name servers, and what becomes of drift.

Nothing else looks at what is at rest, so whatever is mended here was found by it.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import uuid
from typing import Any

from designate_pool.storage.sql.database import Storage
from testing.bind import Named
from testing.processes import binary, wait_until
from testing.rows import default_pool_id
from testing.stack import QUICK, Stack
from tests.fixtures.nameservers import SecondaryServer

NAMES = ('a.example.com.', 'b.example.com.', 'c.example.com.')


def last_round(stack: Stack, pool_id: uuid.UUID) -> dict[str, Any]:
    """The last round, by the API; empty while there is none."""
    audits = stack.request('GET', f'/v2/pools/{pool_id}/audits', 200)['audits']
    return next((each['last'] or {} for each in audits if each['kind'] == 'SERIALS'), {})


def wait_for_clean_round(stack: Stack) -> None:
    """Wait for a round that begins from now on, asks everybody for everything, and finds nothing."""
    with contextlib.closing(Storage(stack.database_url)) as storage:
        pool_id = uuid.UUID(storage.read(default_pool_id))
    seen = [last_round(stack, pool_id)]

    def is_clean() -> bool:
        found = last_round(stack, pool_id)
        if found != seen[-1]:
            seen.append(found)
        return len(seen) > 2 and (found['zones'], found['asked'], found['findings'], found['coverage']) == (
            3, 9, 0, 1.0)

    wait_until(is_clean, 'a round finds nothing', 60)


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
        wait_for_clean_round(stack)
        done = subprocess.run([binary('rndc'), '-s', named.host, '-p', str(named.rndc_port), '-k',
                               str(named.folder / 'rndc.key'), 'delzone', NAMES[0]], capture_output=True, timeout=20)
        assert done.returncode == 0, done.stderr
        wait_until(lambda: named.query(NAMES[0]).answer, 'BIND serves it again', 60)
        wait_for_clean_round(stack)
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
