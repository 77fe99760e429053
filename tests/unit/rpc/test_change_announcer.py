"""Announcements of changes: what is sent as one, and what a broker that is down does."""

from __future__ import annotations

import logging

import pytest

from designate_pool.model import Context
from designate_pool.rpc import central, minidns, pool_manager
from designate_pool.rpc.change_announcer import ChangeAnnouncer
from designate_pool.runtime import Inline, Threads
from testing.processes import wait_until
from tests.unit.central.test_cast_queue import Caller


class Noting(Caller):
    """Keeps the topics."""

    def __init__(self) -> None:
        super().__init__()
        self.topics: list[str] = []

    def cast(self, topic: str, context: object, method: str, **arguments: object) -> None:
        super().cast(topic, context, method, value=topic)  # type: ignore[arg-type]
        self.topics.append(topic)


MINIDNS, DEFAULT, SILVER = minidns.SHARED_TOPIC, pool_manager.topic('default'), pool_manager.topic('silver')


def test_those_that_wait_are_sent_as_one() -> None:
    caller = Noting()
    announcer = ChangeAnnouncer(caller, Threads())
    caller.free.clear()
    announcer.put()
    wait_until(lambda: not announcer._queue, 'the first is being sent')
    for _ in range(10):
        announcer.put('default', 'silver')
        announcer.put()
    caller.free.set()
    announcer.stop()
    assert caller.topics == [MINIDNS, MINIDNS, DEFAULT, SILVER]
    announcer.put('default')
    assert len(caller.topics) == 4, 'nothing is taken after the stop'


def test_an_outage_fails_nothing_and_is_left_to_others_to_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    caller = Noting()
    announcer = ChangeAnnouncer(caller, Inline())
    caller.down = True
    for _ in range(3):
        announcer.put('default')
    caller.down = False
    announcer.put('default')
    assert caller.topics == [MINIDNS, DEFAULT]
    assert not caplog.records


def test_an_import_is_announced_to_all_centrals_and_an_outage_does_not_matter() -> None:
    caller = Noting()
    announcer = ChangeAnnouncer(caller, Inline())
    caller.down = True
    announcer.announce_import(Context())
    caller.down = False
    announcer.announce_import(Context())
    assert caller.topics == [central.TOPIC]
