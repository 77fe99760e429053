"""What does not hurry wakes nobody who looks by himself, and is never forgotten."""

from __future__ import annotations

import threading
import time

import pytest

from designate_pool.minidns.client.event_loop import POLL_INTERVAL, Mailbox


@pytest.fixture
def wakes() -> list[int]:
    return []


@pytest.fixture
def mailbox(wakes: list[int]) -> Mailbox:
    return Mailbox(lambda: wakes.append(1))


def nothing() -> None:
    pass


def test_the_first_work_wakes_whether_it_hurries_or_not(mailbox: Mailbox, wakes: list[int]) -> None:
    for number, urgent in enumerate((True, False), 1):
        mailbox.put(nothing, urgent)
        assert len(wakes) == number


def test_as_long_as_work_comes_it_is_looked_for_and_only_what_hurries_wakes(wakes: list[int]) -> None:
    mailbox = Mailbox(lambda: wakes.append(1), poll_duration=600)
    mailbox.put(nothing, False)
    assert list(mailbox.take(time.monotonic())) == [nothing]
    assert mailbox.wait_seconds(10.0) == 10.0, 'one alone is no reason to look'
    mailbox.put(nothing, False)
    assert list(mailbox.take(time.monotonic())) == [nothing]
    assert [mailbox.wait_seconds(seconds) for seconds in (None, 10.0, POLL_INTERVAL / 2)] == [
        POLL_INTERVAL, POLL_INTERVAL, POLL_INTERVAL / 2]
    mailbox.put(nothing, False)
    assert len(wakes) == 2 and mailbox.wait_seconds(None) == 0
    mailbox.put(nothing, True)
    assert len(wakes) == 3


def test_when_no_more_comes_the_loop_sleeps_and_is_woken_again(mailbox: Mailbox, wakes: list[int]) -> None:
    mailbox.put(nothing, False)
    assert list(mailbox.take(time.monotonic() - 0.02)) == [nothing]
    assert [mailbox.wait_seconds(seconds) for seconds in (None, 10.0)] == [None, 10.0]
    mailbox.put(nothing, False)
    assert len(wakes) == 2


def test_what_fails_leaves_the_rest(mailbox: Mailbox) -> None:
    for _ in range(3):
        mailbox.put(nothing, True)
    for _ in mailbox.take(time.monotonic()):
        break
    assert len(list(mailbox.take(time.monotonic()))) == 2


def test_nothing_is_forgotten_between_looking_and_sleeping() -> None:
    woken, sleeping = threading.Event(), threading.Event()
    mailbox = Mailbox(woken.set)
    wanted, done = 20_000, 0

    def put() -> None:
        for number in range(wanted):
            if number % 500 == 0:
                sleeping.clear()
                sleeping.wait(5)  # now and then the loop goes to sleep
            mailbox.put(nothing, False)

    putting = threading.Thread(target=put)
    putting.start()
    while done < wanted:
        seconds = mailbox.wait_seconds(None)
        if seconds is None:
            sleeping.set()
        assert woken.wait(20 if seconds is None else seconds) or seconds is not None, 'work waits and nobody was woken'
        woken.clear()
        done += len(list(mailbox.take(time.monotonic())))
    putting.join()
