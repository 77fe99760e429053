"""Delays between tries."""

from __future__ import annotations

import itertools
import math

import pytest

from designate_pool.backoff import Backoff


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
