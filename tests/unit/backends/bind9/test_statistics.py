"""The zones in what BIND's statistics channel says, without a server."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool.backends.bind9 import statistics
from designate_pool.errors import BackendError, InvalidField


def zone(name: str, serial: int | None = 1, kind: str = 'secondary', rdclass: str = 'IN') -> dict[str, object]:
    known = {} if serial is None else {'serial': serial}
    return {'name': name, 'class': rdclass, **known, 'type': kind, 'loaded': '2026-01-01T00:00:00Z'}


ANSWER = json.dumps({
    'json-stats-version': '1.7', 'version': 'a "{[ strange" one', 'number': 12, 'more': {'a': [1, {}]},
    'views': {
        'other': {'zones': [zone('example.com', 5)]},
        'inside': {'zones': [
            zone('EXAMPLE.com', 4294967295), zone('empty.example', None), zone('own.example', 3, 'primary'),
            zone('10.IN-ADDR.ARPA', 0, 'builtin'), zone('version.bind', 0, 'secondary', 'CH'),
            zone('old.example', 2, 'slave'), zone('a\\"\\ {}\\;b.example', 7),
            zone('.', 8) | {'rcodes': {'NOERROR': [1]}}], 'more': []},
        'none': {}}}, indent=1)
ZONES = {'example.com.': 4294967295, 'empty.example.': None, 'old.example.': 2, 'a\\"\\032{}\\;b.example.': 7, '.': 8}


def read(text: str, view: str, size: int) -> dict[str, int | None]:
    pieces = (text[start:start + size] for start in range(0, len(text), size))
    return dict(statistics._zones(statistics._Json(pieces), view))


@given(st.integers(1, 400))
def test_zones_of_the_view_however_the_answer_is_cut(size: int) -> None:
    assert read(ANSWER, 'inside', size) == ZONES
    assert read(ANSWER, 'other', size) == {'example.com.': 5}
    assert read(ANSWER, 'none', size) == {}


def test_a_view_that_is_not_there() -> None:
    with pytest.raises(BackendError, match="no view 'outside', but has other, inside, none"):
        read(ANSWER, 'outside', 100)


@given(st.integers(0, len(ANSWER) - 1))
def test_an_answer_that_is_cut_short_is_no_answer(length: int) -> None:
    with pytest.raises(ValueError, match='cut short'):
        read(ANSWER[:length], 'inside', 64)


@given(st.integers(0, len(ANSWER) - 1), st.sampled_from('{}[],:"x'))
def test_a_wrong_character_is_a_value_error_or_harmless(where: int, character: str) -> None:
    try:
        read(ANSWER[:where] + character + ANSWER[where + 1:], 'inside', 64)
    except (ValueError, BackendError):
        pass


@pytest.mark.parametrize('text', ['[]', '{"views": []}', '{"views": {"inside": {"zones": {}}}}',
                                  '{"views": {"inside": {"zones": [1]}}}', '{"views": {"inside": {"zones": [{}]}}}',
                                  json.dumps({'views': {'inside': {'zones': [zone('a..b')]}}})])
def test_another_shape_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        read(text + ' ', 'inside', 64)


def test_a_value_without_an_end_is_not_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, 'LARGEST_VALUE', 1000)
    with pytest.raises(ValueError, match='a value of more than'):
        read('{"' + 'a' * 5000, 'inside', 64)


@pytest.mark.parametrize('url', ['https://192.0.2.53:8053', '192.0.2.53:8053', 'http://', 'http://192.0.2.53:x',
                                 'http://[::1', 'http://192.0.2.53/a b', 'http://192.0.2.53/?a', 'file:///etc/passwd'])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(InvalidField, match='statistics_url'):
        statistics.StatisticsChannel(url)
