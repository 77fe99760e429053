"""A BIND of a mixed pool is moved from its control channel to the pool's catalog zone (RFC 9432), and back again."""

from __future__ import annotations

import pytest

from tests.fixtures.mixed import MAKES, Mixed

CATALOG = 'catalog.pool.example.'
NAMES = [f'listed{number}.example.com.' for number in range(50)]
POOL = {'manager': {'catalog_zone': CATALOG}}


@pytest.fixture(scope='module')
def pool(pool: Mixed) -> Mixed:
    pool.import_all(NAMES)
    pool.wait_for_all()
    return pool


def test_from_the_control_channel_to_the_catalog_and_back(pool: Mixed) -> None:
    assert members(pool) == []
    read_catalog(pool)
    move(pool, by_catalog(pool))
    assert members(pool) == NAMES
    all_happens(pool)
    read_no_catalog(pool)
    move(pool, pool.section('bind9'))
    assert members(pool) == []
    all_happens(pool)


def all_happens(pool: Mixed) -> None:
    """A create, a change, a delete, and a delete and create of one name."""
    zone, recordset = pool.create('now.example.com.')
    pool.stack.set_recordset(zone, recordset, '192.0.2.2')
    pool.stack.wait_for(zone)
    pool.all_serve('now.example.com.', '192.0.2.2')
    pool.stack.delete_zone(zone)
    zone, _ = pool.begin('now.example.com.', '192.0.2.3')
    pool.stack.wait_for(zone)
    pool.wait_until_served('now.example.com.', '192.0.2.3')
    pool.stack.delete_zone(zone)
    pool.stack.wait_for(zone, 'gone')
    for make in MAKES:
        pool.wait_until_gone(['now.example.com.'], [make])


def move(pool: Mixed, section: str) -> None:
    """Give the BIND this section; it joins anew, and has every domain when it is active."""
    pool.change_sections({'bind9': section})
    pool.wait_for_state('bind9', 'active', 60)
    expected = pool.expected()
    assert pool.serials('bind9', expected) == expected


def members(pool: Mixed) -> list[str]:
    """Those of the zones that the BIND has, and not by ``rndc addzone``."""
    bind = pool.servers['bind9']
    assert all(bind.command(f'zonestatus {name}').result == 0 for name in NAMES)
    return [name for name in NAMES if bind.command(f'showzone {name}').result]


def by_catalog(pool: Mixed) -> str:
    key, bind = pool.keys['bind9'], pool.servers['bind9']
    return '\n'.join([f'[backend:catalog:{pool.ids["bind9"]}]', f'host = {bind.host}', f'port = {bind.port}',
                      'call_timeout = 4', f'tsig_key = {key.name}:{key.algorithm}:{key.secret}', ''])


def read_catalog(pool: Mixed) -> None:
    """Have the BIND read the catalog, as its operator does."""
    for old, new in changes(pool):
        pool.servers['bind9'].reconfigure(old, new)


def read_no_catalog(pool: Mixed) -> None:
    for old, new in reversed(changes(pool)):
        pool.servers['bind9'].reconfigure(new, old)


def changes(pool: Mixed) -> list[tuple[str, str]]:
    """What the catalog takes in named.conf: texts, and what they become."""
    bind, primary = pool.servers['bind9'], pool.primaries[0]
    where = f'{{ {primary.host} port {primary.port} key "{pool.keys["bind9"].name}"; }}'
    zone = f'zone "{CATALOG}" {{ type secondary; primaries {where}; file "catalog.db"; }};\n'
    catalog = (f'catalog-zones {{ zone "{CATALOG}" default-primaries {where} zone-directory "{bind.folder}" '
               'in-memory no min-update-interval 0; };\n')
    return [('logging {', f'{zone}logging {{'), ('recursion no;', f'{catalog}recursion no;')]
