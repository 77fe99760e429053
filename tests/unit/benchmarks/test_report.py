from __future__ import annotations

import json
import pathlib

import pytest

from benchmarks.measure import percentile
from benchmarks.report import Report


def test_the_json_has_every_figure_with_its_ratio(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = Report('example', {'domains': 3})
    report.add('create', 6.0, 's', 2.0, 'the limit')
    report.add('idle', 0.0, 's')
    report.details['more'] = [1]
    report.finish(tmp_path / 'report.json')
    written = json.loads((tmp_path / 'report.json').read_text())
    assert written['figures'] == [
        {'name': 'create', 'ours': 6.0, 'other': 2.0, 'other_name': 'the limit', 'ratio': 3.0, 'unit': 's'},
        {'name': 'idle', 'ours': 0.0, 'other': None, 'other_name': None, 'ratio': None, 'unit': 's'}]
    assert (written['benchmark'], written['parameters']) == ('example', {'domains': 3})
    assert written['details'] == {'more': [1]}
    assert written['machine'].keys() == {'cores', 'python', 'version', 'load_before'}
    printed = capsys.readouterr().out.splitlines()
    assert [line.split() for line in printed if 'the limit' in line] == [
        ['create', '6', 's', '2', '3', 'the', 'limit']]


def test_another_of_nothing_has_no_ratio() -> None:
    report = Report('example', {})
    report.add('statements', 3.0, '', 0.0, 'none at all')
    assert report.figures[0].ratio is None


@pytest.mark.parametrize(('count', 'share', 'expected'), [
    (1, 0.99, 1), (100, 0.99, 99), (200, 0.99, 198), (3, 0, 1), (4, 1, 4),
])
def test_a_percentile_is_one_of_the_samples(count: int, share: float, expected: int) -> None:
    assert percentile(list(range(count, 0, -1)), share) == expected
