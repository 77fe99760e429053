"""Whoever follows the database is told of what Central changes there, and when it would be too late to wait."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from designate_pool.central.service import Central
from designate_pool.model import PoolServer, ServerState, new_id, utcnow
from designate_pool.rpc import minidns, pool_manager
from designate_pool.rpc.change_announcer import ChangeAnnouncer
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.sql.database import Storage
from testing.inline import Inline
from tests.fixtures.central import SERVERS, WHO, Caller, Clock, create, started

SERVER, OTHERS = new_id(), new_id()
MINIDNS = {(minidns.SHARED_TOPIC, True)}
EVERYBODY = {*MINIDNS, (pool_manager.topic('default'), True)}
SILVER = {*MINIDNS, (pool_manager.topic('silver'), True)}


class Announcements:
    """The topics on which somebody was told to look, and whether all processes of each were."""

    def __init__(self) -> None:
        self.told: list[tuple[str, bool]] = []

    def call(self, topic: str, context: Any, method: str, **arguments: Any) -> None:
        raise AssertionError('nothing is called')

    def cast(self, topic: str, context: Any, method: str, *, to_all: bool = False, **arguments: Any) -> None:
        assert method == 'look_for_changes' and not arguments
        self.told.append((topic, to_all))


@pytest.fixture
def announcements() -> Announcements:
    return Announcements()


@pytest.fixture
def central(database: Storage, caller: Caller, clock: Clock, announcements: Announcements) -> Iterator[Central]:
    with started(database, caller, announcer=ChangeAnnouncer(announcements, Inline())) as service:
        service.create_pool(WHO, {'name': 'silver', 'name_servers': SERVERS})
        for name, server in (('default', SERVER), ('silver', OTHERS)):
            database.run(pool_servers.register, name, [
                PoolServer(server, '', f'fake:{name}', 'fake', ServerState.ACTIVE)], False, True, utcnow())
        yield service


def pool_id(central: Central, name: str = 'default') -> str:
    return central.find_pools(WHO, {'name': name})[0].id


def key(central: Central) -> str:
    return central.tsigkeys.create(WHO, {
        'name': 'key.', 'algorithm': 'hmac-sha256', 'scope': 'POOL', 'resource_id': pool_id(central),
        'secret': base64.b64encode(b'secret').decode()}).id


def secondary(central: Central) -> str:
    return central.create_domain(WHO, {'name': 'example.com.', 'masters': ['192.0.2.1']}).id


def nothing(central: Central) -> None:
    return


@pytest.mark.parametrize(('before', 'change', 'told'), [
    (nothing, lambda central, _: key(central), MINIDNS),
    (key, lambda central, key_id: central.tsigkeys.update(WHO, key_id, {'name': 'other.'}), MINIDNS),
    (key, lambda central, key_id: central.tsigkeys.delete(WHO, key_id), MINIDNS),
    (nothing, lambda central, _: secondary(central), MINIDNS),
    (secondary, lambda central, zone: central.update_domain(WHO, zone, {'masters': ['192.0.2.2']}), MINIDNS),
    (secondary, lambda central, zone: central.refresh_domain(WHO, zone), MINIDNS),
    (secondary, lambda central, zone: central.move_domain(WHO, zone, pool_id(central, 'silver')), MINIDNS),
    (nothing, lambda central, _: central.create_pool(WHO, {'name': 'gold'}), {*MINIDNS, ('pool_manager.gold', True)}),
    (pool_id, lambda central, found: central.update_pool(WHO, {'id': found, 'also_notifies': ['192.0.2.9']}),
     EVERYBODY),
    (lambda central: pool_id(central, 'silver'), lambda central, found: central.delete_pool(WHO, found), SILVER),
    (nothing, lambda central, _: central.rest_server(WHO, SERVER), EVERYBODY),
    (lambda central: central.rest_server(WHO, SERVER), lambda central, _: central.resume_server(WHO, SERVER),
     EVERYBODY),
    (nothing, lambda central, _: central.drain_server(WHO, OTHERS), SILVER),
    (nothing, lambda central, _: create(central), set()),
])
def test_who_is_told_of_a_change(central: Central, announcements: Announcements, before: Callable[[Central], Any],
                                 change: Callable[[Central, Any], Any], told: set[tuple[str, bool]]) -> None:
    given = before(central)
    announcements.told.clear()
    change(central, given)
    assert set(announcements.told) == told and len(announcements.told) == len(told)
