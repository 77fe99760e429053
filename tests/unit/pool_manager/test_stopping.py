"""The end of a pool manager."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from tests.unit.pool_manager.test_manager import World, clock, world  # noqa: F401  fixtures


def test_without_its_database_it_ends_all_the_same(
        world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:  # noqa: F811
    def fail(*arguments: Any) -> None:
        raise OperationalError('UPDATE', {}, Exception('the server has gone away'))

    world.create()
    monkeypatch.setattr(world.storage, 'run', fail)
    world.manager.stop()
    assert 'the server has gone away' in caplog.text
