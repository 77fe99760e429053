"""MiniDNS takes over each change of a TSIG key at its next look, whatever the clocks of those who made it."""

from __future__ import annotations

import base64

import dns.name
import pytest

from designate_pool.central.service import Central
from designate_pool.minidns.acl import TsigGrant
from designate_pool.minidns.database_watch import DatabaseWatch, TsigGrants
from designate_pool.storage.sql.database import Storage
from testing.databases import count_statements
from tests.fixtures.central import WHO, Clock

HOUR = 3600


class KnownKeys:
    """The keys that a MiniDNS knows, once it has looked."""

    def __init__(self, database: Storage) -> None:
        self._grants = TsigGrants(database)
        self._watch = DatabaseWatch(database, 'default', [self._grants.follow])

    def grants(self) -> dict[str, TsigGrant]:
        self._watch.look()
        return {name.to_text(): grant for name, grant in self._grants.grants.items() if isinstance(name, dns.name.Name)}

    def secrets(self) -> dict[str, bytes]:
        """By the names of the keys."""
        return {name: grant.key.secret.rstrip(b'.') for name, grant in self.grants().items()}


@pytest.fixture
def known_keys(database: Storage) -> KnownKeys:
    return KnownKeys(database)


def make(central: Central, name: str, secret: bytes = b'first') -> str:
    pool_id = central.find_pools(WHO)[0].id
    return central.tsigkeys.create(WHO, {'name': name, 'algorithm': 'hmac-sha256', 'scope': 'POOL',
                                         'resource_id': pool_id, 'secret': encoded(secret)}).id


def encoded(secret: bytes) -> str:
    return base64.b64encode(secret.ljust(32, b'.')).decode()


def test_a_rotation_by_a_clock_that_is_behind_is_seen(central: Central, known_keys: KnownKeys, clock: Clock) -> None:
    key = make(central, 'old.')
    clock.now += HOUR
    make(central, 'other.')
    clock.now -= HOUR
    assert known_keys.secrets() == {'old.': b'first', 'other.': b'first'}
    central.tsigkeys.update(WHO, key, {'secret': encoded(b'second')})
    assert known_keys.secrets() == {'old.': b'second', 'other.': b'first'}


def test_a_key_in_the_place_of_another_is_seen(central: Central, known_keys: KnownKeys, clock: Clock) -> None:
    clock.now += HOUR
    make(central, 'newest.')
    clock.now -= HOUR
    key = make(central, 'lost.')
    assert set(known_keys.secrets()) == {'newest.', 'lost.'}
    central.tsigkeys.delete(WHO, key)
    make(central, 'found.')
    assert set(known_keys.secrets()) == {'newest.', 'found.'}


def test_a_key_of_a_pool_is_one_of_it_by_its_new_name(central: Central, known_keys: KnownKeys) -> None:
    make(central, 'key.')
    assert [each.pool_name for each in known_keys.grants().values()] == ['default']
    central.update_pool(WHO, {'id': central.find_pools(WHO)[0].id, 'name': 'renamed'})
    assert [each.pool_name for each in known_keys.grants().values()] == ['renamed']


@pytest.mark.all_databases
def test_keys_that_have_not_changed_are_not_read(central: Central, known_keys: KnownKeys, database: Storage) -> None:
    make(central, 'key.')
    known_keys.grants()
    with count_statements(database) as counter:
        known_keys.grants()
    assert counter.total() == 1 and 'secret' not in next(iter(counter))
