"""RPC over a real broker, which goes away and comes back."""

from __future__ import annotations

import contextlib
import gc
import logging
import pathlib
import threading
from collections.abc import Iterator

import psutil
import pytest
from amqp.connection import Connection
from amqp.method_framing import Buffer
from oslo_config import cfg

from designate_pool.errors import DomainNotFound, ServiceUnavailable
from designate_pool.model import Context, new_id
from designate_pool.rpc.central import TOPIC, CentralClient
from designate_pool.rpc.messaging import Messaging
from testing.processes import wait_until
from testing.proxy import Proxy
from testing.rabbitmq import RabbitMq


class Endpoint:
    def export_zone(self, context: Context, domain_id: str) -> str:
        if domain_id == 'none':
            raise DomainNotFound(domain=domain_id)
        return f'{context.request_id} {domain_id}'


@pytest.fixture
def broker(tmp_path: pathlib.Path) -> Iterator[RabbitMq]:
    """A broker of the test's own, since it is killed."""
    with RabbitMq(tmp_path) as running:
        yield running


@contextlib.contextmanager
def serving(url: str) -> Iterator[CentralClient]:
    """A Central behind the broker at *url*, and a client that reaches it through that."""
    cfg.CONF([], project='test')
    caller = Messaging(cfg.CONF, 'test', call_timeout=3.0, transport_url=url)
    caller.serve(TOPIC, Endpoint())
    yield CentralClient(caller)
    caller.stop()


def wait_for_answer(client: CentralClient) -> None:
    def is_answered() -> bool:
        try:
            return client.export_zone(Context(request_id='r'), 'd') == 'r d'
        except ServiceUnavailable:
            return False

    wait_until(is_answered, 'a call is answered', 60)


def test_calls_are_answered_again_after_the_broker_was_killed(broker: RabbitMq) -> None:
    with serving(broker.url) as client:
        wait_for_answer(client)
        with pytest.raises(DomainNotFound, match='There is no zone none'):
            client.export_zone(Context(), 'none')
        broker.kill()
        broker.restart()
        wait_for_answer(client)


def test_a_cast_to_all_comes_to_every_process_that_serves_the_topic(rabbitmq: RabbitMq) -> None:
    class Noting:
        def __init__(self) -> None:
            self.heard: list[str] = []

        def hear(self, context: Context, word: str) -> None:
            self.heard.append(word)

    topic, endpoints = f'minidns.{new_id()}', [Noting(), Noting()]
    cfg.CONF([], project='test')
    with contextlib.ExitStack() as end:
        for number, endpoint in enumerate(endpoints):
            caller = Messaging(cfg.CONF, f'test-{number}', call_timeout=3.0, transport_url=rabbitmq.url)
            end.callback(caller.stop)
            caller.serve(topic, endpoint)
        caller.cast(topic, Context(), 'hear', to_all=True, word='to all')
        wait_until(lambda: all(each.heard for each in endpoints), 'both have heard')
        caller.cast(topic, Context(), 'hear', word='to one')
        wait_until(lambda: sum(len(each.heard) for each in endpoints) == 3, 'one has heard')
    assert sorted(word for each in endpoints for word in each.heard) == ['to all', 'to all', 'to one']


def held() -> dict[str, int]:
    """What there is of what connections to a broker are made of, and of what comes with them.

    The workers of a server, threads of another kind, become as many as have been at work at once, 64 at most.
    """
    gc.collect()
    kinds = [type(each) for each in gc.get_objects()]
    return {'connections': sum(issubclass(kind, Connection) for kind in kinds), 'buffers': kinds.count(Buffer),
            'threads': sum(type(each) is threading.Thread for each in threading.enumerate()),
            'sockets': len(psutil.Process().net_connections('tcp'))}


def test_connections_that_are_lost_again_and_again_leave_nothing(rabbitmq: RabbitMq) -> None:
    lost, spare = 10, 3
    proxy = Proxy(rabbitmq.port)
    with contextlib.ExitStack() as end:
        # pytest keeps what is logged, with the stacks in it and all that these hold.
        logging.disable()
        end.callback(logging.disable, logging.NOTSET)
        end.callback(proxy.stop)
        client = end.enter_context(serving(rabbitmq.url.replace(str(rabbitmq.port), str(proxy.port))))
        wait_for_answer(client)
        # Of connections to send by there are as many as were in use at once: a call may meet the answer to a lost one.
        # Each has three threads and three sockets, most of them the proxy's.
        most = {kind: count + spare * (1 if kind in ('connections', 'buffers') else 3)
                for kind, count in held().items()}
        for _ in range(lost):
            proxy.cut()
            wait_for_answer(client)
        try:
            wait_until(lambda: all(count <= most[kind] for kind, count in held().items()), 'there is no more')
        except AssertionError as error:
            raise AssertionError(f'{error}: {held()}, not {most} at most') from None
