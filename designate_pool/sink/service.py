"""The service: each notification becomes the records that its resource has from then on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from designate_pool.errors import BadInput, DomainNotFound, PoolError
from designate_pool.model import Context
from designate_pool.outage_log import OutageLog
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.notification_listener import Notification, NotificationListener
from designate_pool.sink import handlers
from designate_pool.sink.handlers import NotificationHandler

LOG = logging.getLogger(__name__)
#: Seconds before a notification that could not be acted on is delivered again.
PAUSE = 2.0
WHO = Context(user='designate-pool-sink', all_projects=True, may_edit_managed=True)


class SinkService:
    """
    :param listen: makes the listener from the function that acts on a notification
    """

    def __init__(self, enabled: Sequence[NotificationHandler], central: CentralClient,
                 listen: Callable[[Callable[[Notification], bool]], NotificationListener],
                 pause: float = PAUSE) -> None:
        self._handlers = tuple(enabled)
        self._central = central
        self._listener = listen(self.handle)
        self._pause = pause
        self._stopped = threading.Event()
        self._outage = OutageLog(LOG, 'notifications cannot be acted on at present, and are kept: %s',
                                 'notifications are acted on again', logging.WARNING)

    def start(self) -> None:
        self._listener.start()

    def stop(self) -> None:
        self._stopped.set()
        self._listener.stop()

    def handle(self, notification: Notification) -> bool:
        """Whether it is done with; otherwise it has to be delivered again, after the pause that this has made."""
        try:
            for handler in self._handlers:
                if notification.event_type in handler.event_types:
                    self._act(handler, notification)
        except PoolError as error:
            if error.code < 500:
                LOG.error('%s %s is not acted on: %s', notification.event_type, _message_id(notification), error)
                return True
            return self._again(error)
        except Exception as error:  # of the connection to the broker; whatever it is, the notification is not lost
            return self._again(error)
        self._outage.ended()
        return True

    def _again(self, error: Exception) -> bool:
        self._outage.failed(error)
        self._stopped.wait(self._pause)
        return False

    def _act(self, handler: NotificationHandler, notification: Notification) -> None:
        found = handlers.read(handler, notification.event_type, notification.payload,
                              notification.context.get('project_name'))
        try:
            zone = self._central.get_domain(WHO, handler.zone_id).name if found.addresses else ''
            self._central.set_resource_records(WHO, found.resource, handler.zone_id,
                                               handlers.records(handler, found, zone), _sent_at(notification.metadata))
        except DomainNotFound:
            raise BadInput(why=f'[handler:{handler.name}] zone_id: there is no zone {handler.zone_id}') from None


def _message_id(notification: Notification) -> str:
    return str(notification.metadata.get('message_id') or '')


def _sent_at(metadata: Mapping[str, Any]) -> datetime | None:
    """When it was sent; None if it does not say."""
    try:
        return datetime.fromisoformat(str(metadata.get('timestamp'))).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
