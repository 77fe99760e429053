"""The filters that choose the pool of a zone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from designate_pool.central.rules.scheduler import DEFAULT_FILTERS, FILTERS, Scheduler
from designate_pool.config import sections
from designate_pool.errors import NotFound, Refused
from designate_pool.model import Pool, PoolServer, ServerState, new_id, utcnow
from designate_pool.settings import CentralSettings
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import pools

GOLD, SILVER, BARE = (new_id() for _ in range(3))
NAMES = {GOLD: 'gold', SILVER: 'silver', BARE: 'bare'}


@pytest.fixture(scope='module')
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    """The pools ``gold``, ``silver`` and ``default``, which have servers, and ``bare``, which has none."""
    url = f'sqlite:///{tmp_path_factory.mktemp("scheduler") / "db"}'
    migrate.upgrade(url)
    found = Storage(url)
    for pool_id, name in NAMES.items():
        found.run(pools.insert, Pool(name, pool_id, name_servers=(f'ns1.{name}.example.',), attributes=json.dumps(
            {'tier': name, 'anycast': 'yes'})), utcnow())
        if pool_id != BARE:
            found.run(pool_servers.register, name, [PoolServer(
                new_id(), '', f'fake:{name}', 'fake', ServerState.ACTIVE)], False, True, utcnow())
    yield found
    found.close()


def chosen(storage: Storage, *filters: str, chance: float = 0.0, default: str = 'default', **attributes: str) -> str:
    found = storage.run(Scheduler(default, filters=filters).choose, attributes, chance)
    return '' if found is None else found.name


@pytest.mark.parametrize('filters, attributes, expected', [
    (['default_pool'], {'tier': 'gold', 'pool_id': SILVER}, 'default'),
    (['attribute', 'random'], {'tier': 'gold', 'anycast': 'TRUE'}, 'default'),
    (['attribute', 'in_doubt_default_pool'], {}, 'default'),
    (['pool_id_attribute', 'attribute'], {'pool_id': SILVER}, 'silver'),
    (['pool_id_attribute', 'attribute'], {'pool_id': SILVER, 'tier': 'silver'}, 'silver'),
    (['pool_id_attribute'], {'pool_id': BARE}, 'bare'),
    (['pool_id_attribute', 'attribute', 'fallback'], {'pool_id': SILVER, 'tier': 'gold'}, 'default'),
    (['pool_id_attribute', 'default_pool'], {}, 'default'),
    (DEFAULT_FILTERS, {}, 'default'),
    (DEFAULT_FILTERS, {'tier': 'silver'}, 'default'),
], ids=lambda value: '+'.join(value) or 'none')
def test_which_pool_is_chosen(storage: Storage, filters: list[str], attributes: dict[str, str],
                              expected: str) -> None:
    """The pool ``default`` has no attributes, so it matches all."""
    assert chosen(storage, *filters, **attributes) == expected


def test_pools_without_servers_take_part_only_when_named(storage: Storage) -> None:
    assert {chosen(storage, 'random', chance=each / 10) for each in range(10)} == {'default', 'gold', 'silver'}


def test_several_or_no_pools_are_an_error(storage: Storage) -> None:
    with pytest.raises(Refused, match='default, gold, silver'):
        chosen(storage, 'pool_id_attribute')
    with pytest.raises(NotFound):
        chosen(storage, 'pool_id_attribute', pool_id=new_id())
    assert chosen(storage, 'attribute', default='none', tier='gold') == ''


def test_the_default_pool_by_its_id(storage: Storage) -> None:
    found = storage.run(Scheduler('default', GOLD, ('attribute', 'in_doubt_default_pool')).choose, {'tier': 'gold'}, 0)
    assert found is not None and found.name == 'gold'
    found = storage.run(Scheduler('default', GOLD, ('default_pool',)).choose, {}, 0)
    assert found is not None and found.name == 'gold'


def test_the_configuration_knows_the_same_filters() -> None:
    assert set(sections.FILTERS) == set(FILTERS)
    assert CentralSettings().scheduler_filters == DEFAULT_FILTERS
