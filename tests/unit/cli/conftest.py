from __future__ import annotations

import dataclasses
import io
import json
import logging
import uuid

import pytest

from designate_pool.api.app import create_app
from designate_pool.api.http.server import ApiServer
from designate_pool.cli.app import Shell
from designate_pool.model import Endpoint
from tests.unit.api.stand_in import POOL, StandIn, StandInPoolManager
from tests.unit.api.stand_in_tasks import StandInTasks


@dataclasses.dataclass
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def central():
    return StandIn()


@pytest.fixture
def pool_manager():
    return StandInPoolManager()


@pytest.fixture
def api(central, pool_manager):
    server = ApiServer(create_app(central, POOL, pool_managers=pool_manager, tasks=StandInTasks(central)),
                       Endpoint('127.0.0.1', 0), threads=2)
    server.start()
    yield f'http://{server.endpoint}'
    server.stop()


@pytest.fixture
def run(api, monkeypatch):
    """Runs ``designate-pool`` with these words against the API."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    # The API runs in this process too, and its log is not the command's.
    monkeypatch.setattr(logging.getLogger('designate_pool'), 'propagate', False)

    def run(*words, stdin='', url=api):
        out, err = io.StringIO(), io.StringIO()
        code = Shell(stdin=io.StringIO(stdin), stdout=out, stderr=err).run(['--url', url, *words])
        for handler in [each for each in root.handlers if each not in before]:
            root.removeHandler(handler)
        return Ran(code, out.getvalue(), err.getvalue())

    yield run
    root.setLevel(level)


@pytest.fixture
def zone(run, central):
    """The zone example.com. on every server; its id as Central knows it."""
    ran = run('zone', 'create', 'example.com', '--email', 'hostmaster@example.com', '-f', 'json')
    domain_id = uuid.UUID(ran.json['id']).hex
    central.settle(domain_id)
    return domain_id
