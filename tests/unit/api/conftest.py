from __future__ import annotations

import falcon.testing
import pytest

from designate_pool.api.app import create_app
from designate_pool.settings import ApiSettings
from tests.fixtures.conformance import Conforming
from tests.fixtures.observed_central import POOL, PoolManager, observed_central


@pytest.fixture
def central(tmp_path):
    yield from observed_central(tmp_path)


@pytest.fixture
def pool_manager():
    return PoolManager()


@pytest.fixture
def api(central, pool_manager):
    """A client of the application, without a server between; every answer is held against the document."""
    app = create_app(central, POOL, ApiSettings(max_body=1000), pool_managers=pool_manager, storage=central.storage)
    conforming = Conforming()
    app.add_middleware(conforming)
    yield falcon.testing.TestClient(app)
    assert conforming.faults == []


@pytest.fixture
def zone(api):
    """A zone, just made."""
    return api.simulate_post('/v2/zones', json={'name': 'example.com.', 'email': 'hostmaster@example.com'}).json
