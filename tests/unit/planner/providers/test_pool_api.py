"""The clients of the pool's API: what they make of its answers, and that they come again later when told to."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from designate_pool.cli.client import Client
from designate_pool.cli.connection import CliError
from designate_pool.planner.providers.pool_api import PoolApi, new_session

GOING, LIVING = {'id': '1', 'name': 'a.example.', 'action': 'DELETE'}, {'id': '2', 'name': 'a.example.',
                                                                        'action': 'CREATE'}
OTHER = {'id': '3', 'name': 'b.a.example.', 'action': 'NONE'}


class Session(requests.Session):
    """Answers every request with a list of these zones."""

    def __init__(self, *zones: dict[str, str]) -> None:
        super().__init__()
        self._zones = list(zones)

    def request(self, method: str, url: str, **options: Any) -> requests.Response:  # type: ignore[override]
        answer = requests.Response()
        answer.status_code = 200
        answer.json = lambda **kwargs: {'zones': self._zones, 'links': {}}  # type: ignore[method-assign]
        return answer


@pytest.mark.parametrize(('zones', 'found'), [
    ((), None), ((OTHER,), None), ((LIVING,), LIVING), ((GOING,), GOING),
    ((GOING, LIVING), LIVING), ((LIVING, GOING), LIVING), ((OTHER, GOING, LIVING), LIVING)],
    ids=['none', 'another', 'one', 'going', 'again', 'again-first', 'again-and-another'])
def test_a_name_is_the_zone_that_lives(zones: tuple[dict[str, str], ...], found: dict[str, str] | None) -> None:
    assert PoolApi('http://127.0.0.1', token='', session=Session(*zones)).zone('a.example.') == found


def test_for_the_command_too(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client('http://127.0.0.1')
    monkeypatch.setattr(client, '_session', Session(OTHER, GOING, LIVING))
    assert client.zone('a.example') == LIVING
    monkeypatch.setattr(client, '_session', Session(OTHER))
    with pytest.raises(CliError, match=r'There is no zone a\.example\.'):
        client.zone('a.example')


class Busy(http.server.BaseHTTPRequestHandler):
    """Refuses the first two requests."""

    bodies: list[bytes] = []

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers['Content-Length'])))
        self.send_response(429 if len(self.bodies) < 3 else 202)
        self.send_header('Retry-After', '0')
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    Busy.bodies = []
    with http.server.HTTPServer(('127.0.0.1', 0), Busy) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f'http://127.0.0.1:{server.server_port}'
        server.shutdown()
        thread.join()


def test_too_many_requests_are_made_again(url: str) -> None:
    assert new_session(url).post(f'{url}/v2/zones', json={'name': 'example.com.'}, timeout=30).status_code == 202
    assert Busy.bodies == [b'{"name": "example.com."}'] * 3
