"""A mixed pool is frozen: no server gets what users change, whatever asks for it, until the pool is unfrozen."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from testing.processes import wait_until
from tests.fixtures.mixed import MAKES, Mixed


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    folder = tmp_path_factory.mktemp('mixed')
    with Mixed(folder, f'sqlite:///{folder}/pool.sqlite') as running:
        yield running
        running.stack.must_be_sound()


def command(pool: Mixed, verb: str, **body: str) -> None:
    pool_id = pool.stack.request('GET', '/v2/pools', 200)['pools'][0]['id']
    pool.stack.request('POST', f'/v2/pools/{pool_id}/tasks/{verb}', 200, **({'json': body} if body else {}))


@pytest.mark.parametrize('round_', [1, 2])
def test_nothing_new_is_served_until_the_pool_is_unfrozen(pool: Mixed, round_: int) -> None:
    name = f'round{round_}.example.com.'
    changed, www = pool.create(f'changed.{name}')
    fixed, fixed_www = pool.create(f'fixed.{name}')
    deleted, _ = pool.create(f'deleted.{name}')
    again, _ = pool.create(f'again.{name}')
    command(pool, 'freeze', reason='an incident')
    for address in ('192.0.2.2', '192.0.2.3'):
        pool.stack.set_recordset(changed, www, address)
    pool.stack.set_recordset(fixed, fixed_www, '192.0.2.2')
    for zone in (deleted, again):
        pool.stack.delete_zone(zone)
    again, _ = pool.begin(f'again.{name}', '192.0.2.2')
    created, _ = pool.begin(f'created.{name}')
    waits = pool.stack.request('GET', f'/v2/zones/{changed}/wait?timeout=30', 200)
    assert (waits['freeze']['reason'], waits['done'], waits['timed_out']) == ('an incident', False, False)
    explained = pool.stack.request('GET', f'/v2/zones/{changed}/explain', 200)
    assert explained['summary'] == (f'changed.{name} is PENDING, being changed: that waits, since its pool is frozen: '
                                    'an incident.')
    assert all(server['current'] and server['status'] == 'SUCCESS' for server in explained['servers'])
    pool.stack.kill('all')
    pool.stack.launch('all')
    bind = pool.servers['bind9']
    wait_until(lambda: bind.command(f'retransfer changed.{name}').result == 0, 'BIND asks for the zone')
    pool.servers['knot'].forget_zones()
    for each in ('changed', 'fixed'):
        pool.wait_until_served(f'{each}.{name}', '192.0.2.1', ['knot'])
    pool.stack.command('server', 'resync', pool.ids['nsd'], '--fix')
    end = time.monotonic() + 3  # several rounds of the pool managers' loops
    while time.monotonic() < end:
        for each in ('changed', 'fixed'):
            pool.all_serve(f'{each}.{name}', '192.0.2.1')
        for each in ('deleted', 'again'):  # a server that has lost these is not given them again
            pool.all_serve(f'{each}.{name}', '192.0.2.1', [make for make in MAKES if make != 'knot'])
        assert pool.who_has(f'created.{name}') == []
    pool.stack.must_be_sound()
    assert {pool.stack.zone(zone)['status'] for zone in (changed, fixed, deleted, again, created)} == {'PENDING'}
    pool.stack.request('POST', f'/v2/zones/{fixed}/tasks/unfreeze', 202, json={'reason': 'the fix'})
    pool.stack.wait_for(fixed)
    pool.wait_until_served(f'fixed.{name}', '192.0.2.2')
    pool.all_serve(f'changed.{name}', '192.0.2.1')
    if round_ == 1:
        command(pool, 'unfreeze')
    else:
        command(pool, 'freeze', reason='an incident', until='1s')
    for zone in (changed, again, created):
        pool.stack.wait_for(zone)
    pool.stack.wait_for(deleted, 'gone')
    for each, address in (('changed', '192.0.2.3'), ('again', '192.0.2.2'), ('created', '192.0.2.1')):
        pool.wait_until_served(f'{each}.{name}', address)
    pool.wait_until_gone([f'deleted.{name}'])
    pool.wait_until_all_served()
    for make in MAKES:
        pool.wait_for_rest(make)
