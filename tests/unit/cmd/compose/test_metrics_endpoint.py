"""``GET /metrics``: each address once."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest
import requests

from designate_pool.cmd.compose.program import MetricsEndpoint
from designate_pool.model import Endpoint
from testing.processes import free_port


@pytest.fixture
def exposition() -> Iterator[MetricsEndpoint]:
    found = MetricsEndpoint([Endpoint('127.0.0.1', free_port())] * 2)
    yield found
    found.stop()


def ask(exposition: MetricsEndpoint, path: str = '/metrics', **options: object) -> requests.Response:
    url = f'http://{exposition.endpoints[0]}{path}'
    return requests.get(url, timeout=30, **options)  # type: ignore[arg-type]


def test_an_address_that_is_named_twice_is_served_once(exposition: MetricsEndpoint) -> None:
    assert len(exposition.endpoints) == 1
    answer = ask(exposition)
    assert (answer.status_code, answer.headers['Content-Type'].partition(';')[0]) == (200, 'text/plain')
    assert 'designate_pool_build_info{' in answer.text


@pytest.mark.parametrize('path', ['/', '/metrics/', '/other'])
def test_there_is_nothing_else(exposition: MetricsEndpoint, path: str) -> None:
    answer = ask(exposition, path)
    assert (answer.status_code, answer.text) == (404, 'there is only /metrics here\n')


def test_openmetrics_where_it_is_asked_for(exposition: MetricsEndpoint) -> None:
    answer = ask(exposition, headers={'Accept': 'application/openmetrics-text; version=1.0.0'})
    assert answer.headers['Content-Type'].startswith('application/openmetrics-text')
    assert answer.text.endswith('# EOF\n')


def test_clients_that_say_nothing_delay_no_scrape(exposition: MetricsEndpoint) -> None:
    address = exposition.endpoints[0].host, exposition.endpoints[0].port
    with contextlib.ExitStack() as silent:
        for _ in range(30):
            silent.enter_context(socket.create_connection(address))
        began = time.monotonic()
        assert ask(exposition).status_code == 200
        assert time.monotonic() - began < 5


def test_an_address_that_is_taken_is_told() -> None:
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f'metrics cannot be served at 127.0.0.1:{port}: Address already in use'):
            MetricsEndpoint([Endpoint('127.0.0.1', port)])


def test_no_address_is_no_server() -> None:
    MetricsEndpoint([]).stop()
