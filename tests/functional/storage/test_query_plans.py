"""No statement of the daily work goes through a large table: each is explained on each database.

``python -m benchmarks.queries`` does the same with a million rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import pool_manager_status
from testing.hot_paths import EXEMPT, HotPaths, everything
from testing.many_domains import domain_ids, fill
from testing.query_plans import NO_SCANS, Explaining

DOMAINS, BATCH = 2500, 50


@pytest.fixture(scope='module', params=['sqlite', 'mariadb', 'postgresql'])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    """A database with many rows, 10,000 in each large table."""
    url = f'sqlite:///{tmp_path_factory.mktemp("plans")}/database.sqlite'
    if request.param != 'sqlite':
        url = request.getfixturevalue(request.param).create_database()
    migrate.upgrade(url)
    if request.param == 'postgresql':
        url += NO_SCANS
    storage = Storage(url)
    fill(storage, DOMAINS)
    yield storage
    storage.close()


def test_a_statement_without_an_index_is_found_out(filled: Storage) -> None:
    explaining = Explaining(filled)
    rows = pool_manager_status
    statements = [sa.select(rows.c.id).where(rows.c.claimed_by == 'nobody'),
                  sa.select(rows.c.id).order_by(rows.c.version).limit(1),
                  sa.update(rows).where(rows.c.attempts > 99).values(attempts=0)]
    with explaining.listening(), explaining.doing('what nobody does'):
        for statement in statements:
            filled.run(lambda tx: tx.execute(statement))
        filled.run(lambda tx: tx.execute(sa.select(rows).where(rows.c.domain_id == 'd' + 31 * '0')).all())
    assert [each.fault is None for each in explaining.found.values()] == [False, False, False, True]


def test_no_statement_of_the_daily_work_goes_through_a_large_table(filled: Storage) -> None:
    explaining = Explaining(filled)
    paths = HotPaths(filled, explaining)
    with explaining.listening():
        everything(paths, domain_ids(filled, BATCH))
    faults = {each.operation: f'{each.fault}: {each.statement}\n{each.plan}' for each in explaining.found.values()
              if each.fault}
    wrong = [f'{name} {why}' for name, why in faults.items() if name not in EXEMPT]
    assert not wrong, '\n\n'.join(wrong)
    assert len(explaining.found) > 100
    (watch,) = (each for each in explaining.found.values() if each.operation == 'MiniDNS: what MiniDNS watches')
    assert watch.read < DOMAINS / 25, 'each MiniDNS does it every few seconds'
    assert set(EXEMPT) <= {each.operation for each in explaining.found.values()}
