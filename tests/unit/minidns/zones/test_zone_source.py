"""Where the contents of transfers come from: kept, gathered, or sent while they are read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool.errors import ServiceUnavailable
from designate_pool.minidns.zones.packed_zone import ROOM, Body, PackedZone, StreamedZone
from designate_pool.minidns.zones.zone_cache import ZoneCache
from designate_pool.minidns.zones.zone_source import ZoneSource
from testing.processes import wait_until

BUDGET = 4 * ROOM


class Zone:
    """A zone whose messages are counted as they are made."""

    def __init__(self, messages: int, octets: int = ROOM, breaks: bool = False, serial: int = 1,
                 watch: Callable[[], None] = lambda: None) -> None:
        self.messages, self.octets, self.breaks, self.serial, self.watch = messages, octets, breaks, serial, watch
        self.opened = self.closed = self.made = 0

    def open(self) -> StreamedZone:
        self.opened += 1
        self.made = 0
        return StreamedZone('d1', 'example.com.', self.serial, self._bodies(), self._close)

    def _bodies(self) -> Iterator[Body]:
        for _ in range(self.messages):
            self.made += 1
            self.watch()
            yield 1, bytes(self.octets)
        if self.breaks:
            raise ValueError('no name')

    def _close(self) -> None:
        self.closed += 1


def sent(zone: PackedZone | StreamedZone | None) -> int:
    """How many messages there are, all of them taken as a transfer does."""
    assert zone is not None
    count = sum(1 for _ in zone.bodies)
    if isinstance(zone, StreamedZone):
        zone.close()
    return count


def used(kept: ZoneCache) -> int:
    return kept._cached_bytes + kept._reserved_bytes


def test_a_zone_that_fits_is_read_once() -> None:
    kept = ZoneCache(BUDGET, 0)
    zones, zone = ZoneSource(kept, 1), Zone(4)
    for _ in ('first', 'second'):
        found = zones.get('a', 1, zone.open)
        assert isinstance(found, PackedZone) and sent(found) == 4
    assert zone.opened == 1 and used(kept) == BUDGET


def test_a_zone_larger_than_the_budget_is_sent_while_it_is_read_for_each_server_anew() -> None:
    kept = ZoneCache(BUDGET, 0)
    zones, zone = ZoneSource(kept, 1), Zone(50)
    for opened in (1, 2, 3):
        found = zones.get('a', 1, zone.open)
        assert isinstance(found, StreamedZone) and zone.made <= 5
        for taken in range(1, 20):
            next(found.bodies)
            assert zone.made <= max(taken, 5)
        assert sent(found) == 50 - 19
        assert (zone.opened, zone.closed, used(kept)) == (opened, opened, 0)


def test_a_zone_that_is_known_to_be_too_large_displaces_nothing() -> None:
    kept = ZoneCache(BUDGET, 0)
    zones, large, small = ZoneSource(kept, 1), Zone(50), Zone(1)
    assert sent(zones.get('large', 1, large.open)) == 50
    zones.get('small', 1, small.open)
    for _ in range(2):
        assert sent(zones.get('large', 1, large.open)) == 50
    zones.get('small', 1, small.open)
    assert small.opened == 1


def test_a_zone_that_has_become_small_enough_is_kept_from_its_second_transfer_on() -> None:
    zones = ZoneSource(ZoneCache(BUDGET, 0), 1)
    assert sent(zones.get('a', 1, Zone(50).open)) == 50
    less = Zone(3)
    for _ in range(4):
        assert sent(zones.get('a', 1, less.open)) == 3
    assert less.opened == 2


def test_those_used_least_recently_go_when_another_is_gathered() -> None:
    kept = ZoneCache(BUDGET, 0)
    zones = ZoneSource(kept, 1)
    places = {name: Zone(1) for name in 'abcd'}
    for name in 'abcda':
        zones.get(name, 1, places[name].open)
    zones.get('e', 1, Zone(2).open)
    assert [name for name in 'abcde' if kept.get(name, 1)] == ['a', 'd', 'e']


@given(st.lists(st.tuples(st.sampled_from('abcdef'), st.integers(1, 9), st.integers(1, ROOM)), max_size=12))
def test_what_is_kept_and_gathered_is_never_more_than_the_budget(asked: list[tuple[str, int, int]]) -> None:
    kept = ZoneCache(BUDGET, 0)
    zones = ZoneSource(kept, 2)

    def watch() -> None:
        assert used(kept) <= BUDGET

    for serial, (key, messages, octets) in enumerate(asked):
        assert sent(zones.get(key, serial, Zone(messages, octets, serial=serial, watch=watch).open)) == messages
        assert used(kept) == sum(each.size for each in kept._zones.values()) <= BUDGET


def test_what_is_no_longer_served_is_none_and_takes_no_turn() -> None:
    zones = ZoneSource(ZoneCache(BUDGET, 0), 1)
    assert sent(zones.get('a', 1, Zone(50).open)) == 50
    for _ in range(2):
        assert zones.get('a', 1, lambda: None) is None and zones.get('b', 1, lambda: None) is None


def test_reading_that_breaks_sets_nothing_aside_and_is_tried_again() -> None:
    kept = ZoneCache(BUDGET, 0)
    zones, broken = ZoneSource(kept, 1), Zone(3, breaks=True)
    for _ in range(2):
        with pytest.raises(ValueError, match='no name'):
            zones.get('a', 1, broken.open)
    assert (broken.closed, used(kept)) == (2, 0)
    streamed = zones.get('b', 1, Zone(9, breaks=True).open)
    with pytest.raises(ValueError, match='no name'):
        sent(streamed)
    assert isinstance(streamed, StreamedZone)
    streamed.close()
    assert used(kept) == 0 and sent(zones.get('c', 1, Zone(50).open)) == 50


def test_only_so_many_are_read_at_once_and_the_others_wait_without_reading() -> None:
    zones = ZoneSource(ZoneCache(BUDGET, 0), 1)
    first = zones.get('a', 1, Zone(50).open)
    assert isinstance(first, StreamedZone)
    zone, found = Zone(50), []
    other = threading.Thread(target=lambda: found.append(sent(zones.get('b', 1, zone.open))))
    other.start()
    wait_until(lambda: zone.closed == 1, 'it has seen that it must wait')
    assert not found
    sent(first)
    other.join(10)
    assert found == [50] and (zone.opened, zone.closed) == (2, 2)


def test_a_turn_that_does_not_come_is_an_error() -> None:
    zones = ZoneSource(ZoneCache(BUDGET, 0), 1, slot_timeout=0.01)
    first = zones.get('a', 1, Zone(50).open)
    for _ in range(2):
        with pytest.raises(ServiceUnavailable, match='large zones'):
            zones.get('b', 1, Zone(50).open)
    sent(first)
    assert sent(zones.get('b', 1, Zone(50).open)) == 50


@pytest.mark.parametrize('budget', [0, BUDGET])
def test_a_zone_of_one_message_waits_for_nobody(budget: int) -> None:
    kept = ZoneCache(budget, 0)
    zones = ZoneSource(kept, 1, slot_timeout=0.0)
    zones.get('a', 1, Zone(50).open)  # is never taken
    for _ in range(2):
        assert sent(zones.get('b', 1, Zone(1).open)) == 1
    assert bool(kept.get('b', 1)) is bool(budget and not kept._reserved_bytes)
