"""RFC 1982 section 3.2 and what stands on it."""

from __future__ import annotations

import dns.serial
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
