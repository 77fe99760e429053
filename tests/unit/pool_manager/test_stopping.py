"""The end of a pool manager."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from tests.unit.pool_manager.conftest import ScriptedPool


def test_without_its_database_it_ends_all_the_same(
        pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*arguments: Any) -> None:
        raise OperationalError('UPDATE', {}, Exception('the server has gone away'))

    pool.create()
    monkeypatch.setattr(pool.storage, 'run', fail)
    pool.manager.stop()
    assert 'the server has gone away' in caplog.text
