"""What an operator commands about one server of a mixed pool: maintenance, comparing and mending, reading anew.

No sweep comes along: what is mended is mended by command.  The threshold is 100 %.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pytest

from designate_pool.testing import a_domain, opened
from testing.processes import wait_until
from tests.fixtures.commands import wait
from tests.fixtures.mixed import MAKES, Mixed

POOL = {'manager': {'periodic_sync_interval': '3600'}}


@pytest.mark.parametrize('make', ['bind9', 'nsd'])
def test_nothing_is_sent_to_a_server_in_maintenance_and_it_catches_up_afterwards(pool: Mixed, make: str) -> None:
    name = f'{make}.rest.example.com.'
    others = [each for each in MAKES if each != make]
    server = pool.servers[make]
    changed, recordset = pool.create(f'changed.{name}')
    deleted, _ = pool.create(f'deleted.{name}')
    before = server.serial(f'changed.{name}')
    rest(pool, make)
    log = len(server.log)
    created, _ = pool.begin(f'created.{name}')
    pool.stack.set_recordset(changed, recordset, '192.0.2.2')
    pool.stack.delete_zone(deleted)
    for zone in (created, changed):
        pool.stack.wait_for(zone)
    pool.stack.wait_for(deleted, 'gone')
    pool.all_serve(f'created.{name}', '192.0.2.1', others)
    pool.all_serve(f'changed.{name}', '192.0.2.2', others)
    explained = pool.stack.command('zone', 'explain', created)
    assert 'it has been in maintenance for ' in ' '.join(explained.split())
    assert 'on every server that counts' in explained
    assert told(server.log[log:], name) == []
    assert pool.listed(make, [f'created.{name}', f'changed.{name}', f'deleted.{name}']) == {
        f'changed.{name}': before, f'deleted.{name}': server.serial(f'deleted.{name}')}

    pool.stack.command('server', 'resume', pool.ids[make], wait(60))
    assert pool.server_state(make)['state'] == 'active'
    pool.all_serve(f'created.{name}', '192.0.2.1', [make])
    pool.all_serve(f'changed.{name}', '192.0.2.2', [make])
    pool.wait_until_gone([f'deleted.{name}'])
    pool.stack.set_recordset(changed, recordset, '192.0.2.3')
    pool.stack.wait_for(changed)
    pool.all_serve(f'changed.{name}', '192.0.2.3')
    assert make == 'pdns' or told(server.log[log:], name), 'PowerDNS does not log what it is told'


@pytest.mark.parametrize('make', ['knot', 'pdns'])
def test_an_emptied_server_is_compared_and_mended(pool: Mixed, make: str) -> None:
    names = [f'resync{number}.{make}.example.com.' for number in range(5)]
    for name in names:
        pool.create(name)
    everything = pool.expected()
    assert found(pool, make) == {'missing': [], 'behind': [], 'extra': found(pool, make)['extra']}
    pool.servers[make].forget_zones()
    assert found(pool, make, code=1)['missing'] == sorted(everything)
    assert pool.listed(make, names) == {}, 'only looked at'
    pool.stack.command('server', 'resync', pool.ids[make], '--fix', wait(60))
    assert pool.serials(make, everything) == everything
    assert found(pool, make)['missing'] == found(pool, make)['behind'] == []
    pool.stack.command('server', 'resync', pool.ids[make], '--fix', wait(60))


@pytest.mark.parametrize('make', ['bind9', 'pdns'])
def test_extra_zones_are_deleted_only_when_they_are_as_many_as_was_said(pool: Mixed, make: str) -> None:
    if make == 'bind9':  # without statistics it cannot list its zones
        pool.change_sections({make: pool.section(make, statistics_url=pool.servers[make].statistics_url)})
    pool.create(f'beside.{make}.example.com.')
    everything = pool.expected()
    names = [f'extra{number}.{make}.example.net.' for number in range(3)]
    add_by_hand(pool, make, names)
    extra = found(pool, make, code=1)['extra']
    assert set(names) <= set(extra)
    told = pool.stack.complaint('server', 'resync', pool.ids[make], '--delete-extra', str(len(extra) - 1))
    assert f'it has {len(extra)} extra zones, not {len(extra) - 1}; none was deleted' in ' '.join(told.split())
    assert pool.listed(make, names).keys() == set(names)
    pool.stack.command('server', 'resync', pool.ids[make], '--delete-extra', str(len(extra)))
    pool.wait_until_gone(names, [make])
    assert found(pool, make) == {'missing': [], 'behind': [], 'extra': []}
    assert pool.serials(make, everything) == everything


def told(log: str, name: str) -> list[str]:
    """What a server says it was told: commands, and NOTIFY; it may still look after its zones of its own accord."""
    return [line for line in log.splitlines() if re.search(r'control (channel )?c|control, received', line)
            or re.search(rf'notify.* .*(created|changed)\.{name}|(created|changed)\.{name}.*notify', line)]


def add_by_hand(pool: Mixed, make: str, names: Sequence[str]) -> None:
    """Have a server hold zones that the pool knows nothing of."""
    with opened(pool.servers[make].server([pool.primaries[0]], tsig_key=pool.keys[make])) as backend:
        for name in names:
            assert backend.create_domain(a_domain(name)).ok


def rest(pool: Mixed, make: str) -> None:
    """Put a server into maintenance; returns when the pool manager has seen it, and nothing is under way on it."""
    log = pool.stack.processes['all'].log
    seen = len(log.read_text())
    answer = pool.stack.request('POST', f'/v2/servers/{pool.ids[make]}/maintenance')
    assert answer['state'] == 'maintenance'
    wait_until(lambda: f'{answer["name"]} is maintenance now' in log.read_text()[seen:], 'the pool manager has seen it')
    wait_until(lambda: not pool.server_state(make)['in_hand'], 'nothing is under way on it')


def found(pool: Mixed, make: str, code: int = 0) -> dict[str, list[object]]:
    """What ``server resync`` finds without mending."""
    told = json.loads(pool.stack.command('server', 'resync', pool.ids[make], '-f', 'json', code=code))
    return {key: told[key] for key in ('missing', 'behind', 'extra')}
