"""Servers that join a mixed pool with over a hundred domains, are filled, are taken out and emptied, and come back."""

from __future__ import annotations

import pytest

from tests.fixtures.mixed import MAKES, Mixed

LATE = 'pdns'
NAMES = [f'domain{number}.example.org.' for number in range(120)]
POOL = {'makes': tuple(make for make in MAKES if make != LATE), 'manager': {'delete_zones_of_removed_servers': 'true'}}


@pytest.fixture(scope='module')
def pool(pool: Mixed) -> Mixed:
    """With the domains, and then a server that comes late."""
    pool.import_all(NAMES)
    pool.wait_for_all()
    joins(pool, LATE)
    return pool


@pytest.mark.parametrize('make', ['bind9', 'knot'])
def test_a_server_is_taken_out_emptied_and_filled_again(pool: Mixed, make: str) -> None:
    leaves(pool, make)
    assert pool.server_state(make)['note'] == 'it was drained'
    joins(pool, make)


def all_but(make: str) -> tuple[str, ...]:
    return tuple(each for each in MAKES if each != make)


def joins(pool: Mixed, make: str) -> None:
    """The server joins, while a change of that moment does not wait for it."""
    pool.stack.reload(pool.sections())
    pool.wait_for_joining(make)
    zone, _ = pool.create(f'{make}.while-joining.example.com.', makes=all_but(make))
    is_filled(pool, make)
    pool.stack.delete_zone(zone)
    pool.stack.wait_for(zone, 'gone')
    pool.wait_until_gone([f'{make}.while-joining.example.com.'])


def is_filled(pool: Mixed, make: str) -> None:
    """It becomes active, and has every domain by then."""
    joined = pool.wait_for_state(make, 'active', 60)
    expected = pool.expected()
    assert pool.serials(make, expected) == expected
    assert pool.listed(make, expected) == expected
    assert (joined['filling'], joined['failing'], joined['zones']) == (False, 0, len(expected))


def leaves(pool: Mixed, make: str) -> None:
    """It is removed, with all that was known of it, and its zones are gone from it."""
    pool.stack.reload(pool.sections(all_but(make)))
    pool.wait_for_state(make, 'removed', 60)
    report = pool.stack.request('GET', f'/v2/servers/{pool.ids[make]}', 200)
    assert (report['rows'], report['waiting']) == (0, 0)
    pool.wait_until_gone(NAMES[::12], [make])
    assert pool.listed(make, NAMES) == {}
