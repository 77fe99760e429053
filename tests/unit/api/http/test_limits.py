"""The HTTP server begins and ends, and executes so many requests of a client at once."""

from __future__ import annotations

import concurrent.futures

import pytest
import requests

from designate_pool.api.http.limits import PLACE, RequestLimits, network_of
from designate_pool.api.http.server import ApiServer
from designate_pool.model import Endpoint
from designate_pool.settings import ApiSettings
from testing.processes import wait_until


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


class Caller:
    """Calls the application of :class:`RequestLimits`, which calls *during* with the place of each request."""

    def __init__(self, total: int, per_client: int, during=lambda place: None) -> None:
        self._during = during
        self.limits = RequestLimits(self._app, ApiSettings(threads=total, threads_per_client=per_client))

    def _app(self, environ, start_response):
        self._during(environ[PLACE])
        start_response('200 OK', [])
        return [b'done']

    def call(self, address='192.0.2.1'):
        answer = []
        body = b''.join(self.limits({'REMOTE_ADDR': address}, lambda *arguments: answer.extend(arguments)))
        return answer[0], dict(answer[1]), body


def test_more_than_the_total_wait_and_who_has_left_makes_room() -> None:
    def during(place):
        if not waiting:
            waiting.append(threads.submit(caller.call, '192.0.2.2'))
            wait_until(lambda: len(caller.limits.counts) == 2, 'the second waits')
            assert not waiting[0].done()
            place.assign_to(None)
            assert waiting[0].result(10)[0] == '200 OK'

    waiting: list[concurrent.futures.Future] = []
    caller = Caller(1, 1, during)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        assert caller.call()[0] == '200 OK'
    assert caller.call()[0] == '200 OK' and not caller.limits.counts


def test_who_has_too_many_is_told_when_to_come_again() -> None:
    refused: list[tuple[str, dict[str, str], bytes]] = []
    caller = Caller(2, 1, lambda place: refused.append(caller.call()))
    assert caller.call()[0] == '200 OK'
    ((status, headers, body),) = refused
    assert (status, headers['Retry-After']) == ('429 Too Many Requests', '1') and b'over_limit' in body


def test_an_error_of_the_application_gives_the_place_back() -> None:
    def during(place):
        raise ZeroDivisionError

    caller = Caller(1, 1, during)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            caller.call()


@pytest.mark.parametrize('address, network', [
    ('192.0.2.1', '192.0.2.1'), ('::ffff:192.0.2.1', '192.0.2.1'), ('2001:db8::1:2', '2001:db8::/64'),
    ('fe80::1%eth0', 'fe80::/64'), ('localhost', 'localhost'), ('', '')])
def test_an_address_of_a_network_is_all_of_it(address: str, network: str) -> None:
    assert network_of(address) == network
