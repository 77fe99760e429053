"""The HTTP server begins, ends and begins again."""

from __future__ import annotations

import socket

import pytest
import requests

from designate_pool.api.http.server import ApiServer
from designate_pool.model import Endpoint


def nothing(environ, start_response):
    start_response('204 No Content', [])
    return []


def test_start_stop_and_start_again():
    server = ApiServer(nothing, Endpoint('127.0.0.1', 0))
    for _ in range(2):
        server.start()
        assert requests.get(f'http://{server.endpoint}/').status_code == 204
        taken = server.endpoint
        server.stop()
        with pytest.raises(requests.ConnectionError):
            requests.get(f'http://{taken}/', timeout=2)
    server.stop()


def test_a_port_that_is_taken():
    with socket.create_server(('127.0.0.1', 0)) as other:
        with pytest.raises(OSError):
            ApiServer(nothing, Endpoint('127.0.0.1', other.getsockname()[1])).start()


def test_ipv6():
    server = ApiServer(nothing, Endpoint('::1', 0))
    server.start()
    assert requests.get(f'http://{server.endpoint}/').status_code == 204
    server.stop()
