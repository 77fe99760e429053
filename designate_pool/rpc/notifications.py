"""Notifications: what happened to domains and recordsets, for whoever listens beside the pool, by oslo.messaging.

Off unless ``[oslo_messaging_notifications] driver`` names a driver: ``messagingv2`` sends them over the broker (topic
``notifications.info``), ``log`` writes them to the log.

A notification never delays or fails what it is about: it is put into a queue and sent from there in order, by a thread
of its own.  While the broker is away the queue fills; when it is full, what comes is dropped and counted.
"""

from __future__ import annotations

import importlib.metadata
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import oslo_messaging

from designate_pool import metrics
from designate_pool.errors import BadInput
from designate_pool.outage_log import OutageLog

LOG = logging.getLogger(__name__)

#: Notifications that wait at most.
MOST_WAITING = 10000
#: Seconds that the end of a program may wait for those that wait.
STOP_SECONDS = 5.0

_SENT, _FAILED, _DROPPED = (metrics.NOTIFICATIONS.labels(outcome) for outcome in ('sent', 'failed', 'dropped'))


class Sink(Protocol):
    """Where notifications go."""

    def put(self, event_type: str, payload: Mapping[str, Any]) -> None:
        """Have it sent soon.

        :param event_type: ``dns.zone.create``, say
        :param payload: texts, numbers, lists, mappings and None; no secrets
        """

    def stop(self) -> None:
        """Send what is waiting, for seconds at most; take no more."""


class _Silent:
    """Notifies nobody."""

    def put(self, event_type: str, payload: Mapping[str, Any]) -> None:
        return

    def stop(self) -> None:
        return


SILENT: Sink = _Silent()


class Notifications:
    """A :class:`Sink` in front of oslo.messaging's drivers.

    :param notifier: has ``info(context, event_type, payload)``, which may block for long
    :param runtime: see :mod:`designate_pool.runtime`
    """

    def __init__(self, notifier: Any, runtime: Any, most_waiting: int = MOST_WAITING) -> None:
        self._notifier = notifier
        self._most_waiting = most_waiting
        self._queue = runtime.work_queue(self._send, 100, 'notifications', bound=most_waiting)
        self._stopped = False
        self._overflow = OutageLog(LOG, '%d notifications wait to be sent, the most there may be; new ones are dropped',
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

    def _send(self, waiting: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        for event_type, payload in waiting:
            try:
                self._notifier.info({}, event_type, dict(payload))
            except Exception as error:  # whatever the driver raises, the next one has its own chance
                _FAILED.inc()
                LOG.warning('the notification %s was not sent: %s', event_type, error)
            else:
                _SENT.inc()


class _OverTransport(Notifications):
    """Ends its connection to the broker as well."""

    def __init__(self, notifier: Any, runtime: Any, transport: Any) -> None:
        super().__init__(notifier, runtime)
        self._transport = transport

    def stop(self) -> None:
        super().stop()
        # oslo.messaging waits without end for a broker that is down.
        thread = threading.Thread(target=self._transport.cleanup, name='notifications-stop', daemon=True)
        thread.start()
        thread.join(STOP_SECONDS)


def notifications(conf: Any, host: str, runtime: Any) -> Sink:
    """Where this process sends its notifications: nowhere, unless the configuration names a driver.

    :param conf: oslo.config's global object
    :param host: what this process is called; its notifications come from ``dns.<host>``
    :raises BadInput: when there is no such driver, or the broker's address cannot be read
    """
    try:
        transport = oslo_messaging.get_notification_transport(conf)
    except (oslo_messaging.DriverLoadFailure, oslo_messaging.InvalidTransportURL) as error:
        raise BadInput(why=f'[oslo_messaging_notifications]: {error}') from None
    wanted = [driver for driver in conf.oslo_messaging_notifications.driver if driver]
    known = {each.name for each in importlib.metadata.entry_points(group='oslo.messaging.notify.drivers')}
    for driver in wanted:
        if driver not in known:
            raise BadInput(why=f'[oslo_messaging_notifications] driver: there is no driver {driver}, '
                               f'only {", ".join(sorted(known))}')
    if not wanted or wanted == ['noop']:
        return SILENT
    return _OverTransport(oslo_messaging.Notifier(transport, f'dns.{host}'), runtime, transport)
