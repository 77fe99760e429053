from __future__ import annotations

import falcon.testing
import pytest

from designate_pool.api.app import create_app
from designate_pool.settings import ApiSettings
from tests.fixtures.conformance import Conforming
from tests.unit.api.stand_in import POOL, StandIn, StandInPoolManager
from tests.unit.api.stand_in_tasks import StandInTasks


@pytest.fixture
def central():
    return StandIn()


@pytest.fixture
def pool_manager():
    return StandInPoolManager()


@pytest.fixture
def api(central, pool_manager):
    """A client of the application, without a server between; every answer is held against the document."""
    app = create_app(central, POOL, ApiSettings(max_body=1000), pool_managers=pool_manager, tasks=StandInTasks(central))
    conforming = Conforming()
    app.add_middleware(conforming)
    yield falcon.testing.TestClient(app)
    assert conforming.faults == []


@pytest.fixture
def zone(api):
    """A zone, just made."""
    return api.simulate_post('/v2/zones', json={'name': 'example.com.', 'email': 'hostmaster@example.com'}).json
