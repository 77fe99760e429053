from __future__ import annotations

import io
import logging
import uuid

import pytest

from designate_pool.api.app import create_app
from designate_pool.api.http.server import ApiServer
from designate_pool.cli.app import Shell
from designate_pool.model import Endpoint
from designate_pool.settings import ApiSettings
from tests.fixtures import root_log
from tests.fixtures.commands import Ran
from tests.fixtures.observed_central import POOL, PoolManager, observed_central


@pytest.fixture
def central(tmp_path_factory, monkeypatch):
    # It runs in this process, and its log is not the command's.
    monkeypatch.setattr(logging.getLogger('designate_pool'), 'propagate', False)
    yield from observed_central(tmp_path_factory.mktemp('central'))


@pytest.fixture
def pool_manager():
    return PoolManager()


@pytest.fixture
def api(central, pool_manager):
    server = ApiServer(create_app(central, POOL, pool_managers=pool_manager, storage=central.storage),
                       Endpoint('127.0.0.1', 0), ApiSettings(threads=2, waits=0))
    server.start()
    yield f'http://{server.endpoint}'
    server.stop()


@pytest.fixture(autouse=True)
def root_log_as_before():
    """cliff sets its level and gives it handlers."""
    with root_log.as_before():
        yield


@pytest.fixture
def run(api, caplog):
    """Runs ``designate-pool`` with these words against the API."""
    # A connection of another test of this process, whose broker has ended, is not what the command tells of.
    caplog.set_level(logging.CRITICAL, 'oslo_messaging')

    def run(*words, stdin='', url=api):
        out, err = io.StringIO(), io.StringIO()
        with root_log.as_before():
            code = Shell(stdin=io.StringIO(stdin), stdout=out, stderr=err).run(['--url', url, *words])
        return Ran(code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def zone(run, central):
    """The zone example.com. on every server; its id as Central knows it."""
    ran = run('zone', 'create', 'example.com', '--email', 'hostmaster@example.com', '-f', 'json')
    domain_id = uuid.UUID(ran.json['id']).hex
    central.settle(domain_id)
    return domain_id
