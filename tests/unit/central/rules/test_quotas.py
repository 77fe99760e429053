"""For how long a Central keeps what it has read of a project's quotas."""

from __future__ import annotations

from datetime import timedelta

import pytest

from designate_pool.central.rules.quotas import CACHED, Allowance, ProjectQuotas
from designate_pool.model import utcnow
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import quotas


@pytest.mark.parametrize(('seconds', 'found'), [(0, 7), (4, 7), (CACHED.total_seconds(), 3)])
def test_quotas_that_another_central_has_set_count_soon(
        emptied_sqlite: Storage, seconds: float, found: int) -> None:
    now = utcnow()
    allowance = Allowance(ProjectQuotas(zones=7), lambda: now)
    assert emptied_sqlite.read(allowance.limits_of, 'project').zones == 7
    emptied_sqlite.run(quotas.save, 'project', {'zones': 3}, utcnow())
    now += timedelta(seconds=seconds)
    assert emptied_sqlite.read(allowance.limits_of, 'project').zones == found
