from __future__ import annotations

import falcon.testing
import pytest

from designate_pool.api.app import create_app
from tests.unit.api.stand_in import POOL, StandIn, StandInPoolManager


@pytest.fixture
def central():
    return StandIn()


@pytest.fixture
def pool_manager():
    return StandInPoolManager()


@pytest.fixture
def api(central, pool_manager):
    """A client of the application, without a server between."""
    return falcon.testing.TestClient(create_app(central, POOL, import_limit=1000, pool_managers=pool_manager))


@pytest.fixture
def zone(api):
    """A zone, just made."""
    return api.simulate_post('/v2/zones', json={'name': 'example.com.', 'email': 'hostmaster@example.com'}).json
