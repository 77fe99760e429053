"""RabbitMQ's driver of oslo.messaging, and what this project has it do otherwise."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from oslo_messaging._drivers import amqpdriver, common, impl_rabbit

#: Our defaults for reconnecting to RabbitMQ.  oslo.messaging's own pauses grow to half a minute and more, but a broker
#: that restarts is back within seconds, and the services should reconnect at once.  The next of several nodes is chosen
#: at random: oslo.messaging goes on to the next up to three times for each failure, which in a ring of three leads back
#: to the silent node.  A process that hangs holds no more messages back than are delivered to it in advance; the broker
#: gives the others to the next process.
DEFAULTS = {'kombu_reconnect_delay': 0.1, 'rabbit_retry_interval': 1, 'rabbit_retry_backoff': 1,
            'rabbit_interval_max': 3, 'kombu_failover_strategy': 'shuffle', 'rabbit_qos_prefetch_count': 100}
#: How often sending a message is retried.  The first try fails if an idle connection has died.
RETRIES = 1
#: Seconds after a message until oslo.messaging looks whether it is to be acknowledged, and twice that until the next
#: look, and so on.  Its own first look comes after a millisecond, so a busy service looks several times for each
#: message, though calls, casts and answers are acknowledged as they come; only notifications wait for a look.
LOOK_FOR_ACKNOWLEDGEMENTS = 0.1
amqpdriver.ACK_REQUEUE_EVERY_SECONDS_MIN = LOOK_FOR_ACKNOWLEDGEMENTS  # a release without it only costs more
#: Priorities of the consumers of this process, by queue.
_PRIORITIES: dict[str, int] = {}
#: A priority has 31 bits: the rank, and the quarters of a second since 2024, which begin anew after eight years.
_EPOCH, _TIMES = 1_704_067_200, 2**30


class RankedConsumer(impl_rabbit.Consumer):
    """Consumes a queue of :data:`_PRIORITIES` with that priority, which oslo.messaging cannot be told."""

    def declare(self, conn: Any) -> None:
        super().declare(conn)
        priority = _PRIORITIES.get(self.queue_name)
        if priority is not None:
            self.queue.consumer_arguments = {**(self.queue.consumer_arguments or {}), 'x-priority': priority}


class DirectConnection(impl_rabbit.Connection):
    """Sends and receives at once, and prepares for a lost connection when it is lost; oslo.messaging does each time."""

    def ensure(self, method: Callable[[], Any], *arguments: Any, **options: Any) -> Any:
        failed: list[Exception] = []

        def attempt() -> Any:
            if failed:
                raise failed.pop()
            return method()

        if self.channel is not None:
            try:
                return method()
            except Exception as error:  # oslo.messaging decides what becomes of it
                failed.append(error)
        return super().ensure(attempt, *arguments, **options)

    @contextlib.contextmanager
    def _transport_socket_timeout(self, timeout: float | None) -> Iterator[None]:
        with contextlib.nullcontext() if timeout is None else super()._transport_socket_timeout(timeout):
            yield  # without a timeout of the message's own, that of the connection is set already


class CallingDriver(impl_rabbit.RabbitDriver):
    """Fails the first calls of a process while the broker is down; oslo.messaging waits forever, with all other calls.
    """

    def _get_reply_q(self) -> str:
        if self._reply_q is None:
            self._connection_pool.create(common.PURPOSE_SEND, RETRIES).close()
        name: str = super()._get_reply_q()
        return name


impl_rabbit.Consumer = RankedConsumer
impl_rabbit.Connection = DirectConnection
impl_rabbit.RabbitDriver = CallingDriver


def set_rank(topic: str, rank: int | None) -> None:
    """Give consumers of a topic that are declared from now on a rank, see :mod:`designate_pool.rpc.client`."""
    _PRIORITIES.pop(topic, None)
    if rank is not None:
        # Those that start within a quarter of a second take turns.
        _PRIORITIES[topic] = -(min(rank, 1) * _TIMES + int(4 * (time.time() - _EPOCH)) % _TIMES)
