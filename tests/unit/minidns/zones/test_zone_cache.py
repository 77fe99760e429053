"""Which packed zones are kept."""

from __future__ import annotations

import concurrent.futures

import pytest

from designate_pool.minidns.zones.loader import ZONE_OVERHEAD, ZoneCache
from designate_pool.minidns.zones.packed_zone import PackedZone
from testing.processes import wait_until


def zone(domain_id: str, serial: int, size: int) -> PackedZone:
    return PackedZone(domain_id, 'example.com.', serial, ((1, bytes(size)),))


def test_zones_are_kept_within_the_budget_and_the_latest_used_longest() -> None:
    kept = ZoneCache(100, 0)
    for name in 'abc':
        kept.put(name, zone(name, 1, 30))
    assert kept.get('a', 1)
    kept.put('d', zone('d', 1, 30))
    assert [name for name in 'abcd' if kept.get(name, 1)] == ['a', 'c', 'd']


@pytest.mark.parametrize('budget', [100, 5], ids=['fits', 'too large'])
def test_a_zone_is_packed_once_for_all_who_ask_at_the_same_time(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, packed, asked = ZoneCache(budget, 0), [], []
    get = kept.get
    monkeypatch.setattr(kept, 'get', lambda key, serial: asked.append(key) or get(key, serial))

    def pack() -> PackedZone:
        packed.append(1)
        wait_until(lambda: len(asked) == 5, 'the others have come; who packs has asked twice')
        return zone('a', 1, 10)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: kept.get_or_pack('a', 1, pack), range(4)))
    assert packed == [1] and len({id(each) for each in found}) == 1


def test_a_zone_that_cannot_be_packed_is_tried_again() -> None:
    kept = ZoneCache(100, 0)

    def fail() -> PackedZone:
        raise ValueError('no name')

    with pytest.raises(ValueError, match='no name'):
        kept.get_or_pack('a', 1, fail)
    assert kept.get_or_pack('a', 1, lambda: None) is None
    assert kept.get_or_pack('a', 1, lambda: zone('a', 1, 10))


def test_a_zone_takes_the_place_of_its_former_serial_and_its_octets() -> None:
    kept = ZoneCache(100, 0)
    for serial in (1, 1, 2):
        kept.put('a', zone('a', serial, 60))
    kept.put('b', zone('b', 1, 40))
    assert kept.get('a', 2) and kept.get('b', 1) and not kept.get('a', 1)


def test_a_zone_larger_than_the_budget_is_found_while_somebody_holds_it_and_displaces_nothing() -> None:
    kept = ZoneCache(100, 0)
    kept.put('a', zone('a', 1, 60))
    held = zone('a', 2, 101)
    kept.put('a', held)
    assert kept.get('a', 2) is held
    del held
    assert kept.get('a', 1) and kept.get('a', 2) is None


def test_a_zone_counts_for_more_than_its_records() -> None:
    kept = ZoneCache(3 * (10 + ZONE_OVERHEAD))
    for name in 'abcd':
        kept.put(name, zone(name, 1, 10))
    assert [name for name in 'abcd' if kept.get(name, 1)] == ['b', 'c', 'd']
