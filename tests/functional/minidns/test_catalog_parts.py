"""A large catalog after a change: only what changed is read and packed again, and it is what all of it would be."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone

import pytest
import sqlalchemy as sa

from designate_pool.minidns.zones import catalog_zone
from designate_pool.minidns.zones.catalog_zone import PackedCatalog
from designate_pool.model import CATALOG_ID, LAST_STAGE, Action, Status, ZoneHead
from designate_pool.storage.reporting import purge
from designate_pool.storage.serving import catalog as store
from designate_pool.storage.serving.catalog import END, CatalogReading, Member
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import catalogs, domains
from testing.rows import default_pool_id, raise_catalog, set_catalog

HEAD = ZoneHead(CATALOG_ID, 'catalog.example.', 'default', 'hostmaster@invalid', 0, 1, 60, 10, 0x7fffffff, 0,
                ('invalid.',))
BEGIN = datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


class Pool:
    """A pool in which an hour passes between two changes."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.now = BEGIN
        self.ranges: list[tuple[str, str]] = []

    def add(self, *ids: str) -> None:
        self._pass(insert, ids, ids, self.now)

    def delete(self, *ids: str) -> None:
        self._pass(change, ids, ids, {'action': Action.DELETE, 'changed_at': self.now})

    def change(self, *ids: str) -> None:
        self._pass(change, (), ids, {'serial': domains.c.serial + 1, 'changed_at': self.now})

    def read(self, former: PackedCatalog | None) -> PackedCatalog:
        """The catalog after *former*; :attr:`ranges` is what was read for it."""
        self.ranges.clear()
        found = self.storage.read(store.snapshot, 'default', [],
                                  functools.partial(catalog_zone.read_catalog, HEAD, former))
        assert found is not None
        return found

    def _pass(self, work: Callable[..., object], came_or_went: Sequence[str], *arguments: object) -> None:
        self.now += timedelta(hours=1)
        self.storage.run(lambda tx: (work(tx, *arguments), raise_catalog(tx, self.now, came_or_went)) and None)


def insert(tx: Tx, ids: Sequence[str], now: datetime) -> None:
    pool_id = default_pool_id(tx)
    tx.execute(domains.insert(), [
        {'id': key, 'created_at': now, 'updated_at': now, 'changed_at': now, 'pool_id': pool_id,
         'name': f'{key}.example.com.', 'reversed_name': f'com.example.{key}.',
         'email': 'hostmaster@example.com', 'ttl': 60, 'refresh': 60, 'retry': 60,
         'expire': 60, 'minimum': 60, 'serial': 1, 'action': Action.CREATE, 'status': Status.PENDING} for key in ids])


def change(tx: Tx, ids: Sequence[str], values: dict[str, object]) -> None:
    tx.execute(sa.update(domains).where(domains.c.id.in_(ids)).values(values))


def ids(*numbers: int) -> list[str]:
    return [f'{number:032x}' for number in numbers]


def records(found: PackedCatalog) -> tuple[int, bytes]:
    return sum(count for count, _ in found.bodies), b''.join(octets for _, octets in found.bodies)


def grown_old(found: PackedCatalog) -> PackedCatalog:
    return dataclasses.replace(found, full_read_at=found.full_read_at - catalog_zone.FULL_READ_INTERVAL)


@pytest.fixture
def pool(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> Pool:
    """A pool of 40 domains with even ids, in ten blocks."""
    monkeypatch.setattr(catalog_zone, 'BLOCK_MEMBERS', 4)
    made = Pool(storage)
    storage.run(set_catalog, 1)
    read = CatalogReading.members

    def seen(self: CatalogReading, first: str = '', end: str = END, stage: int = LAST_STAGE) -> Iterator[Member]:
        made.ranges.append((first, end))
        return read(self, first, end, stage)

    monkeypatch.setattr(CatalogReading, 'members', seen)
    made.add(*ids(*range(2, 82, 2)))
    return made


def test_nothing_is_read_when_no_domain_came_or_went(pool: Pool) -> None:
    first = pool.read(None)
    assert pool.ranges == [('', END)] and len(first.blocks) == 10
    pool.change(*ids(2, 40, 80))
    second = pool.read(first)
    assert not pool.ranges and second.serial > first.serial
    assert records(second)[0] == 40 + 4
    assert records(second) == records(pool.read(None))


@pytest.mark.parametrize(('comes', 'goes', 'blocks'), [
    ([41], [], 1), ([], [2], 1), ([1], [], 1), ([], [10, 12, 14, 16], 1), ([99], [50], 2), ([], [80], 1),
    ([3, 5, 7, 9, 11], [], 2)])
def test_only_blocks_in_which_domains_came_or_went_are_read(pool: Pool, comes: list[int], goes: list[int],
                                                            blocks: int) -> None:
    former = pool.read(None)
    if comes:
        pool.add(*ids(*comes))
    if goes:
        pool.delete(*ids(*goes))
    found = pool.read(former)
    assert len(pool.ranges) == blocks and ('', END) not in pool.ranges
    assert records(found)[0] == 40 + 4 + len(comes) - len(goes)
    assert records(found) == records(pool.read(None))


@pytest.mark.parametrize('why', ['many changes', 'small', 'long ago', 'a backup'])
def test_when_all_is_read_anew(pool: Pool, why: str) -> None:
    if why == 'small':
        pool.delete(*ids(*range(10, 82, 2)))
    former = pool.read(None)
    if why == 'long ago':
        former = grown_old(former)
    if why == 'many changes':
        pool.delete(*ids(*range(2, 82, 8)))
    if why == 'a backup':
        pool.storage.run(lambda tx: tx.execute(
            catalogs.update().values(changes=0, serial=catalogs.c.serial + 1)) and None)
    else:
        pool.add(*ids(41))
    found = pool.read(former)
    assert pool.ranges == [('', END)]
    assert records(found) == records(pool.read(None))


def test_after_any_changes_it_is_what_all_of_it_would_be(pool: Pool) -> None:
    dice = random.Random(6)
    there, found = set(range(2, 82, 2)), pool.read(None)
    for _ in range(40):
        if dice.random() < 0.5:
            new = dice.sample(sorted(set(range(1, 200)) - there - set(range(2, 82, 2))), 2)
            pool.add(*ids(*(number + 1000 * len(there) for number in new)))
            there.update(new)
        else:
            pool.delete(*ids(dice.choice(range(2, 82, 2))))
        found = pool.read(found)
        assert records(found) == records(pool.read(None))


def test_a_deleted_domain_that_was_purged_since_is_not_kept_beside_its_successor(pool: Pool) -> None:
    (old,), (new,) = ids(30), ids(75)
    former = grown_old(pool.read(None))
    pool.delete(old)
    pool.storage.run(change, [old], {'status': Status.DELETED, 'deleted': old, 'updated_at': pool.now})
    pool.add(new)
    pool.storage.run(change, [new], {'name': f'{old}.example.com.', 'generation': 2})
    pool.storage.run(purge.purge, pool.now + timedelta(days=8), 1000)
    found = pool.read(former)
    assert f'{old}-'.encode() not in records(found)[1]
    assert records(found) == records(pool.read(None))
