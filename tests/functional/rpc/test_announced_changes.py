"""Changes come to those who follow the database over a real broker, without waiting for their next look."""

from __future__ import annotations

import base64
import contextlib
import threading
from collections.abc import Iterator

import pytest
from oslo_config import cfg

from designate_pool.central.service import Central
from designate_pool.minidns.database_watch import DatabaseWatch, TsigGrants
from designate_pool.model import Context, PoolServer, ServerState, new_id, utcnow
from designate_pool.rpc import minidns, pool_manager
from designate_pool.rpc.change_announcer import ChangeAnnouncer
from designate_pool.rpc.messaging import Messaging
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.runtime import Inline, Threads
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.sql.database import Storage
from testing.processes import wait_until
from testing.rabbitmq import RabbitMq
from testing.settings import central_settings
from tests.fixtures.central import WHO

NEVER = 3600.0
SERVER = new_id()


class MiniDns:
    """What of MiniDNS follows the TSIG keys.

    :param interval: seconds between two looks that nobody asks for
    """

    def __init__(self, database: Storage, interval: float) -> None:
        self.keys = TsigGrants(database)
        self.watch = DatabaseWatch(database, 'default', [self.keys.follow], interval)

    def look_for_changes(self, context: Context) -> None:
        self.watch.wake()

    def names(self) -> list[str]:
        return sorted(map(str, self.keys.grants))


class PoolManager:
    """Hears that it is to look."""

    def __init__(self) -> None:
        self.told = threading.Event()

    def look_for_changes(self, context: Context) -> None:
        self.told.set()


@pytest.fixture
def ends() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as ends:
        yield ends


def messaging(ends: contextlib.ExitStack, broker: RabbitMq, name: str) -> Messaging:
    cfg.CONF([], project='test')
    made = Messaging(cfg.CONF, name, call_timeout=3.0, transport_url=broker.url)
    ends.callback(made.stop)
    return made


def start(ends: contextlib.ExitStack, minidns: MiniDns) -> MiniDns:
    ends.callback(minidns.watch.stop)
    minidns.watch.start(Threads())
    return minidns


def make_key(central: Central) -> str:
    return central.tsigkeys.create(WHO, {
        'name': 'key.', 'algorithm': 'hmac-sha256', 'scope': 'POOL', 'resource_id': central.find_pools(WHO)[0].id,
        'secret': base64.b64encode(b'secret').decode()}).id


def test_a_change_is_acted_on_at_once_in_every_process(
        database: Storage, rabbitmq: RabbitMq, ends: contextlib.ExitStack) -> None:
    both, managers = [MiniDns(database, NEVER) for _ in range(2)], [PoolManager() for _ in range(2)]
    for number, (each, manager) in enumerate(zip(both, managers)):
        process = messaging(ends, rabbitmq, f'test-{number}')
        process.serve(minidns.SHARED_TOPIC, minidns.MiniDnsClient, start(ends, each))
        process.serve(pool_manager.topic('default'), PoolManagerClient, manager, rank=0)
    client = messaging(ends, rabbitmq, 'central')
    central = Central(database, PoolManagerClient(client), Threads(), announcer=ChangeAnnouncer(client, Threads()),
                      settings=central_settings())
    ends.callback(central.stop)
    database.run(pool_servers.register, 'default', [PoolServer(SERVER, '', 'fake:1', 'fake', ServerState.ACTIVE)],
                 False, True, utcnow())
    for _ in range(2):
        key = make_key(central)
        wait_until(lambda: all(each.names() == ['key.'] for each in both), 'the key is accepted')
        central.tsigkeys.delete(WHO, key)
        wait_until(lambda: not any(each.names() for each in both), 'the key is refused')
    central.rest_server(WHO, SERVER)
    assert all(each.told.wait(30) for each in managers)


def test_a_change_is_acted_on_when_the_message_is_lost(database: Storage, ends: contextlib.ExitStack) -> None:
    minidns = start(ends, MiniDns(database, 0.2))
    central = Central(database, PoolManagerClient(None), Inline(),  # type: ignore[arg-type]
                      settings=central_settings())
    key = make_key(central)
    wait_until(lambda: minidns.names() == ['key.'], 'the key is accepted')
    central.tsigkeys.delete(WHO, key)
    wait_until(lambda: not minidns.names(), 'the key is refused')
