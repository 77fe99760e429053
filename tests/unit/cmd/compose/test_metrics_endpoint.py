"""``GET /metrics``: each address once, and a few clients at a time."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import requests

from designate_pool.cmd.compose.metrics_endpoint import CLIENTS, MetricsEndpoint
from designate_pool.model import Endpoint
from testing.processes import free_port, wait_until


@pytest.fixture
def exposition() -> Iterator[MetricsEndpoint]:
    found = MetricsEndpoint([Endpoint('127.0.0.1', free_port())] * 2)
    yield found
    found.stop()


def ask(exposition: MetricsEndpoint, path: str = '/metrics', **options: object) -> requests.Response:
    url = f'http://127.0.0.1:{exposition.ports[0]}{path}'
    return requests.get(url, timeout=30, **options)  # type: ignore[arg-type]


def test_an_address_that_is_named_twice_is_served_once(exposition: MetricsEndpoint) -> None:
    assert len(exposition.ports) == 1
    answer = ask(exposition)
    assert (answer.status_code, answer.headers['Content-Type'].partition(';')[0]) == (200, 'text/plain')
    assert 'designate_pool_build_info{' in answer.text


def test_openmetrics_where_it_is_asked_for(exposition: MetricsEndpoint) -> None:
    answer = ask(exposition, headers={'Accept': 'application/openmetrics-text; version=1.0.0'})
    assert answer.headers['Content-Type'].startswith('application/openmetrics-text')
    assert answer.text.endswith('# EOF\n')


def test_there_is_nothing_else(exposition: MetricsEndpoint) -> None:
    assert ask(exposition, '/').status_code == 404
    assert requests.post(f'http://127.0.0.1:{exposition.ports[0]}/metrics', timeout=30).status_code == 501


def test_clients_that_say_nothing_take_a_few_places_and_give_them_back(exposition: MetricsEndpoint) -> None:
    silent = [socket.create_connection(('127.0.0.1', exposition.ports[0])) for _ in range(CLIENTS)]
    with socket.create_connection(('127.0.0.1', exposition.ports[0]), timeout=30) as late:
        assert late.recv(1) == b''
    for each in silent:
        each.close()

    def served() -> bool:
        return ask(exposition).status_code == 200  # a ConnectionError is an OSError: not yet

    assert wait_until(served, 'there is room again')


def test_an_address_that_is_taken_is_told() -> None:
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f'metrics cannot be served at 127.0.0.1:{port}: Address already in use'):
            MetricsEndpoint([Endpoint('127.0.0.1', port)])


def test_no_address_is_no_server() -> None:
    MetricsEndpoint([]).stop()
