"""Doubles and holds back messages between the services, through the broker, as a network and other clients of it may.

What is doubled is a cast: a copy comes later, with a number of its own, as if it had been sent twice.  What is held
back is any message; one that somebody waits for comes while it is still waited for, or late.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import json
import random
import threading
import time
import uuid
from collections.abc import Sequence
from typing import Any

import amqp
from kombu.connection import Connection

#: oslo.messaging's exchange, and the topics of the services of one pool.
_EXCHANGE = 'openstack'
_TOPICS = ('central', 'pool_manager.default', 'minidns.default')
#: Of the broker's properties of a message, those that go on with a copy.
_PROPERTIES = ('content_type', 'content_encoding', 'application_headers', 'delivery_mode', 'priority')


class Messages:
    """
    :param urls: of the broker's nodes, of which it uses one at a time
    :ivar doubled: messages that came once more
    :ivar delayed: messages that came late
    """

    def __init__(self, urls: Sequence[str], seed: int) -> None:
        self._urls = [url.replace('rabbit:', 'amqp:', 1) for url in urls]
        self._chance = random.Random(f'{seed}/messages')
        self._lock = threading.Lock()
        self._held: list[tuple[float, int, str, amqp.Message, str]] = []
        self._order = itertools.count()
        self._share = self._delay = 0.0
        self._is_stealing = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name='messages', daemon=True)
        self.doubled = self.delayed = 0

    def __enter__(self) -> Messages:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def double(self, share: float, delay: float) -> None:
        """From now on this share of all casts comes once more, up to *delay* seconds later; 0 ends it."""
        self._share, self._delay = share, delay

    def steal(self, is_stealing: bool) -> None:
        """From now on take part of all messages from the services, and give them back late."""
        self._is_stealing = is_stealing

    def release(self) -> None:
        """Send at once all that is held."""
        with self._lock:
            self._held = sorted(((0.0, *rest) for _, *rest in self._held), key=lambda held: held[1])

    @property
    def held(self) -> int:
        return len(self._held)

    def _work(self) -> None:
        while not self._over.wait(0.5):
            # Whatever ails the broker: it is killed, paused and cut off on purpose.
            with contextlib.suppress(Exception), Connection(
                    self._chance.choice(self._urls), connect_timeout=5,
                    transport_options={'max_retries': 1}) as connection:
                self._exchange(connection, connection.default_channel)

    def _exchange(self, connection: Connection, channel: amqp.Channel) -> None:
        copies = channel.queue_declare(exclusive=True).queue
        for topic in _TOPICS:
            channel.queue_bind(copies, _EXCHANGE, topic)
        channel.basic_consume(copies, callback=self._copy, no_ack=True)
        channel.basic_qos(0, 3, False)
        consumers: list[str] = []
        while not self._over.is_set():
            if self._is_stealing and not consumers:
                consumers = [channel.basic_consume(topic, callback=self._steal) for topic in _TOPICS]
            elif consumers and not self._is_stealing:
                for consumer in consumers:
                    channel.basic_cancel(consumer)
                consumers = []
            with contextlib.suppress(TimeoutError):
                connection.drain_events(timeout=0.1)
            self._send_due(channel)

    def _copy(self, message: amqp.Message) -> None:
        body = json.loads(message.body)
        inner = json.loads(body['oslo.message'])
        if '_msg_id' in inner or self._chance.random() >= self._share:
            return
        inner['_unique_id'] = uuid.uuid4().hex
        body['oslo.message'] = json.dumps(inner)
        self._hold(message, json.dumps(body), self._chance.uniform(0.5, self._delay), 'doubled')

    def _steal(self, message: amqp.Message) -> None:
        # What is waited for tells in milliseconds how long.
        patience = float(message.properties.get('expiration') or 120000) / 1000
        self._hold(message, message.body, self._chance.uniform(0.1, 0.5) * min(patience, 60), 'delayed')
        message.channel.basic_ack(message.delivery_tag)

    def _hold(self, message: amqp.Message, body: Any, seconds: float, how: str) -> None:
        again = amqp.Message(body, **{name: message.properties[name] for name in _PROPERTIES
                                      if name in message.properties})
        topic = message.delivery_info['routing_key']
        with self._lock:
            heapq.heappush(self._held, (time.monotonic() + seconds, next(self._order), topic, again, how))

    def _send_due(self, channel: amqp.Channel) -> None:
        while self._held and self._held[0][0] <= time.monotonic():
            _, _, topic, message, how = self._held[0]
            channel.basic_publish(message, _EXCHANGE, topic)
            with self._lock:
                heapq.heappop(self._held)
            if how == 'doubled':
                self.doubled += 1
            else:
                self.delayed += 1
