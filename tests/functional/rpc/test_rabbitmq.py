"""RPC over a real broker, which goes away and comes back."""

from __future__ import annotations

import contextlib
import gc
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator

import psutil
import pytest
from amqp.connection import Connection
from amqp.method_framing import Buffer
from oslo_config import cfg

from designate_pool.errors import DomainNotFound, ServiceUnavailable
from designate_pool.model import Context, new_id
from designate_pool.rpc.broker import Messaging
from designate_pool.rpc.central import TOPIC
from designate_pool.rpc.client import Check
from testing.processes import free_port, wait_until
from testing.proxy import Proxy
from testing.rabbitmq import RabbitMq

pytestmark = pytest.mark.slow


class Endpoint:
    def export_zone(self, context: Context, domain_id: str) -> str:
        if domain_id == 'none':
            raise DomainNotFound(domain=domain_id)
        return f'{context.request_id} {domain_id}'


@contextlib.contextmanager
def closing_messaging(url: str) -> Iterator[Messaging]:
    cfg.CONF([], project='test')
    caller = Messaging(cfg.CONF, 'test', call_timeout=3.0, transport_url=url)
    yield caller
    caller.stop()


@contextlib.contextmanager
def serving(url: str) -> Iterator[Callable[[str], str]]:
    """A service behind the broker at *url*, and how its method is called through that."""
    with closing_messaging(url) as caller:
        caller.serve(TOPIC, Endpoint, Endpoint())
        yield lambda domain_id: caller.call(TOPIC, Context(request_id='r'), 'export_zone', domain_id=domain_id)


def wait_for_answer(export_zone: Callable[[str], str]) -> None:
    def is_answered() -> bool:
        try:
            return export_zone('d') == 'r d'
        except ServiceUnavailable:
            return False

    wait_until(is_answered, 'a call is answered', 60)


def test_calls_and_checks_are_answered_again_after_the_broker_was_killed(rabbitmq: RabbitMq) -> None:
    with serving(rabbitmq.url) as client, closing_messaging(rabbitmq.url) as caller:
        caller.serve('checked', Endpoint, Endpoint())
        check = Check('the broker', lambda: caller.ping('checked'))

        def is_answered() -> bool:
            with contextlib.suppress(ServiceUnavailable):
                return check() is None
            return False

        wait_for_answer(client)
        with pytest.raises(DomainNotFound, match='There is no zone none'):
            client('none')
        wait_until(is_answered, 'it answers', 60)
        rabbitmq.kill()
        try:
            wait_until(lambda: not is_answered(), 'it is a failure', 60)
        finally:
            rabbitmq.restart()
        wait_until(is_answered, 'it answers again', 60)
        wait_for_answer(client)


def test_a_broker_that_refuses_the_password_is_a_service_that_does_not_answer(rabbitmq: RabbitMq) -> None:
    cfg.CONF([], project='test')
    caller = Messaging(cfg.CONF, 'test', call_timeout=3.0, transport_url=rabbitmq.url.replace(':guest@', ':wrong@'))
    for send in (caller.cast, caller.call):
        with pytest.raises(ServiceUnavailable, match='ACCESS_REFUSED'):
            send(TOPIC, Context(), 'export_zone')
    caller.stop()


#: As a consumer sends it after its login; its class and method numbers.
BASIC_QOS = b'\x00\x3c\x00\x0a'


@pytest.fixture
def two_nodes(rabbitmq: RabbitMq) -> Iterator[tuple[Proxy, Proxy, Callable[[str], str]]]:
    """Two ways to a broker, of which the second one refuses connections, and a service there, which has been called."""
    first, second = Proxy(rabbitmq.port), Proxy(free_port())
    with contextlib.ExitStack() as end:
        end.callback(first.stop)
        end.callback(second.stop)
        client = end.enter_context(serving(
            f'rabbit://guest:guest@127.0.0.1:{first.port},guest:guest@127.0.0.1:{second.port}/'
            '?heartbeat_timeout_threshold=2'))
        wait_for_answer(client)
        yield first, second, client


def test_all_connections_leave_a_node_that_is_silent(
        rabbitmq: RabbitMq, two_nodes: tuple[Proxy, Proxy, Callable[[str], str]]) -> None:
    """Idle ones too: the next call is not to wait for that."""
    silent, other, client = two_nodes
    silent.hold()
    other.move(rabbitmq.port)
    wait_until(lambda: not any(each.raddr and each.raddr.port == silent.port and each.status == 'ESTABLISHED'
                               for each in psutil.Process().net_connections('tcp')), 'all have left', 60)
    wait_for_answer(client)


def test_messages_go_to_another_node_after_some_that_could_not_be_sent(rabbitmq: RabbitMq) -> None:
    """No other thread has a part in that, such as one for heartbeats."""
    with contextlib.ExitStack() as end:
        silent = end.enter_context(socket.create_server(('127.0.0.1', 0))).getsockname()[1]
        other = Proxy(free_port())
        end.callback(other.stop)
        caller = end.enter_context(closing_messaging(
            f'rabbit://guest:guest@127.0.0.1:{silent},guest:guest@127.0.0.1:{other.port}/'
            '?heartbeat_timeout_threshold=0&kombu_failover_strategy=round-robin'))

        def is_sent() -> bool:
            try:
                caller.cast(TOPIC, Context(), 'export_zone', domain_id='d')
            except ServiceUnavailable:
                return False
            return True

        other.move(rabbitmq.port)
        wait_until(is_sent, 'it is connected', 60)
        other.move(free_port())
        other.cut()
        for _ in range(4):
            assert not is_sent()
        other.move(rabbitmq.port)
        wait_until(is_sent, 'a message is sent', 60)


def test_a_node_that_falls_silent_after_a_login_is_left(
        rabbitmq: RabbitMq, two_nodes: tuple[Proxy, Proxy, Callable[[str], str]]) -> None:
    silent, other, client = two_nodes
    asked = len(silent.asked)
    silent.hold(BASIC_QOS)
    silent.cut()
    wait_until(lambda: BASIC_QOS in silent.asked[asked:], 'a consumer has come back')
    other.move(rabbitmq.port)
    wait_for_answer(client)


class Hearing:
    """An endpoint."""

    def __init__(self) -> None:
        self.heard: list[int] = []

    def hear(self, context: Context, number: int) -> None:
        self.heard.append(number)


@pytest.fixture
def processes(rabbitmq: RabbitMq) -> Iterator[Callable[[str], Messaging]]:
    """Starts what stands for a process at the broker."""
    cfg.CONF([], project='test')
    with contextlib.ExitStack() as end:
        def start(name: str) -> Messaging:
            caller = Messaging(cfg.CONF, name, call_timeout=3.0, transport_url=rabbitmq.url)
            end.callback(caller.stop)
            return caller

        yield start


def test_a_cast_to_all_comes_to_every_process_that_serves_the_topic(processes: Callable[[str], Messaging]) -> None:
    topic, endpoints = f'minidns.{new_id()}', [Hearing(), Hearing()]
    for number, endpoint in enumerate(endpoints):
        caller = processes(f'{number}')
        caller.serve(topic, Hearing, endpoint)
    caller.cast(topic, Context(), 'hear', to_all=True, number=1)
    wait_until(lambda: all(each.heard for each in endpoints), 'both have heard')
    caller.cast(topic, Context(), 'hear', number=2)
    wait_until(lambda: sum(len(each.heard) for each in endpoints) == 3, 'one has heard')
    assert sorted(number for each in endpoints for number in each.heard) == [1, 1, 2]


def test_a_process_answers_no_check_of_another_one_on_its_host(processes: Callable[[str], Messaging]) -> None:
    topic = f'central.{new_id()}'
    callers = [processes('host'), processes('host')]

    def answers(caller: Messaging) -> bool:
        try:
            return caller.ping(topic) is None
        except ServiceUnavailable:
            return False

    for caller in callers:
        caller.serve(topic, Hearing, Hearing())
    wait_until(lambda: all(map(answers, callers)), 'each answers itself')
    callers[0].stop_serving()
    assert [answers(caller) for caller in callers] == [False, True]


def cast_numbers(caller: Messaging, topic: str, numbers: Iterable[int]) -> None:
    for number in numbers:
        caller.cast(topic, Context(), 'hear', number=number)


@pytest.mark.parametrize('ranks', [(0, 0), (1, 0)])
def test_of_processes_with_a_rank_one_gets_all_and_the_next_one_when_it_has_ended(
        processes: Callable[[str], Messaging], ranks: tuple[int, int]) -> None:
    topic, endpoints = f'pool_manager.{new_id()}', [Hearing(), Hearing()]
    callers = [processes('first'), processes('second')]
    for caller, endpoint, rank in zip(callers, endpoints, ranks):
        caller.serve(topic, Hearing, endpoint, rank)
        served_at = int(4 * time.time())
        wait_until(lambda: int(4 * time.time()) > served_at, 'the next begins later')
    client = processes('client')
    cast_numbers(client, topic, range(20))
    wait_until(lambda: sum(len(each.heard) for each in endpoints) == 20, 'all are heard')
    one, other = sorted((0, 1), key=lambda number: -len(endpoints[number].heard))
    assert (len(endpoints[one].heard), endpoints[other].heard) == (20, [])
    assert one == ranks.index(0), 'the lowest rank, and then the one that has served longest'
    callers[one].stop_serving()
    cast_numbers(client, topic, range(20, 40))
    wait_until(lambda: len(endpoints[other].heard) == 20, 'the other hears the rest')
    callers[one].serve(topic, Hearing, endpoints[one], 0)
    callers[other].stop_serving()
    cast_numbers(client, topic, range(40, 60))
    wait_until(lambda: len(endpoints[one].heard) == 40, 'the first is back')


def test_a_host_that_is_called_as_a_pool_gets_nothing_of_it(processes: Callable[[str], Messaging]) -> None:
    shared, pool, ours, other = f'minidns{new_id()}', 'fra1', Hearing(), Hearing()
    processes('ours').serve(f'{shared}.{pool}', Hearing, ours, 0)
    processes(pool).serve(shared, Hearing, other)
    cast_numbers(processes('client'), f'{shared}.{pool}', range(20))
    wait_until(lambda: len(ours.heard) + len(other.heard) == 20, 'all are heard')
    assert (len(ours.heard), other.heard) == (20, [])


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
    lost, spare = 6, 3
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
