"""For how long a Central keeps what it has read of a project's quotas."""

from __future__ import annotations

import pytest

from designate_pool.central.rules.quotas import CACHE_SECONDS, Allowance, ProjectQuotas
from designate_pool.model import utcnow
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import quotas


@pytest.mark.parametrize(('seconds', 'found'), [(0, 7), (CACHE_SECONDS - 1, 7), (CACHE_SECONDS, 3), (-100, 3)])
def test_quotas_that_another_central_has_set_count_soon_and_when_the_clock_is_set_back(
        emptied_sqlite: Storage, seconds: float, found: int) -> None:
    now = 1000.0
    allowance = Allowance(ProjectQuotas(zones=7), lambda: now)
    assert emptied_sqlite.read(allowance.limits_of, 'project').zones == 7
    emptied_sqlite.run(quotas.save, 'project', {'zones': 3}, utcnow())
    now += seconds
    assert emptied_sqlite.read(allowance.limits_of, 'project').zones == found
