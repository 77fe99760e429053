"""The service: each notification becomes the records that its resource has from then on."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from designate_pool.errors import BadInput, DomainNotFound, PoolError, ServiceUnavailable
from designate_pool.logs import OutageLog
from designate_pool.model import ChangeKind, Context, dashed, utcnow
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.notifications import Notification, NotificationListener
from designate_pool.sink.handlers import NotificationHandler, ResourceRecords

LOG = logging.getLogger(__name__)
#: Seconds before a notification that could not be acted on is delivered again.
PAUSE = 2.0
#: How often a notification is delivered that fails though Central would act on others.
TRIES = 10
#: Notifications whose tries are counted at a time.
_COUNTED = 10000
#: By which Central is tried: the id of no zone, and a resource that never has records.
_NO_ZONE = '0' * 32
_PROBE = {'plugin': 'designate-pool-sink', 'resource_type': 'probe', 'resource_id': 'probe'}
WHO = Context(user='sink', all_projects=True, may_edit_managed=True, kind=ChangeKind.SINK)

MakeHandler = Callable[[Callable[[str], str]], NotificationHandler]
Listen = Callable[[Iterable[tuple[str, str]], Iterable[str], Callable[[Notification], bool]],
                  Iterable[NotificationListener]]


class SinkService:
    """Acts on notifications.

    :param enabled: what makes the handlers, each from the function by which it gets the name of a zone
    :param listen: makes the listeners from exchanges with their topics, types of events, and the function that acts on
        a notification
    :raises BadInput: when a handler does not say what it handles
    """

    def __init__(self, enabled: Iterable[MakeHandler], central: CentralClient, listen: Listen,
                 pause: float = PAUSE) -> None:
        self._central = central
        sources = list[tuple[str, str]]()
        #: Which handlers a type of event is for.
        self._handlers: dict[str, list[NotificationHandler]] = {}
        for handler in [make(self._zone_name) for make in enabled]:
            with _asked(handler, 'get_exchange_topics'):
                exchange, topics = handler.get_exchange_topics()
                sources += [(exchange, topic) for topic in _texts(topics)]
            with _asked(handler, 'get_event_types'):
                for event_type in set(_texts(handler.get_event_types())):
                    self._handlers.setdefault(event_type, []).append(handler)
        self._listeners = tuple(listen(sources, self._handlers, self.handle))
        self._pause = pause
        self._stopped = threading.Event()
        #: Failures by notification, of each part of it by itself, while Central answered.
        self._failures: dict[tuple[str, ...], dict[tuple[str, ...], int]] = {}
        self._outage = OutageLog(LOG, 'notifications cannot be acted on at present, and are kept: %s',
                                 'notifications are acted on again', logging.WARNING)

    def start(self) -> None:
        """Begin to receive notifications."""
        for listener in self._listeners:
            listener.start()

    def stop(self) -> None:
        """Receive no more; what is not finished is delivered again."""
        self._stopped.set()
        for listener in self._listeners:
            listener.stop()

    def handle(self, notification: Notification) -> bool:
        """Whether it is done with; otherwise it has to be delivered again, after the pause that this has made."""
        try:
            for handler in self._handlers.get(notification.event_type, ()):
                for records in self._found(handler, notification):
                    self._write(handler, records, notification)
        except Exception as error:  # of the connection to the broker; whatever it is, the notification is not lost
            self._outage.failed(error)
            self._stopped.wait(self._pause)
            return False
        self._failures.pop(_key(notification), None)
        return True

    def _is_used_up(self, handler: NotificationHandler, notification: Notification,
                    written: ResourceRecords | None) -> bool:
        """Whether the tries of what was to be *written*, if it came to that, are: of those while Central works."""
        try:
            if written is None:
                self._central.get_domain(WHO, _NO_ZONE)
            else:  # a database may be readable only
                self._central.set_resource_records(WHO, _PROBE, written.zone_id, (), utcnow())
        except DomainNotFound:
            pass
        except Exception:  # of the connection to the broker, and others
            return False
        key, part = _key(notification), (handler.name, *(written[:3] if written is not None else ()))
        self._failures[key] = parts = self._failures.pop(key, {})
        parts[part] = tries = parts.get(part, 0) + 1
        if len(self._failures) > _COUNTED:
            self._failures.pop(next(iter(self._failures)), None)
        return tries >= TRIES

    def _zone_name(self, zone_id: str) -> str:
        try:
            return self._central.get_domain(WHO, zone_id).name
        except PoolError:
            raise
        except Exception as error:  # of the connection to the broker
            raise ServiceUnavailable(service='central', why=str(error)) from error

    def _found(self, handler: NotificationHandler, notification: Notification) -> list[ResourceRecords]:
        """What a handler says; nothing if it fails, since it would fail again."""
        with self._refused(handler, notification):
            try:
                return [_checked(records) for records in handler.process_notification(
                    notification.context, notification.event_type, notification.payload)]
            except PoolError:
                raise
            except Exception:  # handlers are others' code as well
                LOG.exception('%s %s is not acted on: [handler:%s] has failed', notification.event_type,
                              _message_id(notification), handler.name)
        return []

    def _write(self, handler: NotificationHandler, found: ResourceRecords, notification: Notification) -> None:
        with self._refused(handler, notification, found):
            self._central.set_resource_records(
                WHO, {'plugin': handler.name, 'resource_type': found.resource_type, 'resource_id': found.resource_id},
                found.zone_id, found.records, _sent_at(notification.metadata))
            self._outage.ended()

    @contextlib.contextmanager
    def _refused(self, handler: NotificationHandler, notification: Notification,
                 written: ResourceRecords | None = None) -> Iterator[None]:
        """Logs what would be refused again, however often it came, of what is *written*, and ends it there."""
        try:
            yield
        except DomainNotFound as error:
            why = f'zone_id: there is no zone {dashed(error.kwargs["domain"])}'
        except Exception as error:  # of the connection to the broker, and others
            may_pass = not isinstance(error, PoolError) or error.code >= 500
            if may_pass and not self._is_used_up(handler, notification, written):
                raise
            why = str(error) if isinstance(error, PoolError) else f'{type(error).__name__}: {error}'
        else:
            return
        LOG.error('%s %s is not acted on: [handler:%s] %s', notification.event_type, _message_id(notification),
                  handler.name, why)


@contextlib.contextmanager
def _asked(handler: NotificationHandler, method: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # handlers are others' code as well
        raise BadInput(why=f'[handler:{handler.name}] {method} fails ({type(error).__name__}: {error})') from error


def _texts(given: Iterable[str]) -> list[str]:
    texts = list(given)
    if isinstance(given, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f'{given!r} is no sequence of texts')
    return texts


def _checked(found: ResourceRecords) -> ResourceRecords:
    """What a handler says, if it can be sent to Central at all; Central checks the rest."""
    if not isinstance(found, ResourceRecords):
        raise TypeError(f'{found!r} is no ResourceRecords')
    records = [dict(record) for record in found.records]
    _texts([found.resource_type, found.resource_id, found.zone_id])
    for record in records:
        _texts([*record, *record.values()])
    return found._replace(records=records)


def _key(notification: Notification) -> tuple[str, ...]:
    return notification.event_type, _message_id(notification), str(notification.metadata.get('timestamp'))


def _message_id(notification: Notification) -> str:
    return str(notification.metadata.get('message_id') or '')


def _sent_at(metadata: Mapping[str, Any]) -> datetime | None:
    try:
        return datetime.fromisoformat(str(metadata.get('timestamp'))).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
