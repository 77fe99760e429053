"""Notifications of other services, from the broker."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import oslo_messaging

from designate_pool.errors import BadInput
from designate_pool.rpc.client import run_within

#: Seconds that a program waits at its end for the notifications under way.
STOP_SECONDS = 15.0


class Notification(NamedTuple):
    """One of priority ``info``.

    :ivar metadata: ``message_id`` and ``timestamp``
    """

    context: Mapping[str, Any]
    event_type: str
    payload: Any
    metadata: Mapping[str, Any]


class NotificationListener:
    """Receives notifications, each until it is done with.

    :param conf: oslo.config's global object
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
        self._listener.start(override_pool_size=self._threads)

    def stop(self) -> None:
        """Accept no more, and finish what is under way; what is not finished is delivered to another listener."""
        run_within(STOP_SECONDS, 'notifications-stop', self._listener.stop, self._listener.wait,
                   self._transport.cleanup)


class _InfoEndpoint:
    """What oslo.messaging calls."""

    def __init__(self, event_types: Iterable[str], handle: Callable[[Notification], bool]) -> None:
        self.filter_rule = oslo_messaging.NotificationFilter(
            event_type=f'^({"|".join(map(re.escape, event_types))})$')
        self._handle = handle

    def info(self, context: Any, publisher_id: str, event_type: str, payload: Any, metadata: Any) -> str:
        done = self._handle(Notification(context or {}, event_type, payload, metadata or {}))
        return oslo_messaging.NotificationResult.HANDLED if done else oslo_messaging.NotificationResult.REQUEUE
