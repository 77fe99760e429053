"""Which packed zones are kept."""

from __future__ import annotations

from designate_pool.minidns.kept import Kept
from designate_pool.minidns.packing import PackedZone


def zone(domain_id: str, serial: int, size: int) -> PackedZone:
    return PackedZone(domain_id, 'example.com.', 'default', serial, ((1, bytes(size)),))


def test_zones_are_kept_within_the_budget_and_the_latest_used_longest() -> None:
    kept = Kept(100)
    for name in 'abc':
        kept.put(zone(name, 1, 30))
    assert kept.get('a', 1)
    kept.put(zone('d', 1, 30))
    assert [name for name in 'abcd' if kept.get(name, 1)] == ['a', 'c', 'd']


def test_another_serial_is_another_zone() -> None:
    kept = Kept(100)
    kept.put(zone('a', 1, 10))
    assert kept.get('a', 2) is None


def test_putting_the_same_zone_again_costs_nothing() -> None:
    kept = Kept(100)
    for _ in range(5):
        kept.put(zone('a', 1, 60))
    kept.put(zone('b', 1, 40))
    assert kept.get('a', 1) and kept.get('b', 1)


def test_a_zone_larger_than_the_budget_displaces_nothing() -> None:
    kept = Kept(100)
    kept.put(zone('a', 1, 60))
    kept.put(zone('b', 1, 101))
    assert kept.get('a', 1) and not kept.get('b', 1)
