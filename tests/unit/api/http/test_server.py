"""The HTTP server begins, ends and begins again."""

from __future__ import annotations

import pytest
import requests

from designate_pool.api.http.server import ApiServer
from designate_pool.model import Endpoint
from designate_pool.settings import ApiSettings


def nothing(environ, start_response):
    start_response('204 No Content', [])
    return []


@pytest.mark.parametrize('host', ['127.0.0.1', '::1'])
def test_start_stop_and_start_again(host):
    server = ApiServer(nothing, Endpoint(host, 0), ApiSettings(threads=2, waits=0))
    for _ in range(2):
        server.start()
        assert requests.get(f'http://{server.endpoint}/').status_code == 204
        taken = server.endpoint
        server.stop()
        with pytest.raises(requests.ConnectionError):
            requests.get(f'http://{taken}/', timeout=2)
    server.stop()
