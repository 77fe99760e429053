"""The control socket, and faults as text and as what is counted."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

import designate_pool
from designate_pool.errors import BackendRefused, InvalidField
from designate_pool.model import Endpoint
from designate_pool.nameserver.faults import Fault, Faults
from designate_pool.nameserver.server import NameServer
from testing.processes import wait_until
from tests.fixtures.nameservers import ControlClient, Primary, zone_text

NAME = 'example.com.'
LOOPBACK = Endpoint('127.0.0.1', 0)


@pytest.fixture
def server(name_server: Callable[..., NameServer]) -> NameServer:
    return name_server(control=LOOPBACK, secret='the secret')


@pytest.fixture
def client(server: NameServer) -> ControlClient:
    assert server.control_endpoint is not None
    return ControlClient(server.control_endpoint, 'the secret')


def test_the_life_of_a_zone(client: ControlClient, primary: Primary) -> None:
    primary.publish(NAME, zone_text(8))
    primaries = [{'host': primary.host, 'port': primary.port}]
    assert client.ask('add_zone', name=NAME, primaries=primaries)
    assert not client.ask('add_zone', name=NAME, primaries=primaries)
    wait_until(lambda: client.ask('list_zones') == [
        {'name': NAME, 'serial': 8, 'primaries': [str(primary.endpoint)], 'error': None}], 'the zone is listed')
    assert client.ask('delete_zone', name=NAME)
    assert not client.ask('delete_zone', name=NAME)
    assert client.ask('list_zones') == []


def test_faults(server: NameServer, client: ControlClient) -> None:
    client.ask('set_fault', fault='delay=0.5@Example.com')
    assert server.faults.take('delay', NAME) == Fault('delay', seconds=0.5, zone=NAME)
    client.ask('clear_faults')
    assert server.faults.take('delay', NAME) is None


def test_ping(client: ControlClient) -> None:
    assert client.ask('ping') == designate_pool.__version__


@pytest.mark.parametrize('verb, arguments, said', [
    ('sulk', {}, "verb: there is no 'sulk'"),
    ('add_zone', {}, 'name: it must be a text'),
    ('add_zone', {'name': NAME}, 'primaries: it must be a list'),
    ('add_zone', {'name': NAME, 'primaries': []}, 'primaries: a zone needs at least one'),
    ('add_zone', {'name': NAME, 'primaries': [{'host': 'ns1', 'port': 53}]}, 'primaries: it must be a list'),
    ('add_zone', {'name': 'a..b', 'primaries': [{'host': '192.0.2.1', 'port': 53}]}, 'name: '),
    ('add_zone', {'name': NAME, 'primaries': [{'host': '192.0.2.1', 'port': 53}],
                  'key': {'name': 'k', 'algorithm': 'hmac-sha256', 'secret': '!'}}, 'key: '),
    ('set_fault', {'fault': 'delay=long'}, 'fault: '),
    ('set_fault', {'fault': 'drop*0'}, 'count: it is at least 1'),
    ('set_fault', {'fault': [None]}, 'fault: it must be a text'),
])
def test_requests_that_make_no_sense(client: ControlClient, verb: str, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(BackendRefused) as caught:
        client.ask(verb, **arguments)
    assert said in str(caught.value)
    assert client.ask('ping')


def test_a_wrong_secret(server: NameServer) -> None:
    assert server.control_endpoint is not None
    with pytest.raises(BackendRefused, match='the secret is wrong'):
        ControlClient(server.control_endpoint, 'another').ask('ping')


@pytest.mark.parametrize('lines', [b'\n', b'[]\n', b'{\n', b'{}\n', b'\xff\xff\n', b'null\n', b'[' * 60000 + b'\n',
                                   b'{"secret": 5}\n', b'{"secret": "\\ud800"}\n', b'{"secret": "the secret"}\n',
                                   b'x' * 70000])
def test_lines_that_are_no_request_are_answered(server: NameServer, lines: bytes) -> None:
    assert server.control_endpoint is not None
    with socket.create_connection((server.control_endpoint.host, server.control_endpoint.port), 5) as connection:
        connection.sendall(lines)
        with connection.makefile('rb') as stream:
            assert json.loads(stream.readline())['ok'] is False


@given(st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                        st.sampled_from(['name', 'primaries', 'key', 'fault', 'host', 'port']), inner, max_size=5),
                    max_leaves=12),
       st.sampled_from(['add_zone', 'delete_zone', 'refetch', 'set_fault']))
def test_whatever_the_arguments_are(arguments: Any, verb: str) -> None:
    control = NameServer(LOOPBACK, LOOPBACK, 'the secret')._control
    assert control is not None
    request = arguments if isinstance(arguments, dict) else {'name': arguments}
    answer = control._handle(json.dumps(request | {'secret': 'the secret', 'verb': verb}).encode())
    assert answer['ok'] or answer['kind'] == 'request', answer


def test_loopback_only_and_never_without_a_secret() -> None:
    with pytest.raises(InvalidField, match='192.0.2.1 is not a loopback address'):
        NameServer(LOOPBACK, Endpoint('192.0.2.1', 0), 'the secret').start()
    with pytest.raises(InvalidField, match='the control socket needs one'):
        NameServer(LOOPBACK, LOOPBACK)


@pytest.mark.parametrize('text, fault', [
    ('drop', Fault('drop')),
    ('delay=2.5', Fault('delay', seconds=2.5)),
    ('servfail*3', Fault('servfail', count=3)),
    ('refused@Example.com', Fault('refused', zone='example.com.')),
    ('delay=0.1*2@example.com.', Fault('delay', 0.1, 2, 'example.com.')),
])
def test_texts(text: str, fault: Fault) -> None:
    assert Fault.parse(text) == fault


@pytest.mark.parametrize('text', ['', 'sulk', 'delay=', 'delay=1.2.3', 'drop*0', 'drop*x', 'delay=99999', 'drop@',
                                  '=3'])
def test_texts_that_are_no_fault(text: str) -> None:
    with pytest.raises(InvalidField):
        Fault.parse(text)


def test_the_zones_own_goes_first() -> None:
    faults = Faults()
    faults.set(Fault('delay', 1))
    faults.set(Fault('delay', 2, zone='example.com.'))
    assert faults.take('delay', 'example.com.') == Fault('delay', 2, zone='example.com.')
    assert faults.take('delay', 'example.net.') == Fault('delay', 1)
    assert faults.take('drop', 'example.com.') is None


def test_counted_ones_run_out() -> None:
    faults = Faults()
    faults.set(Fault('drop', count=2))
    assert [faults.take('drop', 'example.com.') is not None for _ in range(4)] == [True, True, False, False]
