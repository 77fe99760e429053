"""One server of a mixed pool is killed or loses its zones while the others go on, and the pool heals it.

Three of the four servers are enough for a change to be ACTIVE.
"""

from __future__ import annotations

import pytest

from testing.processes import wait_until
from tests.fixtures.mixed import MAKES, Mixed

POOL = {'threshold': 75}


@pytest.mark.parametrize('make', MAKES)
def test_changes_go_on_without_a_server_and_it_catches_up(pool: Mixed, make: str) -> None:
    name = f'{make}.example.com.'
    others = [each for each in MAKES if each != make]
    changed, recordset = pool.create(f'changed.{name}')
    deleted, _ = pool.create(f'deleted.{name}')
    again, _ = pool.create(f'again.{name}')
    pool.servers[make].kill()
    try:
        created, _ = pool.begin(f'created.{name}')
        pool.stack.set_recordset(changed, recordset, '192.0.2.2')
        for zone in (deleted, again):
            pool.stack.delete_zone(zone)
        again, _ = pool.begin(f'again.{name}', '192.0.2.2')
        for zone in (created, changed, again):
            pool.stack.wait_for(zone)
        pool.stack.wait_for(deleted, 'gone')
        for each, address in (('created', '192.0.2.1'), ('changed', '192.0.2.2'), ('again', '192.0.2.2')):
            pool.wait_until_served(f'{each}.{name}', address, others)
        pool.wait_until_gone([f'deleted.{name}'], others)
        wait_until(lambda: pool.row(created, make)['last_error'], 'what is wrong with the server is told')
        assert pool.row(created, make)['next_attempt_at'] and not pool.row(changed, make)['current']
    finally:
        pool.servers[make].start()
    pool.wait_until_all_served([make])
    pool.wait_until_served(f'again.{name}', '192.0.2.2', [make])
    pool.wait_until_gone([f'deleted.{name}'], [make])
    pool.wait_for_rest(make)
    assert all(pool.row(zone, make)['current'] for zone in (created, changed, again))
    pool.stack.set_recordset(changed, recordset, '192.0.2.3')
    pool.stack.wait_for(changed)
    pool.wait_until_served(f'changed.{name}', '192.0.2.3')


@pytest.mark.parametrize('make', MAKES)
def test_a_server_that_lost_all_zones_is_given_them_again(pool: Mixed, make: str) -> None:
    zones = [pool.create(f'lost{number}.{make}.example.com.')[0] for number in range(3)]
    pool.servers[make].forget_zones()
    assert not any(pool.listed(make, [f'lost{number}.{make}.example.com.' for number in range(3)]).values())
    pool.wait_until_all_served([make], 30)
    pool.wait_for_rest(make)
    for zone in zones:
        wait_until(lambda: pool.row(zone, make)['current'], 'the server is known to serve it')
        assert pool.stack.zone(zone)['status'] == 'ACTIVE'


def restore(pool: Mixed, zone: str) -> None:
    pool.stack.request('POST', f'/v2/deleted_zones/{zone}/tasks/restore', 202)
    pool.stack.wait_for(zone)


@pytest.mark.parametrize(('make', 'is_wiped'), [
    ('bind9', True), ('nsd', True), ('knot', False), ('pdns', False)])
def test_a_zone_is_restored_while_a_server_has_yet_to_delete_it(pool: Mixed, make: str, is_wiped: bool) -> None:
    name = f'restored{is_wiped:d}.{make}.example.com.'
    zone, recordset = pool.create(name)
    pool.servers[make].kill()
    try:
        pool.stack.delete_zone(zone)
        pool.stack.wait_for(zone, 'gone')
        restore(pool, zone)
        pool.wait_until_served(name, '192.0.2.1', [each for each in MAKES if each != make])
    finally:
        pool.servers[make].start()
    if is_wiped:
        pool.servers[make].forget_zones()
    pool.wait_until_served(name, '192.0.2.1', [make])
    pool.wait_for_rest(make)
    pool.stack.set_recordset(zone, recordset, '192.0.2.2')
    pool.stack.wait_for(zone)
    pool.wait_until_served(name, '192.0.2.2')
