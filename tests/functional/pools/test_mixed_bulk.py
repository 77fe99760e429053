"""A thousand domains at once on a mixed pool: over RabbitMQ and PostgreSQL, a process for each service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testing.databases import PostgreSQL
from testing.rabbitmq import RabbitMq
from tests.fixtures.mixed import Mixed
from tests.functional.pools.mixed_contract import BulkContract


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory, rabbitmq: RabbitMq, postgresql: PostgreSQL) -> Iterator[Mixed]:
    with Mixed(tmp_path_factory.mktemp('mixed'), postgresql.create_database(), rabbitmq.url) as running:
        yield running
        running.stack.must_be_sound()


class TestMixedBulk(BulkContract):
    imports = 1000
