"""``designate-pool-manage check``: silent about a pool that is sound, and naming each thing that is not."""

from __future__ import annotations

import contextlib
import json
import pathlib
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool.cmd.compose.lifecycle import Heartbeat
from designate_pool.model import Action, Endpoint, Outcome, ServerState, Status, names, utcnow
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import domains, pool_manager_status, pool_servers, pools
from testing.databases import upgraded_sqlite
from testing.processes import free_port, wait_until
from testing.stack import Stack, manage
from tests.fixtures.nameservers import LocalSecondary, local_secondaries

NAMES = ('a.example.com.', 'b.example.com.', 'c.example.com.', 'gone.example.com.')


def check(stack: Stack, patience: float = 0) -> tuple[int, Any]:
    """What the command says."""
    code, printed, _ = manage(stack.config, 'check', '--patience', f'{patience}', '--json')
    return code, json.loads(printed)


def insert(storage: Storage, table: sa.Table, **values: Any) -> None:
    now = utcnow()
    storage.run(lambda tx: tx.execute(table.insert(), {'created_at': now, 'updated_at': now, **values}).close())


@pytest.fixture
def silver(tmp_path: pathlib.Path) -> Iterator[Storage]:
    """A database with a pool that no configuration is here for, and a zone of it on one server."""
    url = upgraded_sqlite(tmp_path / 'pool.sqlite')
    with contextlib.closing(Storage(url)) as storage:
        insert(storage, pools, id='f' * 32, name='silver', threshold_percentage=100, published_at=utcnow())
        insert(storage, pool_servers, id='a' * 32, pool_id='f' * 32, label='knot:192.0.2.53', driver='knot',
               state=ServerState.ACTIVE, state_since=utcnow(), fingerprint='')
        insert(storage, domains, id='d' * 32, pool_id='f' * 32, name='silver.example.com.',
               reversed_name=names.from_the_root('silver.example.com.'), email='a@example.com',
               ttl=3600, refresh=3600, retry=600, expire=86400, minimum=300, serial=5, reported_serial=5,
               action=Action.NONE, status=Status.ACTIVE)
        for number, action in enumerate((Action.CREATE, Action.UPDATE)):
            insert(storage, pool_manager_status, id=str(number) * 32, server_id='a' * 32, domain_id='d' * 32,
                   action=action, status=Outcome.SUCCESS, serial_number=5, expected_serial=5)
        yield storage


def check_default(storage: Storage, folder: pathlib.Path, *arguments: str) -> tuple[int, str]:
    """What the command says with the configuration of the pool 'default', which has one server that is dead."""
    path = folder / 'default.conf'
    path.write_text(f'[database]\nconnection = {storage.engine.url}\n[backend:fake:{uuid.uuid4()}]\n'
                    'host = 192.0.2.1\n')
    return manage(path, 'check', '--patience', '0', *arguments)[:2]


def test_the_rows_of_other_pools_are_looked_at_and_their_servers_are_not(silver: Storage,
                                                                         tmp_path: pathlib.Path) -> None:
    code, told = check_default(silver, tmp_path)
    assert (code, told.splitlines()) == (0, [
        'No minidns of the pool silver has sent a heartbeat recently.',
        'No pool_manager of the pool silver has sent a heartbeat recently.',
        'Of the pool silver only the rows were checked (1 zones; its 1 servers were not asked): this configuration is '
        'of the pool default.', '1 zones, 0 servers: no breaches.'])
    Heartbeat(silver, ['minidns', 'pool_manager'], 'one.example.com', 'silver')._write_status('UP')
    long_ago = utcnow() - timedelta(hours=1)
    rows = pool_manager_status
    silver.run(lambda tx: tx.execute(sa.update(rows).where(rows.c.action == Action.UPDATE).values(
        status=Outcome.ERROR, last_error='no answer', next_attempt_at=long_ago, claimed_by='gone',
        claimed_until=long_ago)).close())
    insert(silver, domains, id='e' * 32, pool_id='f' * 32, name='gone.example.com.',
           reversed_name=names.from_the_root('gone.example.com.'), email='a@example.com', ttl=3600, refresh=3600,
           retry=600, expire=86400, minimum=300, serial=5, action=Action.NONE, status=Status.DELETED,
           deleted='e' * 32, deleted_at=long_ago)
    insert(silver, rows, id='c' * 32, server_id='a' * 32, domain_id='e' * 32, action=Action.DELETE, expected_serial=5)
    code, told = check_default(silver, tmp_path)
    since = f'{long_ago:%Y-%m-%d %H:%M:%S}'
    assert (code, told.splitlines()) == (1, [
        'gone.example.com. of the pool silver: DELETE on knot:192.0.2.53: it is PENDING and waits for nothing.',
        f'silver.example.com. of the pool silver: UPDATE on knot:192.0.2.53: it is due since {since}, and nobody has '
        'taken it.',
        'knot:192.0.2.53 of the pool silver has operations that fail: 1 in ERROR, the first silver.example.com.: '
        'UPDATE: no answer',
        'Of the pool silver only the rows were checked (2 zones; its 1 servers were not asked): this configuration is '
        'of the pool default.', '2 zones, 0 servers: 2 breaches.'])
    found = json.loads(check_default(silver, tmp_path, '--json')[1])
    assert found['pool'] == 'default' and {each['pool'] for each in found['breaches']} == {'silver'}
    assert found['pools']['silver']['asked'] is False and found['pools']['default']['asked'] is True


@pytest.fixture
def servers() -> Iterator[list[LocalSecondary]]:
    with local_secondaries(2) as running:
        yield running


def test_what_is_wrong_is_named_and_nothing_else(tmp_path: pathlib.Path, servers: list[LocalSecondary]) -> None:
    url = f'sqlite:///{tmp_path}/pool.sqlite'
    with Stack(tmp_path / 'stack', [each.section() for each in servers], url) as stack:
        zones = {name: stack.create_zone(name)['id'].replace('-', '') for name in NAMES}
        for zone in zones.values():
            stack.wait_for(zone)
        servers[0].add_zone('own.example.org.', [Endpoint('127.0.0.1', free_port())])
        stack.delete_zone(zones['gone.example.com.'])
        wait_until(lambda: not any(each.serial('gone.example.com.') for each in servers), 'it is gone')
        stack.must_be_sound()
        assert 'has 1 zones of its own: own.example.org.' in stack.manage('check')
        primary = Endpoint('127.0.0.1', stack.minidns_port)
    rows, updates = pool_manager_status, pool_manager_status.c.action == Action.UPDATE
    with contextlib.closing(Storage(url)) as storage:
        storage.run(lambda tx: [
            tx.execute(sa.update(domains).where(domains.c.id == zones['a.example.com.']).values(reported_serial=1)),
            tx.execute(sa.update(rows).where(rows.c.domain_id == zones['b.example.com.'], updates)
                       .values(status=None)),
        ])
    servers[1].delete_zone('c.example.com.')
    servers[0].add_zone('gone.example.com.', [primary])
    code, found = check(stack)
    labels = [f'secondary:{each.endpoint}' for each in servers]
    assert code == 1 and not found['ok']
    assert {(each['about'], each['what']) for each in found['breaches']} == {
        ('a.example.com.', 'it is ACTIVE with NONE to be done and serial 1 reported'),
        *(('b.example.com.', f'UPDATE on {label}: it is PENDING and waits for nothing') for label in labels),
        (labels[0], 'gone.example.com. is there, and was deleted'),
        (labels[1], 'c.example.com. is not there, and its row says that it is')}
    assert found['extra'] == {labels[0]: ['own.example.org.']}
    servers[0].delete_zone('gone.example.com.')
    code, found = check(stack, patience=0.1)
    assert (code, found['servers']) == (1, 2), 'one of two servers is wrong, and was checked again'
    servers[1].stop()
    code, found = check(stack)
    assert code == 1 and list(found['unseen']) == [labels[1]]
