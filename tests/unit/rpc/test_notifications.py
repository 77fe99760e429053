"""Notifications wait in a bounded queue, in front of a driver that may block or fail."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from oslo_config import cfg
from prometheus_client import REGISTRY

from designate_pool.errors import BadInput
from designate_pool.model import Context, ZoneTask, ZoneTaskKind, ZoneTaskStatus
from designate_pool.rpc import central, minidns, pool_manager
from designate_pool.rpc.change_announcer import ChangeAnnouncer
from designate_pool.rpc.notifications import SILENT, Notifications, notifications, put_zone_task
from designate_pool.runtime import Threads
from testing.inline import Inline
from testing.processes import wait_until
from tests.fixtures.notifications import Recorder
from tests.unit.central.test_cast_queue import Caller


class Notifier:
    """A driver's place: keeps what it gets, once it is let go on."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.free = threading.Event()
        self.fails = False

    def info(self, context: object, event_type: str, payload: Mapping[str, Any]) -> None:
        self.free.wait(30)
        if self.fails:
            raise RuntimeError('the driver is not well')
        self.sent.append(event_type)


def count(outcome: str) -> float:
    return REGISTRY.get_sample_value('designate_pool_notifications_total', {'outcome': outcome}) or 0.0


def test_they_are_sent_in_order() -> None:
    notifier = Notifier()
    notifier.free.set()
    told = Notifications(notifier, Threads())
    for number in range(250):
        told.put(str(number), {})
    told.stop()
    assert notifier.sent == [str(number) for number in range(250)]


def test_a_driver_that_blocks_delays_nobody_and_what_is_too_much_is_dropped_and_counted(
        caplog: pytest.LogCaptureFixture) -> None:
    notifier, dropped, sent = Notifier(), count('dropped'), count('sent')
    told = Notifications(notifier, Threads(), most_waiting=5)
    told.put('first', {})
    wait_until(lambda: not told._queue, 'the first is being sent')
    with caplog.at_level(logging.WARNING):
        for _ in range(9):
            told.put('later', {})
    assert count('dropped') - dropped == 4
    assert [record.message for record in caplog.records] == [
        'the queue of notifications is full, with 5; new ones are dropped']
    notifier.free.set()
    told.stop()
    assert notifier.sent == ['first', *['later'] * 5]
    assert count('sent') - sent == 6


def test_a_driver_that_fails_fails_nobody() -> None:
    notifier, failed = Notifier(), count('failed')
    notifier.free.set()
    notifier.fails = True
    told = Notifications(notifier, Inline())
    told.put('lost', {})
    notifier.fails = False
    told.put('sent', {})
    assert (notifier.sent, count('failed') - failed) == (['sent'], 1)


def conf(**options: Any) -> cfg.ConfigOpts:
    found = cfg.ConfigOpts()
    found([])
    notifications(found, 'test', Inline()).stop()  # makes the options known
    for name, value in options.items():
        found.set_override(name, value, group='oslo_messaging_notifications')
    return found


def test_nobody_is_notified_unless_a_driver_is_named() -> None:
    assert notifications(conf(), 'test', Inline()) is SILENT
    assert notifications(conf(driver=['noop']), 'test', Inline()) is SILENT


def test_the_driver_log_writes_them_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    told = notifications(conf(driver=['log']), 'test', Inline())
    with caplog.at_level(logging.INFO):
        told.put('dns.zone.create', {'name': 'example.com.'})
    told.stop()
    record = next(each for each in caplog.records if each.name == 'oslo.messaging.notification.dns.zone.create')
    assert '"name": "example.com."' in record.getMessage() and '"dns.test"' in record.getMessage()


def test_a_driver_that_there_is_not_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match='there is no driver pigeon, only .*messagingv2'):
        notifications(conf(driver=['pigeon']), 'test', Inline())


def test_an_address_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(BadInput, match='oslo_messaging_notifications'):
        notifications(conf(driver=['messagingv2'], transport_url='pigeon://x'), 'test', Inline())


def test_an_import_and_an_export_are_notified() -> None:
    kept = Recorder()
    put_zone_task(kept, 'create', ZoneTask('1' * 32, ZoneTaskKind.IMPORT, 'red', request_id='req-1',
                                           actor='{"user": "alice", "project_id": "red", "later": "field"}'))
    put_zone_task(kept, 'update', ZoneTask('1' * 32, ZoneTaskKind.EXPORT, status=ZoneTaskStatus.COMPLETE,
                                           domain_id='2' * 32, message='it is done', version=2))
    assert kept.told == [
        ('dns.zone_import.create', {
            'id': '11111111-1111-1111-1111-111111111111', 'task_type': 'IMPORT', 'status': 'PENDING', 'message': None,
            'zone_id': None, 'project_id': 'red', 'version': 1, 'request_id': 'req-1',
            'actor': {'user': 'alice', 'project_id': 'red', 'address': '', 'client': '',
                      'approved_by': ''}}),
        ('dns.zone_export.update', {
            'id': '11111111-1111-1111-1111-111111111111', 'task_type': 'EXPORT', 'status': 'COMPLETE',
            'message': 'it is done', 'zone_id': '22222222-2222-2222-2222-222222222222', 'project_id': None,
            'version': 2, 'request_id': None,
            'actor': {'user': '', 'project_id': '', 'address': '', 'client': '',
                      'approved_by': ''}})]


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
