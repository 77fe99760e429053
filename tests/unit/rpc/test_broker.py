"""RPC over oslo.messaging, on its in-memory broker."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import inspect
import logging
from collections.abc import Iterator
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg
from oslo_messaging._drivers import amqpdriver
from oslo_messaging.rpc import dispatcher

from designate_pool.central.service import Central
from designate_pool.errors import DomainNotFound, InvalidField, ServiceFailed, ServiceUnavailable
from designate_pool.minidns.service import MiniDns
from designate_pool.model import Action, Context, Outcome, Report
from designate_pool.pool_manager.service import PoolManager
from designate_pool.rpc.broker import LOOK_FOR_ACKNOWLEDGEMENTS, Messaging
from designate_pool.rpc.central import TOPIC, CentralClient
from designate_pool.rpc.direct import Direct
from designate_pool.rpc.minidns import MiniDnsClient
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.runtime import Threads
from testing.inline import Inline
from testing.processes import free_port, patience, wait_until

CONTEXT = Context(request_id='req-1', project_id='p1', may_use_blacklisted=True)
REPORT = Report('d' * 32, Action.UPDATE, 4, Outcome.SUCCESS, 9)


def test_oslo_messaging_still_has_the_pause_that_is_replaced() -> None:
    assert amqpdriver.ACK_REQUEUE_EVERY_SECONDS_MIN == LOOK_FOR_ACKNOWLEDGEMENTS
    for waiting in (amqpdriver.AMQPListener, amqpdriver.ReplyWaiter):
        assert '= ACK_REQUEUE_EVERY_SECONDS_MIN' in inspect.getsource(waiting)


ENDS: dict[str, tuple[type, type]] = {
    'central': (CentralClient, Central), 'pool_manager.gold': (PoolManagerClient, PoolManager),
    'minidns.gold': (MiniDnsClient, MiniDns)}


class Endpoint:
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def get_domain(self, context: Context, domain_id: str) -> Any:
        if domain_id == 'odd':
            raise RuntimeError('a surprise')
        raise DomainNotFound(domain=domain_id)

    def update_statuses(self, context: Context, reports: list[Report]) -> None:
        self.heard.append((context, reports))


@pytest.fixture
def messaging() -> Iterator[Messaging]:
    conf = cfg.CONF
    conf([], project='test')
    caller = Messaging(conf, 'test', call_timeout=60.0, transport_url='kombu+memory://')
    yield caller
    caller.stop()


@pytest.fixture
def endpoint(messaging: Messaging) -> Endpoint:
    served = Endpoint()
    messaging.serve(TOPIC, Endpoint, served)
    return served


def test_values_and_context_arrive_as_they_were_sent(messaging: Messaging, endpoint: Endpoint) -> None:
    CentralClient(messaging).update_statuses(CONTEXT, [REPORT])
    ((context, reports),) = endpoint.heard
    assert (dataclasses.replace(context, operation_id=''), reports) == (CONTEXT, [REPORT])
    CentralClient(messaging).update_statuses(CONTEXT, [REPORT])
    assert '' != context.operation_id != endpoint.heard[1][0].operation_id


def test_an_error_comes_back_as_its_own_class(messaging: Messaging, endpoint: Endpoint) -> None:
    with pytest.raises(DomainNotFound) as caught:
        CentralClient(messaging).get_domain(CONTEXT, 'x')
    assert caught.value.kwargs == {'domain': 'x'} and str(caught.value) == 'There is no zone x.'


def test_a_cast_arrives(messaging: Messaging, endpoint: Endpoint) -> None:
    messaging.cast(TOPIC, CONTEXT, 'update_statuses', reports=[REPORT])
    wait_until(lambda: endpoint.heard, 'the cast arrives')


def test_no_thread_that_waits_for_calls_wakes_without_one(messaging: Messaging, endpoint: Endpoint) -> None:
    CentralClient(messaging).update_statuses(CONTEXT, [REPORT])
    executor, = {server._work_executor for _, server in messaging._servers}
    assert isinstance(executor, concurrent.futures.ThreadPoolExecutor), 'a thread of futurist wakes every second'
    wait_until(lambda: executor._threads, 'oslo.messaging uses it')  # a thread is listed after it has started


def test_a_method_or_argument_that_does_not_exist_is_an_error_that_names_it(messaging: Messaging,
                                                                            endpoint: Endpoint) -> None:
    with pytest.raises(InvalidField, match='steal'):
        messaging.call(TOPIC, CONTEXT, 'steal')
    with pytest.raises(InvalidField, match="^get_domain: missing a required argument: 'domain_id'.$"):
        messaging.call(TOPIC, CONTEXT, 'get_domain', domain_name='x')


def test_a_surprise_on_the_other_side_is_told_without_its_stack(messaging: Messaging, endpoint: Endpoint) -> None:
    with pytest.raises(ServiceFailed) as caught:
        messaging.call(TOPIC, CONTEXT, 'get_domain', domain_id='odd')
    assert str(caught.value) == 'central failed in get_domain (RuntimeError); its log says more.'


def test_a_message_takes_no_thread_of_its_own(messaging: Messaging, endpoint: Endpoint,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, 'threading', None)
    CentralClient(messaging).update_statuses(CONTEXT, [REPORT])
    assert endpoint.heard


@pytest.mark.parametrize('name', ['_endpoint', '__init__', 'heard'])
def test_what_is_not_for_callers_cannot_be_called(messaging: Messaging, endpoint: Endpoint, name: str) -> None:
    with pytest.raises(InvalidField, match=f'there is no method {name}'):
        messaging.call(TOPIC, CONTEXT, name)


@pytest.mark.parametrize('topic', ENDS)
def test_of_a_service_only_the_methods_of_its_contract_can_be_called(messaging: Messaging, topic: str) -> None:
    contract, service = ENDS[topic]
    hidden = [name for name in dir(service) if not name.startswith('_') and name not in dir(contract)]
    direct = Direct(Inline().workers(1, 'casts'))
    for caller in (messaging, direct):
        caller.serve(topic, contract, service)
    assert {'start', 'stop'} <= set(hidden)
    for name in hidden:
        for caller in (messaging, direct):
            with pytest.raises(InvalidField, match=f'there is no method {name}'):
                caller.call(topic, CONTEXT, name)


@pytest.fixture
def connection(messaging: Messaging) -> Iterator[Any]:
    with messaging._transport._driver._get_connection() as found:
        yield found.connection


def test_what_fails_with_the_connection_is_done_again(connection: Any) -> None:
    tries: list[Any] = []

    def send() -> None:
        tries.append(connection.channel)
        if len(tries) == 1:
            raise connection.connection.recoverable_connection_errors[0]

    heard: list[Exception] = []
    connection.ensure(send, retry=1, recoverable_error_callback=heard.append)
    assert (len(heard), len(set(tries))) == (1, 2), 'on another channel'


def test_what_fails_otherwise_is_told_once(connection: Any) -> None:
    tries: list[int] = []

    def send() -> None:
        tries.append(1)
        raise oslo_messaging.MessageUndeliverable('none', 'exchange', 'key', 'message')

    with pytest.raises(oslo_messaging.MessageUndeliverable):
        connection.ensure(send, retry=1)
    assert tries == [1]


def test_nobody_there_is_an_error_that_names_the_service(messaging: Messaging) -> None:
    with pytest.raises(ServiceUnavailable, match='nowhere'):
        messaging.call('nowhere', CONTEXT, 'get_domain', patience=0.2, domain_id='x')


def test_the_first_call_fails_while_the_broker_is_down() -> None:
    cfg.CONF([], project='test')
    caller = Messaging(cfg.CONF, 'test', call_timeout=1.0, transport_url=f'rabbit://127.0.0.1:{free_port()}/')
    calls = concurrent.futures.ThreadPoolExecutor(2)
    for call in [calls.submit(CentralClient(caller).get_domain, CONTEXT, 'x') for _ in range(2)]:
        assert isinstance(call.exception(patience(20)), ServiceUnavailable)
    calls.shutdown()
    caller.stop()


class DirectEndpoint:
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def hear(self, context: Context, what: Any) -> Any:
        if what == 'bad':
            raise DomainNotFound(domain='x')
        if what == 'worse':
            raise RuntimeError('a surprise')
        self.heard.append(what)
        return what


def test_a_call_returns_and_raises_like_a_function() -> None:
    caller = Direct(Inline().workers(1, 'casts'))
    caller.serve('topic', DirectEndpoint, DirectEndpoint())
    assert caller.call('topic', Context(), 'hear', what=7) == 7
    with pytest.raises(DomainNotFound):
        caller.call('topic', Context(), 'hear', what='bad')


def test_casts_are_carried_out_and_their_errors_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caller, endpoint = Direct(Threads().workers(2, 'casts')), DirectEndpoint()
    caller.serve('topic', DirectEndpoint, endpoint)
    with caplog.at_level(logging.WARNING):
        for what in ('bad', 'worse', 'good'):
            caller.cast('topic', Context(), 'hear', what=what)
        wait_until(lambda: endpoint.heard == ['good'] and len(caplog.records) == 2, 'all three are carried out')
    caller.stop()


def test_stopping_finishes_what_was_cast() -> None:
    caller, endpoint = Direct(Threads().workers(1, 'casts')), DirectEndpoint()
    caller.serve('topic', DirectEndpoint, endpoint)
    for number in range(100):
        caller.cast('topic', Context(), 'hear', what=number)
    caller.stop()
    assert endpoint.heard == list(range(100))


def test_a_topic_that_nobody_serves_is_named() -> None:
    with pytest.raises(ServiceUnavailable, match='minidns'):
        Direct(Inline().workers(1, 'casts')).call('minidns', Context(), 'hear', what=1)


def test_each_call_is_an_operation_of_its_own() -> None:
    class Naming:
        def name(self, context: Context) -> str:
            return context.operation_id

    caller = Direct(Inline().workers(1, 'casts'))
    caller.serve('central', Naming, Naming())
    context = Context(operation_id='same')
    assert len({caller.call('central', context, 'name') for _ in range(3)} - {'', 'same'}) == 3
