"""RPC over a broker, with oslo.messaging.

The executor is always ``threading``; if eventlet has patched the standard library, its threads are green.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import inspect
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import oslo_messaging
from kombu.exceptions import OperationalError
from kombu.transport import pyamqp
from oslo_messaging import opts
from oslo_messaging._drivers import amqpdriver, common, impl_rabbit
from oslo_messaging.rpc import dispatcher
from oslo_messaging.rpc.server import RPCServer

from designate_pool.errors import InvalidField, PoolError, ServiceFailed, ServiceUnavailable
from designate_pool.model import ChangeKind, Context, new_id
from designate_pool.rpc import serializer
from designate_pool.rpc.client import RpcServer, measured, methods, run_within

LOG = logging.getLogger(__name__)
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


#: After so many milliseconds without a consumer the broker deletes the queue of one process, which no other one uses.
_UNUSED = 3_600_000


class RankedConsumer(impl_rabbit.Consumer):
    """Consumes a queue of :data:`_PRIORITIES` with that priority, and has the broker delete those of processes that
    have ended; oslo.messaging cannot be told."""

    def declare(self, conn: Any) -> None:
        if '.@' in self.queue_name:
            self.queue_arguments: dict[str, Any] = {**self.queue_arguments, 'x-expires': _UNUSED}
        super().declare(conn)
        priority = _PRIORITIES.get(self.queue_name)
        if priority is not None:
            self.queue.consumer_arguments = {**(self.queue.consumer_arguments or {}), 'x-priority': priority}


class DirectConnection(impl_rabbit.Connection):
    """Sends and receives at once, and prepares for a lost connection when it is lost; oslo.messaging does each time.

    A node that is silent is left as soon as that is noticed.  oslo.messaging first closes the channel and the
    connection, waiting for the node's answer to each, and stays with an idle connection, which still looks connected.
    After a message that could not be sent, kombu would try no other node as long as that one is silent, which takes all
    the time that there is for all of them.
    """

    def ensure_connection(self) -> None:
        if self.connection.connected:  # and yet its heartbeat failed
            self.connection.collect()
            self.connection.maybe_switch_next()
        super().ensure_connection()

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
                if isinstance(error, self.connection.connection_errors):
                    self.connection.collect()
        try:
            return super().ensure(attempt, *arguments, **options)
        except oslo_messaging.MessageDeliveryFailure:
            self.connection.maybe_switch_next()
            raise

    @contextlib.contextmanager
    def _transport_socket_timeout(self, timeout: float | None) -> Iterator[None]:
        with contextlib.nullcontext() if timeout is None else super()._transport_socket_timeout(timeout):
            yield  # without a timeout of the message's own, that of the connection is set already


class CallingDriver(impl_rabbit.RabbitDriver):
    """Fails a process's first calls while the broker is down; oslo.messaging waits forever, with all other calls."""

    def _get_reply_q(self) -> str:
        if self._reply_q is None:
            self._connection_pool.create(common.PURPOSE_SEND, RETRIES).close()
        name: str = super()._get_reply_q()
        return name


class NamingTransport(pyamqp.Transport):
    """Names the broker in the error of a connection that fails, and waits for no answer longer than for a heartbeat.

    oslo.messaging sets that timeout too, but after it has declared its queues, and not when that fails.
    """

    def establish_connection(self) -> Any:
        try:
            connection = super().establish_connection()  # type: ignore[no-untyped-call]
            connection.sock.settimeout(connection.heartbeat or None)
            return connection
        except OSError as error:
            where = self.client and self.client.host
            raise ConnectionError(f'the broker at {where} does not answer: {error}') from error


pyamqp.Transport = NamingTransport  # type: ignore[misc]
impl_rabbit.Consumer = RankedConsumer
impl_rabbit.Connection = DirectConnection
impl_rabbit.RabbitDriver = CallingDriver


def set_rank(topic: str, rank: int | None) -> None:
    """Give consumers of a topic that are declared from now on a rank, see :mod:`designate_pool.rpc.client`."""
    _PRIORITIES.pop(topic, None)
    if rank is not None:
        # Those that start within a quarter of a second take turns.
        _PRIORITIES[topic] = -(min(rank, 1) * _TIMES + int(4 * (time.time() - _EPOCH)) % _TIMES)


VERSION = '1.0'
#: The modules from which oslo.messaging may take the class of an error that was received.
ERRORS = ['designate_pool.errors']
#: Seconds that a program waits at its end for unfinished calls and for connections to close.
STOP_SECONDS = 15.0
#: Answered by every server at once, with nothing; seconds that a caller waits, and a server that stops at most.
_PING, _PING_SECONDS, _WAKE_SECONDS = 'ping', 3.0, 1.0
_CONTEXT = [field.name for field in dataclasses.fields(Context)]


class ValueSerializer(oslo_messaging.Serializer):
    """Serializes the values of :mod:`designate_pool.model`."""

    def serialize_entity(self, context: Any, entity: Any) -> Any:
        return serializer.pack(entity)

    def deserialize_entity(self, context: Any, entity: Any) -> Any:
        return serializer.unpack(entity)

    def serialize_context(self, context: Context) -> dict[str, Any]:
        return {**dataclasses.asdict(context), 'operation_id': new_id()}

    def deserialize_context(self, context: dict[str, Any]) -> Context:
        return Context(**{'operation_id': new_id(), **{name: context[name] for name in _CONTEXT if context.get(name)},
                          'kind': ChangeKind(context.get('kind', ChangeKind.API))})


class Messaging(RpcServer):
    """Calls and casts over a broker.

    :param conf: oslo.config's global object; oslo.messaging accepts no other
    :param host: part of the name of this process among the servers of a topic
    :param transport_url: the broker; None means ``[DEFAULT] transport_url``
    """

    def __init__(self, conf: Any, host: str, call_timeout: float = 30.0, transport_url: str | None = None) -> None:
        self._server_name = f'@{host}.{new_id()[:8]}'  # another one of the host must not answer its pings
        self._call_timeout = call_timeout
        for group, options in opts.list_opts():
            if group == 'oslo_messaging_rabbit':
                conf.register_opts(options, group=group)
        for name, value in DEFAULTS.items():
            conf.set_default(name, value, group='oslo_messaging_rabbit')
        self._transport = oslo_messaging.get_rpc_transport(conf, url=transport_url, allowed_remote_exmods=ERRORS)
        self._clients: dict[str, Any] = {}
        self._servers: list[tuple[str, Any]] = []

    def call(self, topic: str, context: Context, method: str, *, patience: float | None = None,
             **arguments: Any) -> Any:
        return self._call(topic, context, method, self._call_timeout if patience is None else patience, {}, arguments)

    def ping(self, topic: str) -> None:
        self._call(topic, Context(), _PING, _PING_SECONDS, {'server': self._server_name}, {})

    def _call(self, topic: str, context: Context, method: str, seconds: float, target: Mapping[str, str],
              arguments: Mapping[str, Any]) -> Any:
        with measured(topic, method, is_call=True):
            try:
                # If the other side has not declared its queue yet, at_least_once makes the call fail at once; without
                # it, the message is lost and the call waits until its timeout.
                client = self._client(topic).prepare(
                    **target, timeout=seconds, transport_options=oslo_messaging.TransportOptions(at_least_once=True))
                return client.call(context, method, **arguments)
            except PoolError as error:
                # oslo.messaging raises a subclass that it creates, with the other side's stack trace in its text; raise
                # our own class instead.
                raise type(error).__mro__[1](**error.kwargs) from None
            except oslo_messaging.MessagingTimeout as error:
                raise ServiceUnavailable(service=topic, why=f'no answer in {seconds:g} s') from error
            except oslo_messaging.MessageUndeliverable as error:
                raise ServiceUnavailable(service=topic, why='it is not connected to the broker') from error
            except _UNSENT as error:
                raise ServiceUnavailable(service=topic, why=str(error)) from error

    def cast(self, topic: str, context: Context, method: str, *, to_all: bool = False,
             **arguments: Any) -> None:
        with measured(topic, method, is_call=False):
            try:
                client = self._client(topic)
                (client.prepare(fanout=True) if to_all else client).cast(context, method, **arguments)
            except _UNSENT as error:
                raise ServiceUnavailable(service=topic, why=str(error)) from error

    def serve(self, topic: str, contract: type, endpoint: Any, rank: int | None = None) -> None:
        set_rank(topic, rank)
        # oslo.messaging declares a queue TOPIC.SERVER as well; no pool can be called so that this is its topic.
        server = RPCServer(
            self._transport, oslo_messaging.Target(topic=topic, server=self._server_name, version=VERSION),
            _Dispatcher(topic, contract, endpoint), executor='threading')
        # Each thread of oslo.messaging's own executor wakes once a second when it has nothing to do.
        server._executor_cls = concurrent.futures.ThreadPoolExecutor
        server.start()
        self._servers.append((topic, server))

    def stop_serving(self) -> None:
        """Accept no new messages and finish those that were accepted; this process can still call and cast."""
        servers, self._servers = self._servers, []
        self._close(STOP_SECONDS, functools.partial(self._stop_listening, servers),
                    *(server.wait for _, server in servers))

    def stop(self) -> None:
        self.stop_serving()
        self._close(STOP_SECONDS / 3, self._transport.cleanup)

    def _stop_listening(self, servers: Sequence[tuple[str, Any]]) -> None:
        """Stop all *servers* at once: each looks for that after its wait for a message, which grows to five seconds."""
        def stop(topic: str, server: Any) -> None:
            run_within(_WAKE_SECONDS, 'messaging-wake', functools.partial(self._wake, topic))
            server.stop()

        threads = [threading.Thread(target=stop, args=server, name='messaging-stop', daemon=True) for server in servers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _wake(self, topic: str) -> None:
        with contextlib.suppress(PoolError):  # without a broker nothing is received either
            self.ping(topic)

    @staticmethod
    def _close(seconds: float, *steps: Callable[[], Any]) -> None:
        if not run_within(seconds, 'messaging-stop', *steps):
            LOG.warning('the connection to the broker was not closed within %g s; messages under way will be delivered '
                        'again', seconds)

    def _client(self, topic: str) -> Any:
        client = self._clients.get(topic)
        if client is None:
            client = oslo_messaging.get_rpc_client(
                self._transport, oslo_messaging.Target(topic=topic, version=VERSION), serializer=ValueSerializer(),
                timeout=self._call_timeout, retry=RETRIES)
            self._clients[topic] = client
        return client


#: The broker did not accept the message.  While a connection is made or restored, the errors of the libraries below
#: oslo.messaging are raised, for example by a broker that refuses the password.
_UNSENT = (oslo_messaging.MessageDeliveryFailure, OperationalError, *pyamqp.Transport.connection_errors,
           *pyamqp.Transport.channel_errors)


class _Dispatcher(dispatcher.RPCDispatcher):
    """Calls the methods of one contract.

    Our own errors are marked as expected, so that no stack trace is logged.  oslo.messaging's own dispatcher makes a
    thread for each message, for clients that want to be told how long a call takes.
    """

    def __init__(self, topic: str, contract: type, endpoint: Any) -> None:
        super().__init__([], ValueSerializer())
        self._topic = topic
        self._endpoint = endpoint
        self._signatures = {name: inspect.signature(getattr(endpoint, name)) for name in methods(contract, endpoint)}

    def dispatch(self, incoming: Any) -> Any:
        message = incoming.message
        method = str(message.get('method'))
        if method == _PING:
            return None
        if method.startswith('oslo_') or message.get('version') != VERSION or 'namespace' in message:
            return super().dispatch(incoming)  # a ping, or nothing that is known here
        context = self.serializer.deserialize_context(incoming.ctxt)
        try:
            arguments = {name: serializer.unpack(value) for name, value in message.get('args', {}).items()}
            return serializer.pack(self._call(method, context, arguments))
        except PoolError:
            raise oslo_messaging.ExpectedException from None

    def _call(self, method: str, context: Context, arguments: Mapping[str, Any]) -> Any:
        if method not in self._signatures:
            raise InvalidField(field='method', why=f'there is no method {method}')
        try:
            self._signatures[method].bind(context, **arguments)
        except TypeError as error:
            raise InvalidField(field=method, why=str(error)) from error
        try:
            return getattr(self._endpoint, method)(context, **arguments)
        except PoolError:
            raise
        except Exception as error:  # the stack trace is logged here, the caller gets a sentence
            LOG.exception('%s failed', method)
            raise ServiceFailed(service=self._topic, method=method, kind=type(error).__name__) from error
