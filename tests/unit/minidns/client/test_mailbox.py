"""What does not hurry wakes nobody who looks by himself, and is never forgotten."""

from __future__ import annotations

import threading
import time

import pytest

from designate_pool.minidns.client import mailbox as inbox_module
from designate_pool.minidns.client.mailbox import BEAT, Mailbox


@pytest.fixture
def wakes() -> list[int]:
    return []


@pytest.fixture
def inbox(wakes: list[int]) -> Mailbox:
    return Mailbox(lambda: wakes.append(1))


def nothing() -> None:
    pass


def test_the_first_work_wakes_whether_it_hurries_or_not(inbox: Mailbox, wakes: list[int]) -> None:
    for number, hurried in enumerate((True, False), 1):
        inbox.put(nothing, hurried)
        assert len(wakes) == number


def test_as_long_as_work_comes_it_is_looked_for_and_only_what_hurries_wakes(
        inbox: Mailbox, wakes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, 'AFTERWARDS', 600)
    inbox.put(nothing, False)
    assert list(inbox.take(time.monotonic())) == [nothing]
    assert [inbox.patience(seconds) for seconds in (None, 10.0, BEAT / 2)] == [BEAT, BEAT, BEAT / 2]
    inbox.put(nothing, False)
    assert len(wakes) == 1 and inbox.patience(None) == 0
    inbox.put(nothing, True)
    assert len(wakes) == 2


def test_when_no_more_comes_the_loop_sleeps_and_is_woken_again(inbox: Mailbox, wakes: list[int]) -> None:
    inbox.put(nothing, False)
    assert list(inbox.take(time.monotonic() - inbox_module.AFTERWARDS)) == [nothing]
    assert [inbox.patience(seconds) for seconds in (None, 10.0)] == [None, 10.0]
    inbox.put(nothing, False)
    assert len(wakes) == 2


def test_what_fails_leaves_the_rest(inbox: Mailbox) -> None:
    for _ in range(3):
        inbox.put(nothing, True)
    for _ in inbox.take(time.monotonic()):
        break
    assert len(list(inbox.take(time.monotonic()))) == 2


def test_nothing_is_forgotten_between_looking_and_sleeping() -> None:
    woken, sleeping = threading.Event(), threading.Event()
    inbox = Mailbox(woken.set)
    wanted, done = 20_000, 0

    def put() -> None:
        for number in range(wanted):
            if number % 500 == 0:
                sleeping.clear()
                sleeping.wait(5)  # now and then the loop goes to sleep
            inbox.put(nothing, False)

    putting = threading.Thread(target=put)
    putting.start()
    while done < wanted:
        seconds = inbox.patience(None)
        if seconds is None:
            sleeping.set()
        assert woken.wait(20 if seconds is None else seconds) or seconds is not None, 'work waits and nobody was woken'
        woken.clear()
        done += len(list(inbox.take(time.monotonic())))
    putting.join()
