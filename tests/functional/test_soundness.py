"""``designate-pool-manage check``: silent about a pool that is sound, and naming each thing that is not."""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import uuid
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_config import cfg

from designate_pool.cmd import manage
from designate_pool.model import Action, Endpoint
from designate_pool.nameserver.server import NameServer
from designate_pool.storage.schema import domains, pool_manager_status
from designate_pool.storage.sessions import Storage
from tests.fixtures.nameservers import SECRET
from tests.fixtures.processes import free_port, wait_until
from tests.fixtures.stack import Stack

NAMES = ('a.example.com.', 'b.example.com.', 'c.example.com.', 'sub.a.example.com.', 'gone.example.com.')


def check(stack: Stack) -> tuple[int, Any]:
    """What the command says at once."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = manage.main(['--config-file', str(stack.config), 'check', '--patience', '0', '--json'],
                           cfg.ConfigOpts())
    return code, json.loads(printed.getvalue())


@pytest.fixture
def servers() -> Any:
    made = [NameServer(Endpoint('127.0.0.1', free_port()), Endpoint('127.0.0.1', free_port()), SECRET)
            for _ in range(2)]
    for each in made:
        each.start()
    yield made
    for each in made:
        each.stop()


def test_what_is_wrong_is_named_and_nothing_else(tmp_path: pathlib.Path, servers: list[NameServer]) -> None:
    sections = [f'[backend:secondary:{uuid.uuid4()}]\nhost = 127.0.0.1\nport = {each.endpoint.port}\n'
                f'control_port = {each.control_endpoint.port}\ncontrol_secret = {SECRET}\ncall_timeout = 2\n'
                for each in servers if each.control_endpoint]
    url = f'sqlite:///{tmp_path}/pool.sqlite'
    with Stack(tmp_path / 'stack', sections, url) as stack:
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
            tx.execute(sa.update(domains).where(domains.c.id == zones['sub.a.example.com.']).values(project_id='blue')),
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
    assert found['nested'] == ['sub.a.example.com. of the project blue lies below a.example.com. of the project -.']
    assert found['extra'] == {labels[0]: ['own.example.org.']}
    servers[1].stop()
    code, found = check(stack)
    assert code == 1 and list(found['unseen']) == [labels[1]]
