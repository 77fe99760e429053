"""Doubles and holds back messages between the services, through the broker, as a network and other clients of it may.

What is doubled is a cast: a copy comes later, with a number of its own, as if it had been sent twice.  What is held
back is any message.  How late it comes depends on the fault: seconds, while most of what somebody waits for is still
waited for, or minutes.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import heapq
import itertools
import json
import math
import random
import threading
import time
import uuid
from collections.abc import Sequence
from typing import Any

import amqp
from kombu.connection import Connection

from testing.processes import wait_until

#: oslo.messaging's exchange, and the topics of the services of one pool.
_EXCHANGE = 'openstack'
_TOPICS = ('central', 'pool_manager.default', 'minidns.default', 'pool_manager-spread.default',
           'minidns-spread.default')
#: Seconds during which messages are taken, or are not.
_WINDOW = 0.5
#: Of the broker's properties of a message, those that go on with a copy.
_PROPERTIES = ('content_type', 'content_encoding', 'application_headers', 'delivery_mode', 'priority')


@dataclasses.dataclass(frozen=True, slots=True)
class MessageFault:
    """
    :ivar copied: the share of casts of which a copy comes late
    :ivar taken: the share of the time during which messages are taken from the services' queues and come late; the
        broker prefers a consumer without a priority to a service that has a rank
    :ivar shortest: seconds that a message comes late
    :ivar longest: seconds
    :ivar patience: the part of the time for which somebody waits for a message that it comes late at most
    """

    name: str
    copied: float
    taken: float
    shortest: float
    longest: float
    patience: float = math.inf


DOUBLED = MessageFault('doubled', 0.5, 0, 0.5, 60)
DELAYED = MessageFault('delayed', 0, 0.3, 6, 30, 0.5)
#: Later than any claim ends, and than anything is tried again: after other faults, which began and ended meanwhile.
KEPT = MessageFault('kept', 0.2, 0.15, 120, 240)


class Messages:
    """
    :param urls: of the broker's nodes, of which it uses one at a time
    :ivar fault: what is done to messages from now on; None for nothing
    :ivar counts: messages that come late, by the fault's name; those that are held are delivered in the end
    :ivar latest: by how many seconds one was late, by the fault's name, of those that were delivered
    """

    def __init__(self, urls: Sequence[str], seed: int) -> None:
        self._urls = [url.replace('rabbit:', 'amqp:', 1) for url in urls]
        self._chance = random.Random(f'{seed}/messages')
        self._lock = threading.Lock()
        self._held: list[_Held] = []
        self._order = itertools.count()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name='messages', daemon=True)
        self.fault: MessageFault | None = None
        self.counts = collections.Counter[str]()
        self.latest = dict[str, float]()

    def __enter__(self) -> Messages:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def deliver(self, seconds: float = 60) -> None:
        """Deliver now all that is held.

        :raises AssertionError: when the broker does not accept it in time
        """
        with self._lock:
            self._held = [dataclasses.replace(held, due=0.0) for held in sorted(self._held)]
        wait_until(lambda: self.held == 0, 'all messages are delivered', seconds, 0.1)

    @property
    def held(self) -> int:
        """How many have not been delivered yet."""
        return len(self._held)

    def _work(self) -> None:
        while not self._over.wait(0.5):
            # Whatever ails the broker: it is killed, paused and cut off on purpose.
            with contextlib.suppress(Exception), Connection(
                    self._chance.choice(self._urls), connect_timeout=5,
                    transport_options={'max_retries': 1, 'confirm_publish': True}) as connection:
                self._exchange(connection, connection.default_channel)

    def _exchange(self, connection: Connection, channel: amqp.Channel) -> None:
        copies = channel.queue_declare(exclusive=True).queue
        for topic in _TOPICS:
            channel.queue_declare(topic, passive=True)  # a broker that was started anew does not have it at once
            channel.queue_bind(copies, _EXCHANGE, topic)
        channel.basic_consume(copies, callback=self._copy, no_ack=True)
        channel.basic_qos(0, 3, False)
        consumers: list[str] = []
        is_taking, next_window = False, 0.0
        while not self._over.is_set():
            fault, now = self.fault, time.monotonic()
            if fault is None:
                is_taking, next_window = False, 0.0
            elif now >= next_window:
                is_taking, next_window = self._chance.random() < fault.taken, now + _WINDOW
            if is_taking and not consumers:
                consumers = [channel.basic_consume(topic, callback=self._take) for topic in _TOPICS]
            elif consumers and not is_taking:
                for consumer in consumers:
                    channel.basic_cancel(consumer)
                consumers = []
            with contextlib.suppress(TimeoutError):
                connection.drain_events(timeout=0.1)
            self._send_due(channel)

    def _copy(self, message: amqp.Message) -> None:
        fault = self.fault
        body = json.loads(message.body)
        inner = json.loads(body['oslo.message'])
        if fault is None or '_msg_id' in inner or self._chance.random() >= fault.copied:
            return
        inner['_unique_id'] = uuid.uuid4().hex
        body['oslo.message'] = json.dumps(inner)
        self._hold(message, json.dumps(body), self._chance.uniform(fault.shortest, fault.longest), fault)

    def _take(self, message: amqp.Message) -> None:
        fault, seconds = self.fault, 0.0
        if fault is not None:
            # What is waited for tells in milliseconds how long.
            patience = float(message.properties.get('expiration') or 'inf') / 1000
            seconds = min(self._chance.uniform(fault.shortest, fault.longest),
                          self._chance.uniform(0.2, 1) * fault.patience * patience)
        self._hold(message, message.body, seconds, fault)
        message.channel.basic_ack(message.delivery_tag)

    def _hold(self, message: amqp.Message, body: Any, seconds: float, fault: MessageFault | None) -> None:
        again = amqp.Message(body, **{name: message.properties[name] for name in _PROPERTIES
                                      if name in message.properties})
        now = time.monotonic()
        name = fault.name if fault is not None and seconds else ''
        with self._lock:
            heapq.heappush(self._held, _Held(now + seconds, next(self._order), now, name,
                                             message.delivery_info['routing_key'], again))
            if name:
                self.counts[name] += 1

    def _send_due(self, channel: amqp.Channel) -> None:
        now = time.monotonic()  # what is taken while these are sent has its turn when the consumers have had theirs
        while (held := self._next_due(now)) is not None:
            try:
                # To the queue itself, so that it is not copied again.
                channel.basic_publish(held.message, '', held.topic, confirm_timeout=5)
            except BaseException:  # whatever ails the broker: it is sent again, maybe a second time
                with self._lock:
                    heapq.heappush(self._held, held)
                raise
            if held.fault:
                late = time.monotonic() - held.since
                self.latest[held.fault] = max(self.latest.get(held.fault, 0.0), late)

    def _next_due(self, now: float) -> _Held | None:
        with self._lock:
            return heapq.heappop(self._held) if self._held and self._held[0].due <= now else None


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class _Held:
    """A message, ordered by when it is to be delivered.

    :ivar since: when it came
    :ivar fault: the name of that which holds it; empty for none
    """

    due: float
    number: int
    since: float
    fault: str
    topic: str
    message: amqp.Message
