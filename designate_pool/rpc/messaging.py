"""RPC over a broker, with oslo.messaging.

The executor is always ``threading``; if eventlet has patched the standard library, its threads are green.
"""

from __future__ import annotations

import concurrent.futures
import inspect
import logging
import threading
from collections.abc import Callable
from typing import Any

import oslo_messaging
from kombu.exceptions import OperationalError
from kombu.transport.pyamqp import Transport
from oslo_messaging import opts
from oslo_messaging.rpc import dispatcher
from oslo_messaging.rpc.server import RPCServer

from designate_pool.errors import InvalidField, PoolError, ServiceFailed, ServiceUnavailable
from designate_pool.model import Context, new_id
from designate_pool.rpc import metrics, rabbitmq, serializer

LOG = logging.getLogger(__name__)

VERSION = '1.0'
#: The modules from which oslo.messaging may take the class of an error that was received.
ERRORS = ['designate_pool.errors']
#: Seconds that a program waits at its end for unfinished calls and for connections to close.
STOP_SECONDS = 15.0


class ValueSerializer(oslo_messaging.Serializer):
    """Serializes the values of :mod:`designate_pool.model`."""

    def serialize_entity(self, context: Any, entity: Any) -> Any:
        return serializer.pack(entity)

    def deserialize_entity(self, context: Any, entity: Any) -> Any:
        return serializer.unpack(entity)

    def serialize_context(self, context: Context) -> dict[str, Any]:
        return {'request_id': context.request_id, 'project_id': context.project_id,
                'all_projects': context.all_projects, 'user': context.user, 'may_nest': context.may_nest,
                'may_use_blacklisted': context.may_use_blacklisted, 'may_edit_managed': context.may_edit_managed,
                'operation_id': new_id()}

    def deserialize_context(self, context: dict[str, Any]) -> Context:
        return Context(request_id=context.get('request_id') or '', project_id=context.get('project_id') or '',
                       all_projects=bool(context.get('all_projects')), user=context.get('user') or '',
                       may_nest=bool(context.get('may_nest')),
                       may_use_blacklisted=bool(context.get('may_use_blacklisted')),
                       may_edit_managed=bool(context.get('may_edit_managed')),
                       operation_id=context.get('operation_id') or new_id())


class Messaging:
    """A :class:`designate_pool.rpc.client.RpcClient` over a broker, and the RPC servers of this process.

    :param conf: oslo.config's global object; oslo.messaging accepts no other
    :param host: the name of this process among the servers of a topic
    :param call_timeout: seconds that a call waits for its answer
    :param transport_url: the broker; None means ``[DEFAULT] transport_url``
    """

    def __init__(self, conf: Any, host: str, call_timeout: float = 30.0, transport_url: str | None = None) -> None:
        self._host = host
        self._call_timeout = call_timeout
        _set_defaults(conf)
        self._transport = oslo_messaging.get_rpc_transport(conf, url=transport_url, allowed_remote_exmods=ERRORS)
        self._clients: dict[str, Any] = {}
        self._servers: list[Any] = []

    def call(self, topic: str, context: Context, method: str, *, patience: float | None = None,
             **arguments: Any) -> Any:
        with metrics.call(topic, method):
            return self._call(topic, context, method, self._call_timeout if patience is None else patience, arguments)

    def _call(self, topic: str, context: Context, method: str, seconds: float, arguments: dict[str, Any]) -> Any:
        try:
            # If the other side has not declared its queue yet, at_least_once makes the call fail at once; without it,
            # the message is lost and the call waits until its timeout.
            client = self._client(topic).prepare(
                timeout=seconds, transport_options=oslo_messaging.TransportOptions(at_least_once=True))
            return client.call(context, method, **arguments)
        except PoolError as error:
            # oslo.messaging raises a subclass that it creates, with the other side's stack trace in its text; raise our
            # own class instead.
            raise type(error).__mro__[1](**error.kwargs) from None
        except oslo_messaging.MessagingTimeout as error:
            raise ServiceUnavailable(service=topic, why=f'no answer in {seconds:g} s') from error
        except oslo_messaging.MessageUndeliverable as error:
            raise ServiceUnavailable(service=topic, why='it is not connected to the broker') from error
        except _UNSENT as error:
            raise ServiceUnavailable(service=topic, why=str(error)) from error

    def cast(self, topic: str, context: Context, method: str, *, to_all: bool = False,
             **arguments: Any) -> None:
        with metrics.cast(topic, method):
            try:
                client = self._client(topic)
                if to_all:
                    client = client.prepare(fanout=True)
                client.cast(context, method, **arguments)
            except _UNSENT as error:
                raise ServiceUnavailable(service=topic, why=str(error)) from error

    def serve(self, topic: str, endpoint: Any, rank: int | None = None) -> None:
        rabbitmq.set_rank(topic, rank)
        # oslo.messaging declares a queue TOPIC.SERVER as well; no pool can be called so that this is its topic.
        server = RPCServer(
            self._transport, oslo_messaging.Target(topic=topic, server=f'@{self._host}', version=VERSION),
            _Dispatcher([_Contract(topic, endpoint)], ValueSerializer(), dispatcher.DefaultRPCAccessPolicy),
            executor='threading')
        # Each thread of oslo.messaging's own executor wakes once a second when it has nothing to do.
        server._executor_cls = concurrent.futures.ThreadPoolExecutor
        server.start()
        self._servers.append(server)

    def stop_serving(self) -> None:
        """Accept no new messages and finish those that were accepted; this process can still call and cast."""
        servers, self._servers = self._servers, []
        _within(STOP_SECONDS, *(server.stop for server in servers), *(server.wait for server in servers))

    def stop(self) -> None:
        self.stop_serving()
        _within(STOP_SECONDS / 3, self._transport.cleanup)

    def _client(self, topic: str) -> Any:
        client = self._clients.get(topic)
        if client is None:
            client = oslo_messaging.get_rpc_client(
                self._transport, oslo_messaging.Target(topic=topic, version=VERSION), serializer=ValueSerializer(),
                timeout=self._call_timeout, retry=rabbitmq.RETRIES)
            self._clients[topic] = client
        return client


#: The broker did not accept the message.  While a connection is made or restored, the errors of the libraries below
#: oslo.messaging are raised, for example by a broker that refuses the password.
_UNSENT = (oslo_messaging.MessageDeliveryFailure, OperationalError, *Transport.connection_errors,
           *Transport.channel_errors)


def _set_defaults(conf: Any) -> None:
    for group, options in opts.list_opts():
        if group == 'oslo_messaging_rabbit':
            conf.register_opts(options, group=group)
    for name, value in rabbitmq.DEFAULTS.items():
        conf.set_default(name, value, group='oslo_messaging_rabbit')


def _within(seconds: float, *steps: Callable[[], Any]) -> None:
    """Run *steps* for at most *seconds*: oslo.messaging waits forever for a broker that is down."""
    def take() -> None:
        for step in steps:
            step()

    thread = threading.Thread(target=take, name='messaging-stop', daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        LOG.warning('the connection to the broker was not closed within %g s; messages under way will be delivered '
                    'again', seconds)


class _Dispatcher(dispatcher.RPCDispatcher):
    """oslo.messaging's own makes a thread for each message, though it runs it only for clients that want to be told how
    long a call takes; ours do not.
    """

    def dispatch(self, incoming: Any) -> Any:
        message, endpoint = incoming.message, self.endpoints[0]
        method = message.get('method') or '_'
        if (incoming.client_timeout or method.startswith(('_', 'oslo_')) or message.get('version') != VERSION
                or 'namespace' in message):
            return super().dispatch(incoming)
        return self._do_dispatch(endpoint, method, incoming.ctxt, message.get('args', {}))


class _Contract:
    """Wraps an endpoint for oslo.messaging: only its methods whose first parameter is ``context`` can be called.

    Our own errors are marked as expected, so that oslo.messaging sends them without logging a stack trace.
    """

    target = oslo_messaging.Target(version=VERSION)

    def __init__(self, topic: str, endpoint: Any) -> None:
        self._topic = topic
        self._endpoint = endpoint
        self._handlers: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith(('_', 'oslo_')):
            raise AttributeError(name)
        handler = self._handlers.get(name)
        if handler is not None:
            return handler
        method = getattr(self._endpoint, name, None)
        signature = inspect.signature(method) if callable(method) else None
        if signature is not None and next(iter(signature.parameters), None) != 'context':
            signature = None

        @oslo_messaging.expected_exceptions(PoolError)  # type: ignore[untyped-decorator]
        def handle(context: Context, **arguments: Any) -> Any:
            if method is None or signature is None:
                raise InvalidField(field='method', why=f'there is no method {name}')
            try:
                signature.bind(context, **arguments)
            except TypeError as error:
                raise InvalidField(field=name, why=str(error)) from error
            try:
                return method(context, **arguments)
            except PoolError:
                raise
            except Exception as error:  # the stack trace is logged here, the caller gets a sentence
                LOG.exception('%s failed', name)
                raise ServiceFailed(service=self._topic, method=name, kind=type(error).__name__) from error

        if signature is not None:  # the others' names are whatever somebody sends
            self._handlers[name] = handle
        return handle
