"""Names that are created, deleted and created again in quick succession, by two pool managers and on a real BIND.

Both managers take casts from one broker, so that the creation and the deletion of one name are often in the hands of
two processes at the same time.
"""

from __future__ import annotations

import contextlib
import pathlib
import random
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from designate_pool.model import Outcome
from designate_pool.storage.operations import name_claims, server_statuses
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones.domains import get_many
from testing.bind import Named
from testing.databases import PostgreSQL
from testing.processes import free_port, wait_until
from testing.rabbitmq import RabbitMq
from testing.stack import Stack

pytestmark = pytest.mark.slow

NAMES = [f'churn{number}.example.com.' for number in range(12)]
#: The first of them are deleted at the end.
GONE = NAMES[:5]
ROUNDS, CLIENTS = 6, 6
#: Names of zones that are on the server before anybody makes domains of them.
EXTRA = [f'extra{number}.example.com.' for number in range(40)]


class Pool:
    """A BIND, two pool managers, and what the database says."""

    def __init__(self, folder: pathlib.Path, database_url: str, broker_url: str) -> None:
        self.named = Named(folder / 'named', statistics=True)
        self.server_id = str(uuid.uuid4())
        port = free_port()
        section = self.named.section(self.server_id, call_timeout=4, statistics_url=self.named.statistics_url)
        self.stack = Stack(folder / 'stack', [section], database_url, broker_url, minidns_port=port)

    def churn(self, name: str) -> list[str]:
        """Create and delete a domain, again and again; the ids of all of them."""
        stack, chance, made = self.stack, random.Random(name), []
        for number in range(ROUNDS):
            zone = stack.create_zone(name)['id']
            made.append(zone)
            if chance.random() < 0.3:
                stack.wait_for(zone)
            if number < ROUNDS - 1 or name in GONE:
                stack.delete_zone(zone)
        return made

    def is_there(self, name: str) -> bool:
        """Whether the server has the zone, be it loaded or in its list of added zones alone."""
        return any(self.named.command(f'{verb} {name}').result == 0 for verb in ('showzone', 'zonestatus'))


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory, rabbitmq: RabbitMq, postgresql: PostgreSQL) -> Iterator[Pool]:
    made = Pool(tmp_path_factory.mktemp('churn'), postgresql.create_database(), rabbitmq.url)
    with contextlib.ExitStack() as end:
        end.callback(made.named.remove)
        made.named.start()
        end.enter_context(made.stack)
        made.stack.launch('manager', key='second manager')
        yield made
        made.stack.must_be_sound()


@pytest.fixture
def storage(pool: Pool) -> Iterator[Storage]:
    with contextlib.closing(Storage(pool.stack.database_url)) as storage:
        yield storage


def must_be_as_wanted(pool: Pool, storage: Storage, ids: dict[str, list[str]]) -> None:
    """The newest of these domains are served, unless they are :data:`GONE`, and nothing is left of the others."""
    for name, zones in ids.items():
        pool.stack.wait_for(zones[-1], 'gone' if name in GONE else 'ACTIVE', 60)
    living = {zones[-1].replace('-', '') for name, zones in ids.items() if name not in GONE}
    every = [zone.replace('-', '') for zones in ids.values() for zone in zones]
    wait_until(lambda: {key for key, rows in storage.read(server_statuses.for_domains, every).items()
                        if rows} == living,
               'nothing is left of the deleted ones', 60)
    found, rows = storage.read(get_many, living), storage.read(server_statuses.for_domains, living)
    for key in living:
        assert [(row.action, row.status, row.next_attempt_at, row.claimed_by) for row in rows[key]] == [
            (action, Outcome.SUCCESS, None, None) for action in ('CREATE', 'UPDATE')]
        assert pool.named.serial(found[key].name) == found[key].serial == rows[key][1].serial_number
    assert {name for name in ids if pool.is_there(name)} == {name for name in ids if name not in GONE}
    assert storage.read(lambda tx: tx.execute(name_claims.TABLE.select()).all()) == []


def test_names_that_come_and_go_quickly_end_as_they_are_wanted(pool: Pool, storage: Storage) -> None:
    """The first manager is killed meanwhile, and the second goes on with all that it had begun."""
    first, second = (pool.stack.processes[key].log for key in ('manager', 'second manager'))

    def has_a_part(log: pathlib.Path) -> bool:
        return all(action in log.read_text() for action in ('CREATE', 'DELETE'))

    with ThreadPoolExecutor(CLIENTS) as clients:
        churned = clients.map(pool.churn, NAMES)
        wait_until(lambda: has_a_part(first), 'the first manager is at work')
        pool.stack.kill('manager')
        ids = dict(zip(NAMES, churned))
    pool.stack.launch('manager')
    must_be_as_wanted(pool, storage, ids)
    assert has_a_part(second), 'both had a part in it'


def test_extra_zones_that_are_deleted_while_their_names_become_domains_are_served(pool: Pool,
                                                                                  storage: Storage) -> None:
    stack = pool.stack
    for name in EXTRA:
        kind = f'{{ type secondary; primaries {{ 127.0.0.1 port {stack.minidns_port}; }}; }};'
        assert pool.named.command(f'addzone {name} {kind}').result == 0
    with ThreadPoolExecutor(CLIENTS) as clients:
        found = clients.submit(stack.request, 'POST', f'/v2/servers/{pool.server_id}/resync', 200,
                               json={'delete_extra': len(EXTRA)})
        wait_until(lambda: found.done() or not all(map(pool.is_there, EXTRA)), 'the first is deleted', pause=0.001)
        ids = {name: [zone['id']] for name, zone in zip(EXTRA, clients.map(stack.create_zone, EXTRA))}
        assert 0 < found.result()['deleted'] <= len(EXTRA)
    must_be_as_wanted(pool, storage, ids)
