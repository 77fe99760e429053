"""MiniDNS takes over each change of a TSIG key at its next poll, whatever the clocks of those who made it."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import dns.name
import pytest

from designate_pool.central.service import Central
from designate_pool.minidns.access.acl import TsigGrant
from designate_pool.minidns.access.tsig_grants import TsigGrants
from designate_pool.storage.sql.database import Storage
from tests.fixtures.central import WHO, Clock

HOUR = 3600


@pytest.fixture
def tsig_grants(database: Storage) -> TsigGrants:
    return TsigGrants(database)


def make(central: Central, name: str, secret: bytes = b'first') -> str:
    pool_id = central.find_pools(WHO)[0].id
    return central.create_tsigkey(WHO, {'name': name, 'algorithm': 'hmac-sha256', 'scope': 'POOL',
                                        'resource_id': pool_id, 'secret': encoded(secret)}).id


def encoded(secret: bytes) -> str:
    return base64.b64encode(secret.ljust(32, b'.')).decode()


def seen(tsig_grants: TsigGrants) -> Mapping[str, bytes]:
    """Secrets by the names of their keys."""
    return {name: grant.key.secret.rstrip(b'.') for name, grant in grants(tsig_grants).items()}


def grants(tsig_grants: TsigGrants) -> dict[str, TsigGrant]:
    tsig_grants.reload()
    return {name.to_text(): grant for name, grant in tsig_grants.grants.items() if isinstance(name, dns.name.Name)}


def test_a_rotation_by_a_clock_that_is_behind_is_seen(central: Central, tsig_grants: TsigGrants, clock: Clock) -> None:
    key = make(central, 'old.')
    clock.now += HOUR
    make(central, 'other.')
    clock.now -= HOUR
    assert seen(tsig_grants) == {'old.': b'first', 'other.': b'first'}
    central.update_tsigkey(WHO, key, {'secret': encoded(b'second')})
    assert seen(tsig_grants) == {'old.': b'second', 'other.': b'first'}


def test_a_key_in_the_place_of_another_is_seen(central: Central, tsig_grants: TsigGrants, clock: Clock) -> None:
    clock.now += HOUR
    make(central, 'newest.')
    clock.now -= HOUR
    key = make(central, 'lost.')
    assert set(seen(tsig_grants)) == {'newest.', 'lost.'}
    central.delete_tsigkey(WHO, key)
    make(central, 'found.')
    assert set(seen(tsig_grants)) == {'newest.', 'found.'}


def test_a_key_of_a_pool_is_one_of_it_by_its_new_name(central: Central, tsig_grants: TsigGrants) -> None:
    make(central, 'key.')
    assert [each.pool_name for each in grants(tsig_grants).values()] == ['default']
    central.update_pool(WHO, {'id': central.find_pools(WHO)[0].id, 'name': 'renamed'})
    assert [each.pool_name for each in grants(tsig_grants).values()] == ['renamed']


def test_keys_that_have_not_changed_are_not_read(central: Central, tsig_grants: TsigGrants, database: Storage) -> None:
    make(central, 'key.')
    tsig_grants.reload()
    with database.count_statements() as counter:
        tsig_grants.reload()
    assert counter.total() == 1 and 'secret' not in next(iter(counter))
