"""The clients of the pool's API, before a session that answers as the API does."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from designate_pool.cli.client import Client
from designate_pool.cli.connection import CliError
from designate_pool.planner.providers.pool_api import PoolApi

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
