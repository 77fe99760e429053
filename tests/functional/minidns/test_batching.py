"""Zones that are requested at the same time are read in one batch, each as if it were read alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from designate_pool.minidns.service import MiniDns
from designate_pool.minidns.zones import loader as minidns_zones
from designate_pool.storage.serving import zone_snapshot
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import domains, records
from testing.processes import wait_until
from testing.zones import EXAMPLE, insert_zone
from tests.functional.minidns.conftest import LocalMiniDns, transfer, zone_of

NAMES = [f'z{number}.example.' for number in range(20)]


class Reads:
    """What *read* reads together; the first of it waits until it is let go."""

    def __init__(self, read: Callable[[Tx, Collection[Any], int], Any]) -> None:
        self.batches: list[list[Any]] = []
        self.go = threading.Event()
        self._read = read

    def read(self, tx: Tx, keys: Collection[Any], most: int, **which: bool) -> Any:
        self.batches.append(sorted(keys))
        assert self.go.wait(20)
        return self._read(tx, keys, most, **which)


def held_up(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> Iterator[Reads]:
    """What the function of that name in *module* reads together."""
    found = Reads(getattr(module, name))
    monkeypatch.setattr(module, name, found.read)
    yield found
    found.go.set()


@pytest.fixture
def database(sqlite: Storage) -> Storage:
    """Central's is the one that MiniDNS reads."""
    return sqlite


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reads]:
    yield from held_up(monkeypatch, zone_snapshot, 'small_zones')


def add(storage: Storage, text: str, *names: str) -> list[str]:
    return [storage.run(lambda tx, name=name: insert_zone(tx, text, name=name)) for name in names]


def ask_for_all(service: MiniDns, reads: Reads, names: Collection[str]) -> dict[str, Any]:
    """The zones, of which all but one are asked for while that one is read."""
    first, *others = names
    with ThreadPoolExecutor(len(names)) as clients:
        asked = {first: clients.submit(transfer, service.endpoints[0], first)}
        wait_until(lambda: reads.batches, 'one is read')
        asked |= {name: clients.submit(transfer, service.endpoints[0], name) for name in others}
        waiting = service._listener._query_handler._zone_loader._small_zones[False]
        wait_until(lambda: len(waiting._next.keys) == len(others), 'the others wait')
        reads.go.set()
        return {name: each.result(20) for name, each in asked.items()}


def test_zones_that_are_asked_for_meanwhile_are_one_reading(minidns: LocalMiniDns, reads: Reads) -> None:
    ids = add(minidns.storage, EXAMPLE, *NAMES)
    found = ask_for_all(minidns.start(), reads, NAMES)
    assert reads.batches == [ids[:1], sorted(ids[1:])]
    assert found == {name: zone_of(EXAMPLE, name) for name in NAMES}


def test_a_zone_that_changes_after_its_head_was_read_is_transferred_as_it_is_then(minidns: LocalMiniDns,
                                                                                  reads: Reads) -> None:
    (changing,) = add(minidns.storage, EXAMPLE, 'example.org.')
    (endpoint,) = minidns.start().endpoints

    def change(tx: Tx) -> None:
        tx.execute(domains.update().where(domains.c.id == changing).values(serial=domains.c.serial + 1))
        tx.execute(records.delete().where(records.c.domain_id == changing, records.c.data == '192.0.2.1'))

    before = zone_of(EXAMPLE, 'example.org.')
    with ThreadPoolExecutor(1) as client:
        asked = client.submit(transfer, endpoint, 'example.org.')
        wait_until(lambda: reads.batches, 'its records are read next')
        minidns.storage.run(change)
        reads.go.set()
        found = asked.result(20)
    assert found.get_soa().serial == before.get_soa().serial + 1
    assert found == transfer(endpoint, 'example.org.') != before
    assert len(list(found.iterate_rdatas())) < len(list(before.iterate_rdatas()))


@pytest.mark.parametrize(('sizes', 'batches', 'alone'), [
    ({'a': 3, 'b': 3, 'c': 3, 'd': 3, 'e': 3}, ['abcd', 'e'], ''),
    ({'a': 6, 'b': 6, 'c': 6, 'd': 6}, ['abcd', 'ab', 'cd'], ''),
    ({'a': 3, 'b': 50, 'c': 3}, ['abc', 'a', 'bc', 'b', 'c'], 'b'),
], ids=['as many keys as there may be', 'too many records', 'one that is too large by itself'])
def test_keys_are_read_in_chunks_that_are_small_enough(
        sqlite: Storage, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int], batches: list[str],
        alone: str) -> None:
    read: list[str] = []

    def small(tx: Tx, keys: Collection[str], most: int) -> dict[str, int | None] | None:
        read.append(''.join(keys))
        return None if sum(sizes[key] for key in keys) > most else {key: sizes[key] for key in keys}

    monkeypatch.setattr(minidns_zones, 'BATCH_ZONES', 4)
    monkeypatch.setattr(minidns_zones, 'BATCH_RECORDS', 15)
    assert minidns_zones._read_in_chunks(sqlite, small, sizes) == {
        key: None if key in alone else size for key, size in sizes.items()}
    assert read == batches
