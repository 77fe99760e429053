"""A BIND, an NSD, a Knot and a PowerDNS in one pool: all in one process, on SQLite, with green threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fixtures.mixed import Mixed
from tests.functional.pools.mixed_contract import MixedContract


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    folder = tmp_path_factory.mktemp('mixed')
    with Mixed(folder, f'sqlite:///{folder}/pool.sqlite') as running:
        yield running
        running.stack.must_be_sound()


class TestMixedPool(MixedContract):
    """All that holds for such a pool."""
