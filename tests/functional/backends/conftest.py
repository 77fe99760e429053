"""Fixtures for the tests of the drivers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fixtures.nameservers import Primary
from tests.fixtures.rigs import KEY


@pytest.fixture
def keyed_primary() -> Iterator[Primary]:
    """A primary that knows the key :data:`KEY`."""
    with Primary(keys=[KEY]) as server:
        yield server
