"""Serials (RFC 1982 section 3.2), ids (RFC 9562 section 5.7) and delays between tries."""

from __future__ import annotations

import itertools
import math
import uuid

import dns.serial
import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool.backoff import Backoff
from designate_pool.model import new_ids
from designate_pool.serial import HALF, SPACE, at_least, distance, newer, next_serial, within

SERIALS = st.integers(0, SPACE - 1)


@given(SERIALS, SERIALS)
def test_newer_is_what_dnspython_calls_greater(a: int, b: int) -> None:
    assert newer(a, b) == (dns.serial.Serial(a) > dns.serial.Serial(b))


@given(SERIALS, SERIALS)
def test_distance_leads_from_one_to_the_other_by_the_shorter_way(a: int, b: int) -> None:
    assert (a + distance(a, b)) % SPACE == b
    assert -HALF < distance(a, b) <= HALF


@given(SERIALS)
def test_serials_half_the_circle_apart_have_no_order(a: int) -> None:
    b = (a + HALF) % SPACE
    assert not newer(a, b) and not newer(b, a) and not at_least(a, b) and not at_least(b, a)


@given(SERIALS, SERIALS, SERIALS)
def test_within_goes_forward_from_the_first_to_the_last(first: int, serial: int, last: int) -> None:
    assert within(first, first, last) and within(first, last, last)
    assert within(first, serial, last) == ((serial - first) % SPACE <= (last - first) % SPACE)


@given(st.none() | SERIALS, st.floats(0, 1e11))
def test_the_next_serial_is_always_newer(previous: int | None, now: float) -> None:
    serial = next_serial(previous, now)
    assert 0 <= serial < SPACE
    assert previous is None or newer(serial, previous)


@pytest.mark.parametrize(('previous', 'now', 'serial'), [
    (None, 1000.9, 1000), (5, 1000, 1000), (1000, 1000, 1001), (2000, 1000, 2001), (SPACE - 1, SPACE - 5, 0),
    (SPACE - 3, 7, 7)])
def test_next_serial(previous: int | None, now: float, serial: int) -> None:
    assert next_serial(previous, now) == serial


def test_they_are_different_ascending_and_uuids_of_version_7() -> None:
    ids = [*new_ids(1000), *new_ids(1000)]
    assert len(set(ids)) == 2000 and all(len(each) == 32 for each in ids)
    assert ids[:1000] == sorted(ids[:1000]) and ids[0][:12] <= ids[-1][:12]
    assert {(uuid.UUID(each).version, uuid.UUID(each).variant) for each in ids} == {(7, uuid.RFC_4122)}


def test_none() -> None:
    assert new_ids(0) == []


def test_delays_double_up_to_the_cap() -> None:
    assert list(itertools.islice(Backoff(0.02, cap=0.25).delays(), 6)) == [0.02, 0.04, 0.08, 0.16, 0.25, 0.25]


def test_another_factor() -> None:
    assert list(itertools.islice(Backoff(1, 1.5).delays(), 3)) == [1, 1.5, 2.25]


@pytest.mark.parametrize('number', [5000, 10 ** 9])
def test_after_very_many_failures_it_is_the_cap(number: int) -> None:
    assert Backoff(5.0, cap=300.0).delay(number) == 300.0
    assert Backoff(5.0).delay(number) == math.inf
    assert Backoff(1.0, factor=1.0).delay(number) == 1.0


@pytest.mark.parametrize(('chance', 'delay'), [(0.0, 7.5), (0.5, 10.0), (1.0, 12.5)])
def test_jitter_is_of_the_delay_and_comes_after_the_cap(chance: float, delay: float) -> None:
    assert Backoff(5.0, cap=10.0, jitter=(0.75, 1.25)).delay(3, chance) == delay


def test_each_delay_has_its_own_chance() -> None:
    chances = iter([0.0, 1.0, 0.5])
    delays = Backoff(4.0, jitter=(0.5, 1.0)).delays(lambda: next(chances))
    assert list(itertools.islice(delays, 3)) == [2.0, 8.0, 12.0]
