"""One server of a mixed pool loses its zones while the others go on; nobody says so, the pool finds out.

Three of the four servers are enough for a change to be ACTIVE.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testing.processes import wait_until
from tests.fixtures.mixed import MAKES, Mixed


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    folder = tmp_path_factory.mktemp('mixed')
    with Mixed(folder, f'sqlite:///{folder}/pool.sqlite', threshold=75) as running:
        yield running
        running.stack.must_be_sound()


@pytest.mark.parametrize('make', MAKES)
def test_a_server_that_lost_all_zones_is_given_them_again(pool: Mixed, make: str) -> None:
    zones = [pool.create(f'lost{number}.{make}.example.com.')[0] for number in range(3)]
    for _ in range(2):
        pool.servers[make].forget_zones()
        assert not any(pool.listed(make, [f'lost{number}.{make}.example.com.' for number in range(3)]).values())
        pool.wait_until_all_served([make], 30)
        pool.wait_for_rest(make)
        for zone in zones:
            wait_until(lambda: pool.row(zone, make)['current'], 'the server is known to serve it')
            assert pool.stack.zone(zone)['status'] == 'ACTIVE'


@pytest.mark.parametrize('make', MAKES)
def test_a_server_that_comes_back_empty_is_given_all_zones_again(pool: Mixed, make: str) -> None:
    zone, recordset = pool.create(f'emptied.{make}.example.com.')
    pool.servers[make].stop()
    pool.servers[make].forget_zones()
    pool.stack.set_recordset(zone, recordset, '192.0.2.2')
    pool.stack.wait_for(zone)
    pool.servers[make].start()
    pool.wait_until_all_served([make], 30)
    pool.wait_until_served(f'emptied.{make}.example.com.', '192.0.2.2', [make])
