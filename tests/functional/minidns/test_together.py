"""Many zones asked for at the same time are read together, and each is what it would be alone."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from designate_pool.minidns import zones as minidns_zones
from designate_pool.minidns.service import MiniDns
from designate_pool.storage import zones
from designate_pool.storage.sessions import Storage, Tx
from tests.fixtures.processes import wait_until
from tests.fixtures.zones import EXAMPLE, big_zone, insert_zone
from tests.functional.minidns.conftest import World, transfer, zone_of

NAMES = [f'z{number}.example.' for number in range(20)]


class Reads:
    """What is read together; the first of it waits until it is let go."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.go = threading.Event()
        self._few = zones.few

    def few(self, tx: Tx, domain_ids: Collection[str], most: int) -> Any:
        self.batches.append(sorted(domain_ids))
        assert self.go.wait(20)
        return self._few(tx, domain_ids, most)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reads]:
    found = Reads()
    monkeypatch.setattr(zones, 'few', found.few)
    yield found
    found.go.set()


def add(storage: Storage, text: str, *names: str) -> list[str]:
    return [storage.run(lambda tx, name=name: insert_zone(tx, text, name=name)) for name in names]


def ask_for_all(service: MiniDns, reads: Reads, names: Collection[str]) -> dict[str, Any]:
    """The zones, of which all but one are asked for while that one is read."""
    first, *others = names
    with ThreadPoolExecutor(len(names)) as clients:
        asked = {first: clients.submit(transfer, service.endpoints[0], first)}
        wait_until(lambda: reads.batches, 'one is read')
        asked |= {name: clients.submit(transfer, service.endpoints[0], name) for name in others}
        waiting = service._server._answering._zones._small
        wait_until(lambda: len(waiting._next.keys) == len(others), 'the others wait')
        reads.go.set()
        return {name: each.result(20) for name, each in asked.items()}


def test_zones_that_are_asked_for_meanwhile_are_one_reading(world: World, reads: Reads) -> None:
    ids = add(world.storage, EXAMPLE, *NAMES)
    found = ask_for_all(world.start(), reads, NAMES)
    assert reads.batches == [ids[:1], sorted(ids[1:])]
    assert found == {name: zone_of(EXAMPLE, name) for name in NAMES}


def test_there_are_only_so_many_in_one_reading(world: World, reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minidns_zones, 'TOGETHER', 8)
    add(world.storage, EXAMPLE, *NAMES)
    found = ask_for_all(world.start(), reads, NAMES)
    assert [len(batch) for batch in reads.batches] == [1, 8, 8, 3]
    assert found == {name: zone_of(EXAMPLE, name) for name in NAMES}


def test_a_large_zone_among_them_has_each_read_by_itself_once(world: World, reads: Reads,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minidns_zones, 'MOST', 400)
    ids = add(world.storage, EXAMPLE, *NAMES[:5])
    (large,) = add(world.storage, big_zone(500), 'large.example.')
    service = world.start(packed_zones_bytes=1)  # nothing is kept
    found = ask_for_all(service, reads, [*NAMES[:5], 'large.example.'])
    assert reads.batches == [ids[:1], sorted([*ids[1:], large])]
    assert found == {**{name: zone_of(EXAMPLE, name) for name in NAMES[:5]},
                     'large.example.': zone_of(big_zone(500), 'large.example.')}
    reads.batches.clear()
    for name, zone in found.items():
        assert transfer(service.endpoints[0], name) == zone
    assert reads.batches == [[each] for each in ids], 'the large one is known'
