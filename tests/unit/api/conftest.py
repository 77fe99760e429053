from __future__ import annotations

import falcon.testing
import pytest

from designate_pool.api.app import create_app
from tests.unit.api.stand_in import POOL, StandIn


@pytest.fixture
def central():
    return StandIn()


@pytest.fixture
def api(central):
    """A client of the application, without a server between."""
    return falcon.testing.TestClient(create_app(central, POOL, import_limit=1000))


@pytest.fixture
def zone(api):
    """A zone, just made."""
    return api.simulate_post('/v2/zones', json={'name': 'example.com.', 'email': 'hostmaster@example.com'}).json
