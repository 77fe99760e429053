"""How a window follows what a server can take; in a time of its own."""

from __future__ import annotations

import collections

from hypothesis import given
from hypothesis import strategies as st

from designate_pool.minidns.client.peer_channel import MAX_SIZE, CongestionWindow


def test_it_is_wide_until_something_is_lost() -> None:
    window = CongestionWindow()
    for _ in range(1000):
        window.answered()
    assert window.size == MAX_SIZE


def test_a_loss_halves_it_and_answers_widen_it_by_one_a_window() -> None:
    window = CongestionWindow(64)
    window.lost(1.0, 2.0)
    assert window.size == 32
    for _ in range(33):
        window.answered()
    assert window.size == 33


def test_what_was_sent_before_it_was_halved_halves_it_no_more() -> None:
    window = CongestionWindow(64)
    for _ in range(10):
        window.answered()
        window.lost(1.0, 2.0)
    assert window.size == 32
    window.lost(2.0, 3.0)
    assert window.size == 16


def test_answers_that_are_cut_short_halve_it_too() -> None:
    window = CongestionWindow(64)
    for number in range(3):
        window.truncated(number, number)
    assert window.size == 8


def test_silence_does_not_make_it_narrower_and_narrower() -> None:
    window = CongestionWindow(64)
    for number in range(10):
        window.lost(number, number + 1)
    assert window.size == 32
    window.answered()
    for number in range(10, 20):
        window.lost(number, number + 1)
    assert window.size == 16


def test_one_question_is_always_allowed() -> None:
    window = CongestionWindow()
    for number in range(100):
        window.truncated(number, number)
    assert window.size == 1


def test_it_recovers() -> None:
    window = CongestionWindow(16)
    for number in range(10):
        window.truncated(number, number)
    for _ in range(16 * 16):
        window.answered()
    assert window.size == 16


@given(st.lists(st.sampled_from(['answered', 'truncated', 'lost'])))
def test_it_stays_between_one_and_the_most(events: list[str]) -> None:
    window, now = CongestionWindow(8), 0.0
    for event in events:
        now += 1
        window.answered() if event == 'answered' else getattr(window, event)(now - 1, now)
        assert 1 <= window.size <= 8


def test_a_server_that_drops_what_is_above_its_rate_is_hardly_asked_in_vain() -> None:
    """200 a second are answered at once, the rest is dropped and lost after a second: a window loses few of them."""
    window, asked, answered = CongestionWindow(), 0, 0
    under_way: collections.deque[float] = collections.deque()
    for second in range(60):
        while under_way and under_way[0] + 1 <= second:
            window.lost(under_way.popleft(), second)
        left = 200
        while len(under_way) < window.size:
            asked += 1
            if left:
                left, answered = left - 1, answered + 1
                window.answered()
            else:
                under_way.append(second)
    assert answered == 60 * 200 and asked < 1.2 * answered
