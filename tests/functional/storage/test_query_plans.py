"""No statement of the daily work goes through a large table: each is explained on each database.

``python -m benchmarks.queries`` does the same with a million rows.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine.default import CacheStats

from designate_pool.central.rules import quotas
from designate_pool.model import PageRequest
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import pool_manager_status
from designate_pool.storage.zones import domains
from testing.hot_paths import BATCH, EXEMPT, HotPaths, change_one, everything, import_one
from testing.many_domains import domain_ids, fill
from testing.query_plans import NO_SCANS, Explaining

DOMAINS, CHUNK = 2500, 50


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
        everything(paths, domain_ids(filled, CHUNK))
    faults = {each.operation: f'{each.fault}: {each.statement}\n{each.plan}' for each in explaining.found.values()
              if each.fault}
    wrong = [f'{name} {why}' for name, why in faults.items() if name not in EXEMPT]
    assert not wrong, '\n\n'.join(wrong)
    assert len(explaining.found) > 100
    (watch,) = (each for each in explaining.found.values() if each.operation == 'MiniDNS: what MiniDNS watches')
    assert watch.read < DOMAINS / 25, 'each MiniDNS does it every few seconds'
    assert set(EXEMPT) <= {each.operation for each in explaining.found.values()}


#: By piece of work; a number at its end says how many domains, reports or changes it is about.
MOST = {
    'Central: create a domain': 10,
    'Central: create a recordset': 7,
    'Central: update a recordset': 8,
    'Central: delete a recordset': 7,
    'Central: apply changes, 1': 7,
    'Central: apply changes, 100': 10,
    'Central: update a domain': 4,
    'Central: delete a domain': 6,
    'Central: reports, 1': 3,
    f'Central: reports, {BATCH // 2}': 3,
    'Central: imports that wait': 1,
    'Central: an import': 15,
    'pool manager: creates, 1': 10,
    'pool manager: changes, 1': 3,
    f'pool manager: changes, {BATCH}': 3,
    'pool manager: deletes, 1': 18,
    'pool manager: answers about domains, 1': 3,
    f'pool manager: answers about domains, {BATCH}': 6,
    'pool manager: situations, 1': 2,
    f'pool manager: situations, {BATCH}': 2,
    'pool manager: claim what is due': 2,
    'pool manager: give back what was claimed': 2,
    'pool manager: a page of unsettled domains': 2,
    'audit: where it is': 1,
    'audit: claim a page': 1,
    'audit: a page': 1,
    'audit: the next page': 1,
    'audit: answers': 2,
    'API: a zone file': 3,
    'API: an import': 1,
    'API: zones of a large project': 2,
    'API: the next zones of a large project': 3,
    'API: zones of everybody': 1,
    'API: recordsets of a small project': 7,
    'API: recordsets of a large project': 6,
    'API: recordsets of everybody': 3,
    'API: recordsets of a zone': 4,
    'API: recordsets of a large zone': 4,
    'API: the servers of a zone': 2,
    'MiniDNS: head, 1': 1,
    f'MiniDNS: heads, {BATCH}': 1,
    'MiniDNS: a zone': 2,
    'MiniDNS: changes of zones, 1': 3,
    f'MiniDNS: changes of zones, {BATCH}': 3,
    f'MiniDNS: sizes of zones, {BATCH}': 1,
    'metrics: a server': 2,
    'metrics: unsettled domains': 2,
}


class Counting:
    """
    :ivar done: by piece of work, how many statements it took each time
    :ivar compiled: statements that were compiled since :attr:`done` was cleared
    """

    def __init__(self, storage: Storage) -> None:
        self._under_way: list[list[str]] = []
        self.done: dict[str, list[int]] = collections.defaultdict(list)
        self.compiled: list[str] = []
        for engine in storage.engines:
            sa.event.listen(engine, 'before_cursor_execute', self._count)

    @contextlib.contextmanager
    def doing(self, operation: str) -> Iterator[None]:
        statements: list[str] = []
        self._under_way.append(statements)
        yield
        self._under_way.pop()
        self.done[operation].append(len(statements))

    def _count(self, connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        if self._under_way and not statement.startswith('BEGIN'):
            self._under_way[-1].append(statement)
            if context.compiled is not None and context.cache_hit is not CacheStats.CACHE_HIT:
                self.compiled.append(f'{context.cache_hit.name}: {statement}')


@pytest.fixture
def storage(tmp_path: pathlib.Path) -> Iterator[Storage]:
    url = f'sqlite:///{tmp_path}/database.sqlite'
    migrate.upgrade(url)
    storage = Storage(url)
    fill(storage, 3 * BATCH)
    yield storage
    storage.close()


def test_many_take_as_few_statements_as_one_and_none_is_compiled_twice(storage: Storage,
                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    # However slow the machine is, they are read once.
    monkeypatch.setattr(quotas, 'CACHED', datetime.timedelta(hours=1))
    counting = Counting(storage)
    paths = HotPaths(storage, counting)
    first = domain_ids(storage, BATCH)
    everything(paths, first)
    for again in (change_one, import_one):  # the names have been there before, and have something to inherit
        again(paths)
    paths.situations(first[:1])
    assert set(MOST) <= set(counting.done)
    assert {name: max(counting.done[name]) for name in MOST if max(counting.done[name]) > MOST[name]} == {}

    counting.compiled.clear()
    everything(paths, domain_ids(storage, BATCH, first[-1]))
    paths.situations(first[-1:])
    assert not counting.compiled


@pytest.mark.parametrize('project_id', [None, 'alpha'])
def test_the_statement_of_a_page_is_built_once(storage: Storage, project_id: str | None) -> None:
    statements: list[Any] = []
    for engine in storage.engines:
        sa.event.listen(engine, 'before_execute', lambda connection, statement, *rest: statements.append(statement))
    for _ in range(2):
        storage.read(domains.find, PageRequest(), project_id)
    assert statements[-1] is statements[len(statements) // 2 - 1]
