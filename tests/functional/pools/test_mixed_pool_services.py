"""A BIND, an NSD, a Knot and a PowerDNS in one pool: over RabbitMQ and PostgreSQL, a process for each service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testing.databases import PostgreSQL
from testing.processes import wait_until
from testing.rabbitmq import RabbitMq
from tests.fixtures.mixed import MAKES, Mixed


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory, rabbitmq: RabbitMq, postgresql: PostgreSQL) -> Iterator[Mixed]:
    with Mixed(tmp_path_factory.mktemp('mixed'), postgresql.create_database(), rabbitmq.url,
               manager={'delete_zones_of_removed_servers': 'true'}) as running:
        yield running
        running.stack.must_be_sound()


@pytest.fixture(scope='module')
def second_manager(pool: Mixed) -> Iterator[str]:
    pool.stack.launch('manager', key='second')
    yield 'second'
    pool.stack.stop('second')


def test_what_one_pool_manager_has_read_anew_the_other_follows(pool: Mixed, second_manager: str) -> None:
    zone, recordset = pool.create('follow.example.com.')
    others = [make for make in MAKES if make != 'knot']
    pool.stack.reload(pool.sections(others), 'manager')
    pool.wait_for_state('knot', 'removed')
    pool.wait_until_gone(['follow.example.com.'], ['knot'])
    pool.stack.stop('manager')
    pool.stack.set_recordset(zone, recordset, '192.0.2.2')
    pool.stack.wait_for(zone)
    pool.all_serve('follow.example.com.', '192.0.2.2', others)
    created, _ = pool.create('only-second.example.com.', makes=others)
    assert pool.ids['knot'] not in pool.stack.servers(created)

    pool.stack.launch('manager')
    pool.stack.reload(pool.sections(), second_manager)
    pool.wait_for_state('knot', 'active')
    pool.stack.stop(second_manager)
    pool.all_serve('follow.example.com.', '192.0.2.2')
    pool.stack.set_recordset(zone, recordset, '192.0.2.3')
    pool.stack.wait_for(zone)
    pool.all_serve('follow.example.com.', '192.0.2.3')
    pool.create('only-first.example.com.')
    pool.stack.launch('manager', key=second_manager)


def test_a_pool_manager_killed_while_it_empties_or_fills_a_server_is_replaced_by_the_other(
        pool: Mixed, second_manager: str) -> None:
    make = 'pdns'
    names = [f'{make}{number}.example.net.' for number in range(100)]
    pool.import_all(names)
    pool.wait_for_all()
    pool.stack.reload(pool.sections(each for each in MAKES if each != make), 'manager')
    wait_until(lambda: pool.server_state(make)['state'] in ('draining', 'removed'), f'{make} leaves')
    pool.stack.kill('manager')
    try:
        pool.wait_for_state(make, 'removed')
        pool.wait_until_gone(names[::10], [make], 10)
        assert pool.listed(make, names) == {}
    finally:
        pool.stack.launch('manager')
        pool.stack.reload(pool.sections(), 'manager')
    pool.wait_for_joining(make)
    pool.stack.kill('manager')
    try:
        pool.wait_for_state(make, 'active')
        expected = pool.expected()
        assert pool.serials(make, expected) == expected
    finally:
        pool.stack.launch('manager')
