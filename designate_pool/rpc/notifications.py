"""Notifications about events of domains, recordsets, imports and others, for other programs, with oslo.messaging.

Off unless ``[oslo_messaging_notifications] driver`` names a driver: ``messagingv2`` sends them over the broker (topic
``notifications.info``), ``log`` writes them to the log.

A notification never delays its operation or makes it fail: it is queued, and a thread sends the queue in order.  While
the broker is down the queue grows; when it is full, new notifications are dropped and counted.

Those of other services are received by :class:`NotificationListener`.

oslo.messaging is imported where it is used: that takes a second, which commands with rules of Central do not need.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from designate_pool import metrics
from designate_pool.errors import BadInput
from designate_pool.logs import OutageLog
from designate_pool.model import Actor, ZoneTask, dashed
from designate_pool.rpc.client import run_within

LOG = logging.getLogger(__name__)

#: The maximum number of queued notifications.
MOST_WAITING = 10000
#: Seconds that a program waits at its end for queued notifications to be sent.
STOP_SECONDS = 5.0

_SENT, _FAILED, _DROPPED = (metrics.NOTIFICATIONS.labels(outcome) for outcome in ('sent', 'failed', 'dropped'))


class Sink:
    """Drops notifications, where no driver is configured; the interface of those that send them."""

    def put(self, event_type: str, payload: Mapping[str, Any]) -> None:
        """Queue a notification.

        :param event_type: for example ``dns.zone.create``
        :param payload: texts, numbers, lists, mappings and None; no secrets
        """

    def stop(self) -> None:
        """Accept no more, and send those that are queued, for a few seconds at most."""


SILENT = Sink()


def put_zone_task(sink: Sink, verb: str, task: ZoneTask) -> None:
    """Queue the notification of an import or export: ``create``, ``update`` when it has ended, or ``delete``."""
    if sink is SILENT:
        return
    sink.put(f'dns.zone_{task.kind.value.lower()}.{verb}', {
        'id': dashed(task.id), 'task_type': task.kind.value, 'status': task.status.value, 'message': task.message,
        'zone_id': None if task.domain_id is None else dashed(task.domain_id), 'project_id': task.project_id or None,
        'version': task.version, 'request_id': task.request_id or None,
        'actor': dataclasses.asdict(Actor.of(json.loads(task.actor or '{}')))})


class Notifications(Sink):
    """Sends with *notifier*, whose ``info`` may block for a long time; *close* closes its connection, at the end."""

    def __init__(self, notifier: Any, runtime: Any, most_waiting: int = MOST_WAITING,
                 close: Callable[[], None] = lambda: None) -> None:
        self._notifier = notifier
        self._most_waiting = most_waiting
        self._queue = runtime.work_queue(self._send, 100, 'notifications', bound=most_waiting)
        self._stopped = False
        self._close = close
        self._overflow = OutageLog(LOG, 'the queue of notifications is full, with %d; new ones are dropped',
                                   'notifications are queued again', logging.WARNING)

    def put(self, event_type: str, payload: Mapping[str, Any]) -> None:
        if self._queue.put((event_type, payload)):
            self._overflow.ended()
            return
        _DROPPED.inc()
        if not self._stopped:
            self._overflow.failed(self._most_waiting)

    def stop(self) -> None:
        self._stopped = True
        if dropped := self._queue.stop(STOP_SECONDS):
            LOG.warning('%d notifications were not sent', dropped)
        run_within(STOP_SECONDS, 'notifications-stop', self._close)

    def _send(self, waiting: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        for event_type, payload in waiting:
            try:
                self._notifier.info({}, event_type, dict(payload))
            except Exception as error:  # whatever the driver raises, the next notification is tried
                _FAILED.inc()
                LOG.warning('the notification %s was not sent: %s', event_type, error)
            else:
                _SENT.inc()


def notifications(conf: Any, host: str, runtime: Any) -> Sink:
    """The sink for the notifications of this process, ``dns.<host>``; it drops them if no driver is configured.

    :raises BadInput: when there is no such driver, or the broker's address is not valid
    """
    import oslo_messaging

    try:
        transport = oslo_messaging.get_notification_transport(conf)
    except (oslo_messaging.DriverLoadFailure, oslo_messaging.InvalidTransportURL) as error:
        raise BadInput(why=f'[oslo_messaging_notifications]: {error}') from None
    drivers = [driver for driver in conf.oslo_messaging_notifications.driver if driver]
    available = {entry_point.name
                 for entry_point in importlib.metadata.entry_points(group='oslo.messaging.notify.drivers')}
    for driver in drivers:
        if driver not in available:
            raise BadInput(why=f'[oslo_messaging_notifications] driver: there is no driver {driver}, '
                               f'only {", ".join(sorted(available))}')
    if not drivers or drivers == ['noop']:
        return SILENT
    return Notifications(oslo_messaging.Notifier(transport, f'dns.{host}'), runtime, close=transport.cleanup)


#: Seconds that a program waits at its end for the notifications under way.
LISTENER_STOP_SECONDS = 15.0


class Notification(NamedTuple):
    """One of priority ``info``; *metadata* has its ``message_id`` and ``timestamp``."""

    context: Mapping[str, Any]
    event_type: str
    payload: Any
    metadata: Mapping[str, Any]


class NotificationListener:
    """Receives notifications, each until it is done with.

    :param sources: exchanges and topics
    :param handle: called with each, from several threads; whether it is done with, otherwise it is delivered again
    :param pool: listeners of one pool share the notifications, those of different pools get all; None is a pool too
    :param transport_url: the broker; None means that of the configuration
    :param threads: notifications at a time; None means as many as the configuration says
    :raises BadInput: when the broker's address is not valid
    """

    def __init__(self, conf: Any, sources: Iterable[tuple[str, str]], event_types: Iterable[str],
                 handle: Callable[[Notification], bool], pool: str | None = None,
                 transport_url: str | None = None, threads: int | None = None) -> None:
        import oslo_messaging

        self._threads = threads
        try:
            self._transport = oslo_messaging.get_notification_transport(conf, url=transport_url)
        except (oslo_messaging.DriverLoadFailure, oslo_messaging.InvalidTransportURL) as error:
            raise BadInput(why=f'[oslo_messaging_notifications]: {error}') from None
        targets = [oslo_messaging.Target(exchange=exchange, topic=topic) for exchange, topic in dict.fromkeys(sources)]
        self._listener = oslo_messaging.get_notification_listener(
            self._transport, targets, [_InfoEndpoint(event_types, handle)], executor='threading', allow_requeue=True,
            pool=pool)

    def start(self) -> None:
        """Begin to receive, in threads of the library."""
        self._listener.start(override_pool_size=self._threads)

    def stop(self) -> None:
        """Accept no more, and finish what is under way; what is not finished is delivered to another listener."""
        run_within(LISTENER_STOP_SECONDS, 'notifications-stop', self._listener.stop, self._listener.wait,
                   self._transport.cleanup)


class _InfoEndpoint:
    def __init__(self, event_types: Iterable[str], handle: Callable[[Notification], bool]) -> None:
        import oslo_messaging

        self.filter_rule = oslo_messaging.NotificationFilter(
            event_type=f'^({"|".join(map(re.escape, event_types))})$')
        self._handle = handle
        self._handled = oslo_messaging.NotificationResult.HANDLED
        self._again = oslo_messaging.NotificationResult.REQUEUE

    def info(self, context: Any, publisher_id: str, event_type: str, payload: Any, metadata: Any) -> str:
        done = self._handle(Notification(context or {}, event_type, payload, metadata or {}))
        return self._handled if done else self._again
