"""The devstack plugin: what it has devstack run, run on a real database, broker and name server."""

from __future__ import annotations

import pathlib

import pytest

from testing.databases import MariaDB
from testing.processes import binary, wait_until
from testing.rabbitmq import RabbitMq
from tests.fixtures.devstack import STACK, Devstack, commands


@pytest.fixture
def services(mariadb: MariaDB, rabbitmq: RabbitMq) -> dict[str, str]:
    """The settings of a real database server and a real broker."""
    recreate = f'{binary("mariadb")} --no-defaults --host=127.0.0.1 --port={mariadb.port} --user=root'
    return {'DATABASE_URL': mariadb.url('designate_pool') + '?charset=utf8', 'RECREATE': recreate,
            'TRANSPORT_URL': rabbitmq.url}


def test_a_zone_is_served_by_named_and_after_stacking_again_another_one(tmp_path: pathlib.Path,
                                                                        services: dict[str, str]) -> None:
    devstack = Devstack(tmp_path / 'host', 'bind9', '::1', **services)
    for name, other in (('one.example.com.', 'two.example.com.'), ('two.example.com.', 'one.example.com.')):
        with devstack.running(commands(devstack.run('stack', *STACK))):
            serves_a_zone(devstack, name)
            assert devstack.texts(f'www.{other}', 'A') == []


def test_a_zone_is_served_by_the_small_name_server(tmp_path: pathlib.Path, services: dict[str, str]) -> None:
    devstack = Devstack(tmp_path / 'host', 'secondary', **services)
    with devstack.running(commands(devstack.run('stack', *STACK))):
        serves_a_zone(devstack, 'one.example.com.')


def serves_a_zone(devstack: Devstack, name: str) -> None:
    checked = devstack.manage('config', 'check')
    assert checked.returncode == 0, checked.stdout
    assert devstack.zones() == {}
    devstack.import_zone(name)
    wait_until(lambda: devstack.zones() == {name: 'ACTIVE'}, 'the zone is ACTIVE')
    assert devstack.texts(f'www.{name}', 'A') == ['192.0.2.1']
