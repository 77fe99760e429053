"""When a query sends, sends again, and gives up; in a time of its own."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import pytest

from designate_pool.minidns.client.query import NextStep, RetryingQuery, RetrySchedule, Step
from designate_pool.minidns.client.soa_poller import POST_TRANSFER
from designate_pool.model import Answer, Reason
from designate_pool.protocol.soa_query import SoaReply
from tests.unit.minidns.values import UNKEYED

STALE, RIGHT = SoaReply(Answer.SERIAL, 6), SoaReply(Answer.SERIAL, 7)


class Wanting7(RetryingQuery):
    """Wants the serial 7."""

    def __init__(self, schedule: RetrySchedule) -> None:
        super().__init__(UNKEYED, 'example.com.', 7, schedule, self._end)
        self.result: SoaReply | None = None

    def _end(self, query: RetryingQuery, reply: SoaReply) -> None:
        self.result = reply


def play(schedule: RetrySchedule, answer: Callable[[int], SoaReply | None],
         delay: float = 0.01) -> tuple[list[float], Wanting7, float]:
    """Run a query against a server that replies ``answer(number of the datagram)``: times sent, query, its end."""
    query = Wanting7(schedule)
    sent: list[float] = []
    events: list[tuple[float, int, SoaReply | None]] = []
    now, wake = 0.0, None
    step: Step = query.on_timer(now)
    for _ in range(1000):
        if step is NextStep.END:
            return sent, query, now
        if step is NextStep.SEND:
            reply = answer(len(sent))
            if reply is not None:
                heapq.heappush(events, (now + delay, len(sent), reply))
            sent.append(now)
            step = query.on_sent(now)
        assert isinstance(step, float)
        wake = step
        if events and events[0][0] <= wake:
            now, _, heard = heapq.heappop(events)
            if query.in_try and heard is not None:
                step = query.on_reply(heard, now)
            continue
        now, step = wake, query.on_timer(wake)
    raise AssertionError('it never ends')


def test_lost_datagrams_are_sent_again_after_1_2_4_8_seconds() -> None:
    sent, query, end = play(RetrySchedule(30, 2, 0), lambda number: None)
    assert sent == [0, 1, 3, 7, 15]
    assert end == 30 and query.result is not None and query.result.answer is Answer.TIMEOUT


def test_a_loss_costs_a_second() -> None:
    sent, query, end = play(RetrySchedule(30, 2, 0), lambda number: RIGHT if number == 1 else None)
    assert sent == [0, 1] and query.result == RIGHT and end == pytest.approx(1.01)


@pytest.mark.parametrize('retries', [0, 1, 3])
def test_a_stale_serial_is_asked_for_again_max_retries_times(retries: int) -> None:
    sent, query, _ = play(RetrySchedule(30, 2, retries), lambda number: STALE)
    assert sent == pytest.approx([number * 2.01 for number in range(1 + retries)])
    assert query.result == STALE


def test_the_pauses_may_grow() -> None:
    sent, _, _ = play(RetrySchedule(30, 2, 3, growth=2), lambda number: STALE, delay=0)
    assert sent == [0, 2, 6, 14]
    sent, _, _ = play(RetrySchedule(30, 2, 4, growth=2, longest_interval=5), lambda number: STALE, delay=0)
    assert sent == [0, 2, 6, 11, 16]


def test_a_server_that_loads_once_a_second_is_seen_soon_after_each_transfer() -> None:
    """As NSD does: the second of two zones is served more than a second after it was fetched."""
    sent, _, _ = play(POST_TRANSFER, lambda number: STALE, delay=0)
    assert sent[-1] >= 2 and max(later - earlier for earlier, later in zip(sent, sent[1:])) <= 0.25


def test_every_try_has_its_own_timeout() -> None:
    sent, _, end = play(RetrySchedule(3, 2, 1), lambda number: None)
    assert sent == [0, 1, 5, 6] and end == 8


def test_a_try_of_the_default_time_is_five_datagrams_at_most() -> None:
    sent, _, end = play(RetrySchedule(30, 2, 1), lambda number: None)
    assert sent == [0, 1, 3, 7, 15, 32, 33, 35, 39, 47] and end == 62


def test_an_undeliverable_datagram_ends_the_try() -> None:
    query = Wanting7(RetrySchedule(30, 2, 1))
    query.on_timer(0)
    query.on_sent(0)
    assert query.on_failure('connection refused', 0.1) == 2.1
    assert query.on_timer(2.1) is NextStep.SEND
    query.on_sent(2.1)
    assert query.on_failure('connection refused', 2.2) is NextStep.END
    assert query.result == SoaReply(Answer.TIMEOUT, error='connection refused', reason=Reason.UNREACHABLE)
