"""A MiniDNS is killed while servers are polled, and a round of polls takes minutes.

Over RabbitMQ and PostgreSQL, a process for each service, with a BIND.
"""

from __future__ import annotations

import pathlib
import uuid
from collections.abc import Iterator

import pytest

from testing.bind import Named
from testing.databases import PostgreSQL
from testing.processes import wait_until
from testing.rabbitmq import RabbitMq
from testing.stack import QUICK, Stack

#: Rounds that no test waits for.
LONG = {**QUICK, 'poll_timeout': '200'}


@pytest.fixture(scope='module')
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Named]:
    with Named(tmp_path_factory.mktemp('named')) as running:
        yield running


@pytest.fixture(scope='module')
def stack(tmp_path_factory: pytest.TempPathFactory, rabbitmq: RabbitMq, postgresql: PostgreSQL,
          named: Named) -> Iterator[Stack]:
    folder: pathlib.Path = tmp_path_factory.mktemp('stack')
    with Stack(folder, [named.section(str(uuid.uuid4()), call_timeout=2)], postgresql.create_database(), rabbitmq.url,
               manager=LONG) as running:
        yield running
        running.must_be_sound()


def test_what_a_killed_minidns_was_polling_is_polled_by_the_next(stack: Stack, named: Named) -> None:
    name = 'killed.example.com.'
    zone_id = stack.create_zone(name)['id']
    recordset = stack.create_recordset(zone_id, f'www.{name}', 'A', '192.0.2.1')['id']
    stack.wait_for(zone_id)
    with named.standing_still():
        stack.set_recordset(zone_id, recordset, '192.0.2.2')
        wait_until(lambda: all(each['deadline_at'] for each in stack.servers(zone_id).values()), 'it is polled')
        stack.kill('minidns')
    # The server was notified, and finds nobody to transfer from; it tries again when the SOA's timers say so.
    wait_until(lambda: f'zone {name.rstrip(".")}/IN: refresh: failure' in named.log
               or f'zone {name.rstrip(".")}/IN: refresh: retry limit' in named.log, 'it could not transfer', 60)
    stack.launch('minidns')
    stack.wait_for(zone_id)
    assert named.addresses(name) == ['192.0.2.2']
